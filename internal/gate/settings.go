package gate

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// Settings are the settings of a session that the server reports.
type Settings interface {
	IsClosed() bool
	ParameterStatus(name string) string
}

// ViolationOf is what is wrong with sending a text on a session, if anything. isLoose says
// that it ran a statement, under another protection, that later checks rest on; settings
// is nil if there are none to look at.
func ViolationOf(plan *check.Plan, v *View, isLoose bool, settings Settings) *check.Violation {
	switch {
	case len(plan.Violations) > 0:
		return &plan.Violations[0]
	case isLoose:
		return check.Refuse(check.SessionState, "this session ran a statement that the check rests on before the table was enforced: give the connection back, a new one takes its place")
	case plan.Cleared:
		return nil
	case v.HasUnfit && plan.Guarded():
		if unfit := v.UnfitViolation(plan); unfit != nil {
			return unfit
		}
	}
	if settings == nil {
		return nil
	}
	if found := SettingsViolation(settings); found != nil || !plan.Guarded() {
		return found
	}
	return OperatorViolation(settings)
}

// OperatorViolation refuses a protected write on a session whose search_path is
// known to have pg_catalog behind another schema. PostgreSQL 18 and later report
// each change of that setting, whatever made it; earlier ones report none.
func OperatorViolation(s Settings) *check.Violation {
	path := s.ParameterStatus("search_path")
	if !strings.Contains(path, "pg_catalog") {
		return nil
	}
	if schemas, err := SearchPath(path, ""); err != nil || slices.Index(schemas, "pg_catalog") > 0 {
		return check.Refuse(check.UnsafePath, "pg_catalog does not come first in the session's search_path, so the operator < may be somebody's own: leave pg_catalog out of search_path")
	}
	return nil
}

// SettingsViolation refuses to send anything on a session in which the server
// would read a text otherwise than the parser. The server reports both
// settings whenever they change.
func SettingsViolation(s Settings) *check.Violation {
	switch {
	case s.IsClosed():
		return nil // who sends something finds that out
	case s.ParameterStatus("standard_conforming_strings") != "on":
		return check.Refuse(check.SessionState, "standard_conforming_strings is not on in this session, so the server would read texts otherwise than the check: set it on the role or the database, or in the DSN")
	case s.ParameterStatus("client_encoding") != "UTF8":
		return check.Refuse(check.SessionState, "client_encoding is not UTF8 in this session, so the server would read texts otherwise than the check: remove it from the DSN, PGCLIENTENCODING and the role")
	}
	return nil
}
