package driver

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/maypok86/otter/v2"

	"github.com/fencerow/fencerow/rewrite"
)

// protection is what a connector protects at one moment. A new one takes its
// place when the registry changes; connections notice by the pointer.
type protection struct {
	policy *rewrite.Policy
	tables []rewrite.Table // as given or registered, before anything is looked up
	plans  *otter.Cache[planKey, *rewrite.Plan]

	mu    sync.Mutex
	views map[string]*view
}

// view is a protection as sessions with one search path see it.
type view struct {
	*protection
	policy *rewrite.Policy
	id     int
}

type planKey struct {
	view int
	sql  string
}

// keptText is the longest text whose plan is kept, in bytes. Longer ones are
// bulk statements that hardly ever come twice.
const keptText = 64 << 10

func newProtection(policy *rewrite.Policy, tables []rewrite.Table, cacheBytes uint64) (*protection, error) {
	plans, err := otter.New(&otter.Options[planKey, *rewrite.Plan]{
		MaximumWeight: cacheBytes,
		Weigher:       planWeight,
	})
	if err != nil {
		return nil, err
	}
	return &protection{policy: policy, tables: tables, plans: plans, views: make(map[string]*view)}, nil
}

// planWeight estimates the bytes a plan holds. A guarded write keeps its tree,
// about twenty times as large as its text.
func planWeight(k planKey, p *rewrite.Plan) uint32 {
	weight := uint32(512 + 2*len(k.sql))
	if p.Guarded() {
		weight += uint32(1024 + 24*len(k.sql))
	}
	return weight
}

// view returns the protection under a search path.
func (p *protection) view(path []string) *view {
	return p.viewAs("\x00"+strings.Join(path, "\x00"), func() *rewrite.Policy { return p.policy.ForPath(path...) })
}

// anyPath returns the protection under a search path that isn't known any more:
// it may be the one that the session began with again.
func (p *protection) anyPath(first []string) *view {
	return p.viewAs("any\x00"+strings.Join(first, "\x00"), func() *rewrite.Policy { return p.policy.ForPath(first...).ForAnyPath() })
}

func (p *protection) viewAs(key string, policy func() *rewrite.Policy) *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[key]
	if !ok {
		v = &view{protection: p, policy: policy(), id: len(p.views)}
		p.views[key] = v
	}
	return v
}

// plan returns the plan of a text, checking it only once.
func (v *view) plan(ctx context.Context, sql string) *rewrite.Plan {
	if len(sql) > keptText {
		return v.policy.Plan(sql)
	}
	key := planKey{v.id, sql}
	if plan, ok := v.plans.GetIfPresent(key); ok {
		return plan
	}
	key.sql = strings.Clone(sql) // the caller's text may be a part of a larger one
	plan, err := v.plans.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[planKey, *rewrite.Plan](
		func(_ context.Context, k planKey) (*rewrite.Plan, error) { return v.policy.Plan(k.sql), nil }))
	if err != nil {
		return v.policy.Plan(sql)
	}
	return plan
}

// sameTables reports whether two registries say the same.
func sameTables(a, b []rewrite.Table) bool {
	return slices.EqualFunc(a, b, func(x, y rewrite.Table) bool {
		return x.Schema == y.Schema && x.Name == y.Name && x.TokenColumn == y.TokenColumn && x.Mode == y.Mode &&
			x.Resource == y.Resource && slices.Equal(x.Key, y.Key)
	})
}
