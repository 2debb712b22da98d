package driver

import (
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/rewrite"
)

// Detour is a reason for which a statement didn't take the short way, on which
// nothing but its token is looked at before it is sent. The long way checks more,
// and costs some 150 ns more; most reasons are ordinary. If there are several, the
// first in this order counts. [Stats] has the counts.
type Detour uint8

// The reasons.
const (
	onShortWay Detour = iota // there is none

	// DetourArgument: an argument steers pgx, or is of a type that may run code when
	// it is converted, as a driver.Valuer does.
	DetourArgument
	// DetourReportedTable: some table is at level Report, so the statement is checked
	// for that one, too.
	DetourReportedTable
	// DetourOffTable: some table is at level Off, so tokenctx.Arg may belong to it.
	DetourOffTable
	// DetourUnfitTable: the token column of some enforced table can't hold tokens.
	DetourUnfitTable
	// DetourCatalogChange: the connection has sent what may change the catalog, which
	// hasn't been looked at since.
	DetourCatalogChange
	// DetourChangeInTransaction: the open transaction has called what may change the
	// catalog, or another connection of the handle has changed it meanwhile.
	DetourChangeInTransaction
	// DetourUncheckedState: the session ran a statement, while no table was enforced,
	// that may have left behind what later checks rest on.
	DetourUncheckedState
	// DetourDeferredChange: the session has prepared a statement or declared a cursor
	// that may change the catalog when it runs.
	DetourDeferredChange
	// DetourNested: an argument of another execution sends the statement, by Conn.Raw.
	DetourNested
	// DetourUnreadChange: another connection of the handle has changed the catalog,
	// which hasn't been looked at since.
	DetourUnreadChange
	// DetourObserver: hooks or an observer are told of each statement.
	DetourObserver
	// DetourSimpleProtocol: pgx writes the arguments into the text.
	DetourSimpleProtocol
	// DetourViolation: the check has found fault with the text.
	DetourViolation
	// DetourRewritten: another text is sent, with a guard or a gate added.
	DetourRewritten
	// DetourSideEffect: the text changes the catalog or the search path, or names what
	// schema fencing has.
	DetourSideEffect
	// DetourTokenInText: the text has a token as a constant, or takes those of several
	// resources.
	DetourTokenInText
	// DetourGuardedQuery: a guarded write was sent as a query.
	DetourGuardedQuery
	// DetourSessionSetting: a setting of the session has the server read texts
	// otherwise than the check, or puts another operator before the built-in one.
	DetourSessionSetting
	// DetourTransactionToken: a guarded write within a transaction that BeginTx began
	// is compared with the transaction's token.
	DetourTransactionToken
	// DetourNoToken: the context has no valid token for the table.
	DetourNoToken
	// DetourTokenArgument: where the token belongs among the arguments stands neither
	// the context's token as an int64 nor tokenctx.Arg, or tokenctx.Arg stands
	// elsewhere.
	DetourTokenArgument
	// DetourPreparedText: what is to be sent by now is not what was prepared.
	DetourPreparedText

	detourEnd
)

var detourNames = [detourEnd]string{
	onShortWay:                "none",
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
	if d >= detourEnd {
		return "unknown"
	}
	return detourNames[d]
}

// MarshalText writes the reason as [Detour.String] does, also as a key in JSON.
func (d Detour) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// stateDetour tells which of the conditions of direct on the connection and its view is
// met. One is: asked one after the other on the short way they would make it slower.
func (c *Conn) stateDetour(v *view) Detour {
	switch {
	case v.watched != nil:
		return DetourReportedTable
	case v.all != nil:
		return DetourOffTable
	case v.unfit:
		return DetourUnfitTable
	case c.changes:
		return DetourCatalogChange
	case c.within != nil:
		return DetourChangeInTransaction
	case c.session.loose != nil:
		return DetourUncheckedState
	case c.session.putOff:
		return DetourDeferredChange
	case c.inUse:
		return DetourNested
	case c.std != nil && c.connector.looking.due.Load() == 0:
		return DetourUnreadChange
	case c.connector.observed():
		return DetourObserver
	case c.mode == pgx.QueryExecModeSimpleProtocol:
		return DetourSimpleProtocol
	}
	return DetourUnreadChange // another connection has just looked at it
}

// planDetour tells which of the conditions of direct on the plan isn't met. One isn't.
func planDetour(plan *rewrite.Plan, asQuery bool) Detour {
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

// detourCounts counts reasons.
type detourCounts [detourEnd]atomic.Uint64

// count counts a reason, and returns it.
func (n *detourCounts) count(d Detour) Detour {
	n[d].Add(1)
	return d
}

// addTo adds the counts to those of a map, which is made if need be.
func (n *detourCounts) addTo(sums *map[Detour]uint64) {
	for d := range detourEnd {
		if count := n[d].Load(); count > 0 {
			if *sums == nil {
				*sums = make(map[Detour]uint64)
			}
			(*sums)[d] += count
		}
	}
}
