package gate

import (
	"sync/atomic"

	"github.com/fencerow/fencerow/internal/check"
)

// Detour is a reason for which a statement didn't take the short way, on which
// nothing but its token is looked at before it is sent. Package driver exports the
// reasons, and says what each means. If there are several, the first in this order
// counts.
type Detour uint8

// The reasons.
const (
	OnShortWay Detour = iota // there is none

	DetourArgument
	DetourReportedTable
	DetourOffTable
	DetourUnfitTable
	DetourCatalogChange
	DetourChangeInTransaction
	DetourUncheckedState
	DetourDeferredChange
	DetourNested
	DetourUnreadChange
	DetourObserver
	DetourSimpleProtocol
	DetourViolation
	DetourRewritten
	DetourSideEffect
	DetourTokenInText
	DetourGuardedQuery
	DetourSessionSetting
	DetourTransactionToken
	DetourNoToken
	DetourTokenArgument
	DetourPreparedText

	DetourEnd
)

var detourNames = [DetourEnd]string{
	OnShortWay:                "none",
	DetourArgument:            "argument",
	DetourReportedTable:       "reported table",
	DetourOffTable:            "off table",
	DetourUnfitTable:          "unfit table",
	DetourCatalogChange:       "catalog change",
	DetourChangeInTransaction: "change in transaction",
	DetourUncheckedState:      "unchecked state",
	DetourDeferredChange:      "deferred change",
	DetourNested:              "nested",
	DetourUnreadChange:        "unread change",
	DetourObserver:            "observer",
	DetourSimpleProtocol:      "simple protocol",
	DetourViolation:           "violation",
	DetourRewritten:           "rewritten",
	DetourSideEffect:          "side effect",
	DetourTokenInText:         "token in text",
	DetourGuardedQuery:        "guarded query",
	DetourSessionSetting:      "session setting",
	DetourTransactionToken:    "transaction token",
	DetourNoToken:             "no token",
	DetourTokenArgument:       "token argument",
	DetourPreparedText:        "prepared text",
}

// String returns a few words for the reason.
func (d Detour) String() string {
	if d >= DetourEnd {
		return "unknown"
	}
	return detourNames[d]
}

// MarshalText writes the reason as [Detour.String] does, also as a key in JSON.
func (d Detour) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// PlanDetour tells which of the conditions of direct on the plan isn't met. One isn't.
func PlanDetour(plan *check.Plan, asQuery bool) Detour {
	switch {
	case len(plan.Violations) > 0:
		return DetourViolation
	case plan.ChangesCatalog, plan.ChangesPath, plan.NamesOwn:
		return DetourSideEffect
	case plan.Rewritten(), plan.Gated():
		return DetourRewritten
	case !plan.Direct():
		return DetourTokenInText
	case asQuery && plan.Guarded():
		return DetourGuardedQuery
	}
	return DetourSessionSetting
}

// DetourCounts counts reasons.
type DetourCounts [DetourEnd]atomic.Uint64

// Count counts a reason, and returns it.
func (n *DetourCounts) Count(d Detour) Detour {
	n[d].Add(1)
	return d
}

// AddTo adds the counts to those of a map, which is made if need be.
func (n *DetourCounts) AddTo(sums *map[Detour]uint64) {
	for d := range DetourEnd {
		if count := n[d].Load(); count > 0 {
			if *sums == nil {
				*sums = make(map[Detour]uint64)
			}
			(*sums)[d] += count
		}
	}
}
