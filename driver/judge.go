package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"slices"

	"github.com/fencerow/fencerow/internal/aftermath"
	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// meantByMain returns how many rows the statement's own write found, 0 if that isn't
// known.
func (s *statement) meantByMain(first []sqldriver.Value, counts check.Counts) int64 {
	return aftermath.MeantByMain(s.plan.Parts(), first, counts)
}

// leastRows is how many rows of a statement tell that its own write left none out.
func (s *statement) leastRows() int { return aftermath.LeastRows(s.plan.Parts(), s.length) }

// length returns the length of the array that is bound to a placeholder.
func (s *statement) length(placeholder int64) (int64, bool) {
	if placeholder < 1 || placeholder > int64(len(s.bound)) {
		return 0, false
	}
	return aftermath.Length(s.bound[placeholder-1].Value)
}

// isOpen reports whether something is to be found out about a part whose count is known,
// of a statement whose own write has as many rows as it needs.
func (s *statement) isOpen(first []sqldriver.Value, counts check.Counts) bool {
	wrote := aftermath.Wrote(s.plan.Parts(), aftermath.Unknown, first, counts)
	for i, part := range s.plan.Parts() {
		least := max(1, part.Expects(s.length), part.AtMost(s.length), aftermath.MeantBy(i, first, counts))
		if !part.IsMain && part.Compares && wrote[i] < least {
			return true
		}
	}
	return false
}

// judge returns the error of the first part of a statement that was stale, replayed or
// can't be told about.
func (c *Conn) judge(ctx context.Context, s *statement, n int64, first []sqldriver.Value, counts check.Counts) error {
	wrote := aftermath.Wrote(s.plan.Parts(), n, first, counts)
	for i, part := range s.plan.Parts() {
		if !part.Compares || c.needNotAsk(&part) {
			continue
		}
		token, _ := c.token(ctx, part.Table())
		o := &outcome{conn: c, statement: s, part: &part, index: i, token: token, wrote: wrote[i], expects: part.Expects(s.length), atMost: part.AtMost(s.length), meant: aftermath.MeantBy(i, first, counts)}
		o.isKnown = o.wrote != aftermath.Unknown || c.isInTransaction()
		o.isAlone = !part.IsBeside(n)
		for j := range wrote {
			o.isAlone = o.isAlone && (j == i || wrote[j] == 0)
		}
		if err := o.explain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what is found out about one part of a statement.
type outcome struct {
	conn      *Conn
	statement *statement
	part      *check.Part
	index     int
	token     tokenctx.Token
	wrote     int64 // rows, or aftermath.Unknown
	expects   int64 // rows that it writes unless its guard leaves some out, 0 if that isn't known
	atMost    int64 // rows that it writes if its source has none that it does nothing for, 0 if that isn't known
	meant     int64 // rows that it found when it began, 0 if that isn't known
	isKnown   bool  // a newer token that is found now was there when the part was run
	isAlone   bool  // the statement writes nothing else
}

// explain finds out why rows are missing, if any are.
func (o *outcome) explain(ctx context.Context) error {
	switch {
	case o.wrote == 0, o.wrote == aftermath.Unknown:
		return o.explainNone(ctx)
	case o.wrote < o.expects:
		return o.explainFewer(ctx)
	case o.wrote < o.meant, o.wrote < o.atMost, o.expects+o.meant+o.atMost == 0 && (o.conn.connector.settings.partial || o.isUncounted()):
		return o.explainPart(ctx)
	}
	return nil
}

// isUncounted reports whether fencerow has guarded the part, which may have left rows
// out, and nothing has counted them. A stand-in for pgx counts nothing, and isn't asked.
func (o *outcome) isUncounted() bool {
	return o.conn.std != nil && o.meant == 0 && o.statement.plan.Rewritten() && o.part.MayLeaveOut()
}

// isUncounted reports whether that may be so of a part of the statement.
func (s *statement) isUncounted(first []sqldriver.Value, counts check.Counts) bool {
	if !s.plan.Rewritten() {
		return false
	}
	for i, part := range s.plan.Parts() {
		if part.MayLeaveOut() && aftermath.MeantBy(i, first, counts)+part.Expects(s.length)+part.AtMost(s.length) == 0 {
			return true
		}
	}
	return false
}

// explainNone asks why a guarded write changed no row. It returns the error for a stale
// or replayed token, and nil only where it is certain that no newer holder was in the
// way.
func (o *outcome) explainNone(ctx context.Context) error {
	c := o.conn
	var current int64
	isFound := false
	last := -1
	questions := o.statement.plan.Looks()[o.index].Highest
	err := c.ask(ctx, o.statement, o.token, probesOf(questions), func(i int, value sqldriver.Value) bool {
		last = i
		current, isFound = value.(int64) // NULL: no such row by this condition
		return isFound && current > int64(o.token)
	})
	isByKey := last >= 0 && questions[last].ByKey
	isOne := slices.ContainsFunc(questions, func(q check.Question) bool { return q.ByKey && !q.Several })
	o.isAlone = o.isAlone && (o.wrote == 0 || isOne) // else it may have written other rows
	isNewer, isSame := isFound && current > int64(o.token), isFound && current == int64(o.token)
	switch {
	case err != nil && o.wrote == 0 && o.expects > 0 && !o.part.Replays:
		return o.stale(ctx, 0, false) // by the count alone
	case err != nil:
		return o.undetermined(err)
	case isNewer && !o.isKnown:
		return o.undetermined(errors.New("a row carries a newer token now, and may have been written before that"))
	case isNewer && last > 0 && questions[last].Several && o.lease(ctx).isHeld:
		return nil // another lease's row, which another condition of the statement leaves out
	case isNewer:
		return o.stale(ctx, current, false)
	case isSame && o.part.Replays && o.wrote == 0:
		return o.replay(ctx)
	case o.wrote == 0 && o.expects > 0 && !o.part.Replays:
		return o.stale(ctx, 0, false)
	case o.wrote == 0 && o.expects > 0:
		return o.undetermined(errors.New("the rows carry a newer token, or this one already"))
	case isByKey && isFound:
		return nil
	}
	return o.askLock(ctx, isByKey)
}

// explainFewer tells of a write that has several rows to write and wrote some.
func (o *outcome) explainFewer(ctx context.Context) error {
	missing := o.expects - o.wrote
	partial := &PartialError{Table: o.part.Table().String(), Token: o.token, Applied: o.wrote, Stale: missing}
	if !o.part.Replays {
		return o.rejected(ctx, EventStale, partial)
	}
	newer, err := o.countNewer(ctx)
	if err != nil {
		return o.undetermined(err)
	}
	partial.Stale = min(newer, missing)
	partial.Replayed = missing - partial.Stale
	if partial.Stale == 0 {
		return o.rejected(ctx, EventReplay, partial)
	}
	return o.rejected(ctx, EventStale, partial)
}

// explainPart asks whether a guarded write that changed some rows left others out for a
// newer token.
func (o *outcome) explainPart(ctx context.Context) error {
	newer, err := o.countNewer(ctx)
	switch {
	case errors.Is(err, errNoQuestion) && (o.meant > 0 || o.isUncounted() || o.conn.connector.settings.partial && o.part.MayLeaveOut()):
		return o.askLock(ctx, false)
	case errors.Is(err, errNoQuestion):
		return nil
	case err != nil:
		return o.undetermined(err)
	case newer == 0:
		return nil
	case o.meant > 0:
		newer = min(newer, o.meant-o.wrote) // some may have become so since
	}
	return o.rejected(ctx, EventStale, &PartialError{Table: o.part.Table().String(), Token: o.token, Applied: o.wrote, Stale: newer})
}

// countNewer counts the rows that the part meant and that carry a newer token.
func (o *outcome) countNewer(ctx context.Context) (newer int64, err error) {
	counts := o.statement.plan.Looks()[o.index].Newer
	if len(counts) == 0 {
		return 0, errNoQuestion
	}
	err = o.conn.ask(ctx, o.statement, o.token, counts, func(_ int, value sqldriver.Value) bool {
		newer, _ = value.(int64)
		return newer > 0
	})
	return newer, err
}

func (o *outcome) stale(ctx context.Context, current int64, isSealed bool) error {
	return o.rejected(ctx, EventStale, &StaleError{Table: o.part.Table().String(), Token: o.token, Current: tokenctx.Token(current), Sealed: isSealed})
}

func (o *outcome) replay(ctx context.Context) error {
	return o.rejected(ctx, EventReplay, &ReplayError{Table: o.part.Table().String(), Token: o.token})
}

// rejected notes the outcome, and returns the error unless the table is one
// that is only reported. The lock's holder hears of a stale token only where the
// caller does.
func (o *outcome) rejected(ctx context.Context, kind EventKind, err error) error {
	c, table := o.conn, o.part.Table()
	if kind == EventStale {
		o.nameLease(ctx, err)
	}
	c.outcome(ctx, kind, table.String(), err)
	if c.onlyReports(o.part) {
		return nil
	}
	if kind == EventStale {
		c.reportStale(ctx, table.Resource, o.token)
	}
	if !o.isAlone {
		return &besideError{err}
	}
	return err
}

// nameLease adds to an error the lease that the token comes from, if nobody has taken
// that since: then the newer token is none of its next holder's.
func (o *outcome) nameLease(ctx context.Context, err error) {
	var stale *StaleError
	if isStale := errors.As(err, &stale); isStale && stale.Sealed {
		return
	}
	lease := o.lease(ctx)
	if !lease.isHeld {
		return
	}
	var partial *PartialError
	if stale != nil {
		stale.Lease = lease.resource
	} else if errors.As(err, &partial) {
		partial.Lease = lease.resource
	}
}

// undetermined returns the error of a write whose outcome can't be told, and why.
func (o *outcome) undetermined(cause error) error {
	if o.conn.onlyReports(o.part) {
		return nil
	}
	return &undeterminedError{table: o.part.Table().String(), token: o.token, wrote: o.wrote, cause: cause}
}

// reportStale tells whoever holds the lock that a token came from, by the
// context that carried it: the statement's, or that of its transaction's BEGIN.
func (c *Conn) reportStale(ctx context.Context, resource string, token tokenctx.Token) {
	tokenctx.ReportStale(c.tokenContext(ctx, resource), resource, token)
}

// tokenContext returns the context that carries the token of a resource: the
// statement's, or that of its transaction's BEGIN.
func (c *Conn) tokenContext(ctx context.Context, resource string) context.Context {
	if _, own := (&rewrite.Table{Resource: resource}).Token(ctx); !own {
		if tx := c.bound(); tx != nil {
			return tx.ctx
		}
	}
	return ctx
}

// needNotAsk reports whether nobody would hear the answer of a probe.
func (c *Conn) needNotAsk(part *check.Part) bool {
	return !c.connector.told() && c.onlyReports(part)
}

// onlyReports reports whether the tables that a part may write are only reported. Their
// name may stand for several.
func (c *Conn) onlyReports(part *check.Part) bool {
	return !slices.ContainsFunc(part.Writes, func(w rewrite.Write) bool { return !c.view.Reports(w.Table) })
}

// isInTransaction reports whether the session is in a transaction, whose writes nobody
// else can have changed yet.
func (c *Conn) isInTransaction() bool {
	return c.std != nil && c.std.Conn().PgConn().TxStatus() == 'T'
}
