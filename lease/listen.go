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
	listenSQL    = `LISTEN fencerow_lease` // fencing.release notifies it with the resource
	unlistenSQL  = `UNLISTEN fencerow_lease`
	listenPool   = 4                    // a pool with fewer connections has none to spare for it
	listenRetry  = time.Second          // after a failure that may pass; twice as long after each
	listenSeldom = time.Minute          // and no longer
	listenGuard  = time.Second / 2      // between looks at the pool's size
	listenCall   = time.Second          // bounds what is asked on the way
	lookPatience = 15 * time.Second     // a look that takes longer may need the connection
	wakeJitter   = 2 * time.Millisecond // among the processes that hear of the same release
)

// directSQL tells a server that is reached without a pooler in between from
// others, by the process id that was sent when the connection was made.
const directSQL = `SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()`

// hubs has the hub of each handle over which somebody waits.
var hubs = struct {
	sync.Mutex
	of map[*sql.DB]*hub
}{of: make(map[*sql.DB]*hub)}

// hub is the one connection of a handle that hears of releases, for all who
// wait over it. It begins with the first and ends with the last. Its fields
// are under the lock of hubs.
type hub struct {
	db        *sql.DB
	end       context.CancelFunc
	listening bool
	waiters   map[string][]*waiter
}

// waiter is one who waits for a lease. A nil one only polls.
type waiter struct {
	hub      *hub
	resource string
	signal   chan struct{} // look again; one is enough
}

// join makes a waiter, which must leave.
func join(db *sql.DB, resource string) *waiter {
	hubs.Lock()
	defer hubs.Unlock()
	h := hubs.of[db]
	if h == nil {
		ctx, end := context.WithCancel(context.Background())
		h = &hub{db: db, end: end, waiters: make(map[string][]*waiter)}
		hubs.of[db] = h
		go h.run(ctx)
	}
	w := &waiter{hub: h, resource: resource, signal: make(chan struct{}, 1)}
	if h.listening {
		w.signal <- struct{}{} // it may have been released since the last look
	}
	h.waiters[resource] = append(h.waiters[resource], w)
	return w
}

// leave ends the waiting. A signal that came to nothing goes to another.
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
		delete(hubs.of, h.db)
		h.end()
	}
}

// sleep waits until it is time to look: after a poll's pause, or shortly after
// a signal.
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

// watch is called before a look, and what it returns afterwards. A look that
// takes long may be waiting for the pool, whose real size the hub doesn't know
// if another pool is under it: then the hub lets its connection go for good.
func (w *waiter) watch(patience time.Duration) (stop func() bool) {
	if w == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(patience, w.hub.end).Stop
}

// wake has one of those who wait for a resource look: the others would find
// that one has it.
func (h *hub) wake(resource string) {
	if waiting := h.waiters[resource]; len(waiting) > 0 {
		select {
		case waiting[0].signal <- struct{}{}:
		default:
		}
		h.waiters[resource] = append(waiting[1:], waiting[0])
	}
}

// heard says whether the hub listens from now on. What was released before
// nobody has heard of.
func (h *hub) heard(listening bool) {
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
		retry = min(2*retry, listenSeldom)
	}
}

// listen listens until ctx ends or it fails, and returns whether it did and
// whether to try again.
func (h *hub) listen(ctx context.Context) (listened, again bool) {
	if ctx.Err() != nil || h.tooSmall() {
		return false, false
	}
	if !spare(h.db, 2) {
		return false, true
	}
	conn, err := connOf(ctx, h.db)
	if err != nil {
		return false, ctx.Err() == nil
	}
	defer conn.Close()
	if direct, err := isDirect(ctx, conn); err != nil || !direct {
		return false, err != nil && ctx.Err() == nil
	}
	another, err := connOf(ctx, h.db) // or the looks wait for this one, where a smaller pool is under the handle
	if err != nil {
		return false, ctx.Err() == nil
	}
	_ = another.Close()
	defer unlisten(ctx, conn) // also where the answer was lost
	if _, err := conn.ExecContext(ctx, listenSQL); err != nil {
		return false, ctx.Err() == nil
	}
	h.heard(true)
	defer h.heard(false)
	ctx, ended := context.WithCancel(ctx)
	defer ended()
	go h.guard(ctx)
	for {
		var resource string
		if err := conn.Raw(func(driverConn any) (err error) {
			resource, err = notification(ctx, driverConn)
			return err
		}); err != nil {
			return true, ctx.Err() == nil
		}
		hubs.Lock()
		h.wake(resource)
		hubs.Unlock()
	}
}

// guard ends the hub for good when its pool is made too small for it, and
// returns when ctx ends.
func (h *hub) guard(ctx context.Context) {
	tick := time.NewTicker(listenGuard)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.tooSmall() {
			h.end()
			return
		}
	}
}

// tooSmall says whether the pool has no connection to spare for a hub.
func (h *hub) tooSmall() bool {
	n := h.db.Stats().MaxOpenConnections
	return n > 0 && n < listenPool
}

// spare says whether the pool has connections left, n of them, so that nobody
// need wait for one.
func spare(db *sql.DB, n int) bool {
	s := db.Stats()
	return s.MaxOpenConnections == 0 || s.InUse+n <= s.MaxOpenConnections
}

// connOf takes a connection, if it is to be had soon.
func connOf(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenCall)
	defer cancel()
	return db.Conn(ctx)
}

// isDirect says whether LISTEN works: with a driver that yields notifications,
// on a primary, and not through a pooler, which gives the session to others.
func isDirect(ctx context.Context, conn *sql.Conn) (bool, error) {
	var sent uint32
	if err := conn.Raw(func(driverConn any) error {
		sent = backendPID(driverConn)
		return nil
	}); err != nil || sent == 0 {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, listenCall)
	defer cancel()
	var (
		pid     int64
		standby bool
	)
	err := conn.QueryRowContext(ctx, directSQL).Scan(&pid, &standby)
	return pid == int64(sent) && !standby, err
}

// unlisten leaves nothing in the session, which goes back to the pool, or has
// the pool throw it away.
func unlisten(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenCall)
	defer cancel()
	_, err := conn.ExecContext(ctx, unlistenSQL)
	_ = conn.Raw(func(driverConn any) error {
		if err != nil {
			return sqldriver.ErrBadConn
		}
		forget(driverConn)
		return nil
	})
}
