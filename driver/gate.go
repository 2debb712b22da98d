package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/rewrite"
)

// invalidText is the SQLSTATE invalid_text_representation, with which a closed
// gate ends its statement.
const invalidText = "22P02"

// askNames has a statement checked by what its bare names mean, where protected
// tables share these with others.
func (c *Conn) askNames(ctx context.Context, v *gate.Verdict) (err error) {
	if v.Enforced.Shared() != nil {
		v.Enforced, err = c.meant(ctx, v.Enforced)
	}
	return err
}

// meant asks the server what the bare names of a statement mean, and returns the
// plan by the answer.
func (c *Conn) meant(ctx context.Context, plan *check.Plan) (*check.Plan, error) {
	if c.std == nil || plan.Shared() == nil {
		return plan, nil
	}
	return gate.Meant(ctx, rowAsker{c.std}, plan)
}

// askPath has a change of structure checked by the search path that the session has now.
func (c *Conn) askPath(ctx context.Context, v *gate.Verdict, sql string) error {
	if c.std == nil || !gate.IsByPath(ctx, v, sql) {
		return nil
	}
	return gate.AskPath(ctx, rowAsker{c.std}, v, sql, c.session.Path)
}

// askOwnPath refuses a statement whose bare names may mean what schema fencing has.
func (c *Conn) askOwnPath(ctx context.Context, plan *check.Plan) (*rewrite.Violation, error) {
	if c.std == nil {
		return nil, nil
	}
	return gate.AskOwnPath(ctx, rowAsker{c.std}, plan)
}

// rowAsker is the session of pgx's connection, for what the gate asks.
type rowAsker struct{ std *stdlib.Conn }

// TxStatus is the transaction's state, as the server has reported it last.
func (a rowAsker) TxStatus() byte { return a.std.Conn().PgConn().TxStatus() }

// AskRow sends a question about the session as it is now, and reads the row that answers it.
func (a rowAsker) AskRow(ctx context.Context, question string, into ...any) error {
	conn := a.std.Conn()
	mode := pgx.QueryExecModeExec // which prepares nothing
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	return conn.QueryRow(ctx, question, mode).Scan(into...)
}

// fromServer turns an error of the server into the one that the driver itself
// gives for the same reason: an error of the wall, or of a gate that the
// statement was sent with. Others pass as they are.
func (c *Conn) fromServer(ctx context.Context, s *statement, err error) error {
	var pgErr *pgconn.PgError
	if s == nil || !s.plan.Gated() || !errors.As(err, &pgErr) || pgErr.Code != invalidText {
		return c.fromWall(ctx, s, err)
	}
	name, ok := check.ClosedGate(pgErr.Message)
	if !ok {
		return err
	}
	v := check.Refuse(rewrite.AmbiguousName, fmt.Sprintf("the bare name %q meant another table when the statement ran than just before, so nothing was written: write the schema of the table that is meant, or run the statement again", name))
	v.Err = err
	return c.refuse(ctx, s.sql, v)
}
