package migrations_test

import (
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

const far = int64(1) << 32 // further than any test draws

// requireJump checks that the next token is far above a token, the one after it
// the next, and that the doctor says so before and no more after.
func requireJump(t *testing.T, dsn string, above int64) int64 {
	t.Helper()
	require.Contains(t, codes(diagnose(t, dsn), "info"), "D312 incarnation-other")
	conn := open(t, dsn)
	next := get[int64](t, conn, "SELECT fencing.next_token()")
	require.Greater(t, next, above+far/2)
	require.Equal(t, next+1, get[int64](t, conn, "SELECT fencing.next_token()"))
	require.NotContains(t, codes(diagnose(t, dsn), "info"), "D312 incarnation-other")
	return next + 1
}

// Whatever tokens rest on becomes another: those given out since are forgotten,
// and are not given out again.
func TestTokensJump(t *testing.T) {
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	conn := open(t, dsn)
	last := get[int64](t, conn, "SELECT fencing.next_token()")
	require.Equal(t, int64(1), last)
	require.NotContains(t, codes(diagnose(t, dsn), "info"), "D312 incarnation-other")
	exec(t, conn, "CREATE PUBLICATION every FOR ALL TABLES") // what has no key for it can't be written
	for _, sql := range []string{
		"UPDATE fencing.incarnation SET tli = tli + 1", "UPDATE fencing.incarnation SET sysid = sysid - 1", "UPDATE fencing.incarnation SET dbid = 1",
		"UPDATE fencing.incarnation SET seqid = 1", "DELETE FROM fencing.incarnation",
	} {
		exec(t, conn, sql)
		last = requireJump(t, dsn, last)
	}
}

func TestTokensJumpInACopy(t *testing.T) {
	requireJump(t, localpg.Database(t, doctored), 2)
}

// A dump that is restored over what it was taken of, on the same server.
func TestTokensJumpAfterARestore(t *testing.T) {
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := osexec.LookPath(name); err != nil {
			t.Logf("nothing is restored without it: %v; TestTokensJumpInACopy shows the same for a copy", err)
			return
		}
	}
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	conn := open(t, dsn)
	exec(t, conn, "SELECT fencing.next_token()")
	file := t.TempDir() + "/dump"
	if out, err := osexec.CommandContext(t.Context(), "pg_dump", "--format=custom", "--file="+file, "--dbname="+dsn).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out) // of another version than the server, most likely
	}
	last := get[int64](t, conn, "SELECT max(fencing.next_token()) FROM generate_series(1, 5)")
	out, err := osexec.CommandContext(t.Context(), "pg_restore", "--clean", "--if-exists", "--dbname="+dsn, file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT last_value FROM fencing.write_epoch"))
	requireJump(t, dsn, last)
}

// A dump that is restored into a database where migrations.Up has run already,
// as at the start of a service, or the tokens alone into the database that is
// there: what exists gives errors, which psql passes over, and the value of the
// sequence arrives all the same.
func TestTokensJumpAfterARestoreIntoAnInstalledDatabase(t *testing.T) {
	d, ok := newDumper(t)
	if !ok {
		return
	}
	const set, draw = "SELECT pg_catalog.setval('fencing.write_epoch'", "SELECT fencing.next_token();\n"
	tests := []struct {
		name, into string
		args       []string
		edit       func(string) string
	}{
		{"a whole dump", "whole", nil, nil},
		{"a dump of rows", "rows", []string{"--data-only"}, nil},
		{"a token drawn in between", "drawn", nil, func(dump string) string { return strings.Replace(dump, set, draw+set, 1) }},
		{"tokens drawn before", "before", nil, func(dump string) string { return draw + draw + dump }},
		{"rows into the database that is there", "src", []string{"--data-only", "--schema=fencing"}, nil},
	}
	src := open(t, d.srv.DSN("src"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := get[int64](t, src, "SELECT fencing.next_token()")
			dump, err := client(t.Context(), d.pgDump, append(tt.args, d.srv.DSN("src"))...).Output()
			require.NoError(t, err)
			require.Contains(t, string(dump), set)
			last := get[int64](t, src, "SELECT max(fencing.next_token()) FROM generate_series(1, 5)")
			if tt.into != "src" {
				require.NoError(t, d.srv.CreateDatabase(t.Context(), tt.into, ""))
				require.NoError(t, migrations.Up(t.Context(), d.srv.DSN(tt.into)))
			}
			if tt.edit != nil {
				dump = []byte(tt.edit(string(dump)))
			}
			load := client(t.Context(), d.psql, "-X", "-q", d.srv.DSN(tt.into))
			load.Stdin = strings.NewReader(string(dump))
			out, err := load.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, at, get[int64](t, open(t, d.srv.DSN(tt.into)), "SELECT last_value FROM fencing.write_epoch"), string(out))
			requireJump(t, d.srv.DSN(tt.into), last)
		})
	}
}

// Of several who draw the first token after a restore one has tokens jump.
func TestTokensJumpOnce(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn, first, second := open(t, dsn), open(t, dsn), open(t, dsn)
	exec(t, conn, "INSERT INTO fencing.incarnation SELECT * FROM fencing.incarnation; BEGIN; SELECT fencing.next_token()")
	done := []chan error{make(chan error, 1), make(chan error, 1)}
	for i, c := range []*pgx.Conn{first, second} {
		go func() {
			_, err := c.Exec(t.Context(), "SELECT fencing.next_token()")
			done[i] <- err
		}()
		requireBlocked(t, conn, c)
	}
	exec(t, conn, "COMMIT")
	require.NoError(t, <-done[0])
	require.NoError(t, <-done[1])
	require.Less(t, get[int64](t, conn, "SELECT last_value % (1::bigint << 32) FROM fencing.write_epoch"), int64(10))
	require.Equal(t, int64(3), get[int64](t, conn, "SELECT last_value - floor FROM fencing.write_epoch, fencing.incarnation"))
}
