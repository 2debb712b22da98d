// Package goquapp does what programs do with goqu, which writes values into
// the text unless it is asked to bind them.
package goquapp
