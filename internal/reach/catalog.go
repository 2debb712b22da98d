package reach

import (
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/check"
)

// catalogQuery reads what the catalog knows of protected tables beyond their
// names; stampQuery tells whether that may have changed.
var (
	//go:embed catalog.sql
	catalogTemplate string
	//go:embed stamp.sql
	stampQuery string

	// In one round trip. Rules and bodies are shown under locks of what they name.
	readingQuery           = "SELECT " + StampColumns + ", (" + catalogQuery("SELECT NULL::pg_catalog.oid WHERE false") + ")"
	registeredReadingQuery = "SELECT " + StampColumns + ", (" + catalogQuery("SELECT * FROM fencing.allowed_functions()") + ")"
)

// catalogQuery returns catalog.sql, with the query for the functions that the
// registry allows.
func catalogQuery(allowed string) string {
	functions, calls, relations := check.FencingNames()
	list := func(names []string) string { return "{" + strings.Join(names, ",") + "}" }
	return strings.NewReplacer("{sql_functions}", list(check.SQLFunctions()), "{fencing_functions}", list(functions), "{fencing_calls}", list(calls), "{fencing_relations}", list(relations), "{allowed}", allowed).Replace(catalogTemplate)
}

// catalog is what catalogQuery found. It doesn't depend on levels, so that the
// closure of each policy comes from one reading.
type catalog struct {
	folds        bool // the database's encoding is not UTF8
	isPathUnseen bool // the server doesn't report the search path: a comparison made since may come before the built-in one

	Held      [][2]oid // place among the protected tables, oid
	Relations []catalogRelation
	Inherits  [][2]oid // child, parent
	Views     [][2]oid // what is read, the view
	Stored    [][2]oid // a view that is read, the materialized view
	Foreign   [][2]oid // what the options of a foreign table name, the foreign table
	Keys      []catalogKey
	Generated []catalogGenerated // of tables whose keys others follow
	Triggers  []catalogTrigger
	Changers  []catalogRoutine // the functions of row triggers that may change the row before it is written
	// what the conditions of triggers call
	Conditions    []catalogTrigger
	Rules         []catalogRule
	Reads         []catalogRead
	Calls         [][2]oid      // a routine, another that its arguments or the like run
	EventTriggers []oid         // their functions
	Uses          []catalogRead // a table, a routine that its defaults, policies, indexes and the like call
	Unseen        []catalogUnseen
	Own           []catalogRoutine    // functions of schema fencing that something else than a trigger of its own runs
	Expressions   []catalogExpression // what calls a function that runs what it is given
	Routines      []catalogRoutine
	Allowed       []oid             // functions that the registry allows
	Namesakes     []catalogRelation // relations of the bare name of a protected one or its family, these among them
	SystemViews   []catalogRelation // views over system catalogs or schema fencing, and what else leads to the latter
	Types         []check.Name      // users' types that the protected tables' columns are of, or that these are made of
	Comparisons   bool              // there is a user's own < <= > >= over integers
	Equals        bool              // there is a user's own = over rows or integers
	Epoch         bool              // fencing.write_epoch is there
	Owners        []catalogOwner    // of the sequences that tokens come from, those that belong to columns

	made *check.Makers // once they were looked for
}

// oid is written as a string in JSON.
type oid uint32

// UnmarshalJSON reads an oid, or a number.
func (o *oid) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 32)
	*o = oid(n)
	return err
}

type (
	catalogRelation struct {
		OID          oid
		Schema, Name string
		IsTable      bool     // of a namesake: partitioned or not, and no view or foreign table
		Columns      []string // of a view or foreign table

		IsPartitioned bool
	}
	catalogKey struct {
		Child, Parent  oid
		Delete, Update string   // actions, as in pg_constraint
		IsInherited    bool     // it is a partition's share of a key of the whole table
		From, To       []string // the child's columns, and the parent's
	}
	catalogGenerated struct {
		Relation     oid
		Column, From string // a generated column, and one that it is generated from
	}
	catalogTrigger struct {
		Relation, Function oid
		Trigger            string   // its own name
		Columns            []string // of UPDATE OF
		Schema, Name       string   // the function's
		Type               int
		Fires              bool
		Args               string // each ends with \000
	}
	catalogRule struct {
		Relation            oid
		Name, Event, Source string
		Fires               bool
		Instead             bool // its actions, if any, take the statement's place
	}
	// catalogOwner is a relation that takes a sequence along, or its column does, when
	// it is dropped.
	catalogOwner struct {
		Schema, Name, Column string
		Sequence             check.Name
	}
	// catalogRead is a function that a rule runs, or a view when it is read, or
	// what else belongs to a table.
	catalogRead struct {
		Relation, Function oid
		Event              string // of a rule "" for a view; of a use "" for rows that are written, or DELETE or READ
		Fires              bool
	}
	// catalogUnseen is an object that belongs to no relation and runs a function.
	catalogUnseen struct {
		Kind, Name string // as pg_identify_object tells them
		Function   oid
	}
	catalogRoutine struct {
		OID                            oid
		Schema, Name, Language, Source string
		Signature                      string // its name with the types that tell it from others
		ArgNames                       []string
		Defaults                       string       // of the last parameters
		Settings                       []string     // of its own, as name=value
		body                           *routineBody // once it was read
	}
)

// read reads a rule's actions: what stands behind DO. The event itself names
// the table that the rule is on.
func (r *catalogRule) read() *routineBody {
	words := lexBody(r.Source, true)
	if i := slices.IndexFunc(words, func(w bodyToken) bool { return w.is("do") }); i >= 0 {
		words = words[i+1:]
	}
	return scanBody("sql", words)
}

// readingAdvice says what to do about an error of the reading, if that is known.
func readingAdvice(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	switch pgErr.Code {
	case "42501":
		return ": fencerow reads the system catalogs, as every role may unless that was taken away: grant this role SELECT on the catalog that is named"
	case "55P03":
		return ": a table that a rule or a function's SQL body names, or a catalog, is locked, by a change of structure most likely: let that end, and connect again"
	}
	return ""
}
