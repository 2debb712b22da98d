// Package gate decides what may be sent on a session: what is protected, as the session
// sees it, and by which plan a text is judged.
//
// A [Protection] is made of the protected tables, each a [Table] with its [Level], and of
// what else reaches them. It says from which [Reading] of the registry and the catalog
// that comes, and so whether a later reading has anything to add. A session sees the
// protection by its search path: that is a [View], which has the plans of texts, kept for
// all sessions with the same path. [Recent] keeps those that one session has used lately.
//
// What a session's earlier statements have left behind is its [State]; what the server
// reports of it are its [Settings]. A few statements can only be judged by what the server
// says of the session as it is now: that is asked by an [Asker].
//
// The package knows neither database/sql nor pgx: package driver is one interface on top
// of it, and another may be built on the same floor.
//
// A reader finds the parts in these files:
//
//   - level.go, table.go: what is protected, and how strictly
//   - protection.go: the tables as a whole, their policies, and what a newer reading changes
//   - reading.go: which of two readings of which servers is the newer one
//   - view.go, recent.go: the plans of texts, and where they are kept
//   - verdict.go: what the check of a text came to
//   - state.go, settings.go: what the check of a session's statements rests on
//   - ask.go: what the server is asked before a statement is sent
//   - detour.go: why a statement doesn't take the short way
//   - path.go, words.go, tokens.go: the search path, words of a text, the tokens that a
//     transaction is bound to
package gate
