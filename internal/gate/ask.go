package gate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/fencerow/fencerow/internal/check"
)

// Asker is the session that a statement is to be sent on, for what has to be asked of
// the server before.
type Asker interface {
	// TxStatus returns 'I' outside of a transaction, 'T' in one, and 'E' in one that has
	// failed.
	TxStatus() byte
	// AskRow sends a question about the session as it is now, which must prepare nothing,
	// and reads the row that answers it.
	AskRow(ctx context.Context, question string, into ...any) error
}

// Meant asks the server what the bare names of a statement mean, and returns the
// plan by the answer. Only a statement that lacks a guard costs this round trip.
func Meant(ctx context.Context, asker Asker, plan *check.Plan) (*check.Plan, error) {
	shared := plan.Shared()
	if shared == nil {
		return plan, nil
	}
	if asker.TxStatus() == 'E' {
		return shared.PlanUnasked(), nil // the server refuses whatever comes, and says so itself
	}
	found := make([]*string, shared.Names())
	into := make([]any, len(found))
	for i := range found {
		into[i] = &found[i]
	}
	if err := asker.AskRow(ctx, shared.Question(), into...); err != nil {
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

// IsByPath reports whether the session's search path has cleared a statement.
func IsByPath(ctx context.Context, v *Verdict, sql string) bool {
	if v.Enforced.ByPath || v.View.Watched == nil {
		return v.Enforced.ByPath
	}
	plan, _ := v.View.Plan(ctx, sql, WatchedTables)
	return plan.ByPath
}

// AskPath has a change of structure that the session's search path cleared checked by the
// path that the session has now: code in the database may have set another one, and no
// text shows that. Only a statement with a protected table's bare name costs this round trip; see
// IsByPath. first is the path that the session began with.
func AskPath(ctx context.Context, asker Asker, v *Verdict, sql string, first []string) error {
	if asker.TxStatus() == 'E' {
		return nil
	}
	var setting, user string
	if err := asker.AskRow(ctx, pathQuestion, &setting, &user); err != nil {
		return fmt.Errorf("fencerow: ask for the session's search_path: %w", err)
	}
	path, err := SearchPath(setting, user)
	if err != nil {
		return fmt.Errorf("fencerow: the session's search_path %q cannot be read: %w", setting, err)
	}
	if slices.Equal(path, first) {
		return nil
	}
	v.View = v.View.Once(path)
	if v.Enforced, _ = v.View.Plan(ctx, sql, EnforcedTables); len(v.Enforced.Violations) > 0 {
		same := *v.Enforced
		same.Violations = slices.Clone(same.Violations)
		same.Violations[0].Message += fmt.Sprintf("; the session's search_path is %s by now, which code in the database has set: if another object is meant, write its schema", strconv.Quote(setting))
		v.Enforced = &same
	}
	return nil
}

// pathQuestion asks for the search path as it is now, and for the role that "$user" is.
const pathQuestion = `SELECT pg_catalog.current_setting('search_path'), current_user::pg_catalog.text`

// ownPathQuestion asks whether the session's search path leads into the schema
// fencing. It also marks the session as the driver's again, for what the statement
// calls: code in the database may have reset all settings.
const ownPathQuestion = `SELECT pg_catalog.set_config('fencing.session', 'driver', false) IS NOT NULL AND 'fencing' OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(false))`

// AskOwnPath refuses a statement that changes or calls something by a bare name which
// the schema fencing has, too, if the name may mean that. Only a statement with such
// a name costs this round trip.
func AskOwnPath(ctx context.Context, asker Asker, plan *check.Plan) (*check.Violation, error) {
	if asker.TxStatus() == 'E' {
		return nil, nil
	}
	var isOwn bool
	if err := asker.AskRow(ctx, ownPathQuestion, &isOwn); err != nil {
		return nil, fmt.Errorf("fencerow: ask whether the search_path leads into the schema fencing: %w", err)
	}
	if !isOwn || plan.OwnName() == "" {
		return nil, nil
	}
	return check.Refuse(check.SystemSchema, fmt.Sprintf("the session's search_path leads into the schema fencing, and the bare name %q may mean what that has: write the schema of the object that is meant, or take fencing out of the search_path", plan.OwnName())), nil
}
