package bunapp

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) selects() []record.Step {
	return []record.Step{
		scan("select", a.sel),
		exec("select aggregates", a.aggregates),
		scan("select where", a.where),
		scan("select joins", a.joins),
		scan("select cte", a.ctes),
		scan("select set operations", a.sets),
		scan("select locked", a.locked),
		{Op: "count and exists", Do: a.count},
	}
}

func (a app) sel() []*bun.SelectQuery {
	var users []user
	var ids []int64
	one := &user{ID: 1}
	return []*bun.SelectQuery{
		a.db.NewSelect().Model(one).WherePK(),
		a.db.NewSelect().Model(&users).Order("id ASC", "name DESC").Limit(10).Offset(0),
		a.db.NewSelect().Model(&users).Column("id", "name").Limit(2).Offset(1),
		a.db.NewSelect().Model(&users).ExcludeColumn("settings", "labels").OrderExpr("lower(u.name) NULLS LAST"),
		a.db.NewSelect().Model(&users).ColumnExpr("u.*").ColumnExpr("coalesce(age, ?) AS age", 18),
		a.db.NewSelect().Model(&users).DistinctOn("name").Order("name"),
		a.db.NewSelect().Model(&users).Distinct().Column("name"),
		a.db.NewSelect().Model(&users).Comment("app:users"),
		a.db.NewSelect().Model(&users).WhereDeleted(),
		a.db.NewSelect().Model(&users).WhereAllWithDeleted(),
		a.db.NewSelect().TableExpr("generate_series(1, ?) AS n", 3).ColumnExpr("n").Model(&ids),
	}
}

func (a app) aggregates() []executer {
	return []executer{
		a.db.NewSelect().Model((*user)(nil)).ColumnExpr("array_agg(id ORDER BY id)"),
		a.db.NewSelect().Model((*order)(nil)).Column("status").ColumnExpr("sum(total) AS total").Group("status").Having("count(*) > ?", 0),
		a.db.NewSelect().Model((*order)(nil)).ColumnExpr("count(*) FILTER (WHERE status = ?)", "paid"),
		a.db.NewSelect().Model((*post)(nil)).ColumnExpr("row_number() OVER (PARTITION BY user_id ORDER BY views DESC)"),
	}
}

func (a app) where() []*bun.SelectQuery {
	var users []user
	var items []orderItem
	sel := func() *bun.SelectQuery { return a.db.NewSelect().Model(&users) }
	return []*bun.SelectQuery{
		sel().Where("name = ?", "ann").Where("age >= ?", 18),
		sel().Where("u.id IN (?)", bun.List([]int64{1, 2, 3})),
		sel().Where("u.id IN ?", bun.Tuple([]int64{4, 5})),
		sel().Where("name = ? OR email = ?", "ann", "it's@example.com"),
		sel().Where("active = ?", true).WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.Where("age < ?", 20).WhereOr("age > ?", 60)
		}),
		sel().Where("created_at > ?", now.Add(-time.Hour)),
		sel().Where("? ILIKE ?", bun.Ident("u.name"), "%a%"),
		sel().Where("settings ->> 'theme' = ?", "dark"),
		sel().Where(`settings \? 'theme'`),
		sel().Where("labels @> ?", pgArray("a")),
		sel().Where("?TableAlias.age IS NULL"),
		sel().Where("u.id IN (?)", a.db.NewSelect().Model((*post)(nil)).Column("user_id").Where("views >= ?", 0)),
		sel().Where("EXISTS (?)", a.db.NewSelect().Model((*post)(nil)).ColumnExpr("1").Where("p.user_id = u.id")),
		a.db.NewSelect().Model(&items).Where("(order_id, line_no) IN (?)", bun.List([]bun.TupleValues{bun.Tuple([]int{1, 1}), bun.Tuple([]int{1, 2})})),
		a.db.NewSelect().Model(&[]orderItem{{OrderID: 1, LineNo: 1}, {OrderID: 1, LineNo: 2}}).WherePK(),
	}
}

func (a app) joins() []*bun.SelectQuery {
	var users []user
	return []*bun.SelectQuery{
		a.db.NewSelect().Model(&users).Column("u.*").Join("JOIN posts AS p ON p.user_id = u.id"),
		a.db.NewSelect().Model(&users).Column("u.*").Join("LEFT JOIN posts AS p").JoinOn("p.user_id = u.id").JoinOn("p.views > ?", 1),
		a.db.NewSelect().Model(&users).Column("u.*").Join("JOIN (?) AS totals ON totals.user_id = u.id",
			a.db.NewSelect().Model((*order)(nil)).Column("user_id").ColumnExpr("sum(total) AS total").Group("user_id")),
		a.db.NewSelect().Model(&users).Column("u.*").TableExpr("LATERAL (SELECT 1 FROM posts p WHERE p.user_id = u.id LIMIT 1) AS x"),
	}
}

func (a app) ctes() []*bun.SelectQuery {
	var users []user
	var accounts []account
	recent := a.db.NewSelect().Model((*user)(nil)).Order("id DESC").Limit(2)
	values := a.db.NewValues(&[]account{{ID: 1, Owner: "ann"}, {ID: 2, Owner: "bob"}}).WithOrder()
	return []*bun.SelectQuery{
		a.db.NewSelect().With("recent", recent).Model(&users).ModelTableExpr("recent AS u"),
		a.db.NewSelect().With("data", values).Model(&accounts).Column("a.*").Join("JOIN data ON data.id = a.id").OrderExpr("data._order"),
		a.db.NewSelect().WithRecursive("tree", a.db.NewSelect().ColumnExpr("1 AS n").UnionAll(
			a.db.NewSelect().ColumnExpr("n + 1").TableExpr("tree").Where("n < 3"))).TableExpr("tree").ColumnExpr("n").Model(&[]int64{}),
		a.db.NewSelect().With("paid", a.db.NewUpdate().Model((*order)(nil)).Set("status = ?", "paid").Where("id = ?", 1).Returning("user_id")).
			Model(&users).Column("u.*").Join("JOIN paid ON paid.user_id = u.id"),
	}
}

func (a app) sets() []*bun.SelectQuery {
	names := func(model any) *bun.SelectQuery { return a.db.NewSelect().Model(model).Column("id") }
	var ids []int64
	all := func(q *bun.SelectQuery) *bun.SelectQuery {
		return a.db.NewSelect().Model(&ids).TableExpr("(?) AS s", q).ColumnExpr("s.id")
	}
	return []*bun.SelectQuery{
		all(names((*user)(nil)).Union(names((*post)(nil)))),
		all(names((*user)(nil)).UnionAll(names((*post)(nil)))),
		all(names((*user)(nil)).Except(names((*post)(nil)))),
		all(names((*user)(nil)).Intersect(names((*post)(nil)))),
	}
}

func (a app) locked() []*bun.SelectQuery {
	var jobs []job
	return []*bun.SelectQuery{
		a.db.NewSelect().Model(&jobs).Where("state = ?", "queued").Order("run_at").Limit(1).For("UPDATE SKIP LOCKED"),
		a.db.NewSelect().Model(&jobs).For("UPDATE OF ?TableAlias NOWAIT"),
		a.db.NewSelect().Model(&jobs).For("KEY SHARE"),
	}
}

func (a app) count(ctx context.Context) error {
	_, err1 := a.db.NewSelect().Model((*user)(nil)).Where("age > ?", 18).Count(ctx)
	_, err2 := a.db.NewSelect().Model((*order)(nil)).Column("status").Group("status").Count(ctx)
	_, err3 := a.db.NewSelect().Model((*user)(nil)).Where("email = ?", "ann@example.com").Exists(ctx)
	return errors.Join(err1, err2, err3)
}

func (a app) relations() []record.Step {
	return []record.Step{
		scan("select relations", func() []*bun.SelectQuery {
			var users []user
			var posts []post
			return []*bun.SelectQuery{
				a.db.NewSelect().Model(&users).Relation("Posts"),
				a.db.NewSelect().Model(&users).Relation("Profile"),
				a.db.NewSelect().Model(&posts).Relation("User").Where("? = ?", bun.Ident("user.name"), "ann"),
				a.db.NewSelect().Model(&posts).Relation("User.Profile").Relation("Tags").Relation("Comments"),
				a.db.NewSelect().Model(&users).Relation("Posts", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("views >= ?", 0).Order("p.id") }),
				a.db.NewSelect().Model(&order{ID: 1}).WherePK().Relation("Items"),
			}
		}),
	}
}
