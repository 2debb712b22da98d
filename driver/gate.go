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

// askNames has a statement checked by what its bare names mean, where protected
// tables share these with others.
func (c *Conn) askNames(ctx context.Context, v *verdict) (err error) {
	if v.enforced.Shared() != nil {
		v.enforced, err = c.meant(ctx, v.enforced)
	}
	return err
}

// meant asks the server what the bare names of a statement mean, and returns the
// plan by the answer. Only a statement that lacks a guard costs this round trip.
func (c *Conn) meant(ctx context.Context, plan *rewrite.Plan) (*rewrite.Plan, error) {
	shared := plan.Shared()
	if shared == nil || c.std == nil {
		return plan, nil
	}
	conn := c.std.Conn()
	if conn.PgConn().TxStatus() == 'E' {
		return shared.PlanUnasked(), nil // the server refuses whatever comes, and says so itself
	}
	mode := pgx.QueryExecModeExec // which prepares nothing
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	found := make([]*string, shared.Names())
	into := make([]any, len(found))
	for i := range found {
		into[i] = &found[i]
	}
	if err := conn.QueryRow(ctx, shared.Question(), mode).Scan(into...); err != nil {
		return plan, fmt.Errorf("fencerow: ask which table a bare name means: %w", err)
	}
	answers := make([]string, len(found))
	for i, answer := range found {
		if answer != nil {
			answers[i] = *answer
		}
	}
	return shared.Plan(answers), nil
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
