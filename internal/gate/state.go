package gate

import (
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// State is what the check of a session's statements rests on, beside the settings that
// the server reports.
type State struct {
	Path        []string // the search path that it began with
	IsPathKnown bool     // false once a statement may have changed it
	IsPutOff    bool     // a prepared statement or a cursor may change the catalog when it runs

	loose *Protection // under it, a statement ran that may have changed what later checks rest on
}

// IsLooseUnder reports whether the tables have changed since such a statement.
func (s *State) IsLooseUnder(p *Protection) bool { return s.loose != nil && s.loose != p }

// IsLoose reports whether there was such a statement.
func (s *State) IsLoose() bool { return s.loose != nil }

// View returns a protection as the session sees it. last is the view that it had before,
// which is returned if nothing has changed.
func (s *State) View(p *Protection, last *View) *View {
	if last != nil && last.Protection == p && last.IsPathless != s.IsPathKnown {
		return last
	}
	return s.newView(p)
}

// newView returns a protection by the path that the session has, as far as it is known.
// It is apart from View so that the compiler puts that in its caller's place.
func (s *State) newView(p *Protection) *View {
	if s.IsPathKnown {
		return p.View(s.Path)
	}
	return p.AnyPath(s.Path)
}

// Under returns a policy as the session sees it.
func (s *State) Under(p *check.Policy) *check.Policy {
	p = p.ForPath(s.Path...)
	if !s.IsPathKnown {
		p = p.ForAnyPath()
	}
	return p
}

// MakesNow reports whether a text that is about to be sent may change the catalog: it
// makes such a change itself, or runs what an earlier text has put off. Whether it puts
// one off is noted. isWithin says that the open transaction has made one.
func (s *State) MakesNow(sql string, makes, isWithin bool) bool {
	s.IsPutOff = s.IsPutOff || makes && PreparesLater.MatchString(sql)
	return makes || (s.IsPutOff || isWithin) && RunsLater.MatchString(sql)
}

// ForgetPath says that a statement may have changed the search path.
func (s *State) ForgetPath() { s.IsPathKnown = false }

// Loosen remembers that a statement was sent which would be refused if all the
// tables were enforced, and that may have left something behind for later ones:
// a setting, a temporary view, a prepared statement.
func (s *State) Loosen(p *Protection, plan *check.Plan) {
	if s.loose == nil && slices.ContainsFunc(plan.Violations, func(v check.Violation) bool { return v.Rule.LeavesState() }) {
		s.loose = p
	}
}
