package sqltext

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/parser"
)

// MaxNesting and MaxDeparseNesting bound the depth of the tree a text may make. The parser has no
// guard for its own stack: "1+1+..." of 47 KB overflows it, which ends the
// process with a signal that Go cannot recover from.
//
// A level takes 140 bytes of C stack where a tree is made, and 2,000 where it is
// written as a text again. Some C libraries give little of it.
var (
	MaxNesting        = NestingFor(parser.StackSize(), 256)
	MaxDeparseNesting = NestingFor(parser.StackSize(), 2600)
)

// NestingLimit is the deepest tree that any stack is trusted with, in levels.
const NestingLimit = 4000

const (
	stackReserve = 64 << 10 // for what runs beside the parser
	minStack     = 128 << 10
)

// NestingFor returns how many levels a stack of so many bytes takes, at most
// [NestingLimit].
func NestingFor(stackBytes, bytesPerLevel int) int {
	return min(NestingLimit, (max(stackBytes, minStack)-stackReserve)/bytesPerLevel)
}

// MaxLength bounds the length of a text that has to be parsed, in bytes.
const MaxLength = 2 << 20

// maxRestarts bounds how often the lexer has to start anew in one run of
// operator characters. It reads the run again for each nested comment and for
// each "+" at its end, which takes hours for a run of a megabyte.
const maxRestarts = 64

// Fault is the reason why a text must not reach the parser or the scanner.
type Fault struct {
	Kind    FaultKind
	Message string // what is wrong and what to do
}

// FaultKind tells faults apart.
type FaultKind int

// The kinds of faults.
const (
	NulByte FaultKind = iota + 1
	NotUTF8
	TooLong
	LongOperator  // a run of operator characters on which the scanner is slow
	TooManyCopies // lists of columns that stand in the tree many times
	TooDeep
)

// Check returns the fault for which a text must not reach the parser, nil if
// there is none.
func Check(sql string) *Fault {
	l := Text{SQL: sql}
	return l.Check(l.IsTooDeep)
}

// Check is the function Check for a text whose tokens may be known. The function tells
// whether the tree may be deeper than a limit.
func (l *Text) Check(tooDeep func(limit int) bool) *Fault {
	sql := l.SQL
	switch {
	case strings.IndexByte(sql, 0) >= 0:
		return &Fault{NulByte, "SQL text contains a NUL byte: the parser would stop there and the server would not; remove it"}
	case !utf8.ValidString(sql):
		return &Fault{NotUTF8, "SQL text is not valid UTF-8; send it as UTF-8"}
	case len(sql) > MaxLength:
		return &Fault{TooLong, fmt.Sprintf("SQL text of %d bytes is longer than the %d that are checked; split it, or send it over a plain connection", len(sql), MaxLength)}
	case findLongOperator(sql) >= 0:
		return &Fault{LongOperator, fmt.Sprintf("SQL text has more than %d comment or plus signs in one run, which the parser reads too slowly; shorten it, or pass it as an argument", maxRestarts)}
	case l.copiesColumns():
		return &Fault{TooManyCopies, "SQL text sets too many columns at once by (a, b, ...) = (...) for its length; write them one by one"}
	case tooDeep(MaxNesting):
		return &Fault{TooDeep, fmt.Sprintf("SQL text may nest deeper than %d levels, more than the parser can take; split the statement, or pass a long list as an array parameter", MaxNesting)}
	}
	return nil
}

// FindUnscannable returns the first place of a text that must not reach the scanner and
// what is wrong there, -1 if there is none.
func FindUnscannable(sql string) (offset int, kind FaultKind) {
	nul := strings.IndexByte(sql, 0)
	if nul >= 0 {
		sql = sql[:nul]
	}
	if run := findLongOperator(sql); run >= 0 {
		return run, LongOperator
	}
	return nul, NulByte
}

// findLongOperator returns where the first run of operator characters begins on which
// the scanner is slow, wherever it stands, -1 if there is none.
func findLongOperator(sql string) int {
	restarts, run := 0, 0
	for i := range len(sql) {
		switch {
		case !isOperatorByte[sql[i]]:
			restarts, run = 0, i+1
		case sql[i] == '+' || sql[i] == '*' && i > 0 && sql[i-1] == '/':
			if restarts++; restarts > maxRestarts {
				return run
			}
		}
	}
	return -1
}
