package reach

import (
	"bufio"
	sqldriver "database/sql/driver"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

const casesDir = "../check/testdata/cases/"

// casesTables are protected in casesDir's schema.
func casesTables(mode check.Mode) []check.Table {
	tables := []check.Table{
		{Schema: "public", Name: "protected_rows"}, {Schema: "app", Name: "accounts"}, {Schema: "public", Name: "accounts_child"},
		{Schema: "public", Name: "metrics"}, {Schema: "public", Name: "Order Items", TokenColumn: "fence"},
	}
	for i := range tables {
		tables[i].Mode, tables[i].Key = mode, []string{"id"}
		if tables[i].Name == "metrics" {
			tables[i].Key = []string{"id", "day"}
		}
	}
	return tables
}

// Every statement that is checked by a closure given as data gets the same
// answer by the one that the catalog gives.
func TestCasesByTheCatalog(t *testing.T) {
	schema, err := os.ReadFile(casesDir + "schema.sql")
	require.NoError(t, err)
	var tables []Table
	for _, table := range casesTables(check.Strict) {
		tables = append(tables, Table{Schema: table.Schema, Name: table.Name, TokenColumn: table.TokenColumn, IsChosen: true,
			IssuedBy: check.Name{Schema: "public", Name: "write_epoch"}})
	}
	closure := readingOf(t, string(schema), tables).Closure(tables, nil)
	policies := make(map[string]*check.Policy)
	for _, mode := range []check.Mode{check.Strict, check.Lease} {
		policies[mode.String()] = policyOf(t, casesTables(mode), closure)
	}
	f, err := os.Open(casesDir + "statements.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines, needing := bufio.NewScanner(f), 0
	var either strings.Builder
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s struct {
			ID, SQL, Mode, Expect, Why, Needs string
			Args                              []any
			Token                             tokenctx.Token
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		args := make([]sqldriver.NamedValue, len(s.Args))
		for i, a := range s.Args {
			if f, ok := a.(float64); ok {
				a = int64(f)
			}
			args[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: a}
		}
		plan := policies[s.Mode].Plan(s.SQL)
		err := plan.Refusal()
		if err == nil {
			_, err = plan.BindAll(tokenctx.With(t.Context(), s.Token), args)
		}
		switch s.Expect {
		case "allow":
			require.NoError(t, err, "%s: %s: %s", s.ID, s.Why, s.SQL)
		case "refuse":
			require.ErrorIs(t, err, check.ErrRefused, "%s: %s: %s", s.ID, s.Why, s.SQL)
		case "either":
			verdict := "allowed"
			if err != nil {
				require.ErrorIs(t, err, check.ErrRefused, "%s: %s: %s", s.ID, s.Why, s.SQL)
				verdict = "refused"
			}
			fmt.Fprintf(&either, "%s %s\n", s.ID, verdict)
		default:
			require.Failf(t, "unknown expectation", "%s: %q: choose allow, refuse or either", s.ID, s.Expect)
		}
		if s.Needs == "catalog" {
			needing++
		}
	}
	require.NoError(t, lines.Err())
	require.NotZero(t, needing)
	pinned, err := os.ReadFile(casesDir + "either.golden")
	require.NoError(t, err)
	require.Equal(t, string(pinned), either.String())
}
