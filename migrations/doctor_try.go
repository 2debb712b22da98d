package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	wallOpen     = "D801 wall-open"
	wallNotTried = "D802 wall-not-tried"
)

// walled is a table whose wall refuses.
type walled struct {
	Table, Column, Other string // as SQL writes them; Other is a column that a write may set, if there is one
	Rest                 string // the columns that an INSERT without a token has
}

// tryWalls sends writes to every table with a wall that must be refused.
func tryWalls(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	rows, err := conn.Query(ctx, `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), pg_catalog.quote_ident(r.token_column::pg_catalog.text),
			coalesce((SELECT pg_catalog.quote_ident(a.attname::pg_catalog.text) FROM pg_catalog.pg_attribute a
				WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
				AND a.attname OPERATOR(pg_catalog.<>) r.token_column AND a.attgenerated OPERATOR(pg_catalog.=) '' AND a.attidentity OPERATOR(pg_catalog.<>) 'a'
				ORDER BY a.attnum LIMIT 1), ''),
			coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname::pg_catalog.text), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
				WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
				AND a.attname OPERATOR(pg_catalog.<>) r.token_column AND a.attgenerated OPERATOR(pg_catalog.=) ''), '')
		FROM fencing.registry r
		JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.relid JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
		WHERE r.wall_level OPERATOR(pg_catalog.=) ANY ('{enforce,attested}'::pg_catalog.text[]) ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[walled])
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, t := range tables {
		found, err := t.try(ctx, conn)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// Nobody waits long for the doctor, and the doctor for nobody: a lock that is
// waited for holds up whoever comes after.
const tryLimits = `SELECT pg_catalog.set_config('lock_timeout', '100ms', true), pg_catalog.set_config('statement_timeout', '5s', true)`

// try sends a stale UPDATE, and an INSERT, another UPDATE, a DELETE and a
// TRUNCATE without a token. The transaction is rolled back in any case.
func (t walled) try(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, tryLimits); err != nil {
		return nil, err
	}
	var findings []Finding
	var row string // where a row is that may be tried on
	problem, err := behindSavepoint(ctx, tx, func(tx pgx.Tx) error {
		// locked inside, and free again after each of the writes
		err := tx.QueryRow(ctx, `SELECT pg_catalog.format('tableoid OPERATOR(pg_catalog.=) %s::pg_catalog.oid AND ctid OPERATOR(pg_catalog.=) %L::pg_catalog.tid', tableoid::pg_catalog.oid, ctid) FROM `+t.Table+` LIMIT 1 FOR UPDATE SKIP LOCKED`).Scan(&row)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case problem != nil:
		findings = append(findings, t.notTried("UPDATE and DELETE", problem.Message))
	case row == "":
		findings = append(findings, t.notTried("UPDATE and DELETE", "it has no row that is free, or none that the role sees"))
	}
	for _, w := range t.writes(row) {
		problem, err := behindSavepoint(ctx, tx, func(tx pgx.Tx) error { return w.run(ctx, tx) })
		switch {
		case errors.Is(err, errGone):
			findings = append(findings, t.notTried(w.verb, "it came to no row, which was changed in between, or which a trigger passed over"))
		case err != nil:
			return nil, err
		case problem == nil || w.verb == "INSERT" && isConstraint(problem):
			findings = append(findings, t.open(w))
		case !isWall(problem):
			findings = append(findings, t.notTried(w.verb, problem.Message))
		}
	}
	return findings, nil
}

// write is one that the wall must refuse.
type write struct {
	verb, sql string
	what      string // was accepted, if it was
}

func (t walled) writes(row string) []write {
	truncate := write{"TRUNCATE", `TRUNCATE ` + t.Table, "a TRUNCATE"}
	if row == "" {
		return []write{truncate}
	}
	writes := []write{
		{"UPDATE", fmt.Sprintf(`UPDATE %s SET %s = %[2]s OPERATOR(pg_catalog.-) 1 WHERE %[3]s`, t.Table, t.Column, row), "an UPDATE under an older token"},
		{"DELETE", fmt.Sprintf(`DELETE FROM %s WHERE %s`, t.Table, row), "a DELETE without a token"},
		truncate,
	}
	if t.Rest != "" {
		// a copy of the row: where a key refuses it, the wall has let it through before
		writes = append(writes, write{"INSERT", fmt.Sprintf(`INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %[2]s FROM %[1]s WHERE %[3]s`, t.Table, t.Rest, row),
			"an INSERT without a token"})
	}
	if t.Other != "" {
		// the mark of mode lease is made where the statement names the column
		writes = append(writes, write{"UPDATE", fmt.Sprintf(`UPDATE %s SET %s = %[2]s WHERE %[3]s`, t.Table, t.Other, row), "an UPDATE without a token"})
	}
	return writes
}

// errGone says that a write found no row any more, so that it says nothing.
var errGone = errors.New("no row")

func (w write) run(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, w.sql)
	if err == nil && w.verb != "TRUNCATE" && tag.RowsAffected() == 0 {
		return errGone
	}
	return err
}

// behindSavepoint runs f and takes back what it did, its locks included.
// problem is what the server had against it.
func behindSavepoint(ctx context.Context, tx pgx.Tx, f func(pgx.Tx) error) (problem *pgconn.PgError, err error) {
	nested, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	err = f(nested)
	if rollbackErr := nested.Rollback(ctx); rollbackErr != nil {
		return nil, rollbackErr
	}
	if errors.As(err, &problem) {
		return problem, nil
	}
	return nil, err
}

func (t walled) open(w write) Finding {
	return Finding{
		Severity: SeverityError, Code: wallOpen, Object: t.Table,
		Problem:     fmt.Sprintf("the server accepted %s", w.what),
		Consequence: "the wall does not hold",
		Remedy:      "mend the other findings about the table; if there are none, somebody has changed the functions of schema fencing: compare them with the migrations",
	}
}

func (t walled) notTried(verb, why string) Finding {
	return Finding{
		Severity: SeverityInfo, Code: wallNotTried, Object: t.Table,
		Problem:     fmt.Sprintf("%s could not be tried: %s", verb, strings.TrimSuffix(why, ".")),
		Consequence: "whether the wall refuses it is not known",
		Remedy:      "run the doctor again, as the owner of the table and of schema fencing",
	}
}

// isWall reports whether the wall's triggers have raised it.
func isWall(err *pgconn.PgError) bool { return len(err.Code) == 5 && err.Code[:2] == "FN" }

// isConstraint reports whether it is a constraint of the table, which is looked
// at after the wall's trigger, that an INSERT broke.
func isConstraint(err *pgconn.PgError) bool {
	return len(err.Code) == 5 && err.Code[:2] == "23" && err.ConstraintName != "" && err.Where == ""
}
