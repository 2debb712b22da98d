package migrations

import (
	"context"
	"fmt"
)

// Level says how the driver holds a registered table. It lets a code base adopt
// step by step: [Report] first, [Enforce] once nothing is reported any more.
type Level string

const (
	// Off: the driver doesn't look at the table.
	Off Level = "off"

	// Report: unguarded statements run and are reported.
	Report Level = "report"

	// Enforce: unguarded statements are refused. A table starts with it.
	Enforce Level = "enforce"
)

// SetLevel sets the level of a registered table. Setting the level that it has
// changes nothing. [Register] keeps the level of a table, also of a renamed
// one, or of the one whose name a new table has now. A table that was
// unregistered starts at [Enforce] when it is registered.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (a table
// that is not registered) come with its hint and unwrap to [*pgconn.PgError].
func SetLevel(ctx context.Context, dsn, table string, level Level) error {
	const op = "set the level of"
	if err := checkName(op, table); err != nil {
		return err
	}
	if err := level.check(op, table); err != nil {
		return err
	}
	return callOn(ctx, dsn, op, table,
		`SELECT fencing.driver_level($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text)`, table, string(level))
}

// check finds what can be said without a connection.
func (l Level) check(op, table string) error {
	const choose = "choose migrations.Off, migrations.Report or migrations.Enforce"
	switch l {
	case Off, Report, Enforce:
		return nil
	case "":
		return fmt.Errorf("%s %s: no level given: %s", op, table, choose)
	}
	return fmt.Errorf("%s %s: unknown level %q: %s", op, table, string(l), choose)
}
