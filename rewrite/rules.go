package rewrite

// Rule is the stable id of a reason to refuse a statement. Ids are never
// reused: FR1xx unproven writes, FR2xx statements that can't be guarded,
// FR3xx tokens and arguments, FR9xx not analysable.
type Rule string

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
}

// Rules lists every rule, in order of its id.
func Rules() []RuleInfo { return append([]RuleInfo(nil), ruleTable...) }

var ruleTable = []RuleInfo{
	{UnguardedUpdate, "unguarded-update", "an UPDATE of a protected table without a comparison of its token column"},
	{UnraisedUpdate, "unraised-update", "an UPDATE that compares the token column but does not set it to the token"},
	{GuardPosition, "guard-position", "a comparison of the token column that does not decide alone: under OR, NOT, CASE or in a sub-select"},
	{GuardComparison, "guard-comparison", "a comparison of the token column that is not \"token column < token\" itself"},
	{RaiseValue, "raise-value", "a SET of the token column to something else than the token"},
	{TokenReuse, "token-reuse", "a token placeholder used elsewhere in the statement in a way that can change its type"},
	{AmbiguousTarget, "ambiguous-target", "a guard whose column may belong to another item of FROM"},
	{CurrentOf, "current-of", "WHERE CURRENT OF on a protected table"},
	{UnguardedDelete, "unguarded-delete", "a DELETE from a protected table without a guard"},
	{UnguardedInsert, "unguarded-insert", "an INSERT into a protected table that does not carry the token"},
	{UnguardedUpsert, "unguarded-upsert", "an ON CONFLICT DO UPDATE on a protected table without a guard of its own"},
	{UnguardedMerge, "unguarded-merge", "a MERGE into a protected table with an action that is not guarded"},

	{ProtectedDDL, "protected-ddl", "a change of structure that names a protected table or what its protection rests on"},
	{ProtectedTruncate, "protected-truncate", "TRUNCATE of a protected table"},
	{ProtectedCopy, "protected-copy", "COPY into a protected table"},
	{SeveralStatements, "several-statements", "a protected write beside other statements in one text"},
	{SessionSetting, "session-setting", "a setting that the check of later statements rests on"},
	{SQLPrepare, "sql-prepare", "PREPARE of a protected write, EXECUTE, DEALLOCATE and DISCARD"},
	{HiddenCode, "hidden-code", "code in a text that the check cannot follow"},
	{UnsafeFunction, "unsafe-function", "a call of a function that can write behind the check"},
	{SystemSchema, "system-schema", "a write into a system catalog or into schema fencing"},
	{ViewWrite, "view-write", "a write through a view over a protected table"},
	{CascadeWrite, "cascade-write", "a write whose foreign keys change rows of a protected table"},
	{IndirectWrite, "indirect-write", "a write to a table whose triggers or rules write a protected one, or whose rules replace a protected write"},
	{WallRefused, "wall-refused", "a statement that the database's own triggers refused"},
	{TokenChanged, "token-changed", "a write to a protected table whose own trigger may change the token"},
	{AmbiguousName, "ambiguous-name", "a bare table name that stands for tables which need different guards, or turned out to mean a protected one when the statement ran"},
	{UnfitTable, "unfit-table", "a write to a protected table whose token column cannot hold tokens"},

	{NoToken, "no-token", "a protected write without a token in the context"},
	{InvalidToken, "invalid-token", "a token in the context that is zero or negative"},
	{OtherToken, "other-token", "a token in the statement that is not the context's"},
	{TokenArgument, "token-argument", "an argument at a token position that is not an integer"},
	{MisplacedArg, "misplaced-arg", "tokenctx.Arg where the statement has no token position"},
	{MissingArgument, "missing-argument", "a token position without an argument"},
	{QueryRewriter, "query-rewriter", "a pgx.QueryRewriter that needs the connection, or returns what steers pgx"},
	{SimpleProtocol, "simple-protocol", "arguments of a text in which pgx's simple protocol may find other places for them than the server"},

	{Unparsable, "unparsable", "a text that the parser does not understand"},
	{UnknownNode, "unknown-node", "a statement or expression that the check does not know"},
	{TooDeep, "too-deep", "a text that may nest too deep for the parser"},
	{BadText, "bad-text", "a text with a NUL byte or invalid UTF-8"},
	{SessionState, "session-state", "a session whose settings make the server read texts otherwise than the parser"},
	{TooLarge, "too-large", "a text too large to check"},
	{CheckerPanic, "checker-panic", "a text on which the check itself failed"},
	{UnsafePath, "unsafe-path", "a protected write under a search path that may replace the operator <"},

	{BadSuppression, "bad-suppression", "a comment fencerow:ignore that names no rule, gives no reason or hides nothing"},
}

// Slug returns the rule's name, such as "unguarded-update".
func (r Rule) Slug() string {
	for _, info := range ruleTable {
		if info.ID == r {
			return info.Slug
		}
	}
	return "unknown-rule"
}
