package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
// plan by the answer. Only a statement that lacks a guard costs this round trip.
func (c *Conn) meant(ctx context.Context, plan *rewrite.Plan) (*rewrite.Plan, error) {
	shared := plan.Shared()
	if shared == nil || c.std == nil {
		return plan, nil
	}
	if c.std.Conn().PgConn().TxStatus() == 'E' {
		return shared.PlanUnasked(), nil // the server refuses whatever comes, and says so itself
	}
	found := make([]*string, shared.Names())
	into := make([]any, len(found))
	for i := range found {
		into[i] = &found[i]
	}
	if err := c.askRow(ctx, shared.Question()).Scan(into...); err != nil {
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

// askPath has a change of structure that the session's search path cleared checked by the
// path that the session has now: code in the database may have set another one, and no
// text shows that. Only a statement with a protected table's bare name costs this round trip.
func (c *Conn) askPath(ctx context.Context, v *gate.Verdict, sql string) error {
	isWatched := false
	if v.View.Watched != nil {
		plan, _ := v.View.Plan(ctx, sql, gate.WatchedTables)
		isWatched = plan.ByPath
	}
	if !v.Enforced.ByPath && !isWatched || c.std == nil || c.std.Conn().PgConn().TxStatus() == 'E' {
		return nil
	}
	var setting, user string
	if err := c.askRow(ctx, "SELECT pg_catalog.current_setting('search_path'), current_user::pg_catalog.text").Scan(&setting, &user); err != nil {
		return fmt.Errorf("fencerow: ask for the session's search_path: %w", err)
	}
	path, err := gate.SearchPath(setting, user)
	if err != nil {
		return fmt.Errorf("fencerow: the session's search_path %q cannot be read: %w", setting, err)
	}
	if slices.Equal(path, c.session.path) {
		return nil
	}
	v.View = v.View.Once(path)
	if v.Enforced, _ = v.View.Plan(ctx, sql, gate.EnforcedTables); len(v.Enforced.Violations) > 0 {
		same := *v.Enforced
		same.Violations = slices.Clone(same.Violations)
		same.Violations[0].Message += fmt.Sprintf("; the session's search_path is %s by now, which code in the database has set: if another object is meant, write its schema", strconv.Quote(setting))
		v.Enforced = &same
	}
	return nil
}

// ownPathQuestion asks whether the session's search path leads into the schema
// fencing. It also marks the session as the driver's again, for what the statement
// calls: code in the database may have reset all settings.
const ownPathQuestion = `SELECT pg_catalog.set_config('fencing.session', 'driver', false) IS NOT NULL AND 'fencing' OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(false))`

// askOwnPath refuses a statement that changes or calls something by a bare name which
// the schema fencing has, too, if the name may mean that. Only a statement with such
// a name costs this round trip.
func (c *Conn) askOwnPath(ctx context.Context, plan *rewrite.Plan) (*rewrite.Violation, error) {
	if c.std == nil || c.std.Conn().PgConn().TxStatus() == 'E' {
		return nil, nil
	}
	var isOwn bool
	if err := c.askRow(ctx, ownPathQuestion).Scan(&isOwn); err != nil {
		return nil, fmt.Errorf("fencerow: ask whether the search_path leads into the schema fencing: %w", err)
	}
	if !isOwn || plan.OwnName() == "" {
		return nil, nil
	}
	return rewrite.Refuse(rewrite.SystemSchema, fmt.Sprintf("the session's search_path leads into the schema fencing, and the bare name %q may mean what that has: write the schema of the object that is meant, or take fencing out of the search_path", plan.OwnName())), nil
}

// askRow sends one of the driver's own questions about the session as it is now.
func (c *Conn) askRow(ctx context.Context, question string) pgx.Row {
	conn := c.std.Conn()
	mode := pgx.QueryExecModeExec // which prepares nothing
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	return conn.QueryRow(ctx, question, mode)
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
