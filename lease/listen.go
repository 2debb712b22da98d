package lease

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	listenSQL         = `LISTEN fencerow_lease` // fencing.release notifies it with the resource
	unlistenSQL       = `UNLISTEN fencerow_lease`
	listenMinPool     = 4                    // a smaller pool has no connection to spare for listening
	listenRetry       = time.Second          // after the first failure; twice as long after each further one
	listenMaxRetry    = time.Minute          // the longest of these pauses
	poolSizeInterval  = time.Second / 2      // between checks of the pool's size
	listenCallTimeout = time.Second          // bounds each call beside the waiting
	pollTimeout       = 15 * time.Second     // a poll that takes longer may need the hub's connection
	wakeJitter        = 2 * time.Millisecond // among the processes that are notified of one release
)

// directSQL shows whether there is a pooler in between: then the process id is not the
// one that was sent when the connection was made.
const directSQL = `SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()`

// hubs has the hub of each handle over which a taker waits.
var hubs = struct {
	sync.Mutex
	byHandle map[*sql.DB]*hub
}{byHandle: make(map[*sql.DB]*hub)}

// hub is the one connection of a handle that is notified of releases, for all takers
// who wait over the handle. It begins with the first of them and ends with the last. Its
// fields are under the lock of hubs.
type hub struct {
	db        *sql.DB
	end       context.CancelFunc
	listening bool
	waiters   map[string][]*waiter
}

// waiter is a taker who waits for a lease. A nil waiter only polls.
type waiter struct {
	hub      *hub
	resource string
	signal   chan struct{} // poll now; one signal is enough
}

// joinHub makes a waiter. Call its leave afterwards.
func joinHub(db *sql.DB, resource string) *waiter {
	hubs.Lock()
	defer hubs.Unlock()
	h := hubs.byHandle[db]
	if h == nil {
		ctx, end := context.WithCancel(context.Background())
		h = &hub{db: db, end: end, waiters: make(map[string][]*waiter)}
		hubs.byHandle[db] = h
		go h.run(ctx)
	}
	w := &waiter{hub: h, resource: resource, signal: make(chan struct{}, 1)}
	if h.listening {
		w.signal <- struct{}{} // it may have been released since the last poll
	}
	h.waiters[resource] = append(h.waiters[resource], w)
	return w
}

// leave ends the waiting. If the waiter did not take the lease, another one may: it
// is signaled, since the signal may have gone to this one.
func (w *waiter) leave(taken bool) {
	if w == nil {
		return
	}
	hubs.Lock()
	defer hubs.Unlock()
	h := w.hub
	left := slices.DeleteFunc(h.waiters[w.resource], func(other *waiter) bool { return other == w })
	h.waiters[w.resource] = left
	if len(left) == 0 {
		delete(h.waiters, w.resource)
	} else if !taken && h.listening {
		h.wake(w.resource)
	}
	if len(h.waiters) == 0 {
		delete(hubs.byHandle, h.db)
		h.end()
	}
}

// sleep waits until it is time to poll: after the pause, or shortly after a signal.
func (w *waiter) sleep(ctx context.Context, pause time.Duration) {
	var signal chan struct{}
	if w != nil {
		signal = w.signal
	}
	next := time.NewTimer(pause)
	defer next.Stop()
	select {
	case <-ctx.Done():
	case <-next.C:
	case <-signal:
		next.Reset(rand.N(wakeJitter))
		select {
		case <-ctx.Done():
		case <-next.C:
		}
	}
}

// endListeningAfter ends the hub for good if the poll that follows takes longer than
// timeout. Call stop when the poll is over. A poll that takes long may be waiting for a
// connection of a smaller pool under the handle, whose size the hub can't know; the
// hub's own connection is then the one that is missing.
func (w *waiter) endListeningAfter(timeout time.Duration) (stop func() bool) {
	if w == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(timeout, w.hub.end).Stop
}

// wake signals one of the waiters for a resource: only one can take the lease.
func (h *hub) wake(resource string) {
	if waiting := h.waiters[resource]; len(waiting) > 0 {
		select {
		case waiting[0].signal <- struct{}{}:
		default:
		}
		h.waiters[resource] = append(waiting[1:], waiting[0])
	}
}

// setListening notes whether the hub listens from now on. If it does, it wakes a waiter
// for each resource: of a release before that nobody was notified.
func (h *hub) setListening(listening bool) {
	hubs.Lock()
	defer hubs.Unlock()
	h.listening = listening
	if listening {
		for resource := range h.waiters {
			h.wake(resource)
		}
	}
}

func (h *hub) run(ctx context.Context) {
	retry := listenRetry
	for {
		listened, again := h.listen(ctx)
		if !again {
			return
		}
		if listened {
			retry = listenRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, listenMaxRetry)
	}
}

// listen listens until ctx ends or it fails, and returns whether it did and
// whether to try again.
func (h *hub) listen(ctx context.Context) (listened, again bool) {
	if ctx.Err() != nil || h.isPoolTooSmall() {
		return false, false
	}
	if !hasSpareConnections(h.db, 2) {
		return false, true
	}
	conn, err := takeConnection(ctx, h.db)
	if err != nil {
		return false, ctx.Err() == nil
	}
	defer conn.Close()
	if direct, err := isDirect(ctx, conn); err != nil || !direct {
		return false, err != nil && ctx.Err() == nil
	}
	another, err := takeConnection(ctx, h.db) // if a smaller pool is under the handle, polls would wait for the hub's connection
	if err != nil {
		return false, ctx.Err() == nil
	}
	_ = another.Close()
	defer unlisten(ctx, conn) // also where the answer was lost
	if _, err := conn.ExecContext(ctx, listenSQL); err != nil {
		return false, ctx.Err() == nil
	}
	h.setListening(true)
	defer h.setListening(false)
	ctx, ended := context.WithCancel(ctx)
	defer ended()
	go h.watchPoolSize(ctx)
	for {
		var resource string
		if err := conn.Raw(func(driverConn any) (err error) {
			resource, err = waitForNotification(ctx, driverConn)
			return err
		}); err != nil {
			return true, ctx.Err() == nil
		}
		hubs.Lock()
		h.wake(resource)
		hubs.Unlock()
	}
}

// watchPoolSize ends the hub for good if its pool is made too small for it. It returns
// when ctx ends.
func (h *hub) watchPoolSize(ctx context.Context) {
	tick := time.NewTicker(poolSizeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.isPoolTooSmall() {
			h.end()
			return
		}
	}
}

// isPoolTooSmall reports whether the pool has no connection to spare for a hub.
func (h *hub) isPoolTooSmall() bool {
	n := h.db.Stats().MaxOpenConnections
	return n > 0 && n < listenMinPool
}

// hasSpareConnections reports whether n connections can be taken from the pool without
// waiting.
func hasSpareConnections(db *sql.DB, n int) bool {
	s := db.Stats()
	return s.MaxOpenConnections == 0 || s.InUse+n <= s.MaxOpenConnections
}

// takeConnection takes a connection from the pool, and waits only a short time for one.
func takeConnection(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenCallTimeout)
	defer cancel()
	return db.Conn(ctx)
}

// isDirect reports whether LISTEN works on a connection: the driver must yield
// notifications, the server be a primary, and no pooler be in between, which would give
// the session to others.
func isDirect(ctx context.Context, conn *sql.Conn) (bool, error) {
	var sent uint32
	if err := conn.Raw(func(driverConn any) error {
		sent = backendPID(driverConn)
		return nil
	}); err != nil || sent == 0 {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, listenCallTimeout)
	defer cancel()
	var (
		pid     int64
		standby bool
	)
	err := conn.QueryRowContext(ctx, directSQL).Scan(&pid, &standby)
	return pid == int64(sent) && !standby, err
}

// unlisten undoes LISTEN in a session that goes back to the pool. If that fails, it
// makes the pool close the connection.
func unlisten(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenCallTimeout)
	defer cancel()
	_, err := conn.ExecContext(ctx, unlistenSQL)
	_ = conn.Raw(func(driverConn any) error {
		if err != nil {
			return sqldriver.ErrBadConn
		}
		dropNotifications(driverConn)
		return nil
	})
}
