package driver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a handle has changed itself is read before its next statement, whichever
// connection that runs on.
func TestOwnChangesAreWaitedFor(t *testing.T) {
	var l looking
	at := func(now int64) func() int64 { return func() int64 { return now } }
	gone, cancel := context.WithCancel(t.Context())
	cancel()

	first := l.turn(t.Context(), at(1))
	require.NotNil(t, first, "nothing is known yet")
	require.Nil(t, l.turn(t.Context(), at(1)), "nobody waits for what others may have changed")
	l.end(first, 10, false)
	require.Nil(t, l.turn(t.Context(), at(9)))

	l.change()
	own := l.turn(t.Context(), at(9))
	require.NotNil(t, own)
	require.True(t, own.dirty)
	require.Nil(t, l.turn(gone, at(9)))
	waited := make(chan *look)
	go func() { waited <- l.turn(t.Context(), at(9)) }()
	l.change() // while the look is at work, which may not see it
	l.end(own, 20, false)
	if again := <-waited; again != nil { // it came after the end
		l.end(again, 20, false)
	} else {
		again = l.turn(t.Context(), at(9))
		require.True(t, again.dirty)
		l.end(again, 20, false)
	}
	require.Nil(t, l.turn(t.Context(), at(19)))

	l.change()
	failed := l.turn(t.Context(), at(19))
	l.end(failed, 25, true)
	require.Nil(t, l.turn(t.Context(), at(24)), "not at once")
	require.True(t, l.turn(t.Context(), at(25)).dirty, "what it was to read is still unread")
}

// A look that began before a change doesn't count for it.
func TestLookBeforeAChange(t *testing.T) {
	var l looking
	now := func() int64 { return 1 }
	old := l.turn(t.Context(), now)
	require.False(t, old.dirty)
	l.change()
	waited := make(chan *look)
	go func() { waited <- l.turn(t.Context(), now) }()
	l.end(old, 10, false)
	own := <-waited
	require.NotNil(t, own)
	require.True(t, own.dirty)
}
