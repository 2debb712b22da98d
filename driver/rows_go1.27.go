//go:build go1.27

package driver

import (
	sqldriver "database/sql/driver"
	"io"
)

// As of Go 1.27 database/sql advances pgx's rows by NextRow and scans straight
// from them; the row that was read ahead is still the current one there.
var (
	_ sqldriver.RowsColumnScanner = (*pgxRows)(nil)
	_ sqldriver.RowsColumnScanner = (*pgxEnded)(nil)
)

// NextRow advances to the next row.
func (r *pgxRows) NextRow() error {
	if r.cursor.pending {
		r.cursor.pending, r.cursor.values = false, nil
		return nil
	}
	return r.cursor.counted(r.Rows.NextRow())
}

// NextRow finds none.
func (r *pgxEnded) NextRow() error { return io.EOF }
