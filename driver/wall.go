package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// What the triggers of fencing.wall end a statement with.
const (
	wallStale      = "FN001"
	wallNoToken    = "FN002"
	wallNotIssued  = "FN003"
	wallNotAllowed = "FN004"
)

// sealTrigger is the trigger of fencing.seal, whose errors have the same codes.
const sealTrigger = "~fencing_zseal"

// refuseTrigger is what keeps connections of the driver from writing schema
// fencing, and from calling its functions that change something.
const refuseTrigger = "refuse_driver"

// wallDetail is the DETAIL of their errors.
type wallDetail struct {
	Token, Current *string
	Mode           string
	Resource       string // "" is the default token's
	Lease          string // that the table is sealed to; "" if each row names its own
	Operation      string // what was done to the row
	Sealed         bool   `json:"-"`
}

// fromWall turns an error of the wall into the one that the driver itself gives
// for the same reason, with the server's error in it. Others pass as they are.
// s is the statement that it came from, nil if it is none of this connection's.
func (c *Conn) fromWall(ctx context.Context, s *statement, err error) error {
	var pgErr *pgconn.PgError
	if err == nil || !errors.As(err, &pgErr) || len(pgErr.Code) != 5 || pgErr.Code[:2] != "FN" {
		return err
	}
	var detail wallDetail
	_ = json.Unmarshal([]byte(pgErr.Detail), &detail) // what isn't there stays unknown
	detail.Sealed = pgErr.ConstraintName == sealTrigger
	table := (&rewrite.Table{Schema: pgErr.SchemaName, Name: pgErr.TableName}).String()
	switch pgErr.Code {
	case wallStale:
		return c.staleByWall(ctx, s, table, detail, err)
	case wallNoToken:
		if detail.Sealed && detail.Token != nil && detail.Current == nil {
			return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
				"write to protected table %q was refused by the database, since "+detail.lease()+" was never taken: take it with lease.Take, and write under its token")
		}
		return c.noTokenByWall(ctx, s, table, detail, err)
	case wallNotIssued:
		return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
			"write to protected table %q was refused by the database, since its token was never issued: draw tokens with lease.NextToken, or register the table with issued_by => NULL if they come from elsewhere")
	case wallNotAllowed:
		if pgErr.ConstraintName == refuseTrigger {
			if pgErr.TableName == "" { // a function
				table = pgErr.SchemaName
			}
			return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err,
				"statement that changes %q, which the driver rests on, was refused by the database: use a plain connection, such as psql's or one of package migrations")
		}
		if detail.Sealed {
			return c.refusedByWall(ctx, s, rewrite.InvalidToken, table, err,
				"write to protected table %q was refused by the database, since its token is not that of "+detail.lease()+": put the token of that lease into the context, and move no row to another lease")
		}
		return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err,
			"statement on protected table %q was refused by the database, which lets no token be taken away or changed on its way: delete rows with a guard, and look at the table's own triggers")
	}
	return err
}

// staleByWall is a StaleError or, in strict mode, a ReplayError if the statement
// wrote the token. Where it didn't, the wall met the row's own token: a write
// that sets none looks like one that sets the same.
func (c *Conn) staleByWall(ctx context.Context, s *statement, table string, detail wallDetail, err error) error {
	token, current := detail.token(detail.Token), detail.token(detail.Current)
	if detail.Mode == rewrite.Strict.String() && token == current {
		if s == nil || !c.writes(ctx, s.plan, token) {
			return c.noTokenByWall(ctx, s, table, detail, err)
		}
		replay := &ReplayError{Table: table, Token: token, Err: err}
		c.outcome(ctx, EventReplay, table, replay)
		return replay
	}
	stale := &StaleError{Table: table, Token: token, Current: current, Sealed: detail.Sealed, Err: err}
	c.outcome(ctx, EventStale, table, stale)
	c.reportStale(ctx, detail.Resource, token)
	return stale
}

// writes reports whether a statement's own text writes the token.
func (c *Conn) writes(ctx context.Context, plan *rewrite.Plan, token tokenctx.Token) bool {
	return slices.ContainsFunc(plan.Writes(), func(w rewrite.Write) bool {
		own, ok := c.token(ctx, w.Table)
		return ok && own == token
	})
}

// noTokenByWall says why the wall found no token. Where the statement's own text
// writes the table, it was sent with one.
func (c *Conn) noTokenByWall(ctx context.Context, s *statement, table string, detail wallDetail, err error) error {
	if s != nil && detail.Operation != "" {
		if kinds := c.sentTo(ctx, s.plan, table); len(kinds) > 0 {
			return c.refusedByWall(ctx, s, rewrite.WallRefused, table, err, lostToken(kinds, detail.Operation))
		}
	}
	return c.refusedByWall(ctx, s, rewrite.NoToken, table, err,
		"write to protected table %q was refused by the database, since it carries no token: put the token into the context, and guard the statement or the function that wrote; a DELETE that the text does not show, such as that of a foreign key, finds the token in a transaction that was begun with that context")
}

// sentTo returns the kinds of the writes in a statement's own text that were sent to
// a table with a token.
func (c *Conn) sentTo(ctx context.Context, plan *rewrite.Plan, table string) (kinds []string) {
	for _, w := range plan.Writes() {
		if _, ok := c.token(ctx, w.Table); ok && w.Table.String() == table {
			kinds = append(kinds, w.Kind)
		}
	}
	return kinds
}

// lostToken says how a write that was sent with its token came to the wall without
// it, by what was done to the row there.
func lostToken(kinds []string, operation string) string {
	if operation == "DELETE" && !slices.Contains(kinds, "DELETE") {
		return "a row of protected table %q was to be moved to another partition or deleted by a trigger, which the database refused, since the transaction has no token for the DELETE that this is: run the statement in a transaction that was begun with the token's context"
	}
	if operation == "DELETE" {
		return "DELETE from protected table %q was refused by the database, since the transaction has no token for it, and the text cannot bring one along: write fewer rows in one statement, with one token for all of them, or run it in a transaction that was begun with the token's context"
	}
	return operation + " of protected table %q was refused by the database, since it came there without the token that was sent with it: have the table's own triggers leave the token column alone, and guard what they and the functions that the statement calls write"
}

func (c *Conn) refusedByWall(ctx context.Context, s *statement, rule rewrite.Rule, table string, err error, message string) error {
	v := rewrite.Refuse(rule, fmt.Sprintf(message, table))
	v.Table, v.Err = table, err
	sql := ""
	if s != nil {
		sql = s.sql
	}
	return c.refuse(ctx, sql, v)
}

// lease names the lease of a sealed table.
func (d wallDetail) lease() string {
	if d.Lease == "" {
		return "the lease that the row names, and is sealed to,"
	}
	return fmt.Sprintf("lease %s, to which the table is sealed,", strings.ReplaceAll(strconv.Quote(d.Lease), "%", "%%"))
}

func (wallDetail) token(text *string) tokenctx.Token {
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(*text, 10, 64)
	if err != nil {
		return 0
	}
	return tokenctx.Token(n)
}
