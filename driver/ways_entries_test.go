package driver_test

import (
	"context"
	"database/sql"
	"errors"
)

// sender is what sends statements under a context: a *sql.DB, *sql.Conn or
// *sql.Tx.
type sender interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// bareSender sends them without one: a *sql.DB or *sql.Tx.
type bareSender interface {
	Exec(query string, args ...any) (sql.Result, error)
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
	Prepare(query string) (*sql.Stmt, error)
}

// entry is a method of database/sql, or a chain of them, that sends a
// statement. Ping and Begin take no text and no arguments; what Raw gives is
// tested apart.
type entry struct {
	name     string
	prepared bool // database/sql counts the arguments of a prepared statement
	bare     bool // no context is given, and the transaction has no token either

	// send sends a statement, and then calls also on the same connection or
	// transaction, which ends with a commit: what got through stays.
	send func(ctx context.Context, db *sql.DB, also func(sender), query string, args []any) error
}

// form is an entry without the thing that it is a method of.
type form struct {
	name           string
	prepared, bare bool
	run            func(ctx context.Context, s sender, query string, args []any) error
}

var forms = []form{
	{"ExecContext", false, false, func(ctx context.Context, s sender, query string, args []any) error {
		return onlyError(s.ExecContext(ctx, query, args...))
	}},
	{"QueryContext", false, false, func(ctx context.Context, s sender, query string, args []any) error {
		return drain(s.QueryContext(ctx, query, args...))
	}},
	{"QueryRowContext", false, false, func(ctx context.Context, s sender, query string, args []any) error {
		return drainRow(s.QueryRowContext(ctx, query, args...))
	}},
	{"Exec", false, true, func(_ context.Context, s sender, query string, args []any) error {
		return onlyError(s.(bareSender).Exec(query, args...))
	}},
	{"Query", false, true, func(_ context.Context, s sender, query string, args []any) error {
		return drain(s.(bareSender).Query(query, args...))
	}},
	{"QueryRow", false, true, func(_ context.Context, s sender, query string, args []any) error {
		return drainRow(s.(bareSender).QueryRow(query, args...))
	}},
}

// stmtForm is how a prepared statement runs.
type stmtForm struct {
	name string
	bare bool
	run  func(ctx context.Context, s *sql.Stmt, args []any) error
}

var stmtForms = []stmtForm{
	{"ExecContext", false, func(ctx context.Context, s *sql.Stmt, args []any) error {
		return onlyError(s.ExecContext(ctx, args...))
	}},
	{"QueryContext", false, func(ctx context.Context, s *sql.Stmt, args []any) error {
		return drain(s.QueryContext(ctx, args...))
	}},
	{"QueryRowContext", false, func(ctx context.Context, s *sql.Stmt, args []any) error {
		return drainRow(s.QueryRowContext(ctx, args...))
	}},
	{"Exec", true, func(_ context.Context, s *sql.Stmt, args []any) error { return onlyError(s.Exec(args...)) }},
	{"Query", true, func(_ context.Context, s *sql.Stmt, args []any) error { return drain(s.Query(args...)) }},
	{"QueryRow", true, func(_ context.Context, s *sql.Stmt, args []any) error { return drainRow(s.QueryRow(args...)) }},
}

// preparedForms are the statements' forms with Prepare before them.
func preparedForms() []form {
	var all []form
	for _, f := range stmtForms {
		prepare := func(ctx context.Context, s sender, query string) (*sql.Stmt, error) {
			return s.PrepareContext(ctx, query)
		}
		name := "PrepareContext, "
		if f.bare {
			prepare = func(_ context.Context, s sender, query string) (*sql.Stmt, error) {
				return s.(bareSender).Prepare(query)
			}
			name = "Prepare, "
		}
		all = append(all, form{name + "Stmt." + f.name, true, f.bare, func(ctx context.Context, s sender, query string, args []any) error {
			stmt, err := prepare(ctx, s, query)
			if err != nil {
				return err
			}
			return errors.Join(f.run(ctx, stmt, args), stmt.Close())
		}})
	}
	return all
}

// scope is what forms are methods of.
type scope struct {
	name  string
	conn  bool // a *sql.Conn, which has no forms without a context
	bound bool // a transaction that carries the token
	open  func(ctx context.Context, db *sql.DB) (s sender, done func() error, err error)
}

var scopes = []scope{
	{"DB.", false, false, func(_ context.Context, db *sql.DB) (sender, func() error, error) {
		return db, func() error { return nil }, nil
	}},
	{"Conn.", true, false, func(ctx context.Context, db *sql.DB) (sender, func() error, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}},
	{"DB.Begin, Tx.", false, false, func(_ context.Context, db *sql.DB) (sender, func() error, error) {
		tx, err := db.Begin()
		if err != nil {
			return nil, nil, err
		}
		return tx, tx.Commit, nil
	}},
	{"DB.BeginTx, Tx.", false, true, func(ctx context.Context, db *sql.DB) (sender, func() error, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return tx, tx.Commit, nil
	}},
	{"Conn.BeginTx, Tx.", false, true, func(ctx context.Context, db *sql.DB) (sender, func() error, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
		return tx, func() error { return errors.Join(tx.Commit(), conn.Close()) }, nil
	}},
}

// entries are all forms of all scopes, and the handle's statements run in a
// transaction.
func entries() []entry {
	var all []entry
	for _, s := range scopes {
		for _, f := range append(preparedForms(), forms...) {
			if s.conn && f.bare {
				continue
			}
			all = append(all, entry{s.name + f.name, f.prepared, f.bare && !s.bound, func(ctx context.Context, db *sql.DB, also func(sender), query string, args []any) error {
				target, done, err := s.open(ctx, db)
				if err != nil {
					return err
				}
				defer func() { _ = done() }() // also where a test fails in between: the next one needs the connection
				err = f.run(ctx, target, query, args)
				also(target)
				return errors.Join(err, done())
			}})
		}
	}
	for _, f := range stmtForms {
		all = append(all, borrowed(f))
	}
	return all
}

// borrowed is a statement of the handle that runs in a transaction. One that
// isn't prepared leaves nothing to borrow.
func borrowed(f stmtForm) entry {
	name := "DB.PrepareContext, Tx.StmtContext, Stmt."
	if f.bare {
		name = "DB.PrepareContext, Tx.Stmt, Stmt."
	}
	return entry{name + f.name, true, false, func(ctx context.Context, db *sql.DB, also func(sender), query string, args []any) error {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			also(db)
			return err
		}
		defer stmt.Close()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		inTx := tx.StmtContext(ctx, stmt)
		if f.bare {
			inTx = tx.Stmt(stmt)
		}
		err = f.run(ctx, inTx, args)
		also(tx)
		return errors.Join(err, tx.Commit())
	}}
}

func onlyError(_ sql.Result, err error) error { return err }

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// drainRow takes a row or none: a write without RETURNING has none.
func drainRow(row *sql.Row) error {
	var v any
	if err := row.Scan(&v); !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return nil
}
