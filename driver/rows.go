package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"io"

	"github.com/jackc/pgx/v5/stdlib"
)

// noRows is the empty result of a write that was executed although the caller
// asked for rows.
type noRows struct{}

func (noRows) Columns() []string            { return []string{} }
func (noRows) Close() error                 { return nil }
func (noRows) Next([]sqldriver.Value) error { return io.EOF }

// of returns the rows as they are read here.
func (r *cursor) of(rows sqldriver.Rows) sqldriver.Rows {
	if std, ok := rows.(*stdlib.Rows); ok {
		return &pgxRows{Rows: std, cursor: r}
	}
	return &anyRows{Rows: rows, cursor: r}
}

// peek looks whether there is a first row, and returns rows that still begin
// with it. Without one the result is closed, so that the connection is free,
// and the error is io.EOF.
func (r *cursor) peek(rows sqldriver.Rows) (sqldriver.Rows, error) {
	err := r.ahead(rows)
	if err == nil {
		return r.of(rows), nil
	}
	end := ended{columns: r.columns(rows)}
	if std, ok := rows.(*stdlib.Rows); ok {
		return endPgx(std, end, err)
	}
	return end.after(rows, err)
}

// ended is a result whose end has been seen.
type ended struct {
	noRows
	columns []string
}

func (r *ended) Columns() []string { return r.columns }

// after closes the rows, of which reading has ended with err.
func (r *ended) after(rows sqldriver.Rows, err error) (sqldriver.Rows, error) {
	if closeErr := rows.Close(); err == io.EOF && closeErr != nil {
		err = closeErr
	}
	if err != io.EOF {
		return nil, err
	}
	return r, io.EOF
}

// anyRows is another driver's result.
type anyRows struct {
	sqldriver.Rows
	cursor *cursor
}

func (r *anyRows) Columns() []string { return r.cursor.columns(r.Rows) }

func (r *anyRows) Next(dest []sqldriver.Value) error { return r.cursor.next(r.Rows, dest) }

// Close ends the statement, and with it what it may have changed.
func (r *anyRows) Close() error { return r.cursor.close(r.Rows) }

// pgxRows is pgx's result. It keeps the optional interfaces of pgx's rows.
type pgxRows struct {
	*stdlib.Rows
	cursor *cursor
}

var (
	_ sqldriver.RowsColumnTypeDatabaseTypeName = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeLength           = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypePrecisionScale   = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeScanType         = (*pgxRows)(nil)
)

func (r *pgxRows) Columns() []string { return r.cursor.columns(r.Rows) }

func (r *pgxRows) Next(dest []sqldriver.Value) error { return r.cursor.next(r.Rows, dest) }

// Close ends the statement, and with it what it may have changed.
func (r *pgxRows) Close() error { return r.cursor.close(r.Rows) }

// cursor is how far a result has been read. It holds a row that was read ahead
// until it is asked for.
type cursor struct {
	values  []sqldriver.Value
	pending bool
	hasGate bool // the last column is the statement's gate, which the caller doesn't know of
	count   int64
	atEnd   func(int64) error // gives the error that a result ends with; nil once it was called

	// for the error that stands for the server's
	conn      *Conn
	ctx       context.Context
	statement *statement // nil where nothing but its text matters
	sql       string
}

func (r *cursor) close(rows sqldriver.Rows) error {
	defer r.conn.noteChanges()
	return rows.Close()
}

func (r *cursor) ahead(rows sqldriver.Rows) error {
	r.values = make([]sqldriver.Value, len(rows.Columns()))
	if err := rows.Next(r.values); err != nil {
		return err
	}
	r.pending, r.count = true, 1
	return nil
}

// columns returns the names of the columns that the caller asked for.
func (r *cursor) columns(rows sqldriver.Rows) []string {
	names := rows.Columns()
	if r.hasGate && len(names) > 0 {
		return names[:len(names)-1]
	}
	return names
}

// next reads the next row of the columns that the caller asked for.
func (r *cursor) next(rows sqldriver.Rows, dest []sqldriver.Value) error {
	switch {
	case r.take(dest):
		return nil
	case !r.hasGate:
		return r.counted(rows.Next(dest))
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	err := rows.Next(row)
	copy(dest, row)
	return r.counted(err)
}

func (r *cursor) take(dest []sqldriver.Value) bool {
	if !r.pending {
		return false
	}
	r.pending = false
	copy(dest, r.values)
	r.values = nil
	return true
}

// counted passes on the end of a result, or the error that there is then.
func (r *cursor) counted(err error) error {
	switch {
	case err == nil:
		r.count++
		return nil
	case err != io.EOF:
		if r.statement == nil {
			r.statement = textOnly(r.sql)
		}
		return r.conn.fromServer(r.ctx, r.statement, err)
	case r.atEnd == nil:
		return err
	}
	atEnd := r.atEnd
	r.atEnd = nil
	if partial := atEnd(r.count); partial != nil {
		return partial
	}
	return err
}
