package localpg

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKilledOwner(t *testing.T) {
	t.Parallel()
	cmd := child(t, "hang")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	data := firstLine(t, stdout)
	dir := filepath.Dir(data)
	require.NotEmpty(t, serverProcesses(t, data))

	sweep()
	require.DirExists(t, data, "the owner lives")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	if runtime.GOOS == "linux" {
		require.True(t, poll(databaseTimeout, func() bool { return len(serverProcesses(t, data)) == 0 }),
			"the server outlives its owner")
	}
	// A test beside this one may have swept already.
	StartServer(t)
	require.True(t, poll(databaseTimeout, func() bool { return uidOf(dir) == -1 }), "the next start sweeps")
	require.Empty(t, serverProcesses(t, data))
}

// Where the system can't end the server with its owner, the sweep does.
func TestSweepEndsServer(t *testing.T) {
	srv, err := Start(t.Context())
	require.NoError(t, err)
	c := srv.cluster

	sweepDir(c.dir.path)
	require.DirExists(t, srv.DataDir(), "locked")
	require.NoError(t, c.dir.lock.Close()) // as if we had died

	sweepDir(c.dir.path)
	require.NoDirExists(t, c.dir.path)
	<-c.proc.done
	require.Empty(t, serverProcesses(t, srv.DataDir()))
	require.NoError(t, c.dir.log.Close())
}

// What a killed postmaster leaves in the system is given back.
func TestSharedMemoryIsGivenBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/sysvipc")
	}
	t.Parallel()
	srv, err := Start(t.Context())
	require.NoError(t, err)
	fields := strings.Fields(pidFile(srv.DataDir(), 7))
	require.Len(t, fields, 2)
	require.NoError(t, srv.Kill())
	require.True(t, segmentExists(t, fields[1]), "or the test tests nothing")
	require.NoError(t, srv.Stop())
	require.False(t, segmentExists(t, fields[1]))
}

func segmentExists(t *testing.T, id string) bool {
	t.Helper()
	list, err := os.ReadFile("/proc/sysvipc/shm")
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == id {
			return true
		}
	}
	return false
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	empty := filepath.Join(base, dirPrefix+"1")
	unlocked := filepath.Join(base, dirPrefix+"2")
	dead := filepath.Join(base, dirPrefix+"3")
	other := filepath.Join(base, "other")
	for _, dir := range []string{empty, unlocked, dead, other} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(unlocked, "file"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(other, "lock"), nil, 0o600))
	foreign := filepath.Join(base, dirPrefix+"4")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Mkdir(foreign, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(foreign, "lock"), nil, 0o600))
		require.NoError(t, os.Chown(filepath.Join(foreign, "lock"), 65534, 65534))
	}

	sweep()
	require.NoDirExists(t, empty)
	require.DirExists(t, unlocked)
	require.NoDirExists(t, dead)
	require.DirExists(t, other)
	if os.Geteuid() == 0 {
		require.DirExists(t, foreign, "root can, but must not")
	}
}

func TestRootDropsPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	t.Parallel()
	as, err := serverAccount()
	require.NoError(t, err)
	require.NotZero(t, as.uid)
	srv := StartServer(t)
	require.Equal(t, as.uid, uidOf(srv.DataDir()))
	if runtime.GOOS == "linux" {
		require.Equal(t, as.uid, uidOf("/proc/"+strconv.Itoa(srv.cluster.proc.cmd.Process.Pid)))
	}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	bin, err := newFinder().find(t.Context())
	require.NoError(t, err)
	cmd := child(t, "cycle", envBin+"="+bin) // root's downloads are not where an ordinary user's are
	uid := os.Geteuid()
	if uid == 0 {
		as, err := serverAccount()
		require.NoError(t, err)
		uid = as.uid
		cmd.Path = copyForAll(t, cmd.Path)
		cmd.Dir = filepath.Dir(cmd.Path)
		cmd.Env = append(cmd.Env, "HOME="+cmd.Dir)
		cmd.SysProcAttr = attrs(as)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	fields := strings.Fields(string(out))
	require.Len(t, fields, 3)
	require.Equal(t, strconv.Itoa(uid), fields[1])
	require.NoDirExists(t, filepath.Dir(fields[0]))
}

// copyForAll copies a program to where every user can run it; go test builds
// into a directory of our own.
func copyForAll(t *testing.T, exe string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lpg") //nolint:usetesting // only we may enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	from, err := os.Open(exe)
	require.NoError(t, err)
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "localpg.test"), os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return to.Name()
}

func TestEnsure(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	ensure, err := filepath.Abs("ensure.sh")
	require.NoError(t, err)
	bin := t.TempDir()
	server := t.TempDir()
	fakeServer(t, server)
	called := filepath.Join(t.TempDir(), "called")
	script(t, bin+"/apt-get", "echo \"$@\" >>"+called)
	script(t, bin+"/id", "echo 0")
	tests := []struct{ name, env string }{
		{"an existing server", envURL + "=postgres://elsewhere/"},
		{"a directory named, even a wrong one", envBin + "=/nonexistent"},
		{"a server in PATH", "PATH=" + bin + ":" + server + ":" + os.Getenv("PATH")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), sh, ensure)
			cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", tt.env}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Empty(t, string(out))
			require.NoFileExists(t, called)
		})
	}
}
