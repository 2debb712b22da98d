package entapp

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// updateOne changes a row by its key and reads it back.
func (a app) updateOne(table string, columns []string, change func(*sqlgraph.UpdateSpec)) func(context.Context) error {
	return func(ctx context.Context) error {
		id := key()
		id.Value = 1
		spec := sqlgraph.NewUpdateSpec(table, columns, id)
		spec.ScanValues = anyValues
		spec.Assign = func([]string, []any) error { return nil }
		change(spec)
		return sqlgraph.UpdateNode(ctx, a.drv, spec)
	}
}

// updateMany changes the rows that match.
func (a app) updateMany(table string, p *entsql.Predicate, change func(*sqlgraph.UpdateSpec)) func(context.Context) error {
	return func(ctx context.Context) error {
		spec := sqlgraph.NewUpdateSpec(table, []string{"id"}, key())
		if p != nil {
			spec.Predicate = func(s *entsql.Selector) { s.Where(p) }
		}
		change(spec)
		_, err := sqlgraph.UpdateNodes(ctx, a.drv, spec)
		return err
	}
}

var accountColumns = []string{"id", "owner", "balance", "version"}

func (a app) updates() []record.Step {
	version := func(n int) func(*entsql.Selector) {
		return func(s *entsql.Selector) { s.Where(entsql.LT("version", n)) }
	}
	pay := func(s *sqlgraph.UpdateSpec) { s.AddField("balance", field.TypeInt64, int64(1)) }
	return []record.Step{
		all("update one",
			a.updateOne("users", userColumns, func(s *sqlgraph.UpdateSpec) {
				s.SetField("name", field.TypeString, "ann")
				s.ClearField("age", field.TypeInt)
			}),
			a.updateOne("accounts", accountColumns, pay),
			a.updateOne("users", userColumns, func(*sqlgraph.UpdateSpec) {}),
			a.updateOne("accounts", accountColumns, func(s *sqlgraph.UpdateSpec) {
				pay(s)
				s.AddModifier(func(u *entsql.UpdateBuilder) { u.Set("owner", entsql.Expr("upper(owner)")) })
			}),
		),
		all("update edges",
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Clear = []*sqlgraph.EdgeSpec{author()} }),
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Add = []*sqlgraph.EdgeSpec{author(2)} }),
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Add = []*sqlgraph.EdgeSpec{tagged(1, 2)} }),
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Clear = []*sqlgraph.EdgeSpec{tagged(2)} }),
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Clear = []*sqlgraph.EdgeSpec{tagged()} }),
			a.updateOne("users", userColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Clear = []*sqlgraph.EdgeSpec{posted()} }),
			a.updateOne("posts", postColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Clear = []*sqlgraph.EdgeSpec{author()} }),
			a.updateOne("users", userColumns, func(s *sqlgraph.UpdateSpec) { s.Edges.Add = []*sqlgraph.EdgeSpec{posted(1, 2)} }),
		),
		all("update many",
			a.updateMany("accounts", nil, pay),
			a.updateMany("accounts", entsql.EQ("owner", "ann"), func(s *sqlgraph.UpdateSpec) { s.SetField("balance", field.TypeInt64, int64(3)) }),
			a.updateMany("users", entsql.In("id", 1, 2), func(s *sqlgraph.UpdateSpec) { s.SetField("role", field.TypeEnum, "admin") }),
			a.updateMany("users", entsql.And(entsql.GT("age", 1), entsql.NotNull("email")), func(s *sqlgraph.UpdateSpec) { s.ClearField("settings", field.TypeJSON) }),
		),
		all("optimistic lock",
			a.updateOne("accounts", accountColumns, func(s *sqlgraph.UpdateSpec) {
				s.Predicate = version(5)
				s.SetField("version", field.TypeInt64, int64(5))
			}),
			a.updateMany("accounts", entsql.And(entsql.EQ("id", 1), entsql.EQ("version", 5)), func(s *sqlgraph.UpdateSpec) {
				pay(s)
				s.AddField("version", field.TypeInt64, int64(1))
			}),
		),
	}
}

func (a app) deletes() []record.Step {
	remove := func(table string, p *entsql.Predicate) func(context.Context) error {
		return func(ctx context.Context) error {
			spec := sqlgraph.NewDeleteSpec(table, key())
			if p != nil {
				spec.Predicate = func(s *entsql.Selector) { s.Where(p) }
			}
			_, err := sqlgraph.DeleteNodes(ctx, a.drv, spec)
			return err
		}
	}
	return []record.Step{all("delete",
		remove("posts", entsql.EQ("id", 1)), remove("users", entsql.And(entsql.LT("age", 0), entsql.IsNull("settings"))), remove("tags", nil))}
}
