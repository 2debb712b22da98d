package check

import (
	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// checkFolding refuses a name beyond ASCII without quotes where the server may take
// it for another.
func (p *Policy) checkFolding(l *sqltext.Text) *Violation {
	sql := l.SQL
	if !p.closure.FoldsNames || !p.quick.beyond || sqltext.IsASCII(sql) {
		return nil
	}
	tokens, err := l.Tokens()
	if err != nil {
		return nil // the parser fails on it too
	}
	for _, t := range tokens {
		if p.mayFold(sql, t) {
			return &Violation{Rule: BadText, offset: t.Start, Message: "SQL text has a name beyond ASCII without quotes or of more than 63 bytes, and the encoding of the database is not UTF8, so it may take the name for another: write it in quotes, as it is stored, and over a plain connection if it is that long"}
		}
	}
	return nil
}

// mayFold reports whether the server may take a token for another name than the parser: it
// folds letters, and cuts names by their length, in its own encoding.
func (p *Policy) mayFold(sql string, t parser.Token) bool {
	if !p.closure.FoldsNames || !p.quick.beyond || t.Kind != parser.IDENT || sqltext.IsASCII(sql[t.Start:t.End]) {
		return false
	}
	return sql[t.Start] != '"' || t.End-t.Start > sqltext.MaxName
}
