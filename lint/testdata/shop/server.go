package shop

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// server stands for a database in which every row is there, with the newest token.
type server struct{}

func (server) Connect(context.Context) (driver.Conn, error) { return server{}, nil }
func (server) Driver() driver.Driver                        { return nil }
func (server) Close() error                                 { return nil }
func (server) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (server) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }

func (server) CheckNamedValue(v *driver.NamedValue) (err error) {
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

func (server) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	if token, ok := args[0].Value.(int64); ok && len(args) > 1 && token < Newest {
		return driver.RowsAffected(0), nil
	}
	return driver.RowsAffected(1), nil
}

func (server) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &row{}, nil
}

// row is the one of a query for its token.
type row struct{ read bool }

func (r *row) Columns() []string { return []string{"last_token"} }
func (r *row) Close() error      { return nil }

func (r *row) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, dest[0] = true, int64(Newest)
	return nil
}
