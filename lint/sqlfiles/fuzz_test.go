package sqlfiles

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// Whatever a file holds, it is read without a panic, and findings are in it.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"-- name: A :exec\nUPDATE orders SET a = @a, b=? WHERE c = sqlc.arg(c) -- fencerow:ignore FR101 x\n;",
		"-- +goose ENVSUB ON\n-- +goose Up\nDO $a$ BEGIN UPDATE orders SET a = ${A:-1} RETURNING b INTO c; END $a$;",
		"COPY orders FROM stdin;\n1\t2\n\\.\n\\i x\nSELECT '\\' \\gset\n", "CREATE FUNCTION f() BEGIN ATOMIC DELETE FROM orders; END;",
		"\ufeffSELECT U&'\\0061' UESCAPE '!', E'\\'', \"a\"\"b\" /* /* */ */ -- x", "SELECT 'ä' ? ?;\x00", "TRUNCATE orders;$$", "\\", "/*", "--",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string, migration bool) {
		l := &linter{Config: Config{Policy: policy}, result: &Result{Unparsed: map[string]int{}}}
		l.lintText("a.sql", text, migration)
		file := readFile("a.sql", text, migration)
		require.Len(t, file.code, len(file.text))
		for _, finding := range l.result.Findings {
			require.LessOrEqual(t, finding.Line, file.lines.Count())
			require.Positive(t, finding.Line)
			require.Positive(t, finding.Column)
			require.LessOrEqual(t, file.lines.Start(finding.Line)+finding.Column-1, len(file.text))
			require.NotEmpty(t, finding.String())
		}
	})
}
