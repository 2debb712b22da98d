package check

import (
	"fmt"
	"slices"
	"sync"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// Plan is what one SQL text does to protected tables, and what proves that it
// may. It is immutable and safe for concurrent use.
type Plan struct {
	// Violations says why the text must not be sent. It is empty if it may:
	// then a text with protected writes still has to pass Bind.
	Violations []Violation

	// ChangesPath reports whether the text may change the session's search
	// path. Texts sent after it on the same session must be planned with a
	// policy that knows no path.
	ChangesPath bool

	// ChangesCatalog reports whether the text may change what a closure is read
	// from: it has a statement that makes, changes or drops something, or code.
	ChangesCatalog bool

	// Makes reports that it may do so by what it calls or fires, so that the text
	// doesn't show what.
	Makes bool

	// Cleared reports that no lexer could find a name or word in the text by
	// which it reaches a protected table, so that it may also be sent on a
	// session whose settings the check does not know.
	Cleared bool

	// NamesOwn reports whether the text, or a function that it calls, changes or calls
	// by a name without a schema what the schema fencing may have under that name, or
	// gives the schema's name to a function. It may be sent only on a session that is
	// marked as the driver's, and if there is such a bare name, [Plan.OwnName], only
	// while the session's search path doesn't lead into that schema.
	NamesOwn bool

	// ByPath reports whether a change of structure in the text passed because of the
	// search path that the policy is for: by another one, it may be that of a protected
	// table. It may be sent only if the session has that path when it is sent; see
	// [Policy.ForPath].
	ByPath bool

	// DeallocatesAll reports whether the text takes all prepared statements away. Who sends it
	// has to forget those that it knows by name: another could be given a name of theirs.
	DeallocatesAll bool

	policy *Policy // that the text was checked under; nil if it was cleared
	text   string
	writes []Write
	tokens []tokenUse

	compares bool // the text's own write has a guard
	replays  bool // one of its guards rejects a row that carries the same token
	attests  bool // its token goes into a setting somewhere

	carries []*Table  // see Carries
	carry   *carrying // nil if it carries nothing

	rewriting *rewriting // nil if nothing was added to have the text guarded
	gate      *gate      // nil if the text has no gate
	ownName   string     // for which NamesOwn is set
	given     string     // the text that was given, if the plan is for it with schemas written into it
	shared    *Shared    // nil if no bare name of a write needs to be asked for
	direct    bool       // see Direct

	later *later // nil unless it is a guarded write
}

// later is what a plan of a guarded write has besides. Most of it is seldom asked
// for, and found out then.
type later struct {
	table  *Table  // whose token all its placeholders take; nil if they differ, or there are literals
	places []int64 // the numbers of those placeholders

	parts    []Part     // see Parts
	compared []tokenUse // placeholders for which tokenctx.Arg may be passed, too

	probeOnce sync.Once
	looks     []Look

	attestOnce sync.Once
	attested   string
	counts     Counts // of attested
}

// Write is one write to a protected table in a statement.
type Write struct {
	Table     *Table
	Kind      string // "UPDATE", "DELETE", "INSERT", ...
	TopLevel  bool   // the statement itself, not a part of its WITH
	Returning bool
}

// tokenUse is a place in the text that must hold the token of a table: a
// placeholder, or else a literal.
type tokenUse struct {
	table          *Table
	param, literal int64
	offset         int // in the text
}

// Plan checks one SQL text. It never returns nil, and touches no database.
func (p *Policy) Plan(sql string) *Plan {
	plan := p.planned(sql)
	if p.makes(sql) {
		plan.ChangesCatalog, plan.Makes, plan.direct = true, true, false
	}
	return plan
}

func (p *Policy) planned(sql string) *Plan {
	if p.clears(sql) {
		return &Plan{text: sql, Cleared: true, direct: true}
	}
	long, args, tried := p.rewrittenLong(sql)
	if long != nil {
		return long
	}
	a := workspaces.Get().(*workspace)
	defer a.release()
	plan := p.planIn(a, sql)
	shared := p.sharedNames(&a.checker)
	if len(plan.Violations) > 0 {
		plan.shared = shared.of(plan)
	}
	switch {
	case args != nil && len(plan.Violations) == 0:
		return plan.withArguments(args)
	case !tried:
		if rewritten := p.rewritten(plan, &a.checker); rewritten != nil {
			rewritten.shared = shared.of(rewritten)
			return rewritten
		}
	}
	if planned := plan.withoutProof(a.checker.stmts); planned != nil {
		return planned
	}
	if len(sql) > maxRewritten && len(plan.Violations) > 0 && plan.mayBeRewritten() {
		plan.Violations[0].Fix = fmt.Sprintf("write fewer rows at once: a text of more than %d bytes is not rewritten", maxRewritten)
	}
	if len(plan.Violations) > 0 && plan.isGuardable() && len(sql) <= maxFixed && !a.checker.stmts[0].Get("stmt").Is("CopyStmt") {
		if guarded := p.guarded(&a.checker); guarded != nil {
			plan.Violations[0].showFix(guarded.text)
		}
	}
	if len(plan.Violations) > 0 && len(p.namesakes) > 0 && plan.shared == nil {
		p.adviseSchema(&plan.Violations[0], p.sharedName(a.checker.stmts...))
	}
	return plan
}

// maxFixed is the longest text that is shown guarded, in bytes.
const maxFixed = 16 << 10

// guardable are the rules whose violations can be mended by adding to the text.
var guardable = map[Rule]bool{UnguardedUpdate: true, UnraisedUpdate: true, UnguardedDelete: true, UnguardedInsert: true, UnguardedUpsert: true}

func (p *Plan) isGuardable() bool {
	return !slices.ContainsFunc(p.Violations, func(v Violation) bool { return !guardable[v.Rule] })
}

// fullPlan checks a text by its parse tree. The tree's memory is used again for
// the next text: a plan holds on to no node of it, which a test makes sure of.
func (p *Policy) fullPlan(sql string) *Plan {
	a := workspaces.Get().(*workspace)
	defer a.release()
	return p.planIn(a, sql)
}

// planIn is fullPlan in the memory of a workspace.
func (p *Policy) planIn(a *workspace, sql string) *Plan {
	return a.check(p, sql).plan()
}

// plan checks the text under the checker's policy.
func (c *checker) plan() *Plan {
	p, sql := c.policy, c.sql
	c.text()
	plan := &Plan{ChangesPath: c.changesPath, DeallocatesAll: c.deallocatesAll, ByPath: c.byPath, ChangesCatalog: c.changesCatalog, NamesOwn: c.own != nil || c.callsOwn != "" || c.givesOwn, ownName: defaultTo(c.ownName, c.callsOwn), policy: p, text: sql, writes: c.writes, tokens: c.tokens}
	if len(c.found) > 0 {
		c.locate()
		for _, v := range c.found {
			plan.Violations = append(plan.Violations, *v)
		}
		return plan
	}
	if len(c.writes) > 0 {
		plan.later = new(later)
		plan.later.table, plan.later.places = places(c.tokens)
		plan.later.parts, plan.later.compared = c.outcomes(), c.compared
	}
	countsMeant := plan.countsAnyMeant()
	plan.attests = c.root != nil || countsMeant
	if plan.carries = c.carriedBy(); len(plan.carries) > 0 {
		plan.carry = new(carrying)
	}
	plan.direct = !plan.hasParts() && !countsMeant && !plan.ChangesPath && !plan.ByPath && !plan.ChangesCatalog && !plan.NamesOwn && !plan.DeallocatesAll &&
		len(plan.carries) == 0 && (len(plan.writes) == 0 && len(plan.tokens) == 0 || plan.Takes() != nil)
	if plan.compares = len(c.guards) > 0; plan.compares {
		plan.replays = slices.ContainsFunc(c.guards, func(g guard) bool { return !g.equal })
	}
	if len(c.bare)+len(c.casts) > 0 {
		c.requireQualified(plan)
	}
	return plan
}

// requireQualified refuses a text whose comparisons aren't sent as those of
// pg_catalog although the database has others, or whose casts aren't.
func (c *checker) requireQualified(plan *Plan) {
	plan.later.attestOnce.Do(func() {
		plan.later.attested, plan.later.counts = (&proof{plan, c.stmts, c.parts, c.guards, c.root, c.changes, c.inserts, c.bare, c.casts, c.lex, c.cascades}).attest()
	})
	if plan.later.attested != plan.text {
		return // what is sent is proved to be the text with them qualified
	}
	t := plan.writes[0].Table
	v := violation(UnsafePath, slices.Concat(c.bare, c.casts)[0], "write to protected table %s casts the token to a type by its bare name, which may be somebody's own: write $n::bigint", quoted(t))
	if len(c.bare) > 0 {
		v.Message = fmt.Sprintf("write to protected table %s compares by an operator that may be somebody's own, since the database has one for integers: write OPERATOR(pg_catalog.<) or OPERATOR(pg_catalog.<=)", quoted(t))
	}
	c.found = append(c.found, v.on(t))
	c.locate()
	plan.Violations = append(plan.Violations, *v)
}

// Refusal returns the first of the violations as an error, or nil.
func (p *Plan) Refusal() error {
	if len(p.Violations) == 0 {
		return nil
	}
	v := p.Violations[0]
	if !v.fixesAll {
		v.others = p.Violations[1:]
	}
	return &v
}

// Guarded reports whether the text writes a protected table: it then needs a
// token, which Bind puts in its place.
func (p *Plan) Guarded() bool { return len(p.writes) > 0 }

// Writes returns the protected writes of the text.
func (p *Plan) Writes() []Write { return append([]Write(nil), p.writes...) }

// Main returns the protected write that the text itself is, and whether there
// is one. Its count of rows is the statement's.
func (p *Plan) Main() (Write, bool) {
	for _, w := range p.writes {
		if w.TopLevel {
			return w, true
		}
	}
	return Write{}, false
}

// HasParserFailed reports whether the parser came to no answer about the text, such as out
// of memory: it may have one the next time.
func (p *Plan) HasParserFailed() bool {
	return slices.ContainsFunc(p.Violations, func(v Violation) bool { return v.parserFailed })
}

// Compares reports whether the write that the text itself is compares its rows
// with the token: if it changed none, the token may be stale. A plain INSERT
// and DO NOTHING compare nothing.
func (p *Plan) Compares() bool { return p.compares }

// Replays reports whether the guard rejects a row that carries the same token:
// always in strict mode, in lease mode if it is written with "<".
func (p *Plan) Replays() bool { return p.replays }

// text checks the whole text. A panic in a rule must not let a statement pass.
func (c *checker) text() {
	defer func() {
		if r := recover(); r != nil {
			c.found = append(c.found, &Violation{Rule: CheckerPanic, Message: fmt.Sprintf("the check failed on this text (%v); please report it", r), offset: -1})
		}
	}()
	if v := refuseFault(c.checkText()); v != nil {
		c.found = append(c.found, v)
		return
	}
	if v := c.policy.checkFolding(&c.lex); v != nil {
		c.found = append(c.found, v)
		return
	}
	stmts, err := c.arena.Parse(c.sql)
	if err != nil {
		c.found = append(c.found, c.policy.unreadViolation(&c.lex, err))
		return
	}
	if c.stmts = stmts; c.madeBy != nil && !c.madeBy.made(stmts) {
		c.found = append(c.found, &Violation{Rule: Unparsable, Message: "SQL text is not the one that it was made of, with a guard added", offset: -1})
		return
	}
	c.several = len(stmts) > 1
	c.changesCatalog = slices.ContainsFunc(stmts, func(raw *sqltree.Node) bool { return changesCatalog(raw.Get("stmt")) })
	for _, raw := range stmts {
		c.statement(raw.Get("stmt"))
		c.mayBeMoved = c.mayBeMoved || c.several && movesPath(raw.Get("stmt"))
		if c.changesPath {
			c.policy = c.policy.ForAnyPath() // what follows is looked up in another path
		}
	}
	c.checkOrder()
	c.checkOwn()
	c.afterwards(stmts)
}

// checkText refuses what must not reach the parser.
func (c *checker) checkText() *sqltext.Fault {
	if c.madeBy != nil && c.madeBy.growth.short == nil {
		return c.lex.Check(c.madeBy.IsTooDeep)
	}
	return c.lex.Check(c.lex.IsTooDeep)
}
