// Package sqlcdb is written as sqlc generates it from query.sql with sqlc.yaml:
// the Go type of the token's column is tokenctx.Token.
package sqlcdb

import (
	"context"
	"database/sql"
)

// DBTX is what queries run on.
type DBTX interface {
	ExecContext(context.Context, string, ...interface{}) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...interface{}) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...interface{}) *sql.Row
}

// New returns the queries on a handle or a transaction.
func New(db DBTX) *Queries {
	return &Queries{db: db}
}

// Queries are those of query.sql.
type Queries struct {
	db DBTX
}

// WithTx returns the queries on a transaction.
func (q *Queries) WithTx(tx *sql.Tx) *Queries {
	return &Queries{
		db: tx,
	}
}
