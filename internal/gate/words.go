package gate

import "regexp"

// RunsLater tells texts that may run what an earlier text has prepared or put off,
// or that take something back.
var RunsLater = regexp.MustCompile(`(?i)\b(?:execute|fetch|move|constraints|rollback|abort|prepared)\b`)

// PreparesLater tells texts whose statements run with later ones.
var PreparesLater = regexp.MustCompile(`(?i)\b(?:prepare|declare)\b`)

// SetsTransaction tells a text that has to come before the transaction's first query.
var SetsTransaction = regexp.MustCompile(`(?i)^\s*set\s+transaction\b`)
