package driver_test

import (
	sqldriver "database/sql/driver"
	"fmt"
	"net"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// unchecked are the types that send what they like.
var unchecked = []reflect.Type{
	reflect.TypeFor[*pgx.Conn](), reflect.TypeFor[*pgconn.PgConn](), reflect.TypeFor[*pgconn.HijackedConn](), reflect.TypeFor[*stdlib.Conn](),
	reflect.TypeFor[*pgxpool.Pool](), reflect.TypeFor[*pgxpool.Conn](), reflect.TypeFor[pgx.Tx](), reflect.TypeFor[pgx.Rows](),
	reflect.TypeFor[*pgproto3.Frontend](), reflect.TypeFor[*ctxwatch.ContextWatcher](), reflect.TypeFor[net.Conn](),
}

// leak follows a type's exported fields and the results of its methods, and
// returns the way to an unchecked type, if there is one.
func leak(t reflect.Type, seen map[reflect.Type]bool) string {
	for _, u := range unchecked {
		if t == u || u.Kind() == reflect.Interface && t.Implements(u) {
			return t.String()
		}
	}
	if seen[t] {
		return ""
	}
	seen[t] = true
	for i := range t.NumMethod() {
		m := t.Method(i)
		for j := range m.Type.NumOut() {
			if way := leak(m.Type.Out(j), seen); way != "" {
				return fmt.Sprintf("%v.%s() -> %s", t, m.Name, way)
			}
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				if way := leak(f.Type, seen); way != "" {
					return fmt.Sprintf("%v.%s -> %s", t, f.Name, way)
				}
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan, reflect.Map:
		return leak(t.Elem(), seen)
	}
	return ""
}

// given is all that a function under Raw can get from the driver.
func given(t *testing.T, driverConn any) []any {
	ctx := tokenctx.With(t.Context(), waysToken+1)
	c := driverConn.(*driver.Conn)
	stmt, err := c.PrepareContext(ctx, `SELECT 1`)
	require.NoError(t, err)
	defer stmt.Close()
	rows, err := c.QueryContext(ctx, `SELECT 1`, nil)
	require.NoError(t, err)
	require.NoError(t, rows.Close())
	tx, err := c.BeginTx(ctx, sqldriver.TxOptions{})
	require.NoError(t, err)
	args := []sqldriver.NamedValue{{Ordinal: 1, Value: 1}, {Ordinal: 2, Value: tokenctx.Arg}, {Ordinal: 3, Value: 1}}
	returned, err := c.QueryContext(ctx, waysGuarded+` RETURNING id`, args)
	require.NoError(t, err)
	require.NoError(t, returned.Close())
	require.NoError(t, tx.Rollback())
	result, err := c.ExecContext(ctx, `SELECT 1`, nil)
	require.NoError(t, err)
	return []any{driverConn, stmt, rows, tx, returned, result}
}

// Raw gives no connection of pgx's, nor anything that leads to one, and the
// COPY that it does give is checked.
func TestRawGivesNoPgx(t *testing.T) {
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	handle, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	db := openSingle(t, handle, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(driverConn any) error {
		require.NotImplements(t, (*interface{ Conn() *pgx.Conn })(nil), driverConn)
		require.IsNotType(t, (*stdlib.Conn)(nil), driverConn)
		for _, v := range given(t, driverConn) {
			require.Empty(t, leak(reflect.TypeOf(v), make(map[reflect.Type]bool)))
		}
		return nil
	}))
	for _, table := range []pgx.Identifier{{"orders"}, {"public", "orders"}} {
		err := conn.Raw(func(driverConn any) error {
			_, err := driverConn.(*driver.Conn).CopyFrom(t.Context(), table, []string{"id"}, pgx.CopyFromRows([][]any{{int64(2)}}))
			return err
		})
		requireRefused(t, err, rewrite.ProtectedCopy)
	}
	db.requireUsable(t, conn)
	require.NoError(t, conn.Close())
	db.requireIdle(t)
	plain.requireRow(t, 0, waysToken)
}

// The walk over types finds what pgx's own connection gives.
func TestLeaksOfPgx(t *testing.T) {
	for _, leaky := range []any{&stdlib.Conn{}, struct{ Inner *stdlib.Conn }{}, struct{ Hidden func() }{}, &pgxpool.Conn{}} {
		_, safe := leaky.(struct{ Hidden func() })
		require.Equal(t, safe, leak(reflect.TypeOf(leaky), make(map[reflect.Type]bool)) == "", "%T", leaky)
	}
}
