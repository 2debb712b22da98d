package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestMain(m *testing.M) { localpg.Main(m) }

func newEtcd(t *testing.T) *embed.Etcd {
	t.Helper()
	server, err := startEtcd(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

func newClient(t *testing.T, server *embed.Etcd) *clientv3.Client {
	t.Helper()
	client, err := connect(server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func newSession(t *testing.T, client *clientv3.Client) *concurrency.Session {
	t.Helper()
	session, err := concurrency.NewSession(client)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() }) // a test may have ended the lease
	return session
}

const lockName = "/locks/row-1"

// locked is a mutex that holds the lock.
func locked(t *testing.T, session *concurrency.Session) *concurrency.Mutex {
	t.Helper()
	mutex := concurrency.NewMutex(session, lockName)
	require.NoError(t, mutex.Lock(t.Context()))
	return mutex
}

// tokenOf is TokenOf of a mutex that holds the lock.
func tokenOf(t *testing.T, client *clientv3.Client, mutex *concurrency.Mutex) tokenctx.Token {
	t.Helper()
	token, err := TokenOf(t.Context(), client, mutex)
	require.NoError(t, err)
	return token
}

// cutOff loses the connection once the key is made.
type cutOff struct{ clientv3.KV }

var errCutOff = errors.New("cut off")

func (cutOff) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return nil, errCutOff
}

func (cutOff) Delete(context.Context, string, ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return nil, errCutOff
}

// story is what a run tells, in this order.
var story = []string{
	"worker A   locks row 1; its key was created at revision 2, which is its token",
	`worker A   writes "written by A" with token 2: accepted`,
	"worker A   is PAUSED",
	"worker B   waits in line",
	"etcd       A's lease is over: gives the lock to B, whose token is 3",
	`worker B   writes "written by B" with token 3: accepted`,
	"worker A   WAKES UP",
	`worker A   writes "written by A, late" with token 2: REJECTED, the row carries token 3`,
	`final value, read over a plain connection: "written by B" (token 3)`,
}

func requireStory(t *testing.T, out string) {
	t.Helper()
	rest := out
	for _, text := range story {
		_, after, found := strings.Cut(rest, text)
		require.True(t, found, "%q is missing, or not in its place, in:\n%s", text, out)
		rest = after
	}
}

func TestPausedHolder(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, play(t.Context(), &out, newEtcd(t), localpg.Database(t)), &out)
	requireStory(t, out.String())
}

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &out)
	if errors.Is(err, localpg.ErrNoServer) && os.Getenv("FENCEROW_DATABASE_URL") != "" {
		t.Skip("the example needs a server of its own: ", err)
	}
	require.NoError(t, err, &out)
	requireStory(t, out.String())
}

// Registered without issued_by => NULL, the wall takes no token of etcd's.
func TestIssuedByNull(t *testing.T) {
	t.Parallel()
	dsn := localpg.Database(t)
	require.NoError(t, protect(t.Context(), dsn))
	w, err := newWorker("A", newEtcd(t), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close()) }()
	ctx, err := w.lock(t.Context(), ttlB)
	require.NoError(t, err)
	require.NoError(t, w.write(ctx, "from etcd"))

	require.NoError(t, plain(ctx, dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT fencing.register('protected_rows', 'lease')`)
		return err
	}))
	err = w.write(ctx, "from nowhere")
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, "issued_by => NULL")
}

func TestTokenRises(t *testing.T) {
	t.Parallel()
	const contenders = 8
	server := newEtcd(t)
	tokens := make(chan tokenctx.Token, contenders) // in the order of the holders
	done := make(chan error, contenders)
	for range contenders {
		client := newClient(t, server)
		mutex := concurrency.NewMutex(newSession(t, client), lockName)
		go func() {
			err := mutex.Lock(t.Context())
			if err == nil {
				var token tokenctx.Token
				token, err = TokenOf(t.Context(), client, mutex)
				tokens <- token
				err = errors.Join(err, mutex.Unlock(t.Context()))
			}
			done <- err
		}()
	}
	for range contenders {
		require.NoError(t, <-done)
	}
	var last tokenctx.Token
	for range contenders {
		token := <-tokens
		require.Greater(t, token, last)
		last = token
	}
}

func TestTokenOfLockThatIsNotHeld(t *testing.T) {
	t.Parallel()
	server := newEtcd(t)
	client := newClient(t, server)
	for _, tt := range []struct {
		name   string
		mutex  func(t *testing.T) *concurrency.Mutex
		lost   bool
		advice string
	}{
		{"never locked", func(t *testing.T) *concurrency.Mutex {
			return concurrency.NewMutex(newSession(t, client), lockName)
		}, true, "lock it first"},
		{"unlocked", func(t *testing.T) *concurrency.Mutex {
			mutex := locked(t, newSession(t, client))
			require.NoError(t, mutex.Unlock(t.Context()))
			return mutex
		}, true, "lock it first"},
		{"lease is over", func(t *testing.T) *concurrency.Mutex {
			session := newSession(t, client)
			mutex := locked(t, session)
			_, err := client.Revoke(t.Context(), session.Lease()) // as etcd does when the time is over
			require.NoError(t, err)
			return mutex
		}, true, "lock again in a new session"},
		{"key is deleted", func(t *testing.T) *concurrency.Mutex {
			mutex := locked(t, newSession(t, client))
			_, err := client.Delete(t.Context(), mutex.Key())
			require.NoError(t, err)
			return mutex
		}, true, "lock again in a new session"},
		{"key is another's", func(t *testing.T) *concurrency.Mutex {
			session := newSession(t, client)
			mutex := locked(t, session)
			_, err := client.Delete(t.Context(), mutex.Key())
			require.NoError(t, err)
			again := locked(t, session)
			require.Equal(t, mutex.Key(), again.Key())
			return mutex
		}, true, "lock again in a new session"},
		{"waits in line", func(t *testing.T) *concurrency.Mutex {
			locked(t, newSession(t, client))
			broken := newClient(t, server)
			broken.KV = cutOff{broken.KV}
			mutex := concurrency.NewMutex(newSession(t, broken), lockName)
			require.ErrorIs(t, mutex.Lock(t.Context()), errCutOff)
			return mutex
		}, false, "write once Lock has returned without an error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token, err := TokenOf(t.Context(), client, tt.mutex(t))
			require.ErrorContains(t, err, tt.advice)
			require.Equal(t, tt.lost, errors.Is(err, ErrLockLost), err)
			require.Zero(t, token)
		})
	}

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := TokenOf(cancelled, client, locked(t, newSession(t, client)))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrLockLost, "it may be held")
}

// Why the token is the create revision of the mutex's own key, and nothing else
// that etcd counts.
func TestOtherNumbers(t *testing.T) {
	t.Parallel()
	client := newClient(t, newEtcd(t))
	first, second := newSession(t, client), newSession(t, client)
	if first.Lease() < second.Lease() {
		first, second = second, first
	}
	key := func(mutex *concurrency.Mutex) (version, create, header int64) {
		answer, err := client.Get(t.Context(), mutex.Key())
		require.NoError(t, err)
		require.Len(t, answer.Kvs, 1)
		return answer.Kvs[0].Version, answer.Kvs[0].CreateRevision, answer.Header.Revision
	}

	mutexA := locked(t, first)
	tokenA := tokenOf(t, client, mutexA)
	version, create, _ := key(mutexA)
	require.EqualValues(t, create, tokenA)
	require.EqualValues(t, 1, version)
	_, err := client.Put(t.Context(), mutexA.Key(), "a note", clientv3.WithLease(first.Lease()))
	require.NoError(t, err)
	version, _, _ = key(mutexA)
	require.EqualValues(t, 2, version)
	require.Equal(t, tokenA, tokenOf(t, client, mutexA), "it stays, whatever is done to the key")

	watch, cancel := context.WithCancel(t.Context())
	defer cancel()
	inLine := client.Watch(watch, lockName+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	require.True(t, (<-inLine).Created)
	mutexB := concurrency.NewMutex(second, lockName)
	done := make(chan error, 1)
	go func() { done <- mutexB.Lock(t.Context()) }()
	require.Len(t, (<-inLine).Events, 1, "the key of B, which waits for A")
	_, err = client.Revoke(t.Context(), first.Lease())
	require.NoError(t, err)
	require.NoError(t, <-done)
	tokenB := tokenOf(t, client, mutexB)
	version, create, header := key(mutexB)
	require.EqualValues(t, create, tokenB)
	require.Greater(t, tokenB, tokenA)
	require.Less(t, second.Lease(), first.Lease(), "the later holder has the smaller id")
	require.EqualValues(t, 1, version, "the later holder has the smaller version")
	require.Greater(t, mutexB.Header().Revision, int64(tokenB), "of the answer that gave B the lock")
	require.GreaterOrEqual(t, header, mutexB.Header().Revision)

	late, err := client.Get(t.Context(), mutexA.Key())
	require.NoError(t, err)
	require.Empty(t, late.Kvs)
	require.Greater(t, late.Header.Revision, int64(tokenB), "A would pass as the newest holder")
}
