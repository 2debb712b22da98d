// Package riverapp does what programs do with River on database/sql: it
// migrates, inserts jobs, works them and looks at them.
package riverapp
