// Package proxy stands in front of a PostgreSQL server and does to its
// connections what networks do: it holds and delays bytes, cuts connections,
// and closes one direction alone. Unlike most such proxies it passes on a
// half-close that one of the sides sends.
package proxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// Direction is a set of the two ways that bytes go.
type Direction int

// The directions, by where the bytes arrive.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// acceptPause is how long accept rests when the system has no more files.
const acceptPause = 10 * time.Millisecond

// Proxy is a listener on 127.0.0.1 whose connections are handed to a target.
// Its methods may be called by several goroutines.
type Proxy struct {
	listener net.Listener
	closing  context.Context // done once Close is called
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	target   string
	epoch    int // counts the cuts: a connection made across one is cut, too
	pairs    map[*pair]struct{}
	toServer way
	toClient way
}

// way is the state of one direction.
type way struct {
	flowing chan struct{} // closed unless held
	held    bool
	delay   time.Duration
}

// Listen makes a proxy for a target, which is host:port or the path of a unix
// socket. The target need not be there yet.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	flowing := make(chan struct{})
	close(flowing)
	p := &Proxy{
		listener: l, target: target, pairs: make(map[*pair]struct{}),
		toServer: way{flowing: flowing}, toClient: way{flowing: flowing},
	}
	p.closing, p.stop = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the host:port where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Conns returns the number of connections that lead from a client to the target.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// SetTarget has new connections go to another target and cuts those there are.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.cut()
}

// Hold keeps bytes, and the end of a connection, from going on in a direction,
// on present and new connections. What has been read at that moment may still
// arrive; of what comes later no more than a buffer per connection is read.
func (p *Proxy) Hold(d Direction) {
	p.each(d, func(w *way) {
		if !w.held {
			w.held, w.flowing = true, make(chan struct{})
		}
	})
}

// Resume lets what is held go on.
func (p *Proxy) Resume(d Direction) {
	p.each(d, func(w *way) {
		if w.held {
			w.held = false
			close(w.flowing)
		}
	})
}

// Delay has bytes arrive later by this much, or at once again if it is 0. The
// proxy reads on only after that, so it also bounds how much gets through.
func (p *Proxy) Delay(d Direction, by time.Duration) {
	p.each(d, func(w *way) { w.delay = by })
}

// each changes the ways of a direction.
func (p *Proxy) each(d Direction, change func(*way)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d&ToServer != 0 {
		change(&p.toServer)
	}
	if d&ToClient != 0 {
		change(&p.toClient)
	}
}

// way returns the present state of one direction.
func (p *Proxy) way(d Direction) way {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == ToServer {
		return p.toServer
	}
	return p.toClient
}

// Cut resets all connections, both sides of them. Bytes in the proxy are lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	p.epoch++
	for c := range p.pairs {
		c.abort()
	}
}

// HalfClose ends one direction of all present connections, at once and ahead
// of bytes that are held; what is sent into it later is thrown away. The other
// direction flows on. With Both the connections stay, closed for either side.
func (p *Proxy) HalfClose(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		if d&ToServer != 0 {
			_ = c.server.CloseWrite() // or it has just ended
		}
		if d&ToClient != 0 {
			_ = c.client.CloseWrite()
		}
	}
}

// Close cuts all connections, ends the proxy and returns when nothing of it
// runs any more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.stop()
	_ = p.listener.Close()
	p.cut()
	p.mu.Unlock()
	p.running.Wait()
}

// accept hands each connection to the target until the proxy is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			p.running.Go(func() { p.serve(client) })
		}
	}
}

// serve runs a client's connection until both its directions have ended.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target, epoch := p.target, p.epoch
	p.mu.Unlock()
	network := "tcp"
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	server, err := new(net.Dialer).DialContext(p.closing, network, target)
	if err != nil {
		reset(client)
		return
	}
	c := &pair{proxy: p, client: client.(halfCloser), server: server.(halfCloser), cut: make(chan struct{})}
	p.mu.Lock()
	p.pairs[c] = struct{}{}
	if p.epoch != epoch {
		c.abort()
	}
	p.mu.Unlock()

	c.run()
	p.mu.Lock()
	delete(p.pairs, c)
	p.mu.Unlock()
}
