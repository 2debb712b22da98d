package driver

import (
	sqldriver "database/sql/driver"
	"io"

	"github.com/jackc/pgx/v5/stdlib"
)

// noRows is the empty result of a write that was executed although the caller
// asked for rows.
type noRows struct{}

func (noRows) Columns() []string            { return nil }
func (noRows) Close() error                 { return nil }
func (noRows) Next([]sqldriver.Value) error { return io.EOF }

// peek looks whether there is a first row, and returns rows that still begin
// with it. Without one the result is closed, so that the connection is free,
// and the error is io.EOF.
func peek(rows sqldriver.Rows) (sqldriver.Rows, error) {
	first := &firstRow{}
	err := first.read(rows)
	if err == nil {
		if std, ok := rows.(*stdlib.Rows); ok {
			return &pgxRows{Rows: std, first: first}, nil
		}
		return &anyRows{Rows: rows, first: first}, nil
	}
	columns := rows.Columns()
	if closeErr := rows.Close(); err == io.EOF && closeErr != nil {
		err = closeErr
	}
	if err != io.EOF {
		return nil, err
	}
	return &emptyRows{columns: columns}, io.EOF
}

// emptyRows is a result whose end has been seen.
type emptyRows struct {
	noRows
	columns []string
}

func (r *emptyRows) Columns() []string { return r.columns }

// anyRows is another driver's result with its first row read ahead.
type anyRows struct {
	sqldriver.Rows
	first *firstRow
}

func (r *anyRows) Next(dest []sqldriver.Value) error {
	if r.first.take(dest) {
		return nil
	}
	return r.Rows.Next(dest)
}

// pgxRows is pgx's result with its first row read ahead. It keeps the optional
// interfaces of pgx's rows.
type pgxRows struct {
	*stdlib.Rows
	first *firstRow
}

var (
	_ sqldriver.RowsColumnTypeDatabaseTypeName = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeLength           = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypePrecisionScale   = (*pgxRows)(nil)
	_ sqldriver.RowsColumnTypeScanType         = (*pgxRows)(nil)
)

func (r *pgxRows) Next(dest []sqldriver.Value) error {
	if r.first.take(dest) {
		return nil
	}
	return r.Rows.Next(dest)
}

// firstRow holds the row that was read ahead until it is asked for.
type firstRow struct {
	values  []sqldriver.Value
	pending bool
}

func (f *firstRow) read(rows sqldriver.Rows) error {
	f.values = make([]sqldriver.Value, len(rows.Columns()))
	if err := rows.Next(f.values); err != nil {
		return err
	}
	f.pending = true
	return nil
}

func (f *firstRow) take(dest []sqldriver.Value) bool {
	if !f.pending {
		return false
	}
	f.pending = false
	copy(dest, f.values)
	f.values = nil
	return true
}
