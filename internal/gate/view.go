package gate

import (
	"context"
	"strings"

	"github.com/maypok86/otter/v2"

	"github.com/fencerow/fencerow/internal/check"
)

// View is a protection as sessions with one search path see it.
type View struct {
	*Protection
	policies   [3]*check.Policy // by scope
	id         int
	IsPathless bool // the search path is not known any more
}

// Scope says which tables a text is checked for.
type Scope int

// The scopes.
const (
	EnforcedTables Scope = iota // whose statements are refused
	WatchedTables               // those and the reported ones
	AllTables                   // those and the ones that are off
)

// planKey is what a plan is kept under.
type planKey struct {
	view  int
	scope Scope
	sql   string
}

// keptText is the longest text whose plan is kept, in bytes. Longer ones are
// bulk statements that hardly ever come twice.
const keptText = 64 << 10

// planWeight estimates the bytes a plan holds, with what it finds out later: the
// probes of a guarded write, and the text that is sent for it.
func planWeight(k planKey, p *check.Plan) uint32 {
	weight := 384 + len(k.sql)
	if p.Guarded() {
		weight += 1024 + 4*len(k.sql)
	}
	for i := range p.Violations {
		v := &p.Violations[i]
		weight += 256 + len(v.Message) + len(v.Fix) + len(v.Snippet) + len(v.Table)
	}
	return uint32(weight)
}

// View returns the protection under a search path.
func (p *Protection) View(path []string) *View {
	return p.viewAs("\x00"+strings.Join(path, "\x00"), false, func(r *check.Policy) *check.Policy { return r.ForPath(path...) })
}

// AnyPath returns the protection under a search path that isn't known any more:
// it may be the one that the session began with again.
func (p *Protection) AnyPath(first []string) *View {
	return p.viewAs("any\x00"+strings.Join(first, "\x00"), true, func(r *check.Policy) *check.Policy { return r.ForPath(first...).ForAnyPath() })
}

// Once returns the view for one statement under a path that code in the database has set. There
// may be many such paths, so nothing is kept for them.
func (v *View) Once(path []string) *View {
	other := &View{Protection: v.Protection, id: unkept, IsPathless: v.IsPathless}
	for i, policy := range v.policies {
		if policy != nil {
			other.policies[i] = policy.ForPath(path...)
		}
	}
	return other
}

// unkept is the number of a view whose plans aren't kept.
const unkept = -1

// viewAs returns the view of a key, made with the policies as under returns them.
func (p *Protection) viewAs(key string, isPathless bool, under func(*check.Policy) *check.Policy) *View {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[key]
	if !ok {
		v = &View{Protection: p, id: len(p.views), IsPathless: isPathless}
		for i, policy := range []*check.Policy{p.enforced, p.Watched, p.WithOff} {
			if policy != nil {
				v.policies[i] = under(policy)
			}
		}
		p.views[key] = v
	}
	return v
}

// Plan returns the plan of a text for the tables of a scope, checking it only
// once, and whether it was known.
func (v *View) Plan(ctx context.Context, sql string, s Scope) (plan *check.Plan, hit bool) {
	policy := v.policies[s]
	if v.id == unkept || len(sql) > keptText {
		return policy.Plan(sql), false
	}
	key := planKey{v.id, s, sql}
	if plan, ok := v.plans.GetIfPresent(key); ok {
		return plan, true
	}
	key.sql = strings.Clone(sql) // the caller's text may be a part of a larger one
	return v.load(ctx, key, policy.Plan), false
}

// load makes a plan, which is kept unless the parser failed.
func (v *View) load(ctx context.Context, key planKey, makePlan func(sql string) *check.Plan) *check.Plan {
	plan, err := v.plans.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[planKey, *check.Plan](
		func(_ context.Context, k planKey) (*check.Plan, error) { return makePlan(k.sql), nil }))
	if err != nil {
		return makePlan(key.sql)
	}
	if plan.HasParserFailed() {
		v.plans.Invalidate(key)
	}
	return plan
}
