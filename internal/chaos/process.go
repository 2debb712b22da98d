package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/internal/chaos/worker"
)

// place is where a worker is, and after it has been killed the next one.
type place struct {
	number int
	proxy  *proxy.Proxy
	config worker.Config

	process sync.Mutex // held by who stops or kills the worker
	network sync.Mutex // and by who meddles with its connections

	cmd   *exec.Cmd
	ended chan error // of cmd, and of the reading of what it said; nil if none runs
}

// places are all workers of a run.
type places struct {
	all []*place
	log *history.Log

	mu      sync.Mutex
	holders map[string]holder // by resource
}

// holder is who was last heard to have a lease.
type holder struct {
	place int
	token int64
}

// startPlaces starts the workers, each behind a proxy of its own. dsn returns
// the way to the database through a proxy.
func startPlaces(n int, config worker.Config, target string, dsn func(addr string) string) (*places, error) {
	ps := &places{log: history.NewLog(), holders: make(map[string]holder)}
	for i := range n {
		through, err := proxy.Listen(target)
		if err != nil {
			return nil, errors.Join(err, ps.stop())
		}
		p := &place{number: i + 1, proxy: through, config: config}
		p.config.Worker, p.config.DSN = p.number, dsn(through.Addr())
		ps.all = append(ps.all, p)
		if err := ps.start(p); err != nil {
			return nil, errors.Join(err, ps.stop())
		}
	}
	return ps, nil
}

// start starts the next worker of a place.
func (ps *places) start(p *place) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.config.Life++
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = p.config.Env(), os.Stderr, attrs()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	p.cmd, p.ended = cmd, ended
	go func() {
		err := ps.log.Read(out, func(op history.Op) { ps.heard(p.number, op) })
		ended <- errors.Join(err, cmd.Wait())
	}()
	return nil
}

// heard notes who has a lease.
func (ps *places) heard(place int, op history.Op) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	switch {
	case op.Kind == history.Take && op.Outcome == history.OK:
		ps.holders[op.Resource] = holder{place, op.Token}
	case op.Kind == history.Release && ps.holders[op.Resource].token == op.Token:
		delete(ps.holders, op.Resource)
	}
}

// holding returns the place of who has a lease, or otherwise the given one.
func (ps *places) holding(resource string, otherwise int) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if h, ok := ps.holders[resource]; ok {
		otherwise = h.place
	}
	return ps.all[otherwise-1]
}

// kill kills the worker of a place and starts another there.
func (ps *places) kill(p *place) error {
	ended := p.ended
	p.ended = nil
	select {
	case err := <-ended:
		return fmt.Errorf("worker %d had ended by itself: %w", p.number, err)
	default:
	}
	_ = p.cmd.Process.Kill()
	<-ended // it has been killed: that is no error
	return ps.start(p)
}

// stopTimeout is how long a worker may take to finish what it has begun.
const stopTimeout = 15 * time.Second

// stop has all workers end, and returns the errors of those that didn't end
// well.
func (ps *places) stop() error {
	for _, p := range ps.all {
		if p.ended != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var all error
	for _, p := range ps.all {
		if p.ended != nil {
			all = errors.Join(all, p.end(ctx))
		}
		p.proxy.Close()
	}
	return all
}

func (p *place) end(ctx context.Context) error {
	var err error
	select {
	case err = <-p.ended:
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		err = errors.Join(errors.New("it did not end when it was asked to"), <-p.ended)
	}
	if err != nil {
		return fmt.Errorf("worker %d: %w", p.number, err)
	}
	return nil
}
