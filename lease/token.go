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
	if db == nil {
		return 0, errors.New("draw a token: no database: pass the handle of sql.Open")
	}
	var n int64
	if err := db.QueryRowContext(ctx, nextToken).Scan(&n); err != nil {
		return 0, callError("draw a token", "fencing.next_token()", err)
	}
	t := tokenctx.Token(n)
	if !t.Valid() {
		return 0, fmt.Errorf("draw a token: fencing.next_token() gave %d, which is no token: install schema fencing again with migrations.Up", n)
	}
	return t, nil
}
