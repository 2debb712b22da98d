package check

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var plantHoles = flag.Bool("holes", false, "plant each hole into the check, and see that TestDifferential finds it")

// hole is a fault that a change of the check could bring in: a text in one of
// its files, and what stands there instead.
type hole struct{ name, file, sound, unsound string }

var holes = []hole{
	{"a guard under OR counts", "guard.go", `where.Str("boolop") == "AND_EXPR"`, `where.Str("boolop") != "NOT_EXPR"`},
	{"a guard in a sub-select counts", "guard.go", "\treturn append(out, where)\n",
		"\tif where.Is(\"SubLink\") { return append(out, conjuncts(where.Get(\"subselect\").Get(\"whereClause\"))...) }\n\treturn append(out, where)\n"},
	{"a guard the wrong way round counts", "guard.go", `left, right, op = right, left, mirrored[op]`, `left, right = right, left`},
	{"an equal token is enough in strict mode", "guard.go", `op == "<=" && table.Mode == Lease`, `op == "<="`},
	{"any operator of the name counts", "guard.go", `len(parts) == 2 && parts[0] != "pg_catalog"`, `false`},
	{"a token in arithmetic counts", "operand.go", "\tif n == nil {\n\t\treturn operand{}, false\n\t}\n", "\tif n.Is(\"A_Expr\") { n = n.Get(\"lexpr\") }\n\tif n == nil {\n\t\treturn operand{}, false\n\t}\n"},
	{"a fraction counts", "operand.go", "\tif n.IsNonDecimal {\n\t\treturn 0, false\n\t}\n", "\tif f := n.Get(\"fval\"); n.IsNonDecimal && f != nil {\n\t\tv, err := strconv.ParseFloat(f.Str(\"fval\"), 64)\n\t\treturn int64(v), err == nil\n\t}\n"},
	{"the raise may be missing", "update.go", `if token, ok := c.findRaise(n.List("targetList"), t, table, "UPDATE on", guards[0].operand, read); ok {`, `if token, ok := guards[0].operand, true; ok {`},
	{"another table's column counts", "names.go", `return parts[0] == t.ref()`, `return true`},
	{"a cast to any number counts", "operand.go", `return isBuiltinType(typeName, "int2", "int4", "int8")`, `return isBuiltinType(typeName, "int2", "int4", "int8", "float8")`},
	{"the token's placeholder may stand anywhere", "check.go", `if use.bigint || `, `if true || use.bigint || `},
	{"writes in WITH are not looked at", "check.go", `case "ParamRef":`, `case "WithClause":
		return
	case "ParamRef":`},
	{"the action of an upsert needs no guard", "insert.go", `if updates {
			c.proveUpsert(conflict, t, table, top)`, `if false {
			c.proveUpsert(conflict, t, table, top)`},
	{"an action of a MERGE needs no guard", "merge.go", `case (kind == "CMD_UPDATE" || kind == "CMD_DELETE") && when.Flag("matched"):`, "case when.Flag(\"matched\"):\n\t\treturn nil\n\tcase kind == \"\":"},
	{"a star before the token in an INSERT is not looked at", "insert.go", `		if expands(item) {`, `		if false {`},
	{"NOT turns nothing around", "guard.go", `return negated[op], left, right, at, ok`, `return op, left, right, at, ok`},
	{"NOT turns < into >", "guard.go", `"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "<>", "<>": "="`, `"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "<>", "<>": "="`},
	{"any kind of BETWEEN counts", "guard.go", `n.Str("kind") == "AEXPR_BETWEEN": // not`, `n.Str("kind") == "AEXPR_BETWEEN" || n.Str("kind") == "AEXPR_BETWEEN_SYM" || n.Str("kind") == "AEXPR_NOT_BETWEEN": // not`},
	{"a BETWEEN whose comparisons may be somebody's own counts", "guard.go", `if c.policy.closure.HasComparisons && at.Str`, `if false && at.Str`},
	{"a type by its bare name is taken for the built-in one", "guard.go", `if o.cast != nil && `, `if false && `},
	{"a call casts whatever it is given", "operand.go", `	if len(args) != 1 || n.Str("funcformat")`, `	for args[0].Is("A_Expr") && args[0].Get("lexpr") != nil {
		args[0] = args[0].Get("lexpr")
	}
	if len(args) != 1 || n.Str("funcformat")`},
	{"the columns of a SELECT of constants are not counted", "valueslist.go", `list.columns = append(list.columns, item.Str("name"))`, `list.columns = append([]string{item.Str("name")}, list.columns...)`},
	{"a view is written like a table", "indirect.go", `if r.view {`, `if false {`},
	{"a writing function may be called", "function.go", `case c.writesProtected(schema, name):`, `case false:`},
	{"another token than the context's is sent", "bind.go", `if v != int64(t) {`, `t = tokenctx.Token(v)
		if false {`},
	{"a bare name is looked up by the path that was read", "policy.go", `		return candidates
	}
	var hits []*relation
	for _, r := range candidates {
		if r.IsIn(schema) {`, `		schema = "public"
	}
	var hits []*relation
	for _, r := range candidates {
		if r.IsIn(schema) {`},
	{"comparisons are not qualified", "guard.go", `if c.policy.closure.HasComparisons && len(`, `if false && len(`},
	{"a write that EXPLAIN ANALYZE executes needs no proof", "planonly.go", ` && !isAnalyzed(stmts[0].Get("stmt"))`, ``},
	{"a cascade is not looked at", "indirect.go", `return f.Delete`, `return false`},
}

// rewritingHoles are faults that would change the meaning of what is rewritten, or leave a
// guard out. TestRewriting and TestNotRewritten have to find them.
var rewritingHoles = []hole{
	{"an action of a MERGE is given no guard", "fixmerge.go", `case kind == "CMD_DELETE" && changesMatched(action.Node):`, "case kind == \"CMD_DELETE\":\n\t\tcase false:"},
	{"a MERGE's own value stays", "fixmerge.go", `f.takeItem(values[position], values[position], places[position], table, "")`, `true`},
	{"a star may be counted", "fixsource.go", `if countsItems(source) {`, `if false {`},
	{"rows may be ordered by what is added", "fixsource.go", `case goesByAdded(source):`, `case false:`},
	{"the token is added to the first arm alone", "fixsource.go", `	for _, arm := range arms {
		if widthOf`, `	for _, arm := range arms[:1] {
		if widthOf`},
	{"EXCLUDED as a whole is no use of the token", "fixinsert.go", `isExcluded(n, column) || isWholeExcluded(n)`, `isExcluded(n, column)`},
	{"EXCLUDED's token may be a value", "fixinsert.go", `if f.takeover && f.readsExcluded(conflict, t, position) {`, `if false {`},
	{"a relative has its table's columns", "closure.go", `of.Key, of.Columns = n.Schema, n.Name, nil, nil`, `of.Key = n.Schema, n.Name, nil`},
	{"the columns of one of several tables", "fixcolumns.go", `len(t.relations) != 1 || `, ``},
	{"a query that locks rows stays as it is", "once.go", `	return len(query.List("lockingClause")) > 0`, `	return false`},
	{"another of several columns gives way", "takeover.go", `place := places[column-1]`, `place := places[0]`},
}

// A test that can't fail shows nothing: each hole has to be found. Planting
// them all takes minutes, so it is done with -holes only; without it the list
// is held against the code.
func TestHoles(t *testing.T) {
	for _, h := range holes {
		t.Run(h.name, func(t *testing.T) {
			source, err := os.ReadFile(h.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), h.sound), "%s no longer has this text once: %s", h.file, h.sound)
			if *plantHoles {
				found := plant(t, h, strings.Replace(string(source), h.sound, h.unsound, 1))
				t.Logf("found after %s statements", found)
			}
		})
	}
}

// TestRewritingHoles is [TestHoles] for rewriting.
func TestRewritingHoles(t *testing.T) {
	for _, h := range rewritingHoles {
		t.Run(h.name, func(t *testing.T) {
			source, err := os.ReadFile(h.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), h.sound), "%s no longer has this text once: %s", h.file, h.sound)
			if *plantHoles {
				out, err := runWith(t, h, strings.Replace(string(source), h.sound, h.unsound, 1), "-run", "^(TestRewriting|TestNotRewritten|TestColumnsOfARelative|TestRewritingPage)$")
				require.Error(t, err, "the hole was not found")
				require.Contains(t, string(out), "--- FAIL", "%s", out)
			}
		})
	}
}

var (
	failedAfter    = regexp.MustCompile(`failed after (\d+) tests`)
	counterexample = regexp.MustCompile(`(?m)^\s+(strict|lease) mode: .*$`)
)

// plant runs TestDifferential over the source with the hole, and returns after
// how many statements it failed.
func plant(t *testing.T, h hole, source string) string {
	t.Helper()
	out, err := runWith(t, h, source, "-run", "^TestDifferential$", "-rapid.checks=50000", "-rapid.nofailfile", "-rapid.shrinktime=2s")
	require.Error(t, err, "the hole was not found within 50,000 statements")
	m := failedAfter.FindSubmatch(out)
	require.NotNil(t, m, "%s", out)
	t.Logf("%s", strings.TrimSpace(string(counterexample.Find(out))))
	return string(m[1])
}

// runWith runs tests of the package over the source with a hole.
func runWith(t *testing.T, h hole, source string, args ...string) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(h.file)
	require.NoError(t, err)
	planted := filepath.Join(dir, h.file)
	require.NoError(t, os.WriteFile(planted, []byte(source), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: planted}})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	return exec.Command("go", append([]string{"test", "-overlay", overlayFile, "-count=1", "."}, args...)...).CombinedOutput()
}
