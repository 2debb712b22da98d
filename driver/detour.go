package driver

import (
	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/gate"
)

// Detour is a reason for which a statement didn't take the short way, on which
// nothing but its token is looked at before it is sent. The long way checks more,
// and costs some 150 ns more; most reasons are ordinary. If there are several, the
// first in this order counts. [Stats] has the counts.
type Detour = gate.Detour

// The reasons.
const (
	// DetourArgument: an argument steers pgx, or is of a type that may run code when
	// it is converted, as a driver.Valuer does.
	DetourArgument = gate.DetourArgument
	// DetourReportedTable: some table is at level Report, so the statement is checked
	// for that one, too.
	DetourReportedTable = gate.DetourReportedTable
	// DetourOffTable: some table is at level Off, so tokenctx.Arg may belong to it.
	DetourOffTable = gate.DetourOffTable
	// DetourUnfitTable: the token column of some enforced table can't hold tokens.
	DetourUnfitTable = gate.DetourUnfitTable
	// DetourCatalogChange: the connection has sent what may change the catalog, which
	// hasn't been looked at since.
	DetourCatalogChange = gate.DetourCatalogChange
	// DetourChangeInTransaction: the open transaction has called what may change the
	// catalog, or another connection of the handle has changed it meanwhile.
	DetourChangeInTransaction = gate.DetourChangeInTransaction
	// DetourUncheckedState: the session ran a statement, while no table was enforced,
	// that may have left behind what later checks rest on.
	DetourUncheckedState = gate.DetourUncheckedState
	// DetourDeferredChange: the session has prepared a statement or declared a cursor
	// that may change the catalog when it runs.
	DetourDeferredChange = gate.DetourDeferredChange
	// DetourNested: an argument of another execution sends the statement, by Conn.Raw.
	DetourNested = gate.DetourNested
	// DetourUnreadChange: another connection of the handle has changed the catalog,
	// which hasn't been looked at since.
	DetourUnreadChange = gate.DetourUnreadChange
	// DetourObserver: hooks or an observer are told of each statement.
	DetourObserver = gate.DetourObserver
	// DetourSimpleProtocol: pgx writes the arguments into the text.
	DetourSimpleProtocol = gate.DetourSimpleProtocol
	// DetourViolation: the check has found fault with the text.
	DetourViolation = gate.DetourViolation
	// DetourRewritten: another text is sent, with a guard or a gate added.
	DetourRewritten = gate.DetourRewritten
	// DetourSideEffect: the text changes the catalog or the search path, or names what
	// schema fencing has.
	DetourSideEffect = gate.DetourSideEffect
	// DetourTokenInText: the text has a token as a constant, or takes those of several
	// resources.
	DetourTokenInText = gate.DetourTokenInText
	// DetourGuardedQuery: a guarded write was sent as a query.
	DetourGuardedQuery = gate.DetourGuardedQuery
	// DetourSessionSetting: a setting of the session has the server read texts
	// otherwise than the check, or puts another operator before the built-in one.
	DetourSessionSetting = gate.DetourSessionSetting
	// DetourTransactionToken: a guarded write within a transaction that BeginTx began
	// is compared with the transaction's token.
	DetourTransactionToken = gate.DetourTransactionToken
	// DetourNoToken: the context has no valid token for the table.
	DetourNoToken = gate.DetourNoToken
	// DetourTokenArgument: where the token belongs among the arguments stands neither
	// the context's token as an int64 nor tokenctx.Arg, or tokenctx.Arg stands
	// elsewhere.
	DetourTokenArgument = gate.DetourTokenArgument
	// DetourPreparedText: what is to be sent by now is not what was prepared.
	DetourPreparedText = gate.DetourPreparedText
)

// stateDetour tells which of the conditions of direct on the connection and its view is
// met. One is: asked one after the other on the short way they would make it slower.
func (c *Conn) stateDetour(v *gate.View) Detour {
	switch {
	case v.Watched != nil:
		return DetourReportedTable
	case v.WithOff != nil:
		return DetourOffTable
	case v.HasUnfit:
		return DetourUnfitTable
	case c.changes:
		return DetourCatalogChange
	case c.within != nil:
		return DetourChangeInTransaction
	case c.session.IsLoose():
		return DetourUncheckedState
	case c.session.IsPutOff:
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
