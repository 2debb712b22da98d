package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fencerow/fencerow/tokenctx"
)

// nextToken has no name or operator that a role's own search_path could turn
// into something else.
const nextToken = `SELECT fencing.next_token()`

// NextToken draws a fencing token that is larger than every token drawn before
// in the database, by whatever session. The first one of a new database is 1.
// Tokens may have gaps; after a promotion, a restore or an upgrade of the server
// they go on far above where they were.
//
// When NextToken returns, the token is durable: no crash of the server makes it
// draw the same one again. That holds only after COMMIT, which is why NextToken
// takes the handle and not a transaction: the statement runs in one of its own,
// and waits for the disk, and for a synchronous standby where there is one, even
// where synchronous_commit is off. A token whose drawing ends with an error is
// lost, which does no harm.
//
// The error says what to do if schema fencing is not installed, the role lacks
// the right, or the server is a standby or the session read-only. It unwraps to
// the driver's own, such as *pgconn.PgError.
func NextToken(ctx context.Context, db *sql.DB) (tokenctx.Token, error) {
	var n int64
	if err := db.QueryRowContext(ctx, nextToken).Scan(&n); err != nil {
		return 0, tokenError(err)
	}
	t := tokenctx.Token(n)
	if !t.Valid() {
		return 0, fmt.Errorf("draw a token: fencing.next_token() gave %d, which is no token: install schema fencing again with migrations.Up", n)
	}
	return t, nil
}

// tokenError adds what to do about err. The SQLSTATEs are those of
// https://www.postgresql.org/docs/current/errcodes-appendix.html; the drivers'
// error types have the method in common.
func tokenError(err error) error {
	var server interface{ SQLState() string }
	if !errors.As(err, &server) {
		return fmt.Errorf("draw a token: %w", err)
	}
	switch server.SQLState() {
	case "3F000", "42883": // no schema fencing, no function in it
		return fmt.Errorf("draw a token: schema fencing is not installed in this database: run migrations.Up(ctx, dsn) first: %w", err)
	case "42501":
		return fmt.Errorf("draw a token: the role may not: GRANT USAGE ON SCHEMA fencing and EXECUTE ON FUNCTION fencing.next_token() to it: %w", err)
	case "25006":
		return fmt.Errorf("draw a token: the server is a standby, or the session is read-only: connect to the primary (target_session_attrs=read-write), without default_transaction_read_only: %w", err)
	}
	return fmt.Errorf("draw a token from fencing.next_token(): %w", err)
}
