package migrations

import (
	"context"
	"fmt"
)

// SetRewrite chooses whether the driver sends unguarded writes to a registered
// table in their guarded form, as driver.WithRewrite does for all tables of a
// handle. It is for tables that an ORM writes. A table starts without; [Register]
// keeps the choice, also of a renamed one.
//
// Without [Up], or after that of an older version without rewriting, the error is
// [ErrNotInstalled]. The server's refusals (a table that is not registered)
// come with its hint and unwrap to [*pgconn.PgError].
func SetRewrite(ctx context.Context, dsn, table string, on bool) error {
	const op = "choose rewriting for"
	if err := checkName(op, table); err != nil {
		return err
	}
	conn, err := connect(ctx, op+" "+table, dsn)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if err := requireInstalled(ctx, conn, op+" "+table); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `SELECT fencing.driver_rewrite($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.bool)`, table, on)
	switch {
	case isState(err, undefinedFunction):
		return fmt.Errorf("%s %s: %w in a version with rewriting: run migrations.Up(ctx, dsn) first: %w", op, table, ErrNotInstalled, err)
	case err != nil:
		return registryError(op, table, "correct the name, or write it with its schema", err)
	}
	return nil
}
