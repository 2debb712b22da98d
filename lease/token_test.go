package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestMain(m *testing.M) { localpg.Main(m) }

var installed = fencetest.Installed

// open opens dsn with pgx's own driver, closed with the test.
func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, sql string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), sql)
	require.NoError(t, err, sql)
}

func next(t testing.TB, db *sql.DB) tokenctx.Token {
	t.Helper()
	token, err := lease.NextToken(t.Context(), db)
	require.NoError(t, err)
	return token
}

// session is a handle whose one connection has been set up by the statement.
func session(t testing.TB, dsn, setup string) *sql.DB {
	t.Helper()
	db := open(t, dsn)
	db.SetMaxOpenConns(1)
	exec(t, db, setup)
	return db
}

func TestNextToken(t *testing.T) {
	dsn := localpg.Database(t) // no copy, in which tokens jump
	require.NoError(t, migrations.Up(t.Context(), dsn))
	db := open(t, dsn)
	for want := tokenctx.Token(1); want <= 3; want++ {
		require.Equal(t, want, next(t, db))
	}
	// one drawn in a transaction that is rolled back is not given to anyone else
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n tokenctx.Token
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT fencing.next_token()").Scan(&n))
	require.NoError(t, tx.Rollback())
	require.Greater(t, next(t, db), n)
}

// Over 32 sessions at once no token comes twice, and a token is larger than
// every token that anybody had in hand before the drawing began.
func TestNextTokenConcurrently(t *testing.T) {
	const sessions, draws = 32, 25
	dsn := localpg.Database(t, installed)
	var seen atomic.Int64 // the largest token returned so far
	tokens := make([][]int64, sessions)
	errs := make([]error, sessions)
	var wg sync.WaitGroup
	for i := range sessions {
		db := open(t, dsn)
		wg.Go(func() {
			for range draws {
				before := seen.Load()
				token, err := lease.NextToken(t.Context(), db)
				if err == nil && int64(token) <= before {
					err = errors.New("token " + token.String() + " was drawn after a larger one")
				}
				if err != nil {
					errs[i] = err
					return
				}
				tokens[i] = append(tokens[i], int64(token))
				for old := seen.Load(); old < int64(token) && !seen.CompareAndSwap(old, int64(token)); old = seen.Load() {
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	all := slices.Concat(tokens...)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), sessions*draws)
	for _, mine := range tokens {
		require.IsIncreasing(t, mine)
	}
}

func TestNextTokenErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup string // in the session that draws
		from  []localpg.Template
		state string
		words string
	}{
		{"not installed", "SELECT", nil, "3F000", "schema fencing is not installed in this database: run migrations.Up"},
		{"an empty schema", "CREATE SCHEMA fencing", nil, "42883", "run migrations.Up"},
		{"no right on the schema", "SET ROLE pg_monitor", []localpg.Template{installed}, "42501", "GRANT USAGE ON SCHEMA fencing"},
		{"no right on the function", "GRANT USAGE ON SCHEMA fencing TO pg_monitor; SET ROLE pg_monitor", []localpg.Template{installed},
			"42501", "EXECUTE ON FUNCTION fencing.next_token()"},
		{"read-only", "SET default_transaction_read_only = on", []localpg.Template{installed}, "25006", "connect to the primary"},
		{"used up", "SELECT fencing.next_token(); SELECT setval('fencing.write_epoch', 9223372036854775807)", []localpg.Template{installed}, "2200H", "NO MAXVALUE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := session(t, localpg.Database(t, tt.from...), tt.setup)
			token, err := lease.NextToken(t.Context(), db)
			require.Zero(t, token)
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			require.Equal(t, tt.state, pg.Code)
			require.ErrorContains(t, err, tt.words)
		})
	}

	t.Run("no server", func(t *testing.T) {
		_, err := lease.NextToken(t.Context(), open(t, "host=/nonexistent password=s3cret"))
		require.ErrorContains(t, err, "draw a token: ")
		require.NotContains(t, err.Error(), "s3cret")
	})
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := lease.NextToken(ctx, open(t, localpg.Database(t, installed)))
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("not a token", func(t *testing.T) {
		db := session(t, localpg.Database(t), "CREATE SCHEMA fencing; CREATE FUNCTION fencing.next_token() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'")
		_, err := lease.NextToken(t.Context(), db)
		require.ErrorContains(t, err, "gave 0, which is no token")
	})
}
