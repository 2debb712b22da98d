package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
)

// within is what a transaction has come to that called or fired what changes the
// catalog. Others don't see that before it is committed, so the transaction
// looks for itself: what it sends is judged by what all know, and by this, too.
type within struct {
	unread bool          // something may have changed since the last look
	makes  bool          // the transaction itself may have changed something
	after  int64         // how many changes the handle had made by then
	policy *check.Policy // of the enforced tables by that look; nil if nothing had changed
	stamp  string        // of the catalogs then
	at     gate.Reading  // and of the registry
}

// noteMakers notes that a text is about to be sent which may use what changes the
// catalog.
func (c *Conn) noteMakers(sql string, makes bool) {
	if c.std == nil {
		return
	}
	if !c.session.MakesNow(sql, makes, c.within != nil) {
		return
	}
	c.changes = true
	if c.within == nil {
		c.within = &within{after: c.begun}
	}
	c.within.unread, c.within.makes = true, true
}

// lookWithin looks at the catalog as the open transaction sees it, if the
// transaction may have changed it.
func (c *Conn) lookWithin(ctx context.Context, sql string) error {
	if c.std == nil {
		return nil
	}
	c.noteBegun()
	isChanged := c.connector.looking.due.Load() == 0 // maybe by another connection of the handle
	if c.within == nil && (!isChanged || gate.SetsTransaction.MatchString(sql)) {
		return nil
	}
	changes := c.connector.looking.changes.Load()
	if c.within == nil {
		c.within = &within{unread: true}
	}
	c.within.unread = c.within.unread || c.within.after != changes
	pg := c.std.Conn().PgConn()
	switch status := pg.TxStatus(); {
	case pg.IsClosed() || pg.IsBusy():
		return nil // the inner connection says so itself
	case status == 'I':
		return c.refresh(ctx)
	case status != 'T' || !c.within.unread:
		return nil // in a transaction that has failed the server refuses whatever comes
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if c.begun != changes {
		if err := c.lookBeyond(bounded, sql); err != nil {
			return err
		}
	}
	if err := c.within.read(bounded, c); err != nil {
		return fmt.Errorf("fencerow: this handle has called what may have changed the catalog, so it is looked at before anything else is sent: %w", err)
	}
	c.within.unread, c.within.after = false, changes
	return nil
}

// noteBegun notes how many changes the handle had made while no transaction is open: if
// one begins, its snapshot has them.
func (c *Conn) noteBegun() {
	if pg := c.std.Conn().PgConn(); !pg.IsBusy() && pg.TxStatus() == 'I' {
		c.begun = c.connector.looking.changes.Load()
	}
}

// lookBeyond has another connection look at what the handle has changed if the open
// transaction may not see that: its queries read an older snapshot, but PostgreSQL
// plans its statements by the newest catalog. What the transaction itself has
// changed is seen by none of the two together with that, so then it has to end.
func (c *Conn) lookBeyond(ctx context.Context, sql string) error {
	answer, err := c.connector.askOwn(ctx, c.std.Conn(), "SELECT pg_catalog.current_setting('transaction_isolation')")
	if err != nil {
		return fmt.Errorf("fencerow: another connection of this handle has changed the catalog, so it is looked at before anything else is sent: %w", err)
	}
	if level := answer.rows[0][0]; level != "repeatable read" && level != "serializable" {
		return nil
	}
	if c.within.makes {
		return c.refuse(ctx, sql, check.Refuse(rewrite.SessionState, "this transaction has called what may have changed the catalog, and so has another connection of the handle; its snapshot doesn't show both, so what a statement would write cannot be told: roll the transaction back, and begin it again"))
	}
	ctx, cancel := context.WithTimeout(ctx, beyondPatience) // a pool may have no connection left
	defer cancel()
	other, err := c.connector.Connect(ctx)
	if err != nil {
		return fmt.Errorf("fencerow: another connection of this handle has changed the catalog, which this transaction's snapshot doesn't show, so it is looked at over a new connection before anything else is sent: %w", err)
	}
	return other.Close()
}

// beyondPatience is with a connection that only looks.
const beyondPatience = 3 * time.Second

// read reads the catalog within the transaction, if it isn't what it was.
func (w *within) read(ctx context.Context, c *Conn) error {
	n, conn := c.connector, c.std.Conn()
	last := c.protection().Reading()
	now, stamp, err := n.stampNow(ctx, conn)
	if err != nil {
		return err
	}
	if now.Same(last) && stamp == last.Stamp {
		w.policy = nil
		return nil
	}
	answer, err := n.askOwn(ctx, conn, "SELECT ("+reach.ExactStampQuery+")")
	if err != nil {
		return err
	}
	if stamp = answer.rows[0][0]; w.policy != nil && w.stamp == stamp && now.Same(&w.at) {
		return nil
	}
	next := new(gate.Reading)
	tables, s, err := n.wanted(ctx, conn, next)
	if err != nil {
		return err
	}
	if _, _, err = n.describe(ctx, conn, tables, next, s); err != nil {
		return err
	}
	found, err := n.readCatalog(ctx, conn, tables, next.Allows)
	if err != nil {
		return err
	}
	w.policy, err = gate.EnforcedPolicy(tables, found, n.settings.guarded)
	w.stamp, w.at = stamp, now
	return err
}

// judge says what is wrong with a text by what the transaction has changed, if
// anything, and whether it may change more. The plan is the one by what all know.
func (w *within) judge(ctx context.Context, c *Conn, sql string, plan *check.Plan) (v *rewrite.Violation, makes bool, err error) {
	if w == nil || w.policy == nil {
		return nil, false, nil
	}
	own, err := c.meant(ctx, c.session.Under(w.policy).Plan(sql))
	if err != nil {
		return nil, false, err
	}
	switch {
	case len(own.Violations) > 0:
		return &own.Violations[0], own.Makes, nil
	case len(own.Writes()) != len(plan.Writes()), (own.Guarded() || own.Gated()) && c.text(own, sql) != c.text(plan, sql):
		return check.Refuse(rewrite.SessionState, "this transaction has called what changed the catalog, by which the statement writes other tables than before: commit the transaction first"), own.Makes, nil
	}
	return nil, own.Makes, nil
}
