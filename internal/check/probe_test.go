package check

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// found is what the questions after a write find with its arguments, if rows 1
// to 4 carry the tokens 7, 8, 9 and 0.
type found struct {
	args    []any
	highest []any
	newer   []int64
}

// lookedFor are guarded writes, what is asked after their rows, and what it finds
// under token 8.
var lookedFor = map[string]struct {
	sql    string
	probes []Probe
	counts []Probe
	finds  []found
}{
	"by key": {
		`UPDATE protected_rows SET value = 'x', last_token = $2 WHERE id = $1 AND last_token < $2`,
		[]Probe{{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE id = $1`, []int{1}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM protected_rows WHERE id = $1 AND protected_rows.last_token OPERATOR(pg_catalog.>) $2::bigint`, []int{1, 0}}},
		[]found{
			{[]any{1, tokenctx.Arg}, []any{int64(7)}, []int64{0}},
			{[]any{2, tokenctx.Arg}, []any{int64(8)}, []int64{0}},
			{[]any{3, tokenctx.Arg}, []any{int64(9)}, []int64{1}},
			{[]any{99, tokenctx.Arg}, []any{nil}, []int64{0}},
		},
	},
	"by condition, then by key": {
		`UPDATE protected_rows SET value = $3, last_token = $2 WHERE id IN (1, 2, 3) AND value = $1 AND last_token < $2`,
		[]Probe{
			{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE id IN (1, 2, 3) AND value = $1`, []int{1}},
			{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE id IN (1, 2, 3)`, nil},
		},
		[]Probe{
			{`SELECT pg_catalog.count(*) FROM protected_rows WHERE id IN (1, 2, 3) AND value = $1 AND protected_rows.last_token OPERATOR(pg_catalog.>) $2::bigint`, []int{1, 0}},
		},
		[]found{
			{[]any{"row", tokenctx.Arg, "x"}, []any{int64(9), int64(9)}, []int64{1}},
			{[]any{"other", tokenctx.Arg, "x"}, []any{nil, int64(9)}, []int64{0}},
		},
	},
	"alternatives": {
		`UPDATE public."Order Items" AS o SET "Qty" = 5, fence = $1 WHERE (id = 3 OR "Qty" = 1) AND o.fence < $1`,
		[]Probe{{`SELECT pg_catalog.max(o.fence) FROM public."Order Items" o WHERE id = 3 OR "Qty" = 1`, nil}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM public."Order Items" o WHERE (id = 3 OR "Qty" = 1) AND o.fence OPERATOR(pg_catalog.>) $1::bigint`, []int{0}}},
		[]found{{[]any{tokenctx.Arg}, []any{int64(9)}, []int64{1}}},
	},
	"all rows": {
		`DELETE FROM ONLY protected_rows WHERE last_token < $1`,
		[]Probe{{`SELECT pg_catalog.max(protected_rows.last_token) FROM ONLY protected_rows`, nil}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM ONLY protected_rows WHERE protected_rows.last_token OPERATOR(pg_catalog.>) $1::bigint`, []int{0}}},
		[]found{{[]any{tokenctx.Arg}, []any{int64(9)}, []int64{1}}},
	},
	"by key alone": {
		`DELETE FROM metrics WHERE id = $1 AND day = 2 AND v > random() AND last_token < $2`,
		[]Probe{{`SELECT pg_catalog.max(metrics.last_token) FROM metrics WHERE id = $1 AND day = 2`, []int{1}}},
		nil,
		[]found{
			{[]any{3, tokenctx.Arg}, []any{int64(9)}, []int64{}},
			{[]any{1, tokenctx.Arg}, []any{int64(7)}, []int64{}},
			{[]any{4, tokenctx.Arg}, []any{nil}, []int64{}},
		},
	},
	"upsert": {
		`INSERT INTO protected_rows (id, value, last_token) VALUES ($1, 'x', $2), ($3::bigint, 'x', $2) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value, last_token = EXCLUDED.last_token WHERE protected_rows.last_token < EXCLUDED.last_token`,
		[]Probe{{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE id = $1 OR id = $2::bigint`, []int{1, 3}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM protected_rows WHERE (id = $1 OR id = $2::bigint) AND protected_rows.last_token OPERATOR(pg_catalog.>) $3::bigint`, []int{1, 3, 0}}},
		[]found{
			{[]any{1, tokenctx.Arg, 3}, []any{int64(9)}, []int64{1}},
			{[]any{1, tokenctx.Arg, 2}, []any{int64(8)}, []int64{0}},
			{[]any{98, tokenctx.Arg, 99}, []any{nil}, []int64{0}},
		},
	},
	"upsert by two columns": {
		`INSERT INTO metrics AS m (id, day, v, last_token) VALUES ($1, $2, 1, $3) ON CONFLICT (id, day) DO UPDATE SET v = 2, last_token = $3 WHERE m.last_token < $3`,
		[]Probe{{`SELECT pg_catalog.max(m.last_token) FROM metrics m WHERE id = $1 AND day = $2`, []int{1, 2}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM metrics m WHERE (id = $1 AND day = $2) AND m.last_token OPERATOR(pg_catalog.>) $3::bigint`, []int{1, 2, 0}}},
		[]found{{[]any{3, 2, tokenctx.Arg}, []any{int64(9)}, []int64{1}}, {[]any{3, 1, tokenctx.Arg}, []any{nil}, []int64{0}}},
	},
	"merge of values": {
		`MERGE INTO protected_rows AS t USING (VALUES ($1::bigint, $2::text), (3, 'c')) AS s(id, v) ON t.id = s.id AND t.grp = 0
			WHEN MATCHED AND t.last_token < $3 THEN UPDATE SET value = s.v, last_token = $3 WHEN NOT MATCHED THEN INSERT (id, value, last_token) VALUES (s.id, s.v, $3)`,
		[]Probe{{`SELECT pg_catalog.max(t.last_token) FROM protected_rows t WHERE EXISTS (SELECT FROM (VALUES ($1::bigint, $2::text), (3, 'c')) s(id, v) WHERE t.id = s.id AND t.grp = 0)`, []int{1, 2}}, {`SELECT pg_catalog.max(t.last_token) FROM protected_rows t WHERE EXISTS (SELECT FROM (VALUES ($1::bigint, $2::text), (3, 'c')) s(id, v) WHERE t.id = s.id)`, []int{1, 2}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM protected_rows t WHERE EXISTS (SELECT FROM (VALUES ($1::bigint, $2::text), (3, 'c')) s(id, v) WHERE (t.id = s.id AND t.grp = 0) AND t.last_token OPERATOR(pg_catalog.>) $3::bigint)`, []int{1, 2, 0}}},
		[]found{{[]any{1, "a", tokenctx.Arg}, []any{int64(9), int64(9)}, []int64{1}}, {[]any{99, "a", tokenctx.Arg}, []any{int64(9), int64(9)}, []int64{1}}},
	},
	"merge of one row": {
		`MERGE INTO public.metrics USING (SELECT $1::bigint AS id, $2::text::int AS day, $3::bigint AS tok) s ON metrics.id = s.id AND metrics.day = s.day WHEN MATCHED AND metrics.last_token < $3 THEN DELETE`,
		[]Probe{{`SELECT pg_catalog.max(metrics.last_token) FROM public.metrics WHERE EXISTS (SELECT FROM (SELECT $1::bigint AS id, $2::text::int AS day, $3::bigint AS tok) s WHERE metrics.id = s.id AND metrics.day = s.day)`, []int{1, 2, 3}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM public.metrics WHERE EXISTS (SELECT FROM (SELECT $1::bigint AS id, $2::text::int AS day, $3::bigint AS tok) s WHERE (metrics.id = s.id AND metrics.day = s.day) AND metrics.last_token OPERATOR(pg_catalog.>) $4::bigint)`, []int{1, 2, 3, 0}}},
		[]found{
			{[]any{1, "2", tokenctx.Arg}, []any{int64(7)}, []int64{0}},
			{[]any{2, "1", tokenctx.Arg}, []any{int64(8)}, []int64{0}},
			{[]any{3, "2", tokenctx.Arg}, []any{int64(9)}, []int64{1}},
			{[]any{99, "2", tokenctx.Arg}, []any{nil}, []int64{0}},
		},
	},
	"merge by the list's token": {
		`MERGE INTO "Order Items" USING (VALUES (1, -1, $1::bigint), (3, NULL, $1)) s(id, q, tok) ON s.id = "Order Items".id
			WHEN MATCHED AND "Order Items".id <> 2 AND "Order Items".fence < s.tok THEN UPDATE SET "Qty" = s.q, fence = s.tok`,
		[]Probe{{`SELECT pg_catalog.max("Order Items".fence) FROM "Order Items" WHERE EXISTS (SELECT FROM (VALUES (1, -1, $1::bigint), (3, NULL, $1)) s(id, q, tok) WHERE s.id = "Order Items".id AND "Order Items".id <> 2)`, []int{1}}, {`SELECT pg_catalog.max("Order Items".fence) FROM "Order Items" WHERE EXISTS (SELECT FROM (VALUES (1, -1, $1::bigint), (3, NULL, $1)) s(id, q, tok) WHERE s.id = "Order Items".id)`, []int{1}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM "Order Items" WHERE EXISTS (SELECT FROM (VALUES (1, -1, $1::bigint), (3, NULL, $1)) s(id, q, tok) WHERE s.id = "Order Items".id AND "Order Items".id <> 2 AND "Order Items".fence OPERATOR(pg_catalog.>) $2::bigint)`, []int{1, 0}}},
		[]found{{[]any{tokenctx.Arg}, []any{int64(9), int64(9)}, []int64{1}}},
	},
	"a list under a name": {
		`WITH _data (id, value, last_token) AS (VALUES (1::bigint, 'x'::text, $1::bigint), (-3::bigint, 'y', $1)) UPDATE protected_rows AS r SET value = _data.value, last_token = _data.last_token FROM _data WHERE r.id = abs(_data.id) AND r.last_token < _data.last_token`,
		[]Probe{{`WITH _data(id, value, last_token) AS (VALUES (1::bigint, 'x'::text, $1::bigint), (- 3::bigint, 'y', $1)) SELECT pg_catalog.max(r.last_token) FROM protected_rows r WHERE EXISTS (SELECT FROM _data WHERE r.id = abs(_data.id))`, []int{1}}},
		nil,
		[]found{{[]any{tokenctx.Arg}, []any{int64(9)}, []int64{}}},
	},
	"a list under a name, by key": {
		`WITH _data (id, value) AS (VALUES (1::bigint, 'x'::text), ($2, 'y')) UPDATE protected_rows AS r SET value = _data.value, last_token = $1 FROM _data WHERE (r.id = _data.id) AND r.last_token < $1`,
		[]Probe{{`WITH _data(id, value) AS (VALUES (1::bigint, 'x'::text), ($1, 'y')) SELECT pg_catalog.max(r.last_token) FROM protected_rows r WHERE EXISTS (SELECT FROM _data WHERE r.id = _data.id)`, []int{2}}},
		[]Probe{{`WITH _data(id, value) AS (VALUES (1::bigint, 'x'::text), ($2, 'y')) SELECT pg_catalog.count(*) FROM protected_rows r WHERE EXISTS (SELECT FROM _data WHERE r.id = _data.id AND r.last_token OPERATOR(pg_catalog.>) $1::bigint)`, []int{0, 2}}},
		[]found{
			{[]any{tokenctx.Arg, 2}, []any{int64(8)}, []int64{0}},
			{[]any{tokenctx.Arg, 3}, []any{int64(9)}, []int64{1}},
		},
	},
	"a list in USING": {
		`DELETE FROM protected_rows USING (VALUES (1), ($2::int)) v(id) WHERE protected_rows.id = v.id AND protected_rows.last_token < $1`,
		[]Probe{{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE EXISTS (SELECT FROM (VALUES (1), ($1::int)) v(id) WHERE protected_rows.id = v.id)`, []int{2}}},
		[]Probe{{`SELECT pg_catalog.count(*) FROM protected_rows WHERE EXISTS (SELECT FROM (VALUES (1), ($1::int)) v(id) WHERE protected_rows.id = v.id AND protected_rows.last_token OPERATOR(pg_catalog.>) $2::bigint)`, []int{2, 0}}},
		[]found{
			{[]any{tokenctx.Arg, 3}, []any{int64(9)}, []int64{1}},
			{[]any{tokenctx.Arg, 99}, []any{int64(7)}, []int64{0}},
		},
	},
	"upsert with another condition": {
		`INSERT INTO protected_rows (id, last_token) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET last_token = $2 WHERE protected_rows.last_token < $2 AND protected_rows.grp = 0`,
		[]Probe{{`SELECT pg_catalog.max(protected_rows.last_token) FROM protected_rows WHERE id = $1`, []int{1}}},
		nil,
		[]found{{[]any{3, tokenctx.Arg}, []any{int64(9)}, []int64{}}},
	},
}

func TestProbes(t *testing.T) {
	p := attestPolicy(t, Strict)
	for name, test := range lookedFor {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(test.sql)
			require.NoError(t, plan.Refusal())
			require.Equal(t, test.probes, plan.Probes())
			require.Equal(t, test.counts, plan.StaleCounts())
			require.True(t, plan.Compares())
			require.True(t, plan.Replays())
		})
	}
}

// A second look can't tell, or there is nothing to tell.
func TestNoProbes(t *testing.T) {
	p := attestPolicy(t, Strict)
	merge := func(source, on string) string {
		return `MERGE INTO protected_rows t USING ` + source + ` ON ` + on + ` WHEN MATCHED AND t.last_token < $1 THEN DELETE`
	}
	tests := map[string]string{
		"reads a table":           `DELETE FROM protected_rows p USING plain_rows s WHERE p.id = s.id AND p.last_token < $1`,
		"volatile":                `DELETE FROM protected_rows WHERE grp = random() AND last_token < $1`,
		"insert":                  `INSERT INTO protected_rows (id, last_token) VALUES (1, $1)`,
		"do nothing":              `INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT DO NOTHING`,
		"a partial index":         `INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT (id) WHERE id > 0 DO UPDATE SET last_token = $1 WHERE protected_rows.last_token < $1`,
		"select":                  `SELECT 1 FROM protected_rows`,
		"refused":                 `DELETE FROM protected_rows`,
		"merge of a table":        merge(`plain_rows s`, `t.id = s.id`),
		"merge of a query":        merge(`(SELECT id FROM plain_rows) s`, `t.id = s.id`),
		"merge of a call":         merge(`(SELECT random() AS id) s`, `t.id = s.id`),
		"merge of sorted values":  merge(`(VALUES (1), (2) LIMIT 1) s(id)`, `t.id = s.id`),
		"merge of a filtered row": merge(`(SELECT 1 AS id WHERE false) s`, `t.id = s.id`),
		"merge of a set":          merge(`(SELECT 1 AS id UNION SELECT 2) s`, `t.id = s.id`),
		"merge of nothing":        merge(`(SELECT) s`, `t.id = random()`),
		"merge of a with":         merge(`(WITH a AS (SELECT 1) SELECT 1 AS id) s`, `t.id = s.id`),
		"merge with":              `WITH a AS (SELECT 1) ` + merge(`(VALUES (1)) s(id)`, `t.id = s.id`),
		"merge on a sub-select":   merge(`(VALUES (1)) s(id)`, `t.id = (SELECT s.id)`),
		"merge on a volatile":     merge(`(VALUES (1)) s(id)`, `t.id = s.id AND random() < 1`),
		"merge that pins no key":  merge(`(VALUES (1)) s(id)`, `t.grp = s.id`),
		"merge of the key itself": merge(`(VALUES (1)) s(id)`, `t.id = t.id`),
		"merge on either":         merge(`(VALUES (1)) s(id)`, `t.id = s.id OR t.id = 2`),
		"merge on a bare name":    merge(`(VALUES (1)) s(x)`, `id = x`),
		"merge that inserts":      `MERGE INTO protected_rows t USING (VALUES (1)) s(id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, $1)`,
		"merge that does nothing": `MERGE INTO protected_rows t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN DO NOTHING`,
		"a list and a table":      `UPDATE protected_rows p SET last_token = $1 FROM (VALUES (1)) v(id), plain_rows s WHERE p.id = v.id AND p.last_token < $1`,
		"a list beside with":      `WITH s AS (SELECT 1) DELETE FROM protected_rows p USING (VALUES (1)) v(id) WHERE p.id = v.id AND p.last_token < $1`,
		"with and another":        `WITH a AS (VALUES (1)), b AS (SELECT 1) DELETE FROM protected_rows p USING a WHERE p.last_token < $1`,
		"with of a query":         `WITH a AS (SELECT id FROM plain_rows) DELETE FROM protected_rows p USING a WHERE p.id = a.id AND p.last_token < $1`,
		"a table beside with":     `WITH a AS (VALUES (1)) DELETE FROM protected_rows p USING public.a WHERE p.last_token < $1`,
		"a list of its name":      `WITH protected_rows (id, last_token) AS (VALUES (1, 99)) UPDATE protected_rows AS p SET last_token = $1 FROM protected_rows WHERE p.id = protected_rows.id AND p.last_token < $1`,
		"a list and a sub-select": `DELETE FROM protected_rows p USING (VALUES (1)) v(id) WHERE p.id = (SELECT v.id) AND p.last_token < $1`,
		"too long":                `DELETE FROM protected_rows WHERE value = '` + strings.Repeat("x", maxProbed) + `' AND last_token < $1`,
		"explained":               `EXPLAIN DELETE FROM protected_rows WHERE last_token < $1`,
	}
	for name, sql := range tests {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(sql)
			require.Equal(t, name == "refused", plan.Refusal() != nil, plan.Refusal())
			require.Empty(t, plan.Probes())
			require.Empty(t, plan.StaleCounts())
		})
	}
}

// The questions run with their arguments, and find the right rows before the
// write; after it, those that carry a newer token are the same.
func TestProbesOnServer(t *testing.T) {
	ctx := context.Background()
	conn := attestLab(t)
	_, err := conn.Exec(ctx, smallTokens)
	require.NoError(t, err)
	p := attestPolicy(t, Strict)
	for name, test := range lookedFor {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(test.sql)
			for _, f := range test.finds {
				args, err := bindAny(plan, 8, f.args)
				require.NoError(t, err)
				require.Equal(t, f.highest, askAll[any](t, conn, plan.Probes(), args), f.args)
				require.Equal(t, f.newer, askAll[int64](t, conn, plan.StaleCounts(), args), f.args)
				_, err = conn.Exec(ctx, `BEGIN`)
				require.NoError(t, err)
				require.NoError(t, send(ctx, conn, test.sql, args))
				require.Equal(t, f.newer, askAll[int64](t, conn, plan.StaleCounts(), args), f.args)
				_, err = conn.Exec(ctx, `ROLLBACK`)
				require.NoError(t, err)
			}
		})
	}
}

// askAll asks every question after a write with the given arguments.
func askAll[T any](t *testing.T, conn *pgx.Conn, probes []Probe, bound []any) []T {
	t.Helper()
	out := make([]T, len(probes))
	for i, p := range probes {
		args := []any{pgx.QueryExecModeDescribeExec}
		for _, n := range p.Args {
			if n == 0 {
				args = append(args, int64(8))
			} else {
				args = append(args, bound[n-1])
			}
		}
		require.NoError(t, conn.QueryRow(context.Background(), p.SQL, args...).Scan(&out[i]), p.SQL)
	}
	return out
}

func TestCompares(t *testing.T) {
	tests := map[string]struct {
		sql               string
		compares, replays bool // in lease mode
	}{
		"update":             {`UPDATE protected_rows SET last_token = $1 WHERE last_token <= $1`, true, false},
		"strict update":      {`UPDATE protected_rows SET last_token = $1 WHERE last_token < $1`, true, true},
		"delete":             {`DELETE FROM protected_rows WHERE last_token <= $1`, true, false},
		"delete, using":      {`DELETE FROM protected_rows p USING plain_rows s WHERE p.last_token < $1`, true, true},
		"upsert":             {`INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE protected_rows.last_token <= $1`, true, false},
		"insert":             {`INSERT INTO protected_rows (id, last_token) VALUES (1, $1)`, false, false},
		"do nothing":         {`INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT DO NOTHING`, false, false},
		"merge":              {`MERGE INTO protected_rows t USING plain_rows s ON t.id = s.id WHEN MATCHED AND t.last_token <= $1 THEN DELETE`, true, false},
		"merge, several":     {`MERGE INTO protected_rows t USING plain_rows s ON t.id = s.id WHEN MATCHED AND t.last_token <= $1 AND t.grp = 1 THEN DELETE WHEN MATCHED AND t.last_token < $1 THEN UPDATE SET last_token = $1`, true, true},
		"merge that inserts": {`MERGE INTO protected_rows t USING plain_rows s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (1, $1)`, false, false},
		"merge, unprotected": {`MERGE INTO plain_rows t USING protected_rows s ON t.id = s.id WHEN MATCHED AND t.last_token <= $1 THEN DELETE`, false, false},
		"delete in with":     {`WITH d AS (DELETE FROM protected_rows WHERE last_token < $1 RETURNING id) SELECT * FROM d`, false, false},
		"insert, with":       {`WITH d AS (DELETE FROM protected_rows WHERE last_token < $1 RETURNING id) INSERT INTO protected_rows (id, last_token) SELECT id + 100, $1 FROM d`, false, false},
		"update, with":       {`WITH d AS (DELETE FROM protected_rows WHERE last_token < $1 RETURNING id) UPDATE protected_rows SET last_token = $1 WHERE last_token <= $1`, true, false},
		"explained":          {`EXPLAIN DELETE FROM protected_rows WHERE last_token < $1`, false, false},
		"unprotected":        {`DELETE FROM plain_rows WHERE last_token < $1`, false, false},
		"select":             {`SELECT * FROM protected_rows`, false, false},
		"refused":            {`DELETE FROM protected_rows`, false, false},
	}
	p := attestPolicy(t, Lease)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(test.sql)
			require.Equal(t, name == "refused", plan.Refusal() != nil, plan.Refusal())
			require.Equal(t, test.compares, plan.Compares())
			require.Equal(t, test.replays, plan.Replays())
		})
	}
}

// Each table can have its token found in its own way.
func TestBindWith(t *testing.T) {
	plan := attestPolicy(t, Strict).Plan(`WITH d AS (DELETE FROM "Order Items" WHERE fence < $1) DELETE FROM protected_rows WHERE id = $3 AND last_token < $2`)
	args := named(tokenctx.Arg, tokenctx.Arg, int64(5))
	bound, err := plan.BindWith(func(table *Table) (tokenctx.Token, bool) {
		return map[string]tokenctx.Token{"orders/EU": 7, "": 8}[table.Resource], true
	}, args)
	require.NoError(t, err)
	require.Equal(t, named(int64(7), int64(8), int64(5)), bound)
	require.Equal(t, named(tokenctx.Arg, tokenctx.Arg, int64(5)), args)

	_, err = plan.BindWith(func(table *Table) (tokenctx.Token, bool) { return 8, table.Resource == "" }, args)
	var v *Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, NoToken, v.Rule)
}
