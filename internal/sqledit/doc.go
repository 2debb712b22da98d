// Package sqledit makes edits in the text of a statement: it finds the clauses of a
// write among its tokens, since a tree doesn't say where they end, and puts texts
// there so that no two words run together.
package sqledit
