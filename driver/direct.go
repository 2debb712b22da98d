package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/tokenctx"
)

// direct is the short way. If only the token's place has to be looked at, it binds the
// token and returns gate.OnShortWay: the statement may be sent with the bound arguments
// at once. Otherwise, also if something is wrong, it counts and returns the reason,
// and the caller goes the long way, which looks at everything and says what is
// wrong. The plan that it has looked up by then is returned for that.
func (c *Conn) direct(ctx context.Context, query string, args []sqldriver.NamedValue, asQuery bool) (known gate.Looked, bound []sqldriver.NamedValue, reason Detour) {
	hasStandIn := false
	for i := range args {
		switch isPlain, isArg := plain(args[i].Value); {
		case isArg:
			hasStandIn = true
		case !isPlain:
			return gate.Looked{}, nil, c.detours.Count(DetourArgument)
		}
	}
	v := c.currentView()
	if v.Watched != nil || v.WithOff != nil || v.HasUnfit || c.changes || c.within != nil || c.session.IsLoose() || c.session.IsPutOff || c.inUse || c.std != nil && c.connector.looking.due.Load() == 0 || c.connector.observed() ||
		c.std != nil && len(args) > 0 && c.mode == pgx.QueryExecModeSimpleProtocol {
		return gate.Looked{}, nil, c.detours.Count(c.stateDetour(v))
	}
	plan := c.planned(ctx, v, query)
	if plan.Direct() && !(asQuery && plan.Guarded()) && (plan.Cleared || c.sessionViolation() == nil && c.pathViolation(plan) == nil) {
		bound, reason = c.bindDirect(ctx, plan, args, hasStandIn)
	} else {
		reason = gate.PlanDetour(plan, asQuery)
	}
	if reason != gate.OnShortWay {
		c.detours.Count(reason)
	} else if c.tx != nil {
		c.endTokens(query)
	}
	return gate.Looked{View: v, Plan: plan}, bound, reason
}

// bindDirect binds the context's token, if it stands where it should already or
// tokenctx.Arg does.
func (c *Conn) bindDirect(ctx context.Context, plan *check.Plan, args []sqldriver.NamedValue, hasStandIn bool) ([]sqldriver.NamedValue, Detour) {
	for i := 0; hasStandIn && i < len(args); i++ {
		if args[i].Value == (any)(tokenctx.Arg) && !plan.TakesAt(i+1) {
			return nil, DetourTokenArgument
		}
	}
	table := plan.Takes()
	if table == nil {
		return args, gate.OnShortWay
	}
	if c.tx != nil {
		return nil, DetourTransactionToken
	}
	token, ok := table.Token(ctx)
	if !ok || !token.Valid() {
		return nil, DetourNoToken
	}
	bound, ok := c.binder.BindDirect(plan, token, args)
	if !ok {
		return nil, DetourTokenArgument
	}
	return bound, gate.OnShortWay
}

// plain reports whether an argument is nothing but a value, which doesn't steer
// pgx and runs no code, or whether it stands for the token.
func plain(v any) (isPlain, isArg bool) {
	switch v.(type) { // a switch of few cases is faster than one of many
	case string, int64, int:
		return true, false
	}
	switch v.(type) {
	case nil, []byte, bool, float64, time.Time,
		int32, int16, int8, uint, uint64, uint32, uint16, uint8, float32,
		*string, *int64, *int, *int32, *bool, *float64, *time.Time, []string, []int64, []int, []int32:
		return true, false
	case tokenctx.ArgValue:
		return false, true
	}
	return false, false
}

// sent is a statement that went the short way, for what is found out about it
// afterwards. The binder's memory is given back.
func (c *Conn) sent(plan *check.Plan, query string, args, bound []sqldriver.NamedValue) *statement {
	s := &statement{call: call{sql: query, args: args}, plan: plan, text: c.text(plan, query), bound: slices.Clone(bound)}
	c.binder.Clear()
	return s
}

// read returns the rows of a query that went the short way. What it calls may
// write, so a wall may refuse it, also while its rows are read.
func (c *Conn) read(ctx context.Context, query string, rows sqldriver.Rows, err error) (sqldriver.Rows, error) {
	switch {
	case err != nil:
		return nil, c.fromWall(ctx, textOnly(query), err)
	case c.view.HasWall:
		return (&cursor{conn: c, ctx: ctx, sql: query}).of(rows), nil
	}
	return rows, nil
}

// textOnly is a statement of which nothing but its text matters.
func textOnly(sql string) *statement { return &statement{call: call{sql: sql}, plan: gate.Unchecked} }

// mayLack reports whether a write may have left rows out.
func (c *Conn) mayLack(plan *check.Plan, result sqldriver.Result) bool {
	if !plan.Compares() {
		return false
	}
	if result == nil {
		return true
	}
	if parts := plan.Parts(); len(parts) > 0 && parts[0].ManyRows() {
		return true
	}
	n, err := result.RowsAffected()
	return err != nil || n <= 0 || c.connector.settings.partial
}
