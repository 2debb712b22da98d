package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connect opens a plain connection.
func connect(ctx context.Context, op, dsn string) (*pgx.Conn, error) {
	cfg, err := parseDSN(op, dsn)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, connectError(op, cfg, err)
	}
	if _, err := conn.Exec(ctx, ownSettings(conn)); err != nil {
		closeConn(ctx, conn)
		return nil, opError(op+": set the session up", "", err)
	}
	return conn, nil
}

// ownSettings sets what the role or the database must not decide for the
// statements of this package: whether they are compiled or done by parallel
// workers, how long they may take, and what a transaction is. What the DSN says of
// them counts, and lock_timeout is the caller's in any case.
func ownSettings(conn *pgx.Conn) string {
	settings := [][2]string{
		{"jit", "off"}, {"max_parallel_workers_per_gather", "0"}, {"statement_timeout", "0"}, {"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "'read committed'"}, {"default_transaction_read_only", "off"}, {"default_transaction_deferrable", "off"},
		{"quote_all_identifiers", "off"}, {"plan_cache_mode", "auto"},
	}
	if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); len(major) >= 2 && major[:2] >= "17" {
		settings = append(settings, [2]string{"transaction_timeout", "0"})
	}
	var b strings.Builder
	for _, s := range settings {
		if _, given := conn.Config().RuntimeParams[s[0]]; !given {
			fmt.Fprintf(&b, "SET %s = %s; ", s[0], s[1])
		}
	}
	return b.String()
}

// closeConn closes conn, politely even when ctx has ended.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// lockID is the key of the advisory lock that one migration holds while others
// wait: the bytes of "fencerow". It differs from goose's default, so that Up
// can be called from inside a migration run of the user's own.
const lockID int64 = 0x66656e6365726f77

// openDB opens a plain database/sql handle with one connection, which holds the
// migrations' lock until it is closed. goose's own session locker would leave a
// gap: it is not asked for the look at what is pending.
//
// The connection resolves names in pg_catalog only: goose writes now() without
// a schema, and a role may have put a schema with such a function before
// pg_catalog.
func openDB(ctx context.Context, op, dsn string) (*sql.DB, error) {
	cfg, err := parseDSN(op, dsn)
	if err != nil {
		return nil, err
	}
	var prepared error
	db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if _, prepared = conn.Exec(ctx, ownSettings(conn)); prepared != nil {
			return prepared
		}
		_, prepared = conn.Exec(ctx, fmt.Sprintf(`SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false), pg_catalog.pg_advisory_lock(%d)`, lockID))
		return prepared
	}))
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		if prepared != nil {
			return nil, opError(op+": wait for another migration to end", "", err)
		}
		return nil, connectError(op, cfg, err)
	}
	return db, nil
}

// dsnProblems are the beginnings of pgx's own texts about a DSN. The rest of
// such a text may quote the DSN: where a URL is cut wrongly, its password lands
// in the host or the port, and redaction misses it.
var dsnProblems = []string{
	"failed to parse as URL",
	"failed to parse as keyword/value",
	"failed to read service",
	"failed to configure TLS",
	"invalid sslcertmode",
	"invalid connect_timeout",
	"invalid port",
	"could not match",
	"unknown target_session_attrs",
	"invalid min_protocol_version",
	"invalid max_protocol_version",
	"unknown channel_binding",
	"invalid require_auth",
}

// parseDSN is pgx.ParseConfig with an error that quotes nothing of the DSN, and
// that can't be unwrapped to one that does.
func parseDSN(op, dsn string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err == nil {
		return cfg, nil
	}
	what := "it can't be parsed"
	for _, p := range dsnProblems {
		if strings.Contains(err.Error(), "`: "+p) {
			what = p
			break
		}
	}
	return nil, fmt.Errorf(`%s: wrong DSN: %s: write it as "postgres://user:password@host:5432/database", with other characters than letters and digits of the password percent-encoded, or as "host=... user=... dbname=..."`, op, what)
}

// connectError says where the connection was to go, and what to check.
func connectError(op string, cfg *pgx.ConnConfig, err error) error {
	where := net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	if strings.HasPrefix(cfg.Host, "/") {
		where = fmt.Sprintf("socket %s, port %d", cfg.Host, cfg.Port)
	}
	check := "check host and port, that the server runs, and that it listens there"
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		check = "the context ended first"
	case !errors.As(err, &pg):
	case pg.Code == "28P01" || pg.Code == "28000":
		check = "check role and password, and the server's pg_hba.conf"
	case pg.Code == "3D000":
		check = "create the database first, or correct its name"
	case pg.Code == "53300":
		check = "the server has no connection to spare; raise max_connections or close others"
	default:
		check = "the server refused it"
	}
	return &connError{
		text: fmt.Sprintf("%s: can't connect to PostgreSQL at %s (database %q, user %q): %s: %s",
			op, where, cfg.Database, cfg.User, check, strings.Join(strings.Fields(lastError(err).Error()), " ")),
		err: err,
	}
}

// lastError is the cause in err: pgx's texts around it repeat user, database
// and address, once for each attempt.
func lastError(err error) error {
	for {
		switch u := err.(type) { //nolint:errorlint // it unwraps by itself
		case interface{ Unwrap() []error }:
			all := u.Unwrap()
			if len(all) == 0 {
				return err
			}
			err = all[len(all)-1]
		case *net.OpError:
			return u
		case interface{ Unwrap() error }:
			next := u.Unwrap()
			if next == nil {
				return err
			}
			err = next
		default:
			return err
		}
	}
}

// connError is a connection that did not come about.
type connError struct {
	text string
	err  error
}

func (e *connError) Error() string { return e.text }

func (e *connError) Unwrap() error { return e.err }
