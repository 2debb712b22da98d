package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/fault"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/rewrite"
)

// ErrNotInstalled says that the database has no registry of protected tables. It is
// the error of that name of package migrations, too.
var ErrNotInstalled = fault.ErrNotInstalled

// registryQuery reads the registered tables, each under the name it was
// registered with and the one it has now, and the generation they are of.
func registryQuery(columns string) string {
	return `SELECT ` + columns + `, COALESCE(r.schema_name::text, ''), COALESCE(r.table_name::text, ''), COALESCE(n.nspname::text, ''), COALESCE(c.relname::text, ''),
       COALESCE(r.token_column::text, ''), COALESCE(r.mode, ''), COALESCE(r.resource, ''), COALESCE(r.driver_level, ''),
       COALESCE((SELECT pg_catalog.max(value) FROM fencing.generation), 0), (` + markQuery + `),
       COALESCE(j.r->>'wall_level', ''), COALESCE(sn.nspname::text, ''), COALESCE(s.relname::text, ''),
       COALESCE(j.r->>'driver_rewrite', '') = 'true',
       COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('fencing.allowed_functions()'), 'EXECUTE'), false)
  FROM (VALUES (1)) one
  LEFT JOIN fencing.registry r ON true
  LEFT JOIN LATERAL (SELECT pg_catalog.to_jsonb(r) AS r OFFSET 0) j ON true -- a registry of an earlier version lacks some columns
  LEFT JOIN pg_catalog.pg_class c ON c.oid = r.relid
  LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class s ON s.oid = r.issued_by
  LEFT JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace`
}

// tablesQuery reads the database's encoding and what the catalog says of the
// protected tables, of which $1 is a JSON list. A NOT NULL that is NOT VALID, as
// PostgreSQL 18 has it, lets old rows keep their nulls.
func tablesQuery(columns string) string {
	return `SELECT ` + columns + `, pg_catalog.current_setting('server_encoding'),
       (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
                 'found', c.relkind IN ('r', 'p'),
                 'kind', c.relkind,
                 'column', a.attname IS NOT NULL,
                 'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
                 'bigint', a.atttypid = 'pg_catalog.int8'::pg_catalog.regtype,
                 'nullable', NOT a.attnotnull OR EXISTS (
                   SELECT FROM pg_catalog.pg_constraint u
                    WHERE u.conrelid = c.oid AND u.contype = 'n' AND u.conkey[1] = a.attnum AND NOT u.convalidated),
                 'identity', a.attidentity <> '',
                 'generated', a.attgenerated <> '',
                 'moves', (c.relkind = 'p' OR c.relispartition) AND EXISTS (
                   SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = '~fencing_delete'),
                 'columns', (SELECT pg_catalog.json_agg(k.attname ORDER BY k.attnum) FROM pg_catalog.pg_attribute k WHERE k.attrelid = c.oid AND k.attnum > 0 AND NOT k.attisdropped),
                 'key', (SELECT pg_catalog.json_agg(k.attname ORDER BY k.attnum)
                           FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                          WHERE i.indrelid = c.oid AND i.indisprimary),
                 'keys', (SELECT pg_catalog.json_agg(x.key ORDER BY x.indisprimary DESC, x.indexrelid)
                            FROM (SELECT i.indexrelid, i.indisprimary, pg_catalog.json_agg(k.attname ORDER BY k.attnum) AS key
                                    FROM pg_catalog.pg_index i
                                    JOIN pg_catalog.pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                                   WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
                                     AND NOT EXISTS (
                                       SELECT FROM pg_catalog.pg_partition_tree(c.oid) u
                                         JOIN pg_catalog.pg_partitioned_table t ON t.partrelid = u.relid
                                         JOIN pg_catalog.pg_attribute a ON a.attrelid = t.partrelid AND a.attnum = ANY (t.partattrs::int2[])
                                        WHERE a.attname = k.attname)
                                   GROUP BY i.indexrelid, i.indisprimary) x),
                 'drops', EXISTS (
                   SELECT FROM pg_catalog.pg_trigger g
                    WHERE g.tgrelid IN (SELECT c.oid UNION ALL SELECT u.relid FROM pg_catalog.pg_partition_tree(c.oid) u)
                      AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 3 = 3 AND g.tgtype & 20 <> 0 AND g.tgname !~ '^[!~]fencing')
                   OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type IN ('2', '3')))
               ORDER BY w.ordinality)
          FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) WITH ORDINALITY w (t, ordinality)
          LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = w.t->>'Schema'
          LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t->>'Name'
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.t->>'TokenColumn' AND a.attnum > 0 AND NOT a.attisdropped)::text`
}

// column is what the catalog says of a protected table's token column.
type column struct {
	Found, Column, Bigint, Nullable, Identity, Generated bool
	Moves                                                bool   // an UPDATE may move rows between partitions, past the wall's trigger for DELETE
	Kind                                                 string // relkind, "" if there is nothing of that name
	Type                                                 string
	Columns                                              []string // all, in their order
	Key                                                  []string
	Keys                                                 [][]string // without what the table is partitioned by
	Drops                                                bool       // a row trigger or a rule may leave a row out of a write
}

// session is what the check of a connection's statements rests on. It stays
// with pgx's connection, so that one from a pool keeps it.
type session struct {
	gate.State
	server gate.Server           // that it leads to
	grown  map[*Connector]uint64 // the connectors it has served, and what each enforced when it began; see gate.Protection
}

// sessionKey is where a pgx connection keeps its session.
const sessionKey = "fencerow.session"

// errOutdated says that a pool's connection is from before what is enforced.
var errOutdated = errors.New("fencerow: the session is outdated")

// start reads the session of a new connection. One that comes from a pool again
// has been read before.
func (c *Conn) start(ctx context.Context) error {
	conn := c.std.Conn()
	known, again := conn.PgConn().CustomData()[sessionKey].(*session)
	if again {
		c.session = known
		if grown, served := known.grown[c.connector]; served {
			c.grown = grown
			if err := c.refresh(ctx); err != nil || c.isOutdated() || c.isElsewhere() {
				return errOutdated
			}
			return nil
		}
	}
	s, err := c.connector.readAll(ctx, conn)
	if err != nil {
		return err
	}
	c.session.server = s.server
	if !again {
		c.session.IsPathKnown, c.session.grown = true, make(map[*Connector]uint64)
		if c.session.Path, err = gate.SearchPath(s.path, s.user); err != nil {
			return fmt.Errorf("fencerow: the session's search_path %q cannot be read: %w", s.path, err)
		}
		if slices.Contains(c.session.Path, "fencing") {
			return errors.New("fencerow: the session's search_path names the schema fencing, whose tables would then be reached by bare names: take it out of the DSN, the role and the database")
		}
		conn.PgConn().CustomData()[sessionKey] = c.session
	}
	if err := c.connector.examine(ctx, conn); err != nil {
		return err
	}
	c.grown = c.connector.current.Load().Grown
	c.session.grown[c.connector] = c.grown
	return nil
}

// wanted returns the tables to be protected. For tables from the registry it
// fills in the reading, and what the look has seen; there nothing is left out
// because of one row.
func (c *Connector) wanted(ctx context.Context, conn *pgx.Conn, next *gate.Reading) (tables []gate.Table, s seen, err error) {
	tables = append([]gate.Table{}, c.settings.tables...) // never nil: JSON's null is no list
	if !c.settings.fromCode {
		if tables, s, err = c.readRegistry(ctx, conn, next); err != nil {
			return nil, s, err
		}
	}
	for i := range tables {
		t := &tables[i]
		t.Rewrite = t.Rewrite || c.settings.rewrite
		t.Schema = gate.OrPublic(t.Schema)
		if t.TokenColumn == "" {
			t.TokenColumn = rewrite.DefaultTokenColumn
		}
	}
	return tables, s, nil
}

// look reads the registry, looks the tables up in the catalog, and protects them.
// The catalog beyond them is read only again if that is asked for, or they have
// changed. A server that has nothing to teach is asked no further.
func (c *Connector) look(ctx context.Context, conn *pgx.Conn, again bool) (seen, error) {
	return c.lookAt(ctx, conn, func(ctx context.Context) (bool, error) {
		if !again {
			return false, nil
		}
		_, stamp, err := c.stampNow(ctx, conn)
		return err == nil && stamp != c.current.Load().Reading().Stamp, err
	})
}

// lookAt is look, with what tells whether the catalog has changed.
func (c *Connector) lookAt(ctx context.Context, conn *pgx.Conn, hasChanged func(context.Context) (bool, error)) (seen, error) {
	next := &gate.Reading{Begun: c.ticks.Add(1)}
	tables, s, err := c.wanted(ctx, conn, next)
	if err != nil {
		return s, err
	}
	var unfit []Event
	if !c.teachesNothing(next) || c.settings.fromCode {
		if unfit, s, err = c.describe(ctx, conn, tables, next, s); err != nil {
			return s, err
		}
	}
	if c.teachesNothing(next) {
		return s, nil
	}
	found, err := c.catalogFor(ctx, conn, tables, next, hasChanged)
	if err != nil {
		return s, err
	}
	changed, err := c.protect(tables, next, found)
	if changed { // once, and not with every connection: a reporter may open one itself
		for _, e := range unfit {
			c.tell(ctx, e)
		}
	}
	return s, err
}

// describe looks the tables up in the catalog; nothing where there are none.
func (c *Connector) describe(ctx context.Context, conn *pgx.Conn, tables []gate.Table, next *gate.Reading, s seen) (unfit []Event, _ seen, err error) {
	if len(tables) == 0 && !c.settings.fromCode {
		return nil, s, nil
	}
	names, err := reach.EncodeNames(gate.ReachTables(tables))
	if err != nil {
		return nil, s, err
	}
	answer, err := c.askServer(ctx, conn, tablesQuery, names)
	if err != nil {
		return nil, s, fmt.Errorf("fencerow: read the session's settings and the protected tables: %w%s", err, lookAdvice(err))
	}
	row := answer.rows[0]
	if c.settings.fromCode {
		next.Server = serverOf(row)
		s = seen{answer.path, answer.user, next.Server}
	}
	var columns []column
	if described := row[serverWidth+1]; described != "" {
		if err := json.Unmarshal([]byte(described), &columns); err != nil {
			return nil, s, fmt.Errorf("fencerow: read the protected tables: %w", err)
		}
	}
	unfit, err = c.checkTables(tables, columns, row[serverWidth])
	return unfit, s, err
}

// checkTables compares the protected tables with the catalog, and fills in
// their primary keys. A table that is unfit is held as such, and returned to be
// told of. What code names must be there and fit when a handle is opened; a
// registered table that isn't there stays protected under its name.
func (c *Connector) checkTables(tables []gate.Table, columns []column, encoding string) (unfit []Event, err error) {
	if len(columns) != len(tables) {
		return nil, fmt.Errorf("fencerow: the server described %d of %d protected tables", len(columns), len(tables))
	}
	for i := range tables {
		t, col := &tables[i], columns[i]
		if t.Level == Off {
			continue
		}
		t.Columns, t.Key, t.Keys, t.Moves, t.DropsRows = col.Columns, col.Key, col.Keys, col.Moves, col.Drops
		if isMissing := col.Kind == "" && !c.settings.fromCode; t.Unfit == "" && !isMissing {
			t.Unfit = col.problem(&t.Table, encoding)
		}
		if t.Unfit == "" {
			continue
		}
		err := fmt.Errorf("fencerow: protected table %q %s", &t.Table, t.Unfit)
		switch {
		case t.Level == Report:
			unfit = append(unfit, Event{Kind: EventReported, Table: t.String(), Err: err})
		case c.settings.fromCode && !c.isKnown():
			return nil, err
		default:
			unfit = append(unfit, Event{Kind: EventUnfit, Table: t.String(), Err: err})
		}
	}
	return unfit, nil
}

// problem says what is wrong with a table or its token column, and what mends
// it.
func (col column) problem(t *rewrite.Table, encoding string) string {
	name := t.TokenColumn
	switch {
	case col.Kind != "" && !col.Found:
		return fmt.Sprintf("is %s by now, which cannot be protected: give the table its name back, or unregister it with migrations.Unregister and register what is meant", relationKind(col.Kind))
	case !col.Found:
		return fmt.Sprintf("is no table of this database: create it, or correct its name (schema %q, table %q); a view or a foreign table cannot be protected", t.Schema, t.Name)
	case encoding != "UTF8" && !sqltext.IsASCII(t.Schema+t.Name+name):
		return fmt.Sprintf("has a name beyond ASCII, which is only compared safely in a database of encoding UTF8, not %s", encoding)
	case !col.Column:
		return fmt.Sprintf("has no column %s: register it with migrations.Register, or ALTER TABLE ... ADD COLUMN %s bigint NOT NULL DEFAULT 0 over a plain connection", name, name)
	case !col.Bigint:
		return fmt.Sprintf("has a token column %s of type %s: it must be bigint, so that tokens are compared exactly: ALTER TABLE ... ALTER COLUMN %s TYPE bigint over a plain connection, or name another column", name, col.Type, name)
	case col.Nullable:
		return fmt.Sprintf("has a token column %s that may be NULL, which no comparison rejects: ALTER TABLE ... ALTER COLUMN %s SET NOT NULL over a plain connection", name, name)
	case col.Identity || col.Generated:
		return fmt.Sprintf("has a token column %s that is generated: it must take the token that a write sets", name)
	}
	return ""
}

// relationKind names what a relation is that is no table.
func relationKind(relkind string) string {
	switch relkind {
	case "v":
		return "a view"
	case "m":
		return "a materialized view"
	case "f":
		return "a foreign table"
	case "S":
		return "a sequence"
	case "c":
		return "a type"
	}
	return "an index"
}

// readRegistry reads the registered tables. A row that says what this version
// doesn't know stands for a table that is held and unfit.
func (c *Connector) readRegistry(ctx context.Context, conn *pgx.Conn, next *gate.Reading) (tables []gate.Table, s seen, err error) {
	answer, err := c.askServer(ctx, conn, registryQuery)
	s.path, s.user = answer.path, answer.user
	if err != nil {
		return nil, s, registryError(err, conn)
	}
	found := make(map[[2]string]gate.Table)
	for _, row := range answer.rows {
		next.Server, row = serverOf(row), row[serverWidth:]
		next.Mark, next.Allows = row[9], row[14] == "t"
		if next.Generation, err = strconv.ParseInt(row[8], 10, 64); err != nil {
			return nil, s, fmt.Errorf("fencerow: read the registry: %w", err)
		}
		if row[1] == "" {
			continue // nothing is registered
		}
		t := registeredTable(row)
		hold(found, t, row[2], row[3], true)
		hold(found, t, row[0], row[1], false)
	}
	s.server = next.Server
	for id, t := range found {
		if t.Table.Check() != nil {
			delete(found, id) // of a system schema: no statement may write there
		}
	}
	tables = slices.AppendSeq([]gate.Table{}, maps.Values(found))
	slices.SortFunc(tables, func(a, b gate.Table) int {
		return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name)
	})
	return tables, s, nil
}

// registeredTable reads a row of registryQuery, but for the names.
func registeredTable(row []string) gate.Table {
	t := gate.Table{Table: rewrite.Table{TokenColumn: row[4], Resource: row[6], Rewrite: row[13] == "t"}, IsRegistered: true, IssuedBy: rewrite.Name{Schema: row[11], Name: row[12]}}
	var err error
	if t.Mode, err = rewrite.ParseMode(row[5]); err != nil {
		t.Mode = rewrite.Lease // whose guards are the more: the answer to each is the reason
		t.Unfit = fmt.Sprintf("is registered with a mode that this version of fencerow doesn't know (%v): update the program, or register the table again with migrations.Register", err)
	}
	if t.Level, err = gate.ParseLevel(row[7]); err != nil {
		t.Level = Enforce
		t.Unfit = fmt.Sprintf("is registered with a level that this version of fencerow doesn't know (%v): update the program, or set the level with migrations.SetLevel", err)
	}
	t.HasWall, t.Attested = row[10] == "enforce" || row[10] == "attested", row[10] == "attested"
	return t
}

// hold adds a registered table under a name. Two rows may stand for one name,
// which a table of one had when it was registered and another has now: it is
// held as the present one, at the stricter level of both.
func hold(found map[[2]string]gate.Table, t gate.Table, schema, name string, now bool) {
	id := [2]string{schema, name}
	other, taken := found[id]
	switch {
	case name == "": // dropped
		return
	case taken && now:
		t.Level, t.Unfit = min(t.Level, other.Level), cmp.Or(t.Unfit, other.Unfit)
	case taken:
		t, t.Level, t.Unfit = other, min(t.Level, other.Level), cmp.Or(other.Unfit, t.Unfit)
	}
	t.Schema, t.Name = schema, name
	found[id] = t
}

// registryError says what to do where the registry can't be read.
func registryError(err error, conn *pgx.Conn) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "42P01", "3F000": // undefined_table, invalid_schema_name
			return fmt.Errorf("fencerow: %w in this database: run migrations.Up and migrations.Register, or name the tables in code with driver.Open(dsn, driver.Protect(...)) (%w)", ErrNotInstalled, err)
		case "42703": // undefined_column
			return fmt.Errorf("fencerow: the registry of protected tables is of an older version: run migrations.Up (%w)", err)
		case "42501": // insufficient_privilege
			role := pgx.Identifier{conn.Config().User}.Sanitize()
			return fmt.Errorf("fencerow: the registry of protected tables cannot be read: GRANT USAGE ON SCHEMA fencing TO %s; GRANT SELECT ON fencing.registry, fencing.generation TO %s (%w)", role, role, err)
		}
	}
	return fmt.Errorf("fencerow: read the registry of protected tables: %w%s", err, lookAdvice(err))
}

// isLoose reports whether the tables have changed since such a statement.
func (c *Conn) isLoose() bool {
	return c.session.IsLooseUnder(c.connector.current.Load())
}

// isOutdated reports whether the session is not fit to be used any more: a
// table has become enforced since it began.
func (c *Conn) isOutdated() bool {
	if c.std == nil {
		return false
	}
	return c.isLoose() || c.grown != c.connector.current.Load().Grown
}
