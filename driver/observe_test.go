package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// heard is what an observer was told.
type heard struct {
	events     []driver.Event
	operations []driver.Operation
	tables     []string // as they were told, several in one
}

func (h *heard) observer() driver.Observer {
	return driver.Observer{
		Tables: func(tables []rewrite.Table) {
			var names []string
			for _, t := range tables {
				names = append(names, t.String())
			}
			h.tables = append(h.tables, strings.Join(names, " "))
		},
		Event: func(_ context.Context, e driver.Event) { h.events = append(h.events, e) },
		After: func(_ context.Context, op driver.Operation, _ error) { h.operations = append(h.operations, op) },
	}
}

// Observers hear of handles that are open already, of one or of all, until they
// are stopped.
func TestObserve(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	open := func() *sql.DB {
		db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	one, other := open(), open()
	var ofOne, ofAll heard
	stopOne, err := driver.ObserveDB(one, ofOne.observer())
	require.NoError(t, err)
	stopAll := driver.Observe(ofAll.observer())
	_, err = driver.ObserveDB(openPlain(t, dsn), ofOne.observer())
	require.ErrorContains(t, err, `open it with sql.Open("fencerow", dsn)`)

	write := func(db *sql.DB, text string) {
		_, _ = db.ExecContext(tokenctx.With(t.Context(), 4), text)
	}
	const unguarded, stale = `UPDATE orders SET status = 'x' WHERE id = 1`, `UPDATE orders SET last_token = 4 WHERE id = 1 AND last_token <= 4`
	write(one, unguarded)
	write(other, unguarded)
	write(one, stale)
	stopOne()
	stopOne()
	write(one, unguarded)
	stopAll()
	write(one, unguarded)

	kinds := func(events []driver.Event) (out []driver.EventKind) {
		for _, e := range events {
			out = append(out, e.Kind)
			require.Contains(t, e.Location, "observe_test.go:")
		}
		return out
	}
	require.Equal(t, []driver.EventKind{driver.EventRefused, driver.EventStale}, kinds(ofOne.events))
	require.Equal(t, []driver.EventKind{driver.EventRefused, driver.EventRefused, driver.EventStale, driver.EventRefused}, kinds(ofAll.events))
	require.Equal(t, "UPDATE orders SET status = ? WHERE id = ?", ofOne.events[0].SQL)
	require.Empty(t, ofOne.events[1].SQL, "of a stale token")
	require.Equal(t, []string{"orders"}, ofOne.tables)
	require.Equal(t, []string{"orders", "orders"}, ofAll.tables, "of each handle once")
	for _, h := range []heard{ofOne, ofAll} {
		require.Len(t, h.operations, 1)
		op := h.operations[0]
		require.Equal(t, stale, op.SQL)
		require.Contains(t, op.Location, "observe_test.go:")
		require.Len(t, op.Writes, 1)
		require.Equal(t, "orders", op.Writes[0].Table.Name)
	}
}

// Observers know what is held, by whichever of its uses a handle is first heard of,
// and hear of changes.
func TestObserveTables(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema)
	for _, name := range []string{"orders", "jobs"} {
		require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: name, Mode: migrations.Lease}))
	}
	uses := map[string]func(*sql.DB) error{
		"a connection": func(db *sql.DB) error {
			db.SetMaxIdleConns(0) // the next one is new
			return db.Ping()
		},
		"a statement": func(db *sql.DB) error { _, err := db.Exec(`SELECT 1`); return err },
		"a refusal": func(db *sql.DB) error {
			_, err := db.Exec(`DELETE FROM jobs`)
			if errors.Is(err, rewrite.ErrRefused) {
				return nil
			}
			return err
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
			require.NoError(t, err)
			defer db.Close()
			var h heard
			stop, err := driver.ObserveDB(db, h.observer())
			require.NoError(t, err)
			defer stop()
			require.NoError(t, use(db))
			require.Equal(t, []string{"jobs orders"}, h.tables)
			require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Off))
			defer func() {
				require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
			}()
			require.NoError(t, use(db))
			require.NoError(t, use(db))
			require.Equal(t, []string{"jobs orders", "jobs"}, h.tables)
		})
	}
}
