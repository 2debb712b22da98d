package migrations

import (
	"context"
	"fmt"
)

// WallLevel says what the server's own triggers do on a registered table. The
// driver's [Level] is another matter: it doesn't reach other clients.
type WallLevel string

const (
	// WallOff: no triggers. A table starts with it.
	WallOff WallLevel = "off"

	// WallReport: what would be refused runs, and is written to the server's
	// log with the same text.
	WallReport WallLevel = "report"

	// WallEnforce: stale, unguarded and forged writes are refused, and so is
	// TRUNCATE. A DELETE needs its token in a setting of the transaction; see
	// the package comment.
	WallEnforce WallLevel = "enforce"

	// WallAttested: UPDATE and INSERT need the setting too, with the token that
	// they write. It also stops SET last_token = last_token.
	WallAttested WallLevel = "attested"
)

// Wall sets the level of a registered table's wall: the triggers with which
// PostgreSQL itself refuses stale and unguarded writes, whoever sends them.
// Setting the level that the table has changes nothing, but covers partitions
// and children that have come since. [Register] keeps the level, and changes
// the triggers with the mode and the resource; [Unregister] takes them off.
//
// Wall takes a SHARE ROW EXCLUSIVE lock on the table, its partitions and its
// children, under which reads go on and writes wait. It reads no rows, so it
// holds the lock for a moment only, but first waits for the transactions that
// have written the table, and new writes wait behind it. WallOff, and a change
// of mode in Register, drop triggers and so take ACCESS EXCLUSIVE. Set
// lock_timeout in the DSN to give up instead. On a large or busy table take the
// steps apart: Register first, then WallReport, then WallEnforce.
//
// Rows from before keep their 0 and take a write under any token.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (a table that is not registered)
// come with its hint and unwrap to [*pgconn.PgError].
func Wall(ctx context.Context, dsn, table string, level WallLevel) error {
	const op = "set the wall of"
	if err := level.check(op, table); err != nil {
		return err
	}
	return callOn(ctx, dsn, op, table,
		`SELECT fencing.wall($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text)`, table, string(level))
}

// check finds what can be said without a connection.
func (l WallLevel) check(op, table string) error {
	const choose = "choose migrations.WallOff, migrations.WallReport, migrations.WallEnforce or migrations.WallAttested"
	if err := checkName(op, table); err != nil {
		return err
	}
	switch l {
	case WallOff, WallReport, WallEnforce, WallAttested:
		return nil
	case "":
		return fmt.Errorf("%s %s: no level given: %s", op, table, choose)
	}
	return fmt.Errorf("%s %s: unknown level %q: %s", op, table, string(l), choose)
}
