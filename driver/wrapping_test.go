package driver_test

import (
	"context"
	sqldriver "database/sql/driver"
)

// wrapping and wrappingConn stand around the driver as a tracer does.
type wrapping struct{ sqldriver.Connector }

func (w wrapping) Driver() sqldriver.Driver { return wrappingDriver{w.Connector.Driver()} }

func (w wrapping) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := w.Connector.Connect(ctx)
	return wrappingConn{conn}, err
}

type wrappingDriver struct{ sqldriver.Driver }

type wrappingConn struct{ sqldriver.Conn }

func (w wrappingConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	return w.Conn.(sqldriver.ExecerContext).ExecContext(ctx, query, args)
}

func (w wrappingConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return w.Conn.(sqldriver.QueryerContext).QueryContext(ctx, query, args)
}

func (w wrappingConn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	return w.Conn.(sqldriver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (w wrappingConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	return w.Conn.(sqldriver.ConnBeginTx).BeginTx(ctx, opts)
}
