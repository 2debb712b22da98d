package localpg

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is a started command.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the command has ended
	err  error         // how it ended; read it after done
}

// startProcess starts cmd. A parent's death signal is sent when the *thread*
// that started the child ends, so that thread is held until the child is gone.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// wait returns the command's outcome; it kills the command if ctx ends first.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		_ = p.cmd.Process.Kill() // or it has just ended
		<-p.done
		return context.Cause(ctx)
	}
}

// end sends sig and waits; what doesn't end in time is killed.
func (p *process) end(sig syscall.Signal, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.cmd.Process.Signal(sig); err != nil {
		_ = p.cmd.Process.Kill() // it has just ended
	}
	if err := p.wait(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s did not end within %s of signal %v and was killed", p.cmd.Path, patience, sig)
	}
	return nil
}

// procInfo is a line of the system's process table.
type procInfo struct {
	pid, ppid int
	stopped   bool
	command   string
}

// crash kills a postmaster without a chance to say goodbye, and returns when
// its children have noticed: before that the data directory can't be used
// again. It works for a postmaster that is not our child.
func crash(pid int) error {
	children, err := freeze(pid)
	if err != nil {
		return err
	}
	if err := kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill postmaster %d: %w", pid, err)
	}
	left := append(children, pid)
	if gone(left, time.Second) {
		return nil
	}
	// A backend that computes does not look for its postmaster.
	for _, p := range alive(left) {
		_ = kill(p, syscall.SIGKILL) // or it has just ended
	}
	if !gone(left, 5*time.Second) {
		return fmt.Errorf("processes %v of a killed PostgreSQL server do not end", alive(left))
	}
	return nil
}

// freeze stops a postmaster, so that no child is born behind our back, and
// returns its children.
func freeze(pid int) ([]int, error) {
	if err := halt(pid); err != nil {
		return nil, nil // it has just ended
	}
	var children []int
	var failed error
	poll(5*time.Second, func() bool {
		list, err := processes()
		if err != nil {
			failed = err
			return true
		}
		children = children[:0]
		running := false
		for _, p := range list {
			if p.ppid == pid {
				children = append(children, p.pid)
			}
			running = running || p.pid == pid && !p.stopped
		}
		return !running
	})
	return children, failed
}

// alive returns those of the processes that still run and are PostgreSQL's:
// the system may have given a number to somebody else by now. A process that
// is about to end has no command line any more.
func alive(pids []int) []int {
	list, _ := processes()
	var left []int
	for _, p := range list {
		if slices.Contains(pids, p.pid) && (p.command == "" || strings.Contains(p.command, "postgres")) {
			left = append(left, p.pid)
		}
	}
	return left
}

// gone waits until none of the processes runs.
func gone(pids []int, patience time.Duration) bool {
	return poll(patience, func() bool { return len(alive(pids)) == 0 })
}

// poll asks until the answer is yes.
func poll(patience time.Duration, ok func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		if ok() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
}
