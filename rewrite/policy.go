package rewrite

import (
	"context"
	"database/sql/driver"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

// Policy is an immutable set of protected tables. It is safe for concurrent use.
//
// A name with a schema stands for the table of that name. A bare name stands for
// every protected table of that name, whatever the session's search_path is:
// functions, triggers, views over pg_settings, a reload of the configuration and
// poolers change that setting without a statement that shows it.
type Policy struct{ policy *check.Policy }

// NewPolicy returns the policy that protects the given tables. Use
// [Policy.ForPath] for a session whose search path is known.
func NewPolicy(tables ...Table) (*Policy, error) { return wrap(check.NewPolicy(tables...)) }

func wrap(p *check.Policy, err error) (*Policy, error) {
	if err != nil {
		return nil, err
	}
	return &Policy{p}, nil
}

// ForPath returns the policy for a session that began with that search path. The
// schemas are those of the setting search_path, in order, with "$user" already
// replaced. What a bare name of a table, view or function stands for doesn't depend
// on the path. The path decides where a new relation could take a protected one's
// place: DDL on a namesake in a schema that isn't on the path is allowed.
//
// If pg_catalog is named in the path and doesn't come first, an operator of a user's
// schema would stand in for the built-in "<"; no write is provable then, and each is
// refused.
func (p *Policy) ForPath(schemas ...string) *Policy { return &Policy{p.policy.ForPath(schemas...)} }

// WithClosure returns the policy with what else can reach its tables. It fails if the
// closure names a table that the policy doesn't protect.
func (p *Policy) WithClosure(c Closure) (*Policy, error) {
	return wrap(p.policy.WithClosure(check.Closure{
		Relatives: c.Relatives, Views: c.Views, Cascades: c.Cascades, Writers: c.Writers, Functions: c.Functions,
		TriggerFunctions: c.TriggerFunctions, TokenTriggers: c.TokenTriggers, EventTriggers: c.EventTriggers, Sequences: c.Sequences, GuardedFunctions: c.GuardedFunctions,
	}))
}

// Tables returns the protected tables, sorted by schema and name.
func (p *Policy) Tables() []Table { return p.policy.Tables() }

// Plan checks one SQL text. It never returns nil, and touches no database.
func (p *Policy) Plan(sql string) *Plan {
	plan := p.policy.Plan(sql)
	return &Plan{Violations: plan.Violations, Cleared: plan.Cleared, plan: plan}
}

// Guard returns the guarded form of a text that writes protected tables without a
// proof: the raise and the guard are added, with the token as a new last parameter, or
// with the placeholder that the statement already has at one of the two. What is there
// stays as it is, comments and hints too. The result is proved by the same check as any
// other text, and to be what was there with these additions.
//
// A text that needs no guard, or has it, is returned unchanged. The error is
// [ErrNotGuardable] or a *[Violation].
func (p *Policy) Guard(sql string) (string, error) { return p.policy.Guard(sql) }

// Plan is what one SQL text does to protected tables, and what proves that it may. It
// is immutable and safe for concurrent use.
type Plan struct {
	// Violations says why the text must not be sent. If it is empty, a text with
	// protected writes still has to pass Bind.
	Violations []Violation
	// Cleared reports that the text has no name or word by which it could reach a protected
	// table, so that it wasn't parsed.
	Cleared bool

	plan *check.Plan
}

// Refusal returns the first of the violations as an error, or nil.
func (p *Plan) Refusal() error { return p.plan.Refusal() }

// Writes returns the protected writes of the text.
func (p *Plan) Writes() []Write { return p.plan.Writes() }

// Guarded reports whether the text writes a protected table: it then needs a token.
func (p *Plan) Guarded() bool { return p.plan.Guarded() }

// Text returns the text that the plan is for: the one that was given, or what it was
// rewritten into.
func (p *Plan) Text() string { return p.plan.Text() }

// Rewritten reports whether the text was guarded by the policy: [Plan.Text] is then what
// the text was made into, or its arguments are replaced. It is the case for writes to
// tables with Rewrite set.
func (p *Plan) Rewritten() bool { return p.plan.Rewritten() }

// Explain says in a few lines which protected tables the text writes, what proves that it
// may, and what is refused.
func (p *Plan) Explain() string { return p.plan.Explain() }

// Bind puts the token where the statement needs it: it returns a copy of args with every
// token position filled. Args are indexed as PostgreSQL counts them: $1 is args[0]. An
// argument that is there already must be the token itself or tokenctx.Arg. The error is
// a *[Violation]. A statement that needs no token gets args back as they are.
func (p *Plan) Bind(t tokenctx.Token, args []driver.NamedValue) ([]driver.NamedValue, error) {
	return p.plan.Bind(t, args)
}

// BindAll is [Plan.Bind] with the tokens that ctx carries: each table takes the token of
// its resource.
func (p *Plan) BindAll(ctx context.Context, args []driver.NamedValue) ([]driver.NamedValue, error) {
	return p.plan.BindAll(ctx, args)
}
