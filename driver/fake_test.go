package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"sync"
)

// fake is a driver without a server that records what reaches it.
type fake struct {
	mu    sync.Mutex
	calls []fakeCall
	rows  [][]sqldriver.Value // what a query returns
	count int64               // the rows that an Exec affects
	quiet bool                // nothing is recorded
}

type fakeCall struct {
	sql  string
	args []any
}

func (f *fake) Connect(context.Context) (sqldriver.Conn, error) { return &fakeConn{f}, nil }
func (f *fake) Driver() sqldriver.Driver                        { return nil }

func (f *fake) record(sql string, args []sqldriver.NamedValue) {
	if f.quiet {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	call := fakeCall{sql: sql}
	for _, a := range args {
		call.args = append(call.args, a.Value)
	}
	f.calls = append(f.calls, call)
}

type fakeConn struct{ *fake }

func (c *fakeConn) Prepare(string) (sqldriver.Stmt, error) { panic("not prepared here") }
func (c *fakeConn) Close() error                           { return nil }
func (c *fakeConn) Begin() (sqldriver.Tx, error)           { return fakeTx{}, nil }

func (c *fakeConn) CheckNamedValue(*sqldriver.NamedValue) error { return nil }

func (c *fakeConn) ExecContext(_ context.Context, sql string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	c.record(sql, args)
	return sqldriver.RowsAffected(c.count), nil
}

func (c *fakeConn) QueryContext(_ context.Context, sql string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	c.record(sql, args)
	return &fakeRows{rows: c.rows}, nil
}

type fakeTx struct{}

func (fakeTx) Commit() error   { return nil }
func (fakeTx) Rollback() error { return nil }

type fakeRows struct{ rows [][]sqldriver.Value }

func (r *fakeRows) Columns() []string { return []string{"value"} }
func (r *fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(dest []sqldriver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
