// Package sqlxapp does what programs do with sqlx: they write their own SQL.
package sqlxapp
