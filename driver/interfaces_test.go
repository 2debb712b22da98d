package driver

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// optional are the interfaces that database/sql asks a driver's types for.
var optional = []reflect.Type{
	reflect.TypeFor[sqldriver.DriverContext](), reflect.TypeFor[io.Closer](),
	reflect.TypeFor[sqldriver.Pinger](), reflect.TypeFor[sqldriver.SessionResetter](), reflect.TypeFor[sqldriver.Validator](),
	reflect.TypeFor[sqldriver.ConnPrepareContext](), reflect.TypeFor[sqldriver.ConnBeginTx](),
	//lint:ignore SA1019 database/sql still asks for it
	reflect.TypeFor[sqldriver.Execer](),
	//lint:ignore SA1019 database/sql still asks for it
	reflect.TypeFor[sqldriver.Queryer](),
	reflect.TypeFor[sqldriver.ExecerContext](), reflect.TypeFor[sqldriver.QueryerContext](),
	//lint:ignore SA1019 database/sql still asks for it
	reflect.TypeFor[sqldriver.ColumnConverter](),
	reflect.TypeFor[sqldriver.NamedValueChecker](),
	reflect.TypeFor[sqldriver.StmtExecContext](), reflect.TypeFor[sqldriver.StmtQueryContext](),
	reflect.TypeFor[sqldriver.RowsNextResultSet](), reflect.TypeFor[sqldriver.RowsColumnTypeScanType](),
	reflect.TypeFor[sqldriver.RowsColumnTypeDatabaseTypeName](), reflect.TypeFor[sqldriver.RowsColumnTypeLength](),
	reflect.TypeFor[sqldriver.RowsColumnTypeNullable](), reflect.TypeFor[sqldriver.RowsColumnTypePrecisionScale](),
}

// different are the interfaces that only one of the two has, with the reason.
var different = map[string]string{
	"Connector io.Closer":      "it ends what WithRegistryListener began",
	"pool Connector io.Closer": "it ends what WithRegistryListener began",
}

// stdlibTx is the type of pgx's transactions, which has no name outside of it.
func stdlibTx(t *testing.T, config pgx.ConnConfig) sqldriver.Tx {
	conn, err := stdlib.GetConnector(config).Connect(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	tx, err := conn.(sqldriver.ConnBeginTx).BeginTx(t.Context(), sqldriver.TxOptions{})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	return tx
}

// database/sql finds the same in fencerow's types as in pgx's: what it does
// otherwise for want of an interface would differ.
func TestOptionalInterfaces(t *testing.T) {
	config, err := pgx.ParseConfig(localpg.Database(t))
	require.NoError(t, err)
	for name, pair := range map[string]struct{ ours, pgx any }{
		"Driver":         {&Driver{}, stdlib.GetDefaultDriver()},
		"Connector":      {&Connector{}, stdlib.GetConnector(*config)},
		"pool Connector": {&Connector{}, stdlib.GetPoolConnector(nil)},
		"Conn":           {&Conn{}, &stdlib.Conn{}},
		"Stmt":           {&Stmt{}, &stdlib.Stmt{}},
		"Tx":             {&Tx{}, stdlibTx(t, *config)},
		"Rows":           {&pgxRows{}, &stdlib.Rows{}},
		"ended Rows":     {&pgxEnded{}, &stdlib.Rows{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, i := range optional {
				ours, theirs := reflect.TypeOf(pair.ours).Implements(i), reflect.TypeOf(pair.pgx).Implements(i)
				_, excepted := different[name+" "+i.String()]
				require.Equal(t, excepted, ours != theirs, "%v: fencerow %t, pgx %t", i, ours, theirs)
			}
		})
	}
}

// columnsOf describes a result's columns as database/sql sees them.
func columnsOf(t *testing.T, rows *sql.Rows, err error) (described []string) {
	require.NoError(t, err)
	defer rows.Close()
	types, err := rows.ColumnTypes()
	require.NoError(t, err)
	for _, c := range types {
		described = append(described, c.Name()+" "+c.DatabaseTypeName()+" "+c.ScanType().String())
	}
	return described
}

// A guarded write describes what it returns as pgx does, with rows and without.
func TestReturnedColumnTypes(t *testing.T) {
	dsn := localpg.Database(t)
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Exec(`CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(10), at timestamptz, last_token bigint NOT NULL DEFAULT 0)`)
	require.NoError(t, err)
	_, err = plain.Exec(`INSERT INTO orders (id) VALUES (1)`)
	require.NoError(t, err)
	db, err := Open(dsn, Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	const write = `UPDATE orders SET last_token = $1 WHERE id = $2 AND last_token <= $1 RETURNING id, note, at`
	for name, id := range map[string]int{"a row": 1, "no row": 2} {
		t.Run(name, func(t *testing.T) {
			theirs, err := plain.Query(write, 7, id)
			want := columnsOf(t, theirs, err)
			ours, err := db.QueryContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg, id)
			require.Equal(t, want, columnsOf(t, ours, err))
		})
	}
}
