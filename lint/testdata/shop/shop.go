// Package shop is an application that forgets some of its guards, and looks at
// none of its errors.
package shop

import (
	"context"
	"database/sql"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// Newest is the token that all rows carry.
const Newest = 8

// Open opens a handle on no database.
func Open(opts ...driver.Option) (*sql.DB, error) {
	opts = append([]driver.Option{driver.Protect("orders", rewrite.Lease), driver.Protect("payments", rewrite.Lease)}, opts...)
	connector, err := driver.Wrap(server{}, opts...)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Pay has its guard.
func Pay(ctx context.Context, db *sql.DB, id int) {
	_, _ = db.ExecContext(ctx, `UPDATE orders SET status = 'paid', last_token = $1 -- as agreed
		WHERE id = $2 AND last_token <= $1`, tokenctx.Arg, id)
}

// Ship has forgotten it.
func Ship(ctx context.Context, db *sql.DB, id int) {
	_, _ = db.ExecContext(ctx, `UPDATE orders SET status = 'shipped' WHERE id = $1`, id)
}

// Cancel has, too.
func Cancel(ctx context.Context, db *sql.DB, id int) {
	_, _ = db.ExecContext(ctx, `DELETE FROM orders WHERE id = $1`, id)
}
