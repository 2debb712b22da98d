package migrations

import "context"

// Tombstones says whether the keys of rows deleted from a registered table keep
// the token that deleted them, so that no holder of an older one inserts them
// again. It is off at first, and costs a row of fencing.tombstone for each
// deleted key until fencing.prune_tombstones removes it:
//
//	SELECT fencing.prune_tombstones('orders', 4711) -- no token below is held any more
//
// The table needs a wall, see [Wall], whose level holds for tombstones too. It
// needs a primary key, not a deferrable one, whose values are equal if and only
// if they are equal as text: no floats, intervals, enums, citext or other
// extension's types, no nondeterministic collation. It may be partitioned, but have no other
// children. Setting what is set mends what is missing and changes nothing else.
//
// Tombstones takes a SHARE ROW EXCLUSIVE lock on the table, without reading it,
// and ACCESS EXCLUSIVE to end it; see [Wall]. With keep false, or after
// [Unregister], no more are written or looked at; those that are there stay.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals come with
// its hint and unwrap to [*pgconn.PgError].
func Tombstones(ctx context.Context, dsn, table string, keep bool) error {
	return callOn(ctx, dsn, "set the tombstones of", table,
		`SELECT fencing.tombstones($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.bool)`, table, keep)
}
