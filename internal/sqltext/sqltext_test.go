package sqltext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

func TestEnds(t *testing.T) {
	type result struct {
		end int
		ok  bool
	}
	quoted := func(text string, hasEscapes bool) result {
		end, ok := sqltext.QuotedEnd(text, hasEscapes)
		return result{end, ok}
	}
	comment := func(text string) result {
		end, ok := sqltext.CommentEnd(text)
		return result{end, ok}
	}
	require.Equal(t, result{3, true}, quoted(`'a' b`, false))
	require.Equal(t, result{6, true}, quoted(`'a''b' c`, false))
	require.Equal(t, result{4, true}, quoted(`'a\' b'`, false))
	require.Equal(t, result{7, true}, quoted(`'a\' b'`, true))
	require.Equal(t, result{7, true}, quoted(`'a'' b'`, true))
	require.Equal(t, result{5, false}, quoted(`'a'' `, false))
	require.Equal(t, result{1, false}, quoted(`'`, true))
	require.Equal(t, result{3, false}, quoted(`'a\`, true))
	require.Equal(t, result{5, true}, quoted(`"a'b" c`, false))
	require.Equal(t, result{4, true}, comment(`/**/ 1`))
	require.Equal(t, result{17, true}, comment(`/* a /* b */ c */ 1`[:17]))
	require.Equal(t, result{12, false}, comment(`/* a /* b */`))
	require.Equal(t, result{3, false}, comment(`/*/`))
}

func TestDollarTag(t *testing.T) {
	for text, tag := range map[string]string{`$$a$$`: `$$`, `$tag$`: `$tag$`, `$größe$ x`: `$größe$`, `$тег$`: `$тег$`, `$1$`: ``, `$a b$`: ``, `$`: ``, `a$$`: ``, ``: ``} {
		require.Equal(t, tag, sqltext.DollarTag(text), text)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{`a\nb\'c\\`: "a\nb'c\\", `\x41\101\u0042\U00000043`: "AABC", `\x4`: "\x04", `\xg`: "xg", `\u12`: "u12", `\é`: "é", `a\`: "a", `\377`: "\xff"} {
		require.Equal(t, want, sqltext.Unescape(text), text)
	}
	require.Equal(t, "data!", sqltext.UnescapeUnicode(`d\0061t\+000061!`, `\`))
	require.Equal(t, `a\!`, sqltext.UnescapeUnicode(`!0061\!!`, `!`))
}

func TestScanPrefix(t *testing.T) {
	tokens, stop := sqltext.ScanPrefix("SELECT 1; SELECT 'open")
	require.Len(t, tokens, 4)
	require.Equal(t, &sqltext.Stop{Offset: 17, Reason: "unterminated quoted string"}, stop)
	_, stop = sqltext.ScanPrefix("SELECT 1\x00")
	require.Equal(t, &sqltext.Stop{Offset: 8, Reason: "a NUL byte"}, stop)
	_, stop = sqltext.ScanPrefix("SELECT " + strings.Repeat("+", 65) + "\x00")
	require.Equal(t, &sqltext.Stop{Offset: 7, Reason: "a run of too many plus signs"}, stop)
	_, stop = sqltext.ScanPrefix("SELECT 1")
	require.Nil(t, stop)
}

func TestLines(t *testing.T) {
	lines := sqltext.NewLines("a\nbc\n")
	require.Equal(t, 3, lines.Count())
	line, column := lines.Place(3)
	require.Equal(t, []int{2, 2}, []int{line, column})
	require.Equal(t, 4, sqltext.ByteOffset("größe", 3)-sqltext.ByteOffset("größe", 0))
}

// What is told of a text without its tokens is never less than what they tell.
func TestBounds(t *testing.T) {
	operands := rapid.SampledFrom([]string{"a", "1", "(b + 1)", "(((c)))", "CASE WHEN a THEN b ELSE (c) END", "d BETWEEN 1 AND 2", "'('", `"case"`, "t.end", "$1", "ARRAY[1, (2)]", "f(a, b)", "/* ( */ e", "-- )\n1"})
	operators := rapid.SampledFrom([]string{" + ", " AND ", " OR ", ", ", " = ", " -"})
	rapid.Check(t, func(rt *rapid.T) {
		text := "SELECT " + operands.Draw(rt, "first")
		for range rapid.IntRange(0, 20).Draw(rt, "more") {
			text += operators.Draw(rt, "operator") + operands.Draw(rt, "operand")
		}
		l := sqltext.Text{SQL: text}
		tokens, err := l.Tokens()
		require.NoError(rt, err)
		require.LessOrEqual(rt, sqltext.Depth(tokens), sqltext.CountMarks(text), text)
		require.False(rt, slices.ContainsFunc(l.Significant(), parser.Token.IsComment))
		if !sqltext.MaySetColumns(text) {
			require.False(rt, sqltext.CopiesColumns(l.Significant()), text)
		}
	})
}
