package migrations_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

// besideSchema has tables with all that can be registered, a partition and a
// child that a wall doesn't cover yet, and a table that isn't registered.
const besideSchema = `CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE new (id int);
	CREATE TABLE p (id int PRIMARY KEY) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE c (n int); CREATE TABLE c1 () INHERITS (c);
	SELECT fencing.register(x, 'lease'), fencing.wall(x), fencing.seal(x, 'L') FROM unnest('{t,p,c}'::regclass[]) x; SELECT fencing.tombstones('t'), fencing.tombstones('p');
	CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2); CREATE TABLE c2 () INHERITS (c);`

// besideCalls are calls of the functions for table t: those that change nothing,
// and others.
var besideCalls = map[string]string{
	"register again": "SELECT fencing.register('t', 'lease')", "register anew": "SELECT fencing.register('t', 'lease', resource => 'r')", "unregister": "SELECT fencing.unregister('t')",
	"wall again": "SELECT fencing.wall('t')", "wall attested": "SELECT fencing.wall('t', 'attested')", "wall off": "SELECT fencing.wall('t', 'off')",
	"seal again": "SELECT fencing.seal('t', 'L')", "seal anew": "SELECT fencing.seal('t', 'M')", "unseal": "SELECT fencing.unseal('t')",
	"tombstones again": "SELECT fencing.tombstones('t')", "tombstones off": "SELECT fencing.tombstones('t', false)",
	"driver_level again": "SELECT fencing.driver_level('t', 'enforce')", "driver_level": "SELECT fencing.driver_level('t', 'off')",
	"driver_rewrite": "SELECT fencing.driver_rewrite('t', true)", "register another": "SELECT fencing.register('new', 'strict')",
}

// beside runs a call in a transaction of its own while another transaction has
// changed something, which then ends in a call, too.
func beside(t *testing.T, watcher, changer, caller *pgx.Conn, change, call, end string) {
	t.Helper()
	name := fmt.Sprintf("%s beside %s; %s", call, change, end)
	exec(t, changer, "BEGIN; "+change)
	called := make(chan error, 1)
	go func() {
		_, err := caller.Exec(t.Context(), "BEGIN; "+call+"; ROLLBACK")
		called <- err
	}()
	fencetest.Eventually(t, func() bool { return len(called) > 0 || blocked(t, watcher, caller) }, name)
	_, err := changer.Exec(t.Context(), end)
	require.NoError(t, err, name)
	exec(t, changer, "ROLLBACK")
	require.NoError(t, fencetest.Receive(t, called, name), name)
}

// Who has changed a table, and then calls a function for it in the same
// transaction, is in no deadlock with who calls one meanwhile.
func TestCallsBesideChanges(t *testing.T) {
	dsn := localpg.Database(t, installed)
	watcher, changer, caller := open(t, dsn), open(t, dsn), open(t, dsn)
	exec(t, watcher, besideSchema)
	changes := []string{"ALTER TABLE t ADD x int", "CREATE INDEX ON t (id)", "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE", "ALTER TABLE t ADD CHECK (id > 0)", "TABLE t", "LOCK TABLE t IN ROW EXCLUSIVE MODE"}
	for i, call := range slices.Sorted(maps.Keys(besideCalls)) {
		for j, end := range []string{"register again", "register anew", "unregister", "wall off", "seal anew", "unseal", "tombstones off", "driver_level"} {
			beside(t, watcher, changer, caller, changes[(i+j)%len(changes)], besideCalls[call], besideCalls[end])
		}
	}
	for _, tt := range []struct{ change, call, end string }{
		{"ALTER TABLE p DETACH PARTITION p1", "SELECT fencing.wall('p')", "SELECT fencing.register('p1', 'lease')"},
		{"ALTER TABLE p DETACH PARTITION p1", "SELECT fencing.wall('p', 'off')", "SELECT fencing.register('p1', 'lease')"},
		{"CREATE TABLE p3 PARTITION OF p DEFAULT", "SELECT fencing.wall('p')", "SELECT fencing.wall('p')"},
		{"ALTER TABLE p2 ADD CHECK (id = 2)", "SELECT fencing.wall('p')", "SELECT fencing.wall('p')"},
		{"ALTER TABLE p2 ADD CHECK (id = 2)", "SELECT fencing.unregister('p')", "SELECT fencing.register('p', 'lease')"},
		{"ALTER TABLE p1 ADD CHECK (id = 1)", "SELECT fencing.seal('p', 'M')", "SELECT fencing.tombstones('p', false)"},
		{"ALTER TABLE c2 ADD x int", "SELECT fencing.wall('c')", "SELECT fencing.wall('c')"},
		{"ALTER TABLE c1 ADD x int", "SELECT fencing.wall('c', 'off')", "SELECT fencing.register('c', 'lease', resource => 'r')"},
		{"ALTER TABLE c1 NO INHERIT c", "SELECT fencing.unseal('c')", "SELECT fencing.wall('c')"},
		{"ALTER TABLE new ADD x int", "SELECT fencing.register('new', 'lease')", "SELECT fencing.register('new', 'lease')"},
		{"ALTER TABLE new ADD last_token bigint NOT NULL DEFAULT 0", "SELECT fencing.register('new', 'lease')", "SELECT fencing.register('new', 'lease')"},
	} {
		beside(t, watcher, changer, caller, tt.change, tt.call, tt.end)
	}
}

// What is right already is left so without a lock of the registry, for which
// others would wait to the end of the transaction.
func TestCallsThatChangeNothingLockNothing(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn, other := open(t, dsn), open(t, dsn)
	exec(t, conn, besideSchema+"SELECT fencing.wall('p'), fencing.wall('c')")
	exec(t, other, "BEGIN; LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE")
	for name, sql := range besideCalls {
		if strings.HasSuffix(name, " again") {
			for _, table := range []string{"t", "p"} {
				exec(t, conn, "SET lock_timeout = '1ms'; "+strings.Replace(sql, "'t'", "'"+table+"'", 1))
			}
		}
	}
	exec(t, conn, "SELECT fencing.unregister('new')")
	exec(t, other, "ROLLBACK; BEGIN; LOCK TABLE t")
	// these don't look at the table itself
	exec(t, conn, "SELECT fencing.register('t', 'lease'), fencing.driver_level('t', 'enforce'), fencing.driver_rewrite('t', false), fencing.unregister('new')")
}

// Two transactions that can't both go on are told what to do.
func TestDeadlockSaysWhatToDo(t *testing.T) {
	dsn := localpg.Database(t, installed)
	watcher := open(t, dsn)
	exec(t, watcher, besideSchema)
	for name, call := range besideCalls {
		if strings.HasSuffix(name, "again") || strings.HasPrefix(name, "driver") || name == "register another" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			first, second := open(t, with(dsn, "deadlock_timeout", "10ms")), open(t, with(dsn, "deadlock_timeout", "10ms"))
			exec(t, first, "BEGIN; ALTER TABLE t ADD x int")
			exec(t, second, "BEGIN; SELECT fencing.driver_level('c', 'off')")
			called := make(chan error, 1)
			go func() {
				_, err := second.Exec(t.Context(), call+"; ROLLBACK")
				called <- err
			}()
			fencetest.Eventually(t, func() bool { return blocked(t, watcher, second) })
			_, err := first.Exec(t.Context(), "SELECT fencing.driver_level('p', 'off')")
			exec(t, first, "ROLLBACK")
			if other := fencetest.Receive(t, called); err == nil {
				err = other
			}
			requireHint(t, err, "40P01", "have waited for each other", "Run the transaction again", "LOCK TABLE")
			exec(t, second, "ROLLBACK")
		})
	}
}
