package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The calls that a text has more, shortened.
const (
	sets1 = "pg_catalog.concat(SET($n)) IS NOT NULL"
	sets2 = "pg_catalog.concat(SET($n), SET_R($m)) IS NOT NULL"
)

// What is sent where the context has tokens for what foreign keys do. "" stands for a
// text that is sent as it is.
var carryingTests = map[string]struct {
	sql, sent string
	given     int64
	resources int
}{
	"DELETE":                      {"DELETE FROM users WHERE id = $1", "DELETE FROM users WHERE id = $1 AND " + sets1, 1, 1},
	"every row":                   {"DELETE FROM users", "DELETE FROM users WHERE " + sets1, 0, 1},
	"OR":                          {"DELETE FROM users WHERE id = $1 OR id = $2 -- both", "DELETE FROM users WHERE (id = $1 OR id = $2) AND " + sets1 + " -- both", 2, 1},
	"RETURNING":                   {"DELETE FROM users u USING t WHERE t.id = u.id RETURNING u.id", "DELETE FROM users u USING t WHERE t.id = u.id AND " + sets1 + " RETURNING u.id", 0, 1},
	"a key":                       {"UPDATE users SET id = $1", "UPDATE users SET id = $1 WHERE " + sets1, 1, 1},
	"another column":              {"UPDATE users SET name = $1", "", 0, 0},
	"an upsert":                   {"INSERT INTO users (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET id = 7 RETURNING id", "INSERT INTO users (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET id = 7 WHERE " + sets1 + " RETURNING id", 1, 1},
	"an INSERT":                   {"INSERT INTO users (id) VALUES ($1)", "", 0, 0},
	"WITH":                        {"WITH d AS (DELETE FROM users WHERE id = $1 RETURNING id) SELECT id FROM d", "WITH d AS (DELETE FROM users WHERE id = $1 AND " + sets1 + " RETURNING id) SELECT id FROM d", 1, 1},
	"MERGE":                       {"MERGE INTO users u USING t ON t.id = u.id WHEN MATCHED AND t.n > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 7", "MERGE INTO users u USING t ON t.id = u.id WHEN MATCHED AND t.n > 1 AND " + sets1 + " THEN DELETE WHEN MATCHED AND " + sets1 + " THEN UPDATE SET id = 7", 0, 1},
	"MERGE with OR":               {"MERGE INTO users u USING t ON t.id = u.id WHEN MATCHED AND t.n > 1 OR t.n < 0 THEN DELETE", "", 0, 1},
	"CURRENT OF":                  {"DELETE FROM users WHERE CURRENT OF c", "", 0, 1},
	"several resources":           {"DELETE FROM firms WHERE id = $1", "DELETE FROM firms WHERE id = $1 AND " + sets2, 1, 2},
	"guarded itself, by the same": {"DELETE FROM orders WHERE id = $1 AND last_token <= $2", "DELETE FROM orders WHERE id = $1 AND last_token <= $2 AND (pg_catalog.set_config('fencing.token', $2::pg_catalog.int8::pg_catalog.text, true) IS NOT NULL AND " + sets1 + ")", 2, 1},
	"several statements":          {"DELETE FROM users; DELETE FROM users", "", 0, 0},
	"EXPLAIN":                     {"EXPLAIN DELETE FROM users", "", 0, 0},
	"a query":                     {"SELECT * FROM users", "", 0, 0},
	"TRUNCATE":                    {"TRUNCATE users CASCADE", "", 0, 0},
}

func TestCarrying(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease, Key: []string{"id"}}, Table{Name: "items", Mode: Lease}, Table{Name: "bills", Mode: Lease, Resource: "r"})
	require.NoError(t, err)
	from := func(parent, into string) Cascade {
		return Cascade{Name: Name{"public", parent}, Into: Name{"public", into}, Delete: true, UpdateOf: []string{"id"}, Truncate: true, ChildWall: true}
	}
	p, err = p.WithClosure(Closure{Cascades: []Cascade{from("users", "orders"), from("firms", "orders"), from("firms", "bills"), from("orders", "items")}})
	require.NoError(t, err)
	short := strings.NewReplacer("SET(", "pg_catalog.set_config('fencing.token', COALESCE(", "SET_R(", "pg_catalog.set_config('fencing.token_r', COALESCE(",
		"$n)", "$NEXT::pg_catalog.int8::pg_catalog.text, pg_catalog.current_setting('fencing.token', true)), true)",
		"$m)", "$AFTER::pg_catalog.int8::pg_catalog.text, pg_catalog.current_setting('fencing.token_r', true)), true)")
	for name, tt := range carryingTests {
		plan := p.Plan(tt.sql)
		require.Empty(t, plan.Violations, name)
		require.Len(t, plan.Carries(), tt.resources, name)
		require.True(t, tt.resources == 0 || !plan.Direct(), name)
		text, given, ok := plan.Carrying()
		require.Equal(t, tt.sent != "", ok, name)
		if ok {
			next := strings.NewReplacer("$NEXT", "$"+string(rune('1'+tt.given)), "$AFTER", "$"+string(rune('2'+tt.given)))
			require.Equal(t, next.Replace(short.Replace(tt.sent)), text, name)
			require.Equal(t, tt.given, given, name)
		}
	}
}
