package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// A connection that read the registry before a change, and is done after
// another one that read it later, doesn't undo the change.
func TestOlderRegistryIsIgnored(t *testing.T) {
	connector, err := Wrap(&fake{})
	require.NoError(t, err)
	at := func(level Level) []gate.Table {
		return []gate.Table{{Table: rewrite.Table{Schema: "public", Name: "orders", Mode: rewrite.Strict}, Level: level}}
	}
	for _, step := range []struct {
		level      Level
		generation int64
		changed    bool
		grown      uint64
	}{
		{Report, 3, true, 0}, {Enforce, 5, true, 1}, {Report, 4, false, 1}, {Enforce, 5, false, 1},
		{Off, 6, true, 1}, {Enforce, 7, true, 2},
	} {
		changed, err := connector.protect(at(step.level), &gate.Reading{Generation: step.generation, Begun: 1}, nil)
		require.NoError(t, err)
		require.Equal(t, step.changed, changed)
		require.Equal(t, step.grown, connector.current.Load().Grown)
	}
}

// cannedSession answers the reading of the catalog with a document.
type cannedSession string

func (s cannedSession) Query(context.Context, string, ...string) ([][]string, error) {
	return [][]string{{"catalog", "fitness", string(s)}}, nil
}

func (cannedSession) ParameterStatus(name string) string {
	return map[string]string{"client_encoding": "UTF8", "server_encoding": "UTF8", "search_path": "public"}[name]
}

// So doesn't an older reading of the catalog, while a newer registry counts
// whatever was read with it.
func TestOlderCatalogIsIgnored(t *testing.T) {
	connector, err := Wrap(&fake{})
	require.NoError(t, err)
	tables := []gate.Table{{Table: rewrite.Table{Schema: "public", Name: "orders", TokenColumn: "last_token", Mode: rewrite.Strict}}}
	at := func(begun uint64, epoch bool) *reach.Catalog {
		found, err := reach.Read(t.Context(), cannedSession(fmt.Sprintf(`{"Epoch": %t}`, epoch)), gate.ReachTables(tables))
		require.NoError(t, err)
		found.Stamp = string(rune('a' + begun))
		return found
	}
	for i, step := range []struct {
		begun      uint64
		generation int64
		found      *reach.Catalog
		changed    bool
		stamp      string
		last       int64
	}{
		{2, 1, at(2, false), true, "c", 1},
		{1, 1, at(1, true), false, "c", 1},
		{3, 1, at(3, false), false, "d", 1},
		{3, 2, nil, false, "d", 2},
		{4, 1, at(4, true), false, "d", 2},
		{4, 2, at(4, true), true, "e", 2},
		{3, 3, at(3, false), true, "d", 3},
	} {
		changed, err := connector.protect(tables, &gate.Reading{Generation: step.generation, Begun: step.begun}, step.found)
		require.NoError(t, err)
		last := connector.current.Load().Reading()
		require.Equal(t, []any{step.changed, step.stamp, step.last}, []any{changed, last.Stamp, last.Generation}, i)
	}
}

// Where a name may stand for an enforced table and for one that is only
// reported, a stale write is told.
func TestStaleUnderAnAmbiguousName(t *testing.T) {
	for name, test := range map[string]struct {
		level Level
		stale bool
	}{"one enforced": {Enforce, true}, "both reported": {Report, false}} {
		t.Run(name, func(t *testing.T) {
			f := &fake{rows: [][]sqldriver.Value{{int64(9)}}}
			connector, err := Wrap(f, Protect("public.orders", rewrite.Strict), Protect("app.orders", rewrite.Strict),
				WithLevel(Report, "public.orders"), WithLevel(test.level, "app.orders"))
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			_, err = db.ExecContext(tokenctx.With(t.Context(), 7), guarded, "paid", tokenctx.Arg, 17)
			if test.stale {
				require.ErrorIs(t, err, ErrStale)
			} else {
				require.NoError(t, err)
			}
			const untold = `UPDATE orders SET status = $1, last_token = $2 FROM notes n WHERE n.id = $3 AND orders.last_token < $2`
			_, err = db.ExecContext(tokenctx.With(t.Context(), 7), untold, "paid", tokenctx.Arg, 17)
			if test.stale {
				require.ErrorIs(t, err, ErrUndetermined)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
