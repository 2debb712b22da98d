package entapp

import (
	"context"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"

	"github.com/fencerow/fencerow/internal/capture/record"
)

var (
	userColumns = []string{"id", "name", "email", "age", "role", "created_at"}
	postColumns = []string{"id", "title", "views", "user_posts"}
)

// query reads rows and throws them away.
func (a app) query(table string, columns []string, change func(*sqlgraph.QuerySpec)) func(context.Context) error {
	return func(ctx context.Context) error {
		spec := sqlgraph.NewQuerySpec(table, columns, key())
		spec.ScanValues = anyValues
		spec.Assign = func([]string, []any) error { return nil }
		change(spec)
		return sqlgraph.QueryNodes(ctx, a.drv, spec)
	}
}

func anyValues(columns []string) ([]any, error) {
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	return values, nil
}

// where reads users that match.
func (a app) where(p *entsql.Predicate) func(context.Context) error {
	return a.query("users", userColumns, func(s *sqlgraph.QuerySpec) { s.Predicate = func(s *entsql.Selector) { s.Where(p) } })
}

// count counts users.
func (a app) count(unique bool) func(context.Context) error {
	return func(ctx context.Context) error {
		spec := sqlgraph.NewQuerySpec("users", []string{"name"}, key())
		spec.Unique = unique
		_, err := sqlgraph.CountNodes(ctx, a.drv, spec)
		return err
	}
}

func (a app) queries() []record.Step {
	modified := func(m func(*entsql.Selector)) func(context.Context) error {
		return a.query("users", userColumns, func(s *sqlgraph.QuerySpec) { s.Modifiers = []func(*entsql.Selector){m} })
	}
	return []record.Step{
		all("query",
			a.query("users", userColumns, func(*sqlgraph.QuerySpec) {}),
			a.query("users", userColumns, func(s *sqlgraph.QuerySpec) { s.Limit, s.Offset, s.Unique = 10, 1, true }),
			a.query("posts", postColumns, func(s *sqlgraph.QuerySpec) {
				s.Order = func(s *entsql.Selector) { s.OrderBy(entsql.Desc(s.C("views")), s.C("id")) }
				s.Limit = 2
			}),
			a.count(false), a.count(true),
		),
		all("query where",
			a.where(entsql.EQ("id", 1)), a.where(entsql.In("id", 1, 2, 3)), a.where(entsql.NotIn("name", "x", "y")),
			a.where(entsql.And(entsql.GTE("age", 18), entsql.Or(entsql.IsNull("role"), entsql.NEQ("role", "admin")))),
			a.where(entsql.Not(entsql.HasPrefix("name", "a%"))), a.where(entsql.ContainsFold("email", "EXAMPLE")), a.where(entsql.EqualFold("name", "ANN")),
			a.where(entsql.NotNull("age")), a.where(entsql.False()), a.where(entsql.ExprP("age % 2 = $1", 0)),
		),
		all("query locked",
			modified(func(s *entsql.Selector) { s.ForUpdate() }),
			modified(func(s *entsql.Selector) { s.ForUpdate(entsql.WithLockAction(entsql.SkipLocked)) }),
			modified(func(s *entsql.Selector) {
				s.ForShare(entsql.WithLockAction(entsql.NoWait), entsql.WithLockTables("users"))
			}),
		),
		all("query grouped", modified(func(s *entsql.Selector) {
			s.Select("role", entsql.As(entsql.Count("*"), "n"), entsql.Avg("age")).GroupBy("role").Having(entsql.GT(entsql.Count("*"), 0))
		})),
	}
}

func (a app) edges() []record.Step {
	posts := func() *sqlgraph.Step {
		return sqlgraph.NewStep(sqlgraph.From("users", "id"), sqlgraph.To("posts", "id"), sqlgraph.Edge(sqlgraph.O2M, false, "posts", "user_posts"))
	}
	tags := func(from ...any) *sqlgraph.Step {
		return sqlgraph.NewStep(sqlgraph.From("posts", "id", from...), sqlgraph.To("tags", "id"), sqlgraph.Edge(sqlgraph.M2M, false, "post_tags", "post_id", "tag_id"))
	}
	onUsers := func(m func(*entsql.Selector)) func(context.Context) error {
		return a.query("users", userColumns, func(s *sqlgraph.QuerySpec) { s.Predicate = m })
	}
	tagsFrom := func(q *entsql.Selector) func(context.Context) error {
		return a.query("tags", []string{"id", "name"}, func(s *sqlgraph.QuerySpec) { s.From, s.Unique = q, true })
	}
	some := entsql.Dialect(dialect.Postgres).Select("id").From(entsql.Table("posts")).Where(entsql.GT("views", -1))
	return []record.Step{all("query edges",
		onUsers(func(s *entsql.Selector) { sqlgraph.HasNeighbors(s, posts()) }),
		onUsers(func(s *entsql.Selector) {
			sqlgraph.HasNeighborsWith(s, posts(), func(s *entsql.Selector) { s.Where(entsql.EQ(s.C("title"), "one")) })
		}),
		onUsers(func(s *entsql.Selector) { sqlgraph.OrderByNeighborsCount(s, posts(), entsql.OrderDesc()) }),
		tagsFrom(sqlgraph.Neighbors(dialect.Postgres, tags(1))),
		tagsFrom(sqlgraph.SetNeighbors(dialect.Postgres, tags(some))),
		a.query("posts", postColumns, func(s *sqlgraph.QuerySpec) {
			s.Predicate = func(s *entsql.Selector) { s.Where(entsql.In("user_posts", 1, 2)) }
			s.Modifiers = []func(*entsql.Selector){sqlgraph.LimitNeighbors("user_posts", 2, entsql.Expr("id"))}
		}),
		a.queryTags,
	)}
}

// queryTags is how a many-to-many edge is loaded along with its nodes.
func (a app) queryTags(ctx context.Context) error {
	return sqlgraph.QueryEdges(ctx, a.drv, &sqlgraph.EdgeQuerySpec{
		Edge:       tagged(),
		Predicate:  func(s *entsql.Selector) { s.Where(entsql.InValues("post_id", 1, 2)) },
		ScanValues: func() [2]any { return [2]any{new(int), new(int)} },
		Assign:     func(any, any) error { return nil },
	})
}
