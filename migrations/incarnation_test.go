package migrations_test

import (
	osexec "os/exec"
	"testing"

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
