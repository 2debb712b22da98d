package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// EndsTransaction reports whether a text may end the transaction that it is sent
// in: it has a COMMIT, a ROLLBACK, END or ABORT, with AND CHAIN or without, or a
// PREPARE TRANSACTION. ROLLBACK TO a savepoint doesn't end it, and code that is
// called can't.
func EndsTransaction(sql string) bool {
	if !hasEndingWord(sql) {
		return false
	}
	if sqltext.Check(sql) != nil {
		return true
	}
	a := workspaces.Get().(*workspace)
	defer a.release()
	stmts, err := a.Parse(sql)
	if err != nil {
		return true // the server may understand it
	}
	return slices.ContainsFunc(stmts, func(raw *sqltree.Node) bool {
		stmt := raw.Get("stmt")
		return stmt.Is("TransactionStmt") && slices.Contains(endings, stmt.Str("kind"))
	})
}

// endings are the kinds of a TransactionStmt that end a transaction.
var endings = []string{"TRANS_STMT_COMMIT", "TRANS_STMT_ROLLBACK", "TRANS_STMT_PREPARE", "TRANS_STMT_COMMIT_PREPARED", "TRANS_STMT_ROLLBACK_PREPARED"}

// hasEndingWord reports whether a text has a word without which no statement ends
// a transaction.
func hasEndingWord(sql string) bool {
	start := 0
	for i := 0; i <= len(sql); i++ {
		if i < len(sql) && sqltext.IsWordByte(sql[i]) {
			continue
		}
		switch word := sql[start:i]; len(word) {
		case 3:
			if strings.EqualFold(word, "end") {
				return true
			}
		case 5:
			if strings.EqualFold(word, "abort") {
				return true
			}
		case 6:
			if strings.EqualFold(word, "commit") {
				return true
			}
		case 7:
			if strings.EqualFold(word, "prepare") {
				return true
			}
		case 8:
			if strings.EqualFold(word, "rollback") {
				return true
			}
		}
		start = i + 1
	}
	return false
}
