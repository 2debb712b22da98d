package migrations

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// DoctorSession is a session that [Doctor] may be called over more than once: to open
// one, and to plan in it what the doctor asks, costs more than the answer.
type DoctorSession struct{ conn *pgx.Conn }

func OpenDoctor(ctx context.Context, dsn string) (DoctorSession, error) {
	conn, err := connect(ctx, "run the doctor", dsn)
	return DoctorSession{conn}, err
}

// Doctor is what [Doctor] does over its own session.
func (s DoctorSession) Doctor(ctx context.Context, roles ...string) ([]Finding, error) {
	return doctorOver(ctx, "run the doctor", s.conn, roles)
}

// Works reports whether the session is still there.
func (s DoctorSession) Works(ctx context.Context) bool { return s.conn.Ping(ctx) == nil }

func (s DoctorSession) Close() { closeConn(context.Background(), s.conn) }
