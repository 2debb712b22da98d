package gate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/reach"
)

// Protection is what a handle protects at one moment. A new one takes its
// place when the registry changes; connections notice by the pointer.
type Protection struct {
	Tables      []Table       // as given or registered, before anything is looked up
	enforced    *check.Policy // of the tables whose statements are refused
	Watched     *check.Policy // of those and the reported ones; nil if there are none of the latter
	WithOff     *check.Policy // of those and the ones that are off; nil if there are none of the latter
	HasEnforced bool          // whether any table's statements are refused
	HasUnfit    bool          // whether an enforced table's token column can't hold tokens
	HasWall     bool          // whether the database itself refuses writes to a table

	Closures [3]check.Closure // by scope

	Grown uint64                  // how often a table has become enforced
	last  atomic.Pointer[Reading] // that led to this

	wanted []string // the resources whose tokens the tables take
	plans  *otter.Cache[planKey, *check.Plan]

	mu    sync.Mutex
	views map[string]*View
}

// NewProtection returns what is protected where the tables are, each reached by the closure
// of its scope. cacheBytes bounds the plans that are kept.
func NewProtection(tables []Table, closures [3]check.Closure, cacheBytes uint64) (*Protection, error) {
	p := &Protection{Tables: tables, Closures: closures, views: make(map[string]*View)}
	for _, t := range tables {
		p.HasEnforced = p.HasEnforced || t.Level == Enforce
		p.HasUnfit = p.HasUnfit || t.Level == Enforce && t.Unfit != ""
		p.HasWall = p.HasWall || t.HasWall
		p.wanted = append(p.wanted, t.Resource)
	}
	slices.Sort(p.wanted)
	p.wanted = slices.Compact(p.wanted)
	var err error
	if p.enforced, err = p.policyOf(EnforcedTables); err != nil {
		return nil, err
	}
	if p.has(Report) {
		if p.Watched, err = p.policyOf(WatchedTables); err != nil {
			return nil, err
		}
	}
	if p.has(Off) {
		if p.WithOff, err = p.policyOf(AllTables); err != nil {
			return nil, err
		}
	}
	p.plans, err = otter.New(&otter.Options[planKey, *check.Plan]{
		MaximumWeight: cacheBytes,
		Weigher:       planWeight,
	})
	return p, err
}

// levelsOf are the levels of the tables in a scope.
var levelsOf = [3][]Level{EnforcedTables: {Enforce}, WatchedTables: {Enforce, Report}, AllTables: {Enforce, Report, Off}}

// policyOf returns the policy of the tables in a scope.
func (p *Protection) policyOf(s Scope) (*check.Policy, error) {
	var chosen []check.Table
	for _, t := range p.Tables {
		if slices.Contains(levelsOf[s], t.Level) {
			chosen = append(chosen, t.Table)
		}
	}
	policy, err := check.NewPolicy(chosen...)
	if err != nil {
		return nil, err
	}
	return policy.WithClosure(p.Closures[s])
}

// EnforcedPolicy returns the policy of the enforced tables alone, by a catalog.
func EnforcedPolicy(tables []Table, found *reach.Catalog, guarded []check.Name) (*check.Policy, error) {
	p := &Protection{Tables: tables}
	p.Closures[EnforcedTables] = found.Closure(ReachTables(tables, levelsOf[EnforcedTables]...), guarded)
	return p.policyOf(EnforcedTables)
}

// ClosuresOf returns what else reaches the tables of each scope.
func ClosuresOf(tables []Table, found *reach.Catalog, guarded []check.Name) (closures [3]check.Closure) {
	if found == nil {
		return closures
	}
	for s, levels := range levelsOf {
		if s == 0 || slices.ContainsFunc(tables, func(t Table) bool { return t.Level == levels[len(levels)-1] }) {
			closures[s] = found.Closure(ReachTables(tables, levels...), guarded)
		}
	}
	return closures
}

// Keeps reports whether the protection stays in place after a reading: it is
// older, or says the same.
func (p *Protection) Keeps(tables []Table, closures [3]check.Closure, next *Reading) bool {
	last, same := p.Reading(), SameTables(p.Tables, tables)
	switch {
	case !next.isNews(last):
		return true
	case !next.HasCatalog && last.HasCatalog:
		// the catalog is left out where the tables are the same: what differs by now is newer
		if same && next.Server == last.Server {
			kept := *next
			kept.HasCatalog, kept.Stamp = true, last.Stamp
			p.last.Store(&kept)
		}
		return true
	case !same || next.HasCatalog != last.HasCatalog || !reflect.DeepEqual(p.Closures, closures):
		return false
	}
	p.last.Store(next)
	return true
}

// Reading returns what the protection was read from last.
func (p *Protection) Reading() *Reading { return p.last.Load() }

// Follow puts the protection, which comes from a reading, in the place of the one
// before, nil if there was none.
func (p *Protection) Follow(before *Protection, from *Reading) {
	p.last.Store(from)
	p.growOver(before)
}

// growOver counts on from the protection before.
func (p *Protection) growOver(before *Protection) {
	if before == nil {
		return
	}
	p.Grown = before.Grown
	for _, t := range p.Tables {
		if t.Level == Enforce && !slices.ContainsFunc(before.Tables, func(b Table) bool { return b.Level == Enforce && b.Is(t.Schema, t.Name) }) {
			p.Grown++
			return
		}
	}
}

// has reports whether a table is at the level.
func (p *Protection) has(l Level) bool {
	return slices.ContainsFunc(p.Tables, func(t Table) bool { return t.Level == l })
}

// Held returns the tables that are reported or enforced.
func (p *Protection) Held() (out []check.Table) {
	for _, t := range p.Tables {
		if t.Level != Off {
			t.Schema = OrPublic(t.Schema)
			out = append(out, t.Table)
		}
	}
	return out
}

// Reports reports whether a table's statements are only reported. A table
// without a schema stands for all of its name: those of one that is enforced are
// not only reported.
func (p *Protection) Reports(t *check.Table) bool {
	if p.Watched == nil {
		return false
	}
	isMeant := func(h Table) bool { return h.Is(t.Schema, t.Name) || t.Schema == "" && h.Name == t.Name }
	return slices.ContainsFunc(p.Tables, func(h Table) bool { return h.Level == Report && isMeant(h) }) &&
		!slices.ContainsFunc(p.Tables, func(h Table) bool { return h.Level == Enforce && isMeant(h) })
}

// UnfitViolation refuses a statement that writes a table whose token column can't
// hold tokens: its guard would prove nothing.
func (p *Protection) UnfitViolation(plan *check.Plan) *check.Violation {
	for _, w := range plan.Writes() {
		if w.Table.Unfit == "" {
			continue
		}
		v := check.Refuse(check.UnfitTable, fmt.Sprintf("%s on protected table %q, which %s; until the next look after that, no write to it is sent", w.Kind, w.Table.String(), w.Table.Unfit))
		v.Table = w.Table.String()
		return v
	}
	return nil
}

// MayBeChangedBy reports whether a statement that changes the catalog may change
// what is protected, or what reaches it: where nothing is, only what registers a
// table does.
func (p *Protection) MayBeChangedBy(sql string) bool {
	return len(p.Tables) > 0 || strings.Contains(strings.ToLower(sql), "fencing")
}

// IssuesElsewhere reports whether a registered table takes tokens that come from
// elsewhere than this database.
func (p *Protection) IssuesElsewhere(t *check.Table) bool {
	return slices.ContainsFunc(p.Tables, func(h Table) bool {
		return h.IsRegistered && h.IssuedBy.Name == "" && (h.Is(t.Schema, t.Name) || t.Schema == "" && h.Name == t.Name)
	})
}
