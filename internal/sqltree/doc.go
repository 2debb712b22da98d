// Package sqltree makes the tree of a text out of what the parser writes, and checks it
// against the grammar: a tree with anything in it that the grammar doesn't have is an
// error. Nodes are read by the names of their fields.
package sqltree
