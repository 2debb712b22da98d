package check

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/tokenctx"
)

// contentsQuery returns every protected row without its token.
const contentsQuery = `
	SELECT 'protected_rows ' || tableoid || ' ' || id, last_token, (to_jsonb(r) - 'last_token')::text FROM protected_rows r
	UNION ALL SELECT 'Order Items ' || id, fence, (to_jsonb(r) - 'fence')::text FROM "Order Items" r
	UNION ALL SELECT 'accounts ' || id, last_token, (to_jsonb(r) - 'last_token')::text FROM app.accounts r
	UNION ALL SELECT 'accounts_child ' || id, last_token, (to_jsonb(r) - 'last_token')::text FROM accounts_child r
	UNION ALL SELECT 'metrics ' || id || ' ' || day, last_token, (to_jsonb(r) - 'last_token')::text FROM metrics r`

// comparesExcluded finds upserts whose own guard compares with what the INSERT has
// for a token. That gives way to the token, and the guard means it from then on.
var comparesExcluded = regexp.MustCompile(`(?i)[<=>]\s*EXCLUDED\.(last_token|fence)|EXCLUDED\.(last_token|fence)\s*[<=>]`)

// sameWork compares what a statement does with what its rewritten form does: the
// same, but for the tokens and the rows that carry newer ones. It is run over
// rows that no other statement reaches, and taken back.
func (l *lab) sameWork(ctx context.Context, s generated, text string, args []any) string {
	if comparesExcluded.MatchString(s.sql) {
		return ""
	}
	before, original, err := l.contents(ctx, s.sql, sendable(s.args))
	if err != nil {
		return ""
	}
	_, rewritten, err := l.contents(ctx, text, args)
	if err != nil {
		return fmt.Sprintf("the server refuses what was rewritten and takes the original: %v", err)
	}
	for key := range rewritten {
		if _, there := original[key]; !there && before[key].text == "" {
			return fmt.Sprintf("row %s is there only after the rewritten form", key)
		}
	}
	for key, want := range original {
		if _, there := rewritten[key]; !there && before[key].text == "" {
			return fmt.Sprintf("row %s is there only after the original: %s", key, want.text)
		}
	}
	for key, b := range before {
		newer := b.token > genToken || s.mode == Strict && b.token == genToken
		if want, got := original[key].text, rewritten[key].text; !newer && want != got {
			return fmt.Sprintf("row %s, token %d, %s: the original makes it %q, the rewritten form %q", key, b.token, b.text, want, got)
		}
	}
	return ""
}

// contents returns the rows before and after a statement that is taken back.
func (l *lab) contents(ctx context.Context, sql string, args []any) (before, after rowSet, err error) {
	tx, err := l.holder.Begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if before, err = readContents(ctx, l.holder); err != nil {
		return nil, nil, err
	}
	if err = send(ctx, l.holder, sql, args); err != nil {
		return nil, nil, err
	}
	_, _ = l.holder.Exec(ctx, `RESET search_path`)
	after, err = readContents(ctx, l.holder)
	return before, after, err
}

func readContents(ctx context.Context, c *pgx.Conn) (rowSet, error) {
	rows, err := c.Query(ctx, contentsQuery)
	if err != nil {
		return nil, err
	}
	set := rowSet{}
	var key string
	var state rowState
	_, err = pgx.ForEachRow(rows, []any{&key, &state.token, &state.text}, func() error {
		set[key] = state
		return nil
	})
	return set, err
}

// sendable has the token itself in the place of tokenctx.Arg, as another driver
// would want it.
func sendable(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if out[i] = a; a == (any)(tokenctx.Arg) {
			out[i] = int64(genToken)
		}
	}
	return out
}

// TestDifferentialRewriting is [TestDifferential] where whatever can be is
// rewritten, and what is must do the work of the original.
func TestDifferentialRewriting(t *testing.T) {
	l := newLab(t)
	policies := map[Mode]*Policy{Strict: casesPolicy(t, Strict), Lease: casesPolicy(t, Lease)}
	for _, p := range policies {
		for _, table := range p.tables {
			table.Rewrite = true
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := trim(genStatement.Draw(t, "statement"))
		if what := l.try(policies, s); what != "" {
			l.recover(t)
			t.Fatalf("%s\n%s", what, s)
		}
	})
	t.Logf("generated %d, accepted %d (%d guarded, %d rewritten), run %d (%d failed on the server), waited for a lock %d, changed a row %d",
		l.generated, l.accepted, l.guarded, l.rewritten, l.ran, l.failed, l.waited, l.changed)
	require.NotZero(t, l.rewritten)
	require.NotZero(t, l.waited, "no statement waited: the race was not exercised")
	require.NotZero(t, l.changed)
}
