package rewrite

import "github.com/fencerow/fencerow/internal/check"

// Mode says which tokens a protected table takes: [Strict] or [Lease]. There is
// no default: it is chosen when the table is registered. String returns its name
// as in the registry.
type Mode = check.Mode

// The modes of a protected table.
const (
	// Strict accepts one write per token and row (token column < token). It is for
	// tokens that are drawn for each write.
	Strict = check.Strict
	// Lease lets a holder write a row as often as it likes under one token (token
	// column <= token).
	Lease = check.Lease
)

// ParseMode reads the name of a mode, "strict" or "lease".
func ParseMode(s string) (Mode, error) { return check.ParseMode(s) }

// DefaultTokenColumn is the token column of a table that names none: last_token.
const DefaultTokenColumn = check.DefaultTokenColumn

// Name is a qualified name as PostgreSQL stores it, with the fields Schema and Name.
type Name = check.Name

// Table is a protected table. Names are as PostgreSQL stores them: case matters,
// and nothing is quoted. You give it
//
//	Schema      string   // "public" if empty
//	Name        string   // required
//	TokenColumn string   // a bigint NOT NULL column; DefaultTokenColumn if empty
//	Mode        Mode     // required
//	Resource    string   // the resource whose token the table takes; "" takes the context's default token
//	Key         []string // the primary key's columns, if known: lets a lost race be told from a missing row
//	Rewrite     bool     // a write without a proof is replaced by its guarded form, if it has one
//
// Its other fields say what the database knows of the table; the driver fills them
// in.
type Table = check.Table

// Write is one write to a protected table in a text: the Table, the Kind of the
// write ("UPDATE", "DELETE", "INSERT", ...), whether it is TopLevel, the statement
// itself and no part of its WITH, and whether it has a RETURNING.
type Write = check.Write

// Violation is the reason why a statement must not be sent, or why the database
// refused it. It matches [ErrRefused] with errors.Is, and tokenctx.ErrNoToken if
// the reason is a missing token. Its fields are
//
//	Rule    Rule
//	Table   string // the protected table, if one is concerned
//	Message string // one line: what is wrong and what to do
//	Fix     string // what to write instead, if known
//
//	Snippet             string // the line of the text at fault, its literals replaced by "?"
//	Line, Column, Width int    // the line's number from 1, and which of the snippet's bytes are meant; Line is 0 without a snippet
//
//	Location string // the caller's file:line, as far as the driver knows it
//	Err      error  // the database's own error, if it refused the statement
//
// Error is like a lint line, complete in its first line, which Headline returns.
// Offset returns where in the text the violation is, in bytes. Doc returns the page
// of the rule.
type Violation = check.Violation

// ErrRefused is what every [Violation] is: the statement was not sent or, if the
// violation has the database's error in it, was taken back there.
var ErrRefused = check.ErrRefused

// ErrNotGuardable is the error of [Policy.Guard] for a text that cannot be guarded by
// adding to it.
var ErrNotGuardable = check.ErrNotGuardable

// Rule is the stable id of a reason to refuse a statement, such as "FR101". Ids are
// never reused. Slug returns the rule's name, Class its class, and Doc its page.
type Rule = check.Rule

// Class says of what kind a rule's reason is.
type Class = check.Class

// The classes of rules.
const (
	UnprovenWrite  = check.UnprovenWrite  // a write without a proof that its token is new enough
	NotGuardable   = check.NotGuardable   // a statement that no guard can be added to
	WrongArgument  = check.WrongArgument  // a token or another argument
	NotAnalysable  = check.NotAnalysable  // a text or a session that can't be checked
	WrongDirective = check.WrongDirective // a comment for package lint
)

// RuleInfo describes a rule: its ID, its Slug, a Summary of what it refuses, its
// Class, and LeavesState, whether a statement that the rule refuses may leave
// something in the session on which the check of later ones rests.
type RuleInfo = check.RuleInfo

// Rules lists every rule, in order of its id.
func Rules() []RuleInfo { return check.Rules() }

// SettingName returns the name of the PostgreSQL setting that carries the token of a
// resource, "" being the default one, to the triggers of the server.
//
// Names of settings ignore case and take letters, digits, "_" and "$". So all bytes of a
// resource but a-z, 0-9 and "_" are written as "$" and two hexadecimal digits; a name
// that gets too long is "$m" and a hash.
func SettingName(resource string) string { return check.SettingName(resource) }
