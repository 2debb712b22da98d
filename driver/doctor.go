package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnhealthy says that the database's protection of the tables has faults;
// see [WithDoctor].
var ErrUnhealthy = errors.New("fencerow: the doctor finds errors in how the database protects its tables")

// WithDoctor makes a connector ask the database's own fencing.doctor before its
// first connection is used, and refuse it with [ErrUnhealthy] where that finds
// an error: a trigger of the wall that is missing or disabled, a role with more
// rights than an application may have, as a superuser, a sequence that gives tokens out twice.
// [Open] then gives that error. What is wrong is in its text, with what mends it.
//
// The doctor looks at the connection's own role, which needs
//
//	GRANT EXECUTE ON FUNCTION fencing.doctor, fencing.doctor_seal TO app;
//
// beside the application's other rights. It is asked until it finds no error,
// then not again; what goes wrong later is for migrations.Doctor to find.
func WithDoctor() Option {
	return func(s *settings) error {
		s.doctor = new(doctor)
		return nil
	}
}

// doctor is what a connector knows of its database's health; nil where nobody
// asked for it.
type doctor struct {
	healthy atomic.Bool
}

// No bare names and operators: the search path is the role's own.
const doctorQuery = `SELECT pg_catalog.format('%s %s: %s: %s; %s; %s', severity, code, object, problem, consequence, remedy)
  FROM fencing.doctor(false, ARRAY[session_user, current_user]::pg_catalog.name[]) WHERE severity OPERATOR(pg_catalog.=) 'error'`

// examine asks the database's doctor on a new connection.
func (c *Connector) examine(ctx context.Context, conn *pgx.Conn) error {
	d := c.settings.doctor
	if d == nil || d.healthy.Load() {
		return nil
	}
	answer, err := c.askOwn(ctx, conn, doctorQuery)
	if err != nil {
		return doctorError(err, conn)
	}
	if len(answer.rows) > 0 {
		findings := make([]string, len(answer.rows))
		for i, row := range answer.rows {
			findings[i] = row[0]
		}
		return fmt.Errorf("%w:\n\t%s", ErrUnhealthy, strings.Join(findings, "\n\t"))
	}
	d.healthy.Store(true)
	return nil
}

// doctorError says what to do where the doctor can't be asked.
func doctorError(err error, conn *pgx.Conn) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "42883", "42P01", "3F000": // undefined_function, undefined_table, invalid_schema_name
			return fmt.Errorf("fencerow: WithDoctor: the database has no fencing.doctor: run migrations.Up (%w)", err)
		case "42501": // insufficient_privilege
			role := pgx.Identifier{conn.Config().User}.Sanitize()
			return fmt.Errorf("fencerow: WithDoctor: the doctor cannot be asked: GRANT USAGE ON SCHEMA fencing TO %s; GRANT SELECT ON fencing.registry TO %s; GRANT EXECUTE ON FUNCTION fencing.doctor TO %s (%w)", role, role, role, err)
		}
	}
	return fmt.Errorf("fencerow: WithDoctor: ask fencing.doctor: %w", err)
}
