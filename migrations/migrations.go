package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// FS holds the migrations as goose SQL files, in its folder sql. [Up] is all
// most programs need. Who runs goose already and wants these files under its
// own control gives them a provider with a version table of their own:
//
//	files, err := fs.Sub(migrations.FS, "sql")
//	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
//		goose.WithTableName("fencing_db_version"))
//	_, err = p.Up(ctx)
//
// Use one of the two ways for a database, not both.
//
//go:generate go run ./internal/baseline
//go:embed sql/*.sql
var FS embed.FS

// Up installs schema fencing, or brings it up to this version of the package.
// It does nothing if that has been done, and may run in many processes at
// once: one works, the others wait for it, until ctx ends. A function of the schema
// that somebody has dropped or changed is made again; see the finding D004 of
// [Doctor].
//
// Which migrations have run is recorded in fencing.goose_db_version; a
// goose_db_version of the user's own is neither read nor written.
//
// Up reports a missing right, an unreachable server and a DSN that can't be
// parsed as such, never with the DSN's password. A server's refusal unwraps to
// [*pgconn.PgError].
func Up(ctx context.Context, dsn string) error {
	const op = "install schema fencing"
	db, err := openDB(ctx, op, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := ensureVersionTable(ctx, db); err != nil {
		return upError(op, err)
	}
	p, err := provider(db)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if _, err := p.Up(ctx); err != nil {
		return upError(op, err)
	}
	if err := mendFunctions(ctx, db); err != nil {
		return opError(op, "run it as the role that owns schema fencing", err)
	}
	return nil
}

// Down removes schema fencing and everything that the migrations made in it.
// Where nothing is installed it does nothing. Token columns and their values
// stay in the tables.
//
// Down is dangerous, and meant for tests and for leaving fencerow altogether.
// It ends every protection. And after another [Up] the tokens start at 1
// again, while the rows still carry the old, larger ones: every write is then
// stale until the token columns are set to 0, which must happen while no
// holder of an old token is left.
func Down(ctx context.Context, dsn string) error {
	const op = "remove schema fencing"
	db, err := openDB(ctx, op, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var ours, any bool
	err = db.QueryRowContext(ctx, `SELECT pg_catalog.to_regclass('`+versionTable+`') IS NOT NULL, pg_catalog.to_regclass('fencing.write_epoch') IS NOT NULL`).Scan(&ours, &any)
	switch {
	case err != nil:
		return opError(op, "", err)
	case !ours && any:
		return fmt.Errorf("%s: it was not installed by migrations.Up, which keeps %s: take it down with the tool that installed it", op, versionTable)
	case !ours:
		return nil
	}
	p, err := provider(db)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if _, err := p.DownTo(ctx, 0); err != nil {
		return opError(op, "run it as the role that owns schema fencing", err)
	}
	if err := dropVersionTable(ctx, db); err != nil {
		return opError(op, "run it as the role that owns schema fencing", err)
	}
	return nil
}

// Version returns the number of the last migration that [Up] has run in the
// database, 0 where it has run none. It changes nothing there. The calling
// role needs USAGE on schema fencing and SELECT on fencing.goose_db_version.
func Version(ctx context.Context, dsn string) (int64, error) {
	const op = "read the version of schema fencing"
	conn, err := connect(ctx, op, dsn)
	if err != nil {
		return 0, err
	}
	defer closeConn(ctx, conn)
	var v int64
	err = conn.QueryRow(ctx, `SELECT coalesce(pg_catalog.max(version_id), 0) FROM `+versionTable).Scan(&v)
	if isState(err, undefinedTable, invalidSchemaName) {
		return 0, nil
	}
	if err != nil {
		return 0, opError(op, "the role needs USAGE on schema fencing and SELECT on "+versionTable, err)
	}
	return v, nil
}

// provider is goose over the embedded files, apart from whatever else in the
// program uses goose: a version table of its own, and none of the Go migrations
// that were registered globally. db holds the lock.
func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(FS, "sql")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true))
}

// upError adds to a failed Up what to do about it.
func upError(op string, err error) error {
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		op += ", " + path.Base(partial.Failed.Source.Path)
	}
	if isState(err, duplicateTable, duplicateFunction, duplicateObject) {
		var pg *pgconn.PgError
		errors.As(err, &pg)
		return &serverError{op: op, advice: "something in schema fencing was not installed by migrations.Up: if goose runs these files by itself, go on using that, else move it away", err: pg}
	}
	return opError(op, "the role needs CREATE on the database, or schema fencing of its own", err)
}
