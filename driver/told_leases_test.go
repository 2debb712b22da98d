package driver_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

// toldKeyed are the shapes that name their row by a key: each verb with one key, and each
// key with the first two verbs. TestTold has all of them.
func toldKeyed() map[string]toldShape {
	shapes := make(map[string]toldShape)
	for name, shape := range toldShapes() {
		if _, isOther := toldOthers[name]; !isOther && (strings.HasPrefix(name, "UPDATE by ") || strings.HasPrefix(name, "DELETE by ") || strings.HasSuffix(name, " by unique column")) {
			shapes[name] = shape
		}
	}
	return shapes
}

// toldCells has each shape sent in a situation, in one of the ways in turn.
type toldCells struct {
	send   func(way, query string, args ...any) error
	plain  *pgx.Conn
	shapes map[string]toldShape
	total  *toldCount
}

// openTold returns how to send under a resource's token, or the default one.
func openTold(t *testing.T, dsn, resource string, token tokenctx.Token) func(way, query string, args ...any) error {
	t.Helper()
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return func(way, query string, args ...any) error {
		ctx := tokenctx.WithResource(t.Context(), resource, token)
		if resource == "" {
			ctx = tokenctx.With(t.Context(), token)
		}
		_, err := withinWays[way](ctx, db, strings.ReplaceAll(query, "{<=}", "<="), append([]any{tokenctx.Arg}, args...)...)
		return err
	}
}

// run compares what each shape ends with, and the row 1 that it leaves: its token, 0 if
// it is gone.
func (c *toldCells) run(t *testing.T, situation, before string, id int, want func(toldShape) (token int64, err error)) {
	t.Helper()
	ways := slices.Sorted(maps.Keys(withinWays))
	for i, name := range slices.Sorted(maps.Keys(c.shapes)) {
		shape, way := c.shapes[name], ways[i%len(ways)]
		cell := situation + "/" + name + "/" + way
		if before != "" {
			_, err := c.plain.Exec(t.Context(), before)
			require.NoError(t, err, cell)
		}
		err := c.send(way, shape.sql, shape.args(id)...)
		token, wantErr := want(shape)
		c.total.cells++
		if err != nil {
			c.total.reported++
		} else if wantErr != nil {
			c.total.silent++
		}
		if wantErr == nil {
			require.NoError(t, err, cell)
		} else {
			require.ErrorIs(t, err, wantErr, cell)
		}
		var found, messages int64
		require.NoError(t, c.plain.QueryRow(t.Context(), `SELECT coalesce(max(last_token), 0), (SELECT count(*) FROM outbox) FROM orders WHERE id = 1`).Scan(&found, &messages))
		require.Equal(t, token, found, cell)
		if wantErr != nil && strings.Contains(shape.sql, "INSERT INTO outbox SELECT") {
			require.Zero(t, messages, cell)
		}
	}
}

// always wants the same of all shapes.
func always(token int64, err error) func(toldShape) (int64, error) {
	return func(toldShape) (int64, error) { return token, err }
}

// written wants a shape to write row 1.
func written(shape toldShape) (int64, error) {
	if shape.deletes {
		return 0, nil
	}
	return 7, nil
}

// The matrix where the tokens are those of a lease in the database, which another may
// have taken without writing anything, and where they come from elsewhere.
func TestToldUnderALease(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, toldSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease, Resource: "mine"}))
	run(t, dsn, `SELECT setval('fencing.write_epoch', 1000); INSERT INTO fencing.lease VALUES ('mine', 'me', 7, 'infinity')`)
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	shapes := maps.Clone(toldOthers)
	maps.Copy(shapes, toldKeyed())
	var total toldCount
	cells := &toldCells{openTold(t, dsn, "mine", 7), plain, shapes, &total}
	reset := func(holder int, also string) string {
		return fmt.Sprintf(toldReset, 9, orSelect(also)) + fmt.Sprintf(`; UPDATE fencing.lease SET token = %d`, holder)
	}
	const another = `UPDATE orders SET last_token = 9 WHERE id = 2`
	cells.run(t, "held", reset(7, another), 1, written)
	cells.run(t, "held, no such row", reset(7, another), 77, always(5, nil))
	cells.run(t, "taken, not yet written", reset(9, ""), 1, written)
	cells.run(t, "taken, no such row", reset(9, ""), 77, func(shape toldShape) (int64, error) {
		if shape.inserts {
			return 5, nil
		}
		return 5, driver.ErrStale
	})

	_, err = plain.Exec(t.Context(), `UPDATE fencing.registry SET issued_by = NULL`)
	require.NoError(t, err)
	cells.send = openTold(t, dsn, "mine", 7)
	cells.run(t, "tokens from elsewhere", reset(9, ""), 77, always(5, nil))
	cells.run(t, "tokens from elsewhere, a newer row", reset(9, another), 77, func(shape toldShape) (int64, error) {
		if shape.open {
			return 5, driver.ErrUndetermined
		}
		return 5, nil
	})
	require.Zero(t, total.silent)
	t.Logf("%d cells: %d reported, %d silent while stale", total.cells, total.reported, total.silent)
}

// toldPartitions is the table of toldSchema, partitioned by what a write changes.
const toldPartitions = `CREATE TABLE orders (id bigint, code text, tenant int NOT NULL DEFAULT 1, number bigint NOT NULL, state text NOT NULL DEFAULT 'new', note text,
		PRIMARY KEY (id, state), UNIQUE (code, state), UNIQUE (tenant, number, state)) PARTITION BY LIST (state);
	CREATE TABLE orders_new PARTITION OF orders FOR VALUES IN ('new'); CREATE TABLE orders_done PARTITION OF orders FOR VALUES IN ('done');
	CREATE TABLE notes (id bigint PRIMARY KEY); CREATE TABLE outbox (id bigint)`

// The matrix where the newer holder's write has moved the row to another partition.
func TestToldOfMovedRows(t *testing.T) {
	var total toldCount
	for _, wall := range []migrations.WallLevel{migrations.WallOff, migrations.WallEnforce, migrations.WallAttested} {
		t.Run(string(wall), func(t *testing.T) {
			dsn := localpg.Database(t, fencetest.Installed)
			run(t, dsn, toldPartitions)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
			run(t, dsn, `SELECT setval('fencing.write_epoch', 1000)`)
			require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", wall))
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			cells := &toldCells{openTold(t, dsn, "", 7), plain, toldKeyed(), &total}
			reset := func(writer int, also string) string { return fmt.Sprintf(toldReset, writer, also) }
			cells.run(t, "fresh", reset(9, "SELECT"), 1, written)
			cells.run(t, "moved", reset(9, `UPDATE orders SET state = 'done', last_token = 9 WHERE id = 1`), 1, always(9, driver.ErrStale))
			cells.run(t, "moved by the holder", reset(7, `UPDATE orders SET state = 'done', last_token = 7 WHERE id = 1`), 1, always(7, nil))
		})
	}
	require.Zero(t, total.silent)
	t.Logf("%d cells: %d reported, %d silent while stale", total.cells, total.reported, total.silent)
}

// The same of a sealed table, whose lease the newer holder has taken.
func TestToldOfMovedRowsUnderASeal(t *testing.T) {
	var total toldCount
	for _, wall := range []migrations.WallLevel{migrations.WallEnforce, migrations.WallAttested} {
		t.Run(string(wall), func(t *testing.T) {
			dsn := localpg.Database(t, fencetest.Installed)
			run(t, dsn, toldPartitions)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease, Resource: "mine"}))
			run(t, dsn, `INSERT INTO orders (id, code, number) VALUES (1, 'b', 1), (2, 'c', 2)`)
			require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", wall))
			require.NoError(t, migrations.Seal(t.Context(), dsn, "orders", "mine"))
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			held := takeOver(t, plain)
			send := openTold(t, dsn, "mine", tokenctx.Token(held))
			newer := takeOver(t, plain)
			_, err = plain.Exec(t.Context(), fmt.Sprintf(`BEGIN; SET LOCAL fencing.token_mine = '%d'; UPDATE orders SET state = 'done', last_token = %[1]d WHERE id = 1; COMMIT`, newer))
			require.NoError(t, err)
			cells := &toldCells{send, plain, toldKeyed(), &total}
			cells.run(t, "moved", `TRUNCATE outbox`, 1, always(newer, driver.ErrStale))
			cells.send = openTold(t, dsn, "mine", tokenctx.Token(newer))
			cells.run(t, "moved by the holder", `TRUNCATE outbox`, 1, always(newer, nil))
		})
	}
	require.Zero(t, total.silent)
	t.Logf("%d cells: %d reported, %d silent while stale", total.cells, total.reported, total.silent)
}

// takeOver takes the lease of "mine" from whoever has it, and returns its token.
func takeOver(t *testing.T, plain *pgx.Conn) (token int64) {
	t.Helper()
	_, err := plain.Exec(t.Context(), `UPDATE fencing.lease SET expires_at = '-infinity'`)
	require.NoError(t, err)
	require.NoError(t, plain.QueryRow(t.Context(), `SELECT token FROM fencing.take('mine', '1 h', 'me')`).Scan(&token))
	return token
}

// The matrix of a sealed table, whose lease another has taken without writing anything.
func TestToldOfASeal(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, toldSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease, Resource: "mine"}))
	run(t, dsn, `INSERT INTO notes VALUES (1); INSERT INTO orders (id, code, number) VALUES (1, 'b', 1), (2, 'c', 2)`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce))
	require.NoError(t, migrations.Seal(t.Context(), dsn, "orders", "mine"))
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	held := takeOver(t, plain)
	shapes := maps.Clone(toldOthers)
	maps.Copy(shapes, toldKeyed())
	var total toldCount
	cells := &toldCells{openTold(t, dsn, "mine", tokenctx.Token(held)), plain, shapes, &total}
	reset := fmt.Sprintf(`BEGIN; DROP TABLE IF EXISTS made; TRUNCATE outbox; SET LOCAL fencing.token_mine = '%d'; DELETE FROM orders; INSERT INTO orders (id, code, number, last_token) VALUES (1, 'b', 1, %[1]d), (2, 'c', 2, %[1]d); COMMIT`, held)
	cells.run(t, "held", reset, 1, func(shape toldShape) (int64, error) {
		if shape.deletes {
			return 0, nil
		}
		return held, nil
	})
	_, err = plain.Exec(t.Context(), reset)
	require.NoError(t, err)
	takeOver(t, plain)
	cells.run(t, "taken, not yet written", `TRUNCATE outbox; DROP TABLE IF EXISTS made`, 1, always(held, driver.ErrStale))
	cells.run(t, "taken, no such row", `TRUNCATE outbox; DROP TABLE IF EXISTS made`, 77, always(held, driver.ErrStale))
	require.Zero(t, total.silent)
	t.Logf("%d cells: %d reported, %d silent while stale", total.cells, total.reported, total.silent)
}
