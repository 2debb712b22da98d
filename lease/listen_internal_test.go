package lease

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal that came to nothing goes to another, and only to one who waits for
// the same.
func TestSignals(t *testing.T) {
	db := new(sql.DB)
	for _, taken := range []bool{true, false} {
		var ended bool
		h := &hub{db: db, end: func() { ended = true }, listening: true, waiters: make(map[string][]*waiter)}
		hubs.byHandle[db] = h
		a, b, c, other := joinHub(db, "r"), joinHub(db, "r"), joinHub(db, "r"), joinHub(db, "s")
		for _, w := range []*waiter{a, b, c, other} {
			<-w.signal // each looks once, as the hub had begun before it came
		}
		h.wake("r")
		<-a.signal
		a.leave(taken)
		require.Len(t, b.signal, map[bool]int{true: 0, false: 1}[taken])
		require.Empty(t, c.signal)
		require.Empty(t, other.signal)
		h.wake("nobody's")
		for _, w := range []*waiter{b, c, other} {
			require.False(t, ended)
			w.leave(true)
		}
		require.True(t, ended)
		require.Empty(t, hubs.byHandle)
	}
}

// A look that takes long ends the listening, one that doesn't leaves it.
func TestWatch(t *testing.T) {
	ended := make(chan struct{})
	w := &waiter{hub: &hub{end: func() { close(ended) }}}
	require.True(t, w.endListeningAfter(time.Hour)())
	stop := w.endListeningAfter(time.Nanosecond)
	<-ended
	require.False(t, stop())
	require.True(t, (*waiter)(nil).endListeningAfter(0)())
}
