package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/lease"
)

const (
	ttl     = 45 * time.Second // longer than any fault
	timeout = 3 * time.Second  // of a statement
	senders = 3                // for each holder, at the same time
	burst   = 50               // statements that a sender sends by one handle
)

// holder is the present holder of a lease, and the only one.
type holder struct {
	number   int
	table    string
	resource string
	proxy    *proxy.Proxy
	handles  []handle
}

// handle is one of a holder's ways to the database.
type handle struct {
	*sql.DB
	isRewriting, isPartial bool
}

// open opens the handles through the holder's proxy.
func (h *holder) open(dsn string) error {
	for i := range 4 {
		var opts []driver.Option
		isRewriting, isPartial := i&1 != 0, i&2 != 0
		if isRewriting {
			opts = append(opts, driver.WithRewrite())
		}
		if isPartial {
			opts = append(opts, driver.WithPartialCheck())
		}
		db, err := driver.Open(dsn, opts...)
		if err != nil {
			return err
		}
		db.SetMaxIdleConns(2)
		h.handles = append(h.handles, handle{db, isRewriting, isPartial})
	}
	return nil
}

func (h *holder) close() error {
	var all error
	for _, db := range h.handles {
		all = errors.Join(all, db.Close())
	}
	return all
}

// take takes the holder's lease.
func (h *holder) take(ctx context.Context) (*lease.Lease, error) {
	l, err := lease.Take(ctx, h.handles[0].DB, h.resource, ttl)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.resource, err)
	}
	return l, nil
}

// work sends statements under the lease until ctx ends. A lease that ended is taken anew:
// that has been counted then.
func (h *holder) work(ctx context.Context, l *lease.Lease, seed uint64, t *tally) {
	for {
		var sending sync.WaitGroup
		under, stop := context.WithCancel(l.Context(ctx))
		for i := range senders {
			random := rand.New(rand.NewPCG(seed, uint64(h.number*senders+i)))
			sending.Go(func() {
				for under.Err() == nil {
					db := h.handles[random.IntN(len(h.handles))]
					for range burst {
						h.send(under, db, random, t)
					}
				}
			})
		}
		sending.Wait()
		stop()
		if ctx.Err() != nil {
			return
		}
		t.add("", ended, fmt.Errorf("%s: %w", h.resource, l.Err()))
		_ = l.Release(ctx)
		if l = h.takeAgain(ctx); l == nil {
			return
		}
		seed++
	}
}

// takeAgain takes the lease while connections break, nil once ctx ends.
func (h *holder) takeAgain(ctx context.Context) *lease.Lease {
	for {
		l, err := h.take(ctx)
		if err == nil {
			return l
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return nil
		}
	}
}

// send sends one statement in one of the ways, and counts the answer.
func (h *holder) send(under context.Context, db handle, random *rand.Rand, t *tally) {
	if under.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(under, timeout)
	defer cancel()
	next := func() statement { return choose(random, h.table, db.isRewriting && random.IntN(2) == 0) }
	s := next()
	way := ways[random.IntN(len(ways))]
	n, err := way.send(ctx, db.DB, s, next)
	v := judge(n, err)
	if under.Err() != nil && err != nil && !v.isAlarm() {
		return // the end of the run, or of the lease
	}
	t.note(s, db, way.name, v, err)
}

// way is a way to send a statement; next chooses those that go with it.
type way struct {
	name string
	send func(ctx context.Context, db *sql.DB, s statement, next func() statement) (rows int64, err error)
}

var ways = []way{
	{"Exec", func(ctx context.Context, db *sql.DB, s statement, _ func() statement) (int64, error) {
		return exec(db.ExecContext(ctx, s.sql, s.args...))
	}},
	{"Query", func(ctx context.Context, db *sql.DB, s statement, _ func() statement) (int64, error) {
		rows, err := db.QueryContext(ctx, s.sql, s.args...)
		return read(s, rows, err)
	}},
	{"QueryRow", func(ctx context.Context, db *sql.DB, s statement, _ func() statement) (int64, error) {
		var first any
		err := db.QueryRowContext(ctx, s.sql, s.args...).Scan(&first)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return -1, err
	}},
	{"prepared", func(ctx context.Context, db *sql.DB, s statement, _ func() statement) (int64, error) {
		stmt, err := db.PrepareContext(ctx, s.sql)
		if err != nil {
			return 0, err
		}
		defer stmt.Close()
		return exec(stmt.ExecContext(ctx, s.args...))
	}},
	{"prepared query", func(ctx context.Context, db *sql.DB, s statement, _ func() statement) (int64, error) {
		stmt, err := db.PrepareContext(ctx, s.sql)
		if err != nil {
			return 0, err
		}
		defer stmt.Close()
		rows, err := stmt.QueryContext(ctx, s.args...)
		return read(s, rows, err)
	}},
	{"in a transaction", func(ctx context.Context, db *sql.DB, s statement, next func() statement) (int64, error) {
		return within(ctx, db, s, next, execIn)
	}},
	{"a query in a transaction", func(ctx context.Context, db *sql.DB, s statement, next func() statement) (int64, error) {
		return within(ctx, db, s, next, queryIn)
	}},
}

func execIn(ctx context.Context, tx *sql.Tx, s statement) (int64, error) {
	return exec(tx.ExecContext(ctx, s.sql, s.args...))
}

func queryIn(ctx context.Context, tx *sql.Tx, s statement) (int64, error) {
	rows, err := tx.QueryContext(ctx, s.sql, s.args...)
	return read(s, rows, err)
}

// within sends a statement, and sometimes a second one, in a transaction.
func within(ctx context.Context, db *sql.DB, s statement, next func() statement, send func(context.Context, *sql.Tx, statement) (int64, error)) (int64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	n, err := send(ctx, tx, s)
	if err != nil {
		return n, err
	}
	if second := next(); len(second.args)%2 == 0 {
		if _, err := send(ctx, tx, second); err != nil {
			return n, fmt.Errorf("%s: %w", second.sql, err)
		}
	}
	return n, tx.Commit()
}

func exec(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// read counts rows. Those of a statement that returns none say nothing.
func read(s statement, rows *sql.Rows, err error) (n int64, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	if !s.returns {
		n = -1
	}
	return n, errors.Join(rows.Err(), rows.Close())
}
