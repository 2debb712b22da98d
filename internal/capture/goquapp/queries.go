package goquapp

import (
	"time"

	"github.com/doug-martin/goqu/v9"
	"github.com/doug-martin/goqu/v9/exp"
)

// now stands still, as in the other packages.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type account struct {
	Owner   string `db:"owner"`
	Balance int64  `db:"balance"`
}

func selects() []builder {
	users := dialect.From("users")
	return []builder{
		users,
		users.Select("id", goqu.C("name").As("n"), goqu.COUNT("*").Over(goqu.W())).Limit(3).Offset(1).Order(goqu.I("name").Desc().NullsLast()),
		users.Where(goqu.Ex{"name": "o'neil", "active": true, "age": goqu.Op{"gt": 18}}),
		users.Where(goqu.C("id").In(1, 2, 3), goqu.C("email").ILike("%x%"), goqu.C("age").IsNotNull()),
		users.Where(goqu.Or(goqu.C("age").Between(goqu.Range(1, 2)), goqu.C("created_at").Lt(now))),
		users.Where(goqu.L("lower(name) = ?", "ann")),
		users.Select(goqu.DISTINCT("name")),
		dialect.From(goqu.T("users").As("u")).Select("u.name", goqu.COUNT("p.id")).
			LeftJoin(goqu.T("posts").As("p"), goqu.On(goqu.Ex{"p.user_id": goqu.I("u.id")})).GroupBy("u.name").Having(goqu.COUNT("p.id").Gte(0)),
		users.Where(goqu.C("id").In(dialect.From("posts").Select("user_id").Where(goqu.C("views").Gt(1)))),
		dialect.From("recent").With("recent", users.Select("id").Limit(1)),
		users.Select("name").Union(dialect.From("accounts").Select("owner")),
		dialect.From("accounts").Where(goqu.C("id").Eq(1)).ForUpdate(exp.SkipLocked),
		users.Select(goqu.Case().When(goqu.C("age").Lt(18), "minor").Else("adult").As("kind")),
	}
}

func inserts() []builder {
	return []builder{
		dialect.Insert("accounts").Rows(goqu.Record{"owner": "ann", "balance": 1}),
		dialect.Insert("accounts").Rows(account{"bob", 2}, account{"it's", 3}).Returning("id"),
		dialect.Insert("accounts").Cols("owner", "balance").Vals(goqu.Vals{"cec", 4}, goqu.Vals{"dan", goqu.L("2 + 3")}),
		dialect.Insert("tags").Cols("name").FromQuery(dialect.From("orders").Select("status").Distinct()),
	}
}

func upserts() []builder {
	one := goqu.Record{"id": 1, "owner": "ann", "balance": 5}
	return []builder{
		dialect.Insert("tags").Rows(goqu.Record{"name": "go"}).OnConflict(goqu.DoNothing()),
		dialect.Insert("accounts").Rows(one).OnConflict(goqu.DoUpdate("id", goqu.Record{"balance": goqu.I("excluded.balance")})),
		dialect.Insert("accounts").Rows(one).OnConflict(goqu.DoUpdate("id", goqu.Record{"balance": 6, "version": goqu.L("accounts.version + 1")}).
			Where(goqu.I("accounts.version").Lt(9))),
	}
}

func updates() []builder {
	update := dialect.Update("accounts")
	return []builder{
		update.Set(account{"ann", 7}).Where(goqu.C("id").Eq(1)),
		update.Set(goqu.Record{"balance": goqu.L("balance - ?", 1)}).Where(goqu.Ex{"id": 1, "balance": goqu.Op{"gte": 1}}).Returning(goqu.Star()),
		update.Set(goqu.Record{"balance": 8, "version": goqu.L("version + 1")}).Where(goqu.Ex{"id": 1, "version": 0}),
		update.Set(goqu.Record{"balance": 8, "version": 9}).Where(goqu.C("id").Eq(1), goqu.C("version").Lt(9)),
		dialect.Update("orders").Set(goqu.Record{"status": "shipped"}).From("users").Where(goqu.Ex{"users.id": goqu.I("orders.user_id")}),
		update.With("rich", dialect.From("accounts").Select("id").Where(goqu.C("balance").Gt(10))).
			Set(goqu.Record{"owner": nil, "balance": goqu.Default()}).Where(goqu.C("id").In(dialect.From("rich").Select("id")), goqu.L("false")),
	}
}

func deletes() []builder {
	return []builder{
		dialect.Delete("tags").Where(goqu.C("name").Eq("none")),
		dialect.Delete("accounts").Where(goqu.C("balance").Lt(0)).Returning("id"),
		dialect.Truncate("jobs").Identity("RESTART").Cascade(),
		dialect.Truncate("post_tags"),
	}
}

// bound has values bound instead of written.
func bound() []builder {
	return []builder{
		dialect.From("users").Prepared(true).Where(goqu.Ex{"name": "ann", "age": []int{1, 2}}).Limit(1),
		dialect.Insert("accounts").Prepared(true).Rows(account{"eve", 1}, account{"fay", 2}),
		dialect.Update("accounts").Prepared(true).Set(account{"eve", 3}).Where(goqu.C("id").Eq(1), goqu.C("version").Lte(9)),
		dialect.Delete("accounts").Prepared(true).Where(goqu.C("owner").In("x", "y")),
	}
}
