package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

// leaseState is what the database says of the lease that a token comes from. Where
// nothing is known of it, all but the resource is zero.
type leaseState struct {
	resource string         // "" if no lease is known that the token might come from
	isGone   bool           // the database has no lease of the resource
	isHeld   bool           // nobody has taken it since
	takenBy  tokenctx.Token // the newer token under which it was taken since; 0 if it wasn't
}

// leaseQuery reads the token under which a lease was taken last, NULL if there is none.
const leaseQuery = `SELECT pg_catalog.max(token) FROM fencing.lease WHERE resource OPERATOR(pg_catalog.=) $1::pg_catalog.text`

// lease reads the lease that the part's token comes from, if it comes from one in this
// database: that of the table's resource, or the one whose context carried the token.
func (o *outcome) lease(ctx context.Context) leaseState {
	c, resource := o.conn, o.part.Table().Resource
	if resource == "" {
		resource, _ = tokenctx.ResourceOf(c.tokenContext(ctx, ""), o.token)
	}
	if resource == "" || c.std == nil || c.view.IssuesElsewhere(o.part.Table()) {
		return leaseState{}
	}
	var current int64
	isGone := false
	question := check.Probe{SQL: leaseQuery}
	err := c.askWith(ctx, []check.Probe{question}, func(check.Probe) ([]sqldriver.NamedValue, bool) {
		return []sqldriver.NamedValue{{Ordinal: 1, Value: resource}}, true
	}, func(_ int, value sqldriver.Value) bool {
		current, _ = value.(int64)
		isGone = value == nil
		return true
	})
	state := leaseState{resource: resource, isGone: isGone}
	switch {
	case err != nil: // there are no leases in this database, or they can't be read
	case current > int64(o.token):
		state.takenBy = tokenctx.Token(current)
	default:
		state.isHeld = current == int64(o.token)
	}
	return state
}

// askLock tells a part that changed no row from one that a newer holder was in the way
// of, where the rows themselves don't: by the lease, if the token is one's, and else by
// whether any row of the table carries a newer token. No such row by a key is an answer
// unless the lease says otherwise.
func (o *outcome) askLock(ctx context.Context, isMissing bool) error {
	lease := o.lease(ctx)
	switch {
	case lease.takenBy > 0 && (!o.isKnown || o.wrote > 0):
		return o.undetermined(errors.New("its lease was taken under token " + lease.takenBy.String() + " since"))
	case lease.takenBy > 0:
		return o.stale(ctx, int64(lease.takenBy), true)
	case lease.isHeld, isMissing:
		return nil
	}
	isAnywhere := false
	err := o.conn.ask(ctx, o.statement, o.token, []check.Probe{o.statement.plan.Looks()[o.index].Anywhere}, func(_ int, value sqldriver.Value) bool {
		found, isAnswer := value.(bool)
		isAnywhere = found || !isAnswer
		return true
	})
	switch {
	case err != nil:
		return o.undetermined(err)
	case isAnywhere && lease.isGone:
		return o.undetermined(fmt.Errorf("fencing.lease has no row of %q: it was deleted, or the token is none of a lease in this database", lease.resource))
	case isAnywhere:
		return o.undetermined(nil)
	}
	return nil
}
