package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// The runs through fencerow.
const (
	protectNone  = "fencerow, nothing protected"
	protectOther = "fencerow, another table protected"
	checkAll     = "fencerow, every statement parsed"
)

// runs says which tables each run protects, none of which the suite uses. In
// the last they have the names of the words that statements begin with: a text
// with a protected name in it isn't cleared by a look at its bytes, but parsed
// and checked in full.
var runs = []struct {
	name, database string
	tables         []string
}{
	{protectNone, "none", nil},
	{protectOther, "other", []string{"protected_rows"}},
	{checkAll, "all", []string{"select", "insert", "update", "show"}},
}

// database makes a database for one run: the suite leaves things behind.
func database(ctx context.Context, srv *localpg.Server, name string) (string, error) {
	name = fmt.Sprintf("fencerow_pgxsuite_%d_%s", os.Getpid(), name) // an existing server may have another run's
	if err := srv.CreateDatabase(ctx, name, ""); err != nil {
		return "", err
	}
	return srv.DSN(name), nil
}

// protect installs the registry and protects tables, and makes sure that a run
// on this database is a run with them protected.
func protect(ctx context.Context, dsn string, tables []string) (err error) {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	for _, name := range tables {
		quoted := pgx.Identifier{name}.Sanitize()
		if err := createTable(ctx, dsn, quoted); err != nil {
			return err
		}
		if err := migrations.Register(ctx, dsn, migrations.Table{Name: quoted, Mode: migrations.Strict}); err != nil {
			return err
		}
	}
	db, err := driver.Open(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, name := range tables {
		_, err := db.ExecContext(ctx, "UPDATE "+pgx.Identifier{name}.Sanitize()+" SET status = 'paid' WHERE id = 1")
		if !errors.Is(err, rewrite.ErrRefused) {
			return fmt.Errorf("an unguarded write to protected table %q was not refused: %v", name, err)
		}
	}
	return nil
}

func createTable(ctx context.Context, dsn, quoted string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE TABLE "+quoted+" (id bigint PRIMARY KEY, status text)")
	return errors.Join(err, conn.Close(ctx))
}
