package driver

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
)

// parsePatience bounds how long the server tries to parse a text, which waits for locks of
// the tables that the text names.
const parsePatience = time.Second

// askParser has the server parse a text that the check can't, without running it. If
// the text is wrong, the server's error is put into the refusal, so that its SQLSTATE is
// found as without the check; if it isn't, the server's grammar is newer than the check's.
//
// This is done in a transaction of its own, or behind a savepoint in the caller's: a
// refusal leaves that as it is.
func (c *Conn) askParser(ctx context.Context, sql string, found *rewrite.Violation) *rewrite.Violation {
	if found.Rule != rewrite.Unparsable || c.std == nil {
		return found
	}
	pg := c.std.Conn().PgConn()
	if pg.IsClosed() || pg.IsBusy() || pg.TxStatus() == 'E' {
		return found
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parsePatience+shieldGrace)
	defer cancel()
	done, err := c.shield(ctx, parsePatience)
	if err != nil {
		return found
	}
	defer done()
	_, err = pg.Prepare(ctx, "", sql, nil)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return found.NewerGrammar()
	case !errors.As(err, &refused):
		return found
	case refused.Code == syntaxError && refused.Position == 0: // several statements, which it could parse
		return found.NewerGrammar()
	}
	told := *found
	if refused.Code != syntaxError {
		told = *found.NewerGrammar() // it could parse that, to find what else is wrong
	}
	told.Err = refused
	return &told
}

// syntaxError is the SQLSTATE of one.
const syntaxError = "42601"
