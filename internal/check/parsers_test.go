//go:build cgo && !race

// The race detector finds nothing in C and in WebAssembly, and makes what compiles the
// latter slow.

package check

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/parser/parsertest"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// The parser of programs without cgo says the same of the statements of testdata, also
// cut short and with another in front.
func TestParsersAgree(t *testing.T) {
	texts := corpus(t)
	files, err := filepath.Glob("testdata/rules/*.jsonl")
	require.NoError(t, err)
	for _, file := range files {
		for _, s := range readStatements(t, file) {
			texts = append(texts, s.SQL)
		}
	}
	for i, sql := range texts {
		requireSameParsers(t, sql)
		requireSameParsers(t, sql[:len(sql)*(i%7)/7])
		requireSameParsers(t, "SELECT 1"+[]string{"", "\n", "--", "/*", "'", "$", "U&"}[i%7]+sql)
	}
}

// Generated statements, whole and with some of their bytes replaced. -rapid.checks says
// how many.
func TestParsersAgreeGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sql := genStatement.Draw(t, "statement").sql
		if rapid.Bool().Draw(t, "damaged") {
			at := rapid.IntRange(0, len(sql)).Draw(t, "at")
			end := rapid.IntRange(at, min(len(sql), at+8)).Draw(t, "end")
			sql = sql[:at] + rapid.SampledFrom(damages).Draw(t, "damage") + sql[end:]
		}
		requireSameParsers(t, sql)
	})
}

var damages = []string{"", " ", "'", `"`, "$$", "/*", "--", "(", ")", ";", "\\", "U&'\\0061'", "E'\\x'", "é", "\xff", "1e", "0x1F", "1_000", "::", "$1", "$0", "b'2'", "::int[3]", "?", "@>"}

func TestParsersAgreeOnBounds(t *testing.T) {
	n := sqltext.MaxNesting / 4
	for name, sql := range map[string]string{
		"empty":           "",
		"nothing":         " ; -- nothing",
		"nested operator": "SELECT 1" + strings.Repeat("+1", n),
		"nested call":     "SELECT " + strings.Repeat("f(", n) + "1" + strings.Repeat(")", n),
		"nested query":    "SELECT " + strings.Repeat("(SELECT ", n) + "1" + strings.Repeat(")", n),
		"too nested":      "SELECT " + strings.Repeat("(", 12_000) + "1" + strings.Repeat(")", 12_000),
		"a long list":     "SELECT 1 IN (1" + strings.Repeat(", $1", 20_000) + ")",
		"a long literal":  "SELECT '" + strings.Repeat("é", 500_000) + "'",
		"a long name":     "SELECT " + strings.Repeat("é", 100),
		"numbers":         "SELECT 2147483647, 2147483648, 1e400, .5, 0x7fffffff, 0x80000000, 0o17, 0b1, 1_0, $2147483647",
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, parsertest.Difference(sql, len(sql) > 1000)) })
	}
}

// requireSameParsers compares what the parsers say of a text. A text that has to be
// refused before it comes to a parser is left out.
func requireSameParsers(t require.TestingT, sql string) {
	if fault := sqltext.Check(sql); fault != nil && fault.Kind != sqltext.NotUTF8 {
		return
	}
	if _, err := parser.ParseJSON(sql); err != nil && strings.HasPrefix(err.Error(), "parameter number too large") {
		return
	}
	require.Empty(t, parsertest.Difference(sql, sqltext.IsTooDeep(sql, sqltext.MaxDeparseNesting)), "%q", sql)
}
