package sqlfiles

import "github.com/fencerow/fencerow/rewrite"

// verdict says what becomes of a rule's violation in a migration.
type verdict int

const (
	report verdict = iota + 1 // it is a finding
	pass                      // it is not a finding
	count                     // it is counted as not analysed
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

// inMigrations decides for each rule. In files of queries every violation is a
// finding.
var inMigrations = map[rewrite.Rule]decision{
	rewrite.UnguardedUpdate: {report, unproven},
	rewrite.UnraisedUpdate:  {report, unproven},
	rewrite.GuardPosition:   {report, "it passes the wall while the token is new and overwrites nothing then, but the guard decides nothing"},
	rewrite.GuardComparison: {report, "what it compares is not what the wall compares, so that one of the two is wrong"},
	rewrite.RaiseValue:      {report, "the wall refuses a token that was never issued or is too old"},
	rewrite.TokenReuse:      {report, "a migration has no placeholders; where it has, the comparison may be of another type"},
	rewrite.AmbiguousTarget: {report, "the guard may be on another table"},
	rewrite.CurrentOf:       {report, unproven},
	rewrite.UnguardedDelete: {report, "the wall refuses a DELETE without the token in a setting: it is one without a SET LOCAL before it, whatever its WHERE"},
	rewrite.UnguardedInsert: {report, unproven},
	rewrite.UnguardedUpsert: {report, unproven},
	rewrite.UnguardedMerge:  {report, unproven},

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
	rewrite.WallRefused:       {pass, notInFiles},
	rewrite.TokenChanged:      {report, "the wall sees the row as the trigger has made it"},
	rewrite.UnfitTable:        {pass, notInFiles},
	rewrite.AmbiguousName:     {pass, notInFiles},

	rewrite.NoToken:         {pass, notInFiles},
	rewrite.InvalidToken:    {pass, notInFiles},
	rewrite.OtherToken:      {pass, notInFiles},
	rewrite.TokenArgument:   {pass, notInFiles},
	rewrite.MisplacedArg:    {pass, notInFiles},
	rewrite.MissingArgument: {pass, notInFiles},
	rewrite.QueryRewriter:   {pass, notInFiles},
	rewrite.SimpleProtocol:  {pass, notInFiles},

	rewrite.Unparsable:   {count, notAnalysed},
	rewrite.UnknownNode:  {count, notAnalysed},
	rewrite.TooDeep:      {count, "rows for a start are often one long INSERT; the wall judges it"},
	rewrite.BadText:      {count, "a file in another encoding is for the tool that runs it"},
	rewrite.SessionState: {pass, notInFiles},
	rewrite.TooLarge:     {count, "rows for a start are often one long INSERT; the wall judges it"},
	rewrite.CheckerPanic: {report, "a fault of the check must not be passed over"},
	rewrite.UnsafePath:   {pass, "the search path is the session's, which a file doesn't have"},

	rewrite.BadSuppression: {report, "a suppression is for whoever reads the file, wherever it is"},
}
