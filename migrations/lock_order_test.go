package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

const partitioned = `CREATE TABLE p (id int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
	CREATE TABLE p2 PARTITION OF p DEFAULT PARTITION BY LIST (id); CREATE TABLE p21 PARTITION OF p2 DEFAULT;
	SELECT fencing.register('p', 'lease'); SELECT fencing.wall('p')`

// Who locks a partition before its partitioned table is in a deadlock with ATTACH
// and DETACH, which begin at the other end.
func TestPartitionsAreLockedAfterTheirTable(t *testing.T) {
	for name, sql := range map[string]string{
		"doctor": "SELECT * FROM fencing.doctor(scan => true)", "register": "SELECT fencing.register('p', 'lease')", "wall": "SELECT fencing.wall('p')",
		"register anew": "SELECT fencing.unregister('p'); SELECT fencing.register('p', 'strict')", "tombstones": "SELECT fencing.tombstones('p', false)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, partitioned)
			exec(t, conn, "BEGIN; "+sql)
			require.Empty(t, get[[]string](t, conn, `SELECT coalesce(array_agg(l.relation::regclass || ' ' || l.mode), '{}') FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relispartition
				WHERE l.pid = pg_backend_pid() AND l.granted
				AND NOT EXISTS (SELECT FROM pg_locks r WHERE r.pid = l.pid AND r.granted AND r.relation = pg_partition_root(l.relation))`))
		})
	}
}

// A DETACH that has its partitioned table and waits for the partition isn't made
// the victim of a deadlock by who has asked the doctor, or registered the table
// again, and then reads it.
func TestDetachBesideTheDoctor(t *testing.T) {
	for name, sql := range map[string]string{"doctor": "SELECT * FROM fencing.doctor()", "register": "SELECT fencing.register('p', 'lease')"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			watcher, conn, ddl := open(t, dsn), open(t, dsn), open(t, dsn)
			exec(t, conn, partitioned)
			exec(t, conn, "BEGIN; "+sql)
			detached := make(chan error, 1)
			go func() {
				_, err := ddl.Exec(t.Context(), "ALTER TABLE p DETACH PARTITION p1")
				detached <- err
			}()
			pid := ddl.PgConn().PID()
			// it has ended, or waits for a lock that conn has
			fencetest.Eventually(t, func() bool {
				return get[bool](t, watcher, `SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted) OR NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = 'p1'::regclass)`, pid)
			})
			_, err := conn.Exec(t.Context(), "SELECT * FROM p; COMMIT")
			require.NoError(t, err)
			require.NoError(t, fencetest.Receive(t, detached))
		})
	}
}
