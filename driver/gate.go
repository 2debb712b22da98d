package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
)

// invalidText is the SQLSTATE invalid_text_representation, with which a closed
// gate ends its statement.
const invalidText = "22P02"

// askNames has a statement checked as a write of tables that aren't protected where
// the server says that its bare names mean those.
func (c *Conn) askNames(ctx context.Context, v *verdict) error {
	meansOther, err := c.meansElsewhere(ctx, v.enforced)
	if err != nil || !meansOther {
		return err
	}
	v.enforced, _ = v.enforced.Elsewhere()
	return nil
}

// meansElsewhere asks the server whether the bare names of a statement mean tables
// that aren't protected. Only a statement with such a name that lacks a guard
// costs this round trip.
func (c *Conn) meansElsewhere(ctx context.Context, plan *rewrite.Plan) (bool, error) {
	other, question := plan.Elsewhere()
	if other == nil || c.std == nil {
		return false, nil
	}
	conn := c.std.Conn()
	if conn.PgConn().TxStatus() == 'E' {
		return true, nil // the server refuses whatever comes, and says so itself
	}
	mode := pgx.QueryExecModeExec // which prepares nothing
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	var meansOther bool
	if err := conn.QueryRow(ctx, question, mode).Scan(&meansOther); err != nil {
		return false, fmt.Errorf("fencerow: ask which table a bare name means: %w", err)
	}
	return meansOther, nil
}

// fromServer turns an error of the server into the one that the driver itself
// gives for the same reason: an error of the wall, or of a gate that the
// statement was sent with. Others pass as they are.
func (c *Conn) fromServer(ctx context.Context, s *statement, err error) error {
	var pgErr *pgconn.PgError
	if s == nil || !s.plan.Gated() || !errors.As(err, &pgErr) || pgErr.Code != invalidText {
		return c.fromWall(ctx, s, err)
	}
	name, ok := rewrite.ClosedGate(pgErr.Message)
	if !ok {
		return err
	}
	v := rewrite.Refuse(rewrite.AmbiguousName, fmt.Sprintf("the bare name %q meant another table when the statement ran than just before, so nothing was written: write the schema of the table that is meant, or run the statement again", name))
	v.Err = err
	return c.refuse(ctx, s.sql, v)
}
