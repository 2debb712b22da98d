//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
)

// held is a run that waits for Enter while A is frozen.
type held struct {
	*exec.Cmd
	serverDir string
	stdout    *bufio.Reader
	stderr    *bytes.Buffer
}

func hold(t *testing.T, exe string) *held {
	t.Helper()
	h := &held{Cmd: command(t, exe, "", "-wait"), stderr: new(bytes.Buffer)}
	// not of the type *os.File, so that Wait waits until no worker has it either
	h.Stderr = h.stderr
	stdin, err := h.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = stdin.Close() })
	stdout, err := h.StdoutPipe()
	require.NoError(t, err)
	h.stdout = bufio.NewReader(stdout)
	require.NoError(t, h.Start())

	var told strings.Builder
	for !strings.Contains(told.String(), "press Enter") {
		line, err := h.stdout.ReadString('\n')
		told.WriteString(line)
		if err != nil {
			_ = h.Wait()
			skipWithoutServer(t, h.stderr.String())
			require.NoError(t, err, told.String()+h.stderr.String())
		}
	}
	require.Contains(t, told.String(), "worker A   is FROZEN")
	dsn := regexp.MustCompile(`psql '(.*)'`).FindStringSubmatch(told.String())
	require.NotNil(t, dsn, told.String())
	u, err := url.Parse(dsn[1])
	require.NoError(t, err)
	h.serverDir = u.Query().Get("host")
	require.DirExists(t, h.serverDir)
	return h
}

func testInterrupted(t *testing.T, exe string) {
	h := hold(t, exe)
	left := descendants(t, h.Process.Pid)
	require.NoError(t, h.Process.Signal(os.Interrupt))
	require.Error(t, h.Wait())
	require.Equal(t, 1, h.ProcessState.ExitCode())
	require.Equal(t, "example: interrupted\n", h.stderr.String())
	require.NoDirExists(t, h.serverDir)
	require.Empty(t, running(left))
}

// Of a killed run nothing is left running: not the frozen worker, not the
// other one, not the server. (Its directory is swept by the next server.)
func testKilled(t *testing.T, exe string) {
	if runtime.GOOS != "linux" {
		t.Skip("the server ends with the example on Linux only")
	}
	h := hold(t, exe)
	left := descendants(t, h.Process.Pid)
	var names []string
	for _, p := range left {
		names = append(names, fmt.Sprintf("%s %s", p.name, p.state))
	}
	require.Contains(t, names, "example T", "the frozen worker")
	require.Contains(t, names, "example S", "the other worker")
	require.Contains(t, names, "postgres S")

	require.NoError(t, h.Process.Kill())
	require.Error(t, h.Wait())
	require.Equal(t, syscall.SIGKILL, h.ProcessState.Sys().(syscall.WaitStatus).Signal())
	fencetest.Eventually(t, func() bool { return len(running(left)) == 0 }, func() any { return running(left) })
}

// process is a process of this machine; a number alone may come again.
type process struct {
	pid, parent        int
	name, state, since string
}

// processes reads /proc; without one there are none.
func processes() []process {
	entries, _ := os.ReadDir("/proc")
	var all []process
	for _, e := range entries {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid ... starttime, the 22nd
		head, tail, _ := strings.Cut(string(stat), " (")
		end := strings.LastIndexByte(tail, ')')
		fields := strings.Fields(tail[end+1:])
		p := process{name: tail[:end], state: fields[0], since: fields[19]}
		_, err1 := fmt.Sscan(head, &p.pid)
		_, err2 := fmt.Sscan(fields[1], &p.parent)
		if err1 == nil && err2 == nil && p.state != "Z" && p.state != "X" {
			all = append(all, p)
		}
	}
	return all
}

// descendants are the processes that a process has started, itself or not.
func descendants(t *testing.T, pid int) []process {
	t.Helper()
	all := processes()
	family := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if family[p.parent] && !family[p.pid] {
				family[p.pid], grown = true, true
			}
		}
	}
	var found []process
	for _, p := range all {
		if family[p.pid] && p.pid != pid {
			found = append(found, p)
		}
	}
	return found
}

// running are those of the processes that still run.
func running(of []process) []process {
	var left []process
	for _, p := range processes() {
		for _, q := range of {
			if p.pid == q.pid && p.since == q.since {
				left = append(left, p)
			}
		}
	}
	return left
}
