package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// parents are two tables with a child, and a row in it that only the wall of a
// parent keeps from being written as anybody likes.
const parents = `CREATE TABLE pa (id int, v text, last_token bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0);
	CREATE TABLE pb (LIKE pa INCLUDING ALL); CREATE TABLE c () INHERITS (pa, pb); CREATE SEQUENCE s; SELECT setval('s', 50), setval('fencing.write_epoch', 50);
	INSERT INTO c VALUES (1, 'mine', 9, 9); INSERT INTO fencing.lease VALUES ('L', 'h', 9, now() + interval '12 hours'), ('M', 'h', 9, now() + interval '12 hours');
	SELECT fencing.register('pa', 'lease')`

func triggersOf(t *testing.T, conn *pgx.Conn, table string) string {
	t.Helper()
	return get[string](t, conn,
		`SELECT coalesce(string_agg(concat(tgname, ' ', proname, ' ', encode(tgargs, 'escape'), ' ', tgenabled), E'\n' ORDER BY tgname), '')
		FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid WHERE tgrelid = $1::text::regclass AND pronamespace = 'fencing'::regnamespace`, table)
}

// A child has one wall. Parents that ask for different ones are told so, and
// nothing of what the child has is taken from it.
func TestParentsThatDiffer(t *testing.T) {
	for name, b := range map[string][2]string{
		"in mode":           {`SELECT fencing.register('pb', 'strict')`, `SELECT fencing.wall('pb')`},
		"in token column":   {`SELECT fencing.register('pb', 'lease', 'fence')`, `SELECT fencing.wall('pb')`},
		"in resource":       {`SELECT fencing.register('pb', 'lease', resource => 'rb')`, `SELECT fencing.wall('pb', 'attested')`},
		"in sequence":       {`SELECT fencing.register('pb', 'lease', issued_by => 's')`, `SELECT fencing.wall('pb', 'report')`},
		"in seal":           {`SELECT fencing.seal('pa', 'L'); SELECT fencing.register('pb', 'lease'), fencing.wall('pb')`, `SELECT fencing.seal('pb', 'M')`},
		"from then on":      {`SELECT fencing.register('pb', 'lease'), fencing.wall('pb')`, `SELECT fencing.register('pb', 'lease', resource => 'rb')`},
		"by a plain UPDATE": {`SELECT fencing.register('pb', 'strict')`, `UPDATE fencing.registry SET wall_level = 'enforce' WHERE table_name = 'pb'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, parents+"; SELECT fencing.wall('pa'); "+b[0])
			before := triggersOf(t, conn, "c")
			require.NotEmpty(t, before)
			_, err := conn.Exec(t.Context(), b[1])
			requireHint(t, err, "55000", "public.c inherits from public.pb and from public.pa, whose walls differ", "NO INHERIT")
			require.Equal(t, before, triggersOf(t, conn, "c"))
			require.NotContains(t, codes(diagnose(t, dsn), "error"), "D213 parents-differ")
			// one of them alone may
			exec(t, conn, "ALTER TABLE c NO INHERIT pa; "+b[1])
		})
	}
}

// The child keeps what one parent gives it when the other's goes or changes.
func TestParentsThatAgree(t *testing.T) {
	const both = `; SELECT fencing.register('pb', 'lease'), fencing.wall('pa'), fencing.wall('pb'); `
	for _, tt := range []struct{ name, like, steps string }{
		{"one off", `SELECT fencing.wall('pb')`, both + `SELECT fencing.wall('pa', 'off')`},
		{"one unregistered", `SELECT fencing.wall('pb')`, both + `SELECT fencing.unregister('pa')`},
		{"one off, the other sealed", `SELECT fencing.wall('pb'), fencing.seal('pb', 'L')`,
			both + `SELECT fencing.seal('pb', 'L'); SELECT fencing.wall('pa', 'off')`},
		{"one unsealed, the other sealed", `SELECT fencing.wall('pb'), fencing.seal('pb', 'L')`,
			both + `SELECT fencing.seal('pb', 'L'), fencing.seal('pa', 'L'); SELECT fencing.unseal('pa')`},
		{"one unsealed and put up again", `SELECT fencing.wall('pb'), fencing.seal('pb', 'L')`, both + `SELECT fencing.seal('pb', 'L'); SELECT fencing.wall('pa')`},
		{"one stricter first", `SELECT fencing.wall('pb', 'attested')`, both + `SELECT fencing.wall('pb', 'attested'); SELECT fencing.wall('pa', 'report')`},
		{"one stricter last", `SELECT fencing.wall('pb', 'attested')`, both + `SELECT fencing.wall('pa', 'report'); SELECT fencing.wall('pb', 'attested')`},
		{"the stricter off", `SELECT fencing.wall('pb')`, both + `SELECT fencing.wall('pa', 'attested'); SELECT fencing.wall('pa', 'off')`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			alone := open(t, localpg.Database(t, installed))
			exec(t, alone, parents+"; SELECT fencing.register('pb', 'lease'); "+tt.like)
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, parents+tt.steps)
			require.Equal(t, triggersOf(t, alone, "c"), triggersOf(t, conn, "c"))
			_, err := conn.Exec(t.Context(), "UPDATE pb SET v = 'unguarded'")
			require.ErrorContains(t, err, "fencing: ")
			require.Empty(t, codes(diagnose(t, dsn), "error"))
		})
	}
}

// Triggers that came with a dump of one table go with its wall, its tombstones
// or its registration, and aren't passed over in silence.
func TestTriggersLeftOver(t *testing.T) {
	for name, sql := range map[string]string{
		"tombstones off": "SELECT fencing.register('orders', 'lease', 'fence', 'shop'), fencing.wall('orders'), fencing.tombstones('orders', " +
			"false), fencing.unseal('orders'), fencing.wall('orders', 'off')",
		"wall off":             "SELECT fencing.wall('orders', 'off')",
		"wall off, registered": "SELECT fencing.register('orders', 'lease', 'fence', 'shop'); SELECT fencing.wall('orders', 'off')",
		"unregistered":         "SELECT fencing.unregister('orders')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, restoredAlone+"; DELETE FROM fencing.registry")
			findings := diagnose(t, dsn)
			require.Equal(t, []string{"D209 wall-left-over"}, codes(findings, "error", "warning"), "%v", findings)
			exec(t, conn, sql)
			if name == "unregistered" {
				require.Empty(t, triggersOf(t, conn, "orders"))
			}
			require.NotRegexp(t, "(wall|tomb|seal)_", triggersOf(t, conn, "orders")) // those that keep columns never fire
			require.NotContains(t, codes(diagnose(t, dsn), "error", "warning"), "D209 wall-left-over")
		})
	}
}
