package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is how long nothing is to arrive; late is the end of patience.
const (
	soon = 50 * time.Millisecond
	late = 10 * time.Second
)

// bed is a proxy and the listener that it leads to.
type bed struct {
	t     *testing.T
	proxy *Proxy
	back  net.Listener
}

func newBed(t *testing.T, network, addr string) *bed {
	t.Helper()
	back, err := net.Listen(network, addr)
	require.NoError(t, err)
	p, err := Listen(back.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Close()
		require.NoError(t, back.Close())
	})
	return &bed{t: t, proxy: p, back: back}
}

// each runs a test with a target of each kind.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Run("tcp", func(t *testing.T) { test(t, newBed(t, "tcp", "127.0.0.1:0")) })
	t.Run("unix", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "proxy") //nolint:usetesting // t.TempDir may be too long for a socket
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		test(t, newBed(t, "unix", filepath.Join(dir, "s")))
	})
}

// connect returns both ends of a new connection.
func (b *bed) connect() (client, server halfCloser) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.proxy.Addr())
	require.NoError(b.t, err)
	s, err := b.back.Accept()
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
	})
	require.NoError(b.t, errors.Join(c.SetDeadline(time.Now().Add(late)), s.SetDeadline(time.Now().Add(late))))
	return c.(halfCloser), s.(halfCloser)
}

// ends returns the connection from where a direction begins, and its other end.
func (b *bed) ends(d Direction) (from, to halfCloser) {
	b.t.Helper()
	client, server := b.connect()
	if d == ToServer {
		return client, server
	}
	return server, client
}

func (b *bed) send(c net.Conn, text string) {
	b.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(b.t, err)
}

func (b *bed) requireGets(c net.Conn, text string) {
	b.t.Helper()
	buf := make([]byte, len(text))
	_, err := io.ReadFull(c, buf)
	require.NoError(b.t, err)
	require.Equal(b.t, text, string(buf))
}

func (b *bed) requirePasses(from, to net.Conn, text string) {
	b.t.Helper()
	b.send(from, text)
	b.requireGets(to, text)
}

func (b *bed) requireSilent(c net.Conn) {
	b.t.Helper()
	require.NoError(b.t, c.SetReadDeadline(time.Now().Add(soon)))
	n, err := c.Read(make([]byte, 1))
	require.ErrorIs(b.t, err, os.ErrDeadlineExceeded)
	require.Zero(b.t, n)
	require.NoError(b.t, c.SetReadDeadline(time.Now().Add(late)))
}

func (b *bed) requireEnd(c net.Conn) {
	b.t.Helper()
	rest, err := io.ReadAll(c)
	require.NoError(b.t, err)
	require.Empty(b.t, rest)
}

// requireFailed takes a reset, or the end alone where there are no resets.
func (b *bed) requireFailed(c net.Conn) {
	b.t.Helper()
	_, err := io.Copy(io.Discard, c)
	if _, tcp := c.(*net.TCPConn); tcp {
		require.ErrorIs(b.t, err, syscall.ECONNRESET)
	}
	require.NotErrorIs(b.t, err, os.ErrDeadlineExceeded)
}

func (b *bed) requireConns(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.proxy.Conns() == n }, late, time.Millisecond)
}

var names = map[Direction]string{ToServer: "to server", ToClient: "to client"}

// directions runs a test with each direction and each kind of target.
func directions(t *testing.T, test func(t *testing.T, b *bed, d Direction)) {
	for d, name := range names {
		t.Run(name, func(t *testing.T) { each(t, func(t *testing.T, b *bed) { test(t, b, d) }) })
	}
}

// A peer that has sent all it has to say still gets the rest of the answer.
func TestPassesHalfClose(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.requirePasses(from, to, "question")
		b.requireConns(1)
		require.NoError(t, from.CloseWrite())
		b.requireEnd(to)
		b.requirePasses(to, from, "the")
		b.requirePasses(to, from, "answer")
		require.NoError(t, to.CloseWrite())
		b.requireEnd(from)
		b.requireConns(0)
	})
}

// What a side says last arrives, although the other one writes on into nothing.
func TestPassesLastWords(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.proxy.Hold(d)
		b.send(from, "terminating")
		require.NoError(t, from.Close())
		for range 3 {
			b.send(to, "more")
			time.Sleep(soon / 10)
		}
		b.proxy.Resume(d)
		b.requireGets(to, "terminating")
		require.NoError(t, to.Close())
		b.requireConns(0)
	})
}

func TestPassesReset(t *testing.T) {
	b := newBed(t, "tcp", "127.0.0.1:0")
	for d := range names {
		from, to := b.ends(d)
		b.requirePasses(from, to, "x")
		reset(from)
		b.requireFailed(to)
		b.requireConns(0)
	}
}

func TestHold(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.requirePasses(from, to, "before")
		b.proxy.Hold(d)
		b.proxy.Hold(d)
		from2, to2 := b.ends(d)
		b.send(from, "held")
		b.send(from2, "held")
		require.NoError(t, from.CloseWrite())
		b.requireSilent(to)
		b.requireSilent(to2)
		b.requirePasses(to, from, "the other direction")
		b.requirePasses(to2, from2, "the other direction")
		b.proxy.Resume(d)
		b.proxy.Resume(d)
		b.requireGets(to, "held")
		b.requireEnd(to)
		b.requireGets(to2, "held")
		b.requirePasses(from2, to2, "after")
	})
}

func TestHoldBoth(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.proxy.Hold(Both)
		client, server := b.connect()
		b.send(client, "x")
		b.send(server, "y")
		b.requireSilent(server)
		b.requireSilent(client)
		b.proxy.Resume(ToServer)
		b.requireGets(server, "x")
		b.requireSilent(client)
		b.proxy.Resume(Both)
		b.requireGets(client, "y")
	})
}

// A sender into a held direction is stopped, not swallowed, and loses nothing.
func TestHoldIsBounded(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.proxy.Hold(d)
		const tooMuch = 64 << 20
		require.NoError(t, from.SetWriteDeadline(time.Now().Add(4*soon)))
		n, err := from.Write(make([]byte, tooMuch))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, from.CloseWrite())
		b.proxy.Resume(d)
		got, err := io.Copy(io.Discard, to)
		require.NoError(t, err)
		require.EqualValues(t, n, got)
	})
}

func TestDelay(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.proxy.Delay(d, 8*soon)
		sent := time.Now()
		b.send(from, "x")
		b.requirePasses(to, from, "the other direction")
		b.requireSilent(to)
		b.requireGets(to, "x")
		require.GreaterOrEqual(t, time.Since(sent), 8*soon)
		b.proxy.Delay(d, time.Hour)
		b.send(from, "never")
		b.requireSilent(to)
		b.proxy.Delay(Both, 0)
		from2, to2 := b.ends(d)
		b.requirePasses(from2, to2, "at once")
		b.proxy.Cut()
		b.requireConns(0) // the hour is over
	})
}

func TestCut(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		client, server := b.connect()
		b.proxy.Hold(Both)
		client2, server2 := b.connect()
		b.send(client2, "held")
		b.requireConns(2)
		b.proxy.Cut()
		for _, c := range []net.Conn{client, server, client2, server2} {
			b.requireFailed(c)
		}
		b.requireConns(0)
		b.proxy.Resume(Both)
		client, server = b.connect()
		b.requirePasses(client, server, "anew")
	})
}

func TestHalfClose(t *testing.T) {
	directions(t, func(t *testing.T, b *bed, d Direction) {
		from, to := b.ends(d)
		b.requirePasses(from, to, "x")
		b.proxy.Hold(d)
		b.send(from, "held")
		b.proxy.HalfClose(d)
		b.requireEnd(to)
		b.requirePasses(to, from, "the other direction")
		b.proxy.Resume(d)
		b.send(from, "into nothing")
		b.requirePasses(to, from, "flows on")
		from2, to2 := b.ends(d)
		b.requirePasses(from2, to2, "a new connection")
		require.NoError(t, to.Close())
		b.requireEnd(from)
		require.NoError(t, from.Close())
		b.requireConns(1)
	})
}

func TestHalfCloseBoth(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		client, server := b.connect()
		b.requireConns(1)
		b.proxy.HalfClose(Both)
		b.requireEnd(client)
		b.requireEnd(server)
		require.Equal(t, 1, b.proxy.Conns())
		require.NoError(t, errors.Join(client.Close(), server.Close()))
		b.requireConns(0)
	})
}

func TestSetTarget(t *testing.T) {
	b := newBed(t, "tcp", "127.0.0.1:0")
	other := newBed(t, "tcp", "127.0.0.1:0")
	client, server := b.connect()
	b.requirePasses(client, server, "x")
	b.proxy.SetTarget(other.back.Addr().String())
	b.requireFailed(client)
	b.requireFailed(server)

	b.back, other.back = other.back, b.back
	client, server = b.connect()
	b.requirePasses(client, server, "y")

	b.proxy.SetTarget(filepath.Join(t.TempDir(), "none"))
	c, err := net.Dial("tcp", b.proxy.Addr())
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET) // already
		return
	}
	defer c.Close()
	b.requireFailed(c)
}

func TestClose(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.proxy.Hold(ToServer)
		b.proxy.Delay(ToClient, time.Hour)
		client, server := b.connect()
		b.send(client, "held")
		b.send(server, "delayed")
		b.requireConns(1)
		b.proxy.Close()
		require.Zero(t, b.proxy.Conns())
		b.requireFailed(client)
		b.requireFailed(server)
		_, err := net.Dial("tcp", b.proxy.Addr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		b.proxy.Close()
	})
}
