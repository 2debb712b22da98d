package driver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// server is the server that something was read from. After a failover or a restore,
// and after the database was dropped and made again, it is another one.
type server struct {
	standby  bool
	database string // its oid
	timeline int64  // 0 where it can't be read, as on a standby
	system   string // its identifier, "" where it can't be read
	started  string // when, where one of these two can't be read
}

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
func serverOf(row []string) server {
	timeline, _ := strconv.ParseInt(row[2], 16, 64)
	return server{standby: row[0] == "true", database: row[1], timeline: timeline, system: row[3], started: row[4]}
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

// standing is how a server stands to another one that was read before.
type standing int

const (
	sameServer  standing = iota
	otherServer          // which of the two is newer can't be told but by when they were read
	newerServer          // it has been promoted since
	behind               // a standby, or an old primary that is still alive: it has nothing to teach
)

// against returns how s stands to a server that was read before.
func (s server) against(before server) standing {
	switch {
	case s == before:
		return sameServer
	case s.standby && before.standby:
		return otherServer
	case s.standby:
		return behind
	case s.database != before.database || s.system != before.system:
		return otherServer
	case before.standby:
		return newerServer
	case s.timeline == 0 || before.timeline == 0 || s.timeline == before.timeline:
		return otherServer
	case s.timeline > before.timeline:
		return newerServer
	}
	return behind
}

// reading says what a protection was read from, and when.
type reading struct {
	server     server
	generation int64  // of the registry; 0 for tables from code
	mark       string // of the row that has the generation
	allows     bool   // the registry says which functions are allowed
	catalog    bool   // the catalog was read, or there is nothing to look for in it
	stamp      string // of the catalog

	begun, ended uint64 // by Connector.ticks
}

// isNews reports whether a reading tells what may be newer than the last one.
// Two that were made one after the other are in that order, whatever their
// generations are: one that is smaller than before was restored. Two at the same
// time go by the generation.
func (next *reading) isNews(last *reading) bool {
	if next.server.against(last.server) == newerServer {
		return true
	}
	switch {
	case next.begun > last.ended:
		return true
	case last.begun > next.ended:
		return false
	case next.generation != last.generation:
		return next.generation > last.generation
	}
	return !next.catalog || next.begun >= last.begun
}

// same reports whether nothing has changed between two readings, but for what the
// catalog's stamp shows.
func (next *reading) same(last *reading) bool {
	return next.server == last.server && next.generation == last.generation && next.mark == last.mark
}

// abandoned is how long nothing must have been heard of a newer server until an
// older one counts again, to which the cluster has gone back by then.
func (c *Connector) abandoned() time.Duration { return max(2*c.settings.refresh, time.Minute) }

// teachesNothing reports whether the handle learns nothing from a reading: it goes
// by a newer server, and the reading comes from a standby, which lags behind, or
// from an old primary that is still alive.
func (c *Connector) teachesNothing(next *reading) bool {
	p := c.current.Load()
	if p == nil || p.last.Load().begun == 0 {
		return false
	}
	last := p.last.Load()
	lags := last.server.standby && next.server.system == last.server.system && next.generation < last.generation
	if next.server.against(last.server) != behind && !lags {
		return false
	}
	return next.server.standby || c.now()-c.heard.Load() <= int64(c.abandoned())
}
