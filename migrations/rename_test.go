package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// What the registry says after a registered table was renamed, dropped or
// replaced, and then registered again. Each step is SQL; the last may be
// refused.
func TestRegisterAfterRename(t *testing.T) {
	const a, b = "SELECT fencing.register('a', 'strict')", "SELECT fencing.register('b', 'lease')"
	row := func(relid, table, mode string) entry {
		return entry{relid, "public", table, "last_token", mode, "-", "fencing.write_epoch"}
	}
	const three = "CREATE TABLE c (id int); SELECT fencing.register('c', 'strict', resource => 'c');"
	for _, tt := range []struct {
		name  string
		steps []string
		want  []entry
		err   []string // words of the refusal of the last step
	}{
		{name: "renamed: protected under both",
			steps: []string{a, "ALTER TABLE a RENAME TO x"},
			want:  []entry{row("x", "a", "strict")}},
		{name: "renamed and registered",
			steps: []string{a, "ALTER TABLE a RENAME TO x", "SELECT fencing.register('x', 'lease')"},
			want:  []entry{row("x", "x", "lease")}},
		{name: "made again and registered",
			steps: []string{a, "DROP TABLE a; CREATE TABLE a (id int)", "SELECT fencing.register('a', 'lease')"},
			want:  []entry{row("a", "a", "lease")}},
		{name: "made again and unregistered",
			steps: []string{a, "DROP TABLE a; CREATE TABLE a (id int)", "SELECT fencing.unregister('a')"}},
		{name: "replaced, the new one registered: the old one keeps its row",
			steps: []string{a, "ALTER TABLE a RENAME TO x; CREATE TABLE a (id int)", "SELECT fencing.register('a', 'lease')"},
			want:  []entry{row("a", "a", "lease"), row("x", "x", "strict")}},
		{name: "replaced, the new one unregistered: the old one keeps its row",
			steps: []string{a, "ALTER TABLE a RENAME TO x; CREATE TABLE a (id int)", "SELECT fencing.unregister('a')"},
			want:  []entry{row("x", "x", "strict")}},
		{name: "replaced, the old one registered: the new one would fall out",
			steps: []string{a, "ALTER TABLE a RENAME TO x; CREATE TABLE a (id int)", "SELECT fencing.register('x', 'strict')"},
			want:  []entry{row("x", "a", "strict")},
			err:   []string{"another table has that name", "fencing.unregister('public.a')"}},
		{name: "replaced, the old one unregistered: the new one would fall out",
			steps: []string{a, "ALTER TABLE a RENAME TO x; CREATE TABLE a (id int)", "SELECT fencing.unregister('x')"},
			want:  []entry{row("x", "a", "strict")},
			err:   []string{"another table has that name"}},
		{name: "swapped",
			steps: []string{a, b, "ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b", b},
			want:  []entry{row("a", "a", "lease"), row("b", "b", "lease")}},
		{name: "moved round",
			steps: []string{a, b, three + "ALTER TABLE a RENAME TO x; ALTER TABLE c RENAME TO a; ALTER TABLE b RENAME TO c; ALTER TABLE x RENAME TO b", a},
			want:  []entry{row("a", "a", "strict"), row("b", "b", "strict"), row("c", "c", "lease")}},
		{name: "another registration leaves a stale name alone",
			steps: []string{a, "ALTER TABLE a RENAME TO x", b},
			want:  []entry{row("x", "a", "strict"), row("b", "b", "lease")}},
		{name: "moved to another schema",
			steps: []string{a, "CREATE SCHEMA s; ALTER TABLE a SET SCHEMA s", "SELECT fencing.register('s.a', 'strict')"},
			want:  []entry{{"s.a", "s", "a", "last_token", "strict", "-", "fencing.write_epoch"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE TABLE a (id int); CREATE TABLE b (id int)")
			last := len(tt.steps) - 1
			for _, sql := range tt.steps[:last] {
				exec(t, conn, sql)
			}
			_, err := conn.Exec(t.Context(), tt.steps[last])
			if tt.err == nil {
				require.NoError(t, err)
			} else {
				requireHint(t, err, "55000", tt.err...)
			}
			require.ElementsMatch(t, tt.want, registry(t, conn))
		})
	}
}

// A table that is gone can't be named any more.
func TestUnregisterDropped(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE a (id int); SELECT fencing.register('a', 'lease'); DROP TABLE a")
	require.Len(t, registry(t, conn), 1, "the name is still protected")
	requireRefused(t, migrations.Unregister(t.Context(), dsn, "a"), "42P01", "unregister a", "delete its row from fencing.registry")
}
