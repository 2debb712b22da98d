package check

import "github.com/fencerow/fencerow/internal/sqltext"

// PlainPlaceholders reports whether a client that writes the arguments into a
// text itself is certain to find its placeholders where PostgreSQL does: "$"
// and backslashes stand in placeholders, comments, and strings and quoted names
// that every lexer reads alike. Another text could be changed by an argument
// into one that was never checked.
func PlainPlaceholders(sql string) bool { return sqltext.ArePlaceholdersPlain(sql) }
