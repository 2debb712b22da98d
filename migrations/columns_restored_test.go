package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// requireSafe has the doctor tell, before and after its remedies, of what makes the
// stale write land, or the write refused.
func requireSafe(t *testing.T, conn *pgx.Conn, stale string) {
	t.Helper()
	exec(t, conn, "BEGIN; SAVEPOINT stale; SAVEPOINT s")
	defer exec(t, conn, "ROLLBACK")
	for range 2 {
		if len(findErrors(t, conn)) == 0 {
			requireNoStale(t, conn, stale)
		}
		followRemedies(t, conn, false)
	}
}

// What keeps the columns goes with a dump: what was told of another column before
// is told where the dump is restored.
func TestAnotherColumnRestored(t *testing.T) {
	t.Parallel()
	d, ok := newDumper(t)
	if !ok {
		return
	}
	require.NoError(t, d.srv.CreateDatabase(t.Context(), "columns", ""))
	require.NoError(t, migrations.Up(t.Context(), d.srv.DSN("columns")))
	require.NoError(t, runSQL(t.Context(), d.srv.DSN("columns"), columnsTables))
	for _, tt := range []struct{ name, damage, table, stale string }{
		{"renamed", tokensRenamed, "f", staleUpdate},
		{"dropped", tokensDropped, "f", staleUpdate},
		{"key", keyExchanged, "f", staleInsert},
		{"seal", sealExchanged, "h", otherLease},
		{"off", `SELECT fencing.wall('f', 'off'); ` + tokensRenamed, "f", staleUpdate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := *d
			d.from = tt.name
			require.NoError(t, d.srv.CreateDatabase(t.Context(), tt.name, "columns"))
			damaged := open(t, d.srv.DSN(tt.name))
			exec(t, damaged, tt.damage)
			want := findErrors(t, damaged)
			require.NotEmpty(t, want)

			conn := d.create(t, tt.name+"_all")
			out, err := d.restore(t, tt.name+"_all")
			require.NoError(t, err, out)
			require.Equal(t, want, findErrors(t, conn))
			requireSafe(t, conn, tt.stale)

			// the table alone, where it was registered before
			require.NoError(t, d.srv.CreateDatabase(t.Context(), tt.name+"_one", "columns"))
			conn = open(t, d.srv.DSN(tt.name+"_one"))
			exec(t, conn, "DROP TABLE "+tt.table)
			out, err = d.restore(t, tt.name+"_one", "--table="+tt.table)
			require.NoError(t, err, out)
			require.NotEmpty(t, findErrors(t, conn))
			requireSafe(t, conn, tt.stale)
		})
	}
}

// Another table that comes in the place of one whose columns are others than before
// is protected no less, or not at all until somebody says what its rows have.
func TestAnotherColumnInThePlaceOfATable(t *testing.T) {
	t.Parallel()
	conn := open(t, localpg.Database(t, prepared(columnsTables)))
	const (
		made    = `CREATE TABLE f2 (LIKE f INCLUDING ALL); INSERT INTO f2 SELECT * FROM f; `
		swapped = made + `ALTER TABLE f RENAME TO f0; ALTER TABLE f2 RENAME TO f; `
		parted  = `ALTER TABLE f RENAME TO f0; CREATE TABLE f (id int, k int, v text, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, k)) PARTITION BY RANGE (id); `
	)
	for _, tt := range []struct{ name, sql, stale string }{
		{"tokens renamed, and swapped", tokensRenamed + `CREATE TABLE f2 (LIKE f INCLUDING ALL); INSERT INTO f2 SELECT * FROM f; ALTER TABLE f RENAME TO f0; ALTER TABLE f2 RENAME TO f; `, staleUpdate},
		{"tokens dropped, and swapped", tokensDropped + swapped, staleUpdate},
		{"tokens dropped, and made anew", tokensDropped + made + `DROP TABLE f; ALTER TABLE f2 RENAME TO f`, staleUpdate},
		{"key exchanged, and swapped", keyExchanged + swapped, staleInsert},
		{"swapped, and tokens dropped", swapped + `SELECT fencing.register('f', 'lease'); ` + tokensDropped, staleUpdate},
		{"swapped, and tokens renamed", swapped + `SELECT fencing.register('f', 'lease'); ` + tokensRenamed, staleUpdate},
		{"swapped, and key exchanged", swapped + `SELECT fencing.register('f', 'lease'); ` + keyExchanged, staleInsert},
		{"tokens dropped, and made a partition", `SELECT fencing.tombstones('f', false); ` + tokensDropped + parted + `ALTER TABLE f ATTACH PARTITION f0 DEFAULT`, staleUpdate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exec(t, conn, "BEGIN")
			defer exec(t, conn, "ROLLBACK")
			exec(t, conn, tt.sql)
			exec(t, conn, "SAVEPOINT stale; SAVEPOINT s")
			for range 2 {
				if len(findErrors(t, conn)) == 0 {
					requireNoStale(t, conn, tt.stale)
				}
				followRemedies(t, conn, false)
				_ = runRemedy(t.Context(), conn, "SELECT fencing.register('f', 'lease')")
				_ = runRemedy(t.Context(), conn, "SELECT fencing.wall('f')")
			}
		})
	}
}

// A partition or a child that leaves a table whose tokens are elsewhere can't be
// registered as what it was part of before these are mended.
func TestAnotherColumnOfADetachedPartition(t *testing.T) {
	t.Parallel()
	conn := open(t, localpg.Database(t, prepared(`CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT;
		INSERT INTO p VALUES (1, 'new'); SELECT fencing.register('p', 'lease'), fencing.wall('p', 'attested')`)))
	for name, damage := range map[string]string{
		"renamed": `ALTER TABLE p RENAME last_token TO lt; ALTER TABLE p ADD last_token bigint NOT NULL DEFAULT 0; `,
		"dropped": `ALTER TABLE p DROP last_token CASCADE; ALTER TABLE p ADD last_token bigint NOT NULL DEFAULT 0; `,
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, conn, "BEGIN; "+damage+`ALTER TABLE p DETACH PARTITION p1; SAVEPOINT s`)
			defer exec(t, conn, "ROLLBACK")
			_, err := conn.Exec(t.Context(), "SELECT fencing.register('p1', 'lease')")
			requireHint(t, err, "55000", "public.p: ", "confirm_columns")
		})
	}
}

// Up makes the function again that the triggers run. If the schema is from before there
// were such triggers, Up puts them up where the wall goes by the column that has
// the name, and else leaves it to somebody to say.
func TestUpLeavesAnotherColumn(t *testing.T) {
	t.Parallel()
	const (
		dropFunction = "DROP FUNCTION fencing.kept_columns() CASCADE; "
		fromBefore   = `DO $x$ BEGIN EXECUTE regexp_replace(pg_get_functiondef('fencing.doctor_manifest'::regproc), '\n[^\n]*''kept_columns\(\)''[^\n]*', ''); END $x$; `
		keptTables   = `SELECT coalesce(array_agg(tgrelid::regclass::text ORDER BY tgrelid), '{}') FROM pg_trigger WHERE tgname = '~fencing_kept_token'`
	)
	for name, tt := range map[string]struct {
		sql  string
		kept []string
	}{
		"dropped":                     {tokensRenamed + dropFunction, []string{}},
		"from before":                 {tokensRenamed + fromBefore + dropFunction, []string{"g", "h", "i"}},
		"dropped column, from before": {tokensDropped + fromBefore + dropFunction, []string{"g", "h", "i"}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, prepared(columnsTables))
			conn := open(t, dsn)
			exec(t, conn, tt.sql)
			require.NoError(t, migrations.Up(t.Context(), dsn))
			require.Equal(t, tt.kept, get[[]string](t, conn, keptTables))
			_, err := conn.Exec(t.Context(), "SELECT fencing.wall('f')")
			requireHint(t, err, "55000", "~fencing_kept_token", "confirm_columns")
			require.Contains(t, codes(diagnose(t, dsn), "error"), "D202 trigger-missing")
			if len(tt.kept) > 0 {
				exec(t, conn, "SELECT fencing.wall('g'), fencing.wall('h'), fencing.tombstones('g'), fencing.seal('h', by_column => 'r')")
			}
		})
	}
}
