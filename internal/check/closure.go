package check

import (
	"fmt"
	"slices"
	"strings"
)

// Name is a qualified name as PostgreSQL stores it.
type Name struct{ Schema, Name string }

// Closure is what else can reach a protected table: other names for its rows,
// and code or constraints that write them. Text alone doesn't show it, so it
// comes from the catalog where there is one, and is given as data here.
type Closure struct {
	// Relatives are the partitions, inheritance children and ancestors of
	// protected tables. They are protected like their relative.
	Relatives []Relative
	// Views are views over protected tables. They are read freely and never
	// written: their token column may be another column of the table.
	Views []Name
	// ForeignTables are those of Views that are foreign tables, whose options name
	// a protected table or what leads to one.
	ForeignTables []Name
	// Cascades are tables whose foreign keys, over any number of steps, change
	// protected rows.
	Cascades []Cascade
	// Writers are tables with rules, triggers, defaults or the like that write
	// protected tables, and views that do when they are used.
	Writers []Writer
	// Functions are functions, procedures and aggregates that write protected
	// tables.
	Functions []Name
	// FunctionTables has one of the tables that each of Functions may write, for messages.
	FunctionTables map[Name]Name
	// Unread are those of Functions, and the functions of triggers and the like, that may
	// write a table without a wall because a body isn't read.
	Unread []UnreadRoutine
	// TriggerFunctions are the functions of triggers on protected tables.
	TriggerFunctions []Name
	// Sequences are the sequences that tokens come from.
	Sequences []Name
	// SequenceOwners are the relations that take one of them along when they are dropped,
	// since it belongs to a column. TRUNCATE ... RESTART IDENTITY may reset it.
	SequenceOwners []SequenceOwner
	// InsertTriggers are the BEFORE INSERT triggers of protected tables that may change
	// the token that EXCLUDED shows.
	InsertTriggers []TokenTrigger
	// TokenTriggers are the triggers that may change the token which a protected
	// table's row is to get, and that no wall catches.
	TokenTriggers []TokenTrigger
	// Unseen are objects that belong to no relation and run a function which writes
	// protected tables. While there is one, hardly any statement is provable.
	Unseen []UnseenCode
	// Replacements are the rules that do something instead of a write to a protected
	// table.
	Replacements []Replacement
	// EventTriggers are the functions of event triggers that write protected
	// tables: whatever changes a structure runs them.
	EventTriggers []Name
	// GuardedFunctions may be called although they are among Functions: they
	// carry a guard of their own.
	GuardedFunctions []Name
	// AllowedFunctions are the names of functions that the registry allows, which
	// are not among Functions. If the name is, that is for an overload which isn't
	// allowed: a text doesn't show which of them it calls.
	AllowedFunctions []Name
	// Types are the types that columns of protected tables are of, and those that these are made
	// of: a change of one of them may change what every row has.
	Types []Name
	// OwnCallers are functions and procedures that write or call something by a bare
	// name which the schema fencing has, too.
	OwnCallers []Name
	// Namesakes are relations that no other field lists and that have the bare
	// name of one which is: a bare name may stand for either.
	Namesakes []Namesake
	// SystemViews are views through which system catalogs, information_schema or
	// the schema fencing could be written.
	SystemViews []Name
	// Makers are what changes the catalog when a statement uses it.
	Makers Makers
	// HasComparisons says that the database has, or may have by the time that a
	// statement runs, a comparison operator of somebody's own that could take a
	// token: < <= > or >= over int2, int4 or int8, outside pg_catalog. Guards are
	// then sent as OPERATOR(pg_catalog.<=).
	HasComparisons bool
	// FoldsNames says that the server's encoding is not UTF8: it may then take
	// letters beyond ASCII for others where they stand without quotes, by its
	// locale. If one of the names above has any, such words are refused.
	FoldsNames bool
}

// Namesake is a relation that isn't protected and has the bare name of one that
// is, or by which one that is can be reached.
type Namesake struct {
	Name
	OID     uint32 // in the database that the statements are for
	IsTable bool   // a table, partitioned or not, and no view or foreign table
}

// Relative is a relation that shares rows with a protected table.
type Relative struct {
	Name
	Of Name // the protected table
}

// Cascade is a table whose foreign keys change protected rows.
type Cascade struct {
	Name
	Into      Name     // the protected table that is changed
	Delete    bool     // by a DELETE (ON DELETE CASCADE, SET NULL, SET DEFAULT)
	Update    bool     // by any UPDATE: a trigger may change a key (ON UPDATE ...)
	UpdateOf  []string // by an UPDATE of one of these columns
	Truncate  bool     // by a TRUNCATE ... CASCADE
	ChildWall bool     // the protected table has its wall, which judges the cascade
}

// Writer is a table with rules or triggers that write a protected one.
type Writer struct {
	Name
	Into   Name     // the protected table that is written
	Events []string // "INSERT", "UPDATE", "DELETE", "TRUNCATE", "READ" (whatever uses it, a query too), "REFRESH", "LIKE" (CREATE TABLE (LIKE ...) takes it over), "ENABLE" (its trigger or rule is disabled)

	Unread *UnreadRoutine // by which it does, nil if it is by code that is read
}

// TokenTrigger is a trigger that may change the token of a protected table's
// row.
type TokenTrigger struct {
	Name              // the relation whose writes fire it
	Trigger  string   // its own name
	Function Name     // that it runs
	Events   []string // "INSERT", "UPDATE"
}

// Replacement is a rule of a protected table, or one that shares rows with it, ON
// an event DO INSTEAD.
type Replacement struct {
	Name         // the relation
	Rule  string // its own name
	Event string // "INSERT", "UPDATE", "DELETE"
}

// SequenceOwner is a relation by whose drop, or that of a column of it, a sequence goes
// along.
type SequenceOwner struct {
	Name            // the relation
	Column   string // its own, or that of a relation which is dropped with this one
	Sequence Name
}

// relation is everything the policy knows under one name.
type relation struct {
	Name
	table    *Table // it is protected, by itself or with a relative
	view     bool
	system   bool // a view through which a system catalog or schema fencing is written
	foreign  bool // a foreign table
	cascades []Cascade
	writers  []Writer
	triggers []TokenTrigger
	replaced []Replacement
}

// WithClosure returns the policy with what else can reach its tables.
func (p *Policy) WithClosure(c Closure) (*Policy, error) {
	q := *p
	q.byName = make(map[string][]*relation, len(p.byName))
	for _, t := range p.tables {
		q.relation(Name{t.Schema, t.Name}).table = t
	}
	for _, r := range c.Relatives {
		of, err := p.protected(r.Of)
		if err != nil {
			return nil, fmt.Errorf("relative %q: %w", r.Name, err)
		}
		q.relate(r.Name, *of)
	}
	for _, v := range c.Views {
		q.relation(v).view = true
	}
	for _, v := range c.SystemViews {
		q.relation(v).system = true
	}
	q.namesakes = make(map[string][]Namesake)
	for _, n := range c.Namesakes {
		q.namesakes[n.Name.Name] = append(q.namesakes[n.Name.Name], n)
	}
	for _, f := range c.ForeignTables {
		q.relation(f).foreign = true
	}
	for _, cascade := range c.Cascades {
		if _, err := p.protected(cascade.Into); err != nil {
			return nil, fmt.Errorf("cascade from %q: %w", cascade.Name, err)
		}
		r := q.relation(cascade.Name)
		r.cascades = append(r.cascades, cascade)
	}
	for _, w := range c.Writers {
		r := q.relation(w.Name)
		r.writers = append(r.writers, w)
	}
	for _, t := range c.TokenTriggers {
		r := q.relation(t.Name)
		r.triggers = append(r.triggers, t)
	}
	for _, rule := range c.Replacements {
		r := q.relation(rule.Name)
		r.replaced = append(r.replaced, rule)
	}
	q.setClosure(c)
	return &q, nil
}

// relate protects what a name stands for like one of its relatives. One that
// has several, an ancestor for instance, takes what each of them takes.
func (p *Policy) relate(n Name, of Table) {
	of.Schema, of.Name, of.Key, of.Columns = n.Schema, n.Name, nil, nil // in the relative's own order
	rel := p.relation(n)
	if rel.table == nil {
		rel.table = &of
		return
	}
	same := func(t *Table) bool {
		return t.TokenColumn == of.TokenColumn && t.Mode == of.Mode && t.Resource == of.Resource && t.Attested == of.Attested && t.Moves == of.Moves && t.Unfit == of.Unfit
	}
	if !slices.ContainsFunc(p.byName[n.Name], func(r *relation) bool { return r.Name == n && r.table != nil && same(r.table) }) {
		p.byName[n.Name] = append(p.byName[n.Name], &relation{Name: n, table: &of})
	}
}

func (p *Policy) protected(n Name) (*Table, error) {
	for _, r := range p.byName[n.Name] {
		if r.Schema == n.Schema && r.table != nil {
			return r.table, nil
		}
	}
	return nil, fmt.Errorf("table %q is not protected", n)
}

// relation returns the entry for a name, making it if needed.
func (p *Policy) relation(n Name) *relation {
	for _, r := range p.byName[n.Name] {
		if r.Schema == n.Schema {
			return r
		}
	}
	r := &relation{Name: n}
	p.byName[n.Name] = append(p.byName[n.Name], r)
	return r
}

func (p *Policy) setClosure(c Closure) {
	p.closure = c
	p.hasReaders = slices.ContainsFunc(c.Writers, func(w Writer) bool { return slices.Contains(w.Events, eventRead) })
	p.words = make(map[string][]string)
	for name, relations := range p.byName {
		for _, r := range relations {
			p.words[name] = append(p.words[name], r.Schema)
		}
	}
	for _, list := range [][]Name{c.Functions, c.AllowedFunctions, c.TriggerFunctions, c.Sequences} {
		for _, n := range list {
			p.words[n.Name] = append(p.words[n.Name], n.Schema)
		}
	}
	p.words["fencing"] = nil
	p.quick, p.makers = p.newQuickSet(), newMakerSet(c.Makers)
}

// changesExcluded returns a trigger that may change the token that EXCLUDED shows for
// a table: one of its own, or of any table it shares rows with; nil if there is none.
func (p *Policy) changesExcluded(t *Table) *TokenTrigger {
	family := p.familyOf(t)
	for i := range p.closure.InsertTriggers {
		if trigger := &p.closure.InsertTriggers[i]; family[trigger.Name] {
			return trigger
		}
	}
	return nil
}

// familyOf returns the names of the protected tables that a table may be, and of all that
// share rows with them.
func (p *Policy) familyOf(t *Table) map[Name]bool {
	family := map[Name]bool{{t.Schema, t.Name}: true}
	for _, r := range p.lookup(t.Schema, t.Name) {
		family[r.Name] = true
	}
	for range p.closure.Relatives {
		for _, r := range p.closure.Relatives {
			if family[r.Name] || family[r.Of] {
				family[r.Name], family[r.Of] = true, true
			}
		}
	}
	return family
}

// isWord reports whether a name in a change of structure may be one that the
// protection rests on, in whatever schema.
func (p *Policy) isWord(name string) bool {
	_, ok := p.words[name]
	return ok
}

// elsewhere reports whether a name, with or without a schema, stands for
// something else than the protection rests on, and could not take its place on
// the session's path either.
func (p *Policy) elsewhere(schema, name string) bool {
	if !p.known || systemSchema(schema) || strings.HasPrefix(schema, "pg_") {
		return false
	}
	reached := schema == "" || slices.Contains(p.path, schema)
	for _, s := range p.words[name] {
		if s == schema || reached && slices.Contains(p.path, s) {
			return false
		}
	}
	return true
}

// holdsProtected reports whether a schema has something the protection rests
// on.
func (p *Policy) holdsProtected(schema string) bool {
	if systemSchema(schema) {
		return true
	}
	for _, relations := range p.byName {
		for _, r := range relations {
			if r.Schema == schema {
				return true
			}
		}
	}
	c := p.closure
	for _, list := range [][]Name{c.Functions, c.AllowedFunctions, c.TriggerFunctions, c.Sequences} {
		if slices.ContainsFunc(list, func(n Name) bool { return n.Schema == schema }) {
			return true
		}
	}
	return false
}

// matches reports whether a name in a statement, with or without a schema, can
// stand for one of a list.
func matches(list []Name, schema, name string) bool {
	return slices.ContainsFunc(list, func(n Name) bool {
		return n.Name == name && n.IsIn(schema)
	})
}

// IsIn reports whether the name is one of the schema that a text names, of any if that is
// "". The text calls the schema of the session's temporary objects pg_temp, the catalog
// pg_temp_ and a number.
func (n Name) IsIn(schema string) bool {
	return schema == "" || schema == n.Schema || schema == "pg_temp" && strings.HasPrefix(n.Schema, "pg_temp_")
}

// String returns the name for messages, without the schema public. That of the session's temporary
// objects is shown as a statement writes it.
func (n Name) String() string {
	if strings.HasPrefix(n.Schema, "pg_temp_") {
		return "pg_temp." + n.Name
	}
	if n.Schema == "public" || n.Schema == "" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}
