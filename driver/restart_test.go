package driver_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const restartRow = `INSERT INTO orders VALUES (1, 0, 0) ON CONFLICT (id) DO UPDATE SET n = 0, last_token = 0`

// restarted is a server of the test's own with a handle on it.
type restarted struct {
	*localpg.Server
	db *sql.DB
}

// session is faulty for the server's present life.
func (r restarted) session(t *testing.T) faulty {
	admin, err := pgx.Connect(t.Context(), r.DSN(""))
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	return faulty{db: r.db, admin: admin}
}

// endings are the ways a server ends and begins again.
var endings = map[string]func(*testing.T, restarted){
	"crash": func(t *testing.T, r restarted) {
		require.NoError(t, r.Kill())
		require.NoError(t, r.Restart(t.Context()))
	},
	"restart": func(t *testing.T, r restarted) { require.NoError(t, r.Restart(t.Context())) },
}

// moments are where a server ends; each says whether the write that is met there
// was answered as applied.
var moments = map[string]func(t *testing.T, f faulty, end func()) (applied bool){
	"between statements": func(t *testing.T, f faulty, end func()) bool {
		require.NoError(t, <-f.send(t.Context()))
		end()
		return true
	},
	"while a write waits": func(t *testing.T, f faulty, end func()) bool {
		f.exec(t, `BEGIN; SELECT FROM orders FOR UPDATE`)
		done := f.send(t.Context())
		f.awaitLockWait(t, true)
		end()
		err := <-done
		require.False(t, driver.NotApplied(err))
		return err == nil // where what it waits for is ended before it is
	},
	"during a probe": func(t *testing.T, f faulty, end func()) bool {
		f.exec(t, `UPDATE orders SET last_token = 8`)
		done := make(chan error, 1)
		go func() {
			_, err := f.db.ExecContext(tokenctx.With(t.Context(), 7), slowWrite, tokenctx.Arg)
			done <- err
		}()
		f.awaitBackend(t, `wait_event = 'PgSleep'`)
		end()
		require.ErrorIs(t, answer(t, done), driver.ErrUndetermined, "no row, and nobody can say why")
		return false
	},
	"before Commit": func(t *testing.T, f faulty, end func()) bool {
		tx, err := f.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(tokenctx.With(t.Context(), 7), faultWrite, tokenctx.Arg)
		require.NoError(t, err)
		end()
		err = tx.Commit()
		require.Error(t, err)
		require.False(t, driver.NotApplied(err))
		return false
	},
}

// A handle outlives its server: the next write is applied, once, and none that
// the end met is sent again.
func TestServerRestarts(t *testing.T) {
	r := restarted{Server: localpg.StartServer(t)}
	run(t, r.DSN(""), `CREATE TABLE orders (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0)`, slowProbe)
	var err error
	r.db, err = driver.Open(r.DSN(""), driver.Protect("orders", rewrite.Lease), driver.WithProbeTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.db.Close()) })
	r.db.SetMaxOpenConns(1)
	for ending, end := range endings {
		for moment, meet := range moments {
			t.Run(ending+" "+moment, func(t *testing.T) {
				_ = r.db.Ping() // what a failed run has left
				f := r.session(t)
				f.exec(t, restartRow)
				require.NoError(t, r.db.QueryRow(`SELECT pg_backend_pid()`).Scan(&f.pid))
				applied := meet(t, f, func() { end(t, r) })

				after := r.session(t)
				before := after.count(t)
				require.Equal(t, applied, before == 1)
				if err := <-after.sendWith(t, 9); err != nil { // it met the closed connection, as with pgx alone
					require.False(t, driver.NotApplied(err))
					require.Equal(t, before, after.count(t))
					require.NoError(t, <-after.sendWith(t, 9))
				}
				require.Equal(t, before+1, after.count(t))
			})
		}
	}
}

// sendWith is send with another token.
func (f faulty) sendWith(t *testing.T, token tokenctx.Token) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := f.db.ExecContext(tokenctx.With(t.Context(), token), faultWrite, tokenctx.Arg)
		done <- err
	}()
	return done
}
