package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// seed adds every statement of testdata to a fuzz target.
func seed(f *testing.F) {
	for _, sql := range corpus(f) {
		f.Add(sql)
	}
}

// corpus is every statement of testdata.
func corpus(t testing.TB) (texts []string) {
	for _, pattern := range []string{"testdata/cases/*.jsonl", "testdata/captured/*.jsonl"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			for _, s := range readStatements(t, file) {
				texts = append(texts, s.SQL)
			}
		}
	}
	for _, v := range kindVerdicts {
		texts = append(texts, v.passes, v.refused)
	}
	return append(texts, "SELECT $q$ text $q$protected_rows",
		`WITH a AS (SELECT '\', $q$'), b AS (UPDATE protected_rows SET value = 1) SELECT 1 --$q$) SELECT 1`)
}

// FuzzPlan looks for texts on which the check fails, for guarded forms that it
// doesn't accept itself, and for attested ones with other changes than calls.
func FuzzPlan(f *testing.F) {
	seed(f)
	p := casesPolicy(f, Strict)
	f.Fuzz(func(t *testing.T, sql string) {
		plan := p.fullPlan(sql)
		require.Equal(t, unattested(sql), unattested(plan.Attested()))
		require.LessOrEqual(t, len(plan.StaleCounts()), len(plan.Probes()))
		for _, v := range plan.Violations {
			require.NotEqual(t, CheckerPanic, v.Rule, v.Message)
			require.NotContains(t, v.Error(), "%!")
		}
		if guarded, err := p.Guard(sql); err == nil {
			require.NoError(t, p.Plan(guarded).Refusal())
		}
	})
}

// FuzzRewriting looks for texts that are rewritten into what the check alone
// doesn't accept, or that are rewritten again.
func FuzzRewriting(f *testing.F) {
	seed(f)
	p, without := casesPolicy(f, Lease), casesPolicy(f, Lease)
	for _, table := range p.tables {
		table.Rewrite = true
	}
	f.Fuzz(func(t *testing.T, sql string) {
		plan := p.Plan(sql)
		require.Equal(t, sql, plan.Given())
		if !plan.Rewritten() {
			require.Equal(t, without.fullPlan(sql).Violations == nil, p.fullPlan(sql).Violations == nil)
			return
		}
		require.NoError(t, without.fullPlan(plan.Text()).Refusal())
		require.Equal(t, plan.Text(), p.Plan(plan.Text()).Text())
	})
}

// unattested leaves out the calls of an attested text, the counts that it returns
// besides, at the end or after others, and the schema of its comparisons, and all
// blanks: one may have to stand before the next word.
func unattested(text string) string {
	bare := qualifiedComparison.ReplaceAllString(attestedCall.ReplaceAllString(text, ""), "$1")
	bare = addedCount.ReplaceAllString(bare, "$1")
	return strings.ReplaceAll(bare, " ", "")
}

var qualifiedComparison = regexp.MustCompile(`OPERATOR\(pg_catalog\.([<>]=?)\)`)

var addedCount = regexp.MustCompile(`(?: RETURNING |, )\(SELECT pg_catalog\.count\(\*\) FROM .*?\) AS fencerow_count_\d+| RETURNING 1(\)|$)`)

var attestedCall = regexp.MustCompile(` AND pg_catalog\.set_config\('[^']*', [^ ]*, true\) IS NOT NULL`)

// FuzzQuick looks for texts that the quick way out clears and the full check
// would not let pass as they are. What the parser can't read it has no answer
// for: that is what the quick way out is for.
func FuzzQuick(f *testing.F) {
	seed(f)
	p := casesPolicy(f, Strict)
	f.Fuzz(func(t *testing.T, sql string) {
		if !p.clears(sql) {
			return
		}
		plan := p.fullPlan(sql)
		require.False(t, plan.Guarded())
		for _, v := range plan.Violations {
			require.Contains(t, []Rule{Unparsable, TooDeep, TooLarge}, v.Rule, v.Message)
		}
	})
}

// Long texts of every sort are answered or refused, soon, and the process
// lives: the parser has no guard for its own stack.
func TestLongTexts(t *testing.T) {
	// A text as long as that nests many times deeper than its stack allows: by 260,000
	// levels where there are 8 MB, by 65,000 on the smallest stack.
	size := 1 << 19 / shrink
	if sqltext.MaxNesting < sqltext.NestingLimit {
		size = 1 << 17
	}
	repeat := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	half := func(open, middle, end string) string {
		n := size / (len(open) + len(end))
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	texts := map[string]string{
		"operators":          repeat("", "1+", "1"),
		"operators in a set": repeat("UPDATE protected_rows SET grp = ", "1+", "1"),
		"parentheses":        half("(", "SELECT 1", ")"),
		"in an expression":   "SELECT " + half("(", "1", ")") + " FROM protected_rows",
		"open only":          repeat("SELECT protected_rows ", "(", ""),
		"not":                repeat("SELECT protected_rows WHERE ", "NOT ", "true"),
		"minus":              repeat("SELECT protected_rows, ", "- ", "1"),
		"casts":              repeat("SELECT protected_rows, 1", "::int", ""),
		"subscripts":         repeat("SELECT protected_rows.a", "[1]", ""),
		"fields":             repeat("SELECT (protected_rows)", ".a", ""),
		"is null":            repeat("SELECT protected_rows", " IS NULL", ""),
		"collate":            repeat("SELECT protected_rows", ` COLLATE "C"`, ""),
		"at time zone":       repeat("SELECT protected_rows", " AT TIME ZONE 'UTC'", ""),
		"operator()":         repeat("SELECT protected_rows", " OPERATOR(pg_catalog.+) 1", ""),
		"case":               "SELECT protected_rows, " + half("CASE WHEN true THEN ", "1", " END"),
		"case else":          "SELECT protected_rows, " + half("CASE WHEN true THEN 1 ELSE ", "1", " END"),
		"joins":              repeat("SELECT * FROM protected_rows", " CROSS JOIN a", ""),
		"using":              repeat("SELECT * FROM protected_rows", " JOIN a USING (b, c)", ""),
		"unions":             repeat("SELECT a, b FROM protected_rows", " UNION SELECT 1, 2", ""),
		"values":             repeat("INSERT INTO protected_rows (id, last_token) VALUES (1, 8)", ", (1, 8)", ""),
		"conjuncts":          repeat("DELETE FROM protected_rows WHERE last_token < 8", " AND a", ""),
		"alternatives":       repeat("DELETE FROM protected_rows WHERE last_token < 8", " OR a", ""),
		"mixed alternatives": repeat("DELETE FROM protected_rows WHERE last_token < 8", " OR a AND b", ""),
		"list":               repeat("SELECT * FROM protected_rows WHERE id IN (1", ",1", ")"),
		"arrays":             "SELECT protected_rows, " + half("ARRAY[", "1", "]"),
		"rows":               "SELECT protected_rows, " + half("ROW(", "1", ")"),
		"calls":              "SELECT protected_rows, " + half("f(", "1", ")"),
		"sub-selects":        "SELECT protected_rows, " + half("(SELECT ", "1", ")"),
		"derived tables":     "SELECT * FROM protected_rows, " + half("(SELECT * FROM ", "a", ") b"),
		"exists":             "SELECT * FROM protected_rows WHERE " + half("EXISTS (SELECT 1 WHERE ", "true", ")"),
		"with":               half("WITH a AS (", "SELECT 1 FROM protected_rows", ") SELECT 1"),
		"flat with":          repeat("WITH a AS (SELECT 1 FROM protected_rows)", ", a AS (SELECT 1)", " SELECT 1"),
		"statements":         repeat("SELECT 1 FROM protected_rows", ";SELECT 1", ""),
		"semicolons":         repeat("SELECT 1 FROM protected_rows", ";", ""),
		"comments":           half("/*", "protected_rows", "*/"),
		"spaced comments":    half("/* ", "protected_rows", " */"),
		"short comments":     repeat("SELECT protected_rows", strings.Repeat("/*", 64)+strings.Repeat(" */", 64), ""),
		"signs":              repeat("SELECT protected_rows ", "+", "1"),
		"short signs":        repeat("SELECT protected_rows ", strings.Repeat("+", 64)+"1 ", "1"),
		"end as a name":      "SELECT ((((1" + strings.Repeat(strings.Repeat("+1", 1800)+"+a.end", 280) + ")))) FROM protected_rows",
		"end as a label":     repeat("SELECT protected_rows, 1 case", " UNION SELECT 1 end", ""),
		"ands of between":    repeat("SELECT protected_rows, a", " ISNULL"+strings.Repeat("+1", 3000)+" BETWEEN 1 AND 1", ""),
		"between is null":    repeat("SELECT protected_rows, a", " BETWEEN 1 AND 1 IS NULL", ""),
		"columns of a row":   "UPDATE protected_rows SET (" + strings.Repeat("a,", 6000) + "a) = (" + strings.Repeat("1,", 6000) + "1)",
		"rows in comments":   "UPDATE protected_rows SET/**/(" + strings.Repeat("a[f(1)],", 3000) + "a)/**/=/**/(" + strings.Repeat("1,", 3000) + "1)",
		"guards by values":   "UPDATE protected_rows t SET last_token = v.k FROM (VALUES (1, 8)" + strings.Repeat(", (1, $1)", 40_000/shrink) + ") v(id, k) WHERE true" + strings.Repeat(" AND t.last_token < v.k", 20_000/shrink),
		"own placeholders":   "INSERT INTO protected_rows (id, last_token) VALUES (1, $1)" + numbered(", (1, $%d)", 70_000/shrink),
		"own literals":       "INSERT INTO protected_rows (id, last_token) VALUES (1, 1)" + numbered(", (1, %d)", 70_000/shrink),
		"lists in FROM":      "UPDATE protected_rows t SET last_token = 8 FROM jobs" + numbered(", (VALUES (1)) v%d", 40_000/shrink) + " WHERE t.last_token < 8",
		"unguarded CTEs":     "WITH a AS (SELECT 1)" + numbered(", a%d AS (UPDATE protected_rows SET value = 1)", 20_000/shrink) + " SELECT 1",
		"unguarded writes":   repeat("", "UPDATE protected_rows SET value = 1;", ""),
		"many guards":        "DELETE FROM protected_rows WHERE true" + numbered(" AND last_token < $%[1]d AND id = $%[1]d", 20_000/shrink),
		"nested rows":        strings.Repeat("UPDATE protected_rows SET (a,b,c,d)=(SELECT 1 FROM (WITH u AS (", 10) + "SELECT 1" + strings.Repeat(") SELECT 1) z)", 10),
		"nested pairs":       strings.Repeat("UPDATE protected_rows SET (a,b)/**/=(SELECT 1 FROM (WITH u AS (", 40) + "SELECT 1" + strings.Repeat(") SELECT 1) z)", 40),
		"rows behind a sign": nested(8, "WITH x AS (UPDATE t SET (a,b,c,d,e,f,g,h,i) = (1)+(", ") RETURNING 1) SELECT 1") + " FROM protected_rows",
		"rows in brackets":   nested(14, "WITH x AS (UPDATE t SET (a,b) = ARRAY[(1),(", ")] RETURNING 1) SELECT 1") + " FROM protected_rows",
		"a row of no list":   "UPDATE protected_rows SET (" + strings.Repeat("a,", 4999) + "a) = 1" + strings.Repeat(" OR 1", 4000),
		"few commas":         strings.Replace(nested(7, "WITH x AS (UPDATE t SET (a,b) = (", ") RETURNING 1) SELECT 1"), "SELECT 1", "SELECT 1 FROM protected_rows WHERE a"+strings.Repeat(" OR b", 30_000/shrink), 1),
		"triggers in a body": "DO $$ BEGIN CREATE TRIGGER t" + strings.Repeat(" EXECUTE FUNCTION", 60_000/shrink) + " END $$",
		"names in WITH":      "WITH v0(a) AS (VALUES (1))" + numbered(", v%[1]d(a) AS (VALUES (1))", 20_000/shrink) + " UPDATE protected_rows t SET last_token = 8 FROM v0" + numbered(", v%d", 20_000/shrink) + " WHERE t.last_token < 8",
		"banners":            repeat("SELECT protected_rows", " /*"+strings.Repeat("=", 200)+"*/ -- "+strings.Repeat("-", 200)+"\n", ""),
		"dollars":            repeat("SELECT protected_rows, $a$", "$b", ""),
		"quotes":             repeat("SELECT protected_rows, '", "' '", "'"),
		"quotes over lines":  repeat("SELECT protected_rows, 'a'", "\n'a'", ""),
		"a string":           repeat("UPDATE protected_rows SET value = '", "+(", "'"),
		"an identifier":      repeat("SELECT protected_rows.", "a", ""),
		"placeholders":       repeat("SELECT protected_rows, $1", ", $2", ""),
		"between":            repeat("SELECT protected_rows WHERE a", " BETWEEN b AND c", ""),
		"like":               repeat("SELECT protected_rows WHERE a", " LIKE b", ""),
		"concatenation":      repeat("SELECT protected_rows", "||a", ""),
		"json":               repeat("SELECT protected_rows", "->a", ""),
		"alter":              repeat("ALTER TABLE protected_rows ADD a int", ", ADD a int", ""),
		"explain":            repeat("", "EXPLAIN ", "UPDATE protected_rows SET value = 1"),
		"prepare":            repeat("", "PREPARE a AS ", "UPDATE protected_rows SET value = 1"),
		"schema":             repeat("CREATE SCHEMA a", " CREATE TABLE protected_rows (a int)", ""),
		"deep operands":      "SELECT " + strings.Repeat("(", 18) + "1" + strings.Repeat(strings.Repeat("+1", 3900)+")", 18) + " FROM protected_rows",
		"deep elements":      "SELECT " + strings.Repeat("ARRAY[", 18) + "1" + strings.Repeat(strings.Repeat("+1", 3900)+"]", 18) + " FROM protected_rows",
		"deep cases":         "SELECT " + strings.Repeat("CASE WHEN true THEN ", 18) + "1" + strings.Repeat(strings.Repeat("+1", 3900)+" END", 18) + " FROM protected_rows",
		"deep unions":        "SELECT 1 FROM protected_rows WHERE EXISTS " + strings.Repeat("(", 18) + "SELECT 1" + strings.Repeat(strings.Repeat(" UNION SELECT 1, 2", 3900)+")", 18),
		"deep joins":         "SELECT 1 FROM protected_rows, " + strings.Repeat("(", 18) + "a" + strings.Repeat(strings.Repeat(" NATURAL JOIN b", 3900)+")", 18),
		"named or":           repeat("SELECT a.or", "+a.or", " FROM protected_rows a"),
		"named and":          repeat("SELECT a.and", "+a.and", " FROM protected_rows a"),
		"named between":      repeat("SELECT a", "+a.between+a.and", " FROM protected_rows a"),
		"named when":         repeat("SELECT CASE WHEN a.when", "+a.when+a.then+a.else+a.case+a.end", " THEN 1 END FROM protected_rows a"),
		"a row of an array":  "UPDATE protected_rows SET (a" + strings.Repeat(",a", 4000) + ") = ARRAY[1" + strings.Repeat(",a", 4000) + "]",
		"a row of a name":    "UPDATE protected_rows SET (a" + strings.Repeat(",a", 4000) + ") = a.where IN (a" + strings.Repeat(",a", 4000) + ")",
		"a row of another":   "UPDATE protected_rows SET (a" + strings.Repeat(",a", 4000) + ") = a.returning IN (a" + strings.Repeat(",a", 4000) + ")",
		"rows in arrays":     nested(12, "WITH x AS (UPDATE t SET (a,b,c,d) = ARRAY[1,(", ")] RETURNING 1) SELECT 1") + " FROM protected_rows",
		"rows behind a name": nested(12, "WITH x AS (UPDATE t SET (a,b,c,d) = a.where+(", ") RETURNING 1) SELECT 1") + " FROM protected_rows",
		"whitespace":         repeat("UPDATE protected_rows", " ", " SET value = 1"),
	}
	p := casesPolicy(t, Strict)
	for name, sql := range texts {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			start := time.Now()
			plan := p.Plan(sql)
			for _, v := range plan.Violations {
				require.NotEqual(t, CheckerPanic, v.Rule, v.Message)
				require.Less(t, len(v.Error()), 2000)
			}
			t.Logf("%s: %d bytes in %s", name, len(sql), time.Since(start).Round(time.Millisecond))
		})
	}
}

// nested puts a text between others n times, beginning with a query.
func nested(n int, head, tail string) string {
	return strings.Repeat(head, n) + "SELECT 1" + strings.Repeat(tail, n)
}

// numbered repeats a format with the numbers from 1 to n.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// A chain just below the limit is parsed: the limit leaves the parser's stack
// enough room.
func TestDeepestTexts(t *testing.T) {
	p := casesPolicy(t, Strict)
	slack := max(16, sqltext.MaxNesting/40)
	n := sqltext.MaxNesting - slack
	for name, sql := range map[string]string{
		"operators":     "SELECT protected_rows" + strings.Repeat("+1", n),
		"casts":         "SELECT protected_rows" + strings.Repeat("::int", n/2-slack),
		"not":           "SELECT protected_rows WHERE " + strings.Repeat("NOT ", n) + "true",
		"unions":        "SELECT protected_rows" + strings.Repeat(" UNION SELECT 1", n/2-slack),
		"joins":         "SELECT * FROM protected_rows" + strings.Repeat(" NATURAL JOIN a", n/2-slack),
		"sub-selects":   "SELECT protected_rows, " + strings.Repeat("(SELECT ", n/3-slack) + "1" + strings.Repeat(")", n/3-slack),
		"case":          "SELECT protected_rows, " + strings.Repeat("CASE WHEN a THEN ", n/2-slack) + "1" + strings.Repeat(" END", n/2-slack),
		"guarded":       "UPDATE protected_rows SET last_token = 8 WHERE id = 1" + strings.Repeat("+1", n) + " AND last_token < 8",
		"probed":        "UPDATE protected_rows SET last_token = 8 WHERE id = 1" + strings.Repeat("+1", sqltext.MaxDeparseNesting-20) + " AND last_token < 8",
		"operands":      "UPDATE protected_rows SET last_token = 8 WHERE " + strings.Repeat("(", 3) + "id" + strings.Repeat(strings.Repeat("+1", n/3-slack)+")", 3) + " > 0 AND last_token < 8",
		"bulk insert":   "INSERT INTO protected_rows (id, last_token) VALUES " + strings.Repeat("(1+1::bigint, 8), ", 30_000/shrink) + "(1, 8)",
		"long or":       "DELETE FROM protected_rows WHERE last_token < 8 AND (id = 1" + strings.Repeat(" OR id = 1", 30_000/shrink) + ")",
		"rows compared": "SELECT 1 FROM protected_rows WHERE (a, b) = (1, 2)" + strings.Repeat(" OR (a, b) = (1, 2)", 10_000/shrink),
		"rows set":      "UPDATE protected_rows SET (value, grp, last_token) = ('a', 1, 8), id = (1) WHERE last_token < 8 AND id IN (1" + strings.Repeat(", 1", 100_000/shrink) + ")",
	} {
		t.Run(name, func(t *testing.T) {
			plan := p.fullPlan(sql)
			require.NoError(t, plan.Refusal())
			if len(sql) < 64<<10 {
				_, _ = plan.Probes(), plan.Attested() // are written from the parser's tree, by its own recursion
			}
		})
	}
}

// The deepest texts are as deep as the stack allows that C code has, which is
// little under some C libraries.
func TestDeepestTextsOnSmallStacks(t *testing.T) {
	stacks := map[string]string{"128": "DeepestTexts|LongTexts", "512": "DeepestTexts", "2048": "DeepestTexts"}
	if raceEnabled { // C knows nothing of it, and all else takes minutes
		stacks = map[string]string{"128": "DeepestTexts"}
	}
	for kilobytes, tests := range stacks {
		cmd := exec.Command("sh", "-c", `ulimit -S -s "$1" && exec "$0" -test.run "^Test($2)$"`, os.Args[0], kilobytes, tests)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s KB: %.2000s", kilobytes, out)
	}
	require.Equal(t, 256, sqltext.NestingFor(128<<10, 256))
	require.Equal(t, 256, sqltext.NestingFor(0, 256))
	require.Equal(t, sqltext.NestingLimit, sqltext.NestingFor(8<<20, 256))
}
