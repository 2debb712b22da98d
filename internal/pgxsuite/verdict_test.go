package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	list := []skip{{name: "TestA", reason: "not built yet", says: "no pool"}}
	tests := []struct {
		name     string
		plain    string
		got      result
		test     string
		passed   int
		skipped  int
		problems string
	}{
		{name: "both pass", plain: "pass", got: result{outcome: "pass"}, test: "TestB", passed: 1},
		{name: "both skip", plain: "skip", got: result{outcome: "skip"}, test: "TestB", skipped: 1},
		{name: "only fencerow fails", plain: "pass", got: result{"fail", "oops"}, test: "TestB", problems: "through it: TestB fails\n    oops"},
		{name: "only fencerow skips", plain: "pass", got: result{outcome: "skip"}, test: "TestB", problems: "is skipped, but passes through pgx alone"},
		{name: "not run", plain: "pass", test: "TestB", problems: "did not run to its end"},
		{name: "a listed one fails", plain: "pass", got: result{"fail", "panic: no pool"}, test: "TestA", skipped: 1},
		{name: "a listed one panics", plain: "pass", got: result{"", "panic: no pool"}, test: "TestA/exec", skipped: 1},
		{name: "a listed one passes", plain: "pass", got: result{"pass", "no pool"}, test: "TestA", passed: 1, problems: "passes, but skips.go lists it"},
		{name: "a listed one fails otherwise", plain: "pass", got: result{"fail", "oops"}, test: "TestA", problems: `does not fail with "no pool"`},
		{name: "a like name is not listed", plain: "pass", got: result{"fail", "no pool"}, test: "TestAB", problems: "TestAB fails"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compare("through it", results{tt.test: {outcome: tt.plain}}, results{tt.test: tt.got}, list)
			require.Equal(t, []int{tt.passed, 1 - tt.passed - tt.skipped, tt.skipped}, []int{got.passed, got.failed, got.skipped})
			if tt.problems == "" {
				require.Empty(t, got.problems)
				return
			}
			require.Len(t, got.problems, 1)
			require.Contains(t, got.problems[0], tt.problems)
		})
	}
}

func TestBaseline(t *testing.T) {
	got := baseline("pgx", results{"TestA": {}, "TestA/x": {outcome: "pass"}, "TestB": {outcome: "skip"}, "TestC": {"fail", "oops"}})
	require.Equal(t, []int{1, 1, 1}, []int{got.passed, got.failed, got.skipped})
	require.Equal(t, []string{"pgx: TestC fails without fencerow\n    oops"}, got.problems)
}
