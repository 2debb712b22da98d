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

// asNotified returns nil for connections of other drivers.
func asNotified(driverConn any) notified {
	switch c := driverConn.(type) {
	case notified:
		return c
	case interface{ Conn() *pgx.Conn }:
		return pgxConn{c.Conn()}
	}
	return nil
}

// backendPID returns the process id that was sent when the connection was made, 0 if
// the driver doesn't tell it.
func backendPID(driverConn any) uint32 {
	if c := asNotified(driverConn); c != nil {
		return c.PID()
	}
	return 0
}

// waitForNotification waits for a notification, and returns its payload.
func waitForNotification(ctx context.Context, driverConn any) (string, error) {
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

// dropNotifications drops the notifications that have arrived and nobody has waited for.
func dropNotifications(driverConn any) {
	ended, end := context.WithCancel(context.Background())
	end()
	for {
		if _, err := waitForNotification(ended, driverConn); err != nil {
			return
		}
	}
}
