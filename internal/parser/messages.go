package parser

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// The parser's own messages, of which the queries after a write are made. The check
// reads the trees of package sqltree instead.
type (
	// Node is a node of any kind.
	Node = pg_query.Node
	// SelectStmt is a query.
	SelectStmt = pg_query.SelectStmt
	// InsertStmt is an INSERT.
	InsertStmt = pg_query.InsertStmt
	// MergeStmt is a MERGE.
	MergeStmt = pg_query.MergeStmt
	// WithClause is a WITH.
	WithClause = pg_query.WithClause
	// RangeVar is the name of a relation.
	RangeVar = pg_query.RangeVar
	// ParamRef is a placeholder.
	ParamRef = pg_query.ParamRef
)

// ParseMessage returns the statement of a text of one statement as the parser's own
// message, nil if the text is another.
func ParseMessage(sql string) *Node {
	tree, err := parseMessage(sql)
	if err != nil || len(tree.Stmts) != 1 {
		return nil
	}
	return tree.Stmts[0].Stmt
}

// DeparseSelect writes a query as a text.
func DeparseSelect(query *SelectStmt) (string, error) {
	statement := &pg_query.RawStmt{Stmt: &Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}}
	message, err := proto.Marshal(&pg_query.ParseResult{Stmts: []*pg_query.RawStmt{statement}})
	if err != nil {
		return "", err
	}
	return deparseFromProtobuf(message)
}

// NewSelect returns a query for one expression over a relation.
func NewSelect(result *Node, from *RangeVar) *SelectStmt {
	return &SelectStmt{
		TargetList:  []*Node{pg_query.MakeResTargetNodeWithVal(result, -1)},
		FromClause:  []*Node{{Node: &pg_query.Node_RangeVar{RangeVar: from}}},
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT,
		Op:          pg_query.SetOperation_SETOP_NONE,
	}
}

// NewItem returns an output item with a name.
func NewItem(name string, value *Node) *Node {
	return pg_query.MakeResTargetNodeWithNameAndVal(name, value, -1)
}

// NewSubselect returns an item of FROM: a query for the given items, under a name.
func NewSubselect(name string, items, from []*Node) *Node {
	query := &SelectStmt{TargetList: items, FromClause: from, LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}
	return newRangeSubselect(name, query)
}

func newRangeSubselect(name string, query *SelectStmt) *Node {
	return &Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{
		Subquery: &Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}, Alias: &pg_query.Alias{Aliasname: name},
	}}}
}

// NewQueryOf returns a query for one expression over the rows of another query, which has
// a name in it.
func NewQueryOf(result *Node, name string, of *SelectStmt) *SelectStmt {
	query := NewSelect(result, nil)
	query.FromClause = []*Node{newRangeSubselect(name, of)}
	return query
}

// WriteIn returns the statement that a text runs, which may stand in an EXPLAIN, a COPY
// or a CREATE TABLE AS, or the one under a name in its WITH, if a name is given. It is
// nil if there is none.
func WriteIn(stmt *Node, name string) *Node {
	for {
		var inner *Node
		switch {
		case stmt.GetExplainStmt() != nil:
			inner = stmt.GetExplainStmt().Query
		case stmt.GetCopyStmt() != nil:
			inner = stmt.GetCopyStmt().Query
		case stmt.GetCreateTableAsStmt() != nil:
			inner = stmt.GetCreateTableAsStmt().Query
		}
		if inner == nil {
			break
		}
		stmt = inner
	}
	if name == "" {
		return stmt
	}
	with := stmt.GetSelectStmt().GetWithClause()
	for _, other := range []*WithClause{stmt.GetInsertStmt().GetWithClause(), stmt.GetUpdateStmt().GetWithClause(), stmt.GetDeleteStmt().GetWithClause(), stmt.GetMergeStmt().GetWithClause()} {
		if other != nil {
			with = other
		}
	}
	for _, cte := range with.GetCtes() {
		if cte.GetCommonTableExpr().GetCtename() == name {
			return cte.GetCommonTableExpr().GetCtequery()
		}
	}
	return nil
}

// NewNames returns the parts of a name.
func NewNames(parts ...string) []*Node {
	nodes := make([]*Node, len(parts))
	for i, part := range parts {
		nodes[i] = pg_query.MakeStrNode(part)
	}
	return nodes
}

// NewColumn returns a column by the parts of its name.
func NewColumn(parts ...string) *Node { return pg_query.MakeColumnRefNode(NewNames(parts...), -1) }

// NewCall returns the call of a function: without arguments, of all rows, as
// count(*) has it.
func NewCall(name []*Node, args ...*Node) *Node {
	call := pg_query.MakeFuncCallNode(name, args, -1)
	call.GetFuncCall().AggStar = len(args) == 0
	return call
}

// NewComparison returns an operator between two operands.
func NewComparison(operator []*Node, left, right *Node) *Node {
	return pg_query.MakeAExprNode(pg_query.A_Expr_Kind_AEXPR_OP, operator, left, right, -1)
}

// NewBigintParam returns a placeholder that is cast to bigint.
func NewBigintParam(number int32) *Node {
	return &Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{
		Arg:      pg_query.MakeParamRefNode(number, -1),
		TypeName: &pg_query.TypeName{Names: NewNames("pg_catalog", "int8"), Typemod: -1},
	}}}
}

// NewExists returns the condition that a join has a row. The query is its FROM and WHERE.
func NewExists(from []*Node, where *Node) *Node {
	query := &SelectStmt{FromClause: from, WhereClause: where, LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}
	return &Node{Node: &pg_query.Node_SubLink{SubLink: &pg_query.SubLink{
		SubLinkType: pg_query.SubLinkType_EXISTS_SUBLINK,
		Subselect:   &Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}},
	}}}
}

// NewAnd joins conditions by AND, and NewOr by OR.
func NewAnd(conditions []*Node) *Node {
	return pg_query.MakeBoolExprNode(pg_query.BoolExprType_AND_EXPR, conditions, -1)
}

// NewOr joins conditions by OR.
func NewOr(conditions []*Node) *Node {
	return pg_query.MakeBoolExprNode(pg_query.BoolExprType_OR_EXPR, conditions, -1)
}

// SplitAnd returns the conditions that AND joins, at any depth, or the one that there
// is.
func SplitAnd(condition *Node) []*Node {
	if b := condition.GetBoolExpr(); b != nil && b.Boolop == pg_query.BoolExprType_AND_EXPR {
		var out []*Node
		for _, arg := range b.Args {
			out = append(out, SplitAnd(arg)...)
		}
		return out
	}
	if condition == nil {
		return nil
	}
	return []*Node{condition}
}
