package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// noop is a driver that does nothing, by the interfaces that pgx's stdlib has. A
// write changes one row, and a query returns one.
type noop struct{}

var (
	_ driver.Driver        = noop{}
	_ driver.DriverContext = noop{}
	_ driver.Connector     = noop{}
)

func (noop) Open(string) (driver.Conn, error)               { return noopConn{}, nil }
func (noop) OpenConnector(string) (driver.Connector, error) { return noop{}, nil }
func (noop) Connect(context.Context) (driver.Conn, error)   { return noopConn{}, nil }
func (noop) Driver() driver.Driver                          { return noop{} }

type noopConn struct{}

var (
	_ driver.ConnBeginTx        = noopConn{}
	_ driver.ConnPrepareContext = noopConn{}
	_ driver.ExecerContext      = noopConn{}
	_ driver.QueryerContext     = noopConn{}
	_ driver.NamedValueChecker  = noopConn{}
	_ driver.SessionResetter    = noopConn{}
	_ driver.Pinger             = noopConn{}
	_ driver.StmtExecContext    = noopStmt{}
	_ driver.StmtQueryContext   = noopStmt{}
)

func (noopConn) Prepare(string) (driver.Stmt, error)                          { return noopStmt{}, nil }
func (noopConn) PrepareContext(context.Context, string) (driver.Stmt, error)  { return noopStmt{}, nil }
func (noopConn) Begin() (driver.Tx, error)                                    { return noopTx{}, nil }
func (noopConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return noopTx{}, nil }
func (noopConn) Close() error                                                 { return nil }
func (noopConn) Ping(context.Context) error                                   { return nil }
func (noopConn) ResetSession(context.Context) error                           { return nil }
func (noopConn) CheckNamedValue(*driver.NamedValue) error                     { return nil }
func (noopConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (noopConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &noopRows{}, nil
}

type noopStmt struct{}

var errNoContext = errors.New("noop: called without a context")

func (noopStmt) Close() error                               { return nil }
func (noopStmt) NumInput() int                              { return -1 }
func (noopStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }
func (noopStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errNoContext }
func (noopStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (noopStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return &noopRows{}, nil
}

type noopTx struct{}

func (noopTx) Commit() error   { return nil }
func (noopTx) Rollback() error { return nil }

var noopColumns = []string{"id"}

// noopRows are one row.
type noopRows struct{ read bool }

func (*noopRows) Columns() []string { return noopColumns }
func (*noopRows) Close() error      { return nil }

func (r *noopRows) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, dest[0] = true, int64(17)
	return nil
}

func TestNoop(t *testing.T) {
	db := sql.OpenDB(noop{})
	require.NoError(t, db.PingContext(t.Context()))
	result, err := db.ExecContext(t.Context(), "anything", struct{ any }{"is taken"})
	require.NoError(t, err)
	changed, err := result.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 1, changed)
	rows, err := db.QueryContext(t.Context(), "anything")
	require.NoError(t, err)
	var id int64
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&id))
	require.EqualValues(t, 17, id)
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	stmt, err := db.PrepareContext(t.Context(), "anything")
	require.NoError(t, err)
	_, err = stmt.ExecContext(t.Context(), 1, 2)
	require.NoError(t, err)
	require.NoError(t, stmt.QueryRowContext(t.Context()).Scan(&id))
	require.NoError(t, stmt.Close())
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, db.Close())
}
