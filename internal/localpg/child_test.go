package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// envChild makes the test binary play another process: see children.
const envChild = "FENCEROW_LOCALPG_TEST_CHILD"

// children are the parts that this test binary can play.
var children = map[string]func() error{
	"hang":  childHang,
	"cycle": childCycle,
	"tests": func() error { return childTests(false) },
	"leaky": func() error { return childTests(true) },
}

func TestMain(m *testing.M) {
	if part, ok := children[os.Getenv(envChild)]; ok {
		if err := part(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	Main(m)
}

// child prepares a run of this test binary in another part.
func child(t *testing.T, part string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), append(env, envChild+"="+part)...)
	return cmd
}

// childHang starts a server, tells where, and waits for its end.
func childHang() error {
	srv, err := Start(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(srv.DataDir())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.New("nobody killed me")
}

// childCycle takes a server through all it can do.
func childCycle() error {
	ctx := context.Background()
	srv, err := Start(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(srv.CreateDatabase(ctx, "one", ""), srv.Kill(), srv.Restart(ctx), ping(ctx, srv.DSN("one")))
	fmt.Println(srv.DataDir(), uidOf(srv.DataDir()), err)
	return errors.Join(err, srv.Stop())
}

// childTests is Main for a package with one passing test.
func childTests(leaky bool) error {
	code := runTests(func() int {
		if leaky {
			go func() { select {} }()
		}
		_, drop, err := shared.database(nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := drop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}, &shared, os.Stderr)
	os.Exit(code)
	return nil
}

// uidOf returns the owner of a file, or -1 if there is none.
func uidOf(path string) int {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	return ownerOf(info).uid
}

// firstLine waits for a line of a running command's output.
func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func TestMainChecksLeaks(t *testing.T) {
	tests := []struct{ part, want string }{
		{"tests", ""},
		{"leaky", "left goroutines behind"},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			out, err := child(t, tt.part).CombinedOutput()
			if tt.want == "" {
				require.NoError(t, err, "%s", out)
			} else {
				require.Error(t, err)
			}
			require.Contains(t, string(out), tt.want)
		})
	}
}
