package worker

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/tokenctx"
)

// The statements, with a guard and without.
const (
	claimSQL  = `UPDATE rows SET op = $1, last_token = $2 WHERE id = $3 AND last_token <= $2 RETURNING value`
	updateSQL = `UPDATE rows SET op = $1, value = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
	upsertSQL = `INSERT INTO rows (id, op, value, last_token, resource) VALUES ($3, $1, $1, $2, $4)
		ON CONFLICT (id) DO UPDATE SET op = EXCLUDED.op, value = EXCLUDED.value, last_token = EXCLUDED.last_token
		WHERE rows.last_token <= EXCLUDED.last_token`
	strictSQL = `UPDATE strict_rows SET op = $1, value = $1, last_token = $2 WHERE id = $3 AND last_token < $2`
	insertSQL = `INSERT INTO entries (op, last_token, resource) VALUES ($1, $2, $3)`

	looseClaimSQL  = `UPDATE rows SET op = $1, last_token = $2 WHERE id = $3 RETURNING value`
	looseUpdateSQL = `UPDATE rows SET op = $1, value = $1, last_token = $2 WHERE id = $3`
	looseUpsertSQL = `INSERT INTO rows (id, op, value, last_token, resource) VALUES ($3, $1, $1, $2, $4)
		ON CONFLICT (id) DO UPDATE SET op = EXCLUDED.op, value = EXCLUDED.value, last_token = EXCLUDED.last_token`
	looseStrictSQL = `UPDATE strict_rows SET op = $1, value = $1, last_token = $2 WHERE id = $3`

	readSQL = `SELECT value FROM rows WHERE id = $1`
)

// text is a statement as this worker writes it.
func (w *worker) text(guarded, loose string) string {
	if w.Write == Guarded {
		return guarded
	}
	return loose
}

// token is the argument that stands for the token of the context, where the
// driver knows of it.
func (w *worker) token(op history.Op) any {
	if w.Write == Guarded {
		return tokenctx.Arg
	}
	return op.Token
}

// do records an operation and runs it under its token. Its context ends with
// ctx and after the time that an operation has.
func (c *client) do(ctx context.Context, op history.Op, send func(context.Context, *history.Op) error) history.Op {
	op.ID, op.Worker, op.Client = c.last.Add(1), c.Worker, c.name
	op = c.rec.Call(op)
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := send(ctx, &op)
	op.Outcome = outcome(err)
	var stale *driver.StaleError
	if errors.As(err, &stale) {
		op.Current = int64(stale.Current)
	}
	if err != nil && op.Outcome != history.Stale {
		op.Err = err.Error()
	}
	c.rec.Done(op)
	return op
}

// outcome is what the error says for certain.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, driver.ErrStale):
		return history.Stale
	case errors.Is(err, driver.ErrReplay):
		return history.Replay
	case errors.Is(err, errNone):
		return history.None
	case driver.NotApplied(err), errors.As(err, new(rolledBack)), errors.As(err, new(*pgconn.ConnectError)):
		return history.Refused
	}
	return byWall(err)
}

// byWall is what the wall itself says, where no fencerow translates it.
func byWall(err error) history.Outcome {
	var server *pgconn.PgError
	if !errors.As(err, &server) || !strings.HasPrefix(server.Code, "FN") {
		return history.Unknown
	}
	var detail struct{ Token, Current string }
	if server.Code != "FN001" || json.Unmarshal([]byte(server.Detail), &detail) != nil {
		return history.Refused
	}
	if detail.Token == detail.Current { // only mode strict refuses that
		return history.Replay
	}
	return history.Stale
}

// errNone is the end of a write that found no row and no error.
var errNone = errors.New("no row")

// execer is a handle or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (c *client) exec(ctx context.Context, db execer, query string, args ...any) error {
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errNone, err)
	}
	return nil
}

// write sends a write of a row or an entry.
func (c *client) write(ctx context.Context, op history.Op) history.Op {
	return c.do(ctx, op, func(ctx context.Context, op *history.Op) error {
		switch op.Kind {
		case history.Claim:
			return none(c.db.QueryRowContext(ctx, c.text(claimSQL, looseClaimSQL), op.ID, c.token(*op), op.Row).Scan(&op.Value))
		case history.Update:
			return c.exec(ctx, c.db, c.text(updateSQL, looseUpdateSQL), op.ID, c.token(*op), op.Row)
		case history.Upsert:
			return c.exec(ctx, c.db, c.text(upsertSQL, looseUpsertSQL), op.ID, c.token(*op), op.Row, op.Resource)
		case history.Strict:
			return c.exec(ctx, c.db, c.text(strictSQL, looseStrictSQL), op.ID, c.token(*op), op.Row)
		case history.Insert:
			return c.exec(ctx, c.db, insertSQL, op.ID, c.token(*op), op.Resource)
		case history.Both:
			return c.both(ctx, op)
		}
		panic("no write: " + op.Kind)
	})
}

func none(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errNone
	}
	return err
}

// both writes a row and an entry in one transaction. What goes wrong before its
// COMMIT is sent is not applied, whatever it is.
func (c *client) both(ctx context.Context, op *history.Op) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return rolledBack{err}
	}
	defer tx.Rollback()
	if err := c.exec(ctx, tx, c.text(updateSQL, looseUpdateSQL), op.ID, c.token(*op), op.Row); err != nil {
		return rolledBack{err}
	}
	if err := c.exec(ctx, tx, insertSQL, op.ID, c.token(*op), op.Resource); err != nil {
		return rolledBack{err}
	}
	return tx.Commit()
}

// rolledBack is an error before COMMIT.
type rolledBack struct{ error }

func (e rolledBack) Unwrap() error { return e.error }

// takeLease asks for a lease and waits for it. The deadline is the caller's.
func (c *client) takeLease(ctx context.Context, resource string, opts ...lease.Option) (*lease.Lease, history.Op) {
	var l *lease.Lease
	op := c.do(ctx, history.Op{Kind: history.Take, Resource: resource}, func(ctx context.Context, op *history.Op) (err error) {
		l, err = lease.Take(ctx, c.db, resource, c.TTL, opts...)
		if err == nil {
			op.Token = int64(l.Token())
		}
		return err
	})
	return l, op
}
