package check

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/tokenctx"
)

// testedElsewhere are the rules that no text alone can break, with the test
// that covers each.
var testedElsewhere = map[Rule]struct{ file, test, mentions string }{
	QueryRewriter:  {"../../driver/wrap_test.go", "TestSpecialArguments", "rewrite.QueryRewriter"},
	SessionState:   {"../../driver/open_test.go", "TestSessionState", "rewrite.SessionState"},
	SimpleProtocol: {"../../driver/open_test.go", "TestSimpleProtocol", "rewrite.SimpleProtocol"},
	WallRefused:    {"../../driver/wall_test.go", "TestWallErrors", "rewrite.WallRefused"},
	AmbiguousName:  {"../../driver/names_server_test.go", "TestClosedGate", "rewrite.AmbiguousName"},
	UnfitTable:     {"../../driver/unfit_test.go", "TestUnfitTableAlone", "rewrite.UnfitTable"},
	BadSuppression: {"../../lint/sqlfiles/suppress_test.go", "TestSuppressions", "rewrite.BadSuppression"},
	CheckerPanic:   {"rules_test.go", "TestRuleCheckerPanic", "CheckerPanic"},
}

// ruleLine is one line of testdata/rules/FRnnn.jsonl, a statement against
// testdata/cases/schema.sql.
type ruleLine struct {
	Expect, Mode, SQL, Why string
	Args                   []any  // "$ARG" is tokenctx.Arg
	Token                  *int64 // null: no token in the context

	Path    json.RawMessage // the search path; null: an unknown one; absent: the default
	Closure Closure         // added to that of casesPolicy
	Without []string        // node kinds that the check is made to forget
	Bytes   []byte          // the text, where it is no valid JSON string
	Repeat  *repeatedText   // the text, where it is long
}

type repeatedText struct {
	Prefix, Unit, Suffix string
	Count                int
}

func readRuleLines(t *testing.T, file string) []ruleLine {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	var lines []ruleLine
	for {
		var l ruleLine
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err, "%s, line %d", file, len(lines)+1)
		}
		lines = append(lines, l)
	}
	require.Len(t, lines, bytes.Count(data, []byte("\n")), "%s: one object a line", file)
	return lines
}

func (l ruleLine) text() string {
	switch {
	case l.Repeat != nil:
		return l.Repeat.Prefix + strings.Repeat(l.Repeat.Unit, l.Repeat.Count) + l.Repeat.Suffix
	case l.Bytes != nil:
		return string(l.Bytes)
	}
	return l.SQL
}

// policy returns casesPolicy with what the line changes of it.
func (l ruleLine) policy(t *testing.T) *Policy {
	mode, err := ParseMode(l.Mode)
	require.NoError(t, err)
	p := casesPolicy(t, mode)
	c := p.closure
	c.Cascades = append(slices.Clone(c.Cascades), l.Closure.Cascades...)
	c.Writers = append(slices.Clone(c.Writers), l.Closure.Writers...)
	c.TokenTriggers = append(slices.Clone(c.TokenTriggers), l.Closure.TokenTriggers...)
	c.Unseen = append(slices.Clone(c.Unseen), l.Closure.Unseen...)
	c.GuardedFunctions = append(slices.Clone(c.GuardedFunctions), l.Closure.GuardedFunctions...)
	p, err = p.WithClosure(c)
	require.NoError(t, err)
	switch string(l.Path) {
	case "":
	case "null":
		p.path, p.known = nil, false
	default:
		var schemas []string
		require.NoError(t, json.Unmarshal(l.Path, &schemas))
		p = p.ForPath(schemas...)
	}
	return p
}

func (l ruleLine) namedValues(t *testing.T) []driver.NamedValue {
	args := make([]driver.NamedValue, len(l.Args))
	for i, a := range l.Args {
		switch v := a.(type) {
		case json.Number:
			n, err := v.Int64()
			require.NoError(t, err)
			a = n
		case string:
			if v == "$ARG" {
				a = tokenctx.Arg
			}
		}
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return args
}

// answer plans and binds the line's statement as the driver would.
func (l ruleLine) answer(t *testing.T) error {
	forget(t, l.Without...)
	plan := l.policy(t).Plan(l.text())
	ctx := context.Background()
	if l.Token != nil {
		ctx = tokenctx.With(ctx, tokenctx.Token(*l.Token))
	}
	_, err := plan.BindAll(ctx, l.namedValues(t))
	return err
}

// forget makes the check not know some kinds of nodes, as if they were of a
// newer grammar.
func forget(t *testing.T, kinds ...string) {
	for _, kind := range kinds {
		rule, isStatement := statementKinds[kind]
		of := sqltree.NodeTypes().Named(kind)
		require.True(t, isStatement || plainKinds()[of.ID], "the check doesn't know %s anyway", kind)
		delete(statementKinds, kind)
		plainKinds()[of.ID] = false
		t.Cleanup(func() {
			if isStatement {
				statementKinds[kind] = rule
			} else {
				plainKinds()[of.ID] = true
			}
		})
	}
}

// requireRule requires that err refuses by a rule.
func requireRule(t *testing.T, want Rule, err error, sql string) {
	t.Helper()
	var v *Violation
	require.ErrorAs(t, err, &v, sql)
	require.Equal(t, want, v.Rule, "%s\n%v", sql, v)
}

func (l ruleLine) check(t *testing.T, rule Rule) {
	shown := l.Why + ": " + l.text()[:min(len(l.text()), 500)]
	err := l.answer(t)
	switch l.Expect {
	case "allow":
		require.NoError(t, err, shown)
	case "refuse":
		requireRule(t, rule, err, shown)
	default:
		t.Fatalf("expect is %q, not allow or refuse", l.Expect)
	}
}

func TestRuleData(t *testing.T) {
	for _, info := range Rules() {
		if _, ok := testedElsewhere[info.ID]; ok {
			continue
		}
		t.Run(string(info.ID), func(t *testing.T) {
			count := map[string]int{}
			for i, l := range readRuleLines(t, dataFile(info.ID)) {
				require.NotEmpty(t, l.Why, "line %d", i+1)
				count[l.Expect]++
				t.Run(fmt.Sprintf("line %d", i+1), func(t *testing.T) { l.check(t, info.ID) })
			}
			require.GreaterOrEqual(t, count["refuse"], 4, "kinds of the fault")
			require.GreaterOrEqual(t, count["allow"], 3, "near misses")
		})
	}
}

func dataFile(rule Rule) string { return "testdata/rules/" + string(rule) + ".jsonl" }

// Rules that aren't tested by data name a test that exists and is about them.
func TestRuleTestedElsewhere(t *testing.T) {
	for rule, where := range testedElsewhere {
		require.NoFileExists(t, dataFile(rule), "%s has data, so it isn't tested elsewhere", rule)
		source, err := os.ReadFile(where.file)
		require.NoError(t, err)
		_, body, found := strings.Cut(string(source), "\nfunc "+where.test+"(t *testing.T) {\n")
		require.True(t, found, "%s: %s has no %s", rule, where.file, where.test)
		body, _, _ = strings.Cut(body, "\n}\n")
		require.Contains(t, body, where.mentions, "%s: %s says nothing of it", rule, where.test)
	}
}

// A panic in a rule refuses the text, and doesn't reach the caller.
func TestRuleCheckerPanic(t *testing.T) {
	known := statementKinds["VacuumStmt"]
	t.Cleanup(func() { statementKinds["VacuumStmt"] = known })
	statementKinds["VacuumStmt"] = statementKind{check: func(*checker, *sqltree.Node, bool) { panic("planted") }}
	p := casesPolicy(t, Strict)
	requireRule(t, CheckerPanic, p.Plan(`VACUUM protected_rows`).Refusal(), "a panic")
	requireRule(t, CheckerPanic, p.Plan(`SELECT 1 FROM protected_rows; VACUUM jobs`).Refusal(), "in a later statement")
	require.NoError(t, p.Plan(`LOCK TABLE protected_rows`).Refusal(), "other texts are not concerned")
}

// Every page and data file belongs to a rule of the table.
func TestRuleFilesHaveRules(t *testing.T) {
	for _, pattern := range []string{"../../rewrite/rules/*.md", "testdata/rules/*"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			id := Rule(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
			require.True(t, slices.ContainsFunc(Rules(), func(r RuleInfo) bool { return r.ID == id }), "%s belongs to no rule", file)
		}
	}
}

// pageHeadings are the sections of a page, in order.
var pageHeadings = []string{"What it refuses", "Instead of", "Use", "Why it is unsound", "What it leaves alone"}

func TestRulePages(t *testing.T) {
	for _, info := range Rules() {
		t.Run(string(info.ID), func(t *testing.T) {
			page := (&Violation{Rule: info.ID}).Doc()
			require.NotEmpty(t, page, "rules/%s.md is missing", info.ID)
			title := fmt.Sprintf("# %s %s\n\nRefuses %s.\n\n## ", info.ID, info.Slug, info.Summary)
			require.True(t, strings.HasPrefix(page, title), "it must begin with:\n%s", title)
			var headings []string
			for _, s := range pageSections(page)[1:] {
				headings = append(headings, s.heading)
				require.NotEmpty(t, strings.TrimSpace(s.text), s.heading)
			}
			require.Equal(t, pageHeadings, headings)
			for _, b := range pageBlocks(t, page) {
				b.check(t, info.ID)
			}
		})
	}
	require.Empty(t, Rule("FR000").Doc())
}

type pageSection struct{ heading, text string }

func pageSections(page string) []pageSection {
	var out []pageSection
	for _, part := range strings.Split("\n"+page, "\n## ") {
		heading, text, _ := strings.Cut(part, "\n")
		out = append(out, pageSection{heading, text})
	}
	return out
}

// pageBlock is a block of code on a page. The words behind "sql" say what the
// check must answer to it: "sql refuse strict", "sql use lease", and with
// "path=a,b" for a session with that search path. A block without them, such as
// one that depends on its arguments, only has to stand there.
type pageBlock struct {
	section, language string
	words             []string
	text              string
}

// pageBlocks returns the blocks of a page: one or more under "Instead of", and
// under "Use".
func pageBlocks(t *testing.T, page string) []pageBlock {
	var out []pageBlock
	for _, s := range pageSections(page) {
		parts := strings.Split("\n"+s.text, "\n```")
		require.Equal(t, 1, len(parts)%2, "%s: a block is not closed", s.heading)
		for i := 1; i < len(parts); i += 2 {
			info, text, _ := strings.Cut(parts[i], "\n")
			words := strings.Fields(info)
			require.NotEmpty(t, words, "%s: a block without a language", s.heading)
			out = append(out, pageBlock{s.heading, words[0], words[1:], text})
		}
	}
	for _, section := range []string{"Instead of", "Use"} {
		require.True(t, slices.ContainsFunc(out, func(b pageBlock) bool { return b.section == section }), "%s has no block", section)
	}
	return out
}

func (b pageBlock) check(t *testing.T, rule Rule) {
	switch b.language {
	case "go":
		formatted, err := format.Source([]byte(b.text))
		require.NoError(t, err, b.text)
		require.Equal(t, string(formatted), b.text, "gofmt")
	case "sql":
		b.checkSQL(t, rule)
	default:
		require.Equal(t, "text", b.language)
	}
}

func (b pageBlock) checkSQL(t *testing.T, rule Rule) {
	if len(b.words) == 0 {
		require.NotEqual(t, "Use", b.section, "what to use is checked, so it is marked: %s", b.text)
		return
	}
	require.GreaterOrEqual(t, len(b.words), 2, "the answer, then the mode")
	mode, err := ParseMode(b.words[1])
	require.NoError(t, err)
	p := pagePolicy(t, mode)
	for _, w := range b.words[2:] {
		path, ok := strings.CutPrefix(w, "path=")
		require.True(t, ok, w)
		p = p.ForPath(strings.Split(path, ",")...)
	}
	err = p.Plan(b.text).Refusal()
	switch b.words[0] {
	case "use":
		require.NoError(t, err, b.text)
	case "refuse":
		require.Equal(t, "Instead of", b.section)
		requireRule(t, rule, err, b.text)
	default:
		t.Fatalf("unknown word %q", b.words[0])
	}
}

// pagePolicy protects the table that the pages are about: orders, with the
// view open_orders over it, rows that go with their row of customers, a trigger
// on payments and a function close_order that write it.
func pagePolicy(t *testing.T, mode Mode) *Policy {
	p, err := NewPolicy(Table{Name: "orders", Mode: mode, Key: []string{"id"}})
	require.NoError(t, err)
	orders := Name{"public", "orders"}
	p, err = p.WithClosure(Closure{
		Views:     []Name{{"public", "open_orders"}},
		Cascades:  []Cascade{{Name: Name{"public", "customers"}, Into: orders, Delete: true}},
		Writers:   []Writer{{Name: Name{"public", "payments"}, Into: orders, Events: []string{"INSERT"}}},
		Functions: []Name{{"public", "close_order"}},
	})
	require.NoError(t, err)
	return p.ForPath("app", "public")
}

// Every rule has a class. The hundreds of the ids follow the classes, so that a new
// rule gets an id which doesn't mislead.
func TestRuleClasses(t *testing.T) {
	hundreds := map[Class]string{UnprovenWrite: "FR1", NotGuardable: "FR2", WrongArgument: "FR3", NotAnalysable: "FR90", WrongDirective: "FR91"}
	for _, info := range Rules() {
		require.NotEmpty(t, hundreds[info.Class], info.ID)
		require.True(t, strings.HasPrefix(string(info.ID), hundreds[info.Class]), info.ID)
		require.Equal(t, info.Class == NotGuardable || info.Class == NotAnalysable, info.LeavesState, info.ID)
		require.Equal(t, info.Class, info.ID.Class())
		require.Equal(t, info.LeavesState, info.ID.LeavesState())
	}
	require.Zero(t, Rule("FR000").Class())
	require.True(t, Rule("FR000").LeavesState())
}
