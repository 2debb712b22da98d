package driver

import (
	sqldriver "database/sql/driver"
	"reflect"

	"github.com/jackc/pgx/v5/stdlib"
)

// pgxEnded is pgx's result whose end has been seen, with all that it told of
// its columns: pgx forgets it with the next query, which may be a probe.
type pgxEnded struct {
	*stdlib.Rows // closed; it is here for its interfaces
	ended
	types []columnType
}

type columnType struct {
	database                string
	scan                    reflect.Type
	length                  int64
	precision, scale        int64
	hasLength, hasPrecision bool
}

// endPgx closes pgx's rows, and returns what was read of them.
func endPgx(rows *stdlib.Rows, read ended) (sqldriver.Rows, error) {
	r := &pgxEnded{Rows: rows, ended: read, types: make([]columnType, len(read.columns))}
	for i := range r.types {
		t := &r.types[i]
		t.database, t.scan = rows.ColumnTypeDatabaseTypeName(i), rows.ColumnTypeScanType(i)
		t.length, t.hasLength = rows.ColumnTypeLength(i)
		t.precision, t.scale, t.hasPrecision = rows.ColumnTypePrecisionScale(i)
	}
	return r, rows.Close()
}

// Columns returns the columns' names.
func (r *pgxEnded) Columns() []string { return r.ended.Columns() }

// Close does nothing: pgx's result is closed.
func (r *pgxEnded) Close() error { return nil }

// Next returns the next of the rows that were read.
func (r *pgxEnded) Next(dest []sqldriver.Value) error { return r.ended.Next(dest) }

// ColumnTypeDatabaseTypeName returns the name of a column's type.
func (r *pgxEnded) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].database }

// ColumnTypeScanType returns the type to scan a column into.
func (r *pgxEnded) ColumnTypeScanType(i int) reflect.Type { return r.types[i].scan }

// ColumnTypeLength returns the length of a column's type.
func (r *pgxEnded) ColumnTypeLength(i int) (int64, bool) {
	return r.types[i].length, r.types[i].hasLength
}

// ColumnTypePrecisionScale returns the precision and scale of a column's type.
func (r *pgxEnded) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return r.types[i].precision, r.types[i].scale, r.types[i].hasPrecision
}
