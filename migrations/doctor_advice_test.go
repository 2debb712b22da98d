package migrations_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/migrations"
)

// instruction is a remedy that leaves something to a person.
var instruction = regexp.MustCompile(`\.\.\.|, or,? |, else|^(look at|run|mend|name|take|compare) `)

// advise runs the doctor's remedies that are statements until they change
// nothing, and returns what is left: what is for a person to do.
func advise(t *testing.T, dsn string) []migrations.Finding {
	t.Helper()
	return follow(t, dsn, open(t, dsn), diagnose(t, dsn))
}

// follow is advise from these findings on, over a connection to the same database.
func follow(t *testing.T, dsn string, admin *pgx.Conn, findings []migrations.Finding) []migrations.Finding {
	t.Helper()
	for range 4 {
		var remedies []string
		runsUp := false
		for _, f := range findings {
			runsUp = runsUp || strings.HasPrefix(f.Remedy, "run migrations.Up(ctx, dsn)")
			if f.Severity != "info" && !instruction.MatchString(f.Remedy) && !slices.Contains(remedies, f.Remedy) {
				remedies = append(remedies, f.Remedy)
			}
		}
		if len(remedies) == 0 && !runsUp {
			return findings
		}
		for _, sql := range remedies {
			exec(t, admin, sql)
		}
		if runsUp {
			require.NoError(t, migrations.Up(t.Context(), dsn))
		}
		findings = diagnose(t, dsn)
	}
	require.Fail(t, "the remedies mend nothing", "%v", findings)
	return nil
}

// requireAdvice runs the remedies, which must leave nothing to mend.
func requireAdvice(t *testing.T, dsn string) {
	t.Helper()
	left := advise(t, dsn)
	require.Empty(t, codes(left, "error", "warning"), "%v", left)
}

// guard is what a row of the registry asks for.
type guard struct {
	Relid                                  uint32
	Schema, Table, Column, Mode, Resource  string
	Wall, Driver, SealResource, SealColumn string
	Tombstones                             bool
}

// trig is a trigger of fencing that fires always.
type trig struct {
	Relid uint32
	Name  string
}

// protection is what protects the tables of a database.
type protection struct {
	guards   []guard
	triggers []trig
	refused  []string // writes that the database refuses
	allowed  []string // functions that the driver lets through
}

func collect[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	require.NoError(t, err)
	return all
}

const guardColumns = `relid::oid, schema_name::text, table_name::text, token_column::text, mode, coalesce(resource, ''), wall_level, driver_level,
	coalesce(seal_resource, ''), coalesce(to_jsonb(registry)->>'seal_column', ''), tombstones FROM fencing.registry`

func readProtection(t *testing.T, conn *pgx.Conn) protection {
	t.Helper()
	p := protection{
		guards: collect[guard](t, conn, "SELECT "+guardColumns),
		triggers: collect[trig](t, conn, `SELECT tgrelid, tgname::text FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid
			WHERE pronamespace = 'fencing'::regnamespace AND proname ~ '^(wall|tomb|seal)_' AND tgenabled = 'A'`),
		allowed: get[[]string](t, conn, `SELECT coalesce(array_agg(to_jsonb(a)::text), '{}') FROM fencing.allowed_function a`),
	}
	for _, write := range []string{
		`UPDATE orders SET note = 'unguarded'`, `UPDATE orders SET note = 'stale', last_token = 1`, `DELETE FROM orders`, `TRUNCATE orders`,
		`UPDATE jobs SET note = 'unguarded'`, `UPDATE jobs SET note = 'never issued', last_token = 99`, `DELETE FROM jobs`,
		`UPDATE parted SET id = 2`, `UPDATE child SET more = 'unguarded'`, `UPDATE parent SET id = 1, last_token = 1`,
		`DELETE FROM keyed`, `UPDATE keyed SET c = 1, last_token = 1`,
		`UPDATE seals SET id = 2, last_token = 1`, `UPDATE "my App"."Order ""Lines""" SET note = 'unguarded'`,
	} {
		tag, err := conn.Exec(t.Context(), "BEGIN; "+write)
		if err != nil || tag.RowsAffected() == 0 {
			p.refused = append(p.refused, write)
		}
		exec(t, conn, "ROLLBACK")
	}
	return p
}

// requireNoWeaker compares what protects the tables now with what did before.
func requireNoWeaker(t *testing.T, conn *pgx.Conn, before protection) {
	t.Helper()
	levels := []string{"off", "report", "enforce", "attested"}
	for _, g := range before.guards {
		// the table by that oid, what it is a partition of now, or what has the name now
		now := collect[guard](t, conn,
			"SELECT "+guardColumns+" WHERE relid = $1 OR relid = pg_partition_root($1) OR (schema_name::text, table_name::text) = ($2, $3)",
			g.Relid, g.Schema, g.Table)
		require.True(t, slices.ContainsFunc(now, func(n guard) bool {
			return n.Column == g.Column && n.Mode == g.Mode && n.Resource == g.Resource && (n.Tombstones || !g.Tombstones) &&
				slices.Index(levels, n.Wall) >= slices.Index(levels, g.Wall) && slices.Index(levels, n.Driver) >= slices.Index(levels, g.Driver) &&
				(g.SealResource+g.SealColumn == "" || n.SealResource == g.SealResource && n.SealColumn == g.SealColumn)
		}), "was %+v, is %+v", g, now)
	}
	after := readProtection(t, conn)
	for _, trig := range before.triggers {
		require.True(t,
			slices.Contains(after.triggers, trig) || !get[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = $1)", trig.Relid),
			fmt.Sprintf("trigger %v is gone", trig))
	}
	require.Subset(t, after.refused, before.refused)
	require.Subset(t, before.allowed, after.allowed)
}
