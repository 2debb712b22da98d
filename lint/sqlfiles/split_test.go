package sqlfiles

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/parser"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", " \n-- only a comment; no statement\n;;", []string{}},
		{"two, the last without an end", "SELECT 1;\nSELECT 2", []string{"SELECT 1", "SELECT 2"}},
		{"strings", `SELECT ';', E'\';', U&';', ";" FROM a; SELECT ''';'`, []string{`SELECT ';', E'\';', U&';', ";" FROM a`, `SELECT ''';'`}},
		{"comments", "SELECT /* ; /* ; */ ; */ 1 -- ;\n + 2; SELECT 3", []string{"SELECT /* ; /* ; */ ; */ 1 -- ; + 2", "SELECT 3"}},
		{"dollar quotes", "DO $a$ BEGIN; $b$;$b$ END $a$; SELECT $$;$$", []string{"DO $a$ BEGIN; $b$;$b$ END $a$", "SELECT $$;$$"}},
		{"brackets", "CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2); SELECT 3",
			[]string{"CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2)", "SELECT 3"}},
		{"BEGIN ATOMIC", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; BEGIN; SELECT 3; END;",
			[]string{"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END", "BEGIN", "SELECT 3", "END"}},
		{"goose's lines",
			"-- +goose Up\nSELECT 1\n-- +goose StatementBegin\nSELECT 2;\n-- +goose StatementEnd\n-- +goose Down\nSELECT 3;",
			[]string{"SELECT 1", "SELECT 2", "SELECT 3"}},
		{"sqlc's names", "-- name: A :one\nSELECT 1\n\n-- name: B :one\nSELECT 2", []string{"SELECT 1", "SELECT 2"}},
		{"an open bracket ends with the query", "-- name: A :one\nSELECT (1;\n-- name: B :one\nSELECT 2", []string{"SELECT (1;", "SELECT 2"}},
		{"byte order mark", "\ufeffSELECT 1", []string{"SELECT 1"}},
		{
			"psql's commands", "\\set x 'it''s\nSELECT 1 \\gset\nSELECT '\\i x' \\g\n\\i other.sql\nSELECT 2;\\echo it's\nSELECT 3 \\; SELECT 4;",
			[]string{"SELECT 1", `SELECT '\i x'`, "SELECT 2", "SELECT 3", "SELECT 4"},
		},
		{"COPY with rows", "COPY a (b) FROM stdin;\n1'\t$$\n\\N\n\\.\n\nSELECT 1;\nCOPY a FROM STDIN WITH (FORMAT csv);\n\\.\nSELECT 2;",
			[]string{"COPY a (b) FROM stdin", "SELECT 1", "COPY a FROM STDIN WITH (FORMAT csv)", "SELECT 2"}},
		{"COPY in a string is none", "SELECT 'COPY a FROM stdin;\n1\n\\.\n'; SELECT 2", []string{"SELECT 'COPY a FROM stdin; 1 \\. '", "SELECT 2"}},
		{"COPY behind a comment", "--\n-- it's data\n--\n\nCOPY a FROM stdin;\n1;2;3\n\\.\n", []string{"COPY a FROM stdin"}},
		{"variables of the environment", "-- +goose ENVSUB ON\nSELECT ${A}, ${B:-2}, ${C-3};\n-- +goose ENVSUB OFF\nSELECT 4;",
			[]string{"SELECT __A_, 2 , 3", "SELECT 4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := readFile("a.sql", tt.text, false)
			require.Equal(t, tt.want, statementsOf(f))
			require.Nil(t, f.fault)
			require.Len(t, f.code, len(f.text), "each byte stays at its place")
		})
	}
}

// Where there is nothing of psql's, goose's or sqlc's, statements end where the
// parser sees them end.
func TestSplitAgreesWithParser(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"SELECT 1", "SELECT ';'", "SELECT $$;'$$", "SELECT $a$;$$;$a$", "SELECT 1 -- ; '\n", "/* ; \" */ SELECT \";\"", "BEGIN", "END",
		"SELECT CASE WHEN true THEN 1 END",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a THEN 2 END FROM t; END", "CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2)",
		`SELECT E'\';', 'a''b;'`, "DO $$ BEGIN NULL; END $$", "", " ", "SELECT U&\"a;\\0061\"", "SELECT 'a'\n';'",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := ""
		for _, part := range rapid.SliceOfN(parts, 1, 8).Draw(rt, "parts") {
			text += part + ";"
		}
		tree, err := parser.ParseMessages(text)
		require.NoError(rt, err, text)
		f := readFile("a.sql", text, false)
		require.Nil(rt, f.fault, text)
		require.Len(rt, f.statements, len(tree), text)
		for _, s := range f.statements {
			one, err := parser.ParseMessages(f.code[f.tokens[s.first].Start:f.tokens[s.last].End])
			require.NoError(rt, err, text)
			require.Len(rt, one, 1, text)
		}
	})
}

// What psql takes out is found by a lexer of its own. Where it finds nothing, it
// has not lost its way: a command behind any code is one.
func TestPsqlLexer(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"SELECT 1", "';'", "'it''s'", `E'\'\\'`, `'\'`, "$$ \\i x $$", "$a$ '$$ \\i $a$", "-- \\i ' x\n", "/* ' /* \" */ \\i */",
		`"a""\i"`, "a$b$", "e'x'", "ee'\\'", "1e'", "U&'\\0061'", "\n", "(", ",", ";",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := ""
		for _, part := range rapid.SliceOfN(parts, 1, 8).Draw(rt, "parts") {
			text += part + " "
		}
		if _, err := parser.Scan(text); err != nil {
			return
		}
		code, found := blankPsql(text + "\n\\i other.sql\n")
		require.Equal(rt, []psqlNote{{len(text) + 1, `\i`}}, found, text)
		require.Equal(rt, text+"\n            \n", code)
	})
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name, text, reason string
		at                 string
		statements         int
	}{
		{"a string without an end", "SELECT 1;\nSELECT 'größe';\nSELECT 'open", "unterminated quoted string", "3:8 FR901", 2},
		{"a dollar quote without an end", "SELECT 1;\nDO $x$ SELECT 1;", "unterminated dollar-quoted string", "2:4 FR901", 1},
		{"a comment without an end", "SELECT 1; /* SELECT 2;", "unterminated /* comment", "1:11 FR901", 1},
		{"a NUL byte", "SELECT 1;\x00SELECT 2;", "a NUL byte", "1:10 FR901", 1},
		{"what takes the lexer hours", "SELECT 1;\nSELECT " + strings.Repeat("+", 1000), "a run of too many plus signs", "2:8 FR901", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := lintText(t, "a.sql", tt.text)
			require.Equal(t, []string{tt.at}, places(result.Findings))
			require.Equal(t, map[string]int{tt.reason: 1}, result.Unparsed)
			require.Equal(t, tt.statements, result.Statements)
			require.NotContains(t, result.Findings[0].String(), "open", "it may be a literal")
		})
	}
}
