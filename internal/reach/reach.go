package reach

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// Table is a protected table, with what the closure depends on.
type Table struct {
	Schema, Name string // as the catalog has them; the schema is never ""
	TokenColumn  string
	IsChosen     bool       // the closure is about this table, not only about others
	HasWall      bool       // the table's own triggers judge what cascades into it
	IssuedBy     check.Name // the sequence that its tokens come from, if that is known
}

// Session is the connection by which the catalog is read. What the role, the
// database or the DSN sets must not change its answers: see the settings of the
// driver's own queries.
type Session interface {
	// Query returns the rows of a query as text, NULL as "".
	Query(ctx context.Context, sql string, args ...string) (rows [][]string, err error)
	// ParameterStatus returns what the server has reported of a setting, "" if it
	// hasn't, as [github.com/jackc/pgx/v5/pgconn.PgConn.ParameterStatus] does.
	ParameterStatus(name string) string
}

// Catalog is what the server's catalogs say of protected tables and of what is
// around them. It isn't safe for concurrent use: what is read of a function's body
// is kept.
type Catalog struct {
	Stamp string // of the catalogs when they were read; see [StampColumns]

	facts catalog
}

// Read reads the catalog for the tables. Without any it asks nothing: then only the
// sequence of schema fencing is to be reached.
func Read(ctx context.Context, session Session, tables []Table) (*Catalog, error) {
	return readBy(ctx, session, tables, readingQuery)
}

// ReadRegistered is Read where the database's registry says which functions are
// allowed: what these write doesn't count in a [Catalog.Closure]. It needs the
// function fencing.allowed_functions.
func ReadRegistered(ctx context.Context, session Session, tables []Table) (*Catalog, error) {
	return readBy(ctx, session, tables, registeredReadingQuery)
}

// readBy reads the catalog by one of the two queries for that.
func readBy(ctx context.Context, session Session, tables []Table, query string) (*Catalog, error) {
	if len(tables) == 0 {
		return &Catalog{facts: catalog{Epoch: true}}, nil
	}
	names, err := EncodeNames(tables)
	if err != nil {
		return nil, err
	}
	rows, err := session.Query(ctx, query, names)
	if err != nil {
		return nil, fmt.Errorf("fencerow: read what else can write the protected tables from the catalog: %w%s", err, readingAdvice(err))
	}
	if len(rows) != 1 || len(rows[0]) != 3 {
		return nil, fmt.Errorf("fencerow: read what else can write the protected tables from the catalog: the server gave %d rows", len(rows))
	}
	stamp, document := JoinStamp(rows[0][0], rows[0][1]), rows[0][2]
	if encoding := session.ParameterStatus("client_encoding"); encoding != "UTF8" && !sqltext.IsASCII(document) {
		return nil, fmt.Errorf("fencerow: the database has names beyond ASCII, which are not read under client_encoding %s: put client_encoding=UTF8 into the DSN, and remove it from PGCLIENTENCODING and the role", encoding)
	}
	found := &Catalog{Stamp: stamp, facts: catalog{folds: session.ParameterStatus("server_encoding") != "UTF8"}}
	if err := json.Unmarshal([]byte(document), &found.facts); err != nil {
		return nil, fmt.Errorf("fencerow: read what else can write the protected tables from the catalog: %w", err)
	}
	found.facts.isPathUnseen = session.ParameterStatus("search_path") == ""
	return found, nil
}

// Closure returns what else can reach the chosen tables. The tables are those that
// the catalog was read for, in the same order, each chosen or not. A function that
// is named as guarded carries a guard of its own, and what it writes doesn't count.
func (c *Catalog) Closure(tables []Table, guarded []check.Name) check.Closure {
	return c.facts.closureOf(tables, guarded)
}

// EncodeNames writes the names of the tables, of their token columns and of the
// sequences of their tokens as a JSON list, the argument of a query that looks the
// tables up.
func EncodeNames(tables []Table) (string, error) {
	type name struct{ Schema, Name, TokenColumn, SequenceSchema, Sequence string }
	names := make([]name, len(tables))
	for i, t := range tables {
		names[i] = name{t.Schema, t.Name, t.TokenColumn, t.IssuedBy.Schema, t.IssuedBy.Name}
	}
	text, err := json.Marshal(names)
	if err != nil {
		return "", fmt.Errorf("fencerow: %w", err)
	}
	return string(text), nil
}

// fitnessQuery changes with what makes a token column unfit and isn't in the
// answer of stampQuery.
const fitnessQuery = `SELECT pg_catalog.concat_ws('-',
  (SELECT pg_catalog.sum(pg_catalog.hashtextextended(a.attname::pg_catalog.text || a.attidentity::pg_catalog.text, a.attrelid::pg_catalog.int8))
     FROM pg_catalog.pg_attribute a WHERE a.attidentity <> ''),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(u.oid::pg_catalog.int8, 0)) FROM pg_catalog.pg_constraint u WHERE u.contype = 'n' AND NOT u.convalidated))`

var (
	// StampColumns are the two columns of a query from which [JoinStamp] makes the
	// stamp of the catalogs: it changes with whatever [Read] depends on, and with
	// what makes a token column unfit.
	StampColumns = `(` + stampQuery + `), (` + fitnessQuery + `)`

	// ExactStampQuery also tells two versions of a row that one transaction has
	// written, which have the same xmin.
	ExactStampQuery = strings.ReplaceAll(stampQuery, "xmin::text::pg_catalog.int8", "xmin::text::pg_catalog.int8 # pg_catalog.hashtextextended(ctid::text, 0)")
)

// JoinStamp puts the two columns of a stamp together.
func JoinStamp(catalog, fitness string) string { return catalog + "/" + fitness }

// lowerASCII folds a name as PostgreSQL does under UTF8.
func lowerASCII(s string) string { return sqltext.Lower(s) }
