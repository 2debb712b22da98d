package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
)

// carry has tokens go along with a statement whose foreign keys go on into tables with
// walls: these judge what is done to their rows by the settings of the transaction. If no
// token is known, or the text can't bring one along, the statement is sent as it is, and
// passes only if it reaches no row of such a table, or the settings have a token already.
func (c *Conn) carry(ctx context.Context, s *statement) {
	tables := s.plan.Carries()
	if c.std == nil || len(tables) == 0 {
		return
	}
	var tokens gate.BoundTokens
	added := make([]sqldriver.NamedValue, len(tables))
	for i, table := range tables {
		added[i].Ordinal = len(s.bound) + i + 1
		if token, ok := c.token(ctx, table); ok && token.Valid() {
			added[i].Value = int64(token)
			tokens = append(tokens, gate.BoundToken{Resource: table.Resource, Token: token})
		}
	}
	if len(tokens) == 0 || c.modeOf(s.call) == pgx.QueryExecModeSimpleProtocol && !check.PlainPlaceholders(s.sql) {
		return
	}
	text, given, ok := s.plan.Carrying()
	if !ok || given != int64(len(s.bound)) {
		return
	}
	s.text, s.bound, s.carried = text, slices.Concat(s.bound, added), tokens
}

// added returns how many placeholders the text that is sent has more than the caller's.
func (s *statement) added() int {
	if len(s.carried) == 0 {
		return s.plan.Added()
	}
	return s.plan.Added() + len(s.plan.Carries())
}
