package driver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const foreignSchema = `
CREATE TABLE customers (id int PRIMARY KEY, name text);
CREATE TABLE orders (id bigint PRIMARY KEY, code text, n int, last_token bigint NOT NULL DEFAULT 0, customer int DEFAULT 1 REFERENCES customers ON DELETE CASCADE);
CREATE TABLE plain (id bigint PRIMARY KEY, n int); INSERT INTO plain VALUES (1, 1);
CREATE VIEW few AS SELECT * FROM orders;
CREATE FUNCTION writes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = 99; RETURN NEW; END $$;
CREATE TABLE fires (id int); INSERT INTO fires VALUES (1); CREATE TRIGGER t AFTER UPDATE ON fires FOR EACH ROW EXECUTE FUNCTION writes();
CREATE EXTENSION postgres_fdw; CREATE SCHEMA away;
`

const foreignRows = `TRUNCATE customers, orders; INSERT INTO customers VALUES (1, 'a'); INSERT INTO orders VALUES (1, 'ABC', 9, 9);`

// A foreign table may lead back to the database that it is in.
func TestForeignTablesThatLeadBack(t *testing.T) {
	const columns = ` (id bigint, code text, n int, last_token bigint) SERVER back `
	for name, c := range map[string]struct {
		table           string
		refused, passes []string
	}{
		"table_name": {
			`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'orders')`,
			[]string{`UPDATE remote SET n = 99 WHERE id = 1`, `DELETE FROM remote`, `WITH u AS (UPDATE remote SET n = 99 RETURNING 1) SELECT * FROM u`},
			[]string{`SELECT count(*) FROM remote`},
		},
		"schema_name":  {`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (schema_name 'public', table_name 'orders')`, []string{`UPDATE remote SET n = 99`}, nil},
		"its own name": {`CREATE FOREIGN TABLE away.orders` + columns + `OPTIONS (schema_name 'public')`, []string{`UPDATE away.orders SET n = 99`}, nil},
		"IMPORT":       {`IMPORT FOREIGN SCHEMA public LIMIT TO (orders) FROM SERVER back INTO away`, []string{`UPDATE away.orders SET n = 99`}, nil},
		"other columns": {
			`CREATE FOREIGN TABLE remote (number bigint OPTIONS (column_name 'id'), amount int OPTIONS (column_name 'n')) SERVER back OPTIONS (table_name 'orders')`,
			[]string{`UPDATE remote SET amount = 99`}, nil,
		},
		"a view": {`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'few')`, []string{`UPDATE remote SET n = 99`}, nil},
		"a view over it": {
			`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'orders'); CREATE VIEW over AS SELECT id, n FROM remote`,
			[]string{`UPDATE over SET n = 99`}, []string{`SELECT * FROM over`},
		},
		"to a foreign one": {
			`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'orders'); CREATE FOREIGN TABLE twice` + columns + `OPTIONS (table_name 'remote')`,
			[]string{`UPDATE twice SET n = 99`}, nil,
		},
		"a parent": {
			`CREATE FOREIGN TABLE remote (id int, name text) SERVER back OPTIONS (table_name 'customers')`, []string{`DELETE FROM remote WHERE id = 1`},
			[]string{`UPDATE remote SET name = 'b'`},
		},
		"a trigger's table": {`CREATE FOREIGN TABLE remote (id int) SERVER back OPTIONS (table_name 'fires')`, []string{`UPDATE remote SET id = 2`}, []string{`INSERT INTO remote VALUES (5)`}},
		"a body": {
			`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'orders'); CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'UPDATE remote SET n = 99'`,
			[]string{`SELECT f()`}, nil,
		},
		"a changed option": {
			`CREATE FOREIGN TABLE remote` + columns + `OPTIONS (table_name 'plain'); ALTER FOREIGN TABLE remote OPTIONS (SET table_name 'orders')`,
			[]string{`UPDATE remote SET n = 99`}, nil,
		},
		"another table": {`CREATE FOREIGN TABLE remote (id bigint, n int) SERVER back OPTIONS (table_name 'plain')`, nil, []string{`UPDATE remote SET n = 99`, `DELETE FROM remote`}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			run(t, dsn, foreignSchema+foreignRows, fmt.Sprintf(`CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%d', dbname '%s');
				CREATE USER MAPPING FOR PUBLIC SERVER back OPTIONS (user '%s', password '%s'); `, config.Host, config.Port, config.Database, config.User, config.Password), c.table)
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			plain, err := pgx.ConnectConfig(t.Context(), config)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			ctx := tokenctx.With(t.Context(), 10)
			for _, sql := range c.refused {
				_, err := db.ExecContext(ctx, sql)
				require.ErrorIs(t, err, rewrite.ErrRefused, sql)
			}
			for _, sql := range c.passes {
				_, err := db.ExecContext(ctx, sql)
				require.NoError(t, err, sql)
			}
			for _, sql := range c.refused {
				run(t, dsn, foreignRows, sql)
				var untouched bool
				require.NoError(t, plain.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM public.orders WHERE n = 9)`).Scan(&untouched))
				require.False(t, untouched, "over a plain connection: %s", sql)
			}
		})
	}
}
