package check

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// statement is one line of testdata/cases/statements.jsonl.
type statement struct {
	ID, Class, SQL, Mode, Expect, Why, Needs string
	Args                                     []any `json:"args"`
	Token                                    int64
}

func readStatements(t testing.TB, file string) []statement {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var out []statement
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s statement
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		out = append(out, s)
	}
	require.NoError(t, lines.Err())
	return out
}

// casesPolicy protects what testdata/cases/schema.sql says.
func casesPolicy(t testing.TB, mode Mode) *Policy {
	t.Helper()
	p, err := NewPolicy(
		Table{Name: "protected_rows", Mode: mode, Key: []string{"id"}},
		Table{Schema: "app", Name: "accounts", Mode: mode, Key: []string{"id"}},
		Table{Name: "accounts_child", Mode: mode, Key: []string{"id"}},
		Table{Name: "metrics", Mode: mode, Key: []string{"id", "day"}},
		Table{Name: "Order Items", TokenColumn: "fence", Mode: mode, Key: []string{"id"}},
	)
	require.NoError(t, err)
	p, err = p.WithClosure(Closure{
		Relatives: []Relative{
			{Name{"public", "metrics_1"}, Name{"public", "metrics"}},
			{Name{"public", "metrics_2"}, Name{"public", "metrics"}},
			{Name{"public", "rows_inh"}, Name{"public", "protected_rows"}},
		},
		Views:            []Name{{"public", "v_rows"}, {"public", "v_shadow"}},
		Cascades:         []Cascade{{Name: Name{"app", "accounts"}, Into: Name{"public", "accounts_child"}, Delete: true, Truncate: true}},
		Functions:        []Name{{"public", "bump_row"}, {"public", "bump_proc"}},
		TriggerFunctions: []Name{{"public", "audit_noop"}},
		Sequences:        []Name{{"public", "write_epoch"}},
		Namesakes:        []Namesake{{Name{"public", "accounts"}, namesakeOIDs["accounts"], true}, {Name{"other", "protected_rows"}, namesakeOIDs["protected_rows"], true}},
		HasComparisons:   true, // other.<
	})
	require.NoError(t, err)
	return p.ForPath("postgres", "public")
}

// namesakeOIDs are those of the unprotected tables of a protected name, in the
// database of the differential tests.
var namesakeOIDs = map[string]uint32{}

// answer plans and binds a statement as the driver would.
func answer(p *Policy, s statement) error {
	plan := p.Plan(s.SQL)
	if err := plan.Refusal(); err != nil {
		return err
	}
	args := make([]driver.NamedValue, len(s.Args))
	for i, a := range s.Args {
		if f, ok := a.(float64); ok {
			a = int64(f)
		}
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	_, err := plan.BindAll(tokenctx.With(context.Background(), tokenctx.Token(s.Token)), args)
	return err
}

// eitherGolden has the verdicts of the cases where both would be right, so that a change
// is seen. Package driver's tests read it, too.
const eitherGolden = "testdata/cases/either.golden"

func TestCases(t *testing.T) {
	pinned, err := os.ReadFile(eitherGolden)
	require.NoError(t, err)
	var either strings.Builder
	for _, s := range readStatements(t, "testdata/cases/statements.jsonl") {
		t.Run(s.ID, func(t *testing.T) {
			mode, err := ParseMode(s.Mode)
			require.NoError(t, err)
			err = answer(casesPolicy(t, mode), s)
			switch s.Expect {
			case "allow":
				require.NoError(t, err, "%s: %s", s.Why, s.SQL)
			case "refuse":
				require.ErrorIs(t, err, ErrRefused, "%s: %s", s.Why, s.SQL)
			case "either":
				verdict := "allowed"
				if err != nil {
					require.ErrorIs(t, err, ErrRefused, "%s: %s", s.Why, s.SQL)
					verdict = "refused"
				}
				line := s.ID + " " + verdict + "\n"
				either.WriteString(line)
				require.True(t, *update || strings.Contains("\n"+string(pinned), "\n"+line), "%s is another verdict than %s has: run go test ./internal/check -run TestCases -update, and read the difference", verdict, eitherGolden)
			default:
				require.Failf(t, "unknown expectation", "%q: choose allow, refuse or either", s.Expect)
			}
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(eitherGolden, []byte(either.String()), 0o600))
	}
}
