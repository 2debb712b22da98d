// Package reach finds out what else can reach a protected table: views over it,
// foreign keys that cascade into it, triggers, rules and functions that write it,
// relations that a bare name may mean instead of it, and whatever calls or uses one
// of these.
//
// It works in two steps. [Read] reads what the server's catalogs say of the tables
// and of the objects around them: catalog.sql is one query, whose answer is a JSON
// document. [Catalog.Closure] works out of it what the check of package rewrite has
// to know, a [check.Closure]. The second step needs no server, and the tables may
// be at other levels than when the catalog was read. A stamp tells cheaply whether
// the catalogs have changed since.
//
// The package sends one query by a [Session] that it is given. It knows neither
// database/sql nor which connection that is.
//
// A reader finds the steps in these files:
//
//   - reach.go, catalog.go: what is read, and how
//   - closure.go: the closure as a fixed point, through foreign keys, inheritance
//     and views; closurecode.go, closureexpression.go, closureunnamed.go: what code
//     adds to it; closureunread.go: by which body that isn't read;
//     closuremakers.go: what changes the catalog; closurefound.go: the result
//   - routine*.go: what the body of a function says, read from its tokens:
//     routinelex.go has these, routine.go and routinestructure.go the tables and calls,
//     routineplain*.go whether the body is plain, so that these are all that it does
//   - changer.go: which columns a trigger changes in the row to be written
package reach
