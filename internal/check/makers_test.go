package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A text says whether it may use what changes the catalog.
func TestMakes(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Strict})
	require.NoError(t, err)
	name := func(n string) []Name { return []Name{{"app", n}} }
	p, err = p.WithClosure(Closure{Makers: Makers{Functions: name("mk"),
		Relations: []Maker{{Name{"app", "mk_view"}, []string{"READ"}}, {Name{"app", "fires"}, []string{"DELETE", "INSERT"}}, {Name{"app", "Order Lines"}, []string{"UPDATE"}}}}})
	require.NoError(t, err)
	for sql, want := range map[string]bool{
		`SELECT mk()`: true, `SELECT app.mk(1)`: true, `SELECT other.mk()`: false, `SELECT "mk"()`: true, `SELECT U&"m\006b"()`: true, `SELECT mk FROM t`: false, `SELECT t.mk FROM t`: true, `SELECT (t).mk FROM t`: true, `SELECT 'mk()'`: false,
		`SELECT 1 FROM t WHERE id = ANY (SELECT mk())`: true, `WITH x AS (SELECT mk()) SELECT * FROM x`: true, `CALL mk()`: true, `EXPLAIN ANALYZE SELECT mk()`: true, `DO $$ BEGIN PERFORM mk(); END $$`: true, `DECLARE c CURSOR FOR SELECT mk()`: true,
		`SELECT * FROM mk_view`: true, `SELECT * FROM app.mk_view v JOIN t USING (id)`: true, `SELECT * FROM other.mk_view`: false, `INSERT INTO t SELECT * FROM mk_view`: true,
		`SELECT * FROM fires`: false, `INSERT INTO fires VALUES (1)`: true, `UPDATE fires SET i = 1`: false, `DELETE FROM fires`: true, `MERGE INTO fires USING t ON true WHEN MATCHED THEN DELETE`: true, `COPY fires FROM STDIN`: true, `TRUNCATE fires`: false,
		`WITH d AS (DELETE FROM fires RETURNING 1) SELECT * FROM d`: true, `INSERT INTO "Order Lines" VALUES (1)`: false, `INSERT INTO "Order Lines" VALUES (1) ON CONFLICT (i) DO UPDATE SET i = 2`: true, `UPDATE "Order Lines" SET i = 1`: true,
		`SELECT 1`: false, `BEGIN`: false, `INSERT INTO t VALUES (1)`: false, `SELECT mk( syntax`: true,
		`SELECT 1 IN (` + strings.Repeat("1,", maxMaking) + `2)`: false, `SELECT mk() IN (` + strings.Repeat("1,", maxMaking) + `2)`: true,
	} {
		plan := p.Plan(sql)
		require.Equal(t, want, plan.Makes, sql)
		require.False(t, want && (plan.Direct() || !plan.ChangesCatalog), sql)
	}
	for _, sql := range []string{`SELECT mk(); UPDATE v SET i = 1`, `SELECT mk(); SELECT f()`, `DELETE FROM fires; CALL p()`, `SELECT mk(); SELECT id FROM t`, `SELECT mk(); SELECT 1 + 1`, `SELECT mk(); SELECT 1::pair`, `SELECT mk(); SELECT 1 INTO made`, `BEGIN; SELECT mk(); WITH u AS (UPDATE v SET i = 1 RETURNING 1) SELECT * FROM u; COMMIT`} {
		require.ErrorContains(t, p.Plan(sql).Refusal(), "stands behind a statement that calls or fires", sql)
	}
	for _, sql := range []string{`BEGIN; SELECT mk(); COMMIT`, `UPDATE v SET i = 1; SELECT mk()`, `SELECT mk(); SELECT 1, 'x'`, `SELECT f(); UPDATE v SET i = 1`, `SELECT mk(); SET work_mem = '8MB'`} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
}

// What belongs to no relation may be used by any statement that works out values, and
// an event trigger by any change of structure.
func TestMakesWithoutAName(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Strict})
	require.NoError(t, err)
	unseen, err := p.WithClosure(Closure{Makers: Makers{Unseen: true}})
	require.NoError(t, err)
	events, err := p.WithClosure(Closure{Makers: Makers{EventTriggers: true}})
	require.NoError(t, err)
	for sql, want := range map[string]struct{ unseen, events bool }{
		`SELECT 1`: {true, false}, `INSERT INTO t VALUES (1)`: {true, false}, `SELECT 1 INTO t`: {true, true}, `CREATE TABLE t (i int)`: {true, true}, ` /* x */ DROP VIEW v`: {true, true}, `BEGIN`: {false, false}, `COMMIT`: {false, false}, `SET work_mem = '8MB'`: {false, false},
		`VACUUM t`: {true, false}, `CREATE TEMP TABLE t AS SELECT 1`: {true, true}, `COMMENT ON TABLE t IS 'x'`: {true, true}, `DO $$ BEGIN CREATE TABLE t (i int); END $$`: {true, true},
	} {
		require.Equal(t, want.unseen, unseen.Plan(sql).Makes, sql)
		require.Equal(t, want.events, events.Plan(sql).Makes, sql)
	}
}
