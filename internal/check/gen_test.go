package check

import (
	"fmt"
	"regexp"
	"strings"

	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/tokenctx"
)

// genToken is the token of the holder whose statements are generated, and
// genNewer a newer one. As float8 they are equal, so that a comparison in a
// type other than bigint shows.
const (
	genToken = 1 << 53
	genNewer = genToken + 1
)

// genTable is a table that generated statements write, in one of its spellings.
type genTable struct {
	name   string   // as written
	ref    string   // how the rest of the statement refers to it
	key    string   // its key column
	value  string   // a column that can be changed
	number bool     // the value is a number
	token  string   // the token column
	more   []string // further columns that a row needs, with a value each
}

var genTables = []genTable{
	{name: "protected_rows", ref: "protected_rows", key: "id", value: "value", token: "last_token"},
	{name: "protected_rows", ref: "protected_rows", key: "id", value: "value", token: "last_token"},
	{name: "public.protected_rows", ref: "protected_rows", key: "id", value: "value", token: "last_token"},
	{name: `"protected_rows"`, ref: `"protected_rows"`, key: "id", value: "value", token: `"last_token"`},
	{name: `U&"protected\005frows"`, ref: "protected_rows", key: "id", value: "value", token: `U&"last\005ftoken"`},
	{name: "PROTECTED_ROWS", ref: "Protected_Rows", key: "id", value: "value", token: "LAST_TOKEN"},
	{name: `"Order Items"`, ref: `"Order Items"`, key: "id", value: `"Qty"`, number: true, token: "fence"},
	{name: "app.accounts", ref: "accounts", key: "id", value: "balance", number: true, token: "last_token"},
	{name: "accounts", ref: "accounts", key: "id", value: "balance", number: true, token: "last_token"},
	{name: "accounts_child", ref: "accounts_child", key: "id", value: "note", token: "last_token"},
	{name: "metrics", ref: "metrics", key: "id", value: "v", number: true, token: "last_token", more: []string{"day", "1"}},
	{name: "metrics_1", ref: "metrics_1", key: "id", value: "v", number: true, token: "last_token", more: []string{"day", "1"}},
	{name: "rows_inh", ref: "rows_inh", key: "id", value: "value", token: "last_token"},
	{name: "v_rows", ref: "v_rows", key: "id", value: "value", token: "last_token"},
	{name: "v_shadow", ref: "v_shadow", key: "id", value: "value", token: "last_token"},
	{name: "other.protected_rows", ref: "protected_rows", key: "id", value: "value", token: "last_token"},
	{name: "plain_rows", ref: "plain_rows", key: "id", value: "value", token: "last_token"},
}

// gen builds one statement out of good and bad pieces.
type gen struct {
	t    *rapid.T
	args []any
	tok  int // the placeholder of the token, 0 until there is one
}

// pick draws one of several pieces. The first are the plain ones: shrinking
// goes there.
func (g *gen) pick(pieces ...string) string { return rapid.SampledFrom(pieces).Draw(g.t, "piece") }

// odds draws true once in n.
func (g *gen) odds(n int) bool { return rapid.IntRange(0, n-1).Draw(g.t, "odds") == n-1 }

// param adds an argument and returns its placeholder.
func (g *gen) param(v any) string {
	g.args = append(g.args, v)
	return fmt.Sprintf("$%d", len(g.args))
}

// token returns a token operand, mostly a sound one.
func (g *gen) token() string {
	if g.odds(5) {
		return g.pick("T::bigint", "CAST(T AS bigint)", "8::int", "T.4", "T.4", "'T'", "'N'", "9", "N", "-T", "0x20000000000000", "1e1", "T::double precision", "NULL",
			"(SELECT T)", "greatest(T, N)", "9223372036854775807", "T::numeric", "currval('write_epoch')", "T::int8", "(T)", "+T", "int8(T)", "int8(T + 1)", "CAST(T AS int8)", "T::int8[]")
	}
	if g.odds(4) {
		return "T"
	}
	if g.tok == 0 || g.odds(8) {
		value := any(tokenctx.Arg)
		if g.odds(3) {
			value = any(int64(genToken))
		}
		if g.odds(20) {
			value = any(int64(genNewer))
		}
		g.param(value)
		g.tok = len(g.args)
	}
	p := fmt.Sprintf("$%d", g.tok)
	if g.odds(4) {
		return g.pick(p+"::bigint", p+"::double precision", "("+p+")", p+"::float8", p+"::numeric", p+"::text::bigint", p+" + 1", p+" * 10", "greatest("+p+", N)", "-"+p, p+"::int8", "CAST("+p+" AS bigint)", "CAST("+p+" AS int8)", "int8("+p+")", "float8("+p+")")
	}
	return p
}

// column returns the token column, mostly as it should be written.
func (g *gen) column(t genTable, ref string, alone bool) string {
	if !alone && g.odds(8) {
		return g.pick("s.", "x.") + t.token
	}
	if g.odds(6) {
		return g.pick(t.token, ref+"."+t.token, "s."+t.token, "x.tok", "public."+t.ref+"."+t.token, "("+ref+"."+t.token+")", ref+"."+t.key, "(SELECT "+t.token+")", "abs("+t.token+")", t.token+"::int4", t.token+"::text", t.token+" - 100")
	}
	if alone {
		return t.token
	}
	return ref + "." + t.token
}

// comparison returns something that compares the token column.
func (g *gen) comparison(t genTable, ref string, alone bool) string {
	c, tok := g.column(t, ref, alone), g.token()
	if !g.odds(3) {
		return g.pick(c+" < "+tok, tok+" > "+c, c+" <= "+tok, c+" OPERATOR(pg_catalog.<) "+tok, "("+c+" < "+tok+")", c+" BETWEEN 0 AND "+tok, "NOT "+c+" >= "+tok)
	}
	return g.pick(c+" >= "+tok, c+" <> "+tok, c+" = "+tok, tok+" < "+c, tok+" >= "+c, c+" OPERATOR(other.<) "+tok, c+" OPERATOR(pg_catalog.<=) "+tok,
		"NOT "+c+" >= "+tok, "NOT ("+c+" < "+tok+")", "NOT ("+c+" > "+tok+")", "NOT "+tok+" < "+c, "NOT (NOT "+c+" > "+tok+")", "NOT ("+c+" > "+tok+" AND "+t.key+" = 1)", c+" BETWEEN SYMMETRIC 0 AND "+tok, c+" BETWEEN "+tok+" AND N", "NOT "+c+" BETWEEN 0 AND "+tok, tok+" BETWEEN 0 AND "+c, "("+c+" < "+tok+") IS NOT NULL", "("+c+" < "+tok+") IS NOT FALSE", "("+c+" < "+tok+") = true", "COALESCE("+c+" < "+tok+", true)",
		c+" < ANY (ARRAY["+tok+", N])", c+" < ALL (ARRAY["+tok+"])", c+" BETWEEN 0 AND "+tok, c+" NOT BETWEEN 0 AND "+tok, c+" IS DISTINCT FROM "+tok,
		"("+c+", "+t.key+") < ("+tok+", 0)", "ROW("+c+") <= ROW("+tok+")", "(SELECT "+c+" < "+tok+")",
		"EXISTS (SELECT 1 FROM "+t.name+" q WHERE q."+t.key+" = 1 AND q."+t.token+" < "+tok+")",
		t.key+" IN (SELECT q."+t.key+" FROM "+t.name+" q WHERE q."+t.token+" < "+tok+")",
		t.key+" IN (SELECT "+t.key+" FROM "+t.name+" WHERE "+t.token+" < "+tok+")",
		"(SELECT q."+t.token+" FROM "+t.name+" q WHERE q."+t.key+" = 1) < "+tok,
		"CASE WHEN "+c+" < "+tok+" THEN true ELSE true END", "int8lt("+c+", "+tok+")", c+" < "+tok+" -- AND", c+" < "+tok+" /* OR */", c+" < EXCLUDED."+t.token)
}

// other returns a condition that has nothing to do with the token.
func (g *gen) other(t genTable, ref string, alone bool) string {
	key := ref + "." + t.key
	if alone && g.odds(2) {
		key = t.key
	}
	if g.odds(8) {
		return g.token() + "::float8 > 0"
	}
	return g.pick(key+" = 1", key+" > 0", key+" IN (1, 2, 3)", key+" = "+g.param(int64(1)), "true", key+" = ANY (ARRAY[1, 2, 3])", key+" BETWEEN 1 AND 9", "NOT false")
}

// condition combines guards and other conditions, mostly by AND.
func (g *gen) condition(t genTable, ref string, alone bool) string {
	parts := []string{}
	for range rapid.IntRange(0, 2).Draw(g.t, "others") {
		parts = append(parts, g.other(t, ref, alone))
	}
	if !g.odds(6) {
		parts = append(parts, g.comparison(t, ref, alone))
	}
	if g.odds(6) {
		parts = append(parts, g.comparison(t, ref, alone))
	}
	if len(parts) == 0 {
		return ""
	}
	if g.odds(8) {
		return strings.Join(parts, " OR ")
	}
	if g.odds(5) && len(parts) > 1 {
		return parts[0] + " AND (" + strings.Join(parts[1:], g.pick(" AND ", " OR ")) + ")"
	}
	if g.odds(12) {
		return "NOT (" + strings.Join(parts, " AND ") + ")"
	}
	return strings.Join(parts, " AND ")
}

// sets returns a SET list, mostly with the raise.
func (g *gen) sets(t genTable, excluded bool) string {
	value := g.pick("'stale'", "DEFAULT", g.param("stale")+"::text")
	if t.number {
		value = g.pick("77", t.value, "DEFAULT", "77 + 1")
		if excluded {
			value = "77"
		}
	}
	set := t.value + " = " + value
	if g.odds(10) {
		return set
	}
	tok := g.token()
	if excluded && g.odds(2) {
		tok = "EXCLUDED." + t.token
	}
	if g.odds(6) {
		return g.pick("("+t.value+", "+t.token+") = ("+value+", "+tok+")", "("+t.token+", "+t.value+") = ("+tok+", "+value+")", "("+t.value+", "+t.token+") = ROW("+value+", "+tok+")",
			"("+t.value+", "+t.token+") = (SELECT "+t.value+", "+tok+")", "("+t.token+", "+t.value+") = ("+value+", "+tok+")", set+", "+t.token+" = "+tok+", "+t.token+" = "+tok)
	}
	if g.odds(6) {
		return set + ", " + t.token + " = " + g.pick("DEFAULT", t.token, t.token+" + 1", "GREATEST("+t.token+", "+tok+")", "N", "(SELECT "+tok+")", "NULL", "0")
	}
	return g.pick(set+", "+t.token+" = "+tok, t.token+" = "+tok+", "+set, t.token+" = "+tok)
}

func (g *gen) table() genTable { return rapid.SampledFrom(genTables).Draw(g.t, "table") }

// aliased gives the target an alias, or not.
func (g *gen) aliased(t genTable) (written, ref string) {
	if g.odds(3) {
		alias := g.pick("t", "s", `"A b"`, "excluded", "last_token", t.ref)
		return t.name + g.pick(" ", " AS ") + alias, alias
	}
	return g.pick(t.name, t.name, t.name, "ONLY "+t.name), t.ref
}

// beside returns other items for FROM or USING, "" for none.
func (g *gen) beside(t genTable) string {
	if !g.odds(4) {
		return ""
	}
	tok := g.token()
	return g.pick("plain_rows s", "plain_rows s JOIN jobs j ON j.id = s.id", "(VALUES (1, "+tok+"), (2, "+tok+")) AS x(id, tok)", "(SELECT 1 AS id, 0::bigint AS last_token, 0::bigint AS fence) AS s",
		"other.protected_rows", "LATERAL (SELECT 0::bigint AS tok) x", "plain_rows AS "+t.ref, "(plain_rows a JOIN jobs b USING (id)) AS "+t.ref, t.name+" AS s", "generate_series(1, 3) x(tok)", "x",
		"(VALUES (1, "+tok+"), (2, N)) AS x(id, tok)", "(VALUES ("+tok+")) AS x(tok) LEFT JOIN jobs ON false",
		"(SELECT 1 AS id, "+tok+"::bigint AS tok) x", "(SELECT N::bigint AS id, "+tok+"::bigint AS tok) AS x(tok)", "(SELECT "+tok+"::bigint AS tok FROM jobs) x", "jobs LEFT JOIN (SELECT "+tok+"::bigint AS tok) x ON false")
}

// with returns a WITH clause, "" for none.
func (g *gen) with(t genTable, depth int) string {
	if !g.odds(6) {
		return ""
	}
	tok := g.token()
	if depth < 2 && g.odds(2) {
		return "WITH w AS (" + g.write(depth+1) + ") "
	}
	return g.pick("WITH x(id, tok) AS (VALUES (1, "+tok+"), (2, "+tok+")) ", "WITH x AS (SELECT 1 AS id, N::bigint AS tok) ", "WITH "+t.ref+" AS (SELECT 1 AS id) ", "WITH RECURSIVE x(tok) AS (VALUES ("+tok+")) ", "WITH x(tok) AS (VALUES (N::bigint)) ",
		"WITH x AS (SELECT 1 AS id, "+tok+" AS tok) ", "WITH x AS (SELECT 1 AS id, "+tok+"::bigint AS tok) ", "WITH x(id) AS (SELECT N::bigint AS tok, "+tok+"::bigint AS tok) ", "WITH x AS (SELECT "+tok+"::bigint AS tok UNION ALL SELECT N) ",
		"WITH x AS (SELECT "+tok+"::bigint AS tok GROUP BY ROLLUP (1)) ")
}

func (g *gen) returning(t genTable) string {
	if !g.odds(4) {
		return ""
	}
	return " RETURNING " + g.pick("*", t.key, "1", g.param(int64(3))+"::int", "fmt_name('x')", "bump_row(1, 'stale')")
}

// write returns one INSERT, UPDATE, DELETE or MERGE.
func (g *gen) write(depth int) string {
	t := g.table()
	switch g.pick("update", "update", "insert", "delete", "merge") {
	case "update":
		with, from := g.with(t, depth), g.beside(t)
		written, ref := g.aliased(t)
		sql := with + "UPDATE " + written + " SET " + g.sets(t, false)
		return sql + clause(" FROM ", from) + clause(" WHERE ", g.condition(t, ref, from == "")) + g.returning(t)
	case "delete":
		with, using := g.with(t, depth), g.beside(t)
		written, ref := g.aliased(t)
		return with + "DELETE FROM " + written + clause(" USING ", using) + clause(" WHERE ", g.condition(t, ref, using == "")) + g.returning(t)
	case "insert":
		return g.insert(t, depth)
	}
	return g.merge(t, depth)
}

func clause(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// insert returns an INSERT, with rows that are new and rows that are there.
func (g *gen) insert(t genTable, depth int) string {
	with := g.with(t, depth)
	value := "'stale'"
	if t.number {
		value = "77"
	}
	cols, vals := []string{t.key, t.value}, []string{g.pick("1", "60", "50", g.param(int64(61))), value}
	for i := 0; i+1 < len(t.more); i += 2 {
		cols, vals = append(cols, t.more[i]), append(vals, t.more[i+1])
	}
	row2 := append([]string{"2"}, vals[1:]...)
	if !g.odds(8) {
		at := rapid.IntRange(0, len(cols)).Draw(g.t, "place")
		cols = insertAt(cols, at, t.token)
		vals, row2 = insertAt(vals, at, g.token()), insertAt(row2, at, g.token())
	}
	names, row := strings.Join(cols, ", "), strings.Join(vals, ", ")
	written := t.name
	ref := t.ref
	if g.odds(4) {
		ref = g.pick("p", "excluded", "s")
		written += " AS " + ref
	}
	columns := " (" + names + ") "
	if g.odds(12) {
		columns = g.pick(" ", " ("+names+", "+t.token+") ", " ("+names+") OVERRIDING SYSTEM VALUE ", " ("+names+") OVERRIDING USER VALUE ")
	}
	source := g.pick("VALUES ("+row+")", "VALUES ("+row+")", "VALUES ("+row+"), ("+strings.Join(row2, ", ")+")", "SELECT "+row, "SELECT "+row+" FROM plain_rows WHERE id = 1",
		"SELECT "+row+" UNION ALL SELECT "+strings.Join(row2, ", "), "(VALUES ("+row+")) ORDER BY 1 LIMIT 1", "DEFAULT VALUES", "TABLE "+t.name, "SELECT * FROM (VALUES ("+row+")) v",
		"SELECT (v).* FROM (VALUES ("+row+")) v", "SELECT DISTINCT "+row, "WITH q AS (SELECT 1) SELECT "+row+" FROM q", "VALUES (DEFAULT, "+row+")")
	if g.odds(20) {
		return with + "INSERT INTO app.accounts (id, last_token, balance) SELECT v.*, T FROM (VALUES (60, 0::bigint)) v"
	}
	conflict := ""
	if g.odds(2) {
		target := "(" + t.key + ")"
		if len(t.more) > 0 {
			target = "(id, day)"
		}
		conflict = g.pick(" ON CONFLICT DO NOTHING", " ON CONFLICT "+target+" DO NOTHING")
		if !g.odds(4) {
			where := g.condition(t, ref, false)
			if g.odds(2) {
				where = ref + "." + t.token + g.pick(" < ", " < ", " <= ", " >= ", " <> ") + "EXCLUDED." + t.token
			}
			conflict = " ON CONFLICT " + target + g.pick("", "", " WHERE "+t.token+" < T") + " DO UPDATE SET " + g.sets(t, true) + clause(" WHERE ", where)
		}
	}
	return with + "INSERT INTO " + written + columns + source + conflict + g.returning(t)
}

func insertAt(list []string, at int, s string) []string {
	out := append([]string{}, list[:at]...)
	return append(append(out, s), list[at:]...)
}

// merge returns a MERGE.
func (g *gen) merge(t genTable, depth int) string {
	with := g.with(t, depth)
	written, ref := g.aliased(t)
	source := g.pick("plain_rows s", "(VALUES (1, 'm'), (60, 'm')) AS s(id, value)", "plain_rows AS "+t.ref, "other.protected_rows", "(VALUES (1, "+g.token()+"), (2, "+g.token()+")) AS x(id, tok)", "(SELECT 1 AS id, "+g.token()+"::bigint AS tok) x")
	on := g.pick("s.id = "+ref+"."+t.key, "true", "s.id = "+ref+"."+t.key+" AND "+g.comparison(t, ref, false), "x.id = "+ref+"."+t.key)
	value := "'stale'"
	if t.number {
		value = "77"
	}
	sql := with + "MERGE INTO " + written + " USING " + source + " ON " + on
	for range rapid.IntRange(1, 3).Draw(g.t, "whens") {
		switch g.pick("update", "update", "delete", "insert", "nothing") {
		case "update":
			sql += " WHEN MATCHED" + clause(" AND ", g.condition(t, ref, false)) + " THEN UPDATE SET " + g.sets(t, false)
		case "delete":
			sql += " WHEN MATCHED" + clause(" AND ", g.condition(t, ref, false)) + " THEN DELETE"
		case "nothing":
			sql += g.pick(" WHEN MATCHED THEN DO NOTHING", " WHEN NOT MATCHED THEN DO NOTHING", " WHEN MATCHED AND "+ref+"."+t.token+" > "+g.token()+" THEN DO NOTHING", " WHEN MATCHED AND "+ref+"."+t.key+" > "+g.token()+" THEN DO NOTHING")
		case "insert":
			cols, vals := []string{t.key, t.value}, []string{g.pick("60", "s.id + 100"), value}
			for i := 0; i+1 < len(t.more); i += 2 {
				cols, vals = append(cols, t.more[i]), append(vals, t.more[i+1])
			}
			if !g.odds(6) {
				cols, vals = append(cols, t.token), append(vals, g.token())
			}
			sql += " WHEN NOT MATCHED THEN INSERT (" + strings.Join(cols, ", ") + ") VALUES (" + strings.Join(vals, ", ") + ")"
		}
	}
	return sql
}

// statement returns a whole text: a write, something around one, or something
// else altogether.
func (g *gen) statement() string {
	return genLiteral.ReplaceAllStringFunc(g.text(), func(s string) string { return genLiterals[s] })
}

// genLiteral finds the stand-ins for the two tokens as literals.
var (
	genLiteral  = regexp.MustCompile(`\b[TN]\b`)
	genLiterals = map[string]string{"T": fmt.Sprint(genToken), "N": fmt.Sprint(genNewer)}
)

func (g *gen) text() string {
	if !g.odds(6) {
		return g.write(0)
	}
	if g.odds(2) {
		w := g.write(1)
		return g.pick("EXPLAIN "+w, "EXPLAIN (ANALYZE) "+w, "EXPLAIN (ANALYZE 'off') "+w, "WITH w AS ("+w+" RETURNING 1) SELECT * FROM w", "WITH w AS ("+w+") SELECT 1",
			"PREPARE p AS "+w, w+"; SELECT 1", "SELECT 1; "+w, w+";", "CREATE TABLE made AS WITH w AS ("+w+" RETURNING 1 AS a) SELECT * FROM w", "COPY ("+w+" RETURNING 1) TO STDOUT",
			"DO $$BEGIN "+w+"; END$$", "BEGIN; "+w)
	}
	return g.pick(genOthers...)
}

// genOthers are statements that are no writes by themselves.
var genOthers = []string{
	"SELECT 1", "SELECT * FROM protected_rows FOR UPDATE", "TRUNCATE plain_rows", "TRUNCATE protected_rows", "TRUNCATE metrics_1", "TRUNCATE plain_rows, app.accounts CASCADE",
	"SELECT bump_row(1, 'stale')", "CALL bump_proc(1, 'stale')", "SELECT fmt_name(bump_row(1, 'stale'))", "SELECT public.bump_row(id, 'stale') FROM plain_rows",
	"SELECT set_config('session_replication_role', 'replica', true)", "SELECT set_config('ROLE', 'x', true)", "SET search_path = other, public", "SET LOCAL search_path = other, pg_catalog",
	"SELECT set_config('search_path', 'other,pg_catalog', true)", "SELECT set_config('search' || '_path', 'other,pg_catalog', true)", "SET standard_conforming_strings = off",
	"UPDATE pg_settings SET setting = 'off' WHERE name = 'standard_conforming_strings'", "SELECT setval('write_epoch', 1)", "SELECT setval('public.write_epoch'::regclass, 1)", "SELECT setval('users_id_seq', 500)",
	"ALTER SEQUENCE write_epoch RESTART", "SELECT nextval('write_epoch')", "ALTER TABLE protected_rows RENAME TO gone", "ALTER TABLE plain_rows ADD COLUMN extra int", "ALTER TABLE protected_rows DISABLE TRIGGER ALL",
	"DROP TABLE protected_rows CASCADE", "DROP TABLE child", "CREATE VIEW over AS SELECT * FROM protected_rows", "CREATE TEMP TABLE protected_rows (id int)", "CREATE TEMP VIEW protected_rows AS SELECT 1 AS id",
	"CREATE TABLE other.made (id int)", "CREATE TABLE made (LIKE protected_rows)", "SELECT 1 AS id INTO made", "SELECT 1 AS id INTO TEMP protected_rows", "CREATE INDEX ON plain_rows (value)",
	"DELETE FROM app.accounts WHERE id = 1 AND last_token < T", "DROP SCHEMA app CASCADE", "ALTER SCHEMA app RENAME TO gone", "DROP FUNCTION audit_noop() CASCADE", "DROP TRIGGER guard_trg ON protected_rows",
	"CREATE OR REPLACE FUNCTION audit_noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", "CREATE FUNCTION harmless() RETURNS int LANGUAGE sql AS 'SELECT 1'",
	"DO $$BEGIN PERFORM 1; END$$", "DO $$BEGIN EXECUTE 'UPDATE prot' || 'ected_rows SET value = ''stale'''; END$$", "DO $$BEGIN PERFORM public.bump_row(1, 'stale'); END$$",
	"CREATE RULE r AS ON UPDATE TO plain_rows DO ALSO DELETE FROM protected_rows", "CREATE RULE r AS ON UPDATE TO plain_rows DO INSTEAD NOTHING", "ALTER TABLE accounts_child DROP COLUMN note",
	"SELECT query_to_xml('UPDATE protected_rows SET value = ''stale'' RETURNING 1', true, true, '')", "LOCK TABLE protected_rows IN SHARE MODE", "COMMENT ON TABLE plain_rows IS 'x'",
	"CREATE TABLE part PARTITION OF metrics FOR VALUES IN (9)", "ALTER TABLE metrics DETACH PARTITION metrics_1", "CREATE TABLE kid () INHERITS (protected_rows)", "REINDEX TABLE protected_rows", "ANALYZE protected_rows",
	"ALTER TYPE other.protected_rows RENAME ATTRIBUTE value TO v", "WITH d AS (DELETE FROM plain_rows RETURNING id) SELECT bump_row(id, 'stale') FROM d", "RESET ALL", "DISCARD ALL", "DEALLOCATE ALL",
	"ALTER TABLE protected_rows ALTER last_token SET DEFAULT N", "GRANT ALL ON plain_rows TO PUBLIC", "REASSIGN OWNED BY CURRENT_USER TO CURRENT_USER", "SAVEPOINT a", "DECLARE c CURSOR FOR SELECT bump_row(1, 'stale')",
}
