package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"runtime"
	"slices"

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

// end closes rows that were read to their end, so that the connection is free, and
// returns them again.
func (r *cursor) end(rows sqldriver.Rows) (sqldriver.Rows, error) {
	read := ended{columns: r.columns(rows), rows: r.buffer}
	if std, ok := rows.(*stdlib.Rows); ok {
		return endPgx(std, read)
	}
	return &read, rows.Close()
}

// ended is a result that has been read to its end.
type ended struct {
	noRows
	columns []string
	rows    [][]sqldriver.Value // those that are still to come
	current []sqldriver.Value
}

func (r *ended) Columns() []string { return r.columns }

// Next returns the next of the rows that were read.
func (r *ended) Next(dest []sqldriver.Value) error {
	if !r.advance() {
		return io.EOF
	}
	copy(dest, r.current)
	return nil
}

// advance makes the next row the current one, if there is one.
func (r *ended) advance() bool {
	if len(r.rows) == 0 {
		return false
	}
	r.current, r.rows = r.rows[0], r.rows[1:]
	return true
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

// cursor is how far a result has been read. It holds the rows that were read ahead
// until they are asked for.
type cursor struct {
	buffer  [][]sqldriver.Value
	current []sqldriver.Value // of these, nil if the rows themselves are at the current row
	first   []sqldriver.Value // the first row
	hidden  int               // the last columns that the caller doesn't know of: counts, and a gate
	total   int64             // the rows that were read
	// gives the error that a result of so many rows ends with; nil once it was called
	atEnd func(context.Context, int64) error

	// for the error that stands for the server's
	conn      *Conn
	ctx       context.Context
	statement *statement // nil where nothing but its text matters
	sql       string
}

// close ends the statement. One whose outcome is told with the last row tells it here if
// nobody has asked for that row: what was left out doesn't show in the rows before.
func (r *cursor) close(rows sqldriver.Rows) error {
	defer r.conn.noteChanges()
	if r.atEnd == nil {
		return rows.Close()
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	err := rows.Next(row)
	for ; err == nil; err = rows.Next(row) {
		r.total++
	}
	closeErr := rows.Close()
	switch {
	case err != io.EOF:
		return r.conn.fromServer(r.ctx, r.statement, err)
	case closeErr != nil:
		return r.conn.fromServer(r.ctx, r.statement, closeErr)
	}
	ctx := r.ctx
	if ctx.Err() != nil { // the statement has run, whatever became of its context
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
		defer cancel()
		ctx = detached
	}
	err = r.outcome(ctx)
	if tx := r.conn.bound(); err != nil && tx != nil && isClosedForContext() {
		tx.unread = err
	}
	return err
}

// isClosedForContext reports whether database/sql closes rows by itself, since a context
// or a transaction has ended: then nobody hears what they end with.
func isClosedForContext() bool {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if frame.Function == "database/sql.(*Rows).awaitDone" {
			return true
		}
		if !more {
			return false
		}
	}
}

// outcome returns the error that the result ends with, if there is one.
func (r *cursor) outcome(ctx context.Context) error {
	atEnd := r.atEnd
	r.atEnd = nil
	return atEnd(ctx, r.total)
}

// ahead reads rows until there are as many as given, or all if that is negative. It
// reports whether there are no more.
func (r *cursor) ahead(rows sqldriver.Rows, least int) (ended bool, err error) {
	for least < 0 || len(r.buffer) < least {
		row := make([]sqldriver.Value, len(rows.Columns()))
		if err := rows.Next(row); err == io.EOF {
			return true, nil
		} else if err != nil {
			return false, err
		}
		for i, value := range row {
			if bytes, ok := value.([]byte); ok {
				row[i] = slices.Clone(bytes) // the next row takes its place
			}
		}
		if r.total++; r.first == nil {
			r.first = row
		}
		r.buffer = append(r.buffer, row)
	}
	return false, nil
}

// count reads and closes rows, of which it keeps the first.
func (r *cursor) count(rows sqldriver.Rows) (n int64, err error) {
	ended, err := r.ahead(rows, 1)
	if err == nil && !ended {
		row := make([]sqldriver.Value, len(rows.Columns()))
		for err = rows.Next(row); err == nil; err = rows.Next(row) {
			r.total++
		}
		if err == io.EOF {
			err = nil
		}
	}
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	return r.total, err
}

// columns returns the names of the columns that the caller asked for.
func (r *cursor) columns(rows sqldriver.Rows) []string {
	names := rows.Columns()
	return names[:max(0, len(names)-r.hidden)]
}

// next reads the next row of the columns that the caller asked for.
func (r *cursor) next(rows sqldriver.Rows, dest []sqldriver.Value) error {
	switch {
	case r.advance():
		copy(dest, r.current)
		return nil
	case r.hidden == 0:
		return r.counted(rows.Next(dest))
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	err := rows.Next(row)
	copy(dest, row)
	return r.counted(err)
}

// advance makes the next of the rows that were read ahead the current one, if there is
// one.
func (r *cursor) advance() bool {
	if len(r.buffer) == 0 {
		r.current = nil
		return false
	}
	r.current, r.buffer = r.buffer[0], r.buffer[1:]
	return true
}

// counted passes on the end of a result, or the error that there is then.
func (r *cursor) counted(err error) error {
	switch {
	case err == nil:
		r.total++
		return nil
	case err != io.EOF:
		if r.statement == nil {
			r.statement = textOnly(r.sql)
		}
		return r.conn.fromServer(r.ctx, r.statement, err)
	case r.atEnd == nil:
		return err
	}
	if partial := r.outcome(r.ctx); partial != nil {
		return partial
	}
	return err
}
