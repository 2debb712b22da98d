package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// bufferSize is how much a held direction of a connection takes at most.
const bufferSize = 32 << 10

// halfCloser is what TCP and unix connections have in common.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// pair is a client's connection and the one to the target.
type pair struct {
	proxy          *Proxy
	client, server halfCloser
	once           sync.Once
	cut            chan struct{} // closed by abort
}

// run returns when both directions have ended.
func (c *pair) run() {
	var running sync.WaitGroup
	running.Go(func() { c.pump(ToServer, c.server, c.client) })
	running.Go(func() { c.pump(ToClient, c.client, c.server) })
	running.Wait()
	_ = c.client.Close()
	_ = c.server.Close()
}

// abort resets both sides.
func (c *pair) abort() {
	c.once.Do(func() {
		reset(c.client)
		reset(c.server)
		close(c.cut) // last: run would close them in order
	})
}

// reset closes a connection such that the peer is told of a failure. A unix
// socket has no reset: its peer reads the end, or fails if bytes are unread.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pump carries one direction. All that src says, its end included, waits for
// the direction. That dst takes nothing more is no reason to end: if dst is
// gone, the other direction reads so, after the last words of dst; and if only
// this way to it is closed, the other one flows on.
func (c *pair) pump(d Direction, dst, src halfCloser) {
	buf := make([]byte, bufferSize)
	for {
		n, err := src.Read(buf)
		if !c.pass(d) {
			return
		}
		_, _ = dst.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			_ = dst.CloseWrite()
			return
		}
		if err != nil {
			c.abort()
			return
		}
	}
}

// pass waits until what has just been read may go on in a direction, and says
// no if the connection is cut before that.
func (c *pair) pass(d Direction) bool {
	if delay := c.proxy.way(d).delay; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-c.cut:
			return false
		case <-timer.C:
		}
	}
	select {
	case <-c.cut:
		return false
	case <-c.proxy.way(d).flowing:
		return true
	}
}
