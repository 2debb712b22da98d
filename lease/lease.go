// Package lease takes locks that end by themselves, in PostgreSQL, and draws
// their fencing tokens.
//
// [Run] takes the lease of a resource, renews it while a function works, and
// releases it:
//
//	err := lease.Run(ctx, db, "orders", 30*time.Second, func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, `UPDATE orders
//		    SET status = $1, last_token = $2
//		  WHERE id = $3 AND last_token <= $2`, "paid", tokenctx.Arg, 17)
//		return err
//	})
//
// [Take] and [TryTake] return the [Lease] itself, for more than one function:
//
//	l, err := lease.TryTake(ctx, db, "orders", 30*time.Second)
//	if errors.Is(err, lease.ErrHeld) {
//		return nil // another is at it
//	}
//	if err != nil {
//		return err
//	}
//	defer l.Release(context.WithoutCancel(ctx))
//	ctx = l.Context(ctx) // ends when the lease does
//
// # What a lease promises
//
// A lease lasts for its time to live from the last renewal, by the database's
// clock alone. Its token is larger than those of all leases before it, through
// crashes and promotions too. Each resource has one holder at a time by that
// clock, but a holder that was paused doesn't know that its time is over until it
// looks: it may be at work beside the next one for a while. That is why the
// context carries the token, and why each write compares it. Work that no token
// guards, such as a mail that is sent, may be done twice.
//
// The lease ends here, with every context under it, when its time is over by
// this process's own clock, counted from before the last successful request was
// sent; when the database refuses to renew it; and when a write through
// fencerow's driver meets a newer token. A renewal that fails in another way is
// tried again while there is time. The process's clock may stand still while the
// machine sleeps; then the next renewal finds out.
//
// # Tokens of other locks
//
// Who has a lock of another kind draws the token by itself, with [NextToken]:
//
//	token, err := lease.NextToken(ctx, db)
//	if err != nil {
//		return err
//	}
//	ctx = tokenctx.With(ctx, token)
//
// Draw it after the lock has been taken, never before: of two holders the later
// one must have the larger token. Some lock services have a number of their own
// that will do; docs/tokens.md says which.
//
// # Tests
//
// For a take-over, let a lease end by itself, await that, and take it again; what
// is written under the first one's token is stale from the next one's write on:
//
//	first, err := lease.Take(ctx, db, "orders", 50*time.Millisecond, lease.WithoutRenewal())
//	...
//	<-first.Done()
//	next, err := lease.Take(ctx, db, "orders", time.Minute) // and write under it
//	...
//	stale := tokenctx.With(ctx, first.Token()) // a context that doesn't end with the lease
//
// # Database
//
// db may be opened with any PostgreSQL driver of database/sql, fencerow's own
// among them. Each call is one statement in a transaction of its own, which
// leaves nothing in the session, so a pooler in transaction mode will do; where
// there is none, [Take] also listens while it waits. The package needs schema
// fencing in the database, which migrations.Up installs, and the role needs
//
//	GRANT USAGE ON SCHEMA fencing TO app;
//	GRANT EXECUTE ON FUNCTION fencing.next_token() TO app;
//	GRANT EXECUTE ON FUNCTION fencing.take, fencing.renew, fencing.release TO app;
package lease
