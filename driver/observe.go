package driver

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
)

// Observer is told of what happens on handles that others have opened, such as a
// test's application. Its functions run as those of [WithReporter] and [WithHooks]
// do; any may be nil.
type Observer struct {
	// Tables is called with the tables that a handle holds at level report or
	// enforce, when the handle is first heard of and when they have changed.
	Tables func([]rewrite.Table)
	// Event is called as a reporter is.
	Event func(context.Context, Event)
	// After is called as [Hooks.After] is, with the caller's line in the operation.
	After func(context.Context, Operation, error)
}

// Observe has an observer told of every fencerow handle of the process, those
// that are open already too, until stop is called. It is made for tests; package
// lint rests on it.
func Observe(o Observer) (stop func()) { return everywhere.add(o) }

// ObserveDB is [Observe] for one handle. The error says that it isn't
// fencerow's.
func ObserveDB(db *sql.DB, o Observer) (stop func(), err error) {
	d, ok := db.Driver().(*Driver)
	if !ok || d.connector == nil {
		return nil, errors.New("fencerow: the handle is not one of fencerow's: open it with sql.Open(\"fencerow\", dsn) or driver.Open")
	}
	return d.connector.observers.add(o), nil
}

// observers are the observers of one handle or of all.
type observers struct {
	mu      sync.Mutex
	present atomic.Pointer[[]*observer] // never changed in place
}

// observer is an observer with what it was told of.
type observer struct {
	Observer
	protections sync.Map // weak pointers, since it may outlive many handles
}

// everywhere has the observers of all handles.
var everywhere observers

func (l *observers) add(o Observer) (stop func()) {
	own := &observer{Observer: o}
	l.change(func(list []*observer) []*observer { return append(list, own) })
	return func() {
		l.change(func(list []*observer) []*observer {
			return slices.DeleteFunc(list, func(x *observer) bool { return x == own })
		})
	}
}

func (l *observers) change(f func([]*observer) []*observer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := f(slices.Clone(l.list()))
	if len(list) == 0 {
		l.present.Store(nil)
		return
	}
	l.present.Store(&list)
}

func (l *observers) list() []*observer {
	if list := l.present.Load(); list != nil {
		return *list
	}
	return nil
}

// observed reports whether an operation is to be told of.
func (c *Connector) observed() bool {
	return len(c.settings.hooks) > 0 || c.observers.present.Load() != nil || everywhere.present.Load() != nil
}

// before tells the hooks of an operation that is about to be sent.
func (c *Connector) before(ctx context.Context, op Operation) { c.settings.before(ctx, op) }

// after tells the observers and the hooks of an operation that was sent.
func (c *Connector) after(ctx context.Context, op Operation, err error) {
	c.tellTables()
	for _, list := range []*observers{&everywhere, &c.observers} {
		for _, o := range list.list() {
			if o.After == nil {
				continue
			}
			if op.Location == "" {
				op.Location = c.settings.caller()
			}
			o.After(ctx, op, err)
		}
	}
	c.settings.after(ctx, op, err)
}

// tell tells the reporters and the observers of an event.
func (c *Connector) tell(ctx context.Context, e Event) { c.tellOf(ctx, "", e) }

// tellOf is tell for an event that concerns a statement.
func (c *Connector) tellOf(ctx context.Context, sql string, e Event) {
	c.tellTables()
	for _, report := range c.settings.reporters {
		report(ctx, e)
	}
	for _, list := range []*observers{&everywhere, &c.observers} {
		for _, o := range list.list() {
			if o.Event == nil {
				continue
			}
			if e.SQL == "" && sql != "" && e.Rule != rewrite.SessionState { // its literals may be others to the server
				e.SQL = check.Redact(sql)
			}
			o.Event(ctx, e)
		}
	}
}

// tellTables tells the observers of the handle's tables, unless they know.
func (c *Connector) tellTables() {
	for _, list := range []*observers{&everywhere, &c.observers} {
		for _, o := range list.list() {
			p := c.current.Load()
			if o.Tables == nil || p == nil {
				continue
			}
			if _, known := o.protections.LoadOrStore(weak.Make(p), true); !known {
				o.Tables(p.Held())
			}
		}
	}
}

// told reports whether anybody hears of events.
func (c *Connector) told() bool {
	return len(c.settings.reporters) > 0 || c.observers.present.Load() != nil || everywhere.present.Load() != nil
}
