package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// What the role, the database or the DSN sets must change neither the answer to
// one of the driver's own queries nor the time that it takes. Each is therefore
// sent between a BEGIN and a COMMIT that go along in the same round trip, with
// settings that end there.

// ownSettings are the settings of the driver's own queries beside those of
// ownLimits. With row_security off a policy on what is read is an error, and
// doesn't hide a row.
var ownSettings = [][2]string{
	{"search_path", "pg_catalog, pg_temp"}, // operators are found by it
	{"row_security", "off"},
	{"max_parallel_workers_per_gather", "0"},
	{"quote_all_identifiers", "off"},
	{"geqo_threshold", "12"}, {"from_collapse_limit", "8"}, {"join_collapse_limit", "8"},
	{"enable_bitmapscan", "on"}, {"enable_hashagg", "on"}, {"enable_hashjoin", "on"}, {"enable_indexonlyscan", "on"}, {"enable_indexscan", "on"},
	{"enable_material", "on"}, {"enable_mergejoin", "on"}, {"enable_nestloop", "on"}, {"enable_seqscan", "on"}, {"enable_sort", "on"},
}

// settingsQuery reads what the session has of two settings, and then sets
// ownSettings. The setting fencing.session stays: it tells the database's own
// functions and triggers that the session is one of this driver.
var settingsQuery = func() string {
	text := "SELECT pg_catalog.current_setting('search_path'), current_user::pg_catalog.text, pg_catalog.set_config('fencing.session', 'driver', false)"
	for _, s := range ownSettings {
		text += fmt.Sprintf(", pg_catalog.set_config('%s', '%s', true)", s[0], s[1])
	}
	return text
}()

const (
	// lockPatience is how long one of the driver's own queries waits for a lock
	// while there is something known to go by, and firstLockPatience while there
	// isn't. Who waits for one behind a change of structure holds up others in turn.
	lockPatience      = 200 * time.Millisecond
	firstLockPatience = 2 * time.Second
	// answerGrace is how much longer the driver waits than the server works: the
	// server's answer that the time was up leaves the connection usable.
	answerGrace = time.Second
	// leastOwn is what one of the driver's own queries needs. With less time left
	// it isn't begun.
	leastOwn = 20 * time.Millisecond
	// rollbackPatience bounds the ROLLBACK after an own query that failed.
	rollbackPatience = 5 * time.Second
)

// errTooLate says that a context ends too soon for one of the driver's own
// queries.
var errTooLate = errors.New("fencerow: the context ends too soon to look at what is protected")

// ownAnswer is what one of the driver's own queries came to.
type ownAnswer struct {
	path, user string // the session's search path, and its role
	rows       [][]string
}

// ownLimits are the statements that come before everything else: they look at no
// catalog, and so wait for no lock. jit must be off before a query is planned.
func (c *Connector) ownLimits(ctx context.Context, version string) ([]string, error) {
	lock, statement := firstLockPatience, lookTimeout
	if c.isKnown() {
		lock = lockPatience
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left < leastOwn {
			return nil, errTooLate
		}
		statement = left - min(answerGrace, left/2)
		lock = min(lock, statement/2)
	}
	limits := []string{
		fmt.Sprintf("SET LOCAL statement_timeout = %d", max(1, statement.Milliseconds())),
		fmt.Sprintf("SET LOCAL lock_timeout = %d", max(1, lock.Milliseconds())),
		"SET LOCAL jit = off",
	}
	if hasTransactionTimeout(version) {
		limits = append(limits, "SET LOCAL transaction_timeout = 0")
	}
	return limits, nil
}

// askOwn sends one of the driver's own queries, and returns its rows as text,
// NULL as "". It takes one round trip. The server ends a query that waits for a
// lock, or takes longer than ctx allows; the connection is as before then.
func (c *Connector) askOwn(ctx context.Context, conn *pgx.Conn, query string, args ...string) (ownAnswer, error) {
	pg := conn.PgConn()
	limits, err := c.ownLimits(ctx, pg.ParameterStatus("server_version"))
	if err != nil {
		return ownAnswer{}, err
	}
	begin, end, undo := "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", []string{"COMMIT"}, "ROLLBACK"
	if pg.TxStatus() != 'I' { // within a transaction, or where what runs after a connection is made has left one open
		end = []string{"ROLLBACK TO SAVEPOINT fencerow_own", "RELEASE SAVEPOINT fencerow_own"}
		begin, undo = "SAVEPOINT fencerow_own", strings.Join(end, "; ")
	}
	statements := append([]string{begin}, limits...)
	statements = append(statements, settingsQuery)
	settings := len(statements) - 1
	results, err := sendOwn(ctx, conn, statements, query, args, end...)
	var answer ownAnswer
	if len(results) > settings && len(results[settings].Rows) == 1 {
		answer.path, answer.user = string(results[settings].Rows[0][0]), string(results[settings].Rows[0][1])
	}
	if err != nil {
		undoOwn(ctx, conn, undo)
		return answer, err
	}
	if wanted := len(statements) + 1 + len(end); len(results) != wanted {
		return answer, fmt.Errorf("the server gave %d results instead of %d", len(results), wanted)
	}
	for _, row := range results[settings+1].Rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = string(v)
		}
		answer.rows = append(answer.rows, values)
	}
	return answer, nil
}

// sendOwn sends statements, a query with arguments and the last statements in one
// round trip: as a batch, or as one text where the connection is set to the simple
// protocol.
func sendOwn(ctx context.Context, conn *pgx.Conn, statements []string, query string, args []string, last ...string) ([]*pgconn.Result, error) {
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		text, err := interpolateOwn(conn.PgConn(), query, args)
		if err != nil {
			return nil, err
		}
		return conn.PgConn().Exec(ctx, strings.Join(append(append(statements, text), last...), ";\n")).ReadAll()
	}
	batch := new(pgconn.Batch)
	for _, s := range statements {
		batch.ExecParams(s, nil, nil, nil, nil)
	}
	values, types := make([][]byte, len(args)), make([]uint32, len(args))
	for i, a := range args {
		values[i], types[i] = []byte(a), textOID
	}
	batch.ExecParams(query, values, types, nil, nil)
	for _, s := range last {
		batch.ExecParams(s, nil, nil, nil, nil)
	}
	return conn.PgConn().ExecBatch(ctx, batch).ReadAll()
}

// textOID is the type text.
const textOID = 25

// interpolateOwn writes arguments into one of the driver's own queries, each as a
// constant that every setting of the session has the server read alike. The
// queries have $n nowhere else.
func interpolateOwn(pg *pgconn.PgConn, query string, args []string) (string, error) {
	var places []string
	for i, a := range args {
		if encoding := pg.ParameterStatus("client_encoding"); encoding != "UTF8" && !sqltext.IsASCII(a) {
			return "", fmt.Errorf("names beyond ASCII are not sent under client_encoding %s by the simple protocol: put client_encoding=UTF8 into the DSN, and remove it from PGCLIENTENCODING and the role", encoding)
		}
		places = append(places, fmt.Sprintf("$%d", i+1), " E'"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(a)+"'")
	}
	return strings.NewReplacer(places...).Replace(query), nil
}

// undoOwn ends the transaction of an own query that failed. A connection on which
// that can't be done is of no use.
func undoOwn(ctx context.Context, conn *pgx.Conn, undo string) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	if _, err := conn.PgConn().Exec(ctx, undo).ReadAll(); err != nil {
		_ = conn.Close(ctx)
	}
}

// isLockedOut reports whether an own query ended because the server could not
// read in time: somebody holds a lock, or the server is slow. It says nothing of
// what is protected.
func isLockedOut(err error) bool {
	var pgErr *pgconn.PgError
	return errors.Is(err, errTooLate) || errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "57014")
}
