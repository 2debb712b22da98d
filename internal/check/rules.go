package check

import "github.com/fencerow/fencerow/rewrite/rules"

// Rule is the stable id of a reason to refuse a statement. Ids are never
// reused. What class a rule has says the table of [Rules], not its id.
type Rule string

// Class says of what kind a rule's reason is.
type Class int

// The classes of rules.
const (
	UnprovenWrite  Class = iota + 1 // a write without a proof that its token is new enough
	NotGuardable                    // a statement that no guard can be added to
	WrongArgument                   // a token or another argument
	NotAnalysable                   // a text or a session that can't be checked
	WrongDirective                  // a comment for package lint
)

// The rules. rules/FRnnn.md explains each.
const (
	UnguardedUpdate Rule = "FR101"
	UnraisedUpdate  Rule = "FR102"
	GuardPosition   Rule = "FR103"
	GuardComparison Rule = "FR104"
	RaiseValue      Rule = "FR105"
	TokenReuse      Rule = "FR106"
	AmbiguousTarget Rule = "FR107"
	CurrentOf       Rule = "FR108"
	UnguardedDelete Rule = "FR111"
	UnguardedInsert Rule = "FR121"
	UnguardedUpsert Rule = "FR122"
	UnguardedMerge  Rule = "FR131"

	ProtectedDDL      Rule = "FR201"
	ProtectedTruncate Rule = "FR202"
	ProtectedCopy     Rule = "FR203"
	SeveralStatements Rule = "FR204"
	SessionSetting    Rule = "FR205"
	SQLPrepare        Rule = "FR206"
	HiddenCode        Rule = "FR207"
	UnsafeFunction    Rule = "FR208"
	SystemSchema      Rule = "FR209"
	ViewWrite         Rule = "FR210"
	CascadeWrite      Rule = "FR211"
	IndirectWrite     Rule = "FR212"
	WallRefused       Rule = "FR213"
	TokenChanged      Rule = "FR214"
	AmbiguousName     Rule = "FR215"
	UnfitTable        Rule = "FR216"

	NoToken         Rule = "FR301"
	InvalidToken    Rule = "FR302"
	OtherToken      Rule = "FR303"
	TokenArgument   Rule = "FR304"
	MisplacedArg    Rule = "FR305"
	MissingArgument Rule = "FR306"
	QueryRewriter   Rule = "FR307"
	SimpleProtocol  Rule = "FR308"

	Unparsable   Rule = "FR901"
	UnknownNode  Rule = "FR902"
	TooDeep      Rule = "FR903"
	BadText      Rule = "FR904"
	SessionState Rule = "FR905"
	TooLarge     Rule = "FR906"
	CheckerPanic Rule = "FR907"
	UnsafePath   Rule = "FR908"

	BadSuppression Rule = "FR911" // of a comment that package lint reads; no statement is refused by it
)

// RuleInfo is one line of the table of rules.
type RuleInfo struct {
	ID      Rule
	Slug    string // its name in messages
	Summary string // what it refuses
	Class   Class

	// LeavesState reports that a statement which the rule refuses, sent all the same,
	// may leave something in the session on which the check of later ones rests: a
	// setting, a temporary view, a prepared statement.
	LeavesState bool
}

// Rules lists every rule, in order of its id.
func Rules() []RuleInfo { return append([]RuleInfo(nil), ruleTable...) }

var ruleTable = []RuleInfo{
	{UnguardedUpdate, "unguarded-update", "an UPDATE of a protected table without a comparison of its token column", UnprovenWrite, false},
	{UnraisedUpdate, "unraised-update", "an UPDATE that compares the token column but does not set it to the token", UnprovenWrite, false},
	{GuardPosition, "guard-position", "a comparison of the token column that does not decide alone: under OR, NOT, CASE or in a sub-select", UnprovenWrite, false},
	{GuardComparison, "guard-comparison", "a comparison of the token column that is not \"token column < token\" itself", UnprovenWrite, false},
	{RaiseValue, "raise-value", "a SET of the token column to something else than the token", UnprovenWrite, false},
	{TokenReuse, "token-reuse", "a token placeholder used elsewhere in the statement in a way that can change its type", UnprovenWrite, false},
	{AmbiguousTarget, "ambiguous-target", "a guard whose column may belong to another item of FROM", UnprovenWrite, false},
	{CurrentOf, "current-of", "WHERE CURRENT OF on a protected table", UnprovenWrite, false},
	{UnguardedDelete, "unguarded-delete", "a DELETE from a protected table without a guard", UnprovenWrite, false},
	{UnguardedInsert, "unguarded-insert", "an INSERT into a protected table that does not carry the token", UnprovenWrite, false},
	{UnguardedUpsert, "unguarded-upsert", "an ON CONFLICT DO UPDATE on a protected table without a guard of its own", UnprovenWrite, false},
	{UnguardedMerge, "unguarded-merge", "a MERGE into a protected table with an action that is not guarded", UnprovenWrite, false},

	{ProtectedDDL, "protected-ddl", "a change of structure that names a protected table or what its protection rests on", NotGuardable, true},
	{ProtectedTruncate, "protected-truncate", "TRUNCATE of a protected table", NotGuardable, true},
	{ProtectedCopy, "protected-copy", "COPY into a protected table", NotGuardable, true},
	{SeveralStatements, "several-statements", "a protected write beside other statements in one text", NotGuardable, true},
	{SessionSetting, "session-setting", "a setting that the check of later statements rests on", NotGuardable, true},
	{SQLPrepare, "sql-prepare", "PREPARE of a protected write, EXECUTE, DEALLOCATE and DISCARD ALL", NotGuardable, true},
	{HiddenCode, "hidden-code", "code in a text that the check cannot follow", NotGuardable, true},
	{UnsafeFunction, "unsafe-function", "a call of a function that can write behind the check", NotGuardable, true},
	{SystemSchema, "system-schema", "a write into a system catalog or into schema fencing", NotGuardable, true},
	{ViewWrite, "view-write", "a write through a view over a protected table", NotGuardable, true},
	{CascadeWrite, "cascade-write", "a write whose foreign keys change rows of a protected table", NotGuardable, true},
	{IndirectWrite, "indirect-write", "a write to a table whose triggers or rules write a protected one, or whose rules replace a protected write", NotGuardable, true},
	{WallRefused, "wall-refused", "a statement that the database's own triggers refused", NotGuardable, true},
	{TokenChanged, "token-changed", "a write to a protected table whose own trigger may change the token", NotGuardable, true},
	{AmbiguousName, "ambiguous-name", "a bare table name that stands for tables which need different guards, or turned out to mean a protected one when the statement ran", NotGuardable, true},
	{UnfitTable, "unfit-table", "a write to a protected table whose token column cannot hold tokens", NotGuardable, true},

	{NoToken, "no-token", "a protected write without a token in the context", WrongArgument, false},
	{InvalidToken, "invalid-token", "a token in the context that is zero or negative", WrongArgument, false},
	{OtherToken, "other-token", "a token in the statement that is not the context's", WrongArgument, false},
	{TokenArgument, "token-argument", "an argument at a token position that is not an integer", WrongArgument, false},
	{MisplacedArg, "misplaced-arg", "tokenctx.Arg where the statement has no token position", WrongArgument, false},
	{MissingArgument, "missing-argument", "a token position without an argument", WrongArgument, false},
	{QueryRewriter, "query-rewriter", "a pgx.QueryRewriter that needs the connection, or returns what steers pgx", WrongArgument, false},
	{SimpleProtocol, "simple-protocol", "arguments of a text in which pgx's simple protocol may find other places for them than the server", WrongArgument, false},

	{Unparsable, "unparsable", "a text that the parser does not understand", NotAnalysable, true},
	{UnknownNode, "unknown-node", "a statement or expression that the check does not know", NotAnalysable, true},
	{TooDeep, "too-deep", "a text that may nest too deep for the parser", NotAnalysable, true},
	{BadText, "bad-text", "a text with a NUL byte or invalid UTF-8", NotAnalysable, true},
	{SessionState, "session-state", "a session whose settings make the server read texts otherwise than the parser", NotAnalysable, true},
	{TooLarge, "too-large", "a text too large to check", NotAnalysable, true},
	{CheckerPanic, "checker-panic", "a text on which the check itself failed", NotAnalysable, true},
	{UnsafePath, "unsafe-path", "a protected write under a search path that may replace the operator <", NotAnalysable, true},

	{BadSuppression, "bad-suppression", "a comment fencerow:ignore that names no rule, gives no reason or hides nothing", WrongDirective, false},
}

// Slug returns the rule's name, such as "unguarded-update".
func (r Rule) Slug() string {
	if info, ok := r.info(); ok {
		return info.Slug
	}
	return "unknown-rule"
}

// Class returns the class of the rule, 0 if there is no such rule.
func (r Rule) Class() Class {
	info, _ := r.info()
	return info.Class
}

// LeavesState reports whether a statement that the rule refuses may leave something
// in the session; see [RuleInfo.LeavesState]. It is true for a rule that there is
// not.
func (r Rule) LeavesState() bool {
	info, ok := r.info()
	return info.LeavesState || !ok
}

// info returns the row of the rule in the table.
func (r Rule) info() (RuleInfo, bool) {
	for _, info := range ruleTable {
		if info.ID == r {
			return info, true
		}
	}
	return RuleInfo{}, false
}

// Doc returns the rule's page: what it refuses, what to write instead, why,
// and what it leaves alone. It is Markdown, and empty for an unknown rule.
func (r Rule) Doc() string { return rules.Page(string(r)) }
