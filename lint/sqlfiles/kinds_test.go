package sqlfiles

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// Migrations are told from queries.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		migration        bool
	}{
		{"plain queries", "a.sql", "UPDATE orders SET a = 1;", false},
		{"sqlc's queries, even with DDL", "a.sql", "-- name: A :exec\nUPDATE orders SET a = 1;\n-- name: B :exec\nCREATE TABLE x ();", false},
		{"goose", "a.sql", "-- +goose Up\nUPDATE orders SET a = 1;", true},
		{"golang-migrate, up", "1_a.up.sql", "UPDATE orders SET a = 1;", true},
		{"golang-migrate, down", "1_a.down.sql", "UPDATE orders SET a = 1;", true},
		{"a schema", "a.sql", "CREATE TABLE orders (); UPDATE orders SET a = 1;", true},
		{"an index", "a.sql", "CREATE UNIQUE INDEX i ON orders (a);", true},
		{"grants", "a.sql", "GRANT SELECT ON orders TO app;", true},
		{"a temporary table", "a.sql", "CREATE TEMP TABLE x (); UPDATE orders SET a = 1;", false},
		{"psql's commands", "a.sql", "\\set x 1\nUPDATE orders SET a = 1;", true},
		{"rows of COPY", "a.sql", "COPY x FROM stdin;\n\\.\n", true},
		{"COPY without rows", "a.sql", "COPY x FROM stdin;", false},
		{"goose in a string", "a.sql", "SELECT '\n-- +goose Up';", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.migration, readFile(tt.file, tt.text, false).migration)
			require.True(t, readFile(tt.file, tt.text, true).migration, "it is configured as one")
		})
	}
}

// Each rule is decided on, with a reason.
func TestDecisions(t *testing.T) {
	for _, rule := range rewrite.Rules() {
		d := decide(rule.ID)
		require.Contains(t, []verdict{report, pass, count, absent}, d.verdict, rule.ID)
		require.NotEmpty(t, d.why, rule.ID)
		require.NotEqual(t, byClass[rule.Class], byRule[rule.ID], "%s: its class says that already", rule.ID)
	}
	for rule := range byRule {
		require.NotZero(t, rule.Class(), "%s: there is no such rule", rule)
	}
}

// What a migration may do, and a query may not.
func TestMigrationsAndQueries(t *testing.T) {
	for _, tt := range []struct {
		name, text           string
		migration, elsewhere []string
		unparsed             map[string]int
	}{
		{"structure", "ALTER TABLE orders ADD a int;", []string{}, []string{"1:13 FR201"}, nil},
		{"an index", "CREATE INDEX ON orders (a);", []string{}, []string{"1:17 FR201"}, nil},
		{"settings", "SET session_replication_role = replica;", []string{}, []string{"1:1 FR205"}, nil},
		{"code that can't be followed", "DO $$ BEGIN EXECUTE 'x' || 1; END $$;", []string{}, []string{"1:1 FR207"}, nil},
		{"the registry", "SELECT fencing.register('orders', 'lease');", []string{}, []string{"1:8 FR208"}, nil},
		{"registry rows", "DELETE FROM fencing.incarnation;", []string{}, []string{"1:13 FR209"}, nil},
		{"PREPARE", "EXECUTE p(1);", []string{}, []string{"1:1 FR206"}, nil},
		{"an unguarded UPDATE", "UPDATE orders SET a = 1;", []string{"1:8 FR101"}, []string{"1:8 FR101"}, nil},
		{"in a body", "DO $$ BEGIN\nUPDATE orders SET a = 1; END $$;", []string{"2:8 FR101"}, []string{"1:1 FR207"}, nil},
		{"in a function",
			"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $x$ DECLARE i int; " +
				"BEGIN IF i > 1 THEN DELETE FROM orders RETURNING id INTO i; END IF; FOR i IN UPDATE orders SET a = (b) LOOP NULL; " +
				"END LOOP; END $x$;",
			[]string{"1:104 FR111", "1:156 FR101"}, []string{"1:1 FR207"}, nil},
		{"in a body, with a token in a variable",
			"DO $$ DECLARE t bigint; BEGIN UPDATE orders SET a = 1, last_token = t WHERE last_token <= t; END $$;", []string{},
			[]string{"1:1 FR207"}, nil},
		{"read in a body", "DO $$ BEGIN UPDATE x SET a = 1 WHERE id IN (SELECT id FROM orders); END $$;", []string{}, []string{"1:1 FR207"}, nil},
		{"named in a body", "DO $$ BEGIN update := 1; PERFORM 'UPDATE orders SET a = 1'; END $$;", []string{}, []string{"1:1 FR207"}, nil},
		{"a DELETE", "DELETE FROM orders;", []string{"1:13 FR111"}, []string{"1:13 FR111"}, nil},
		{"an INSERT", "INSERT INTO orders (a) VALUES (1);", []string{"1:13 FR121"}, []string{"1:13 FR121"}, nil},
		{"TRUNCATE", "TRUNCATE orders;", []string{"1:10 FR202"}, []string{"1:10 FR202"}, nil},
		{"COPY", "COPY orders FROM '/x';", []string{"1:6 FR203"}, []string{"1:6 FR203"}, nil},
		{"syntax", "SELECT 1;\nSELECT orders FROM WHERE;", []string{"2:20 FR901"}, []string{"2:20 FR901"}, map[string]int{"syntax error at or near where": 1}},
		{"syntax, and nothing protected", "SELECT 1;\nALTER TABLE x ADD a int(11);", []string{}, []string{}, map[string]int{"syntax error at or near (": 1}},
		{"in a body in quotes", "DO LANGUAGE plpgsql 'BEGIN\nPERFORM ''x''; UPDATE orders SET a = ''b''; END';", []string{"2:23 FR101"}, []string{"1:1 FR207"}, nil},
		{
			"in a function in quotes", "CREATE FUNCTION f(a text DEFAULT 'UPDATE orders SET a = 1') RETURNS void LANGUAGE sql AS\n'UPDATE orders SET a = 1';",
			[]string{"2:9 FR101"}, []string{"1:1 FR207"}, nil,
		},
		{"in a procedure with escapes",
			"CREATE PROCEDURE f() LANGUAGE sql AS E'SELECT \\'x\\';\\nINSERT INTO\n\\x6frders (a) VALUES (1)';", []string{"2:1 FR121"},
			[]string{"1:1 FR207"}, nil},
		{"in a body of U&", "DO U&'BEGIN UPDATE orders SET a = 1; END';", []string{"1:20 FR101"}, []string{"1:1 FR207"}, nil},
		{"in parts", "DO 'BEGIN '\n'DELETE FROM orders; END';", []string{"2:14 FR111"}, []string{"1:1 FR207"}, nil},
		{"a guarded UPDATE", "UPDATE orders SET last_token = 8 WHERE last_token <= 8;", []string{}, []string{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.unparsed == nil {
				tt.unparsed = map[string]int{}
			}
			for name, want := range map[string][]string{"1_a.up.sql": tt.migration, "a.sql": tt.elsewhere} {
				text := tt.text
				if name == "a.sql" { // a query of sqlc's, so that DDL doesn't make it a migration
					text = "-- name: A :exec\n" + text
				}
				result := lintText(t, name, text)
				for i := range result.Findings {
					result.Findings[i].Line -= strings.Count(text, "\n") - strings.Count(tt.text, "\n")
				}
				require.Equal(t, want, places(result.Findings), name)
				require.Equal(t, tt.unparsed, result.Unparsed, name)
			}
		})
	}
}

// What sqlc reads as the schema stands among its queries without a name.
func TestSchemaAmongQueries(t *testing.T) {
	result := lintText(t, "a.sql",
		"CREATE TABLE orders (id int);\n-- name: A :exec\nDROP TABLE orders;\nALTER TABLE orders ADD a int;\nTRUNCATE orders;\nSET ROLE x;")
	require.Equal(t, []string{"3:1 FR201", "5:10 FR202", "6:1 FR205"}, places(result.Findings))
}

// A migration's DELETE needs the setting that the wall reads, and no guard.
func TestDeletesInMigrations(t *testing.T) {
	const set = "SET LOCAL fencing.token = '8';\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"guarded, without the setting", "DELETE FROM orders WHERE last_token <= 8;", []string{"1:13 FR111"}},
		{"unguarded, with it", set + "DELETE FROM orders;", []string{}},
		{"a guard that proves nothing", set + "DELETE FROM orders WHERE id = 1 OR last_token <= 8;", []string{}},
		{"such a guard, without it", "DELETE FROM orders WHERE id = 1 OR last_token <= 8;", []string{"1:13 FR111"}},
		{"by set_config", "SELECT pg_catalog.set_config('fencing.token', '8', true);\nDELETE FROM orders;", []string{}},
		{"in a body before", "DO $$ BEGIN PERFORM set_config('fencing.token', '8', false); END $$;\nDELETE FROM orders;", []string{}},
		{"guarded in a body that runs, without it", "DO 'BEGIN\nDELETE FROM orders WHERE last_token <= t; END';", []string{"2:1 FR111"}},
		{"guarded in a function", "CREATE FUNCTION f(t bigint) RETURNS void LANGUAGE sql AS $$ DELETE FROM orders WHERE last_token <= t $$;", []string{}},
		{"in the same body", "DO $$ BEGIN PERFORM set_config('fencing.token', '8', true); DELETE FROM orders; END $$;", []string{}},
		{"before the body", set + "DO $$ BEGIN DELETE FROM orders; END $$;", []string{}},
		{"in a function that doesn't run", set + "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DELETE FROM orders $$;", []string{"2:65 FR111"}},
		{"quoted, to, for the session", "set session \"fencing\".\"token\" to 8;\nDELETE FROM orders;", []string{}},
		{"by psql's variable", "\\set t 8\nSET LOCAL fencing.token = :'t';\nDELETE FROM orders;", []string{}},
		{"in a comment", "-- SET LOCAL fencing.token = '8';\nDELETE FROM orders;", []string{"2:13 FR111"}},
		{"in a string", "SELECT 'set local fencing . token = ';\nDELETE FROM orders;", []string{"2:13 FR111"}},
		{"of another resource", "SET LOCAL fencing.token_x = '8';\nDELETE FROM orders;", []string{"2:13 FR111"}},
		{"behind it", "DELETE FROM orders;\n" + set, []string{"1:13 FR111"}},
		{"in goose's other section", "-- +goose Up\n" + set + "-- +goose Down\nDELETE FROM orders;", []string{"4:13 FR111"}},
		{"it is for DELETE alone", set + "UPDATE orders SET a = 1;", []string{"2:8 FR101"}},
		{"hidden", "DELETE FROM orders WHERE last_token <= 8; -- fencerow:ignore FR111 nobody holds it", []string{}},
		{"in WITH, beside an UPDATE", "WITH x AS (DELETE FROM orders RETURNING 1) UPDATE orders SET a = 1;", []string{"1:24 FR111", "1:51 FR101"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := lintText(t, "1_a.up.sql", tt.text)
			require.Equal(t, tt.want, places(result.Findings))
			for _, f := range result.Findings {
				if f.Rule == rewrite.UnguardedDelete {
					require.Equal(t, "in the same transaction, before it: SET LOCAL fencing.token = '<token>';", f.Fix)
				}
			}
		})
	}
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease, Resource: "Shop"})
	require.NoError(t, err)
	l := &linter{Config: Config{Policy: policy}, result: &Result{Unparsed: map[string]int{}}}
	l.lintText("1_a.up.sql", "SET LOCAL \"fencing\".\"token_$53hop\" = 8;\nDELETE FROM orders;\nSET LOCAL fencing.token = 8;", false)
	require.Empty(t, l.result.Findings)
}

// What doesn't parse and names nothing protected is listed.
func TestNotAnalysed(t *testing.T) {
	result := lintText(t, "1_a.up.sql",
		"SELECT 1;\nALTER TABLE reorders ADD a int(11); -- orders\nALTER TABLE x ADD orders int(11);\nALTER TABLE x ADD a text DEFAULT 'on ORDERS' AUTO;")
	require.Equal(t, []string{"3:29 FR901", "4:46 FR901"}, places(result.Findings))
	require.Len(t, result.NotAnalysed, 1)
	require.Equal(t, []any{2, "syntax error at or near ("}, []any{result.NotAnalysed[0].Line, result.NotAnalysed[0].Text})
}
