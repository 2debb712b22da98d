// Package wordsearch finds words in the text of SQL without PostgreSQL's lexer, which
// takes longer than its parser: those of a [Table], to clear a text that has none of
// them, and all of them by [EachWord].
package wordsearch
