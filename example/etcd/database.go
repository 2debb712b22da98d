package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/migrations"
)

// protect makes the protected table with its row, behind the wall.
func protect(ctx context.Context, dsn string) error {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	// Mode lease, as a holder writes as often as it likes under its one token.
	// issued_by is NULL because the tokens are etcd's: the wall would refuse
	// those that fencerow's own sequence has not issued.
	err := plain(ctx, dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE TABLE protected_rows (id bigint PRIMARY KEY, value text);
			INSERT INTO protected_rows VALUES (1, 'initial');
			SELECT fencing.register('protected_rows', 'lease', issued_by => NULL)`)
		return err
	})
	if err != nil {
		return err
	}
	return migrations.Wall(ctx, dsn, "protected_rows", migrations.WallEnforce)
}

// plain opens a connection that has nothing of fencerow.
func plain(ctx context.Context, dsn string, use func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return use(conn)
}
