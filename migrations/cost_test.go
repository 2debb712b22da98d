package migrations_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// processorTime is the time that the connection's server process has run on a
// processor, in nanoseconds: other work of the machine doesn't count.
// Where the system doesn't tell, it is the time of day.
func processorTime(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	return get[int64](t, conn, `SELECT coalesce(nullif(split_part(pg_read_file('/proc/self/schedstat', 0, 100, true), ' ', 1), '')::bigint,
		(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)`)
}

// What it costs to register a table and to put up its wall, tombstones and seal
// doesn't depend on how many tables have them already, and the doctor takes
// about the same for each.
func TestCostOfManyTables(t *testing.T) {
	const few, many, batch, batches = 50, 400, 10, 4
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn,
		fmt.Sprintf(`CREATE SCHEMA app; DO $$ BEGIN FOR i IN 1..%d LOOP EXECUTE format('CREATE TABLE app.t%%s (id int PRIMARY KEY)', i); END LOOP; END $$`,
			many))
	// cost is the processor time for each of the tables from one to another
	cost := func(from, to int, each string) float64 {
		began := processorTime(t, conn)
		exec(t, conn,
			fmt.Sprintf(`DO $$ DECLARE t regclass; BEGIN FOR i IN %d..%d LOOP t := format('app.t%%s', i)::regclass; PERFORM %s; END LOOP; END $$`,
				from, to, each))
		return float64(processorTime(t, conn)-began) / float64(to-from+1)
	}
	// least is that of the best of the batches before a table: a busy machine's caches make some dear
	least := func(last int, each string) float64 {
		best := math.Inf(1)
		for i := range batches {
			best = min(best, cost(last-(i+1)*batch+1, last-i*batch, each))
		}
		return best
	}
	doctor := func(tables int) float64 {
		best := math.Inf(1)
		for range 2 {
			began := processorTime(t, conn)
			exec(t, conn, "SELECT fencing.doctor()")
			best = min(best, float64(processorTime(t, conn)-began)/float64(tables))
		}
		return best
	}
	steps := []string{
		`fencing.register(t, 'lease')`, `fencing.wall(t)`, `fencing.wall(t, 'enforce')`, `fencing.tombstones(t)`, `fencing.seal(t, 'L')`,
	}
	first := make([]float64, len(steps))
	for i, each := range steps {
		cost(1, few-batch*batches, each)
		first[i] = least(few, each)
	}
	firstDoctor := doctor(few)
	for i, each := range steps {
		if i < 2 {
			cost(few+1, many-batch*batches, each)
		}
		last := least(many, each)
		t.Logf("%s: %.2f ms, then %.2f ms", each, first[i]/1e6, last/1e6)
		require.Less(t, last, 2.5*first[i], each)
	}
	lastDoctor := doctor(many)
	t.Logf("doctor: %.2f ms, then %.2f ms for each table", firstDoctor/1e6, lastDoctor/1e6)
	require.Less(t, lastDoctor, 2.5*firstDoctor)
}

// What the doctor and register cost for each partition doesn't depend on how many
// there are, whether they were registered as tables of their own before or not.
func TestCostOfManyPartitions(t *testing.T) {
	const few, many = 50, 200
	for name, tt := range map[string]struct{ each, before, after string }{
		"attached when they were registered": {each: "SELECT fencing.register('part%d', 'lease'), fencing.wall('part%[1]d')", after: "SELECT fencing.register('root', 'lease')"},
		"made as partitions":                 {before: "SELECT fencing.register('root', 'lease')", after: "SELECT fencing.wall('root')"},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(parts int) (broken, register, again, whole float64) {
				conn := open(t, localpg.Database(t, installed))
				measure := func(sql string) float64 {
					began := processorTime(t, conn)
					exec(t, conn, sql)
					return float64(processorTime(t, conn)-began) / float64(parts)
				}
				exec(t, conn, "CREATE TABLE root (id int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id)")
				for i := range parts {
					exec(t, conn, fmt.Sprintf("CREATE TABLE part%d (id int, last_token bigint NOT NULL DEFAULT 0)", i))
					if tt.each != "" {
						exec(t, conn, fmt.Sprintf(tt.each, i))
					}
					exec(t, conn, fmt.Sprintf("ALTER TABLE root ATTACH PARTITION part%d FOR VALUES IN (%[1]d)", i))
				}
				if tt.before != "" {
					exec(t, conn, tt.before)
				}
				return measure("SELECT fencing.doctor()"), measure(tt.after), measure("SELECT fencing.register('root', 'lease')"), measure("SELECT fencing.doctor()")
			}
			names := []string{"doctor before", tt.after, "register again", "doctor after"}
			most := []float64{1.5, 2.5, 2.5, 1.5} // the doctor's cost without any partition makes few of them dear
			var first, last [4]float64
			first[0], first[1], first[2], first[3] = cost(few)
			last[0], last[1], last[2], last[3] = cost(many)
			for i := range names {
				t.Logf("%s: %.2f ms for each of %d, %.2f ms for each of %d", names[i], first[i]/1e6, few, last[i]/1e6, many)
			}
			for i := range names {
				require.Less(t, last[i], most[i]*first[i], names[i])
			}
		})
	}
}
