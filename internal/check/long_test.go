package check

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// listOfRows repeats a row, "#" in which is the number of a placeholder that no
// other has.
func listOfRows(n int, row string) string {
	var b strings.Builder
	number := 0
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		for _, c := range row {
			if c == '#' {
				number++
				fmt.Fprint(&b, number)
			} else {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}

// longTextRows is how many rows they have: enough for a text to be abridged.
const longTextRows = 1000

// ownPlaceholder is the one after those of the rows.
var ownPlaceholder = "$" + strconv.Itoa(longTextRows+1)

// longTexts are bare texts, with the same guarded by hand. "#" in a row is a number.
var longTexts = map[string]struct{ bare, hand string }{
	"rows":               {`INSERT INTO orders (id) VALUES ` + listOfRows(longTextRows, `(1)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(1, $1)`)},
	"rows of many":       {`INSERT INTO orders (id, b, c, d, e, f) VALUES ` + listOfRows(longTextRows, `(1, 2, 3, 'x', NULL, DEFAULT)`), `INSERT INTO orders (id, b, c, d, e, f, last_token) VALUES ` + listOfRows(longTextRows, `(1, 2, 3, 'x', NULL, DEFAULT, $1)`)},
	"nested":             {`INSERT INTO orders (id, b) VALUES ` + listOfRows(longTextRows, `((1 + 2) * 3, coalesce('a' || lower('b,)('), (SELECT 1)))`), `INSERT INTO orders (id, b, last_token) VALUES ` + listOfRows(longTextRows, `((1 + 2) * 3, coalesce('a' || lower('b,)('), (SELECT 1)), $1)`)},
	"placeholders":       {`INSERT INTO orders (id, b) VALUES ` + listOfRows(longTextRows, `($#, $#)`), `INSERT INTO orders (id, b, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#, $`+strconv.Itoa(2*longTextRows+1)+`)`)},
	"comments":           {`INSERT INTO orders (id) VALUES ` + listOfRows(longTextRows, "(1 /* , ) */ -- (\n)"), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, "(1, $1 /* , ) */ -- (\n)")},
	"upsert":             {`INSERT INTO orders (id, b) VALUES ` + listOfRows(longTextRows, `(1, 'abc')`) + ` ON CONFLICT (id) DO UPDATE SET b = EXCLUDED.b RETURNING id`, `INSERT INTO orders (id, b, last_token) VALUES ` + listOfRows(longTextRows, `(1, 'abc', $1)`) + ` ON CONFLICT (id) DO UPDATE SET b = EXCLUDED.b, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token RETURNING id`},
	"token zero":         {`INSERT INTO orders (last_token, id) VALUES ` + listOfRows(longTextRows, `(0, 1)`), `INSERT INTO orders (last_token, id) VALUES ` + listOfRows(longTextRows, `($1, 1)`)},
	"token default":      {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(f(1, 2), DEFAULT)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(f(1, 2), $1)`)},
	"tokens":             {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#)`)},
	"tokens, upsert":     {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::bigint)`) + ` ON CONFLICT (id) DO UPDATE SET id = 1`, `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::bigint)`) + ` ON CONFLICT (id) DO UPDATE SET id = 1, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`},
	"tokens as text":     {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::text)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#)`)},
	"tokens as int":      {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::int)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::int)`)},
	"tokens as int8":     {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#::int8)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `($#, $#)`)},
	"one token":          {`INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(1, $1)`), `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(1, $1)`)},
	"in WITH":            {`WITH w AS (INSERT INTO orders (id) VALUES ` + listOfRows(longTextRows, `(1)`) + ` RETURNING id) SELECT count(*) FROM w`, `WITH w AS (INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(1, $1)`) + ` RETURNING id) SELECT count(*) FROM w`},
	"SELECT, list":       {`INSERT INTO orders (id) SELECT id FROM jobs WHERE id IN (` + listOfRows(2500, `123`) + `)`, `INSERT INTO orders (id, last_token) SELECT id, $1::bigint FROM jobs WHERE id IN (` + listOfRows(2500, `123`) + `)`},
	"SELECT, VALUES":     {`INSERT INTO orders (id) SELECT v.id FROM (VALUES ` + listOfRows(longTextRows, `(1, 2)`) + `) v(id, b)`, `INSERT INTO orders (id, last_token) SELECT v.id, $1::bigint FROM (VALUES ` + listOfRows(longTextRows, `(1, 2)`) + `) v(id, b)`},
	"SELECT, WITH":       {`WITH v(id) AS (VALUES ` + listOfRows(longTextRows, `(1)`) + `) INSERT INTO orders (id) SELECT id FROM v`, `WITH v(id) AS (VALUES ` + listOfRows(longTextRows, `(1)`) + `) INSERT INTO orders (id, last_token) SELECT id, $1::bigint FROM v`},
	"UPDATE FROM VALUES": {`UPDATE orders SET b = v.b FROM (VALUES ` + listOfRows(longTextRows, `($#::int, 'x')`) + `) v(id, b) WHERE orders.id = v.id`, `UPDATE orders SET b = v.b, last_token = ` + ownPlaceholder + ` FROM (VALUES ` + listOfRows(longTextRows, `($#::int, 'x')`) + `) v(id, b) WHERE orders.id = v.id AND orders.last_token <= ` + ownPlaceholder},
	"UPDATE IN":          {`UPDATE orders SET b = 1 WHERE id IN (` + listOfRows(2500, `$#`) + `) AND c IN (1, 2)`, `UPDATE orders SET b = 1, last_token = $2501 WHERE id IN (` + listOfRows(2500, `$#`) + `) AND c IN (1, 2) AND last_token <= $2501`},
	"UPDATE ARRAY":       {`UPDATE orders SET b = 1 WHERE id = ANY (ARRAY[` + listOfRows(2500, `-12.5e3`) + `])`, `UPDATE orders SET b = 1, last_token = $1 WHERE id = ANY (ARRAY[` + listOfRows(2500, `-12.5e3`) + `]) AND last_token <= $1`},
	"DELETE tuples":      {`DELETE FROM orders WHERE (id, b) IN (` + listOfRows(longTextRows, `(1, 'it''s')`) + `) OR id IN (` + listOfRows(2500, `'x'`) + `)`, `DELETE FROM orders WHERE ((id, b) IN (` + listOfRows(longTextRows, `(1, 'it''s')`) + `) OR id IN (` + listOfRows(2500, `'x'`) + `)) AND last_token <= $1`},
	"a long string":      {`INSERT INTO orders (id, b) VALUES (1, '` + strings.Repeat("(x,'' ", 20000) + `')`, `INSERT INTO orders (id, b, last_token) VALUES (1, '` + strings.Repeat("(x,'' ", 20000) + `', $1)`},
}

func longPolicies(t testing.TB) (rewriting, plain *Policy) {
	t.Helper()
	rewriting, err := NewPolicy(Table{Name: "orders", Mode: Lease, Rewrite: true})
	require.NoError(t, err)
	plain, err = NewPolicy(Table{Name: "orders", Mode: Lease})
	require.NoError(t, err)
	return rewriting, plain
}

// A text that is guarded by its abridged form is made into what it is made into as
// a whole.
func TestLongTextsAreRewrittenAlike(t *testing.T) {
	p, plain := longPolicies(t)
	for name, text := range longTexts {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(text.bare)
			require.NoError(t, plan.Refusal())
			require.True(t, plan.Rewritten() || name == "one token")
			require.Equal(t, text.hand, plan.Text())
			require.Equal(t, text.bare, plan.Given())
			require.NoError(t, plain.fullPlan(plan.Text()).Refusal())

			a := new(workspace)
			whole := p.rewritten(p.planIn(a, text.bare), &a.checker)
			require.NotNil(t, whole)
			require.Equal(t, whole.text, plan.text)
			require.Equal(t, whole.tokens, plan.tokens)
			require.Equal(t, whole.Added(), plan.Added())
			require.Equal(t, whole.rewriting.given, plan.rewriting.given)
			require.Equal(t, whole.rewriting.taken, plan.rewriting.taken)
			require.Equal(t, whole.Plain() == nil, plan.Plain() == nil)

			_, args, tried := p.rewrittenLong(text.bare)
			short, _, _ := p.rewrittenLong(text.bare)
			require.True(t, short != nil || args != nil || tried, "by its abridged form")
		})
	}
}

// What differs in the rows that are left out is found in the whole text.
func TestLongTextsAreCheckedWhole(t *testing.T) {
	p, _ := longPolicies(t)
	before, after := listOfRows(longTextRows, `(1, 2)`), listOfRows(longTextRows, `(1, 2)`)
	for name, row := range map[string]string{
		"another length": `(1)`, "a write": `(1, (WITH w AS (DELETE FROM orders RETURNING 1) SELECT 1))`, "a call": `(1, set_config('role', 'x', false))`,
		"not a row": `1`, "an open bracket": `((1, 2)`, "nothing": ``, "two rows in one": `(1, 2), (3, 4`,
	} {
		sql := `INSERT INTO orders (id, b) VALUES ` + before + `, ` + row + `, ` + after
		require.Error(t, p.Plan(sql).Refusal(), name)
	}
	for name, row := range map[string]string{
		"a constant": `(1, 0)`, "an expression": `(1, 1 + 2)`, "a column of its own": `(1, $2)`, "used elsewhere": `($1, $1)`, "too long": `(1, 2, 3)`, "a query": `(1, (SELECT 1))`,
	} {
		sql := `INSERT INTO orders (id, last_token) VALUES ` + listOfRows(longTextRows, `(1, $1)`) + `, ` + row + `, ` + listOfRows(longTextRows, `(1, $1)`)
		plan, a := p.Plan(sql), new(workspace)
		whole := p.rewritten(p.planIn(a, sql), &a.checker)
		if whole == nil {
			require.False(t, plan.Rewritten(), name)
			continue
		}
		require.Equal(t, whole.text, plan.text, name)
		require.Equal(t, whole.rewriting.taken, plan.rewriting.taken, name)
	}
}

// What rewriting costs, against a text that was guarded by hand, and was made by
// somebody, too.
func TestRewritingCosts(t *testing.T) {
	p, plain := longPolicies(t)
	for name, text := range longTexts {
		byHand := allocated(func() { plain.Plan(strings.Clone(text.hand)) })
		rewritten := allocated(func() { p.Plan(text.bare) })
		require.LessOrEqual(t, float64(rewritten), 1.5*float64(byHand), "%s: %d bytes, by hand %d", name, rewritten, byHand)
		if len(text.bare) <= maxFixed || strings.HasPrefix(name, "tokens as") {
			continue // it is shown guarded, or its tree is larger than that of the other text
		}
		refused := allocated(func() { plain.Plan(text.bare) })
		require.LessOrEqual(t, float64(refused), 1.5*float64(byHand), "%s refused: %d bytes, by hand %d", name, refused, byHand)
	}
}

// allocated returns how many bytes a function allocates, at the least of two times.
func allocated(do func()) uint64 {
	least := ^uint64(0)
	for range 2 {
		runtime.GC() // empties the pool of arenas,
		runtime.GC() // at the second time
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// BenchmarkLong is a long text, rewritten and guarded by hand.
func BenchmarkLong(b *testing.B) {
	p, plain := longPolicies(b)
	rows := 100000
	bare, hand := `INSERT INTO orders (id) VALUES `+listOfRows(rows, `(1)`), `INSERT INTO orders (id, last_token) VALUES `+listOfRows(rows, `(1, $1)`)
	for name, plan := range map[string]func() *Plan{"rewritten": func() *Plan { return p.Plan(bare) }, "by hand": func() *Plan { return plain.Plan(hand) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, plan().Refusal())
			}
		})
	}
}

// The brackets, commas and placeholders of a text are found where PostgreSQL's
// lexer finds them.
func TestEachWord(t *testing.T) {
	texts := []string{
		`SELECT U&"(a" , 'x)' -- c(` + "\n, $1 /* d( /* ) */ , */ (B'1', N'(', e.f)", `SELECT a$1, "b""(", 'it''s (', 1.5e3, x'ff'`, `SELECT '('` + "\n')'", ``, `(`, `)`,
		`SELECT E'\'('`, `SELECT $$($$`, `SELECT $a$($a$`, `SELECT '(`, `SELECT "(`, `/* (`, `SELECT 1-- (`, `SELECT 2 /*(*/ - -- )` + "\n(3)", `SELECT e'(' , 1`, `SELECT a['b']`, `SELECT 1$2`,
	}
	files, err := filepath.Glob("testdata/captured/*.jsonl")
	require.NoError(t, err)
	for _, file := range files {
		for _, s := range readStatements(t, file) {
			texts = append(texts, s.SQL)
		}
	}
	for _, sql := range texts {
		type sign struct {
			kind  wordsearch.Sign
			start int
		}
		var got, want []sign
		ok := wordsearch.EachWord(sql, func(kind wordsearch.Sign, start, _ int) {
			if kind == wordsearch.OpeningSign || kind == wordsearch.ClosingSign || kind == wordsearch.CommaSign || kind == wordsearch.Placeholder {
				got = append(got, sign{kind, start})
			}
		})
		tokens, err := parser.Scan(sql)
		if !ok || err != nil {
			continue
		}
		kinds := map[parser.TokenKind]wordsearch.Sign{
			parser.LPAREN: wordsearch.OpeningSign, parser.LBRACK: wordsearch.OpeningSign, parser.RPAREN: wordsearch.ClosingSign, parser.RBRACK: wordsearch.ClosingSign,
			parser.COMMA: wordsearch.CommaSign, parser.PARAM: wordsearch.Placeholder,
		}
		for _, tok := range tokens {
			if kind, is := kinds[tok.Kind]; is {
				want = append(want, sign{kind, tok.Start})
			}
		}
		require.Equal(t, want, got, "%q", sql)
	}
}
