package entapp

import (
	"context"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// builders uses the SQL builder without the graph, as hand-written parts of a
// program do.
func (a app) builders() []record.Step {
	return []record.Step{
		a.build("builder select", builtSelects),
		a.build("builder insert", func(b *entsql.DialectBuilder) []querier {
			return []querier{
				b.Insert("accounts").Columns("owner", "balance", "version").Values("bob", 1, 0).Values("cec", 2, 0).Returning("id"),
				b.Insert("accounts").Columns("id", "owner", "balance", "version").Values(1, "ann", 1, 0).
					OnConflict(entsql.ConflictColumns("id"), entsql.ResolveWithNewValues()),
			}
		}),
		a.build("builder update", func(b *entsql.DialectBuilder) []querier {
			return []querier{
				b.Update("accounts").Set("balance", 5).Where(entsql.EQ("id", 1)),
				b.Update("accounts").Add("balance", 5).Set("owner", entsql.Raw("lower(owner)")).Where(entsql.And(entsql.EQ("id", 1), entsql.LT("version", 9))).Returning("balance"),
				b.Update("posts").SetNull("user_posts").Where(entsql.In("user_posts", b.Select("id").From(b.Table("users")).Where(entsql.EQ("name", "nobody")))),
			}
		}),
		a.build("builder delete", func(b *entsql.DialectBuilder) []querier {
			u := b.Table("users").As("u")
			return []querier{
				b.Delete("accounts").Where(entsql.EQ("owner", "cec")),
				b.Delete("posts").Where(entsql.Exists(b.Select().From(u).Where(entsql.And(entsql.ColumnsEQ(b.Table("posts").C("user_posts"), u.C("id")), entsql.EQ(u.C("name"), "nobody"))))),
			}
		}),
	}
}

func builtSelects(b *entsql.DialectBuilder) []querier {
	u, p := b.Table("users").As("u"), b.Table("posts").As("p")
	recent := b.With("recent").As(b.Select("id").From(b.Table("posts")).OrderBy(entsql.Desc("id")).Limit(3))
	return []querier{
		b.Select(u.C("name"), p.C("title")).From(u).Join(p).On(u.C("id"), p.C("user_posts")).Where(entsql.GT(p.C("views"), -1)),
		b.Select(u.C("name"), entsql.As(entsql.Count(p.C("id")), "n")).From(u).LeftJoin(p).On(u.C("id"), p.C("user_posts")).GroupBy(u.C("name")).OrderExpr(entsql.Expr("2 DESC")),
		b.Select().From(b.Table("recent")).Prefix(recent),
		b.Select("name").Distinct().From(u).Where(entsql.Like("name", "a%")),
		b.Select("name").From(b.Table("users")).UnionAll(b.Select("name").From(b.Table("tags"))),
		b.SelectExpr(entsql.Expr("count(*) FILTER (WHERE age > $1)", 18)).From(b.Table("users")),
	}
}

// transactions is what a generated client does between Tx and Commit.
func (a app) transactions() []record.Step {
	return []record.Step{{Op: "transaction", Do: func(ctx context.Context) error {
		tx, err := a.drv.Tx(ctx)
		if err != nil {
			return err
		}
		spec := sqlgraph.NewUpdateSpec("accounts", []string{"id"}, key())
		spec.AddField("balance", field.TypeInt64, int64(-1))
		spec.Predicate = func(s *entsql.Selector) { s.Where(entsql.And(entsql.EQ("id", 1), entsql.GTE("balance", 1))) }
		if _, err := sqlgraph.UpdateNodes(ctx, txDriver{ExecQuerier: tx}, spec); err != nil {
			return err
		}
		return tx.Commit()
	}}}
}

// txDriver makes a driver of a transaction, as generated code does.
type txDriver struct{ dialect.ExecQuerier }

// Tx gives the transaction there is.
func (t txDriver) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(t), nil }

// Dialect is the driver's.
func (t txDriver) Dialect() string { return dialect.Postgres }

// Close is the program's to call, on the driver.
func (t txDriver) Close() error { return nil }
