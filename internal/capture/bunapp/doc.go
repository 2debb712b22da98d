// Package bunapp does what programs do with bun, which writes all values into
// the text of the statement.
package bunapp
