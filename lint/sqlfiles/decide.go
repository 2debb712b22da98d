package sqlfiles

import "github.com/fencerow/fencerow/rewrite"

// verdict says what becomes of a rule's violation in a migration.
type verdict int

const (
	report verdict = iota + 1 // it is a finding
	pass                      // it is not a finding
	count                     // it is counted as not analysed
	absent                    // no file can break the rule
)

// decision is a verdict with its reason.
type decision struct {
	verdict
	why string
}

const (
	unproven     = "the wall refuses a write without its token, whoever sends it"
	structure    = "changing the structure is what a migration is for, over a plain connection"
	notAnalysed  = "newer or another grammar is the server's to judge, and so is what the text writes; a finding if it names a protected table"
	notInFiles   = "a file has no arguments, no session and no answer of the server"
	ownStatement = "each statement of a file is judged by itself"
)

// byClass decides for the rules of a class that have no row in byRule.
var byClass = map[rewrite.Class]decision{
	rewrite.UnprovenWrite:  {report, unproven},
	rewrite.NotGuardable:   {report, "a migration that may do it has a row in byRule"},
	rewrite.WrongArgument:  {absent, notInFiles},
	rewrite.NotAnalysable:  {count, notAnalysed},
	rewrite.WrongDirective: {report, "a suppression is for whoever reads the file, wherever it is"},
}

// decide decides what a migration's violation of a rule is. In files of queries every
// violation is a finding.
func decide(rule rewrite.Rule) decision {
	if d, ok := byRule[rule]; ok {
		return d
	}
	return byClass[rule.Class()]
}

// byRule decides for rules that are judged otherwise than their class, or for another
// reason.
var byRule = map[rewrite.Rule]decision{
	rewrite.GuardPosition:   {report, "it passes the wall while the token is new and overwrites nothing then, but the guard decides nothing"},
	rewrite.GuardComparison: {report, "what it compares is not what the wall compares, so that one of the two is wrong"},
	rewrite.RaiseValue:      {report, "the wall refuses a token that was never issued or is too old"},
	rewrite.TokenReuse:      {report, "a migration has no placeholders; where it has, the comparison may be of another type"},
	rewrite.AmbiguousTarget: {report, "the guard may be on another table"},
	rewrite.UnguardedDelete: {report, "the wall refuses a DELETE without the token in a setting: it is one without a SET LOCAL before it, whatever its WHERE"},

	rewrite.ProtectedDDL:      {pass, structure},
	rewrite.ProtectedTruncate: {report, "the wall refuses TRUNCATE, whoever sends it"},
	rewrite.ProtectedCopy:     {report, "the wall sees each row of a COPY, and refuses those without a token"},
	rewrite.SeveralStatements: {pass, ownStatement},
	rewrite.SessionSetting:    {pass, "the settings of a plain connection are its own; the wall's triggers don't depend on them"},
	rewrite.SQLPrepare:        {pass, "the wall judges what is executed"},
	rewrite.HiddenCode:        {pass, "functions and triggers are made by migrations; the writes in a body that can be read are judged, by their own rules"},
	rewrite.UnsafeFunction:    {pass, "migrations set sequences and the like; the wall judges what a function writes"},
	rewrite.SystemSchema:      {pass, "migrations register tables and put up walls, through schema fencing"},
	rewrite.ViewWrite:         {report, "the rows of the table are written, and the wall sees each"},
	rewrite.CascadeWrite:      {report, "the wall sees each row that a cascade changes"},
	rewrite.IndirectWrite:     {report, "the wall sees each row that a trigger or rule writes"},
	rewrite.WallRefused:       {absent, notInFiles},
	rewrite.TokenChanged:      {report, "the wall sees the row as the trigger has made it"},
	rewrite.UnfitTable:        {absent, notInFiles},
	rewrite.AmbiguousName:     {absent, notInFiles},

	rewrite.TooDeep:      {count, "rows for a start are often one long INSERT; the wall judges it"},
	rewrite.BadText:      {count, "a file in another encoding is for the tool that runs it"},
	rewrite.SessionState: {absent, notInFiles},
	rewrite.TooLarge:     {count, "rows for a start are often one long INSERT; the wall judges it"},
	rewrite.CheckerPanic: {report, "a fault of the check must not be passed over"},
	rewrite.UnsafePath:   {pass, "the search path is the session's, which a file doesn't have"},
}
