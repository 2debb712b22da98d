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
	"gorm.io", "github.com/uptrace/bun", "github.com/jmoiron/sqlx", "entgo.io/ent", "github.com/Masterminds/squirrel", "github.com/doug-martin/goqu"}

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

// caller returns file:line of the innermost frame that isn't database/sql's,
// pgx's, fencerow's or of a package to skip.
func (s *settings) caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !inPackages(frame.Function, innerPackages) && !inPackages(frame.Function, s.callerSkip) {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		if !more {
			return ""
		}
	}
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
