package lease

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of what fencing.take accepts.
const (
	minTTL  = time.Millisecond
	maxTTL  = 24 * time.Hour
	maxName = 255 // characters
)

// How often Take polls unless WithPoll says otherwise.
const (
	defaultPollMin = 50 * time.Millisecond
	defaultPollMax = time.Second
)

// Option changes how a lease is taken and kept.
type Option func(*request) error

// request is what a caller of Take wants, with the options applied.
type request struct {
	db               *sql.DB
	resource, holder string
	ttl              time.Duration
	renewInterval    time.Duration // between renewals, 0 for none
	pollMin, pollMax time.Duration
	withoutListen    bool
	endAfter         time.Duration // how long to be blocked before blockers are ended, 0 to never end them

	note string // why the sessions that blocked the last call were not ended
}

// WithHolder sets the name under which the lease is held, 1 to 255 characters.
// It tells others who holds the lease, and has no other meaning: the same name
// does not get a lease twice. The default is host/pid/random.
func WithHolder(name string) Option {
	return func(r *request) error {
		r.holder = name
		return checkName("holder", name)
	}
}

// WithRenewEvery sets how long after one renewal was sent the next one is,
// instead of a third of the time to live. It must be shorter than that, and
// leave time to try again after a failure.
func WithRenewEvery(d time.Duration) Option {
	return func(r *request) error {
		if d <= 0 || d >= r.ttl {
			return fmt.Errorf("renewal every %v: choose more than 0 and less than the time to live of %v", d, r.ttl)
		}
		r.renewInterval = d
		return nil
	}
}

// WithoutRenewal lets the lease end after its time to live.
func WithoutRenewal() Option {
	return func(r *request) error {
		r.renewInterval = 0
		return nil
	}
}

// WithPoll sets how long [Take] waits between two polls for a lease that is
// held: about shortest at first, and twice as long each time up to longest, with
// jitter, but no longer than the lease has to go. The default is 50 milliseconds
// to a second. If [Take] is notified of a release, it polls at once.
func WithPoll(shortest, longest time.Duration) Option {
	return func(r *request) error {
		if shortest <= 0 || longest < shortest {
			return fmt.Errorf("poll between %v and %v: choose more than 0, and the longest no shorter than the shortest", shortest, longest)
		}
		r.pollMin, r.pollMax = shortest, longest
		return nil
	}
}

// WithoutListen has [Take] wait by looking alone, without a connection that
// listens.
func WithoutListen() Option {
	return func(r *request) error {
		r.withoutListen = true
		return nil
	}
}

// WithEndBlockers has sessions ended that hold up the taking of a lease which is
// free: a paused writer's, whose open transaction keeps a row locked that is to
// change hands. After half of the time the taker looks, from another connection
// of the pool, who blocks it, and again and again. The session of a transaction
// that is found twice in a row is ended with pg_terminate_backend, and its work
// rolled back. Only transactions are ended that wait for no lock themselves, so
// no other taker in the queue; through chains of them it takes as often as long.
//
// The role needs pg_signal_backend, or must be that of the sessions, and only a
// superuser ends a superuser's. Where synchronous_standby_names is set it needs
// pg_read_all_stats too, to tell a paused writer from one whose COMMIT waits for
// a standby and is left alone. Where it may not, or the pool has no connection
// left, the taking goes on waiting, and its error says so if ctx ends it. The
// taking is then a transaction of three statements and a COMMIT instead of one
// statement, and leases are taken more slowly.
func WithEndBlockers(after time.Duration) Option {
	return func(r *request) error {
		if after < minTTL {
			return fmt.Errorf("end blockers after %v: choose %v or more", after, minTTL)
		}
		r.endAfter = after
		return nil
	}
}

func newRequest(db *sql.DB, resource string, ttl time.Duration, opts []Option) (*request, error) {
	given := ttl
	ttl = ttl.Truncate(time.Microsecond) // the database's unit
	r := &request{db: db, resource: resource, ttl: ttl, renewInterval: ttl / 3, pollMin: defaultPollMin, pollMax: defaultPollMax}
	err := checkName("resource", resource)
	switch {
	case err != nil:
	case db == nil:
		err = errors.New("no database: pass the handle of sql.Open")
	case ttl < minTTL || ttl > maxTTL:
		err = fmt.Errorf("a time to live of %v: choose %v to %v, such as 30*time.Second; the lease is renewed, and so lasts longer", given, minTTL, maxTTL)
	}
	for _, option := range opts {
		if err != nil {
			break
		}
		err = option(r)
	}
	if err != nil {
		return nil, fmt.Errorf("take lease %q: %w", resource, err)
	}
	if r.holder == "" {
		r.holder = defaultHolder()
	}
	return r, nil
}

func checkName(what, name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxName {
		return fmt.Errorf("the %s's name has %d characters: choose 1 to %d", what, n, maxName)
	}
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("the %s's name is no text for PostgreSQL: it must be UTF-8 without a zero byte", what)
	}
	return nil
}

func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil || checkName("host", host) != nil {
		host = "unknown"
	}
	host = host[:min(len(host), 200)]
	return fmt.Sprintf("%s/%d/%s", strings.ToValidUTF8(host, ""), os.Getpid(), rand.Text()[:8])
}
