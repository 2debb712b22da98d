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
	reportAll    = "fencerow, every statement parsed, its tables reported"
)

// way is a run through fencerow, and which tables it protects.
type way struct {
	name, database string
	tables         []string
	report         bool // the tables, and the suite's own, are reported, not enforced
}

// words are those that statements begin with. Where tables of these names are
// protected, a text isn't cleared by a look at its bytes, but parsed and
// checked in full.
var words = []string{"select", "insert", "update", "show"}

var runs = []way{
	{name: protectNone, database: "none"},
	{name: protectOther, database: "other", tables: []string{"protected_rows"}},
	{name: checkAll, database: "all", tables: words},
	{name: reportAll, database: "reported", tables: words, report: true},
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
func protect(ctx context.Context, dsn string, w way, suite []string) error {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	for _, name := range w.tables {
		if err := register(ctx, dsn, name, w.report); err != nil {
			return err
		}
	}
	if err := probe(ctx, dsn, w); err != nil || !w.report {
		return err
	}
	for _, name := range suite {
		if err := register(ctx, dsn, name, true); err != nil {
			return err
		}
		// the suite makes it itself: it stays registered under its name
		if err := execSQL(ctx, dsn, "DROP TABLE "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

func register(ctx context.Context, dsn, name string, report bool) error {
	quoted := pgx.Identifier{name}.Sanitize()
	if err := execSQL(ctx, dsn, "CREATE TABLE "+quoted+" (id bigint PRIMARY KEY, status text)"); err != nil {
		return err
	}
	if err := migrations.Register(ctx, dsn, migrations.Table{Name: quoted, Mode: migrations.Strict}); err != nil || !report {
		return err
	}
	return migrations.SetLevel(ctx, dsn, quoted, migrations.Report)
}

// probe sends an unguarded write to each protected table.
func probe(ctx context.Context, dsn string, w way) (err error) {
	reported := 0
	db, err := driver.Open(dsn, driver.WithReporter(func(_ context.Context, e driver.Event) {
		if e.Kind == driver.EventReported {
			reported++
		}
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i, name := range w.tables {
		_, err := db.ExecContext(ctx, "UPDATE "+pgx.Identifier{name}.Sanitize()+" SET status = 'paid' WHERE id = 1")
		switch {
		case !w.report && !errors.Is(err, rewrite.ErrRefused):
			return fmt.Errorf("an unguarded write to protected table %q was not refused: %v", name, err) //nolint:errorlint // it may be nil
		case w.report && (err != nil || reported != i+1):
			return fmt.Errorf("an unguarded write to protected table %q was not just reported: %d reports, %v", name, reported, err) //nolint:errorlint // it may be nil
		}
	}
	return nil
}

func execSQL(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
