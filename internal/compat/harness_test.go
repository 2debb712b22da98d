package compat

import (
	"context"
	"database/sql"
	"fmt"
	"go.opencensus.io/stats/view"
	"maps"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

func TestMain(m *testing.M) {
	view.Stop() // the goroutine that ocsql's statistics start
	localpg.Main(m)
}

// schema has two protected tables, one with a key into the other. A token that
// falls is an error of the database's own.
const schema = `
	CREATE TABLE orders (id bigserial PRIMARY KEY, status text NOT NULL DEFAULT '', amount bigint NOT NULL DEFAULT 0,
		version bigint NOT NULL DEFAULT 1, deleted_at timestamptz, last_token bigint NOT NULL DEFAULT 0);
	CREATE TABLE items (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders, sku text NOT NULL DEFAULT '', last_token bigint NOT NULL DEFAULT 0);
	CREATE FUNCTION fell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'the token fell'; END$$;
	CREATE TRIGGER rises AFTER UPDATE ON orders FOR EACH ROW WHEN (NEW.last_token < OLD.last_token) EXECUTE FUNCTION fell();
	CREATE TRIGGER rises AFTER UPDATE ON items FOR EACH ROW WHEN (NEW.last_token < OLD.last_token) EXECUTE FUNCTION fell()`

// The tokens of the holder, of whoever has come after it, and of who was there before.
const holder, newer, older = 8, 9, 5

// env is a database with protected tables.
type env struct {
	dsn         string
	db          *sql.DB   // opened with fencerow, rewriting
	plain       *pgx.Conn // that PostgreSQL is asked through
	unprotected bool
}

// setting is how the tables of an env are protected.
type setting struct {
	mode migrations.Mode
	wall migrations.WallLevel
}

var settings = map[string]setting{
	"plain pgx":       {}, // what the libraries do to tables that nothing protects
	"driver":          {migrations.Lease, migrations.WallOff},
	"wall":            {migrations.Lease, migrations.WallEnforce},
	"attested":        {migrations.Lease, migrations.WallAttested},
	"strict":          {migrations.Strict, migrations.WallOff},
	"strict attested": {migrations.Strict, migrations.WallAttested},
}

func open(t *testing.T, s setting, opts ...driver.Option) *env {
	t.Helper()
	ctx := context.Background()
	dsn := localpg.Database(t, localpg.Template{Name: fmt.Sprint(s), Setup: func(ctx context.Context, dsn string) error { return build(ctx, dsn, s) }})
	plain, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Close(ctx)) })
	if s == (setting{}) {
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return &env{dsn: dsn, db: db, plain: plain, unprotected: true}
	}
	db, err := driver.Open(dsn, append([]driver.Option{driver.WithRewrite()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &env{dsn: dsn, db: db, plain: plain}
}

func build(ctx context.Context, dsn string, s setting) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err = conn.Exec(ctx, schema); err != nil || s == (setting{}) {
		return err
	}
	if err = migrations.Up(ctx, dsn); err != nil {
		return err
	}
	for _, table := range []string{"orders", "items"} {
		if err = migrations.Register(ctx, dsn, migrations.Table{Name: table, Mode: s.mode}); err != nil {
			return err
		}
		if err = migrations.Wall(ctx, dsn, table, s.wall); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `SELECT fencing.next_token() FROM generate_series(1, 20)`)
	return err
}

// rows are the rows of both tables, by table and key: "o1", "i2".
type rows map[string]string

// reset puts back three orders and two items of the first, which carry the older
// token. Those that are named have been written since, under the given one.
func (e *env) reset(t *testing.T, token int64, written ...string) rows {
	t.Helper()
	_, err := e.plain.Exec(t.Context(), fmt.Sprintf(`BEGIN; SET LOCAL fencing.token = '15'; DELETE FROM items; DELETE FROM orders; SET LOCAL fencing.token = '%[1]d';
		INSERT INTO orders (id, status, last_token) SELECT i, 'theirs', %[1]d FROM generate_series(1, 3) i;
		INSERT INTO items (id, order_id, sku, last_token) SELECT i, 1, 'theirs', %[1]d FROM generate_series(1, 2) i;
		ALTER SEQUENCE orders_id_seq RESTART 4; ALTER SEQUENCE items_id_seq RESTART 3;
		COMMIT`, older))
	require.NoError(t, err)
	for _, row := range written {
		query := `UPDATE orders SET version = version + 1, last_token = %d WHERE id = %s`
		if row[0] == 'i' {
			query = `UPDATE items SET last_token = %d WHERE id = %s`
		}
		_, err := e.plain.Exec(t.Context(), fmt.Sprintf(`BEGIN; SET LOCAL fencing.token = '%d'; `+query+`; COMMIT`, token, token, row[1:]))
		require.NoError(t, err)
	}
	return e.read(t)
}

// read asks PostgreSQL for all rows.
func (e *env) read(t *testing.T) rows {
	t.Helper()
	found, err := e.plain.Query(t.Context(), `SELECT 'o' || id, concat_ws(' ', status, last_token, CASE WHEN deleted_at IS NOT NULL THEN 'deleted' END) FROM orders
		UNION ALL SELECT 'i' || id, concat_ws(' ', COALESCE('o' || order_id, 'none'), sku, last_token) FROM items`)
	require.NoError(t, err)
	all := make(rows)
	var name, row string
	_, err = pgx.ForEachRow(found, []any{&name, &row}, func() error { all[name] = row; return nil })
	require.NoError(t, err)
	return all
}

// with returns the rows with changes. A row that is "" is gone.
func (r rows) with(changes rows) rows {
	after := maps.Clone(r)
	for name, row := range changes {
		if after[name] = row; row == "" {
			delete(after, name)
		}
	}
	return after
}

func (r rows) withoutTokens() rows {
	out := make(rows)
	for name, row := range r {
		out[name] = token.ReplaceAllString(row, "")
	}
	return out
}

var token = regexp.MustCompile(` [0-9]+`)
