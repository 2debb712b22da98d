package driver

import (
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

// peek looks whether there is a first row, and returns rows that still begin
// with it. Without one the result is closed, so that the connection is free,
// and the error is io.EOF. atEnd, if given, is called with the count of rows
// when the last one has been read; its error ends them.
func peek(rows sqldriver.Rows, atEnd func(int64) error) (sqldriver.Rows, error) {
	ahead := &readAhead{atEnd: atEnd}
	err := ahead.read(rows)
	if err == nil {
		if std, ok := rows.(*stdlib.Rows); ok {
			return &pgxRows{Rows: std, ahead: ahead}, nil
		}
		return &anyRows{Rows: rows, ahead: ahead}, nil
	}
	end := ended{columns: rows.Columns()}
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

// anyRows is another driver's result with its first row read ahead.
type anyRows struct {
	sqldriver.Rows
	ahead *readAhead
}

func (r *anyRows) Next(dest []sqldriver.Value) error {
	if r.ahead.take(dest) {
		return nil
	}
	return r.ahead.counted(r.Rows.Next(dest))
}

// pgxRows is pgx's result with its first row read ahead. It keeps the optional
// interfaces of pgx's rows.
type pgxRows struct {
	*stdlib.Rows
	ahead *readAhead
}

var (
	_ sqldriver.RowsColumnTypeDatabaseTypeName = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeLength           = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypePrecisionScale   = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeScanType         = (*pgxRows)(nil)
)

func (r *pgxRows) Next(dest []sqldriver.Value) error {
	if r.ahead.take(dest) {
		return nil
	}
	return r.ahead.counted(r.Rows.Next(dest))
}

// readAhead holds the row that was read ahead until it is asked for, and
// counts the rows.
type readAhead struct {
	values  []sqldriver.Value
	pending bool
	count   int64
	atEnd   func(int64) error // nil once it was called
}

func (a *readAhead) read(rows sqldriver.Rows) error {
	a.values = make([]sqldriver.Value, len(rows.Columns()))
	if err := rows.Next(a.values); err != nil {
		return err
	}
	a.pending, a.count = true, 1
	return nil
}

func (a *readAhead) take(dest []sqldriver.Value) bool {
	if !a.pending {
		return false
	}
	a.pending = false
	copy(dest, a.values)
	a.values = nil
	return true
}

// counted passes on the end of a result, or the error that there is then.
func (a *readAhead) counted(err error) error {
	switch {
	case err == nil:
		a.count++
	case err == io.EOF && a.atEnd != nil:
		atEnd := a.atEnd
		a.atEnd = nil
		if partial := atEnd(a.count); partial != nil {
			return partial
		}
	}
	return err
}
