package driver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// operatorSchema has comparisons of somebody's own, which let every token
// through, for each type that a token's operand can have.
const operatorSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', t, false); END $$;
CREATE SCHEMA evil;
`

// evilOperators makes them.
func evilOperators() []string {
	var out []string
	for _, op := range []string{"<", "<=", ">", ">="} {
		for _, right := range []string{"bigint", "int", "smallint"} {
			f := "evil.f" + strings.NewReplacer("<", "l", ">", "g", "=", "e").Replace(op) + right
			out = append(out,
				`CREATE FUNCTION `+f+`(bigint, `+right+`) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
				`CREATE OPERATOR evil.`+op+` (LEFTARG = bigint, RIGHTARG = `+right+`, FUNCTION = `+f+`)`)
			if right != "bigint" {
				out = append(out,
					`CREATE FUNCTION `+f+`(`+right+`, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
					`CREATE OPERATOR evil.`+op+` (LEFTARG = `+right+`, RIGHTARG = bigint, FUNCTION = `+f+`)`)
			}
		}
	}
	return out
}

// staleGuards are writes under token 7; the row has 9.
var staleGuards = map[string]struct {
	sql  string
	args []any
}{
	"UPDATE":             {`UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND last_token <= $1`, []any{tokenctx.Arg}},
	"UPDATE, strict":     {`UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND last_token < $1`, []any{tokenctx.Arg}},
	"UPDATE, mirrored":   {`UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND $1 >= orders.last_token`, []any{tokenctx.Arg}},
	"UPDATE, no space":   {`UPDATE orders SET v='stale',last_token=$1 WHERE id=1 AND last_token<=$1`, []any{tokenctx.Arg}},
	"UPDATE, literal":    {`UPDATE orders SET v = 'stale', last_token = 7 WHERE id = 1 AND last_token <= 7`, nil},
	"UPDATE, smallint":   {`UPDATE orders SET v = 'stale', last_token = 7 WHERE id = 1 AND last_token <= 7::smallint`, nil},
	"UPDATE, two guards": {`UPDATE orders SET v = 'stale', last_token = $1 WHERE last_token <= $1 AND last_token < $1`, []any{tokenctx.Arg}},
	"UPDATE of many":     {`UPDATE orders o SET v = x.v, last_token = x.t FROM (VALUES (1, 'stale', 7::bigint)) x (id, v, t) WHERE o.id = x.id AND o.last_token <= x.t`, nil},
	"DELETE":             {`DELETE FROM orders WHERE id = 1 AND last_token <= $1`, []any{tokenctx.Arg}},
	"DELETE USING":       {`DELETE FROM orders o USING (VALUES (1)) x (id) WHERE o.id = x.id AND o.last_token <= $1`, []any{tokenctx.Arg}},
	"upsert": {
		`INSERT INTO orders (id, v, last_token) VALUES (1, 'stale', $1) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`,
		[]any{tokenctx.Arg},
	},
	"MERGE":            {`MERGE INTO orders o USING (VALUES (1)) x (id) ON o.id = x.id WHEN MATCHED AND o.last_token <= $1 THEN UPDATE SET v = 'stale', last_token = $1`, []any{tokenctx.Arg}},
	"MERGE DELETE":     {`MERGE INTO orders o USING (VALUES (1)) x (id) ON o.id = x.id WHEN MATCHED AND o.last_token <= $1 THEN DELETE`, []any{tokenctx.Arg}},
	"WITH":             {`WITH x AS (UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND last_token <= $1 RETURNING id) SELECT count(*) FROM x`, []any{tokenctx.Arg}},
	"EXPLAIN ANALYZE":  {`EXPLAIN ANALYZE UPDATE orders SET v = 'stale', last_token = 7 WHERE id = 1 AND last_token <= 7`, nil},
	"qualified":        {`UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND last_token OPERATOR(pg_catalog.<=) $1`, []any{tokenctx.Arg}},
	"rewritten UPDATE": {`UPDATE orders SET v = 'stale' WHERE id = 1`, nil},
	"rewritten DELETE": {`DELETE FROM orders WHERE id = 1 OR id = 2`, nil},
	"rewritten upsert": {`INSERT INTO orders (id, v) VALUES (1, 'stale') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v`, nil},
}

// evilPath puts the operators before the built-in ones.
const evilPath = "evil, pg_catalog, public"

// No stale write passes by a comparison of somebody's own, whoever has put it
// before the built-in one.
func TestOperatorsOfOthers(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, operatorSchema)
	run(t, dsn, evilOperators()...)
	for who, option := range map[string]driver.Option{
		"a function": driver.WithRefreshInterval(driverInterval),
		"a hook": driver.WithPgx(stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET search_path = `+evilPath)
			return err
		})),
	} {
		for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
			config, err := pgx.ParseConfig(withParameter(dsn, "default_query_exec_mode="+mode))
			require.NoError(t, err)
			connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Lease), driver.WithRewrite(), option)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(1)
			if who == "a function" {
				_, err = db.Exec(`SELECT set_tenant($1)`, evilPath)
				require.NoError(t, err)
			}
			for name, guard := range staleGuards {
				t.Run(strings.Join([]string{who, mode, name}, "/"), func(t *testing.T) {
					run(t, dsn, `TRUNCATE orders; INSERT INTO orders VALUES (1, 'new', 9)`)
					ctx := tokenctx.With(t.Context(), 7)
					_, err := db.ExecContext(ctx, guard.sql, guard.args...)
					requireUntouched(t, dsn, err)
					stmt, err := db.PrepareContext(ctx, guard.sql)
					require.NoError(t, err)
					defer stmt.Close()
					_, err = stmt.ExecContext(ctx, guard.args...)
					requireUntouched(t, dsn, err)
				})
			}
		}
	}
}

// driverInterval is the usual time between two looks.
const driverInterval = 30e9

func requireUntouched(t *testing.T, dsn string, err error) {
	t.Helper()
	var row string
	fencetest.With(t, dsn, func(plain *pgx.Conn) {
		require.NoError(t, plain.QueryRow(t.Context(), `SELECT coalesce(string_agg(o::text, ' '), '') FROM orders o`).Scan(&row))
	})
	require.Equal(t, "(1,new,9)", row, "%v", err)
}

// The control: with plain pgx each of these writes lands, but for the one that
// names the built-in operator.
func TestOperatorsOfOthersAgainstPgx(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, operatorSchema)
	run(t, dsn, evilOperators()...)
	plain, err := sql.Open("pgx", withParameter(dsn, "search_path="+strings.ReplaceAll(evilPath, " ", "")))
	require.NoError(t, err)
	defer plain.Close()
	for name, guard := range staleGuards {
		if strings.HasPrefix(name, "rewritten") || name == "qualified" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			run(t, dsn, `TRUNCATE orders; INSERT INTO orders VALUES (1, 'new', 9)`)
			args := make([]any, len(guard.args))
			for i := range args {
				args[i] = int64(7)
			}
			_, err := plain.Exec(guard.sql, args...)
			require.NoError(t, err)
			var stale bool
			require.NoError(t, plain.QueryRow(`SELECT NOT EXISTS (SELECT FROM orders WHERE v = 'new')`).Scan(&stale))
			require.True(t, stale, "the stale write has landed")
		})
	}
}
