package lease

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/fencerow/fencerow/tokenctx"
)

// These statements name the schema of everything, so a role's search_path has no effect
// on them. Each is a transaction of its own, and leaves nothing in the session.
const (
	takeSQL    = `SELECT token, held_by, EXTRACT(epoch FROM remaining) FROM fencing.take($1, $2, $3)`
	renewSQL   = `SELECT fencing.renew($1, $2, $3)`
	releaseSQL = `SELECT fencing.release($1, $2)`
)

// grant is what fencing.take answered: a token, or who has the lease.
type grant struct {
	token     tokenctx.Token // 0 if another has it
	holder    string
	remaining time.Duration
}

func (r *request) take(ctx context.Context) (grant, error) {
	r.note = ""
	if r.endAfter > 0 {
		return r.takeAndEndBlockers(ctx)
	}
	return callTake(ctx, r.db, r)
}

func callTake(ctx context.Context, by interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, r *request) (grant, error) {
	var (
		token   sql.NullInt64
		holder  sql.NullString
		seconds float64
	)
	err := by.QueryRowContext(ctx, takeSQL, r.resource, interval(r.ttl), r.holder).Scan(&token, &holder, &seconds)
	return grant{tokenctx.Token(token.Int64), holder.String, time.Duration(seconds * float64(time.Second))}, err
}

// callRenew extends the lease to its time to live from now on. The database answers
// false if the lease is over, and NULL if its row is gone.
func (l *Lease) callRenew(ctx context.Context) (held sql.NullBool, err error) {
	err = l.db.QueryRowContext(ctx, renewSQL, l.resource, int64(l.token), interval(l.ttl)).Scan(&held)
	return held, err
}

func (l *Lease) callRelease(ctx context.Context) (held sql.NullBool, err error) {
	err = l.db.QueryRowContext(ctx, releaseSQL, l.resource, int64(l.token)).Scan(&held)
	return held, err
}

// interval spells d so that PostgreSQL reads it in any IntervalStyle.
func interval(d time.Duration) string {
	return strconv.FormatInt(d.Microseconds(), 10) + " microseconds"
}
