package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/aftermath"
	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// fromWall turns an error of the wall into the one that the driver itself gives
// for the same reason, with the server's error in it. Others pass as they are.
// s is the statement that it came from, nil if it is none of this connection's.
func (c *Conn) fromWall(ctx context.Context, s *statement, err error) error {
	var pgErr *pgconn.PgError
	if err == nil || !errors.As(err, &pgErr) || len(pgErr.Code) != 5 || pgErr.Code[:2] != "FN" {
		return err
	}
	detail := aftermath.ReadDetail(pgErr)
	table := detail.Table
	switch pgErr.Code {
	case aftermath.WallStale:
		return c.staleByWall(ctx, s, table, detail, err)
	case aftermath.WallNoToken:
		if detail.IsSealed && detail.Token != nil && detail.Current == nil {
			return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
				"write to protected table %q was refused by the database, since "+detail.NameLease()+" was never taken: take it with lease.Take, and write under its token")
		}
		return c.noTokenByWall(ctx, s, table, detail, err)
	case aftermath.WallNotIssued:
		return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
			"write to protected table %q was refused by the database, since its token was never issued: draw tokens with lease.NextToken, or register the table with issued_by => NULL if they come from elsewhere")
	case aftermath.WallNotAllowed:
		if pgErr.ConstraintName == aftermath.RefuseTrigger {
			if pgErr.TableName == "" { // a function
				table = pgErr.SchemaName
			}
			return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err,
				"statement that changes %q, which the driver rests on, was refused by the database: use a plain connection, such as psql's or one of package migrations")
		}
		if detail.IsSealed {
			return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
				"write to protected table %q was refused by the database, since its token is not that of "+detail.NameLease()+": put the token of that lease into the context, and move no row to another lease")
		}
		return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err,
			"statement on protected table %q was refused by the database, which lets no token be taken away or changed on its way: delete rows with a guard, and look at the table's own triggers")
	}
	return err
}

// staleByWall is a StaleError or, in strict mode, a ReplayError if the statement
// wrote the token. Where it didn't, the wall met the row's own token: a write
// that sets none looks like one that sets the same.
func (c *Conn) staleByWall(ctx context.Context, s *statement, table string, detail aftermath.WallDetail, err error) error {
	token, current := detail.OwnToken(), detail.CurrentToken()
	if detail.Mode == rewrite.Strict.String() && token == current {
		if s == nil || !c.writes(ctx, s.plan, token) {
			return c.noTokenByWall(ctx, s, table, detail, err)
		}
		replay := &ReplayError{Table: table, Token: token, Err: err}
		c.outcome(ctx, EventReplay, table, replay)
		return replay
	}
	stale := &StaleError{Table: table, Token: token, Current: current, Sealed: detail.IsSealed, Err: err}
	c.outcome(ctx, EventStale, table, stale)
	c.reportStale(ctx, detail.Resource, token)
	return stale
}

// writes reports whether a statement's own text writes the token.
func (c *Conn) writes(ctx context.Context, plan *check.Plan, token tokenctx.Token) bool {
	return slices.ContainsFunc(plan.Writes(), func(w rewrite.Write) bool {
		own, ok := c.token(ctx, w.Table)
		return ok && own == token
	})
}

// noTokenByWall says why the wall found no token. Where the statement's own text
// writes the table, it was sent with one.
func (c *Conn) noTokenByWall(ctx context.Context, s *statement, table string, detail aftermath.WallDetail, err error) error {
	if s != nil && detail.Operation != "" {
		if kinds := c.sentTo(ctx, s.plan, table); len(kinds) > 0 {
			return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err, aftermath.LostToken(kinds, detail.Operation))
		}
	}
	return c.refusedByWall(ctx, s, rewrite.NoToken, table, err,
		"write to protected table %q was refused by the database, since it carries no token: put the token into the context, and guard the statement or the function that wrote; a DELETE that the text does not show, such as that of a foreign key, finds the token in a transaction that was begun with that context")
}

// sentTo returns the kinds of the writes in a statement's own text that were sent to
// a table with a token.
func (c *Conn) sentTo(ctx context.Context, plan *check.Plan, table string) (kinds []string) {
	for _, w := range plan.Writes() {
		if _, ok := c.token(ctx, w.Table); ok && w.Table.String() == table {
			kinds = append(kinds, w.Kind)
		}
	}
	return kinds
}

func (c *Conn) refusedByWall(ctx context.Context, s *statement, rule rewrite.Rule, table string, err error, message string) error {
	v := check.Refuse(rule, fmt.Sprintf(message, table))
	v.Table, v.Err = table, err
	sql := ""
	if s != nil {
		sql = s.sql
	}
	return c.refuse(ctx, sql, v)
}
