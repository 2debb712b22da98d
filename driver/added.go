package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/check"
)

// tellAdded has the server's error of a rewritten statement say what was added to the
// text, which the caller hasn't written. It stays an error of pgx's type, which programs
// ask for without errors.As. Errors that come of no text stay as they are.
func tellAdded(plan *check.Plan, err error) error {
	added := plan.AddedText()
	var pgErr *pgconn.PgError
	if added == "" || !errors.As(err, &pgErr) || !isOfText(pgErr.Code) {
		return err
	}
	note := fmt.Sprintf("; the statement was sent rewritten: fencerow added %s", added)
	if strings.HasSuffix(pgErr.Message, note) {
		return err // told already, while its rows were read
	}
	told := *pgErr
	told.Message += note
	return &told
}

// isOfText reports whether an error of that SQLSTATE may come of the statement's text:
// not one of the connection, of the wall, of other transactions or of the server.
func isOfText(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "25", "40", "53", "55", "57", "58", "FN", "XX":
		return false
	}
	return true
}
