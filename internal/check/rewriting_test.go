package check

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// rewritingPolicy protects what ORMs write, with and without a resource.
func rewritingPolicy(t *testing.T, mode Mode) *Policy {
	t.Helper()
	p, err := NewPolicy(
		Table{Name: "orders", Mode: mode, Rewrite: true},
		Table{Name: "items", Mode: mode, TokenColumn: "Fence", Resource: "stock", Rewrite: true},
		Table{Name: "manual", Mode: mode},
		Table{Name: "listed", Mode: mode, Rewrite: true, Columns: []string{"id", "Status", "last_token", "n"}},
		Table{Name: "twice", Mode: mode, Rewrite: true, Columns: []string{"id", "last_token"}}, Table{Schema: "b", Name: "twice", Mode: mode, Rewrite: true, Columns: []string{"last_token", "id"}})
	require.NoError(t, err)
	return p
}

// Each text, what it is sent as ("" if that is as it is), the arguments that are
// passed and those that are sent, with 8 as the token of orders, 9 of items.
func TestRewriting(t *testing.T) {
	arg, null := tokenctx.Arg, any(nil)
	tests := map[string]struct {
		sql, want string
		args      []any
		sent      []any
	}{
		"gorm updates":        {`UPDATE "orders" SET "status"=$1 WHERE "id" = $2`, `UPDATE "orders" SET "status"=$1, last_token = $3 WHERE "id" = $2 AND last_token <= $3`, []any{"x", 1}, []any{"x", 1, 8}},
		"gorm save":           {`UPDATE "orders" SET "status"=$1,"last_token"=$2 WHERE "id" = $3`, `UPDATE "orders" SET "status"=$1,"last_token"=$2 WHERE "id" = $3 AND last_token <= $2`, []any{"x", int64(7), 1}, []any{"x", 8, 1}},
		"gorm save, null":     {`UPDATE "orders" SET "last_token"=$1 WHERE "id" = $2`, `UPDATE "orders" SET "last_token"=$1 WHERE "id" = $2 AND last_token <= $1`, []any{null, 1}, []any{8, 1}},
		"gorm create":         {`INSERT INTO "orders" ("status","last_token") VALUES ($1,$2),($3,$4) RETURNING "id"`, ``, []any{"x", int64(0), "y", int64(99)}, []any{"x", 8, "y", 8}},
		"gorm create, Arg":    {`INSERT INTO "orders" ("status","last_token") VALUES ($1,$2)`, ``, []any{"x", arg}, []any{"x", 8}},
		"gorm update all":     {`INSERT INTO "orders" ("id","last_token") VALUES ($1,$2) ON CONFLICT ("id") DO UPDATE SET "last_token"="excluded"."last_token"`, `INSERT INTO "orders" ("id","last_token") VALUES ($1,$2) ON CONFLICT ("id") DO UPDATE SET "last_token"="excluded"."last_token" WHERE orders.last_token <= EXCLUDED.last_token`, []any{1, 0}, []any{1, 8}},
		"gorm delete":         {`DELETE FROM "orders" WHERE "orders"."id" = $1`, `DELETE FROM "orders" WHERE "orders"."id" = $1 AND last_token <= $2`, []any{1}, []any{1, 8}},
		"gorm defaults":       {`INSERT INTO "orders" DEFAULT VALUES RETURNING "id"`, `INSERT INTO "orders" (last_token) VALUES ($1) RETURNING "id"`, nil, []any{8}},
		"bun update":          {`UPDATE "orders" AS "o" SET "status" = 'x', "last_token" = 7 WHERE ("o"."id" = 1)`, `UPDATE "orders" AS "o" SET "status" = 'x', "last_token" = $1 WHERE ("o"."id" = 1) AND last_token <= $1`, nil, []any{8}},
		"bun negative":        {`UPDATE "orders" SET "last_token" = -7 WHERE "id" = 1`, `UPDATE "orders" SET "last_token" = $1 WHERE "id" = 1 AND last_token <= $1`, nil, []any{8}},
		"bun insert":          {`INSERT INTO "orders" ("id", "status", "last_token") VALUES (DEFAULT, 'a, (b', 0), (DEFAULT, 'x', DEFAULT) RETURNING "id"`, `INSERT INTO "orders" ("id", "status", "last_token") VALUES (DEFAULT, 'a, (b', $1), (DEFAULT, 'x', $1) RETURNING "id"`, nil, []any{8}},
		"bun bulk":            {`WITH "_data" ("id", "status", "last_token") AS (VALUES (1::BIGINT, 'x'::VARCHAR, 0::BIGINT)) UPDATE "orders" AS "o" SET "status" = "_data"."status", "last_token" = "_data"."last_token" FROM _data WHERE ("o"."id" = "_data"."id")`, `WITH "_data" ("id", "status", "last_token") AS (VALUES (1::BIGINT, 'x'::VARCHAR, 0::BIGINT)) UPDATE "orders" AS "o" SET "status" = "_data"."status", "last_token" = $1 FROM _data WHERE ("o"."id" = "_data"."id") AND o.last_token <= $1`, nil, []any{8}},
		"sqlcommenter":        {`/* a */ UPDATE orders SET status = 'x' WHERE id = 1 /*traceparent='00-1'*/`, `/* a */ UPDATE orders SET status = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1 /*traceparent='00-1'*/`, nil, []any{8}},
		"an expression":       {`UPDATE orders SET last_token = last_token + $1, status = 'x' WHERE id = $2`, `UPDATE orders SET last_token = $1, status = 'x' WHERE id = $2 AND last_token <= $1`, []any{1, 2}, []any{8, 2}},
		"a cast":              {`INSERT INTO orders (last_token) VALUES ($1::double precision)`, `INSERT INTO orders (last_token) VALUES ($1)`, []any{7.5}, []any{8}},
		"one for all rows":    {`INSERT INTO orders (id, last_token) VALUES ($1, $2), ($3, $2)`, ``, []any{1, 0, 2}, []any{1, 8, 2}},
		"insert select":       {`INSERT INTO orders (last_token, id) SELECT last_token, id FROM staging WHERE id > $1`, `INSERT INTO orders (last_token, id) SELECT $2::bigint, id FROM staging WHERE id > $1`, []any{1}, []any{1, 8}},
		"no list":             {`INSERT INTO listed VALUES ($1, 'x')`, `INSERT INTO listed (id, "Status", last_token) VALUES ($1, 'x', $2)`, []any{1}, []any{1, 8}},
		"no list, the token":  {`INSERT INTO public.listed AS l VALUES ($1, 'x', $2, DEFAULT), (2, 'y', $2, 3) ON CONFLICT (id) DO UPDATE SET n = 2`, `INSERT INTO public.listed AS l (id, "Status", last_token, n) VALUES ($1, 'x', $2, DEFAULT), (2, 'y', $2, 3) ON CONFLICT (id) DO UPDATE SET n = 2, last_token = EXCLUDED.last_token WHERE l.last_token <= EXCLUDED.last_token`, []any{1, 5}, []any{1, 8}},
		"no list, a value":    {`INSERT INTO listed SELECT id, 's', last_token, 4 FROM staging`, `INSERT INTO listed (id, "Status", last_token, n) SELECT id, 's', $1::bigint, 4 FROM staging`, nil, []any{8}},
		"no list, brackets":   {`INSERT INTO listed OVERRIDING SYSTEM VALUE (SELECT 1 UNION (VALUES (2)))`, `INSERT INTO listed (id, last_token) OVERRIDING SYSTEM VALUE (SELECT 1, $1::bigint UNION (VALUES (2, $1::bigint)))`, nil, []any{8}},
		"select without from": {`INSERT INTO orders (id) SELECT $1 WHERE NOT EXISTS (SELECT FROM orders WHERE id = $1)`, `INSERT INTO orders (id, last_token) SELECT $1, $2::bigint WHERE NOT EXISTS (SELECT FROM orders WHERE id = $1)`, []any{1}, []any{1, 8}},
		"OVERRIDING":          {`INSERT INTO orders (id) OVERRIDING SYSTEM VALUE VALUES (1)`, `INSERT INTO orders (id, last_token) OVERRIDING SYSTEM VALUE VALUES (1, $1)`, nil, []any{8}},
		"cte":                 {`WITH w AS (UPDATE orders SET status = $1 WHERE id = 1 RETURNING id) SELECT * FROM w`, `WITH w AS (UPDATE orders SET status = $1, last_token = $2 WHERE id = 1 AND last_token <= $2 RETURNING id) SELECT * FROM w`, []any{"x"}, []any{"x", 8}},
		"two resources":       {`WITH w AS (UPDATE orders SET status = $1 WHERE id = 1 RETURNING id) UPDATE items SET n = n - 1 WHERE order_id = 1`, `WITH w AS (UPDATE orders SET status = $1, last_token = $3 WHERE id = 1 AND last_token <= $3 RETURNING id) UPDATE items SET n = n - 1, "Fence" = $2 WHERE order_id = 1 AND "Fence" <= $2`, []any{"x"}, []any{"x", 9, 8}},
		"guarded by hand":     {`UPDATE orders SET last_token = $1 WHERE last_token <= $1`, ``, []any{int64(8)}, []any{8}},
		"raise missing":       {`UPDATE orders SET status = 'x' WHERE last_token <= $1`, `UPDATE orders SET status = 'x', last_token = $1 WHERE last_token <= $1`, []any{8}, []any{8}},
		"brackets":            {`INSERT INTO orders (id) (((SELECT $1 FROM s WHERE id > 2)))`, `INSERT INTO orders (id, last_token) (((SELECT $1, $2::bigint FROM s WHERE id > 2)))`, []any{1}, []any{1, 8}},
		"brackets, taken":     {`INSERT INTO orders (id, last_token) (SELECT id, last_token FROM s) RETURNING id`, `INSERT INTO orders (id, last_token) (SELECT id, $1::bigint FROM s) RETURNING id`, nil, []any{8}},
		"VALUES in brackets":  {`INSERT INTO orders AS o (id) OVERRIDING SYSTEM VALUE (VALUES ($1), (2)) ON CONFLICT (id) DO UPDATE SET status = 'x'`, `INSERT INTO orders AS o (id, last_token) OVERRIDING SYSTEM VALUE (VALUES ($1, $2), (2, $2)) ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = EXCLUDED.last_token WHERE o.last_token <= EXCLUDED.last_token`, []any{1}, []any{1, 8}},
		"a set operation":     {`INSERT INTO orders (id) SELECT 1 UNION (SELECT id FROM s WHERE id IN (SELECT 3 UNION SELECT 4) EXCEPT VALUES (3), (4)) INTERSECT ALL SELECT $1 ORDER BY 1 LIMIT 2`, `INSERT INTO orders (id, last_token) SELECT 1, $2::bigint UNION (SELECT id, $2::bigint FROM s WHERE id IN (SELECT 3 UNION SELECT 4) EXCEPT VALUES (3, $2::bigint), (4, $2::bigint)) INTERSECT ALL SELECT $1, $2::bigint ORDER BY 1 LIMIT 2`, []any{1}, []any{1, 8}},
		"stars joined":        {`INSERT INTO orders (id, status) SELECT * FROM s UNION ALL SELECT r.* FROM r`, `INSERT INTO orders (last_token, id, status) SELECT $1::bigint, * FROM s UNION ALL SELECT $1::bigint, r.* FROM r`, nil, []any{8}},
		"WITH inside":         {`INSERT INTO orders (id, status) WITH a AS (SELECT 1 AS id), b (v) AS NOT MATERIALIZED (VALUES ('x')) SELECT id, v FROM a, b`, `INSERT INTO orders (id, status, last_token) WITH a AS (SELECT 1 AS id), b (v) AS NOT MATERIALIZED (VALUES ('x')) SELECT id, v, $1::bigint FROM a, b`, nil, []any{8}},
		"WITH inside, taken":  {`INSERT INTO orders (id, last_token) WITH a AS (SELECT 1) VALUES (1, $1), (2, 0)`, `INSERT INTO orders (id, last_token) WITH a AS (SELECT 1) VALUES (1, $1::bigint), (2, $2::bigint)`, []any{5}, []any{8, 8}},
		"WITH before":         {`WITH a AS (SELECT 1 AS id) INSERT INTO orders (id) SELECT id FROM a UNION ALL SELECT 2`, `WITH a AS (SELECT 1 AS id) INSERT INTO orders (id, last_token) SELECT id, $1::bigint FROM a UNION ALL SELECT 2, $1::bigint`, nil, []any{8}},
		"WITH in an arm":      {`INSERT INTO orders (id) (WITH RECURSIVE a (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM a WHERE id < 3) SELECT id FROM a) UNION SELECT 9`, `INSERT INTO orders (id, last_token) (WITH RECURSIVE a (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM a WHERE id < 3) SELECT id, $1::bigint FROM a) UNION SELECT 9, $1::bigint`, nil, []any{8}},
		"several columns":     {`UPDATE orders SET (status, last_token) = ($1, $2) WHERE id = 1`, `UPDATE orders SET (status, last_token) = ($1, $2) WHERE id = 1 AND last_token <= $2`, []any{"x", 7}, []any{"x", 8}},
		"several, a constant": {`UPDATE orders SET n = 1, (last_token, status) = ROW (f(1, (2)), 'x'), (a, b) = (3, 4)`, `UPDATE orders SET n = 1, (last_token, status) = ROW ($1, 'x'), (a, b) = (3, 4) WHERE last_token <= $1`, nil, []any{8}},
		"several without it":  {`UPDATE orders SET (status, n) = (SELECT 'x', 7 FROM s) WHERE id = 2`, `UPDATE orders SET (status, n) = (SELECT 'x', 7 FROM s), last_token = $1 WHERE id = 2 AND last_token <= $1`, nil, []any{8}},
		"several, upsert":     {`INSERT INTO orders (id, n, last_token) VALUES (1, 9, 3) ON CONFLICT (id) DO UPDATE SET (n, last_token) = (EXCLUDED.n, EXCLUDED.last_token)`, `INSERT INTO orders (id, n, last_token) VALUES (1, 9, $1) ON CONFLICT (id) DO UPDATE SET (n, last_token) = (EXCLUDED.n, EXCLUDED.last_token) WHERE orders.last_token <= EXCLUDED.last_token`, nil, []any{8}},
		"MERGE":               {`MERGE INTO orders o USING s ON s.id = o.id WHEN MATCHED THEN UPDATE SET status = $1 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)`, `MERGE INTO orders o USING s ON s.id = o.id WHEN MATCHED AND o.last_token <= $2 THEN UPDATE SET status = $1, last_token = $2 WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, $2)`, []any{"x"}, []any{"x", 8}},
		"MERGE, all actions":  {`MERGE INTO orders USING (VALUES ($1::bigint, 'x')) v(id, st) ON v.id = orders.id WHEN MATCHED AND (CASE WHEN n = 1 THEN true END) OR v.id = 2 THEN UPDATE SET status = v.st, (n, last_token) = (1, $2) WHEN MATCHED AND n > 3 THEN DELETE WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND v.id > 3 THEN INSERT (id, status) OVERRIDING SYSTEM VALUE VALUES (v.id, v.st) WHEN NOT MATCHED THEN INSERT (last_token, id) VALUES (7, (v.id)); -- all`, `MERGE INTO orders USING (VALUES ($1::bigint, 'x')) v(id, st) ON v.id = orders.id WHEN MATCHED AND ((CASE WHEN n = 1 THEN true END) OR v.id = 2) AND orders.last_token <= $2 THEN UPDATE SET status = v.st, (n, last_token) = (1, $2) WHEN MATCHED AND n > 3 AND orders.last_token <= $3 THEN DELETE WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND v.id > 3 THEN INSERT (id, status, last_token) OVERRIDING SYSTEM VALUE VALUES (v.id, v.st, $3) WHEN NOT MATCHED THEN INSERT (last_token, id) VALUES ($3, (v.id)); -- all`, []any{1, 5}, []any{1, 8, 8}},
		"MERGE, guarded once": {`MERGE INTO orders USING s ON s.id = orders.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET last_token = $1 WHEN MATCHED THEN DELETE`, `MERGE INTO orders USING s ON s.id = orders.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET last_token = $1 WHEN MATCHED AND orders.last_token <= $2 THEN DELETE`, []any{arg}, []any{8, 8}},
		"MERGE, WITH":         {`WITH s AS (SELECT 1 AS id) MERGE INTO orders o USING s ON s.id = o.id WHEN MATCHED THEN UPDATE SET last_token = o.last_token + 1`, `WITH s AS (SELECT 1 AS id) MERGE INTO orders o USING s ON s.id = o.id WHEN MATCHED AND o.last_token <= $1 THEN UPDATE SET last_token = $1`, nil, []any{8}},
		"MERGE of a resource": {`MERGE INTO items USING s ON s.id = items.id WHEN MATCHED THEN DELETE`, `MERGE INTO items USING s ON s.id = items.id WHEN MATCHED AND items."Fence" <= $1 THEN DELETE`, nil, []any{9}},
		"a read":              {`SELECT * FROM orders WHERE id = $1`, ``, []any{1}, []any{1}},
	}
	p := rewritingPolicy(t, Lease)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(test.sql)
			require.NoError(t, plan.Refusal())
			want := test.want
			if want == "" {
				want = test.sql
			}
			require.Equal(t, want, plan.Text())
			require.Equal(t, len(test.sent)-len(test.args), plan.Added())
			ctx := tokenctx.WithResource(tokenctx.With(t.Context(), 8), "stock", 9)
			bound, err := plan.BindAll(ctx, argumentsOf(test.args))
			require.NoError(t, err)
			for i, arg := range bound {
				require.EqualValues(t, test.sent[i], arg.Value, "$%d", i+1)
				require.Equal(t, i+1, arg.Ordinal)
			}
			require.Len(t, bound, len(test.sent))
			require.Equal(t, plan.Text(), p.Plan(plan.Text()).Text(), "what was rewritten is left alone")
			if plan.Rewritten() {
				_, err = plan.BindAll(ctx, append(argumentsOf(test.args), driver.NamedValue{Ordinal: len(test.args) + 1, Value: int64(99)}))
				require.ErrorContains(t, err, "pass one for each")
				_, err = plan.BindAll(t.Context(), argumentsOf(test.args))
				require.ErrorIs(t, err, tokenctx.ErrNoToken)
			}
		})
	}
}

func argumentsOf(values []any) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// leftOut is why a value for the token column can't give way to it.
const leftOut = "a placeholder would be left out of the text, or stand for the token in another place, too, since a value for last_token gives way to it"

// whyNotRewritten is what a refusal says of it.
var whyNotRewritten = map[string]string{
	"another EXCLUDED token":      "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"no column list":              noColumns,
	"more values than columns":    noColumns,
	"a star for a list":           noColumns,
	"rows of several widths":      noColumns,
	"columns of several tables":   noColumns,
	"an arm of another width":     otherWidth,
	"a set operation of a table":  unknownSource,
	"a table":                     unknownSource,
	"a star in a set operation":   "its source has a star and counts the columns of its list, or chooses rows by all of them: list the columns by their names",
	"ordered by what is added":    "its source is ordered by int8, which would be the token then",
	"a row of another width":      "a row of its source hasn't one value for each column that is named",
	"a star before the place":     "the list of its source hasn't one item for each column that is named",
	"a star for all":              "the list of its source hasn't one item for each column that is named",
	"a column named twice":        "its column list names last_token in a way that cannot be followed",
	"one that another place has":  leftOut,
	"two that nothing else has":   leftOut,
	"a guard and another value":   "it compares last_token with a token, and sets it to something else",
	"an element of the column":    "last_token is set twice, or in part: set it once",
	"EXCLUDED as a whole":         "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"EXCLUDED's columns":          "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"EXCLUDED's, among several":   "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"several statements":          "a text of several statements isn't",
	"merge, no columns":           "an action that inserts needs a column list to be given the token",
	"merge, defaults":             "an action that inserts needs a column list to be given the token",
	"merge, another width":        "its INSERT hasn't one value for each column that is named",
	"merge of itself":             "something else that it reads has the target's name: give the target an alias",
	"a name twice":                "something else that it reads has the target's name: give the target an alias",
	"current of":                  "WHERE CURRENT OF has no place for a guard: write by key",
	"several columns, by query":   "last_token is set by a query among several columns, or twice: set it by itself, once",
	"EXCLUDED's token as a value": "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"EXCLUDED's token, compared":  "EXCLUDED.last_token is used as a value, and would be the token instead of what the row was given",
	"inside COPY":                 "COPY takes no placeholder for the token",
}

// What can't be rewritten for certain is refused as without rewriting.
func TestNotRewritten(t *testing.T) {
	p, without := rewritingPolicy(t, Lease), rewritingPolicy(t, Lease)
	for _, table := range without.tables {
		table.Rewrite = false
	}
	for name, sql := range map[string]string{
		"a table of another choice":   `UPDATE manual SET status = 'x'`,
		"both kinds of tables":        `WITH w AS (UPDATE manual SET status = 'x') UPDATE orders SET status = 'x'`,
		"no column list":              `INSERT INTO orders VALUES ($1, $2)`,
		"more values than columns":    `INSERT INTO listed VALUES (1, 'x', 0, 4, 5)`,
		"a star for a list":           `INSERT INTO listed SELECT * FROM s`,
		"rows of several widths":      `INSERT INTO listed VALUES (1, 'x'), (2)`,
		"columns of several tables":   `INSERT INTO twice VALUES (1)`,
		"an arm of another width":     `INSERT INTO orders (id, status) SELECT 1, 'x' UNION SELECT 2`,
		"a set operation of a table":  `INSERT INTO orders (id) SELECT 1 UNION TABLE s`,
		"a table":                     `INSERT INTO orders (id) TABLE s`,
		"a star in a set operation":   `INSERT INTO orders (id, status) SELECT * FROM s UNION SELECT 1, 'x' ORDER BY 1`,
		"ordered by what is added":    `INSERT INTO orders (id) SELECT id FROM s ORDER BY int8 LIMIT 1`,
		"EXCLUDED as a whole":         `INSERT INTO orders (id, n) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET doc = to_jsonb(EXCLUDED)`,
		"EXCLUDED's columns":          `INSERT INTO orders (id, n, last_token) VALUES (1, 9, 3) ON CONFLICT (id) DO UPDATE SET doc = to_jsonb(ROW(EXCLUDED.*))`,
		"EXCLUDED's, among several":   `INSERT INTO orders (id, n, last_token) VALUES (1, 9, 3) ON CONFLICT (id) DO UPDATE SET (n, last_token) = (EXCLUDED.last_token, EXCLUDED.last_token)`,
		"EXCLUDED's token as a value": `INSERT INTO orders (id, n, last_token) VALUES (1, 9, 3) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.last_token`,
		"EXCLUDED's token, compared":  `INSERT INTO orders (id, n, last_token) VALUES (1, 9, 3) ON CONFLICT (id) DO UPDATE SET n = 1 WHERE EXCLUDED.last_token > 2`,
		"several statements":          `UPDATE orders SET status = 'x'; SELECT 1`,
		"merge, no columns":           `MERGE INTO orders o USING s ON s.id = o.id WHEN NOT MATCHED THEN INSERT VALUES (1)`,
		"merge, defaults":             `MERGE INTO orders o USING s ON s.id = o.id WHEN NOT MATCHED THEN INSERT DEFAULT VALUES`,
		"merge, another width":        `MERGE INTO orders o USING s ON s.id = o.id WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (1)`,
		"merge of itself":             `MERGE INTO orders USING orders ON true WHEN MATCHED THEN DELETE`,
		"current of":                  `UPDATE orders SET status = 'x' WHERE CURRENT OF c`,
		"several columns, by query":   `UPDATE orders SET (status, last_token) = (SELECT 'x', 7)`,
		"a row of another width":      `INSERT INTO orders (id, last_token) VALUES (1)`,
		"OVERRIDING USER VALUE":       `INSERT INTO orders (id, last_token) OVERRIDING USER VALUE VALUES (1, 2)`,
		"a star before the place":     `INSERT INTO orders (id, status, last_token) SELECT s.*, 7 FROM s`,
		"an alias called excluded":    `INSERT INTO orders AS excluded (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET status = 'x'`,
		"a name twice":                `UPDATE orders SET status = 'x' FROM x.orders`,
		"a writing function":          `UPDATE orders SET status = query_to_xml('x', true, true, '')::text`,
		"truncate":                    `TRUNCATE orders`,
		"one that another place has":  `UPDATE orders SET last_token = $1 WHERE id = $2 AND last_token = $1`,
		"a guard and another value":   `UPDATE orders SET last_token = $1::float8 WHERE last_token <= $2`,
		"another EXCLUDED token":      `INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= EXCLUDED.last_token`,
		"a star for all":              `INSERT INTO orders (last_token, id) SELECT * FROM s`,
		"inside COPY":                 `COPY (UPDATE orders SET status = 'x' RETURNING 1) TO STDOUT`,
		"two that nothing else has":   `UPDATE orders SET last_token = $1 + $2 WHERE id = 1`,
		"copy":                        `COPY orders FROM STDIN`,
		"a column named twice":        `INSERT INTO orders (last_token, last_token) VALUES (1, 2)`,
		"an element of the column":    `UPDATE orders SET last_token[1] = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(sql)
			require.Error(t, plan.Refusal())
			require.False(t, plan.Rewritten())
			got := plan.Violations[0]
			message, why, _ := strings.Cut(got.Message, " (not rewritten: ")
			got.Message = message
			require.Equal(t, without.Plan(sql).Violations[0], got)
			require.Equal(t, whyNotRewritten[name], strings.TrimSuffix(why, ")"))
		})
	}
}

func TestExplain(t *testing.T) {
	p := rewritingPolicy(t, Strict)
	for sql, want := range map[string]string{
		`SELECT 1`:             "names nothing that is protected: sent as it is\n",
		`SELECT * FROM orders`: "writes no protected table: sent as it is\n",
		`UPDATE orders SET status = 'secret' WHERE id = 5`: "UPDATE of protected table \"orders\": mode strict, token column last_token\n  guard: last_token < $1\n  token: $1 (put there)\n" +
			"sent as: UPDATE orders SET status = ?, last_token = $1 WHERE id = ? AND last_token < $1\n",
		`DELETE FROM items WHERE "Fence" < $1`: "DELETE of protected table \"items\": mode strict, token column Fence, token of resource \"stock\"\n  guard: Fence < $1\n  token: $1\n",
		`UPDATE manual SET status = 'secret'`: "UPDATE on protected table \"manual\" has no last_token guard (FR101 unguarded-update)\n    1 | UPDATE manual SET status = ?\n      |        ^^^^^^\n" +
			"  fix:  UPDATE manual SET status = ?, last_token = $1 WHERE last_token < $1   (? stands for your literal)\n  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101\n",
	} {
		require.Equal(t, want, p.Plan(sql).Explain(), sql)
	}
}

// A partition or child has the columns of its table, but in an order of its own.
func TestColumnsOfARelative(t *testing.T) {
	p, err := rewritingPolicy(t, Lease).WithClosure(Closure{Relatives: []Relative{{Name: Name{"public", "listed_1"}, Of: Name{"public", "listed"}}}})
	require.NoError(t, err)
	require.NoError(t, p.Plan(`INSERT INTO listed VALUES (1, 'x')`).Refusal())
	require.ErrorContains(t, p.Plan(`INSERT INTO listed_1 VALUES (1, 'x')`).Refusal(), noColumns)
}
