package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
)

// ErrNotInstalled says that the database has no registry of protected tables.
var ErrNotInstalled = errors.New("fencerow: the registry of protected tables is not installed in this database: run migrations.Up and migrations.Register, or name the tables in code with driver.Open(dsn, driver.Protect(...))")

// registryQuery reads the registered tables, each under the name it was
// registered with and the one it has now, and the generation they are of.
const registryQuery = `SELECT COALESCE(r.schema_name::text, ''), COALESCE(r.table_name::text, ''), COALESCE(n.nspname::text, ''), COALESCE(c.relname::text, ''),
       COALESCE(r.token_column::text, ''), COALESCE(r.mode, ''), COALESCE(r.resource, ''), COALESCE(r.driver_level, ''),
       COALESCE((SELECT pg_catalog.max(value) FROM fencing.generation), 0),
       COALESCE(pg_catalog.to_jsonb(r)->>'wall_level', ''), COALESCE(sn.nspname::text, ''), COALESCE(s.relname::text, ''),
       COALESCE(pg_catalog.to_jsonb(r)->>'driver_rewrite', '') = 'true'
  FROM (VALUES (1)) one
  LEFT JOIN fencing.registry r ON true
  LEFT JOIN pg_catalog.pg_class c ON c.oid = r.relid
  LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class s ON s.oid = r.issued_by
  LEFT JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace`

// sessionQuery reads what the check of a session's statements rests on, in one
// round trip. $1 is a JSON list of the protected tables. A NOT NULL that is NOT
// VALID, as PostgreSQL 18 has it, lets old rows keep their nulls.
// The setting fencing.session tells the database's own functions and triggers
// that the session is one of this driver; see migrations/sql.
const sessionQuery = `SELECT pg_catalog.current_setting('search_path'), current_user::text, pg_catalog.current_setting('server_encoding'),
       pg_catalog.set_config('fencing.session', 'driver', false),
       (SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
                 'found', c.oid IS NOT NULL,
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
                 'key', (SELECT pg_catalog.json_agg(k.attname ORDER BY k.attnum)
                           FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
                          WHERE i.indrelid = c.oid AND i.indisprimary))
               ORDER BY w.ordinality)
          FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) WITH ORDINALITY w (t, ordinality)
          LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = w.t->>'Schema'
          LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t->>'Name' AND c.relkind IN ('r', 'p')
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.t->>'TokenColumn' AND a.attnum > 0 AND NOT a.attisdropped)::text`

// column is what the catalog says of a protected table's token column.
type column struct {
	Found, Column, Bigint, Nullable, Identity, Generated bool
	Moves                                                bool // an UPDATE may move rows between partitions, past the wall's trigger for DELETE
	Type                                                 string
	Key                                                  []string
}

// session is what the check of a connection's statements rests on. It stays
// with pgx's connection, so that one from a pool keeps it.
type session struct {
	path      []string // the search path that it began with
	pathKnown bool     // false once a statement may have changed it

	grown map[*Connector]uint64 // the connectors it has served, and what each enforced when it began; see protection
	loose *protection           // under it, a statement ran that may have changed what later checks rest on
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
			if err := c.refresh(ctx); err != nil || c.isOutdated() {
				return errOutdated
			}
			return nil
		}
	}
	path, user, err := c.connector.readAll(ctx, conn)
	if err != nil {
		return err
	}
	if !again {
		c.session.pathKnown, c.session.grown = true, make(map[*Connector]uint64)
		if c.session.path, err = searchPath(path, user); err != nil {
			return fmt.Errorf("fencerow: the session's search_path %q cannot be read: %w", path, err)
		}
		if slices.Contains(c.session.path, "fencing") {
			return errors.New("fencerow: the session's search_path names the schema fencing, whose tables would then be reached by bare names: take it out of the DSN, the role and the database")
		}
		conn.PgConn().CustomData()[sessionKey] = c.session
	}
	if err := c.connector.settings.doctor.examine(ctx, conn); err != nil {
		return err
	}
	c.grown = c.connector.current.Load().grown
	c.session.grown[c.connector] = c.grown
	return nil
}

// wanted returns the tables to be protected, and the registry's generation.
func (c *Connector) wanted(ctx context.Context, conn *pgx.Conn) (tables []heldTable, generation int64, err error) {
	tables = append([]heldTable{}, c.settings.tables...) // never nil: JSON's null is no list
	if !c.settings.fromCode {
		if tables, generation, err = readRegistry(ctx, conn); err != nil {
			return nil, 0, err
		}
	}
	for i := range tables {
		t := &tables[i]
		t.Rewrite = t.Rewrite || c.settings.rewrite
		t.Schema = orPublic(t.Schema)
		if t.TokenColumn == "" {
			t.TokenColumn = rewrite.DefaultTokenColumn
		}
	}
	return tables, generation, nil
}

// look looks the tables up in the catalog, protects them, and returns the
// session's search path and role. The catalog beyond them is read only again if
// that is asked for, or they have changed.
func (c *Connector) look(ctx context.Context, conn *pgx.Conn, tables []heldTable, generation int64, again bool) (path, user string, err error) {
	names, err := json.Marshal(tables)
	if err != nil {
		return "", "", fmt.Errorf("fencerow: %w", err)
	}
	var encoding, marked string
	var described *string
	if err := conn.QueryRow(ctx, sessionQuery, ownMode(conn), string(names)).Scan(&path, &user, &encoding, &marked, &described); err != nil {
		return "", "", fmt.Errorf("fencerow: read the session's settings and the protected tables: %w", err)
	}
	var columns []column
	if described != nil {
		if err := json.Unmarshal([]byte(*described), &columns); err != nil {
			return "", "", fmt.Errorf("fencerow: read the protected tables: %w", err)
		}
	}
	unfit, err := c.checkTables(tables, columns, encoding)
	if err != nil {
		return "", "", err
	}
	found, err := c.catalogFor(ctx, conn, tables, again)
	if err != nil {
		return "", "", err
	}
	changed, err := c.protect(tables, generation, found)
	if changed { // once, and not with every connection: a reporter may open one itself
		for _, e := range unfit {
			c.tell(ctx, e)
		}
	}
	return path, user, err
}

// checkTables compares the protected tables with the catalog, and fills in
// their primary keys. A registered table that isn't there stays protected
// under its name; one named in code must be there. What is wrong with one that
// is only reported is returned to be reported.
func (c *Connector) checkTables(tables []heldTable, columns []column, encoding string) (unfit []Event, err error) {
	if len(columns) != len(tables) {
		return nil, fmt.Errorf("fencerow: the server described %d of %d protected tables", len(columns), len(tables))
	}
	for i := range tables {
		t := &tables[i]
		if t.level == Off || !columns[i].Found && !c.settings.fromCode {
			continue
		}
		t.Key, t.Moves = columns[i].Key, columns[i].Moves
		if problem := columns[i].problem(&t.Table, encoding); problem != "" {
			err := fmt.Errorf("fencerow: protected table %q %s", &t.Table, problem)
			if t.level != Report {
				return nil, err
			}
			unfit = append(unfit, Event{Kind: EventReported, Table: t.String(), Err: err})
		}
	}
	return unfit, nil
}

// problem says what is wrong with a table or its token column, and what mends
// it.
func (col column) problem(t *rewrite.Table, encoding string) string {
	name := t.TokenColumn
	switch {
	case !col.Found:
		return fmt.Sprintf("is no table of this database: create it, or correct its name (schema %q, table %q); a view or a foreign table cannot be protected", t.Schema, t.Name)
	case encoding != "UTF8" && !ascii(t.Schema+t.Name+name):
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

// ownMode is the exec mode of the driver's own queries: one that prepares
// nothing, but the simple protocol where the connection is set to it.
func ownMode(conn *pgx.Conn) pgx.QueryExecMode {
	if mode := conn.Config().DefaultQueryExecMode; mode == pgx.QueryExecModeSimpleProtocol {
		return mode
	}
	return pgx.QueryExecModeExec
}

func readRegistry(ctx context.Context, conn *pgx.Conn) (tables []heldTable, generation int64, err error) {
	rows, err := conn.Query(ctx, registryQuery, ownMode(conn))
	if err != nil {
		return nil, 0, registryError(err, conn)
	}
	defer rows.Close()
	found := make(map[[2]string]heldTable)
	for rows.Next() {
		var schema, name, schemaNow, nameNow, mode, level, wall string
		var t heldTable
		if err := rows.Scan(&schema, &name, &schemaNow, &nameNow, &t.TokenColumn, &mode, &t.Resource, &level, &generation, &wall, &t.issuedBy.Schema, &t.issuedBy.Name, &t.Rewrite); err != nil {
			return nil, 0, fmt.Errorf("fencerow: read the registry: %w", err)
		}
		if name == "" {
			continue // nothing is registered
		}
		if t.Mode, err = rewrite.ParseMode(mode); err != nil {
			return nil, 0, fmt.Errorf("fencerow: read the registry: table %q: %w", name, err)
		}
		if t.level, err = parseLevel(level); err != nil {
			return nil, 0, fmt.Errorf("fencerow: read the registry: table %q: %w", name, err)
		}
		t.wall, t.Attested = wall == "enforce" || wall == "attested", wall == "attested"
		hold(found, t, schemaNow, nameNow, true)
		hold(found, t, schema, name, false)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, registryError(err, conn)
	}
	tables = slices.AppendSeq([]heldTable{}, maps.Values(found))
	slices.SortFunc(tables, func(a, b heldTable) int {
		return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name)
	})
	return tables, generation, nil
}

// hold adds a registered table under a name. Two rows may stand for one name,
// which a table of one had when it was registered and another has now: it is
// held as the present one, at the stricter level of both.
func hold(found map[[2]string]heldTable, t heldTable, schema, name string, now bool) {
	id := [2]string{schema, name}
	other, taken := found[id]
	switch {
	case name == "": // dropped
		return
	case taken && now:
		t.level = min(t.level, other.level)
	case taken:
		t, t.level = other, min(t.level, other.level)
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
			return fmt.Errorf("%w (%w)", ErrNotInstalled, err)
		case "42703": // undefined_column
			return fmt.Errorf("fencerow: the registry of protected tables is of an older version: run migrations.Up (%w)", err)
		case "42501": // insufficient_privilege
			role := pgx.Identifier{conn.Config().User}.Sanitize()
			return fmt.Errorf("fencerow: the registry of protected tables cannot be read: GRANT USAGE ON SCHEMA fencing TO %s; GRANT SELECT ON fencing.registry, fencing.generation TO %s (%w)", role, role, err)
		}
	}
	return fmt.Errorf("fencerow: read the registry of protected tables: %w", err)
}

// searchPath splits the setting search_path into schemas, with "$user"
// replaced by the role.
func searchPath(setting, user string) ([]string, error) {
	schemas, err := identifiers(setting, ',')
	if err != nil {
		return nil, err
	}
	for i, s := range schemas {
		if s == "$user" {
			schemas[i] = user
		}
	}
	// SET search_path = '' leaves one empty name
	return slices.DeleteFunc(schemas, func(s string) bool { return s == "" }), nil
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// forgetPath says that a statement may have changed the search path.
func (s *session) forgetPath() { s.pathKnown = false }

// loosen remembers that a statement was sent which would be refused if all the
// tables were enforced, and that may have left something behind for later ones:
// a setting, a temporary view, a prepared statement.
func (s *session) loosen(p *protection, plan *rewrite.Plan) {
	if s.loose == nil && slices.ContainsFunc(plan.Violations, func(v rewrite.Violation) bool { return v.Rule[2] == '2' || v.Rule[2] == '9' }) {
		s.loose = p
	}
}

// isLoose reports whether the tables have changed since such a statement.
func (c *Conn) isLoose() bool {
	return c.session.loose != nil && c.session.loose != c.connector.current.Load()
}

// isOutdated reports whether the session is not fit to be used any more: a
// table has become enforced since it began.
func (c *Conn) isOutdated() bool {
	if c.std == nil {
		return false
	}
	return c.isLoose() || c.grown != c.connector.current.Load().grown
}
