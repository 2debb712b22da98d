package reach

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// chainSchema has 300 tables, each of which references the one before it.
const chainSchema = `CREATE TABLE t0 (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0);
DO $$ BEGIN FOR i IN 1..300 LOOP
	EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY, p bigint REFERENCES t%s ON DELETE CASCADE ON UPDATE CASCADE, last_token bigint NOT NULL DEFAULT 0)', i, i-1);
END LOOP; END $$;`

// partitionsSchema has a table of 200 partitions, and 300 others with triggers
// and views.
const partitionsSchema = `CREATE TABLE p (id bigint, day int, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.x := 1; RETURN NEW; END';
DO $$ BEGIN FOR i IN 1..200 LOOP
	EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES FROM (%s) TO (%s)', i, i, i + 1);
END LOOP;
FOR i IN 1..300 LOOP
	EXECUTE format('CREATE TABLE o%s (id bigint PRIMARY KEY, x int)', i);
	EXECUTE format('CREATE TRIGGER t BEFORE UPDATE ON o%s FOR EACH ROW EXECUTE FUNCTION touch()', i);
	EXECUTE format('CREATE VIEW v%s AS SELECT * FROM o%s', i, i);
END LOOP; END $$;`

// manyTables are n tables t0, t1 and so on.
func manyTables(n int) (tables []Table) {
	for i := range n {
		tables = append(tables, oneTable(fmt.Sprintf("t%d", i))...)
	}
	return tables
}

func oneTable(name string) []Table {
	return []Table{{Schema: "public", Name: name, TokenColumn: "last_token", IsChosen: true}}
}

// explained is what EXPLAIN says of a query.
type explained struct {
	Plan struct {
		Cost    float64 `json:"Total Cost"`
		Buffers int     `json:"Shared Hit Blocks"`
		Read    int     `json:"Shared Read Blocks"`
	}
	JIT json.RawMessage
}

// explain runs the reading of the catalog, with PostgreSQL's default of jit.
func explain(t *testing.T, conn testSession, tables []Table) explained {
	t.Helper()
	names, err := EncodeNames(tables)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SET jit = on`)
	require.NoError(t, err)
	var plans []explained
	require.NoError(t, conn.Conn.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+readingQuery, pgx.QueryExecModeExec, names).Scan(&plans))
	require.Len(t, plans, 1)
	plans[0].Plan.Buffers += plans[0].Plan.Read
	return plans[0]
}

// The planner finds the reading cheap, whatever it guesses of the catalogs: the
// JIT compiler would take seconds.
func TestReadingIsPlannedCheaply(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		tables []Table
	}{
		"one table":                   {`CREATE TABLE p (id bigint PRIMARY KEY, last_token bigint NOT NULL)`, oneTable("p")},
		"one partition":               {`CREATE TABLE p (id bigint, last_token bigint NOT NULL) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)`, oneTable("p")},
		"200 partitions":              {partitionsSchema, oneTable("p")},
		"500 tables, 2,000 functions": {largeSchema, manyTables(100)},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connected(t, c.schema)
			for _, statement := range []string{``, `ANALYZE`} {
				_, err := conn.Exec(t.Context(), statement)
				require.NoError(t, err)
				found := explain(t, conn, c.tables)
				require.Less(t, found.Plan.Cost, 75_000.0, statement) // the compiler begins at 100,000
				require.Empty(t, found.JIT, statement)
			}
		})
	}
}

// What is read grows with the tables that are protected and what leads to them,
// linearly, and hardly with the rest of the database.
func TestReadingGrowsWithWhatIsProtected(t *testing.T) {
	conn := connected(t, chainSchema)
	read := func(n int) float64 { return float64(explain(t, conn, manyTables(n)).Plan.Buffers) }
	read(300) // fills the caches of the connection
	one, ten, hundred, all := read(1), read(10), read(100), read(300)
	require.Less(t, (all-hundred)/200, 1.5*(hundred-ten)/90, "%v", []float64{one, ten, hundred, all})
	require.Less(t, (all-one)/299, 200.0, "pages for each table")

	// the stamp reads all, and is what is left out here
	before := one - stampBuffers(t, conn)
	_, err := conn.Exec(t.Context(), `DO $$ BEGIN FOR i IN 1..300 LOOP
		EXECUTE format('CREATE TABLE other%s (id bigint PRIMARY KEY, p bigint REFERENCES other%s)', i, greatest(i - 1, 1)); END LOOP; END $$`)
	require.NoError(t, err)
	read(1)
	require.Less(t, read(1)-stampBuffers(t, conn), 1.2*before+50)

	// nor has the closure an entry for each pair of a table and what leads to it
	for _, n := range []int{10, 300} {
		found, err := Read(t.Context(), conn, manyTables(n))
		require.NoError(t, err)
		require.Len(t, found.Closure(manyTables(n), nil).Cascades, n-1)
	}
}

func stampBuffers(t *testing.T, conn testSession) float64 {
	t.Helper()
	var plans []explained
	for range 2 {
		require.NoError(t, conn.Conn.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+stampQuery, pgx.QueryExecModeExec).Scan(&plans))
	}
	return float64(plans[0].Plan.Buffers + plans[0].Plan.Read)
}

// One table without a wall is named among those with one.
func TestCascadeNamesTheTableWithoutWall(t *testing.T) {
	tables := manyTables(5)
	for i := range tables {
		tables[i].HasWall = i != 3
	}
	for _, cascade := range readingOf(t, strings.Replace(chainSchema, "300", "4", 1), tables).Closure(tables, nil).Cascades {
		if cascade.Delete {
			require.Equal(t, cascade.Name.Name == "t3", cascade.ChildWall, "%v", cascade)
		}
	}
}

// If all of them have walls, one is named for each resource, whose tokens they ask for.
func TestCascadeNamesEachResource(t *testing.T) {
	tables := manyTables(5)
	for i := range tables {
		tables[i].HasWall, tables[i].Resource = true, []string{"a", "b"}[i%2]
	}
	reached := make(map[string]int)
	for _, cascade := range readingOf(t, strings.Replace(chainSchema, "300", "4", 1), tables).Closure(tables, nil).Cascades {
		if cascade.Delete {
			reached[cascade.Name.Name]++
		}
	}
	require.Equal(t, map[string]int{"t0": 2, "t1": 2, "t2": 2, "t3": 1}, reached)
}

// BenchmarkChain shows what registered tables cost that lead to each other.
func BenchmarkChain(b *testing.B) {
	conn := connected(b, chainSchema)
	for _, n := range []int{1, 10, 100, 300} {
		var found *Catalog
		var err error
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				found, err = Read(b.Context(), conn, manyTables(n))
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("closure/%d", n), func(b *testing.B) {
			for b.Loop() {
				found.Closure(manyTables(n), nil)
			}
		})
	}
}
