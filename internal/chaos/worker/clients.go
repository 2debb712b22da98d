package worker

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/tokenctx"
)

// The longest rests.
const (
	afterOp      = 6 * time.Millisecond
	afterFailure = 60 * time.Millisecond
	afterBurst   = 60 * time.Millisecond
)

// mostFailures in a row have a holder give up.
const mostFailures = 25

// believe takes a lease and works in a context that doesn't end with it: the
// program that was paused, and still believes.
func (c *client) believe(ctx context.Context) {
	c.withLease(ctx, func(l *lease.Lease, token tokenctx.Token) context.Context {
		return tokenctx.With(tokenctx.WithResource(context.WithoutCancel(ctx), l.Resource(), token), token)
	})
}

// hold takes a lease and works in its context.
func (c *client) hold(ctx context.Context) {
	c.withLease(ctx, func(l *lease.Lease, _ tokenctx.Token) context.Context {
		return l.Context(context.WithoutCancel(ctx))
	})
}

func (c *client) withLease(ctx context.Context, under func(*lease.Lease, tokenctx.Token) context.Context) {
	n := 1 + c.rand.IntN(c.Resources)
	l, op := c.takeLease(ctx, Resource(n), lease.WithPoll(20*time.Millisecond, 150*time.Millisecond))
	if l == nil {
		c.rest(ctx, afterFailure)
		return
	}
	c.work(ctx, under(l, l.Token()), op.Token, Resource(n), c.rows(c.rotation(), n))
	c.do(context.WithoutCancel(ctx), history.Op{Kind: history.Release, Resource: Resource(n), Token: op.Token}, func(ctx context.Context, _ *history.Op) error {
		return l.Release(ctx)
	})
}

// work writes under a token until its share is done, a write is rejected, or
// nothing works any more. What a holder doesn't know of a row it looks at
// first, by a write that raises the row's token: from then on no older holder
// can come between.
func (c *client) work(ctx, under context.Context, token int64, resource string, rows []int64) {
	known := make(map[int64]int64) // by row: the operation by which it is known
	failures := 0
	for n := range 30 + c.rand.IntN(200) {
		op := history.Op{Token: token, Resource: resource, Row: rows[c.rand.IntN(len(rows))]}
		if n < len(rows) {
			op.Row = rows[n]
		}
		c.choose(&op, known[op.Row])
		op = c.write(under, op)
		switch {
		case op.Outcome == history.Stale:
			c.insist(ctx, under, op, rows)
			return
		case op.Outcome == history.OK:
			failures = 0
			if op.Raises() {
				known[op.Row] = op.ID
			}
			c.rest(ctx, afterOp)
		default:
			failures++
			delete(known, op.Row)
			c.rest(ctx, afterFailure)
		}
		if ctx.Err() != nil || under.Err() != nil || failures > mostFailures {
			return
		}
	}
}

// choose makes op a write; looked is the operation by which its row is known.
func (c *client) choose(op *history.Op, looked int64) {
	op.Base = looked
	switch n := c.rand.IntN(100); {
	case looked == 0:
		op.Kind = history.Claim
	case n < 60:
		op.Kind = history.Update
	case n < 78:
		op.Kind = history.Upsert
	case n < 84:
		op.Kind = history.Both
	case n < 90:
		op.Kind, op.Row, op.Base = history.Insert, 0, 0
	default:
		op.Kind = history.Claim
	}
}

// insist tries each row once more after a write was rejected: a bad program.
func (c *client) insist(ctx, under context.Context, rejected history.Op, rows []int64) {
	for _, row := range rows {
		if ctx.Err() != nil || under.Err() != nil {
			return
		}
		c.write(under, history.Op{Kind: history.Update, Token: rejected.Token, Resource: rejected.Resource, Row: row})
	}
}

// The calls of a client in another language, for a lease that is over at once.
const (
	takeSQL    = `SELECT token FROM fencing.take($1, interval '1 millisecond', $2)`
	releaseSQL = `SELECT fencing.release($1, $2)`
)

// errHeld is the end of a take that got no token.
var errHeld = errors.New("the lease is held")

// takeAtOnce takes a lease that many are after, and lets go of it, some times.
func (c *client) takeAtOnce(ctx context.Context) {
	for range 4 {
		op := c.do(context.WithoutCancel(ctx), history.Op{Kind: history.Take, Resource: Hot}, func(ctx context.Context, op *history.Op) error {
			var token sql.NullInt64
			if err := c.db.QueryRowContext(ctx, takeSQL, Hot, c.name).Scan(&token); err != nil {
				return err
			}
			if op.Token = token.Int64; op.Token == 0 {
				return rolledBack{errHeld}
			}
			return nil
		})
		if op.Outcome == history.OK {
			c.do(context.WithoutCancel(ctx), history.Op{Kind: history.Release, Resource: Hot, Token: op.Token}, func(ctx context.Context, op *history.Op) error {
				_, err := c.db.ExecContext(ctx, releaseSQL, Hot, op.Token)
				return err
			})
		}
		if op.Outcome == history.Unknown {
			break
		}
	}
	c.rest(ctx, afterBurst)
}

// mostTries bounds how often a write of unknown outcome is sent.
const mostTries = 5

// draw draws a token for one write to the table in mode strict, and sends the
// write again while it doesn't know what became of it. Two workers or so have a
// row in common, where the one who drew first may come late.
func (c *client) draw(ctx context.Context) {
	drawn := c.do(context.WithoutCancel(ctx), history.Op{Kind: history.Draw}, func(ctx context.Context, op *history.Op) error {
		t, err := lease.NextToken(ctx, c.db)
		op.Token = int64(t)
		return err
	})
	if drawn.Outcome != history.OK {
		c.rest(ctx, afterFailure)
		return
	}
	c.rest(ctx, afterBurst)
	under := tokenctx.With(context.WithoutCancel(ctx), tokenctx.Token(drawn.Token))
	rows := c.rows(c.rotation(), 0)
	op := history.Op{Kind: history.Strict, Token: drawn.Token, Row: rows[c.Worker%len(rows)]}
	for range mostTries {
		if c.write(under, op).Outcome != history.Unknown {
			return
		}
		c.rest(ctx, afterFailure)
	}
}

// read reads a row that is in use.
func (c *client) read(ctx context.Context) {
	rows := c.rows(c.rotation(), 1+c.rand.IntN(c.Resources))
	op := c.do(context.WithoutCancel(ctx), history.Op{Kind: history.Read, Row: rows[c.rand.IntN(len(rows))]}, func(ctx context.Context, op *history.Op) error {
		return c.db.QueryRowContext(ctx, readSQL, op.Row).Scan(&op.Value)
	})
	if op.Outcome != history.OK {
		c.rest(ctx, afterFailure)
	}
	c.rest(ctx, 2*afterOp)
}
