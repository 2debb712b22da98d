//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// worker is a worker's process, as the scheduler sees it.
type worker struct {
	name    string
	address string // of its HTTP server

	process *os.Process
	pid     int
	stdin   *os.File      // go-aheads; the worker ends when this does
	events  chan string   // lines of its standard output; closed at their end
	stopped chan struct{} // receives when the process has been stopped
	done    chan struct{} // closed when the process is gone
}

// startWorker starts this very program as a worker, and returns when its HTTP
// server listens.
func startWorker(ctx context.Context, name, dsn string, unsafe bool) (*worker, error) {
	w := &worker{
		name:    name,
		events:  make(chan string, 8),
		stopped: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	env := append(os.Environ(), envWorker+"="+name, envDSN+"="+dsn)
	if unsafe {
		env = append(env, envUnsafe+"=1")
	}
	if err := w.start(env); err != nil {
		return nil, fmt.Errorf("start worker %s: %w", name, err)
	}
	address, err := w.await(ctx, eventListening)
	if err != nil {
		w.end()
		return nil, err
	}
	w.address = address
	return w, nil
}

func (w *worker) start(env []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	stdin, toWorker, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	fromWorker, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, toWorker.Close())
	}
	defer stdout.Close()

	started := make(chan error)
	go func() {
		// The worker is killed when the thread that started it ends, so this
		// one has to live as long as the worker.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		w.process, err = os.StartProcess(exe, []string{exe}, &os.ProcAttr{
			Env: env, Files: []*os.File{stdin, stdout, os.Stderr}, Sys: attrs(),
		})
		if err == nil {
			w.pid = w.process.Pid // Release will take it from there
		}
		started <- err
		if err == nil {
			w.watch()
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(err, toWorker.Close(), fromWorker.Close())
	}
	w.stdin = toWorker
	go w.listen(fromWorker)
	return nil
}

// watch reports when the process has been stopped, until it is gone. Process.Wait
// would only tell the latter.
func (w *worker) watch() {
	defer close(w.done)
	defer func() { _ = w.process.Release() }() // it only gives back the handle
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(w.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || status.Exited() || status.Signaled():
			return
		default: // not Stopped(), which on some systems is false after SIGSTOP
			select {
			case w.stopped <- struct{}{}:
			default:
			}
		}
	}
}

// listen passes on what the worker says.
func (w *worker) listen(from *os.File) {
	defer close(w.events)
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		select {
		case w.events <- lines.Text():
		case <-w.done:
		}
	}
}

// await waits for an event of the worker, and returns what comes with it.
func (w *worker) await(ctx context.Context, event string) (string, error) {
	select {
	case line, ok := <-w.events:
		got, rest, _ := strings.Cut(line, " ")
		switch {
		case !ok:
			return "", fmt.Errorf("worker %s ended before it was %s; what it wrote above says why", w.name, event)
		case got != event:
			return "", fmt.Errorf("worker %s said %q before it was %s", w.name, line, event)
		}
		return rest, nil
	case <-ctx.Done():
		return "", fmt.Errorf("worker %s is not %s: %w", w.name, event, context.Cause(ctx))
	}
}

// proceed lets the worker's computation end; a frozen worker finds it when it
// wakes up.
func (w *worker) proceed() error {
	if _, err := fmt.Fprintln(w.stdin, "proceed"); err != nil {
		return fmt.Errorf("let worker %s go on: %w", w.name, err)
	}
	return nil
}

// freeze stops the worker, and returns when it has stopped.
func (w *worker) freeze(ctx context.Context) error {
	if err := w.process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze worker %s: %w", w.name, err)
	}
	select {
	case <-w.stopped:
		return nil
	case <-w.done:
		return fmt.Errorf("freeze worker %s: it has ended", w.name)
	case <-ctx.Done():
		return fmt.Errorf("freeze worker %s: it still runs: %w", w.name, context.Cause(ctx))
	}
}

// wake lets a frozen worker run on where it was.
func (w *worker) wake() error {
	if err := w.process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("wake worker %s: %w", w.name, err)
	}
	return nil
}

// end kills the worker, frozen or not, and returns when it is gone.
func (w *worker) end() {
	_ = w.process.Kill() // or it has just ended
	<-w.done
	_ = w.stdin.Close()
}
