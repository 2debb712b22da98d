package check

import (
	"slices"
	"sync"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// checker examines one text under one policy and collects what it finds.
type checker struct {
	policy *Policy
	sql    string
	arena  *sqltree.Arena // what the tree is made in
	lex    sqltext.Text   // the text's tokens
	stmts  []*sqltree.Node
	madeBy *fixer // what made the text out of another one's tree, nil if it is as it was given

	several        bool // more than one statement in the text
	changesPath    bool
	deallocatesAll bool // the text is DEALLOCATE ALL
	byPath         bool // a bare name was told from a protected one's by the search path
	mayBeMoved     bool // a statement before may have led the session to another search path
	changesCatalog bool // a statement may change what a closure is read from
	stored         bool // what is walked is stored in an object, and runs later

	own     *sqltree.Node // the first name without a schema that the schema fencing has, too; see nameOwn
	ownName string

	givesOwn bool   // a call has an argument with the name of the schema fencing
	callsOwn string // a function that has such a name in its body

	found  []*Violation
	writes []Write
	tokens []tokenUse

	compared []tokenUse // placeholders that a query compares with a token column; see noteRead

	params   []paramUse  // every placeholder of the text
	room     [8]paramUse // for the first of them
	tokenPos set[int]    // offsets of placeholders that stand in a token position

	needed     set[tokenKey]
	neededRows map[rowsKey]bool
	seenRows   map[*operand]bool

	guards []guard      // what proves the write that the text itself is
	parts  []provenPart // the writes of protected tables, each by itself

	root    *sqltree.Node // the statement, if it has any of the following
	changes []change
	inserts []insertion
	bare    []*sqltree.Node // comparisons of guards whose operator could be somebody's own
	casts   []*sqltree.Node // casts of tokens to a type that could be somebody's own, by its bare name

	cascades []cascade
}

// tokenKey and rowsKey say what has been noted in tokens already.
type (
	tokenKey struct {
		table          *Table
		param, literal int64
	}
	rowsKey struct {
		table *Table
		rows  *operand
	}
)

// paramUse is one placeholder as it stands in the text.
type paramUse struct {
	number int64
	at     *sqltree.Node
	bigint bool // it is the direct operand of a cast to bigint

	cast *sqltree.Node // the type's bare name, if it is cast to bigint by that
}

// maxFound bounds the violations that are told of one text.
const maxFound = 20

func (c *checker) report(v *Violation) {
	if len(c.found) < maxFound {
		c.found = append(c.found, v)
	}
}

// statement checks a statement at the top of the text.
func (c *checker) statement(n *sqltree.Node) {
	kind, ok := statementKinds[n.Kind()]
	if !ok {
		c.report(violation(UnknownNode, n, "%s cannot be checked: send it over a plain connection", statementName(n.Kind())))
		return
	}
	c.checkEvents(n)
	c.checkUnseen(n)
	c.checkGuardedNames(n)
	c.checkTypes(n)
	kind.check(c, n, true)
}

// walk visits n and everything below it that can hold a query, a call or a
// placeholder; parent is what n stands in. It refuses what it doesn't know, so
// that a newer grammar can't open a hole.
func (c *checker) walk(n, parent *sqltree.Node) {
	if n == nil {
		return
	}
	switch n.Kind() {
	case sqltree.ScalarKind, sqltree.NullKind:
		return
	case "SelectStmt", "UpdateStmt", "InsertStmt", "DeleteStmt", "MergeStmt":
		statementKinds[n.Kind()].check(c, n, false)
		return
	case "ParamRef":
		number, _ := n.Number("number")
		c.params = append(c.params, paramUse{number, n, isBigintCast(parent), bareBigint(parent)})
		return
	case "JsonObjectConstructor", "JsonArrayConstructor", "JsonArrayQueryConstructor", "JsonObjectAgg", "JsonArrayAgg":
		checkConstructor(c, n)
	case "FuncCall":
		checkFunction(c, n)
	case "RangeVar":
		c.checkUse(n)
	case "ColumnRef", "A_Indirection":
		checkFieldCall(c, n)
	case "IntoClause":
		checkInto(c, n)
		return
	case sqltree.ListKind:
		for _, k := range n.Kids {
			c.walk(k, parent)
		}
		return
	default:
		if !plainKinds()[n.Type.ID] {
			c.report(violation(UnknownNode, n, "%s cannot be checked: rewrite the statement without it", n.Kind()))
			return
		}
	}
	for _, k := range n.Kids {
		c.walk(k, n)
	}
}

// walkFields visits every field of n but one.
func (c *checker) walkFields(n *sqltree.Node, but string) {
	for _, k := range n.Kids {
		if k.Field() != but {
			c.walk(k, n)
		}
	}
}

// plainNodes are the nodes of queries and expressions that do nothing by
// themselves: what they do, their parts do.
var plainNodes = setOf(
	// names, constants, types
	"String", "Integer", "Float", "Boolean", "BitString", "List", "A_Const", "A_Star", "TypeCast",
	"CollateClause", "Alias", "TypeName",
	// expressions
	"A_Expr", "SubLink", "SortBy", "A_ArrayExpr", "A_Indices", "BoolExpr", "NullTest", "BooleanTest", "CaseExpr", "CaseWhen",
	"CoalesceExpr", "MinMaxExpr", "RowExpr", "GroupingFunc", "GroupingSet", "SQLValueFunction", "NamedArgExpr", "SetToDefault",
	"MultiAssignRef", "XmlExpr", "XmlSerialize",
	"JsonFormat", "JsonReturning", "JsonValueExpr", "JsonOutput", "JsonKeyValue", "JsonAggConstructor", "JsonIsPredicate",
	// queries
	"ResTarget", "WindowDef", "RangeSubselect", "RangeFunction", "RangeTableFunc", "RangeTableFuncCol", "RangeTableSample",
	"JoinExpr", "WithClause", "CommonTableExpr", "CTESearchClause", "CTECycleClause", "LockingClause", "ColumnDef",
	"OnConflictClause", "InferClause", "IndexElem", "MergeWhenClause", "CurrentOfExpr",
)

// plainKinds says of each kind by its number whether it is a plain one.
var plainKinds = sync.OnceValue(func() []bool {
	plain := make([]bool, len(sqltree.NodeTypes().Types))
	for name, k := range sqltree.NodeTypes().Types {
		plain[k.ID] = plainNodes[name]
	}
	return plain
})

// afterwards applies the rules that need the whole text. They tell what else is wrong
// with writes that lack a proof, too.
func (c *checker) afterwards(stmts []*sqltree.Node) {
	if len(c.writes) == 0 || slices.ContainsFunc(c.found, func(v *Violation) bool { return v.Rule.Class() != UnprovenWrite }) {
		return
	}
	isProved := len(c.found) == 0
	if !isProved && isPlanOnly(stmts) {
		return // no proof is needed, so nothing of it is wrong
	}
	t := c.writes[0].Table
	if c.policy.unsafe != "" {
		c.report((&Violation{Rule: UnsafePath, Message: "write to protected table " + quoted(t) + " cannot be proved: " + c.policy.unsafe, offset: -1}).on(t))
	}
	if c.several {
		c.report((&Violation{Rule: SeveralStatements, Message: "write to protected table " + quoted(t) + " stands beside other statements in one text: send it by itself", offset: -1}).on(t))
	}
	c.checkTokenReuse()
	if !isProved {
		c.checkLiterals()
		return
	}
	if len(stmts) == 1 && (len(c.changes)+len(c.inserts)+len(c.bare)+len(c.casts) > 0 || c.hasCountable(stmts[0].Get("stmt"))) {
		c.root = stmts[0].Get("stmt")
	}
}

// checkLiterals tells of literals in the places of one token that differ. Where nothing else
// is wrong with the text, that is found when the token is bound.
func (c *checker) checkLiterals() {
	first := make(map[string]int64)
	for _, use := range c.tokens {
		if use.literal == 0 {
			continue
		}
		if known, ok := first[use.table.Resource]; ok && known != use.literal {
			v := violation(OtherToken, nil, "the statement has different literals in the places of one token of protected table %s: use a placeholder and tokenctx.Arg", quoted(use.table))
			v.offset = use.offset
			c.report(v.on(use.table))
			return
		}
		first[use.table.Resource] = use.literal
	}
}

// checkTokenReuse refuses a token placeholder that also stands where it could
// get another type than an integer's: PostgreSQL gives a placeholder one type
// for the whole statement, by its first use, and compares by it.
func (c *checker) checkTokenReuse() {
	var tables map[int64]*Table // of the tokens, where there are many
	if len(c.tokens) > 8 {
		tables = make(map[int64]*Table, len(c.tokens))
		for _, t := range c.tokens {
			tables[t.param] = t.table
		}
	}
	for _, use := range c.params {
		if use.bigint || c.tokenPos.has(use.at.Offset()) {
			continue
		}
		table := tables[use.number]
		if tables == nil {
			table = lastTable(c.tokens, use.number)
		}
		switch {
		case table == nil:
		case use.cast != nil:
			c.casts = append(c.casts, use.cast)
		default:
			c.report(violation(TokenReuse, use.at,
				"token placeholder $%d of protected table %s is used elsewhere in the statement, where it may take another type than bigint: use a placeholder of its own there, or write $%d::bigint",
				use.number, quoted(table), use.number).on(table))
		}
	}
}

// lastTable returns the table that a placeholder was last noted as a token of.
func lastTable(tokens []tokenUse, number int64) (table *Table) {
	for i := range tokens {
		if tokens[i].param == number {
			table = tokens[i].table
		}
	}
	return table
}

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}
