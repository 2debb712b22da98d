package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/mode"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// Mode says which tokens a protected table takes.
type Mode = mode.Mode

// The modes of a protected table; see package mode.
const (
	Strict = mode.Strict
	Lease  = mode.Lease
)

// ParseMode reads the name of a mode as its String writes it.
func ParseMode(s string) (Mode, error) { return mode.Parse(s) }

// DefaultTokenColumn is the token column of a table that names none.
const DefaultTokenColumn = "last_token"

// Table is a protected table. Names are as PostgreSQL stores them: case
// matters, and nothing is quoted.
type Table struct {
	Schema      string     // "public" if empty
	Name        string     // required
	TokenColumn string     // a bigint NOT NULL column; DefaultTokenColumn if empty
	Mode        Mode       // required
	Resource    string     // the resource whose token the table takes; "" takes the context's default token
	Key         []string   // the primary key's columns, if known: lets a lost race be told from a missing row
	Keys        [][]string // the columns of the keys by which a row is known whatever happens to it: unique indexes, without what a partitioned table is partitioned by
	DropsRows   bool       // a trigger or rule of the table may leave a row out of a write, without an error
	Rewrite     bool       // a write without a proof is sent in its guarded form, if it has one; see Plan.Rewritten
	Unfit       string     // why no write to it can be proved, and what mends that; "" if its token column holds tokens
	Attested    bool       // the database wants the token of every write in a setting, too; see Plan.Attested
	Moves       bool       // an UPDATE may move a row to another partition, of which the database then sees the DELETE; see Plan.Attested
}

// String returns the table's name for messages, without the schema public.
func (t *Table) String() string {
	if t.Schema == "public" || t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Policy is an immutable set of protected tables. It is safe for concurrent use.
//
// A name with a schema stands for the table of that name. A bare name stands for
// every protected table of that name, whatever the session's search_path is:
// functions, triggers, views over pg_settings, a reload of the configuration and
// poolers change that setting without a statement that shows it.
type Policy struct {
	byName  map[string][]*relation // protected tables and their closure, by bare name
	tables  []*Table
	closure Closure
	words   map[string][]string // names that a change of structure must not mention, with their schemas
	quick   *quickSet
	makers  *makerSet // what changes the catalog when it is used; nil if nothing does

	hasReaders bool // a relation writes a protected table when it is read

	namesakes map[string][]Namesake // what bare names may stand for besides, and isn't protected

	path   []string // the schemas in which a new object could take the place of a protected one
	known  bool     // whether path is known at all
	unsafe string   // why no write can be proved under this path; "" if it can
}

// NewPolicy returns the policy that protects the given tables. Use
// [Policy.ForPath] for a session whose search path is known.
func NewPolicy(tables ...Table) (*Policy, error) {
	p := &Policy{byName: make(map[string][]*relation, len(tables))}
	for _, t := range tables {
		if err := t.checkSpelling(); err != nil {
			return nil, err
		}
		t = t.withDefaults()
		t.Key, t.Keys = slices.Clone(t.Key), cloneKeys(t.Keys)
		if err := t.check(); err != nil {
			return nil, err
		}
		r := p.relation(Name{t.Schema, t.Name})
		if r.table != nil {
			return nil, fmt.Errorf("table %q is protected twice: register it once", t.String())
		}
		r.table = &t
		p.tables = append(p.tables, &t)
	}
	p.setClosure(Closure{})
	return p, nil
}

// ForPath returns the policy for a session that began with that search path. The
// schemas are those of the setting search_path, in order, with "$user" already
// replaced. What a bare name of a table, view or function stands for doesn't
// depend on the path. The path decides where a new relation could take a
// protected one's place: DDL on a namesake in a schema that isn't on the path is
// allowed.
//
// If pg_catalog is named in the path and doesn't come first, an operator of a
// user's schema would stand in for the built-in "<"; no write is provable
// then, and each is refused.
func (p *Policy) ForPath(schemas ...string) *Policy {
	view := *p
	view.path, view.known, view.unsafe = slices.Clone(schemas), true, ""
	if i := slices.Index(schemas, "pg_catalog"); i > 0 {
		view.unsafe = "pg_catalog does not come first in the session's search_path, so the operator < may be somebody's own; leave pg_catalog out of search_path"
	}
	return &view
}

// ForAnyPath returns the policy for a session that has changed its search path:
// a new relation could take a protected one's place in any schema, and what made
// the first path unsafe may come back.
func (p *Policy) ForAnyPath() *Policy {
	view := *p
	view.path, view.known = nil, false
	return &view
}

// Tables returns the protected tables, sorted by schema and name.
func (p *Policy) Tables() []Table {
	out := make([]Table, len(p.tables))
	for i, t := range p.tables {
		out[i] = *t
		out[i].Key, out[i].Keys = slices.Clone(t.Key), cloneKeys(t.Keys)
	}
	slices.SortFunc(out, func(a, b Table) int {
		return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name)
	})
	return out
}

// lookup returns the relations of the closure that a name in a statement can
// stand for; schema is "" for a bare name.
func (p *Policy) lookup(schema, name string) []*relation {
	candidates := p.byName[name]
	if schema == "" {
		return candidates
	}
	var hits []*relation
	for _, r := range candidates {
		if r.IsIn(schema) {
			hits = append(hits, r)
		}
	}
	return hits
}

// Check reports what is wrong with the table's names or mode: no policy takes a
// table with such a fault.
func (t *Table) Check() error {
	if err := t.checkSpelling(); err != nil {
		return err
	}
	with := t.withDefaults()
	return with.check()
}

// withDefaults returns the table with the defaults in the place of empty names.
func (t *Table) withDefaults() Table {
	with := *t
	with.Schema = defaultTo(t.Schema, "public")
	with.TokenColumn = defaultTo(t.TokenColumn, DefaultTokenColumn)
	return with
}

func cloneKeys(keys [][]string) [][]string {
	out := slices.Clone(keys)
	for i := range out {
		out[i] = slices.Clone(out[i])
	}
	return out
}

// checkSpelling refuses a name that was meant as it is written in SQL, with its schema
// or in quotes. A table that is really called like that is given with its schema.
func (t *Table) checkSpelling() error {
	if t.Schema == "" && strings.ContainsAny(t.Name, `."`) {
		return fmt.Errorf("table %q: a name with a dot or a quote was given without a schema: put the schema into Schema, and the name without quotes into Name", t.Name)
	}
	return nil
}

func (t *Table) check() error {
	for _, name := range slices.Concat([]string{t.Schema, t.Name, t.TokenColumn}, t.Key, slices.Concat(t.Keys...)) {
		if err := checkName(name); err != nil {
			return fmt.Errorf("table %q: %w", t.String(), err)
		}
	}
	switch {
	case t.Schema == "pg_catalog" || t.Schema == "information_schema" || t.Schema == "fencing":
		return fmt.Errorf("table %q: tables of schema %s cannot be protected", t.String(), t.Schema)
	case t.Mode != Strict && t.Mode != Lease:
		return fmt.Errorf("table %q has no mode: choose rewrite.Strict (one write per token and row) or rewrite.Lease (a holder writes as often as it likes)", t.String())
	case strings.ContainsRune(t.Resource, 0):
		return fmt.Errorf("table %q: the resource name contains a NUL byte", t.String())
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a name is empty: give schema, table and column as PostgreSQL stores them")
	case len(name) > sqltext.MaxName:
		return fmt.Errorf("name %q is longer than PostgreSQL's %d bytes", name, sqltext.MaxName)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("name %q is not valid UTF-8 or contains a NUL byte", name)
	}
	return nil
}

func defaultTo(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
