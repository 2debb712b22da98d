package driver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/gate"
)

// serverQueries read the server, each from what less is allowed to read: those who
// run servers for others may keep back the system identifier or the timeline. The
// start of the server then tells it from another one, but not which is newer.
var serverQueries = [...]string{
	serverColumns(walTimeline, systemIdentifier, `''`),
	serverColumns(walTimeline, `''`, serverStart),
	serverColumns(`''`, `''`, serverStart),
	serverColumns(`''`, `''`, `''`),
}

const (
	walTimeline      = `CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END`
	systemIdentifier = `(SELECT s.system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system() s)`
	serverStart      = `pg_catalog.extract('epoch', pg_catalog.pg_postmaster_start_time())::pg_catalog.text`
)

func serverColumns(timeline, system, started string) string {
	return `pg_catalog.pg_is_in_recovery()::pg_catalog.text,
       (SELECT d.oid::pg_catalog.text FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()),
       ` + timeline + `, ` + system + `, ` + started
}

// serverWidth is how many columns serverColumns has.
const serverWidth = 5

// serverOf reads the columns of serverColumns.
func serverOf(row []string) gate.Server {
	timeline, _ := strconv.ParseInt(row[2], 16, 64)
	return gate.Server{IsStandby: row[0] == "true", Database: row[1], Timeline: timeline, System: row[3], Started: row[4]}
}

// askServer sends one of the driver's own queries, with the columns about the
// server before its own.
func (c *Connector) askServer(ctx context.Context, conn *pgx.Conn, query func(columns string) string, args ...string) (ownAnswer, error) {
	first := c.serverQuery.Load()
	for i := first; ; i++ {
		answer, err := c.askOwn(ctx, conn, query(serverQueries[i]), args...)
		if err == nil || int(i) == len(serverQueries)-1 || !isKeptBack(err) {
			if err == nil && i != first {
				c.serverQuery.Store(i)
			}
			return answer, err
		}
	}
}

// isKeptBack reports whether an error may be that of a function that this role or
// this server keeps back.
func isKeptBack(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	switch pgErr.Code {
	case "42501", "42883", "0A000", "55000": // insufficient_privilege, undefined_function, feature_not_supported, object_not_in_prerequisite_state
		return true
	}
	return false
}

// abandoned is how long nothing must have been heard of a newer server until an
// older one counts again, to which the cluster has gone back by then.
func (c *Connector) abandoned() time.Duration { return max(2*c.settings.refresh, time.Minute) }

// teachesNothing reports whether the handle learns nothing from a reading: it goes
// by a newer server, and the reading comes from a standby, which lags behind, or
// from an old primary that is still alive.
func (c *Connector) teachesNothing(next *gate.Reading) bool {
	p := c.current.Load()
	if p == nil || p.Reading().Begun == 0 {
		return false
	}
	last := p.Reading()
	lags := last.Server.IsStandby && next.Server.System == last.Server.System && next.Generation < last.Generation
	if next.Server.Against(last.Server) != gate.Behind && !lags {
		return false
	}
	return next.Server.IsStandby || c.now()-c.heard.Load() <= int64(c.abandoned())
}
