package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/rewrite"
)

// Option configures a connector. Options are checked when it is made.
type Option func(*settings) error

// settings is what the options of a connector add up to.
type settings struct {
	tables       []rewrite.Table
	fromCode     bool // tables are given by code; the registry is not read
	cacheBytes   uint64
	probeTimeout time.Duration
	callerSkip   []string
	pgx          []stdlib.OptionOpenDB
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
		return ProtectTable(rewrite.Table{Schema: schema, Name: table, Mode: mode})(s)
	}
}

// ProtectTable is [Protect] for a table with a token column of another name,
// or one that belongs to a resource.
func ProtectTable(t rewrite.Table) Option {
	return func(s *settings) error {
		s.tables, s.fromCode = append(s.tables, t), true
		return nil
	}
}

// WithPlanCache bounds the memory that checked statements are kept in, in
// bytes. The default is 16 MiB.
func WithPlanCache(bytes int) Option {
	return func(s *settings) error {
		if bytes <= 0 {
			return fmt.Errorf("fencerow: WithPlanCache(%d): give a positive number of bytes", bytes)
		}
		s.cacheBytes = uint64(bytes)
		return nil
	}
}

// WithProbeTimeout bounds how long the driver may ask why a guarded write
// changed no row. The default is 2 seconds; the statement's own context does
// not apply, so that one about to expire doesn't take the transaction along.
func WithProbeTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return errors.New("fencerow: WithProbeTimeout needs a positive duration")
		}
		s.probeTimeout = d
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

// WithCallerSkip names packages, such as a repository layer or an ORM, whose
// frames are passed over when a violation looks for the caller's line.
func WithCallerSkip(packages ...string) Option {
	return func(s *settings) error {
		s.callerSkip = append(s.callerSkip, packages...)
		return nil
	}
}

func collect(opts []Option) (*settings, error) {
	s := &settings{cacheBytes: defaultCacheBytes, probeTimeout: defaultProbeTimeout}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("fencerow: a nil option was given")
		}
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// shieldSQL opens the savepoint that a probe inside a transaction runs in.
func (s *settings) shieldSQL() string {
	return fmt.Sprintf("SAVEPOINT fencerow_probe; SET LOCAL statement_timeout = %d", max(1, s.probeTimeout.Milliseconds()))
}
