package sqlfiles

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltext"
)

func queryOf(t *testing.T, text string) query {
	t.Helper()
	tokens, found := sqltext.ScanPrefix(text)
	require.Nil(t, found, text)
	return placeholders(text, tokens)
}

func TestPlaceholders(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"none", "SELECT 1", "SELECT 1"},
		{"PostgreSQL's", "UPDATE a SET b = $2 WHERE c = $1", "UPDATE a SET b = $2 WHERE c = $1"},
		{"@name", "UPDATE a SET b = @b WHERE c = @c AND d = @b", "UPDATE a SET b = $1 WHERE c = $2 AND d = $1"},
		{"a key word as @name", "SELECT @limit::int", "SELECT $1::int"},
		{"@ as an operator", "SELECT @ -5, a @> b, a <@b, '@x', \"@y\"", "SELECT @ -5, a @> b, a <@b, '@x', \"@y\""},
		{"@name without a blank", "UPDATE a SET b=@b WHERE c<=@c AND d>@d AND e <>@b", "UPDATE a SET b= $1 WHERE c<= $2 AND d> $3 AND e <> $1"},
		{"psql's variables", "UPDATE a SET b = :b, c=:'c' WHERE d = :\"d\" AND e = :b AND f = :f::int",
			"UPDATE a SET b = $1, c=$2 WHERE d = \"d\" AND e = $1 AND f = $3::int"},
		{"a variable's two spellings", "SELECT :a, :'a'", "SELECT $1, $1"},
		{"a schema in a variable", "SELECT 1 FROM :s.a, :\"s\".b", "SELECT 1 FROM a, b"},
		{"no variables", "SELECT a::int, b[1:2], b[c:d], ':x', \":y\", f(a := 1), : x", "SELECT a::int, b[1:2], b[c:d], ':x', \":y\", f(a := 1), : x"},
		{"a variable where there are no placeholders", "SET LOCAL a.b = :'c'", "SET LOCAL a.b = 'c'"},
		{"sqlc.arg", "SELECT sqlc.arg(a), sqlc.narg('b')::text, SQLC.ARG( a )", "SELECT $1, $2::text, $1"},
		{"sqlc.slice", "SELECT 1 WHERE a IN (sqlc.slice('ids'))", "SELECT 1 WHERE a IN ($1)"},
		{"sqlc.embed", "SELECT sqlc.embed(a), b.x FROM a, b", "SELECT a.*, b.x FROM a, b"},
		{"another function of sqlc's", "SELECT sqlc.what(a)", "SELECT sqlc.what(a)"},
		{"a table named sqlc", "SELECT sqlc.a FROM sqlc", "SELECT sqlc.a FROM sqlc"},
		{"names behind numbers", "SELECT $2, @a", "SELECT $2, $3"},
		{"?", "UPDATE a SET b = ?, c=? WHERE d IN (?, ?) AND e<=? LIMIT ? OFFSET ?", "UPDATE a SET b = $1, c= $2 WHERE d IN ($3, $4) AND e<= $5 LIMIT $6 OFFSET $7"},
		{"? with a cast", "SELECT ?::int, ? IS NULL", "SELECT $1::int, $2 IS NULL"},
		{"? of jsonb", "SELECT a ? 'b', data ? 'b', (a) ? $1, a[1] ? b, a ?| b, a ?& b", "SELECT a ? 'b', data ? 'b', (a) ? $1, a[1] ? b, a ?| b, a ?& b"},
		{"in a comment", "SELECT /* @a ? */ 1", "SELECT /* @a ? */ 1"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, queryOf(t, tt.text).text) })
	}
}

// Each byte of the text that isn't a placeholder is found again.
func TestPlaceholderOffsets(t *testing.T) {
	for _, text := range []string{
		"UPDATE a SET b = @b, c = sqlc.arg(longname) WHERE d = @b;end",
		"UPDATE a SET b=?, c = ? WHERE d = ?",
		"UPDATE a SET b = :'b', c = :ccc WHERE d=@xxx AND g = f",
		"SELECT sqlc.embed(tab), x FROM other",
		"SELECT 1",
	} {
		q := queryOf(t, text)
		for _, word := range strings.Fields(q.text) {
			if strings.ContainsAny(word, "$*") {
				continue
			}
			require.Equal(t, strings.Index(text, word), q.offset(strings.Index(q.text, word)), "%s in %s", word, q.text)
		}
	}
	q := queryOf(t, "SELECT sqlc.arg(name), 2")
	require.Equal(t, 7, q.offset(7))
	require.Equal(t, 7, q.offset(8), "inside of one is where it begins")
}

// Messages show a query as it is written.
func TestSpelling(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"@name", "UPDATE orders SET a = @a,\n  b = 'x' WHERE id = @id",
			`q.sql:1:8: UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
    1 | UPDATE orders SET a = @a,
      |        ^^^^^^
  fix:  UPDATE orders SET a = @a, b = ?, last_token = @token WHERE id = @id AND last_token <= @token   (? stands for your literal)
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101`},
		{"psql's variables", "UPDATE orders SET a = :'a' WHERE id = :id",
			`q.sql:1:8: UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
    1 | UPDATE orders SET a = :'a' WHERE id = :id
      |        ^^^^^^
  fix:  UPDATE orders SET a = :'a', last_token = :token WHERE id = :id AND last_token <= :token
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101`},
		{"a variable for a table", "UPDATE :t SET a = (SELECT b FROM orders)",
			`q.sql:1:8: SQL text cannot be parsed, so it cannot be checked (syntax error at or near ":t"), and it is checked because it has the name or word "orders": correct the syntax, or, if it is newer than the grammar of PostgreSQL 16 that fencerow reads, write it in the older grammar, or send it over a plain connection if it writes no protected table (FR901 unparsable)
    1 | UPDATE :t SET a = (SELECT b FROM orders)
      |        ^^
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR901.md, or fencerow explain FR901`},
		{"sqlc.arg", "\n\n  WITH a AS (SELECT sqlc.narg(token)) DELETE FROM orders WHERE id = sqlc.arg(id)",
			`q.sql:3:51: DELETE from protected table "orders" has no last_token guard (FR111 unguarded-delete)
    3 | WITH a AS (SELECT sqlc.narg(token)) DELETE FROM orders WHERE id = sqlc.arg(id)
      |                                                 ^^^^^^
  fix:  WITH a AS (SELECT sqlc.narg(token)) DELETE FROM orders WHERE id = sqlc.arg(id) AND last_token <= sqlc.arg(new_token)
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR111.md, or fencerow explain FR111`},
		{"?", "SELECT 1;\nUPDATE orders SET a = ? WHERE id = ?", `q.sql:2:8: UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
    2 | UPDATE orders SET a = $1 WHERE id = $2
      |        ^^^^^^
  fix:  UPDATE orders SET a = $1, last_token = $3 WHERE id = $2 AND last_token <= $3
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := lintText(t, "q.sql", tt.text)
			require.Len(t, result.Findings, 1)
			require.Equal(t, tt.want, result.Findings[0].String())
		})
	}
}

// A guard with placeholders of any kind is one.
func TestGuardedQueries(t *testing.T) {
	result := lintText(t, "q.sql", `-- name: SetStatus :exec
UPDATE orders SET status = @status, last_token = @token WHERE id = @id AND last_token <= @token;
-- name: Remove :execrows
DELETE FROM orders WHERE id = sqlc.arg(id) AND last_token <= sqlc.arg(token);
-- name: Add :one
INSERT INTO orders (id, last_token) VALUES (?, ?) RETURNING *;
-- name: Close :exec
UPDATE orders SET last_token=@token WHERE id=@id AND last_token<=@token;
-- name: Open :exec
UPDATE orders SET last_token = :token WHERE id = :'id' AND last_token <= :'token';
`)
	require.Empty(t, result.Findings)
	require.Equal(t, 5, result.Statements)
	require.Zero(t, result.Cleared)
}
