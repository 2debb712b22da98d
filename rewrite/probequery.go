package rewrite

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// meant is a condition that finds the rows which a guarded write meant.
type meant struct {
	table  *Table
	rel    *pg_query.RangeVar
	source *pg_query.Node // what stands beside the table in FROM, or nil
	with   *pg_query.WithClause
	where  []*pg_query.Node
	exact  bool // they are all that it meant, and it meant all of them
}

// highest asks for the highest token of the rows.
func (m meant) highest() (Probe, error) {
	call := pg_query.MakeFuncCallNode(stringNodes("pg_catalog", "max"), []*pg_query.Node{m.tokenColumn()}, -1)
	return m.query(call, m.where)
}

// countNewer asks for the number of rows with a newer token than the write's.
func (m meant) countNewer() (Probe, error) {
	call := pg_query.MakeFuncCallNode(stringNodes("pg_catalog", "count"), nil, -1)
	call.GetFuncCall().AggStar = true
	token := &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{
		Arg:      pg_query.MakeParamRefNode(0, -1), // as Probe.Args has it
		TypeName: &pg_query.TypeName{Names: stringNodes("pg_catalog", "int8"), Typemod: -1},
	}}}
	newer := pg_query.MakeAExprNode(pg_query.A_Expr_Kind_AEXPR_OP, stringNodes("pg_catalog", ">"), m.tokenColumn(), token, -1)
	return m.query(call, append(slices.Clone(m.where), newer))
}

func (m meant) tokenColumn() *pg_query.Node {
	return pg_query.MakeColumnRefNode(stringNodes(refName(m.rel), m.table.TokenColumn), -1)
}

// query asks for one result over the rows that meet the conditions.
func (m meant) query(result *pg_query.Node, where []*pg_query.Node) (Probe, error) {
	query := &pg_query.SelectStmt{
		TargetList:  []*pg_query.Node{pg_query.MakeResTargetNodeWithVal(result, -1)},
		FromClause:  []*pg_query.Node{{Node: &pg_query.Node_RangeVar{RangeVar: proto.CloneOf(m.rel)}}},
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT,
		Op:          pg_query.SetOperation_SETOP_NONE,
	}
	if m.with != nil {
		query.WithClause = proto.CloneOf(m.with)
	}
	if m.source != nil {
		query.FromClause = append(query.FromClause, proto.CloneOf(m.source))
	}
	switch len(where) {
	case 0:
	case 1:
		query.WhereClause = proto.CloneOf(where[0])
	default:
		query.WhereClause = pg_query.MakeBoolExprNode(pg_query.BoolExprType_AND_EXPR, cloneAll(where), -1)
	}
	args := renumber(query)
	sql, err := pg_query.Deparse(&pg_query.ParseResult{Stmts: []*pg_query.RawStmt{{Stmt: &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}}}})
	return Probe{SQL: sql, Args: args}, err
}

func stringNodes(parts ...string) []*pg_query.Node {
	nodes := make([]*pg_query.Node, len(parts))
	for i, part := range parts {
		nodes[i] = pg_query.MakeStrNode(part)
	}
	return nodes
}

// renumber makes the placeholders of a query start at $1 without a gap, since
// PostgreSQL can't tell the type of one that is missing, and returns which
// they were.
func renumber(query *pg_query.SelectStmt) []int {
	var args []int
	var visit func(protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if p, ok := m.Interface().(*pg_query.ParamRef); ok {
			i := slices.Index(args, int(p.Number))
			if i < 0 {
				i = len(args)
				args = append(args, int(p.Number))
			}
			p.Number = int32(i + 1)
			return
		}
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			switch {
			case f.Kind() != protoreflect.MessageKind || !m.Has(f):
			case f.IsList():
				for j := range m.Get(f).List().Len() {
					visit(m.Get(f).List().Get(j).Message())
				}
			default:
				visit(m.Get(f).Message())
			}
		}
	}
	visit(query.ProtoReflect())
	return args
}

func cloneAll(nodes []*pg_query.Node) []*pg_query.Node {
	out := make([]*pg_query.Node, len(nodes))
	for i, n := range nodes {
		out[i] = proto.CloneOf(n)
	}
	return out
}

func refName(rel *pg_query.RangeVar) string {
	if rel.Alias != nil {
		return rel.Alias.Aliasname
	}
	return rel.Relname
}
