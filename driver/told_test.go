package driver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
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

var toldEach = flag.Bool("told.each", false, "send each shape of a write in each situation by each way, not by one of them")

var writeTold = flag.Bool("told", false, "write the table of docs/outcomes.md anew")

// toldSituation is what a write under token 7 to row 1 finds.
type toldSituation struct {
	before string // row 1 is new, and carries 5
	id     int    // the row that is meant
	token  tokenctx.Token
	want   func(toldShape) error // ErrStale, ErrReplay or nil
	strict bool                  // the table is
	alone  bool                  // a shape that is open is certain all the same
}

// writer is the token of who was there before.
func (s toldSituation) writer() int {
	if errors.Is(s.want(toldShape{}), driver.ErrReplay) {
		return 7
	}
	return 9
}

func toldStale(toldShape) error { return driver.ErrStale }
func toldFine(toldShape) error  { return nil }

var toldSituations = map[string]toldSituation{
	"fresh":                  {id: 1, token: 7, want: toldFine, alone: true},
	"stale":                  {before: `UPDATE orders SET last_token = 9 WHERE id = 1`, id: 1, token: 7, want: toldStale},
	"stale and changed":      {before: `UPDATE orders SET state = 'done', last_token = 9 WHERE id = 1`, id: 1, token: 7, want: toldStale},
	"no such row":            {before: `DELETE FROM orders WHERE id = 1`, id: 77, token: 7, want: toldFine, alone: true},
	"no such row, and newer": {before: `UPDATE orders SET last_token = 9 WHERE id = 1`, id: 77, token: 7, want: toldFine},
}

var toldReplay = toldSituation{before: `UPDATE orders SET last_token = 7 WHERE id = 1`, id: 1, token: 7, want: func(toldShape) error { return driver.ErrReplay }}

// toldCount counts the cells of the matrix.
type toldCount struct{ cells, reported, undetermined, silent int }

const toldSchema = `CREATE TABLE orders (id bigint PRIMARY KEY, code text CONSTRAINT orders_code_key UNIQUE, tenant int NOT NULL DEFAULT 1, number bigint NOT NULL,
		state text NOT NULL DEFAULT 'new', note text, UNIQUE (tenant, number));
	CREATE UNIQUE INDEX ON orders (lower(code)); CREATE UNIQUE INDEX ON orders (code, number) WHERE tenant = 1;
	CREATE TABLE notes (id bigint PRIMARY KEY); CREATE TABLE outbox (id bigint)`

const toldReset = `BEGIN; SET LOCAL fencing.token = '999'; DROP TABLE IF EXISTS made; TRUNCATE notes, outbox; DELETE FROM orders; INSERT INTO notes VALUES (1);
	SET LOCAL fencing.token = '5'; INSERT INTO orders (id, code, number, last_token) VALUES (1, 'b', 1, 5), (2, 'c', 2, 5); SET LOCAL fencing.token = '%d'; %s; COMMIT`

// A matrix of what a write of each shape ends with, in each situation, by the ways to
// send it: a stale holder is told, and nobody else is.
func TestTold(t *testing.T) {
	shapes := toldShapes()
	var total toldCount
	open := make(map[string]bool)
	for _, at := range []struct {
		name string
		mode migrations.Mode
		wall migrations.WallLevel
		ways []string
	}{
		{"off", migrations.Lease, migrations.WallOff, slices.Sorted(maps.Keys(withinWays))},
		{"enforce", migrations.Lease, migrations.WallEnforce, []string{"exec"}},
		{"attested", migrations.Lease, migrations.WallAttested, []string{"query"}},
		{"strict", migrations.Strict, migrations.WallOff, []string{"exec", "a query in a transaction"}},
	} {
		t.Run(at.name, func(t *testing.T) {
			dsn := localpg.Database(t, fencetest.Installed)
			run(t, dsn, toldSchema)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: at.mode}))
			run(t, dsn, `SELECT setval('fencing.write_epoch', 1000)`)
			require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", at.wall))
			db, err := driver.Open(dsn)
			require.NoError(t, err)
			defer db.Close()
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			situations, guard := maps.Clone(toldSituations), "<="
			if at.mode == migrations.Strict {
				situations["replay"], guard = toldReplay, "<"
			}
			for i, shapeName := range slices.Sorted(maps.Keys(shapes)) {
				shape := shapes[shapeName]
				query := strings.ReplaceAll(shape.sql, "{<=}", guard)
				for j, situationName := range slices.Sorted(maps.Keys(situations)) {
					situation := situations[situationName]
					for _, way := range waysOf(at.ways, i+j) {
						name := shapeName + "/" + situationName + "/" + way
						_, err := plain.Exec(t.Context(), fmt.Sprintf(toldReset, situation.writer(), orSelect(situation.before)))
						require.NoError(t, err, name)
						_, err = withinWays[way](tokenctx.With(t.Context(), situation.token), db, query, append([]any{tokenctx.Arg}, shape.args(situation.id)...)...)
						situation.strict = at.mode == migrations.Strict
						if toldCell(t, name, shape, situationName, situation, err, &total) {
							open[shapeName] = true
						}
						toldEffect(t, plain, name, shape, situationName, err)
					}
				}
			}
		})
	}
	require.Zero(t, total.silent)
	require.Greater(t, len(shapes), 60)
	t.Logf("%d shapes, %d cells: %d reported, %d undetermined, %d silent while stale", len(shapes), total.cells, total.reported, total.undetermined, total.silent)
	requireToldTable(t, shapes, open)
}

// waysOf returns one way, so that with n from 0 on each has its turn: each shape is sent
// in each situation, in each way, and in each way there is in each situation.
func waysOf(ways []string, n int) []string {
	if *toldEach {
		return ways
	}
	return ways[n%len(ways):][:1]
}

func orSelect(sql string) string {
	if sql == "" {
		return "SELECT"
	}
	return sql
}

// toldCell compares the answer of a cell with what it should be, and reports whether it
// is that nothing can be told.
func toldCell(t *testing.T, name string, shape toldShape, situationName string, situation toldSituation, err error, total *toldCount) (isOpen bool) {
	t.Helper()
	total.cells++
	want := situation.want(shape)
	isOpen = errors.Is(err, driver.ErrUndetermined)
	if err == nil && want != nil {
		total.silent++
	}
	if err != nil {
		total.reported++
	}
	if isOpen {
		total.undetermined++
	}
	switch {
	case isOpen && (shape.open && !situation.alone || situation.strict && !shape.strict && want != nil):
		return true
	case want == nil:
		require.NoError(t, err, name)
	case !shape.strict && situationName == "replay" && err == nil: // the row is the holder's own: it isn't stale
		total.silent--
	default:
		require.ErrorIs(t, err, want, name)
	}
	return false
}

// toldEffect compares the row with the answer.
func toldEffect(t *testing.T, plain *pgx.Conn, name string, shape toldShape, situationName string, err error) {
	t.Helper()
	var token *int64
	var note *string
	require.NoError(t, plain.QueryRow(t.Context(), `SELECT max(last_token), max(note) FROM orders WHERE id = 1`).Scan(&token, &note))
	switch {
	case situationName == "fresh" && shape.deletes:
		require.Nil(t, token, name)
	case situationName == "fresh":
		require.EqualValues(t, 7, *token, name)
		require.Equal(t, "mine", *note, name)
	case situationName == "stale" || situationName == "stale and changed":
		require.EqualValues(t, 9, *token, name)
		require.Error(t, err, name)
	}
}

const (
	toldFile  = "../docs/outcomes.md"
	toldBegin = "<!-- the table is written by go test ./driver -run TestTold -told -->\n"
	toldEnd   = "<!-- end of the table -->\n"
)

// requireToldTable compares the shapes that can't be told with those in the docs.
func requireToldTable(t *testing.T, shapes map[string]toldShape, open map[string]bool) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| the write | for example |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if shapes[name].open {
			fmt.Fprintf(&b, "| %s | `%s` |\n", name, strings.ReplaceAll(shapes[name].sql, "{<=}", "<="))
		}
	}
	text, err := os.ReadFile(toldFile)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), toldBegin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, toldEnd)
	require.True(t, ok)
	want := before + toldBegin + b.String() + toldEnd + after
	if *writeTold {
		require.NoError(t, os.WriteFile(toldFile, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "write it anew with -told")
}
