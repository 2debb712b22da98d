package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress is one line on a terminal that says what takes so long. Nothing is
// written in the first second. A nil one writes nothing at all.
type progress struct {
	w     io.Writer
	after func(time.Duration) <-chan time.Time

	mu    sync.Mutex
	text  string
	shown string // what stands on the line

	done, stopped chan struct{}
}

const (
	progressDelay    = time.Second
	progressInterval = 200 * time.Millisecond
	progressWidth    = 79 // a longer line would wrap, and stay
	clearLine        = "\r\x1b[K"
)

func newProgress(w io.Writer) *progress { return &progress{w: w, after: time.After} }

// start begins to wait for the first second to be over.
func (p *progress) start(text string) {
	if p == nil {
		return
	}
	p.text, p.shown = text, ""
	p.done, p.stopped = make(chan struct{}), make(chan struct{})
	go p.watch(p.done, p.stopped)
}

// set changes the line.
func (p *progress) set(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// stop takes the line off again.
func (p *progress) stop() {
	if p == nil || p.done == nil {
		return
	}
	close(p.done)
	<-p.stopped
	if p.shown != "" {
		fmt.Fprint(p.w, clearLine)
	}
	p.done = nil
}

func (p *progress) watch(done, stopped chan struct{}) {
	defer close(stopped)
	for wait := progressDelay; ; wait = progressInterval {
		select {
		case <-done:
			return
		case <-p.after(wait):
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := []rune(p.text)
	if text = text[:min(len(text), progressWidth)]; string(text) != p.shown {
		p.shown = string(text)
		fmt.Fprint(p.w, clearLine+p.shown)
	}
}

// clearing is a writer before which the line of progress is taken off: both may
// be the same terminal.
type clearing struct {
	progress *progress
	w        io.Writer
}

// Write implements [io.Writer].
func (c *clearing) Write(data []byte) (int, error) {
	c.progress.stop()
	return c.w.Write(data)
}
