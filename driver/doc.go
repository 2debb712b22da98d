// Package driver is fencerow's database/sql driver for PostgreSQL. It wraps
// pgx's stdlib and sends no write to a protected table unless the statement
// itself proves that the context's fencing token is new enough.
//
// Swap one word in sql.Open, and put the token into the context where the lock
// is taken:
//
//	db, err := sql.Open("fencerow", dsn)
//	...
//	ctx = tokenctx.With(ctx, token)
//	_, err = db.ExecContext(ctx, `UPDATE orders
//	    SET status = $1, last_token = $2
//	  WHERE id = $3 AND last_token < $2`, "paid", tokenctx.Arg, 17)
//	switch {
//	case errors.Is(err, driver.ErrStale):
//	    // another holder has taken over; nothing was written
//	case errors.Is(err, rewrite.ErrRefused):
//	    // the statement was not sent: err says why, and what to write instead
//	}
//
// # What is protected
//
// With sql.Open the protected tables come from the database's registry, which
// package migrations installs and fills. With [Open] and [Protect] they come
// from code.
//
// # What a guarded write ends with
//
// A write that changes a row returns its result. An UPDATE, DELETE or upsert
// that changes none is asked after with one query on the same connection: if
// the row carries a newer token the error is a [*StaleError]; if the guard
// rejects an equal token and the row carries this very one, a [*ReplayError];
// otherwise there is no such row, which is no error. A write with RETURNING
// sent through Query gives the same errors from Query itself, and QueryRow
// gives them from Scan.
//
// A second look can't tell where the statement reads other tables (FROM, USING,
// WITH, a sub-select) or calls functions that may be volatile, unless its WHERE
// pins the primary key, and not for MERGE. Such a statement returns 0 rows and
// no error, and nothing was written. Where some rows of many carried a newer
// token, the result counts the others.
//
// None of these errors ends a transaction: roll back where one write without
// the other would be wrong.
//
// # What this package cannot see
//
// Whoever builds the connector is trusted: pgx hooks, tracers and codecs, or a
// second plain sql.Open("pgx"), can write past it. So can whatever only the
// catalog shows and changes behind the driver's back, such as a function that
// somebody else made a moment ago. A table that is registered while connections
// are open is protected on a handle from its next new connection on.
package driver
