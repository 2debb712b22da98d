package gate

import (
	"unsafe"

	"github.com/fencerow/fencerow/internal/check"
)

// Recent are plans that a connection has used lately: a hit takes no lock and no
// hash of the text. Where the text stands in memory only says where to look; it
// is compared whole with a copy, since a caller may use its memory again.
type Recent [recentPlans]struct {
	view *View
	sql  string // the cache's own copy
	plan *check.Plan
}

const (
	recentPlans = 32
	recentText  = 16 << 10 // the longest text that is kept here, in bytes
)

// place returns where the plan of a text is kept.
func (r *Recent) place(sql string) int {
	at := uintptr(unsafe.Pointer(unsafe.StringData(sql)))
	return int((at>>3 ^ at>>11 ^ uintptr(len(sql))) % recentPlans)
}

// Find returns the plan of a text, nil if it isn't here.
func (r *Recent) Find(v *View, sql string) *check.Plan {
	if e := &r[r.place(sql)]; e.view == v && e.sql == sql {
		return e.plan
	}
	return nil
}

// Keep remembers a plan from the cache, whose text is a copy of the caller's.
func (r *Recent) Keep(v *View, sql string, plan *check.Plan) {
	if plan.HasParserFailed() {
		return
	}
	if len(sql) > recentText {
		return
	}
	e := &r[r.place(sql)]
	if e.view == v && e.plan == plan {
		return
	}
	e.view, e.sql, e.plan = v, plan.Given(), plan
}
