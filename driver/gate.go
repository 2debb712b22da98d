package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
)

// invalidText is the SQLSTATE invalid_text_representation, with which a closed
// gate ends its statement.
const invalidText = "22P02"

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
	v := rewrite.Refuse(rewrite.AmbiguousName, fmt.Sprintf("the bare name %q did not mean the table that the statement was checked for when it ran, so nothing was written: write the schema of the table that is meant", name))
	v.Err = err
	return c.refuse(ctx, s.sql, v)
}
