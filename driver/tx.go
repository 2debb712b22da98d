package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/tokenctx"
)

// Tx is a transaction. It is bound to the tokens that the context of its BEGIN
// carried: statements in it write under these or are refused.
type Tx struct {
	inner  sqldriver.Tx
	conn   *Conn
	ctx    context.Context // of BEGIN, for COMMIT and ROLLBACK, as with pgx
	tokens gate.BoundTokens
	over   bool // SQL has ended it, or may have: its tokens hold no longer
}

var _ sqldriver.Tx = (*Tx)(nil)

// BeginTx starts a transaction. The tokens of ctx that a protected table takes
// go along in the same round trip, as local settings fencing.token and
// fencing.token_<resource>, where a trigger can find them. They take no snapshot, so what must come first in a transaction still can.
func (c *Conn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	tx := &Tx{conn: c, ctx: ctx, tokens: c.protection().Tokens(ctx)}
	if outer := c.bound(); outer != nil && (len(outer.tokens) > 0 || len(tx.tokens) > 0) {
		return nil, errors.New("fencerow: a transaction under a token is open on this connection: commit it or roll it back before another one begins")
	}
	s, op := c.connector.settings, Operation{Kind: OpBegin}
	c.connector.before(ctx, op)
	if c.std != nil {
		c.noteBegun()
	}
	var err error
	if settings := tx.tokens.SetLocal(); c.std != nil && settings != "" {
		tx.inner, err = c.beginWith(ctx, opts, settings+s.timeouts.settings(c.std.Conn().PgConn().ParameterStatus("server_version")))
	} else {
		tx.inner, err = c.beginPlain(ctx, opts)
	}
	c.connector.after(ctx, op, err)
	if err != nil {
		return nil, err
	}
	c.tx = tx
	return tx, nil
}

// Commit commits the transaction.
func (tx *Tx) Commit() error { return tx.end(OpCommit, tx.inner.Commit) }

// Rollback rolls the transaction back.
func (tx *Tx) Rollback() error { return tx.end(OpRollback, tx.inner.Rollback) }

func (tx *Tx) end(kind OperationKind, send func() error) error {
	connector, op := tx.conn.connector, Operation{Kind: kind}
	connector.before(tx.ctx, op)
	err := tx.conn.fromWall(tx.ctx, nil, send()) // a deferred trigger may have written
	tx.conn.noteChanges()
	if tx.conn.tx == tx {
		tx.conn.tx = nil
	}
	connector.after(tx.ctx, op, err)
	return err
}

// bound returns the transaction whose tokens hold, if there is one. Once SQL has
// ended it, they hold in none that SQL begins.
func (c *Conn) bound() *Tx {
	if c.tx == nil {
		return nil
	}
	if c.std != nil && c.std.Conn().PgConn().TxStatus() == 'I' {
		c.tx.over = true
	}
	if c.tx.over {
		return nil
	}
	return c.tx
}

// endTokens ends the tokens of the transaction with a text that is about to be
// sent and may end it.
func (c *Conn) endTokens(sql string) {
	if tx := c.bound(); tx != nil && len(tx.tokens) > 0 && check.EndsTransaction(sql) {
		tx.over = true
	}
}

// token returns the token that the transaction is bound to for a resource.
func (tx *Tx) token(resource string) (tokenctx.Token, bool) {
	if tx == nil {
		return 0, false
	}
	return tx.tokens.Of(resource)
}

func (c *Conn) beginPlain(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	if b, ok := c.inner.(sqldriver.ConnBeginTx); ok {
		return b.BeginTx(ctx, opts)
	}
	if opts != (sqldriver.TxOptions{}) {
		return nil, errors.New("fencerow: the wrapped driver takes no transaction options")
	}
	//lint:ignore SA1019 the only way that the wrapped driver has
	return c.inner.Begin()
}

// beginWith sends BEGIN and the settings as one text. Where the server accepts
// the first and not the others, nothing is left of the transaction.
func (c *Conn) beginWith(ctx context.Context, opts sqldriver.TxOptions, settings string) (sqldriver.Tx, error) {
	conn := c.std.Conn()
	if conn.IsClosed() {
		return nil, sqldriver.ErrBadConn // as pgx's stdlib: nothing was sent
	}
	begin, err := beginText(opts)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + settings})
	if err != nil {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			c.abandon()
		}
		return nil, err
	}
	return &pgxTx{ctx, tx}, nil
}

// abandonTimeout bounds the ROLLBACK after a BEGIN that failed half-way.
const abandonTimeout = 5 * time.Second

func (c *Conn) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	if _, err := c.std.Conn().Exec(ctx, "rollback"); err != nil {
		_ = c.std.Conn().Close(ctx)
	}
}

// beginText is BEGIN as pgx's stdlib sends it for the options.
func beginText(opts sqldriver.TxOptions) (string, error) {
	text := "begin"
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted:
		text += " isolation level read uncommitted"
	case sql.LevelReadCommitted:
		text += " isolation level read committed"
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		text += " isolation level repeatable read"
	case sql.LevelSerializable:
		text += " isolation level serializable"
	default:
		return "", fmt.Errorf("unsupported isolation: %v", opts.Isolation)
	}
	if opts.ReadOnly {
		text += " read only"
	}
	return text, nil
}

// pgxTx is pgx's transaction as database/sql ends it.
type pgxTx struct {
	ctx context.Context
	tx  pgx.Tx
}

func (t *pgxTx) Commit() error   { return t.tx.Commit(t.ctx) }
func (t *pgxTx) Rollback() error { return t.tx.Rollback(t.ctx) }
