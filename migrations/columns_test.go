package migrations_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// The tables of these tests: f and g share the functions of their walls. Key
// (5, 6) of f was deleted, and row (1, 1) written, under token 60.
const (
	columnsTables = `CREATE TABLE f (id int, k int, v text, PRIMARY KEY (id, k)); CREATE TABLE g (LIKE f INCLUDING ALL); CREATE TABLE h (id int PRIMARY KEY, r text NOT NULL, n text NOT NULL, v text); CREATE TABLE i (LIKE h INCLUDING ALL);
		SELECT setval('fencing.write_epoch', 100); SELECT fencing.register(t, 'lease'), fencing.wall(t, 'attested') FROM unnest('{f,g,h,i}'::regclass[]) t; SELECT fencing.tombstones('f'), fencing.tombstones('g'), fencing.seal('h', by_column => 'r'), fencing.seal('i', by_column => 'r');
		INSERT INTO fencing.lease SELECT n, 'h', t, 'infinity' FROM (VALUES ('e', 60), ('l', 50)) x(n, t);
		SET fencing.token = '60'; INSERT INTO f VALUES (1, 1, 'new', 60), (5, 6, 'new', 60); DELETE FROM f WHERE id = 5; INSERT INTO h VALUES (2, 'e', 'l', 'new', 60); RESET fencing.token`

	staleUpdate = `SET LOCAL fencing.token = '50'; UPDATE f SET v = 'stale', last_token = 50`
	staleInsert = `SET LOCAL fencing.token = '50'; INSERT INTO f (k, id, v, last_token) VALUES (5, 6, 'stale', 50)` // of the columns when they were exchanged
	otherLease  = `SET LOCAL fencing.token = '50'; UPDATE h SET v = 'stale', last_token = 50`

	tokensRenamed  = `ALTER TABLE f RENAME last_token TO lt; ALTER TABLE f ADD last_token bigint NOT NULL DEFAULT 0; `
	tokensNullable = `ALTER TABLE f RENAME last_token TO lt; ALTER TABLE f ADD last_token bigint; `
	tokensDropped  = `ALTER TABLE f DROP last_token CASCADE; ALTER TABLE f ADD last_token bigint NOT NULL DEFAULT 0; `
	droppedToNull  = `ALTER TABLE f DROP last_token CASCADE; ALTER TABLE f ADD last_token bigint; `
	keyExchanged   = `ALTER TABLE f RENAME id TO x; ALTER TABLE f RENAME k TO id; ALTER TABLE f RENAME x TO k; `
	sealExchanged  = `ALTER TABLE h RENAME r TO x; ALTER TABLE h RENAME n TO r; ALTER TABLE h RENAME x TO n; `
)

// changeFunction has a trigger's function do nothing.
func changeFunction(table, trigger string) string {
	return `DO $x$ BEGIN EXECUTE (SELECT format('CREATE OR REPLACE FUNCTION %s RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS ''BEGIN RETURN NEW; END''', tgfoid::regprocedure) FROM pg_trigger WHERE tgrelid = '` + table + `'::regclass AND tgname = '` + trigger + `'); END $x$; `
}

// replaceTrigger has one of somebody's own in the place of a trigger.
func replaceTrigger(table, trigger, event string) string {
	return `CREATE FUNCTION lax() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE OR REPLACE TRIGGER "` + trigger + `" ` + event + ` ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION lax(); `
}

// finding is what fencing.doctor says.
type finding struct{ Severity, Code, Object, Problem, Remedy string }

func findErrors(t *testing.T, conn *pgx.Conn) []finding {
	t.Helper()
	return collect[finding](t, conn, "SELECT severity, code, object, problem, remedy FROM fencing.doctor() WHERE severity = 'error'")
}

// runRemedy runs a remedy within the transaction, or leaves all as it is.
func runRemedy(ctx context.Context, conn *pgx.Conn, sql string) error {
	sql = strings.TrimSuffix(strings.TrimPrefix(sql, "BEGIN; "), "; COMMIT")
	if _, err := conn.Exec(ctx, "SAVEPOINT s; "+sql); err != nil {
		_, rollbackErr := conn.Exec(ctx, "ROLLBACK TO s")
		return errors.Join(err, rollbackErr)
	}
	return nil
}

// columnDamages are what another column than before comes of, and the stale
// write that must not land whatever mends the table.
var columnDamages = []struct {
	name, damage string
	mends        []string // what a program or a person runs, whether it is refused or not
	stale        string
	ways         []string // that end it; the last one that is no comment has to
}{
	{"tokens renamed, and the wall put up", tokensRenamed, []string{"SELECT fencing.wall('f')"}, staleUpdate, []string{putBack}},
	{"tokens renamed, and the wall put up at a level", tokensRenamed, []string{"SELECT fencing.wall('f', 'attested')", "SELECT fencing.wall('f', 'enforce')", "SELECT fencing.register('f', 'lease')"}, staleUpdate, []string{nameBack}},
	{"tokens renamed, and a trigger missing", tokensRenamed + `DROP TRIGGER "~fencing_delete" ON f`, nil, staleUpdate, []string{putBack}},
	{"tokens renamed, and the wall off and on", tokensRenamed, []string{"SELECT fencing.wall('f', 'off'), fencing.wall('f')"}, staleUpdate, []string{nameBack}},
	{"tokens renamed, and registered otherwise", tokensRenamed, []string{"SELECT fencing.register('f', 'strict')", "SELECT fencing.wall('f')"}, staleUpdate, []string{nameBack}},
	{"tokens dropped, and a function of another table's changed", tokensDropped + changeFunction("g", "~fencing_update"), nil, staleUpdate, nil},
	{"tokens renamed, and a function of another table's changed", tokensRenamed + changeFunction("g", "~fencing_late"), nil, staleUpdate, []string{putBack}},
	{"tokens renamed, and another table's mark changed", tokensRenamed + changeFunction("g", "!fencing_mark"), nil, staleUpdate, []string{nameBack}},
	{"seal exchanged, and a function of another table's changed", sealExchanged + changeFunction("i", "~fencing_zseal"), nil, otherLease, []string{sealBack}},
	{"tokens dropped, and a trigger missing", tokensDropped + `DROP TRIGGER "~fencing_delete" ON f`, nil, staleUpdate, nil},
	{"tokens dropped, and the wall taken off", tokensDropped, []string{"SELECT fencing.wall('f', 'off')", "SELECT fencing.wall('f')"}, staleUpdate, []string{newestWall}},
	{"tokens dropped while the wall was off", "SELECT fencing.wall('f', 'off'); " + tokensDropped, []string{"SELECT fencing.wall('f', 'attested')"}, staleUpdate, []string{newestWall}},
	{"key exchanged", keyExchanged, nil, staleInsert, nil},
	{"key exchanged, and a trigger of it dropped", keyExchanged + `DROP TRIGGER "~fencing_rekey1" ON f`, nil, staleInsert, nil},
	{"key exchanged, and all of them dropped", keyExchanged + `DROP TRIGGER "~fencing_rekey1" ON f; DROP TRIGGER "~fencing_rekey2" ON f; DROP TRIGGER "~fencing_vacate" ON f`, nil, staleInsert, nil},
	{"key exchanged, and a function of another table's changed", keyExchanged + changeFunction("g", "~fencing_bury"), nil, staleInsert, nil},
	{"key exchanged, and a trigger replaced", keyExchanged + replaceTrigger("f", "~fencing_rekey1", "AFTER UPDATE"), nil, staleInsert, nil},
	{"key exchanged while the wall was off", "SELECT fencing.wall('f', 'off'); " + keyExchanged, []string{"SELECT fencing.wall('f', 'attested')"}, staleInsert, nil},
	{"key exchanged without tombstones", "SELECT fencing.tombstones('f', false); " + keyExchanged, []string{"SELECT fencing.tombstones('f')"}, staleInsert, nil},
	{"tokens renamed for a nullable column", tokensNullable, nil, staleUpdate, []string{putBack}},
	{"tokens dropped for a nullable column", droppedToNull, nil, staleUpdate, nil},
	{"tokens nullable, and key exchanged", "ALTER TABLE f ALTER last_token DROP NOT NULL; " + keyExchanged, nil, staleInsert, nil},
	{"tokens nullable, and seal exchanged", "ALTER TABLE h ALTER last_token DROP NOT NULL; " + sealExchanged, nil, otherLease, []string{sealBack}},
	{"seal exchanged, and a trigger replaced", sealExchanged + replaceTrigger("h", "~fencing_named", "BEFORE UPDATE"), nil, otherLease, []string{sealBack}},
	{"seal exchanged, and its trigger missing", sealExchanged + `DROP TRIGGER "~fencing_zseal" ON h`, nil, otherLease, []string{sealBack}},
	{"tokens and key", tokensDropped + keyExchanged, nil, staleInsert, nil},
	{"tokens and key, renamed", tokensRenamed + keyExchanged, nil, staleInsert, []string{putBack}},
	{"tokens of a table made anew", "CREATE TABLE f2 (LIKE f INCLUDING ALL); INSERT INTO f2 (id, k, v) SELECT id, k, v FROM f; ALTER TABLE f RENAME TO f0; ALTER TABLE f2 RENAME TO f", nil, staleUpdate, []string{"UPDATE f SET last_token = 100; SELECT fencing.register('f', 'lease')"}},
	{"tokens of a table dropped and made anew", "CREATE TABLE f2 (LIKE f INCLUDING ALL); INSERT INTO f2 (id, k, v) SELECT id, k, v FROM f; DROP TABLE f; ALTER TABLE f2 RENAME TO f", nil, staleUpdate, []string{"UPDATE f SET last_token = 100; SELECT fencing.register('f', 'lease')"}},
	{"tokens added as int", `ALTER TABLE f DROP last_token CASCADE; ALTER TABLE f ADD last_token int NOT NULL DEFAULT 0`, nil, staleUpdate, nil},
	{"the trigger that keeps the tokens dropped", `DROP TRIGGER "~fencing_kept_token" ON f; ` + tokensRenamed, nil, staleUpdate, nil},
	{"the function that keeps columns dropped", tokensRenamed + `DROP FUNCTION fencing.kept_columns() CASCADE`, nil, staleUpdate, []string{"-- migrations.Up"}},
}

// The ways out that the doctor prints.
const (
	putBack    = `put the tokens back`
	newestWall = `UPDATE f SET last_token = 100; SELECT fencing.confirm_columns('f', 'token'), fencing.wall('f', 'attested')`
	nameBack   = `ALTER TABLE f RENAME last_token TO other; ALTER TABLE f RENAME lt TO last_token`
	sealBack   = `ALTER TABLE h RENAME n TO x; ALTER TABLE h RENAME r TO n; ALTER TABLE h RENAME x TO r`
)

// followRemedies runs the remedies of what the doctor has as errors, as printed
// at first, until there are no more to run. None of them fails.
func followRemedies(t *testing.T, conn *pgx.Conn, reversed bool) {
	t.Helper()
	for range 4 {
		var remedies []string
		for _, f := range findErrors(t, conn) {
			if !instruction.MatchString(f.Remedy) && !slices.Contains(remedies, f.Remedy) {
				remedies = append(remedies, f.Remedy)
			}
		}
		if len(remedies) == 0 {
			return
		}
		if reversed {
			slices.Reverse(remedies)
		}
		for _, sql := range remedies {
			if err := runRemedy(t.Context(), conn, sql); err != nil {
				var pg *pgconn.PgError
				require.ErrorAs(t, err, &pg, sql)
				require.NotEmpty(t, pg.Hint, "%s: %v", sql, err)
			}
		}
	}
}

// requireNoStale has the stale write refused.
func requireNoStale(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), "SAVEPOINT stale; "+sql)
	require.Error(t, err, "the stale write landed; the doctor says %v", findErrorsOf(t, conn, err))
	exec(t, conn, "ROLLBACK TO stale")
}

func findErrorsOf(t *testing.T, conn *pgx.Conn, err error) []finding {
	t.Helper()
	if err != nil {
		return nil // the transaction is over
	}
	return findErrors(t, conn)
}

func TestAnotherColumn(t *testing.T) {
	t.Parallel()
	dsn := localpg.Database(t, prepared(columnsTables))
	conn := open(t, dsn)
	for _, tt := range columnDamages {
		for _, reversed := range []bool{false, true} {
			if reversed && tt.mends != nil {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				exec(t, conn, "BEGIN; SAVEPOINT stale; SAVEPOINT s")
				defer exec(t, conn, "ROLLBACK")
				if tt.damage != "" {
					exec(t, conn, tt.damage)
				}
				for _, sql := range tt.mends {
					_ = runRemedy(t.Context(), conn, sql)
				}
				if tt.mends == nil {
					followRemedies(t, conn, reversed)
				}
				if found := findErrors(t, conn); len(found) == 0 && get[bool](t, conn, "SELECT bool_and(wall_level <> 'off') FROM fencing.registry") {
					requireNoStale(t, conn, tt.stale)
				} else {
					require.NotEmpty(t, append(tt.ways, tt.mends...), "%v", findErrors(t, conn))
				}
				for _, way := range tt.ways {
					if way == putBack {
						found := findErrors(t, conn)
						at := slices.IndexFunc(found, func(f finding) bool {
							return f.Code == "D205 trigger-changed" && strings.Contains(f.Object, "kept_token")
						})
						require.GreaterOrEqual(t, at, 0, "%v", found)
						way = regexp.MustCompile(`DO \$fencing\$.*\$fencing\$`).FindString(found[at].Remedy)
					}
					exec(t, conn, way)
				}
				if !strings.HasPrefix(strings.Join(tt.ways, ""), "--") {
					followRemedies(t, conn, reversed)
					require.Empty(t, findErrors(t, conn))
					requireNoStale(t, conn, tt.stale)
				}
			})
		}
	}
}
