package sqltext

import (
	"errors"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// Stop is the place of a text from which on it can't be scanned.
type Stop struct {
	Offset int
	Reason string // without anything of the text itself, which may be a literal
}

// ScanPrefix splits a text into tokens up to the first place that can't be scanned,
// which it returns with them. It is nil if the whole text can be scanned.
func ScanPrefix(text string) ([]parser.Token, *Stop) {
	var stop *Stop
	if at, kind := FindUnscannable(text); at >= 0 {
		text, stop = text[:at], &Stop{at, map[FaultKind]string{NulByte: "a NUL byte", LongOperator: "a run of too many plus signs"}[kind]}
	}
	for {
		tokens, err := parser.Scan(text)
		if err == nil {
			return tokens, stop
		}
		var perr *parser.Error
		if !errors.As(err, &perr) || perr.Character < 1 {
			return nil, &Stop{0, "the lexer failed"}
		}
		at := ByteOffset(text, perr.Character-1)
		reason, _, _ := strings.Cut(perr.Message, " at or near ") // what is there may be a literal
		if at >= len(text) {
			return nil, &Stop{0, reason}
		}
		text, stop = text[:at], &Stop{at, reason}
	}
}
