package check

import (
	"context"
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestSettingName(t *testing.T) {
	long := strings.Repeat("r", 57)
	tests := map[string]string{
		"":            "fencing.token",
		"orders":      "fencing.token_orders",
		"orders_eu_7": "fencing.token_orders_eu_7",
		"Orders":      "fencing.token_$4frders",
		"orders/EU":   "fencing.token_orders$2f$45$55",
		"$m":          "fencing.token_$24m",
		"$2f":         "fencing.token_$242f",
		"/":           "fencing.token_$2f",
		"é":           "fencing.token_$c3$a9",
		"a'b":         "fencing.token_a$27b",
		"\n":          "fencing.token_$0a",
		long:          "fencing.token_" + long,
		long + "r":    "fencing.token_$m95f6cf763b780763bba8e32b4342c749a5dc0b84",
	}
	for resource, want := range tests {
		require.Equal(t, want, SettingName(resource))
	}
}

func TestSettingNameIsInjective(t *testing.T) {
	resource := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA$m2f/_]{0,40}`), rapid.StringMatching(`\$m[0-9a-f]{40}`))
	valid := regexp.MustCompile(`^fencing\.[a-z_][a-z0-9_$]{0,62}$`)
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		r := resource.Draw(t, "resource")
		name := SettingName(r)
		if !valid.MatchString(name) {
			t.Fatalf("%q has the setting %q", r, name)
		}
		if other, ok := seen[name]; ok && other != r {
			t.Fatalf("%q and %q share the setting %q", r, other, name)
		}
		seen[name] = r
	})
}

// attestPolicy protects tables of several resources.
func attestPolicy(t testing.TB, mode Mode) *Policy {
	t.Helper()
	p, err := NewPolicy(
		Table{Name: "protected_rows", Mode: mode, Key: []string{"id"}},
		Table{Name: "Order Items", TokenColumn: "fence", Mode: mode, Resource: "orders/EU", Key: []string{"id"}},
		Table{Name: "metrics", Mode: mode, Resource: "m", Key: []string{"id", "day"}},
	)
	require.NoError(t, err)
	metrics, rows := Name{"public", "metrics"}, Name{"public", "protected_rows"}
	p, err = p.WithClosure(Closure{
		Relatives: []Relative{{Name{"public", "metrics_1"}, metrics}, {Name{"public", "metrics_2"}, metrics}, {Name{"public", "rows_inh"}, rows}},
		Views:     []Name{{"public", "v_rows"}, {"public", "v_shadow"}},
		Functions: []Name{{"public", "bump_row"}, {"public", "bump_proc"}},
	})
	require.NoError(t, err)
	return p.ForPath("postgres", "public")
}

// attestMark is where a call is expected: {$2} for the default resource,
// {orders/EU:$2} for another.
var attestMark = regexp.MustCompile(`\{(?:([^{}:]+):)?([^{}:]+)\}`)

// countMark is where a text is expected that counts the rows of a write in WITH.
var countMark = regexp.MustCompile(`<\+(.*?)\+>`)

func unmarked(marked string) (sql, attested string) {
	attested = attestMark.ReplaceAllStringFunc(countMark.ReplaceAllString(marked, "$1"), func(mark string) string {
		parts := attestMark.FindStringSubmatch(mark)
		token := parts[2]
		if token[0] == '$' {
			token += "::pg_catalog.int8::pg_catalog.text"
		}
		return " AND pg_catalog.set_config('" + SettingName(parts[1]) + "', " + token + ", true) IS NOT NULL"
	})
	return attestMark.ReplaceAllString(countMark.ReplaceAllString(marked, ""), ""), attested
}

// attested are texts with marks, and arguments under which they run.
var attested = map[string]struct {
	marked string
	args   []any
}{
	"plain":             {`DELETE FROM protected_rows WHERE id = $1 AND last_token < $2{$2}`, []any{1, tokenctx.Arg}},
	"only the guard":    {`DELETE FROM protected_rows WHERE last_token < $1{$1}`, []any{tokenctx.Arg}},
	"reused":            {`DELETE FROM protected_rows WHERE last_token < $1 AND id = $2{$1}`, []any{tokenctx.Arg, 1}},
	"schema":            {`DELETE FROM public.protected_rows WHERE public.protected_rows.last_token < $1{$1}`, []any{tokenctx.Arg}},
	"alias":             {`DELETE FROM protected_rows AS p WHERE p.last_token < $2 AND p.id = ANY (ARRAY[$1::bigint]){$2}`, []any{1, tokenctx.Arg}},
	"only":              {`DELETE FROM ONLY protected_rows WHERE last_token < $1{$1}`, []any{tokenctx.Arg}},
	"quoted":            {`delete from "Order Items" where "Order Items"."fence" < $1{orders/EU:$1}`, []any{tokenctx.Arg}},
	"unicode name":      {`DELETE FROM U&"protected\005frows" WHERE U&"last\005ftoken" < $1{$1}`, []any{tokenctx.Arg}},
	"line comment":      {"DELETE FROM protected_rows WHERE last_token < $1{$1} -- the rest", []any{tokenctx.Arg}},
	"comment inside":    {"DELETE FROM protected_rows -- WHERE\n WHERE /* a */ last_token < $1 -- AND\n AND id = 1{$1} /* b; */ -- c\n", []any{tokenctx.Arg}},
	"returning":         {`DELETE FROM protected_rows WHERE last_token < $1{$1} RETURNING id, value AS "where"`, []any{tokenctx.Arg}},
	"comment, returned": {"DELETE FROM protected_rows WHERE last_token < $1{$1}/* a */RETURNING(id)", []any{tokenctx.Arg}},
	"using":             {`DELETE FROM protected_rows p USING plain_rows s JOIN jobs j ON j.id = s.id WHERE s.id = p.id AND p.last_token < $1{$1}`, []any{tokenctx.Arg}},
	"semicolon":         {`DELETE FROM protected_rows WHERE last_token < $1 AND value = 'a;b' OR false AND id = 2;`, nil},
	"semicolon, space":  {`DELETE FROM protected_rows WHERE last_token < $1 AND value <> 'a;b'{$1} ; `, []any{tokenctx.Arg}},
	"parentheses":       {`DELETE FROM protected_rows WHERE (id = $1 AND last_token < $2){$2}`, []any{1, tokenctx.Arg}},
	"nested":            {`DELETE FROM protected_rows WHERE (id = $1 OR value = 'row') AND (last_token < $2 AND (grp = 0 OR grp = 1)){$2}`, []any{1, tokenctx.Arg}},
	"literal":           {`DELETE FROM protected_rows WHERE last_token < 8{'8'}`, nil},
	"literal and arg":   {`DELETE FROM protected_rows WHERE last_token < 8 AND last_token < $1{'8'}`, []any{tokenctx.Arg}},
	"cast":              {`DELETE FROM protected_rows WHERE id = $1 AND last_token < $2::bigint{$2}`, []any{1, tokenctx.Arg}},
	"cast to int":       {`DELETE FROM protected_rows WHERE last_token < CAST($1 AS int){$1}`, []any{tokenctx.Arg}},
	"reversed":          {`DELETE FROM protected_rows WHERE $2 > last_token AND id = $1{$2}`, []any{1, tokenctx.Arg}},
	"between":           {`DELETE FROM protected_rows WHERE last_token < $1 AND id BETWEEN 1 AND 3{$1}`, []any{tokenctx.Arg}},
	"case":              {`DELETE FROM protected_rows WHERE last_token < $1 AND CASE WHEN id = 1 THEN true ELSE false END{$1}`, []any{tokenctx.Arg}},
	"not":               {`DELETE FROM protected_rows WHERE last_token < $1 AND NOT id = 3{$1}`, []any{tokenctx.Arg}},
	"is null":           {`DELETE FROM protected_rows WHERE last_token < $1 AND value IS NOT NULL{$1}`, []any{tokenctx.Arg}},
	"sub-select":        {`DELETE FROM protected_rows WHERE last_token < $1 AND id IN (SELECT id FROM jobs WHERE kind = 'row'){$1}`, []any{tokenctx.Arg}},
	"string of parts":   {"DELETE FROM protected_rows WHERE last_token < $1 AND value = 'r'\n'ow'{$1}", []any{tokenctx.Arg}},
	"dollars":           {"DELETE FROM protected_rows WHERE last_token < $1 AND value = $a$row$a${$1}", []any{tokenctx.Arg}},
	"key word as field": {`DELETE FROM protected_rows d USING (SELECT true AS returning) x WHERE d.last_token < $1 AND x.returning{$1}`, []any{tokenctx.Arg}},
	"archive": {`WITH d AS (DELETE FROM protected_rows WHERE id = $1 AND last_token < $2{$2} RETURNING *) INSERT INTO plain_rows (id, value) SELECT id + 100, value FROM d<+ RETURNING (SELECT pg_catalog.count(*) FROM d) AS fencerow_count_1+>`,
		[]any{1, tokenctx.Arg}},
	"two resources": {`WITH d AS (DELETE FROM "Order Items" WHERE fence < $1{orders/EU:$1} RETURNING id) DELETE FROM protected_rows p USING d WHERE p.id = d.id AND p.last_token < $2{$2} RETURNING p.id<+, (SELECT pg_catalog.count(*) FROM d) AS fencerow_count_1+>`,
		[]any{tokenctx.Arg, tokenctx.Arg}},
	"delete and update": {`WITH d AS (DELETE FROM metrics WHERE last_token < $1{m:$1} RETURNING id) UPDATE protected_rows SET value = 'x', last_token = $1 WHERE id = $2 AND last_token < $1<+ RETURNING (SELECT pg_catalog.count(*) FROM d) AS fencerow_count_1+>`,
		[]any{tokenctx.Arg, 1}},
	"unprotected beside": {`WITH d AS (DELETE FROM plain_rows WHERE last_token < 3 RETURNING id), e AS (DELETE FROM protected_rows WHERE last_token < $1{$1}<+ RETURNING 1+>) SELECT *<+, (SELECT pg_catalog.count(*) FROM e) AS fencerow_count_1+> FROM d`,
		[]any{tokenctx.Arg}},
	"values":          {`DELETE FROM protected_rows p USING (VALUES (1, $1::bigint), (2, $1)) v(id, tok) WHERE p.id = v.id AND p.last_token < v.tok{$1}`, []any{tokenctx.Arg}},
	"values in with":  {`WITH v(id, tok) AS (VALUES (1, 8), (4, 8)) DELETE FROM protected_rows p USING v WHERE p.id = v.id AND p.last_token < v.tok{'8'}`, nil},
	"values or token": {`DELETE FROM protected_rows p USING (VALUES (1, $1::bigint), (2, 8)) v(id, tok) WHERE p.id = v.id AND p.last_token < v.tok AND p.last_token < $1{$1}`, []any{tokenctx.Arg}},
	"explain":         {`EXPLAIN ANALYZE DELETE FROM protected_rows WHERE last_token < $1{$1}`, []any{tokenctx.Arg}},
	"merge":           {`MERGE INTO protected_rows t USING (VALUES ($1::bigint)) s(id) ON t.id = s.id WHEN MATCHED AND t.last_token < $2{$2} THEN DELETE`, []any{1, tokenctx.Arg}},
	"merge, comments": {"MERGE INTO protected_rows t USING plain_rows s ON t.id = s.id AND CASE WHEN s.id = 1 THEN true ELSE false END WHEN MATCHED AND t.last_token < $1 AND s.id = CASE WHEN s.id > 0 THEN s.id END{$1} -- THEN\n THEN DELETE;", []any{tokenctx.Arg}},
	"merge, actions": {`MERGE INTO protected_rows AS t USING (SELECT $1::bigint AS id, $2::bigint AS tok) s ON t.id = s.id
		WHEN MATCHED AND t.grp = 7 AND t.last_token < $2 THEN UPDATE SET value = CASE WHEN s.id = 1 THEN 'a' ELSE 'b' END, last_token = $2
		WHEN MATCHED AND ($2 > t.last_token AND (t.grp = 1 OR t.id = 1)){$2} THEN DELETE WHEN MATCHED THEN DO NOTHING
		WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, $2)`, []any{1, tokenctx.Arg}},
	"merge, key words as fields": {`MERGE INTO protected_rows t USING (SELECT 1 AS id, true AS case, true AS then, true AS end) s ON t.id = s.id AND s.case AND s.then WHEN MATCHED AND t.last_token < $1 AND s.end{$1} THEN DELETE`,
		[]any{tokenctx.Arg}},
	"merge, values": {`MERGE INTO "Order Items" t USING (VALUES (1, $1::bigint), (4, $1)) s(id, tok) ON t.id = s.id WHEN MATCHED AND t.fence < s.tok{orders/EU:$1} THEN DELETE`, []any{tokenctx.Arg}},

	// what stays as it is
	"update":      {`UPDATE protected_rows SET value = 'x', last_token = $1 WHERE id = 1 AND last_token < $1`, []any{tokenctx.Arg}},
	"insert":      {`INSERT INTO protected_rows (id, last_token) VALUES (9, $1)`, []any{tokenctx.Arg}},
	"select":      {`SELECT * FROM protected_rows WHERE last_token < $1`, []any{int64(8)}},
	"unprotected": {`DELETE FROM plain_rows WHERE last_token < $1`, []any{int64(8)}},
	"no table":    {`SELECT 1`, nil},
	"refused":     {`DELETE FROM protected_rows WHERE id = 1`, nil},
	"not SQL":     {`DELETE FROM protected_rows WHERE`, nil},
	"two tokens":  {`DELETE FROM protected_rows p USING (VALUES (1, $1::bigint), (2, 8)) v(id, tok) WHERE p.id = v.id AND p.last_token < v.tok`, []any{tokenctx.Arg}},
}

func TestAttested(t *testing.T) {
	p := attestPolicy(t, Strict)
	for name, test := range attested {
		t.Run(name, func(t *testing.T) {
			sql, want := unmarked(test.marked)
			plan := p.Plan(sql)
			require.Equal(t, want, plan.Attested())
			require.Equal(t, want, plan.Attested())
			if want != sql {
				require.NoError(t, plan.Refusal())
			}
		})
	}
}

// One name that stands for tables of different resources has no one setting.
func TestAttestedUnderAnyPath(t *testing.T) {
	sql, want := unmarked(`DELETE FROM jobs WHERE last_token < $1{a:$1}`)
	alike, err := NewPolicy(Table{Name: "jobs", Mode: Strict, Resource: "a"}, Table{Schema: "app", Name: "jobs", Mode: Strict, Resource: "a"})
	require.NoError(t, err)
	plan := alike.Plan(sql)
	require.NoError(t, plan.Refusal())
	require.Equal(t, want, plan.Attested())
	unlike, err := NewPolicy(Table{Name: "jobs", Mode: Strict, Resource: "a"}, Table{Schema: "app", Name: "jobs", Mode: Strict, Resource: "b"})
	require.NoError(t, err)
	requireRule(t, AmbiguousName, unlike.Plan(sql).Refusal(), sql)
	require.NoError(t, unlike.Plan(`DELETE FROM app.jobs WHERE last_token < $1`).Refusal())
}

// The comparison is qualified beside the setting, also where it is the whole
// condition.
func TestAttestedAndQualified(t *testing.T) {
	p := casesPolicy(t, Strict)
	for _, sql := range []string{
		`DELETE FROM protected_rows WHERE last_token < $1`,
		`MERGE INTO protected_rows r USING jobs j ON j.id = r.id WHEN MATCHED AND r.last_token < $1 THEN DELETE`,
	} {
		sent := p.Plan(sql).Attested()
		require.Contains(t, sent, "last_token OPERATOR(pg_catalog.<) $1")
		require.Contains(t, sent, "set_config('fencing.token'")
	}
}

// A text is attested whatever its length, unless the result could not be read.
func TestAttestedLongTexts(t *testing.T) {
	p := attestPolicy(t, Strict)
	head, tail := `DELETE FROM protected_rows WHERE id IN (1`, `) AND last_token < $1`
	sql, want := unmarked(head + strings.Repeat(", 2", 3*maxFixed) + tail + `{$1}`)
	require.Equal(t, want, p.Plan(sql).Attested())

	sql = head + strings.Repeat(" ", sqltext.MaxLength-len(head)-len(tail)) + tail
	plan := p.Plan(sql)
	require.NoError(t, plan.Refusal())
	require.Equal(t, sql, plan.Attested())
}

// What isn't the text with the calls alone is not sent.
func TestAddsOnly(t *testing.T) {
	const sql = `WITH d AS (DELETE FROM metrics WHERE last_token < 8) DELETE FROM protected_rows WHERE id = 1 AND last_token < 8`
	plan := attestPolicy(t, Strict).Plan(sql)
	require.NoError(t, plan.Refusal())
	m, token := "pg_catalog.set_config('fencing.token_m', '8', true) IS NOT NULL", "pg_catalog.set_config('fencing.token', '8', true) IS NOT NULL"
	right := `WITH d AS (DELETE FROM metrics WHERE last_token < 8 AND ` + m + `) DELETE FROM protected_rows WHERE id = 1 AND last_token < 8 AND ` + token
	counted := strings.Replace(right, m+")", m+" RETURNING 1)", 1) + " RETURNING (SELECT pg_catalog.count(*) FROM d) AS fencerow_count_1"
	require.Equal(t, counted, plan.Attested())
	wrong := map[string]string{
		"none":            sql,
		"one is missing":  strings.Replace(right, " AND "+m, "", 1),
		"one too many":    right + " AND " + token,
		"changed places":  strings.NewReplacer(m, token, token, m).Replace(right),
		"another token":   strings.Replace(right, "'8'", "'9'", 1),
		"not the last":    strings.Replace(right, "id = 1 AND last_token < 8 AND "+token, "id = 1 AND "+token+" AND last_token < 8", 1),
		"not a member":    strings.Replace(right, "8 AND "+token, "8 AND NOT "+token, 1),
		"an alternative":  strings.Replace(right, "8 AND "+token, "8 OR "+token, 1),
		"a wider one":     strings.Replace(right, "id = 1 AND ", "", 1),
		"another literal": strings.Replace(right, "id = 1", "id = 2", 1),
		"a function":      strings.ReplaceAll(right, "pg_catalog.set_config", "set_config"),
		"returning":       right + " RETURNING id",
		"a count":         counted,
		"a statement":     right + "; SELECT 1",
		"not SQL":         right + " AND",
		"a NUL byte":      right + "\x00",
	}
	proof := plan.proof()
	g, ok := callGrowth(proof.settingCalls())
	require.True(t, ok)
	require.True(t, g.proves(proof.root, right))
	for name, text := range wrong {
		require.False(t, g.proves(proof.root, text), name)
	}
}

// deleteTriggers note the token that each deleted row's trigger finds.
const deleteTriggers = `
	CREATE TABLE public.seen (tab text, id bigint, token text);
	CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.seen VALUES (TG_TABLE_NAME, OLD.id, pg_catalog.current_setting(TG_ARGV[0], true));
		RETURN OLD;
	END $$;
	CREATE TRIGGER see BEFORE DELETE ON protected_rows FOR EACH ROW EXECUTE FUNCTION public.see('fencing.token');
	CREATE TRIGGER see BEFORE DELETE ON rows_inh FOR EACH ROW EXECUTE FUNCTION public.see('fencing.token');
	CREATE TRIGGER see BEFORE DELETE ON "Order Items" FOR EACH ROW EXECUTE FUNCTION public.see('fencing.token_orders$2f$45$55');
	CREATE TRIGGER see BEFORE DELETE ON metrics FOR EACH ROW EXECUTE FUNCTION public.see('fencing.token_m');`

// smallTokens are older than 8, equal and newer.
const smallTokens = `
	UPDATE protected_rows SET last_token = (ARRAY[7, 8, 9, 0])[id % 10]; UPDATE "Order Items" SET fence = (ARRAY[7, 8, 9, 0])[id];
	UPDATE metrics SET last_token = (ARRAY[7, 8, 9, 0])[id];`

// deleted runs a text, takes it back, and returns the rows that it leaves and
// what the triggers have seen.
func deleted(t require.TestingT, conn *pgx.Conn, sql string, args []any) (left rowSet, seen []string, failed error) {
	ctx := context.Background()
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	if err := send(ctx, conn, sql, args); err != nil {
		return nil, nil, err
	}
	rows, err := conn.Query(ctx, `SELECT concat_ws(' ', tab, coalesce(nullif(token, ''), 'none')) FROM public.seen ORDER BY tab, id, token`)
	require.NoError(t, err)
	seen, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	left, err = readRows(ctx, conn)
	require.NoError(t, err)
	return left, seen, nil
}

func attestLab(t *testing.T) *pgx.Conn {
	l := &lab{dsn: localpg.Database(t, casesTemplate)}
	conn := l.connect(t)
	_, err := conn.Exec(context.Background(), deleteTriggers)
	require.NoError(t, err)
	return conn
}

func named(args ...any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

func bindAny(p *Plan, token tokenctx.Token, args []any) ([]any, error) {
	bound, err := p.Bind(token, named(args...))
	out := make([]any, len(bound))
	for i, a := range bound {
		out[i] = a.Value
	}
	return out, err
}

// The triggers find the token of each row, and the attested text deletes what
// the text itself deletes.
func TestAttestedOnServer(t *testing.T) {
	conn := attestLab(t)
	p := attestPolicy(t, Strict)
	_, err := conn.Exec(context.Background(), smallTokens)
	require.NoError(t, err)
	before, err := readRows(context.Background(), conn)
	require.NoError(t, err)
	for name, test := range attested {
		sql, want := unmarked(test.marked)
		if sql == want {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args, err := bindAny(p.Plan(sql), 8, test.args)
			require.NoError(t, err)
			left, without, err := deleted(t, conn, sql, args)
			require.NoError(t, err)
			leftToo, with, err := deleted(t, conn, p.Plan(sql).Attested(), args)
			require.NoError(t, err)
			require.Equal(t, left, leftToo)
			require.True(t, differs(before, left), "it deletes nothing")
			require.NotEmpty(t, with)
			require.Len(t, with, len(without))
			for i := range with {
				require.Equal(t, strings.TrimSuffix(without[i], "none")+"8", with[i])
			}
		})
	}
}

// TestAttestedDifferential runs generated texts both ways.
func TestAttestedDifferential(t *testing.T) {
	conn := attestLab(t)
	policies := map[Mode]*Policy{Strict: attestPolicy(t, Strict), Lease: attestPolicy(t, Lease)}
	ran, deletedRows, same := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := trim(genDelete.Draw(t, "statement"))
		plan := policies[s.mode].Plan(s.sql)
		args, err := bindAny(plan, genToken, s.args)
		if err != nil {
			return
		}
		text := plan.Attested()
		if text == s.sql {
			if len(plan.proof().settingCalls()) > 0 {
				t.Fatalf("not attested: %s", s)
			}
			same++
			return
		}
		left, _, err := deleted(t, conn, s.sql, args)
		leftToo, seen, errToo := deleted(t, conn, text, args)
		if (err == nil) != (errToo == nil) {
			t.Fatalf("%v, and attested %v\n%s\n%s", err, errToo, s, text)
		}
		if err != nil {
			return
		}
		ran++
		deletedRows += len(seen)
		require.Equal(t, left, leftToo, "%s\n%s", s, text)
		for _, token := range seen {
			if len(plan.proof().settingCalls()) == len(plan.proof().changes) && !strings.HasSuffix(token, fmt.Sprint(" ", genToken)) {
				t.Fatalf("a trigger saw %q: %s\n%s", token, s, text)
			}
		}
	})
	t.Logf("attested and run %d, with %d rows deleted; not attested %d", ran, deletedRows, same)
	require.NotZero(t, deletedRows)
}

// genDelete generates statements that delete, most of them guarded.
var genDelete = rapid.Custom(func(t *rapid.T) generated {
	return genStatement.Filter(func(s generated) bool {
		return strings.Contains(strings.ToUpper(s.sql), "DELETE") && strings.Contains(s.sql, "<")
	}).Draw(t, "delete")
})

// A text whose comparisons are qualified by its first tree alone is the one that a
// second tree would prove.
func TestQualifiedWithoutASecondTree(t *testing.T) {
	tried := 0
	for _, mode := range []Mode{Strict, Lease} {
		p := casesPolicy(t, mode)
		for _, sql := range []string{
			`UPDATE protected_rows SET value = $1, last_token = $2 WHERE id = $3 AND last_token < $2`,
			`UPDATE protected_rows SET last_token = $2 WHERE last_token<$2 AND (id = 1 OR id BETWEEN 2 AND 3) AND NOT value = 'x'`,
			`UPDATE protected_rows AS "ü" SET last_token = $2 WHERE 'ü' <> 'x' AND $2>"ü".last_token`,
			`UPDATE protected_rows SET last_token = $2 WHERE id BETWEEN 1 AND 2 AND $2::bigint>last_token AND last_token < $2::integer`,
			`UPDATE protected_rows SET last_token = CAST($2 AS bigint) WHERE last_token </* a */CAST($2 AS bigint)`,
			`UPDATE protected_rows SET last_token = $2 WHERE (((last_token)) < (($2))) -- end`,
			`DELETE FROM protected_rows p USING jobs j WHERE p.id = j.id AND p.last_token < 8 RETURNING *`,
			`INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET last_token = EXCLUDED.last_token WHERE protected_rows.last_token < EXCLUDED.last_token`,
			`MERGE INTO protected_rows p USING jobs j ON p.id = j.id WHEN MATCHED AND p.last_token < $1 THEN UPDATE SET last_token = $1`,
			`WITH w AS (UPDATE protected_rows SET last_token = $1 WHERE last_token < $1 RETURNING id) DELETE FROM "Order Items" WHERE fence<$1`,
		} {
			plan := p.Plan(sql)
			require.NoError(t, plan.Refusal(), sql)
			proof := plan.proof()
			text, ok := qualified(proof.text, proof.bare)
			require.True(t, ok, sql)
			proved, _, ok := proof.sentWith(nil, false)
			require.True(t, ok, sql)
			require.Equal(t, proved, text)
			require.NotEqual(t, sql, text)
			tried++
		}
	}
	require.Equal(t, 20, tried)
}
