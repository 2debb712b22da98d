package driver

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// catalogQuery reads what the catalog knows of protected tables beyond their
// names; stampQuery tells whether that may have changed.
var (
	//go:embed catalog.sql
	catalogQuery string
	//go:embed stamp.sql
	stampQuery string

	readingQuery = "SELECT (" + stampQuery + "), (" + catalogQuery + ")" // in one round trip
)

// catalog is what catalogQuery found. It doesn't depend on levels, so that the
// closure of each policy comes from one reading.
type catalog struct {
	Held      [][2]oid // place among the protected tables, oid
	Relations []catalogRelation
	Inherits  [][2]oid // child, parent
	Views     [][2]oid // what is read, the view
	Keys      []catalogKey
	Triggers  []catalogTrigger
	Rules     []catalogRule
	Uses      [][2]oid // a table, a routine that its defaults and the like call
	Routines  []catalogRoutine
	Operators []catalogCode
	Types     []catalogCode
	Epoch     bool // fencing.write_epoch is there

	stamp string // of the catalogs when it was read
	order uint64 // among the readings of its connector
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
		Columns      []string // of a view
	}
	catalogKey struct {
		Child, Parent  oid
		Delete, Update string   // actions, as in pg_constraint
		From, To       []string // the child's columns, and the parent's
	}
	catalogTrigger struct {
		Relation, Function oid
		Schema, Name       string // the function's
		Type               int
		Fires              bool
	}
	catalogRule struct {
		Relation      oid
		Event, Source string
	}
	catalogRoutine struct {
		OID                            oid
		Schema, Name, Language, Source string
	}
	catalogCode struct {
		Schema, Name string
		Function     oid
	}
)

// read reads a routine's body.
func (r *catalogRoutine) read() *routineBody { return readRoutine(r.Language, r.Source) }

// read reads a rule's actions: what stands behind DO. The event itself names
// the table that the rule is on.
func (r *catalogRule) read() *routineBody {
	words := lexBody(r.Source, nil, true)
	for i, w := range words {
		if w == "do" {
			return readWords("sql", words[i+1:])
		}
	}
	return readWords("sql", words)
}

// readCatalog reads the catalog for the tables.
func (c *Connector) readCatalog(ctx context.Context, conn *pgx.Conn, tables []heldTable) (*catalog, error) {
	names, err := json.Marshal(tables)
	if err != nil {
		return nil, fmt.Errorf("fencerow: %w", err)
	}
	found := &catalog{order: c.readings.Add(1)}
	var document []byte
	if err := conn.QueryRow(ctx, readingQuery, ownMode(conn), string(names)).Scan(&found.stamp, &document); err != nil {
		return nil, fmt.Errorf("fencerow: read what else can write the protected tables from the catalog: %w", err)
	}
	if err := json.Unmarshal(document, found); err != nil {
		return nil, fmt.Errorf("fencerow: read what else can write the protected tables from the catalog: %w", err)
	}
	return found, nil
}
