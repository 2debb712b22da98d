package driver_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// Every exec mode of pgx, of the connection or of one statement, gives the
// same outcomes.
func TestExecModes(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	writes := map[string]string{
		"update": `UPDATE orders SET status = @status, last_token = @token WHERE id = @id AND last_token < @token`,
		"upsert": `INSERT INTO orders (id, status, last_token) VALUES (@id, @status, @token) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token < EXCLUDED.last_token`,
		"merge":  `MERGE INTO orders o USING (SELECT @id::bigint AS id, @status::text AS status) s ON s.id = o.id WHEN MATCHED AND o.last_token < @token THEN UPDATE SET status = s.status, last_token = @token`,
		"delete": `DELETE FROM orders WHERE id = @id AND status <> @status AND last_token < @token`,
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgx.ParseConfig(dsn)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Strict), driver.WithPartialCheck())
		require.NoError(t, err)
		ofConn := sql.OpenDB(connector)
		t.Cleanup(func() { require.NoError(t, ofConn.Close()) })
		ofStmt, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithPartialCheck())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ofStmt.Close()) })
		for name, write := range writes {
			for of, exec := range map[string]func(tokenctx.Token, string) error{
				"connection": func(token tokenctx.Token, write string) error {
					_, err := ofConn.ExecContext(tokenctx.With(t.Context(), token), write, pgx.NamedArgs{"id": 1, "status": "x", "token": tokenctx.Arg})
					return err
				},
				"statement": func(token tokenctx.Token, write string) error {
					_, err := ofStmt.ExecContext(tokenctx.With(t.Context(), token), write, mode, pgx.NamedArgs{"id": 1, "status": "x", "token": tokenctx.Arg})
					return err
				},
				"returning": func(token tokenctx.Token, write string) error {
					if name != "merge" { // not in PostgreSQL 15
						write += " RETURNING id, last_token"
					}
					rows, err := ofConn.QueryContext(tokenctx.With(t.Context(), token), write, pgx.NamedArgs{"id": 1, "status": "x", "token": tokenctx.Arg})
					if err != nil {
						return err
					}
					for rows.Next() {
						require.NoError(t, rows.Scan(new(int), new(int64)))
					}
					require.NoError(t, rows.Err())
					return rows.Close()
				},
			} {
				t.Run(mode.String()+"/"+name+"/"+of, func(t *testing.T) {
					run(t, dsn, `DELETE FROM orders`, `INSERT INTO orders VALUES (1, 'new', 5)`)
					require.ErrorIs(t, exec(4, write), driver.ErrStale)
					require.ErrorIs(t, exec(5, write), driver.ErrReplay)
					require.NoError(t, exec(6, write))
				})
			}
		}
	}
}

// A configuration registered with pgx opens by its name; one that isn't there
// any more says what to do instead.
func TestRegisteredConfiguration(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	name := stdlib.RegisterConnConfig(config)
	db, err := driver.Open(name, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	_, err = db.Exec(`DELETE FROM orders`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.NoError(t, db.Close())
	stdlib.UnregisterConnConfig(name)
	_, err = driver.Open(name, driver.Protect("orders", rewrite.Strict))
	require.ErrorContains(t, err, "driver.NewConnector")
	gone, err := sql.Open(driver.Name, name)
	require.NoError(t, err)
	defer gone.Close()
	require.ErrorContains(t, gone.Ping(), "is not registered")
}
