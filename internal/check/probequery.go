package check

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fencerow/fencerow/internal/parser"
)

// meant is a condition that finds the rows which a guarded write meant.
type meant struct {
	table  *Table
	rel    *parser.RangeVar
	source *parser.Node // what stands beside the table in FROM, or nil
	with   *parser.WithClause
	where  []*parser.Node
	exact  bool // they are all that it meant, and it meant all of them

	byKey, several bool // see Question
}

// highest asks for the highest token of the rows.
func (m meant) highest() (Probe, error) {
	call := parser.NewCall(parser.NewNames("pg_catalog", "max"), m.tokenColumn())
	return m.query(call, m.where)
}

// countNewer asks for the number of rows with a newer token than the write's.
func (m meant) countNewer() (Probe, error) {
	call := parser.NewCall(parser.NewNames("pg_catalog", "count"))
	token := parser.NewBigintParam(0) // as Probe.Args has it
	newer := parser.NewComparison(parser.NewNames("pg_catalog", ">"), m.tokenColumn(), token)
	return m.query(call, append(slices.Clone(m.where), newer))
}

func (m meant) tokenColumn() *parser.Node {
	return parser.NewColumn(refName(m.rel), m.table.TokenColumn)
}

// query asks for one result over the rows that meet the conditions.
func (m meant) query(result *parser.Node, where []*parser.Node) (Probe, error) {
	query := m.selects(result, where)
	args := renumber(query)
	sql, err := parser.DeparseSelect(query)
	return Probe{SQL: sql, Args: args}, err
}

// selects returns the query for one result over the rows that meet the conditions.
func (m meant) selects(result *parser.Node, where []*parser.Node) *parser.SelectStmt {
	query := parser.NewSelect(result, proto.CloneOf(m.rel))
	if m.with != nil {
		query.WithClause = proto.CloneOf(m.with)
	}
	query.WhereClause = all(where)
	if m.source != nil { // by which a row may be found more than once
		query.WhereClause = parser.NewExists([]*parser.Node{proto.CloneOf(m.source)}, query.WhereClause)
	}
	return query
}

// all joins conditions, of which there may be none.
func all(conditions []*parser.Node) *parser.Node {
	switch len(conditions) {
	case 0:
		return nil
	case 1:
		return proto.CloneOf(conditions[0])
	}
	return parser.NewAnd(cloneAll(conditions))
}

// renumber makes the placeholders of a query start at $1 without a gap, since
// PostgreSQL can't tell the type of one that is missing, and returns which
// they were.
func renumber(query *parser.SelectStmt) []int {
	var args []int
	var visit func(protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if p, ok := m.Interface().(*parser.ParamRef); ok {
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

func cloneAll(nodes []*parser.Node) []*parser.Node {
	out := make([]*parser.Node, len(nodes))
	for i, n := range nodes {
		out[i] = proto.CloneOf(n)
	}
	return out
}

func refName(rel *parser.RangeVar) string {
	if rel.Alias != nil {
		return rel.Alias.Aliasname
	}
	return rel.Relname
}
