package lease

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// notified is a driver's connection that yields notifications: fencerow's, or
// pgx's under its own.
type notified interface {
	WaitForNotification(ctx context.Context) (*pgconn.Notification, error)
	PID() uint32
}

type pgxConn struct{ *pgx.Conn }

func (c pgxConn) PID() uint32 { return c.PgConn().PID() }

// asNotified is nil for the connections of other drivers.
func asNotified(driverConn any) notified {
	switch c := driverConn.(type) {
	case notified:
		return c
	case interface{ Conn() *pgx.Conn }:
		return pgxConn{c.Conn()}
	}
	return nil
}

// backendPID is the process id that was sent when the connection was made, 0 if
// the driver doesn't say.
func backendPID(driverConn any) uint32 {
	if c := asNotified(driverConn); c != nil {
		return c.PID()
	}
	return 0
}

// notification waits for one, and returns what it was sent with.
func notification(ctx context.Context, driverConn any) (string, error) {
	c := asNotified(driverConn)
	if c == nil {
		return "", errors.New("the driver yields no notifications")
	}
	n, err := c.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

// forget drops notifications that have come and were not waited for.
func forget(driverConn any) {
	ended, end := context.WithCancel(context.Background())
	end()
	for {
		if _, err := notification(ended, driverConn); err != nil {
			return
		}
	}
}
