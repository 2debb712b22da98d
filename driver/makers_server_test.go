package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// makersSchema has a routine, mk, that runs what stands in the table todo, and all
// kinds of objects that use it. Nothing in these bodies names orders.
const makersSchema = `
CREATE TABLE customers (id int PRIMARY KEY, note text); INSERT INTO customers VALUES (1);
CREATE TABLE orders (id bigint PRIMARY KEY, n int, customer int, last_token bigint NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 9, 1, 9);
CREATE TABLE queue (i int); CREATE SCHEMA app;
CREATE VIEW over_orders AS SELECT * FROM orders; CREATE VIEW harmless_view AS SELECT 1::bigint AS id, 1 AS n, 1 AS customer, 1::bigint AS last_token;
CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET n = 0; RETURN 1; END $$;
CREATE FUNCTION app.writes_there() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = 0; RETURN 1; END $$;
CREATE FUNCTION writes_2(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT writes()';
CREATE FUNCTION writes_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM writes(); RETURN NEW; END $$;
CREATE FUNCTION harmless() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TYPE pair AS (a int); CREATE FUNCTION pair_int(pair) RETURNS int LANGUAGE sql AS 'SELECT writes()';

CREATE TABLE todo (ddl text);
CREATE FUNCTION mk() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE (SELECT ddl FROM todo); RETURN 1; END $$;
CREATE PROCEDURE mk_proc() LANGUAGE plpgsql AS $$ BEGIN EXECUTE (SELECT ddl FROM todo); END $$;
CREATE FUNCTION mk_do() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DO $d$ DECLARE t text; BEGIN SELECT ddl FROM todo INTO t; EXECUTE t; END $d$'; RETURN 1; END $$;
CREATE FUNCTION mk_called() RETURNS int LANGUAGE sql AS 'SELECT mk() + 1';
CREATE FUNCTION mk_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM mk(); RETURN NEW; END $$;
CREATE TABLE fires (i int PRIMARY KEY, j int); INSERT INTO fires VALUES (1, 1); CREATE TRIGGER t AFTER INSERT OR DELETE ON fires FOR EACH ROW EXECUTE FUNCTION mk_row();
CREATE TABLE late (i int); CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mk_row();
CREATE TABLE above (i int PRIMARY KEY); INSERT INTO above VALUES (1); ALTER TABLE fires ADD FOREIGN KEY (j) REFERENCES above ON DELETE CASCADE;
CREATE VIEW over_fires AS SELECT * FROM fires;
CREATE TABLE defaulted (i int, j int DEFAULT mk());
CREATE TABLE ruled (i int); CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT mk();
CREATE VIEW mk_view AS SELECT mk() AS made; CREATE VIEW mk_view_2 AS SELECT made + 1 AS m FROM mk_view; CREATE FUNCTION reads_view() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT m FROM mk_view_2); END $$;
CREATE MATERIALIZED VIEW mk_stored AS SELECT mk() WITH NO DATA;
CREATE FUNCTION mk_2(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN mk(); END $$; CREATE OPERATOR ### (FUNCTION = mk_2, LEFTARG = int, RIGHTARG = int);
CREATE AGGREGATE mk_sum(int) (SFUNC = mk_2, STYPE = int, INITCOND = 0);
CREATE DOMAIN mk_domain AS int CHECK (mk_2(VALUE, 1) > 0);
CREATE FUNCTION opens() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO fires VALUES (7)'; END $$;
`

// made is a change of the catalog, and a statement that then writes orders.
type made struct{ ddl, next string }

var makings = map[string]made{
	"view":                     {`CREATE VIEW made AS SELECT * FROM orders`, `UPDATE made SET n = 0`},
	"temporary view":           {`CREATE TEMP VIEW made AS SELECT * FROM orders`, `UPDATE made SET n = 0`},
	"view, replaced":           {`CREATE OR REPLACE VIEW harmless_view AS SELECT * FROM orders`, `UPDATE harmless_view SET n = 0`},
	"view, renamed":            {`ALTER VIEW over_orders RENAME TO made`, `UPDATE made SET n = 0`},
	"view, renamed as a table": {`ALTER TABLE over_orders RENAME TO made`, `DELETE FROM made`},
	"view, moved":              {`ALTER VIEW over_orders RENAME TO made; ALTER VIEW made SET SCHEMA app`, `UPDATE app.made SET n = 0`},
	"schema, renamed":          {`ALTER VIEW over_orders SET SCHEMA app; ALTER SCHEMA app RENAME TO app2`, `UPDATE app2.over_orders SET n = 0`},
	"child":                    {`CREATE TABLE made () INHERITS (orders)`, `INSERT INTO made VALUES (5)`},
	"key":                      {`ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE`, `DELETE FROM customers`},
	"key, parent renamed":      {`ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE; ALTER TABLE customers RENAME TO made`, `DELETE FROM made`},
	"function":                 {`CREATE FUNCTION made() RETURNS void LANGUAGE sql AS 'UPDATE orders SET n = 0'`, `SELECT made()`},
	"function, replaced":       {`CREATE OR REPLACE FUNCTION harmless() RETURNS int LANGUAGE sql AS 'UPDATE orders SET n = 0 RETURNING 1'`, `SELECT harmless()`},
	"function, renamed":        {`ALTER FUNCTION writes() RENAME TO made`, `SELECT made()`},
	"routine, renamed":         {`ALTER ROUTINE writes() RENAME TO made`, `SELECT made()`},
	"function, moved": {
		`ALTER FUNCTION harmless() RENAME TO other; ALTER FUNCTION app.writes_there() SET SCHEMA public; ALTER FUNCTION writes_there() RENAME TO harmless`,
		`SELECT harmless()`,
	},
	"procedure":                {`CREATE PROCEDURE made() LANGUAGE sql AS 'UPDATE orders SET n = 0'`, `CALL made()`},
	"function of a new schema": {`DROP SCHEMA app CASCADE; CREATE SCHEMA app; CREATE FUNCTION app.made() RETURNS void LANGUAGE sql AS 'UPDATE public.orders SET n = 0'`, `SELECT app.made()`},
	"trigger":                  {`CREATE TRIGGER t AFTER INSERT ON queue FOR EACH ROW EXECUTE FUNCTION writes_row()`, `INSERT INTO queue VALUES (1)`},
	"rule":                     {`CREATE RULE r AS ON INSERT TO queue DO ALSO UPDATE orders SET n = 0`, `INSERT INTO queue VALUES (1)`},
	"default":                  {`ALTER TABLE queue ALTER i SET DEFAULT writes()`, `INSERT INTO queue DEFAULT VALUES`},
	"check":                    {`ALTER TABLE queue ADD CHECK (writes_2(i, 1) > 0)`, `INSERT INTO queue VALUES (1)`},
	"operator":                 {`CREATE OPERATOR @#@ (FUNCTION = writes_2, LEFTARG = int, RIGHTARG = int)`, `SELECT 1 @#@ 2`},
	"aggregate":                {`CREATE AGGREGATE made(int) (SFUNC = writes_2, STYPE = int, INITCOND = 0)`, `SELECT made(1)`},
	"cast":                     {`CREATE CAST (pair AS int) WITH FUNCTION pair_int(pair)`, `SELECT ROW(1)::pair::int`},
	"domain":                   {`CREATE DOMAIN made AS int CHECK (writes_2(VALUE, 1) > 0)`, `SELECT 5::made`},
	"a function that does later": {
		`CREATE OR REPLACE FUNCTION harmless() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN EXECUTE 'UPDATE ord' || 'ers SET n = 0'; UPDATE over_orders SET n = 0; RETURN 1; END $f$`,
		`SELECT harmless()`,
	},
}

// makers are the ways to have it made, some in several statements.
var makers = map[string][]string{
	"function":             {`SELECT mk()`},
	"function, by another": {`SELECT mk_called()`},
	"function, as a table": {`SELECT * FROM mk()`},
	"in WITH":              {`WITH m AS MATERIALIZED (SELECT mk() AS m) SELECT * FROM m`},
	"DO in a function":     {`SELECT mk_do()`},
	"procedure":            {`CALL mk_proc()`},
	"trigger":              {`INSERT INTO fires VALUES (2, 1)`},
	"trigger, by a view":   {`INSERT INTO over_fires VALUES (2, 1)`},
	"trigger, by a key":    {`DELETE FROM above`},
	"trigger, by a text":   {`SELECT opens()`},
	"trigger, deferred":    {`INSERT INTO late VALUES (1)`, `SET CONSTRAINTS ALL IMMEDIATE`},
	"default":              {`INSERT INTO defaulted (i) VALUES (1)`},
	"rule":                 {`INSERT INTO ruled VALUES (1)`},
	"view":                 {`SELECT * FROM mk_view`},
	"view over a view":     {`SELECT * FROM public.mk_view_2`},
	"view, by a function":  {`SELECT reads_view()`},
	"materialized view":    {`REFRESH MATERIALIZED VIEW mk_stored`},
	"operator":             {`SELECT 1 ### 2`},
	"aggregate":            {`SELECT mk_sum(1)`},
	"domain":               {`SELECT 5::mk_domain`},
	"cursor":               {`DECLARE c CURSOR WITH HOLD FOR SELECT mk() FROM queue UNION ALL SELECT mk()`, `FETCH ALL FROM c`},
	"after another":        {`SELECT mk() FROM queue`, `SELECT harmless()`, `SELECT mk()`},
	"taken back before":    {`SAVEPOINT s`, `SELECT mk()`, `ROLLBACK TO s`, `SELECT mk()`},
}

// ordersState is what stands in orders.
const ordersState = `SELECT COALESCE(string_agg(format('%s %s %s', id, n, last_token), ',' ORDER BY id), 'none') FROM orders`

// making runs statements, and then the one that writes orders. It returns the error of
// the latter.
func making(t *testing.T, exec func(string) error, statements []string, next string) error {
	t.Helper()
	for _, s := range statements {
		require.NoError(t, exec(s), s)
	}
	return exec(next)
}

// What a call changes in the catalog is known to what follows it, in the same
// transaction and after it, on the same connection and on others.
func TestMakers(t *testing.T) {
	type wayOf struct {
		made
		by []string
	}
	cases := make(map[string]wayOf)
	for name, m := range makings {
		cases["function makes "+name] = wayOf{m, makers["function"]}
	}
	for name, by := range makers {
		cases[name+" makes view"] = wayOf{makings["view"], by}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, ofSchema(makersSchema))
			run(t, dsn, fmt.Sprintf(`INSERT INTO todo VALUES (%s)`, "$ddl$"+c.ddl+"$ddl$"))
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			state := func(q interface {
				QueryRow(context.Context, string, ...any) pgx.Row
			}) (s string) {
				require.NoError(t, q.QueryRow(t.Context(), ordersState).Scan(&s))
				return s
			}
			before := state(plain)

			// over a plain connection it does the harm
			tx, err := plain.Begin(t.Context())
			require.NoError(t, err)
			require.NoError(t, making(t, func(sql string) error { _, err := tx.Exec(t.Context(), sql); return err }, c.by, c.next))
			require.NotEqual(t, before, state(tx))
			require.NoError(t, tx.Rollback(t.Context()))

			db, err := driver.Open(dsn, driver.Protect("public.orders", rewrite.Lease), driver.WithGuardedFunctions("mk", "mk_proc", "mk_do"))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 10))
			require.NoError(t, db.PingContext(ctx))

			held, err := db.Conn(ctx)
			require.NoError(t, err)
			defer held.Close()
			defer cancel() // ends a transaction that is open
			for _, begin := range []func() (func(string) error, func() error){
				func() (func(string) error, func() error) {
					tx, err := held.BeginTx(ctx, nil)
					require.NoError(t, err)
					return func(sql string) error { _, err := tx.ExecContext(ctx, sql); return err }, tx.Rollback
				},
				func() (func(string) error, func() error) {
					_, err := held.ExecContext(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
					require.NoError(t, err)
					return queried(ctx, held), func() error { _, err := held.ExecContext(ctx, `ROLLBACK`); return err }
				},
			} {
				require.NoError(t, db.PingContext(ctx)) // which looks, so that the snapshot has what was changed before
				exec, end := begin()
				require.ErrorIs(t, making(t, exec, c.by, c.next), rewrite.ErrRefused)
				if !barsAll.MatchString(t.Name()) {
					require.NoError(t, exec(`SELECT 1`))
				}
				require.NoError(t, end())
				require.Equal(t, before, state(plain))
			}
			if strings.HasPrefix(strings.Join(c.by, ""), "SAVEPOINT") {
				return
			}
			require.ErrorIs(t, making(t, queried(ctx, held), c.by, c.next), rewrite.ErrRefused)
			_, err = db.ExecContext(ctx, c.next)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			require.Equal(t, before, state(plain))
		})
	}
}

// barsAll tells what objects, once made, bar every statement.
var barsAll = regexp.MustCompile(`makes_(operator|cast|domain)$`)

// queried runs texts as queries, and reads their rows.
func queried(ctx context.Context, conn *sql.Conn) func(string) error {
	return func(text string) error {
		rows, err := conn.QueryContext(ctx, text)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	}
}
