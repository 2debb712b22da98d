package driver

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/gate"
)

// The methods below are for sql.Conn.Raw, whose function gets a *Conn:
//
//	err := conn.Raw(func(driverConn any) error {
//	    _, err := driverConn.(*driver.Conn).CopyFrom(ctx, pgx.Identifier{"staging"}, columns, rows)
//	    return err
//	})

var errNoPgx = errors.New("fencerow: the connection is not pgx's")

// CopyFrom copies rows into a table that isn't protected, by the COPY protocol;
// see [pgx.Conn.CopyFrom]. For bulk into a protected table copy to a staging
// table, then INSERT ... SELECT with the token.
func (c *Conn) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if c.std == nil {
		return 0, errNoPgx
	}
	op := Operation{Kind: OpStatement, SQL: "COPY " + table.Sanitize() + " FROM STDIN"}
	if _, err := c.check(ctx, op.SQL, gate.Looked{}); err != nil {
		return 0, err
	}
	defer c.noteChanges()
	c.connector.before(ctx, op)
	n, err := c.std.Conn().CopyFrom(ctx, table, columns, rows)
	err = c.fromWall(ctx, nil, err)
	c.connector.after(ctx, op, err)
	return n, err
}

// WaitForNotification waits for a notification of a channel that was listened
// to with LISTEN; see [pgx.Conn.WaitForNotification].
func (c *Conn) WaitForNotification(ctx context.Context) (*pgconn.Notification, error) {
	if c.std == nil {
		return nil, errNoPgx
	}
	return c.std.Conn().WaitForNotification(ctx)
}

// PID returns the process id of the server's backend for this connection, 0 if
// the connection isn't pgx's.
func (c *Conn) PID() uint32 {
	if c.std == nil {
		return 0
	}
	return c.std.Conn().PgConn().PID()
}
