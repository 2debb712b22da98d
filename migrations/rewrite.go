package migrations

import "context"

// SetRewrite chooses whether the driver sends unguarded writes to a registered
// table in their guarded form, as driver.WithRewrite does for all tables of a
// handle. It is for tables that an ORM writes. A table starts without; [Register]
// keeps the choice, also of a renamed one.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (a table
// that is not registered) come with its hint and unwrap to [*pgconn.PgError].
func SetRewrite(ctx context.Context, dsn, table string, on bool) error {
	return callOn(ctx, dsn, "choose rewriting for", table,
		`SELECT fencing.driver_rewrite($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.bool)`, table, on)
}
