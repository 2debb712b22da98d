package rewrite

import "github.com/fencerow/fencerow/internal/check"

// Closure is what else can reach a protected table: other names for its rows, and
// code or constraints that write them. A text alone doesn't show it. The driver reads
// the closure from the catalog of the database; a program that has no database gives
// it as data.
type Closure struct {
	// Relatives are the partitions, inheritance children and ancestors of protected
	// tables. They are protected like their relative.
	Relatives []Relative
	// Views are views over protected tables. They are read freely and never written:
	// their token column may be another column of the table.
	Views []Name
	// Cascades are tables whose foreign keys, over any number of steps, change
	// protected rows.
	Cascades []Cascade
	// Writers are tables with rules, triggers or defaults that write protected tables,
	// and views that do when they are used.
	Writers []Writer
	// Functions are functions, procedures and aggregates that write protected tables.
	Functions []Name
	// TriggerFunctions are the functions of triggers on protected tables.
	TriggerFunctions []Name
	// TokenTriggers are the triggers that may change the token which a protected table's
	// row is to get, and that no wall catches.
	TokenTriggers []TokenTrigger
	// EventTriggers are the functions of event triggers that write protected tables:
	// whatever changes a structure runs them.
	EventTriggers []Name
	// Sequences are the sequences that tokens come from.
	Sequences []Name
	// GuardedFunctions may be called although they are among Functions: they carry a
	// guard of their own.
	GuardedFunctions []Name
}

// Relative is a relation, by its [Name], that shares rows with the protected table Of.
type Relative = check.Relative

// Cascade is a table, by its [Name], whose foreign keys change rows of the protected
// table Into: by a Delete of its rows, by an Update of any column, by an UpdateOf some
// columns, or by a Truncate. ChildWall says that the protected table has its wall, which
// judges the cascade.
type Cascade = check.Cascade

// Writer is a table or view, by its [Name], whose rules or triggers write the protected
// table Into on one of the Events: "INSERT", "UPDATE", "DELETE", "TRUNCATE", "READ"
// (whatever uses it, a query too), "REFRESH", "LIKE" (CREATE TABLE (LIKE ...) takes it
// over) and "ENABLE" (its trigger or rule is disabled).
type Writer = check.Writer

// TokenTrigger is a Trigger, by its own name, that may change the token of a row of the
// relation with this [Name]. It runs the Function on the Events "INSERT" or "UPDATE".
type TokenTrigger = check.TokenTrigger
