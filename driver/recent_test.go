package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// A text in memory that is used again for another is checked for what it is by
// then, wherever it stood before.
func TestMemoryOfATextIsUsedAgain(t *testing.T) {
	inner := &fake{count: 1}
	connector, err := Wrap(inner, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)

	const harmless, harmful = `UPDATE notices SET a = 1`, `UPDATE orders SET a = 1 `
	require.Len(t, harmful, len(harmless))
	buffer := []byte(harmless)
	text := unsafe.String(&buffer[0], len(buffer))
	for range 3 {
		_, err = db.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
	copy(buffer, harmful)
	for range 3 {
		_, err = db.ExecContext(t.Context(), text)
		require.ErrorIs(t, err, rewrite.ErrRefused)
		_, err = db.QueryContext(t.Context(), text)
		require.ErrorIs(t, err, rewrite.ErrRefused)
	}
	require.Len(t, inner.calls, 3)
}

// What a connection remembers is not asked once something else is protected, and
// doesn't let special arguments by.
func TestRecentPlansEnd(t *testing.T) {
	inner := &fake{count: 1}
	connector, err := Wrap(inner)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	const text = `UPDATE orders SET a = $1`
	for range 2 {
		_, err = db.ExecContext(t.Context(), text, 1)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), text, tokenctx.Arg)
		require.ErrorIs(t, err, rewrite.ErrRefused, "no token's place")
	}
	_, err = connector.protect([]gate.Table{{Table: rewrite.Table{Schema: "public", Name: "orders", Mode: rewrite.Strict}, Level: Enforce}}, &gate.Reading{Generation: 1, Begun: 2}, nil)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), text, 1)
	require.ErrorIs(t, err, rewrite.ErrRefused)
}

// Observers and counts know of what a connection remembers.
func TestRecentPlansAreCounted(t *testing.T) {
	connector, err := Wrap(&fake{count: 1}, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	for i := range 500 {
		for n := range 3 {
			_, err := db.ExecContext(t.Context(), fmt.Sprintf("SELECT %s%d", strings.Repeat(" ", n), i%50))
			require.NoError(t, err)
		}
	}
	stats, _ := StatsOf(db)
	require.EqualValues(t, 1500, stats.Checked)
	require.EqualValues(t, 1350, stats.CacheHits)
	require.NoError(t, db.Close())
	require.Equal(t, stats, connector.Stats())

	heard := 0
	stop := Observe(Observer{After: func(_ context.Context, _ Operation, _ error) { heard++ }})
	defer stop()
	conn, err := connector.Connect(t.Context())
	require.NoError(t, err)
	for range 3 {
		_, err = conn.(sqldriver.ExecerContext).ExecContext(t.Context(), "SELECT 1", nil)
		require.NoError(t, err)
	}
	require.Equal(t, 3, heard)
	require.NoError(t, conn.Close())
}

// A COMMIT as text, which a connection has sent before, still has the handle look
// again at what the transaction has changed.
func TestRecentCommitIsNoted(t *testing.T) {
	dsn := localpg.Database(t)
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Close()) })
	_, err = plain.Exec(`CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`)
	require.NoError(t, err)
	db, err := Open(dsn, Protect("orders", rewrite.Strict), WithRefreshInterval(time.Hour))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	looking := &db.Driver().(*Driver).connector.looking
	for _, text := range []string{`BEGIN`, `COMMIT`, `BEGIN`, `CREATE TABLE other (id int)`} {
		_, err = conn.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
	require.Zero(t, looking.due.Load())
	_, err = db.Exec(`SELECT 1`) // another connection looks, and sees nothing of it yet
	require.NoError(t, err)
	_, err = db.Exec(`SELECT 1`)
	require.NoError(t, err)
	require.NotZero(t, looking.due.Load())
	_, err = conn.ExecContext(t.Context(), `COMMIT`)
	require.NoError(t, err)
	require.Zero(t, looking.due.Load(), "after the commit there is something to see")
}
