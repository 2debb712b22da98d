package driver

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
)

// protection is what a connector protects at one moment. A new one takes its
// place when the registry changes; connections notice by the pointer.
type protection struct {
	tables   []heldTable     // as given or registered, before anything is looked up
	enforced *rewrite.Policy // of the tables whose statements are refused
	watched  *rewrite.Policy // of those and the reported ones; nil if there are none of the latter
	all      *rewrite.Policy // of those and the ones that are off; nil if there are none of the latter
	enforces bool            // whether any table's statements are refused
	unfit    bool            // whether an enforced table's token column can't hold tokens
	walled   bool            // whether the database itself refuses writes to a table

	closures [3]rewrite.Closure // by scope

	grown uint64                  // how often a table has become enforced
	last  atomic.Pointer[reading] // that led to this

	wanted []string // the resources whose tokens the tables take
	plans  *otter.Cache[planKey, *rewrite.Plan]

	mu    sync.Mutex
	views map[string]*view
}

// view is a protection as sessions with one search path see it.
type view struct {
	*protection
	policies [3]*rewrite.Policy // by scope
	id       int
	pathless bool // the search path is not known any more
}

// scope says which tables a text is checked for.
type scope int

const (
	enforcedTables scope = iota
	watchedTables
	allTables
)

type planKey struct {
	view  int
	scope scope
	sql   string
}

// keptText is the longest text whose plan is kept, in bytes. Longer ones are
// bulk statements that hardly ever come twice.
const keptText = 64 << 10

func newProtection(tables []heldTable, closures [3]rewrite.Closure, cacheBytes uint64) (*protection, error) {
	p := &protection{tables: tables, closures: closures, views: make(map[string]*view)}
	for _, t := range tables {
		p.enforces = p.enforces || t.level == Enforce
		p.unfit = p.unfit || t.level == Enforce && t.Unfit != ""
		p.walled = p.walled || t.wall
		p.wanted = append(p.wanted, t.Resource)
	}
	slices.Sort(p.wanted)
	p.wanted = slices.Compact(p.wanted)
	var err error
	if p.enforced, err = p.policyOf(enforcedTables); err != nil {
		return nil, err
	}
	if p.has(Report) {
		if p.watched, err = p.policyOf(watchedTables); err != nil {
			return nil, err
		}
	}
	if p.has(Off) {
		if p.all, err = p.policyOf(allTables); err != nil {
			return nil, err
		}
	}
	p.plans, err = otter.New(&otter.Options[planKey, *rewrite.Plan]{
		MaximumWeight: cacheBytes,
		Weigher:       planWeight,
	})
	return p, err
}

// levelsOf are the levels of the tables in a scope.
var levelsOf = [3][]Level{enforcedTables: {Enforce}, watchedTables: {Enforce, Report}, allTables: {Enforce, Report, Off}}

// policyOf returns the policy of the tables in a scope.
func (p *protection) policyOf(s scope) (*rewrite.Policy, error) {
	var chosen []rewrite.Table
	for _, t := range p.tables {
		if slices.Contains(levelsOf[s], t.level) {
			chosen = append(chosen, t.Table)
		}
	}
	policy, err := rewrite.NewPolicy(chosen...)
	if err != nil {
		return nil, err
	}
	return policy.WithClosure(p.closures[s])
}

// closuresOf returns what else reaches the tables of each scope.
func closuresOf(tables []heldTable, found *reach.Catalog, guarded []rewrite.Name) (closures [3]rewrite.Closure) {
	if found == nil {
		return closures
	}
	for s, levels := range levelsOf {
		if s == 0 || slices.ContainsFunc(tables, func(t heldTable) bool { return t.level == levels[len(levels)-1] }) {
			closures[s] = found.Closure(reachTables(tables, levels...), guarded)
		}
	}
	return closures
}

// keeps reports whether the protection stays in place after a reading: it is
// older, or says the same.
func (p *protection) keeps(tables []heldTable, closures [3]rewrite.Closure, next *reading) bool {
	last, same := p.last.Load(), sameTables(p.tables, tables)
	switch {
	case !next.isNews(last):
		return true
	case !next.catalog && last.catalog:
		// the catalog is left out where the tables are the same: what differs by now is newer
		if same && next.server == last.server {
			kept := *next
			kept.catalog, kept.stamp = true, last.stamp
			p.last.Store(&kept)
		}
		return true
	case !same || next.catalog != last.catalog || !reflect.DeepEqual(p.closures, closures):
		return false
	}
	p.last.Store(next)
	return true
}

// growOver counts on from the protection before.
func (p *protection) growOver(before *protection) {
	if before == nil {
		return
	}
	p.grown = before.grown
	for _, t := range p.tables {
		if t.level == Enforce && !slices.ContainsFunc(before.tables, func(b heldTable) bool { return b.level == Enforce && b.is(t.Schema, t.Name) }) {
			p.grown++
			return
		}
	}
}

// has reports whether a table is at the level.
func (p *protection) has(l Level) bool {
	return slices.ContainsFunc(p.tables, func(t heldTable) bool { return t.level == l })
}

// held returns the tables that are reported or enforced.
func (p *protection) held() (out []rewrite.Table) {
	for _, t := range p.tables {
		if t.level != Off {
			t.Schema = orPublic(t.Schema)
			out = append(out, t.Table)
		}
	}
	return out
}

// reports reports whether a table's statements are only reported. A table
// without a schema stands for all of its name: those of one that is enforced are
// not only reported.
func (p *protection) reports(t *rewrite.Table) bool {
	if p.watched == nil {
		return false
	}
	isMeant := func(h heldTable) bool { return h.is(t.Schema, t.Name) || t.Schema == "" && h.Name == t.Name }
	return slices.ContainsFunc(p.tables, func(h heldTable) bool { return h.level == Report && isMeant(h) }) &&
		!slices.ContainsFunc(p.tables, func(h heldTable) bool { return h.level == Enforce && isMeant(h) })
}

// unfitViolation refuses a statement that writes a table whose token column can't
// hold tokens: its guard would prove nothing.
func (p *protection) unfitViolation(plan *rewrite.Plan) *rewrite.Violation {
	for _, w := range plan.Writes() {
		if w.Table.Unfit == "" {
			continue
		}
		v := rewrite.Refuse(rewrite.UnfitTable, fmt.Sprintf("%s on protected table %q, which %s; until the next look after that, no write to it is sent", w.Kind, w.Table.String(), w.Table.Unfit))
		v.Table = w.Table.String()
		return v
	}
	return nil
}

// mayBeChangedBy reports whether a statement that changes the catalog may change
// what is protected, or what reaches it: where nothing is, only what registers a
// table does.
func (p *protection) mayBeChangedBy(sql string) bool {
	return len(p.tables) > 0 || strings.Contains(strings.ToLower(sql), "fencing")
}

// planWeight estimates the bytes a plan holds, with what it finds out later: the
// probes of a guarded write, and the text that is sent for it.
func planWeight(k planKey, p *rewrite.Plan) uint32 {
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

// view returns the protection under a search path.
func (p *protection) view(path []string) *view {
	return p.viewAs("\x00"+strings.Join(path, "\x00"), false, func(r *rewrite.Policy) *rewrite.Policy { return r.ForPath(path...) })
}

// anyPath returns the protection under a search path that isn't known any more:
// it may be the one that the session began with again.
func (p *protection) anyPath(first []string) *view {
	return p.viewAs("any\x00"+strings.Join(first, "\x00"), true, func(r *rewrite.Policy) *rewrite.Policy { return r.ForPath(first...).ForAnyPath() })
}

// once returns the view for one statement under a path that code in the database has set. There
// may be many such paths, so nothing is kept for them.
func (v *view) once(path []string) *view {
	other := &view{protection: v.protection, id: unkept, pathless: v.pathless}
	for i, policy := range v.policies {
		if policy != nil {
			other.policies[i] = policy.ForPath(path...)
		}
	}
	return other
}

// unkept is the number of a view whose plans aren't kept.
const unkept = -1

func (p *protection) viewAs(key string, pathless bool, under func(*rewrite.Policy) *rewrite.Policy) *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[key]
	if !ok {
		v = &view{protection: p, id: len(p.views), pathless: pathless}
		for i, policy := range []*rewrite.Policy{p.enforced, p.watched, p.all} {
			if policy != nil {
				v.policies[i] = under(policy)
			}
		}
		p.views[key] = v
	}
	return v
}

// plan returns the plan of a text for the tables of a scope, checking it only
// once, and whether it was known.
func (v *view) plan(ctx context.Context, sql string, s scope) (plan *rewrite.Plan, hit bool) {
	policy := v.policies[s]
	if v.id == unkept || len(sql) > keptText {
		return policy.Plan(sql), false
	}
	key := planKey{v.id, s, sql}
	if plan, ok := v.plans.GetIfPresent(key); ok {
		return plan, true
	}
	key.sql = strings.Clone(sql) // the caller's text may be a part of a larger one
	plan, err := v.plans.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[planKey, *rewrite.Plan](
		func(_ context.Context, k planKey) (*rewrite.Plan, error) { return policy.Plan(k.sql), nil }))
	if err != nil {
		return policy.Plan(key.sql), false
	}
	return plan, false
}

// sameTables reports whether two registries say the same.
func sameTables(a, b []heldTable) bool {
	return slices.EqualFunc(a, b, func(x, y heldTable) bool {
		return x.Schema == y.Schema && x.Name == y.Name && x.TokenColumn == y.TokenColumn && x.Mode == y.Mode &&
			x.Resource == y.Resource && x.level == y.level && x.wall == y.wall && x.Attested == y.Attested && x.Moves == y.Moves && x.Rewrite == y.Rewrite && x.Unfit == y.Unfit && slices.Equal(x.Key, y.Key) &&
			slices.EqualFunc(x.Keys, y.Keys, slices.Equal) && x.DropsRows == y.DropsRows
	})
}
