package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/rewrite"
)

// Option configures a connector. Options are checked when it is made.
type Option func(*settings) error

// settings is what the options of a connector add up to.
type settings struct {
	tables       []gate.Table
	levels       []tableLevel
	fromCode     bool // tables are given by code; the registry is not read
	cacheBytes   uint64
	probeTimeout time.Duration
	partial      bool // ask for stale rows beside written ones
	timeouts     timeouts
	rewrite      bool // send unguarded writes in their guarded form
	callerSkip   []string
	doctor       *doctor
	listen       bool // keep a connection that listens for changes of the registry
	guarded      []rewrite.Name
	refresh      time.Duration
	pgx          []stdlib.OptionOpenDB
	hooks        []Hooks
	reporters    []func(context.Context, Event)
}

const (
	defaultCacheBytes   = 16 << 20
	defaultProbeTimeout = 2 * time.Second
)

// Protect protects a table in the given mode. The name is written as in SQL:
// "orders", "app.orders", `"Order Items"`. With Protect the registry is not
// read.
func Protect(name string, mode rewrite.Mode) Option {
	return func(s *settings) error {
		schema, table, err := splitName(name)
		if err != nil {
			return err
		}
		return ProtectTable(rewrite.Table{Schema: cmp.Or(schema, "public"), Name: table, Mode: mode})(s)
	}
}

// ProtectTable is [Protect] for a table with a token column of another name,
// or one that belongs to a resource.
func ProtectTable(t rewrite.Table) Option {
	return func(s *settings) error {
		s.tables, s.fromCode = append(s.tables, gate.Table{Table: t}), true
		return nil
	}
}

// WithPlanCache bounds the memory that checked statements are kept in, in
// bytes. The default is 16 MiB. Each connection also holds on to the 32 plans that
// it used last, of texts up to 16 KiB.
func WithPlanCache(bytes int) Option {
	return func(s *settings) error {
		if bytes <= 0 {
			return fmt.Errorf("fencerow: WithPlanCache(%d): give a positive number of bytes", bytes)
		}
		s.cacheBytes = uint64(bytes)
		return nil
	}
}

// maxProbeTimeout keeps a probe's timeout in PostgreSQL's range.
const maxProbeTimeout = time.Hour

// WithProbeTimeout bounds how long the driver may ask why a guarded write
// changed no row. The default is 2 seconds, the most an hour. A deadline of the
// statement's own context shortens it; otherwise that context does not apply, so
// that one about to expire doesn't take the transaction along.
func WithProbeTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 || d > maxProbeTimeout {
			return errors.New("fencerow: WithProbeTimeout needs a positive duration of at most an hour")
		}
		s.probeTimeout = d
		return nil
	}
}

// WithPartialCheck makes an UPDATE or DELETE that you have guarded and that changed some
// rows ask for others that it meant and that carry a newer token, and end with a
// [*PartialError] if there are any. An upsert, a MERGE, an UPDATE with FROM and a DELETE
// with USING do so without it. It costs one more query after each guarded write that
// changed a row. If no query can tell, the lease is asked, and without one the write ends
// with [ErrUndetermined].
//
// Rows that a newer holder takes over in between count as stale too; rows that it changed so
// that the statement no longer means them do not. A write with RETURNING gives the error when
// its last row has been read, or from Close before that. If its rows are still open at
// the transaction's Commit, that gives the error, and rolls back.
func WithPartialCheck() Option {
	return func(s *settings) error {
		s.partial = true
		return nil
	}
}

// WithRewrite has unguarded writes to protected tables sent in their guarded
// form, with the context's token as an added argument, where they have one: an
// UPDATE, a DELETE, an INSERT or an upsert as ORMs write them. It is proved by the
// same check as any other statement, and to be the given one with a guard and
// nothing else. What can't be rewritten is refused as without the option.
//
// What a program writes into the token column without comparing it, as a model's
// own field goes back with the others, gives way to the token, whatever it is. A
// statement with a guard of its own is left alone, and its arguments have to be
// the token as ever.
//
// A table that is only reported has its statements reported by what they would be,
// and sent as they are. For single tables see [rewrite.Table] and
// migrations.SetRewrite.
func WithRewrite() Option {
	return func(s *settings) error {
		s.rewrite = true
		return nil
	}
}

// WithPgx passes options of pgx's stdlib on: what runs before and after a
// connection is made, when it is reset, and whether it is pinged. What they run
// is trusted: it has pgx's own connection.
func WithPgx(opts ...stdlib.OptionOpenDB) Option {
	return func(s *settings) error {
		s.pgx = append(s.pgx, opts...)
		return nil
	}
}

// WithCallerSkip names packages, such as a repository layer, whose frames are
// passed over when a violation looks for the caller's line, as those of GORM, bun,
// sqlx, ent, squirrel, goqu and go-jet are, and those of whatever wraps the driver.
func WithCallerSkip(packages ...string) Option {
	return func(s *settings) error {
		s.callerSkip = append(s.callerSkip, packages...)
		return nil
	}
}

func collect(opts []Option) (*settings, error) {
	s := &settings{cacheBytes: defaultCacheBytes, probeTimeout: defaultProbeTimeout, refresh: defaultRefreshInterval}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("fencerow: a nil option was given")
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	for i := range s.tables {
		s.tables[i].Rewrite = s.tables[i].Rewrite || s.rewrite
	}
	return s, s.setLevels()
}
