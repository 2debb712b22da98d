package sqledit

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// Arm is one SELECT, VALUES or TABLE of a query, as tokens: its key word, and what ends
// it.
type Arm struct{ First, End int }

// setOperators join the arms of a query.
var setOperators = []parser.TokenKind{parser.UNION, parser.INTERSECT, parser.EXCEPT}

// armWords begin an arm.
var armWords = []parser.TokenKind{parser.SELECT, parser.VALUES, parser.TABLE}

// FindArms returns the arms of the query between two tokens in their order, each of which
// may stand in brackets and behind a WITH. It reports false if it doesn't find its way.
func (t *Text) FindArms(first, end int) (arms []Arm, ok bool) {
	depth, isExpected := 0, true
	closeArm := func(i int) {
		if last := len(arms) - 1; last >= 0 {
			arms[last].End = min(arms[last].End, i)
		}
	}
	for i := first; i < end; i++ {
		switch kind := t.Tokens[i].Kind; {
		case isExpected && kind == parser.LPAREN:
			depth++
		case isExpected && slices.Contains(armWords, kind):
			arms, isExpected = append(arms, Arm{i, end}), false
		case isExpected && kind == parser.WITH:
			if i = t.skipWith(i, end) - 1; i < 0 {
				return nil, false
			}
		case isExpected:
			return nil, false
		case kind == parser.LPAREN:
			if i = t.FindClosing(i); i < 0 {
				return nil, false
			}
		case kind == parser.RPAREN:
			depth--
			closeArm(i)
		case slices.Contains(setOperators, kind) && !t.IsAt(i-1, parser.PERIOD) && !t.IsAt(i-1, parser.AS):
			closeArm(i)
			isExpected = true
			if t.IsAt(i+1, parser.ALL) || t.IsAt(i+1, parser.DISTINCT) {
				i++
			}
		}
	}
	return arms, depth == 0 && !isExpected
}

// skipWith returns the token behind the WITH that begins at the given one, -1 if it isn't
// found.
func (t *Text) skipWith(at, end int) int {
	at++
	if at < end && strings.EqualFold(t.SQL[t.Tokens[at].Start:t.Tokens[at].End], "recursive") {
		at++
	}
	for {
		at++ // the name
		if t.IsAt(at, parser.LPAREN) {
			at = t.FindClosing(at) + 1
		}
		if !t.IsAt(at, parser.AS) {
			return -1
		}
		for at++; at < end && !t.IsAt(at, parser.LPAREN); { // NOT MATERIALIZED
			at++
		}
		if at = t.FindClosing(at) + 1; at == 0 || at >= end {
			return -1
		}
		if !t.IsAt(at, parser.COMMA) {
			return at
		}
		at++
	}
}
