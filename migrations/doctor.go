package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The severities of a [Finding].
const (
	SeverityError   = "error"   // the protection is gone, in part at least, or can be taken away
	SeverityWarning = "warning" // it is weaker than it could be, or about to go
	SeverityInfo    = "info"    // what there is to know about it
)

// Finding is one thing that the doctor found.
type Finding struct {
	Severity    string // SeverityError, SeverityWarning or SeverityInfo
	Code        string // such as "D202 trigger-missing"; the same in all versions
	Object      string // what it is about, as SQL names it
	Problem     string
	Consequence string
	Remedy      string // the statement that mends it, where there is one
}

// String is the finding on one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%s %s: %s: %s; %s; %s", f.Severity, f.Code, f.Object, f.Problem, f.Consequence, f.Remedy)
	return strings.Join(strings.Fields(line), " ")
}

// Healthy reports whether there is no error among the findings.
func Healthy(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == SeverityError })
}

const (
	versionBehind = "D901 version-behind"
	schemaChanged = "D004 schema-changed"
)

// Doctor finds what takes the protection away, or will do so, errors first. It
// asks the SQL function fencing.doctor, and then the wall itself: on every
// table whose wall refuses, it sends stale and unguarded writes that must come
// to nothing, in a transaction that is rolled back. For a moment that locks one
// row that nobody else has locked, and for TRUNCATE the table, if it gets that
// lock within a tenth of a second. The table's own triggers run, too, as the
// role of the DSN: what they do outside of the database stays done.
//
// roles are the roles that the application connects as. Without them all roles
// are judged that can log in and write a protected table; then one that owns
// what is protected is only a warning, since it may be there to deploy.
//
// Give it the DSN of the role that ran [Up]. Another one needs EXECUTE on
// fencing.doctor and the application's rights; what it can't see or try is left
// out, or an info finding.
//
// Without [Up] the error is [ErrNotInstalled].
func Doctor(ctx context.Context, dsn string, roles ...string) ([]Finding, error) {
	const op = "run the doctor"
	conn, err := connect(ctx, op, dsn)
	if err != nil {
		return nil, err
	}
	defer closeConn(ctx, conn)
	return doctorOver(ctx, op, conn, roles)
}

// doctorOver is [Doctor] over a connection of [connect].
func doctorOver(ctx context.Context, op string, conn *pgx.Conn, roles []string) ([]Finding, error) {
	findings, err := doctorSQL(ctx, conn, roles)
	if isState(err, undefinedFunction, invalidSchemaName) {
		if err := requireInstalled(ctx, conn, op); err != nil {
			return nil, err
		}
		return nil, functionMissing(op, err)
	}
	if err != nil {
		return nil, opError(op, "the role needs USAGE on schema fencing, SELECT on fencing.registry and EXECUTE on fencing.doctor", err)
	}
	version, err := doctorVersion(ctx, conn)
	if err != nil {
		return nil, opError(op, "", err)
	}
	changed, err := doctorFunctions(ctx, conn, findings)
	if err != nil {
		return nil, opError(op, "", err)
	}
	tried, err := tryWalls(ctx, conn)
	if isState(err, undefinedTable, undefinedColumn) && !Healthy(findings) {
		err = nil // the findings say what is missing
	}
	if err != nil {
		return nil, opError(op, "", err)
	}
	findings = slices.Concat(findings, version, changed, tried)
	slices.SortStableFunc(findings, func(a, b Finding) int { return rank(a) - rank(b) })
	return findings, nil
}

func rank(f Finding) int {
	return slices.Index([]string{SeverityError, SeverityWarning, SeverityInfo}, f.Severity)
}

func doctorSQL(ctx context.Context, conn *pgx.Conn, roles []string) ([]Finding, error) {
	if len(roles) == 0 {
		roles = nil // NULL, not an empty list
	}
	// no operators and no bare names: the search path is the role's own
	rows, err := conn.Query(ctx, `SELECT severity, code, object, problem, consequence, remedy
		FROM fencing.doctor(false, $1::pg_catalog.text[]::pg_catalog.name[])`, roles)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
}

// doctorVersion compares the migrations that have run with those of this
// package. It leaves out what it may not read, and what other tools keep.
func doctorVersion(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	var at int64
	err := conn.QueryRow(ctx, `SELECT coalesce(pg_catalog.max(version_id), 0) FROM `+versionTable).Scan(&at)
	if isState(err, undefinedTable, insufficientPrivilege) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	latest, err := latestVersion()
	if err != nil || at >= latest {
		return nil, err
	}
	return []Finding{{
		Severity: SeverityWarning, Code: versionBehind, Object: "schema fencing",
		Problem:     fmt.Sprintf("it is at version %d, and this program has migrations up to %d", at, latest),
		Consequence: "what the newer version mends is not mended here",
		Remedy:      "run migrations.Up(ctx, dsn)",
	}}, nil
}

// doctorFunctions compares the functions of the doctor itself with those that this
// package's migrations make: what a changed one says of itself is worth nothing.
// It leaves out a schema of another version, and what findings have.
func doctorFunctions(ctx context.Context, conn *pgx.Conn, findings []Finding) ([]Finding, error) {
	functions, err := schemaFunctions()
	if err != nil {
		return nil, err
	}
	query, err := differencesSQL(functions)
	if err != nil {
		return nil, err
	}
	latest, err := latestVersion()
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var at int64
	err = tx.QueryRow(ctx, `SELECT coalesce(pg_catalog.max(version_id), 0) FROM `+versionTable).Scan(&at)
	if isState(err, undefinedTable, insufficientPrivilege) || err == nil && at != latest {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, enterPath); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	var name, signature string
	var isMissing bool
	var changed []Finding
	_, err = pgx.ForEachRow(rows, []any{&name, &signature, &isMissing}, func() error {
		f := Finding{
			Severity: SeverityError, Code: schemaChanged, Object: "function fencing." + signature, Problem: "it is not as this package made it",
			Consequence: "what the doctor says rests on it", Remedy: "run migrations.Up(ctx, dsn), which makes it again",
		}
		if strings.HasPrefix(name, "doctor") && !isMissing && !slices.ContainsFunc(findings, func(found Finding) bool { return found.Object == f.Object }) {
			changed = append(changed, f)
		}
		return nil
	})
	return changed, err
}

// latestVersion is the number of the last file in FS.
func latestVersion() (int64, error) {
	files, err := fs.Glob(FS, "sql/*.sql") // sorted
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, errors.New("no migrations in the program")
	}
	number, _, _ := strings.Cut(path.Base(files[len(files)-1]), "_")
	return strconv.ParseInt(number, 10, 64)
}
