package migrations

import (
	"context"
	"fmt"
)

// Seal binds a registered table to a lease: the server refuses every write
// whose token is not the one under which the lease of resource was last taken.
// The [Wall] compares with the row, so a row that the new holder has not
// written yet still takes the old one's write; the seal shuts the old holder
// out of these too, and of INSERT, from the moment of take-over. A token of
// another lease is refused, be it larger or not.
//
// The table needs mode [Lease] and a wall, whose level holds for the seal too.
// A holder that takes over waits for the open transactions that have written
// under the lease, so give these a timeout; docs/seal.md has more about that and
// about the cost. A renewal waits for nobody.
//
// Sealing what is sealed in the same way mends what is missing and changes
// nothing else. Seal takes the locks of Wall. [Register] keeps the seal, and
// refuses to change the mode; [Unregister] ends it.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (no wall,
// mode strict) come with its hint and unwrap to [*pgconn.PgError].
func Seal(ctx context.Context, dsn, table, resource string) error {
	const op = "seal"
	if resource == "" {
		return fmt.Errorf("%s %s: no resource given: name the lease, as in lease.Take", op, table)
	}
	return callOn(ctx, dsn, op, table,
		`SELECT fencing.seal($1::pg_catalog.text::pg_catalog.regclass, resource => $2::pg_catalog.text)`, table, resource)
}

// SealByColumn is [Seal] for a table whose rows belong to different leases: the
// column has the name of each row's. It is of type text, varchar, uuid or an
// integer, and NOT NULL. No UPDATE may change it.
func SealByColumn(ctx context.Context, dsn, table, column string) error {
	const op = "seal"
	if column == "" {
		return fmt.Errorf("%s %s: no column given: name the one that has the name of each row's lease", op, table)
	}
	return callOn(ctx, dsn, op, table,
		`SELECT fencing.seal($1::pg_catalog.text::pg_catalog.regclass, by_column => $2::pg_catalog.text::pg_catalog.name)`, table, column)
}

// Unseal ends what [Seal] or [SealByColumn] began. The wall stays, and a registered
// table that is not sealed is left as it is. It takes ACCESS EXCLUSIVE on the table
// for a moment.
func Unseal(ctx context.Context, dsn, table string) error {
	return callOn(ctx, dsn, "unseal", table, `SELECT fencing.unseal($1::pg_catalog.text::pg_catalog.regclass)`, table)
}
