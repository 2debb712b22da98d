package driver

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// innerPackages are passed over when looking for the caller's line.
var innerPackages = []string{"database/sql", "github.com/jackc/pgx/v5", "runtime",
	"github.com/fencerow/fencerow/driver", "github.com/fencerow/fencerow/rewrite", "github.com/fencerow/fencerow/lease",
	"gorm.io", "github.com/uptrace/bun", "github.com/jmoiron/sqlx", "entgo.io/ent", "github.com/Masterminds/squirrel", "github.com/doug-martin/goqu", "github.com/go-jet/jet"}

// located adds the caller's line to a violation.
func (s *settings) located(err error) error {
	var v *rewrite.Violation
	if errors.As(err, &v) && v.Location == "" {
		found := *v
		found.Location = s.caller()
		return &found
	}
	return err
}

// caller returns file:line of the innermost frame that isn't a wrapper's, database/sql's,
// pgx's, fencerow's or of a package to skip. What stands between the driver and database/sql
// is a wrapper of the driver, as otelsql or sqlmw is: an application calls database/sql, but
// for the function that it gives to [sql.Conn.Raw].
func (s *settings) caller() string {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	first, isWithin := "", true
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch {
		case frame.Function == "":
		case isWithin && strings.HasPrefix(frame.Function, "database/sql."):
			if isWithin = false; first != "" && strings.HasPrefix(frame.Function, "database/sql.(*Conn).Raw") {
				return first
			}
			first = ""
		case first != "", inPackages(frame.Function, innerPackages), inPackages(frame.Function, s.callerSkip):
		default:
			if first = fmt.Sprintf("%s:%d", frame.File, frame.Line); !isWithin {
				return first
			}
		}
	}
	return first
}

// inPackages reports whether a function, named with its import path, is in one
// of the packages or below one.
func inPackages(function string, packages []string) bool {
	for _, p := range packages {
		if rest, ok := strings.CutPrefix(function, p); ok && rest != "" && (rest[0] == '.' || rest[0] == '/') {
			return true
		}
	}
	return false
}
