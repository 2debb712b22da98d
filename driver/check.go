package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// statement is a checked statement with its arguments bound.
type statement struct {
	call
	plan  *check.Plan
	text  string // what is sent
	bound []sqldriver.NamedValue
}

// text is what is to be sent for a statement: PostgreSQL's own triggers find
// the token of a DELETE in a setting, which goes along in the statement.
func (c *Conn) text(plan *check.Plan, sql string) string {
	switch {
	case c.std != nil && plan.Guarded():
		return plan.Attested()
	case plan.Rewritten() || plan.Gated():
		return plan.Text()
	}
	return sql
}

// admit checks a statement and binds its token, by the binder's memory.
// Everything that is sent comes through here or through direct, right before it is
// sent.
func (c *Conn) admit(ctx context.Context, s *statement, b *check.Binder, known gate.Looked, query string, args []sqldriver.NamedValue, asQuery bool) error {
	call, err := resolve(ctx, query, args, asQuery)
	if err != nil {
		return c.refuse(ctx, query, err)
	}
	if call.sql != query {
		known = gate.Looked{}
	}
	v, err := c.check(ctx, call.sql, known)
	if err != nil {
		return err
	}
	if violation := c.interpolationViolation(call, v.Sent()); violation != nil {
		if v.View.HasEnforced {
			return c.refuse(ctx, call.sql, violation)
		}
		c.report(ctx, call.sql, violation)
	}
	plan, bound, err := c.bind(ctx, v, b, call.sql, call.args)
	if err != nil {
		return c.refuse(ctx, call.sql, err)
	}
	*s = statement{call: call, plan: plan, text: c.text(plan, call.sql), bound: bound}
	if c.tx != nil {
		c.endTokens(call.sql)
	}
	return nil
}

// once has a text that was passed without arguments, and is sent with a token
// added, run without being prepared, as pgx runs the former: kept it would put
// others out of pgx's cache, since such texts have their values in them.
func (c *Conn) once(s *statement) {
	if len(s.args) > 0 || s.plan.Added() == 0 || c.std == nil || c.mode == pgx.QueryExecModeSimpleProtocol ||
		slices.ContainsFunc(s.leading, func(a sqldriver.NamedValue) bool { return isMode(a.Value) }) {
		return
	}
	s.leading = append(slices.Clone(s.leading), sqldriver.NamedValue{Ordinal: 1, Value: pgx.QueryExecModeExec})
}

func isMode(v any) bool {
	_, ok := v.(pgx.QueryExecMode)
	return ok
}

// check plans a text for this session. A text that may change the search path
// makes it unknown from then on, whether or not it succeeds.
func (c *Conn) check(ctx context.Context, sql string, known gate.Looked) (gate.Verdict, error) {
	if err := c.lookWithin(ctx, sql); err != nil {
		return gate.Verdict{}, err
	}
	v := gate.Verdict{View: c.currentView(), Enforced: known.Plan}
	if known.Plan == nil || known.View != v.View {
		v.Enforced = c.planned(ctx, v.View, sql)
	}
	if err := c.askPath(ctx, &v, sql); err != nil {
		return v, err
	}
	if err := c.askNames(ctx, &v); err != nil {
		return v, err
	}
	c.changes = c.changes || v.Enforced.ChangesCatalog && v.View.MayBeChangedBy(sql)
	if v.Enforced.ChangesPath {
		defer c.session.ForgetPath()
	}
	found := c.violation(v.Enforced)
	own, makes, err := c.within.judge(ctx, c, sql, v.Enforced)
	if err != nil {
		return v, err
	}
	if found == nil {
		found = own
	}
	c.noteMakers(sql, makes || v.Enforced.Makes)
	if found == nil && v.Enforced.NamesOwn {
		if found, err = c.askOwnPath(ctx, v.Enforced); err != nil {
			return v, err
		}
	}
	if found != nil && v.View.HasEnforced {
		return v, c.refuse(ctx, sql, c.askParser(ctx, sql, found))
	}
	widest := v.Enforced
	if v.View.Watched != nil {
		v.Watched, _ = v.View.Plan(ctx, sql, gate.WatchedTables)
		widest = v.Watched
		meant, err := c.meant(ctx, v.Watched)
		if err != nil {
			return v, err
		}
		if reported := c.violation(v.Watched); len(meant.Violations) == 0 && !meant.Guarded() {
			v.Watched = nil
		} else if reported != nil {
			c.report(ctx, sql, reported)
			v.Watched = nil
		}
	}
	if v.View.WithOff != nil {
		widest, _ = v.View.Plan(ctx, sql, gate.AllTables)
	}
	c.session.Loosen(v.View.Protection, widest)
	if found != nil {
		v.Enforced = gate.Unchecked
	}
	return v, nil
}

// planned looks the plan of a text up, or makes it, and counts that.
func (c *Conn) planned(ctx context.Context, v *gate.View, sql string) *check.Plan {
	if plan := c.recent.Find(v, sql); plan != nil {
		c.hit.Add(1)
		return plan
	}
	plan, known := v.Plan(ctx, sql, gate.EnforcedTables)
	if known {
		c.hit.Add(1)
	} else {
		c.new.Add(1)
	}
	c.recent.Keep(v, sql, plan)
	return plan
}

// bind puts the tokens into the arguments. What is wrong with the token of a
// table that is only reported is reported, and the arguments stay.
func (c *Conn) bind(ctx context.Context, v gate.Verdict, b *check.Binder, sql string, args []sqldriver.NamedValue) (*check.Plan, []sqldriver.NamedValue, error) {
	plan := v.Plan()
	bound, err := c.bindBy(ctx, plan, b, args)
	if err != nil {
		return c.bindOtherwise(ctx, v, b, sql, args, err)
	}
	if sent := v.Sent(); sent != plan {
		return c.bindAsGiven(ctx, plan, sent, b, args, withTokens(args, bound))
	}
	return plan, bound, nil
}

// bindAsGiven binds a statement on reported tables that isn't rewritten: by its
// own guards if it has them all, and else by what is enforced.
func (c *Conn) bindAsGiven(ctx context.Context, watched, enforced *check.Plan, b *check.Binder, args, tokens []sqldriver.NamedValue) (*check.Plan, []sqldriver.NamedValue, error) {
	if plain := watched.Plain(); plain != nil {
		if bound, err := c.bindBy(ctx, plain, b, args); err == nil {
			return plain, bound, nil
		}
	}
	bound, err := c.bindBy(ctx, enforced, b, tokens)
	return enforced, bound, err
}

// withTokens returns the arguments as they were passed, with what was bound in the
// place of tokenctx.Arg.
func withTokens(args, bound []sqldriver.NamedValue) []sqldriver.NamedValue {
	out := slices.Clone(args)
	for i := range out {
		if out[i].Value == (any)(tokenctx.Arg) {
			out[i].Value = bound[i].Value
		}
	}
	return out
}

// bindOtherwise looks whether what is wrong with the tokens concerns tables that
// are enforced.
func (c *Conn) bindOtherwise(ctx context.Context, v gate.Verdict, b *check.Binder, sql string, args []sqldriver.NamedValue, err error) (*check.Plan, []sqldriver.NamedValue, error) {
	var found *rewrite.Violation
	if !errors.As(err, &found) {
		return nil, nil, err
	}
	if found.Rule == rewrite.MisplacedArg && v.View.WithOff != nil {
		// its place may be in a table that is off
		if all, _ := v.View.Plan(ctx, sql, gate.AllTables); all.Refusal() == nil {
			if bound, err := c.bindBy(ctx, all, b, args); err == nil {
				return v.Plan(), withTokens(args, bound), nil
			}
		}
	}
	if v.Watched == nil {
		return nil, nil, err
	}
	bound, enforcedErr := c.bindBy(ctx, v.Enforced, b, args)
	if enforcedErr != nil {
		return nil, nil, err // of an enforced table, or tokenctx.Arg, which can't be sent
	}
	c.report(ctx, sql, found)
	return v.Enforced, bound, nil
}

func (c *Conn) bindBy(ctx context.Context, plan *check.Plan, b *check.Binder, args []sqldriver.NamedValue) ([]sqldriver.NamedValue, error) {
	if c.bound() == nil || !plan.Guarded() {
		bound, err := b.Bind(plan, func(t *rewrite.Table) (tokenctx.Token, bool) { return t.Token(ctx) }, args)
		return bound, gate.SayBetween(ctx, err)
	}
	for _, w := range plan.Writes() {
		if v := gate.OtherToken(ctx, w.Table, c.bound().tokens, c.bound().ctx); v != nil {
			if !c.view.Reports(w.Table) {
				return nil, v
			}
			c.report(ctx, plan.Text(), v)
		}
	}
	bound, err := b.Bind(plan, func(t *rewrite.Table) (tokenctx.Token, bool) { return c.token(ctx, t) }, args)
	return bound, gate.SayBetween(ctx, err)
}

// token returns the token for a table: the context's, or the transaction's.
func (c *Conn) token(ctx context.Context, t *rewrite.Table) (tokenctx.Token, bool) {
	if token, ok := t.Token(ctx); ok {
		return token, true
	}
	return c.bound().token(t.Resource)
}

// currentView returns the newest protection as this session sees it.
func (c *Conn) currentView() *gate.View {
	if v := c.session.View(c.protection(), c.view); v != c.view {
		c.recent = gate.Recent{} // its plans would keep what was protected before
		c.view = v
	}
	return c.view
}

// violation is what is wrong with sending a text on this session, if anything.
func (c *Conn) violation(plan *check.Plan) *rewrite.Violation {
	var settings gate.Settings
	if c.std != nil {
		settings = c.std.Conn().PgConn()
	}
	return gate.ViolationOf(plan, c.view, c.isLoose(), settings)
}

// sessionViolation refuses what can't be sent because of the session's settings.
func (c *Conn) sessionViolation() *rewrite.Violation {
	if c.std == nil {
		return nil
	}
	return gate.SettingsViolation(c.std.Conn().PgConn())
}

// pathViolation refuses what can't be sent because of the session's search path.
func (c *Conn) pathViolation(plan *check.Plan) *rewrite.Violation {
	if c.std == nil || !plan.Guarded() {
		return nil
	}
	return gate.OperatorViolation(c.std.Conn().PgConn())
}
