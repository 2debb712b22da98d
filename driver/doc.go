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
// A protected write that ends without an error has written all that it was meant
// to write, or it is certain that no newer holder was in its way. That goes for
// each protected write of a statement: those in its WITH, too, and in what EXPLAIN
// ANALYZE, COPY or CREATE TABLE AS run.
//
// A write that changes a row returns its result. An UPDATE, DELETE, MERGE or upsert
// that changes none is asked after on the same connection: if the row carries a
// newer token the error is a [*StaleError]; if the guard rejects an equal token and
// the row carries this very one, a [*ReplayError]; if there is no such row by a key,
// that is no error. A write with RETURNING sent through Query gives the same errors
// from Query itself, and QueryRow gives them from Scan.
//
// Where the statement pins no unique key, the lease that its token comes from tells,
// if the table is registered for the lease's resource or the context is the lease's,
// and the role may read fencing.lease: who holds it meets no row, and whoever it was
// taken from is stale. Without a lease it is certain if no row of the table carries a
// newer token. Otherwise, and where a query that asks fails, the error is
// [ErrUndetermined].
//
// Where some rows carried a newer token of an upsert, a MERGE, an UPDATE with FROM, a
// DELETE with USING, or of a statement that was guarded by [WithRewrite], the error is a
// [*PartialError], before a row is handed out. Of other writes of many rows the result
// counts those that were written; with [WithPartialCheck] they end with that error, too.
//
// None of these answers ends a transaction: roll back where one write without
// the other would be wrong. What the database's own triggers refuse (see
// migrations.Wall) comes as the same errors, which then unwrap to
// *pgconn.PgError; PostgreSQL aborts the transaction with them.
//
// Under REPEATABLE READ and SERIALIZABLE a row that a newer holder has changed
// since the transaction's snapshot ends the transaction with PostgreSQL's
// serialization failure (SQLSTATE 40001), which is passed on as it is. The usual
// loop that runs such a transaction again gets the StaleError then. Under
// SERIALIZABLE the driver's second look reads for the transaction, too: where
// the write itself found its rows by an index on the token, that may be more.
//
// # Transactions
//
// A transaction that is begun with a token in the context is bound to it:
// statements in it that carry none write under the transaction's, and a
// statement that carries another one is refused. Begun without a token, each
// statement needs its own. Savepoints change nothing of that.
//
// PostgreSQL sees the tokens, too: BEGIN carries them as local settings
// (fencing.token and fencing.token_<resource>) in the same round trip, and a
// DELETE, which leaves no row with its token, sets its own in its condition. A
// DELETE of a protected table is therefore sent with one more condition, a
// set_config, at the end of its WHERE, and shows so in pg_stat_statements.
//
// # Step by step
//
// [Level] says how a table is held: Off, Report (run it, and tell the reporter)
// or Enforce. A registered table's level is set by migrations.SetLevel, one
// named in code gets it by [WithLevel]. [WithReporter] hears of what was refused
// or reported and of stale tokens, [LogTo] writes that to a log, [StatsOf] counts
// it, and [WithHooks] runs around whatever is sent. Package lint fails tests by it.
// [StatsOf] also counts why statements took more than the shortest way through the
// driver: see [Detour].
//
// Where no table is enforced nothing that can be sent is refused. A connection
// that made use of that, say by SET ROLE, is replaced when a table becomes
// enforced.
//
// # What else reaches a protected table
//
// The catalog says what a statement's text doesn't show: partitions, children
// and ancestors of protected tables, views over them, foreign tables whose
// options name them, triggers of theirs that may change the token, foreign keys
// that change their rows (by generated columns and triggers, too), triggers and
// rules that write them, and functions, operators and types whose code does,
// also where it stands in a default, a check, a policy, a condition or the
// argument of a trigger. Code that makes, renames or moves something to the name
// of a protected table counts as well. It is read with the registry. A function of
// an extension, or in C, isn't told.
//
// What a function in SQL or PL/pgSQL writes is told by its body if that is plain: each
// statement begins with a known word, and the SQL that it runs stands in it. Then it
// writes the tables that its statements name as the ones they write, and what the
// functions write that it calls. Plain are all of PL/pgSQL's own statements, queries, INSERT,
// UPDATE, DELETE, MERGE, TRUNCATE, COPY, REFRESH, LOCK, SET, GRANT and the like, tables of plain
// columns (temporary ones or CREATE TABLE AS), indexes, sequences, and their DROP
// without CASCADE.
//
// Any other body isn't read, and the function counts for every protected table
// without a wall, as does what calls or fires it. These are bodies with:
//   - EXECUTE of anything but one string constant, with USING or without: a text that is
//     put together (||, format()), a variable, a parameter
//   - any other statement: ALTER, DO, CREATE of a function, view, trigger or the like, or of a
//     table with LIKE, PARTITION OF, CHECK, REFERENCES or a default that is no constant
//   - a call of what runs SQL that it is given: query_to_xml, dblink, cron.schedule and the like
//   - a write of a system catalog or of pg_settings, or of a view of one
//   - standard_conforming_strings, UESCAPE, EXECUTE of a constant with a backslash, a variable named like a word of a statement (insert, into), or
//     another language, also a function of the server's (set_config, query_to_xml) under another name
//
// The error names the routine and what makes its body unread. Have the wall put up on the
// table, which judges whatever writes it; or write the body plainly; or, if the function
// writes no protected table, or carries a guard of its own, allow it: by
// fencing.allow_function for every handle, or by [WithGuardedFunctions]. A body that
// sets a sequence is told by a constant that names it: setval of anything else counts for
// every sequence that tokens come from, and so does ALTER SEQUENCE.
//
// Without a wall this is a reading of code, and no proof: what code in C or of an extension
// does, for one, isn't told. Have the wall put up where the database has code that you don't
// trust.
//
// Code that a statement runs without naming it counts, too: a function of a view
// or a policy when the relation is read, of an index when it is rebuilt (REINDEX,
// ANALYZE, VACUUM FULL, CLUSTER). What belongs to no relation (a cast, a type, a
// domain, an operator or its class) may run anywhere: while the function of such an
// object writes a protected table, nearly every statement is refused, and the error
// names the object. A change of structure is refused where an event trigger writes a
// protected table, but not one inside a function's body. [WithGuardedFunctions] names
// functions that carry a guard of their own, and migrations.AllowFunction has the registry
// allow one as it is now.
//
// A handle knows of changes, in the registry and in the catalog, when its next
// connection is taken that needs a look: after the handle itself has changed
// something, and else when the last look is older than [WithRefreshInterval].
// A look that fails leaves everything as it was, and is told to the reporter. A
// connection that stays with its user, in a transaction or a sql.Conn, looks itself
// only after this handle has changed something; for a transaction of one snapshot
// (REPEATABLE READ), which doesn't see what others have changed since it began,
// another connection looks.
//
// A statement may call or fire code that creates, alters or drops views,
// functions, triggers and the like; by the bodies it is known which one may. The
// connection then looks again before it sends anything else, within a transaction
// as well: each such statement costs one round trip more, and the time for reading
// the catalog if something has changed. Code that makes only tables of plain
// columns, temporary ones for instance, is none of these; code whose body isn't read is
// one.
//
// A look is bounded. The server ends one that waits for a lock, and the connection
// is used again; statements and new connections then go by what is known, and a
// handle that has read nothing yet gives an error. A registered table whose token
// column can't hold tokens, since it was dropped, say, or may be NULL, is refused
// alone: no write to it is sent until a later look finds it mended ([EventUnfit]).
//
// After a failover or a restore a handle goes by what the server has now, also if
// that has lost what was known. From a standby, and from an old primary that is
// still alive beside the promoted one, it learns nothing, unless nothing was heard
// of the newer server for twice the interval, a minute at least.
//
// # What this package cannot see
//
// Whoever builds the connector is trusted: pgx hooks, tracers and codecs, or a
// second plain sql.Open("pgx"), can write past it. So can whatever only the
// catalog shows and changes behind the driver's back, such as a function that
// somebody else made since the last look.
package driver
