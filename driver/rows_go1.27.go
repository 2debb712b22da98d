//go:build go1.27

package driver

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
)

// As of Go 1.27 database/sql advances pgx's rows by NextRow and scans straight
// from them. A row that was read ahead is scanned from its values, as before Go 1.27.
var (
	_ sqldriver.RowsColumnScanner = (*pgxRows)(nil)
	_ sqldriver.RowsColumnScanner = (*pgxEnded)(nil)
)

// NextRow advances to the next row.
func (r *pgxRows) NextRow() error {
	if r.cursor.advance() {
		return nil
	}
	return r.cursor.counted(r.Rows.NextRow())
}

// ScanColumn copies a column of the row to dest.
func (r *pgxRows) ScanColumn(ctx sqldriver.ScanContext, index int, dest any) error {
	if r.cursor.current == nil {
		return r.Rows.ScanColumn(ctx, index, dest)
	}
	return sql.ConvertAssign(ctx, dest, r.cursor.current[index])
}

// NextRow advances to the next of the rows that were read.
func (r *pgxEnded) NextRow() error {
	if !r.ended.advance() {
		return io.EOF
	}
	return nil
}

// ScanColumn copies a column of the row to dest.
func (r *pgxEnded) ScanColumn(ctx sqldriver.ScanContext, index int, dest any) error {
	return sql.ConvertAssign(ctx, dest, r.ended.current[index])
}
