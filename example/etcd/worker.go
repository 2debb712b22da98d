package main

import (
	"context"
	"database/sql"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"

	_ "github.com/fencerow/fencerow/driver" // registers "fencerow"
	"github.com/fencerow/fencerow/tokenctx"
)

// worker has connections of its own, as another process would.
type worker struct {
	name    string
	client  *clientv3.Client
	db      *sql.DB
	session *concurrency.Session
}

func newWorker(name string, server *embed.Etcd, dsn string) (*worker, error) {
	client, err := connect(server)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("fencerow", dsn)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &worker{name: name, client: client, db: db}, nil
}

// lock waits for the lock on row 1. The context that it returns carries the
// token, and goes to every statement of the work.
//
// A service would also end the work with session.Done(). That saves trouble and
// protects nothing: a worker that is paused doesn't hear of it in time.
func (w *worker) lock(ctx context.Context, ttl int) (context.Context, error) {
	var err error
	if w.session, err = concurrency.NewSession(w.client, concurrency.WithContext(ctx), concurrency.WithTTL(ttl)); err != nil {
		return nil, err
	}
	mutex := concurrency.NewMutex(w.session, "/locks/row-1")
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	token, err := TokenOf(ctx, w.client, mutex)
	if err != nil {
		return nil, err
	}
	return tokenctx.With(ctx, token), nil
}

// pause does to the lease what a frozen process does: nobody renews it.
func (w *worker) pause() { w.session.Orphan() }

// write writes the row under the token of ctx.
func (w *worker) write(ctx context.Context, value string) error {
	result, err := w.db.ExecContext(ctx,
		`UPDATE protected_rows SET value = $1, last_token = $2 WHERE id = 1 AND last_token <= $2`,
		value, tokenctx.Arg)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = sql.ErrNoRows // a row with a newer token is an error already
	}
	return err
}

// close gives the lock back, if it is still there to give.
func (w *worker) close() error {
	if w.session != nil {
		_ = w.session.Close() // the lease may be over, which is all the same
	}
	return errors.Join(w.client.Close(), w.db.Close())
}
