package squirrelapp

import (
	sq "github.com/Masterminds/squirrel"
)

func selects() []sq.Sqlizer {
	return []sq.Sqlizer{
		psql.Select("*").From("users"),
		psql.Select("id", "name").From("users").OrderBy("name DESC", "id").Limit(10).Offset(5),
		psql.Select("u.name", "count(p.id) AS posts").From("users u").LeftJoin("posts p ON p.user_id = u.id").GroupBy("u.name").Having(sq.Gt{"count(p.id)": 0}),
		psql.Select("u.name").Distinct().From("users u").Join("posts p ON p.user_id = u.id AND p.views > ?", 1).InnerJoin("post_tags t ON t.post_id = p.id"),
		psql.Select("name").From("users").Options("DISTINCT ON (active)"),
		psql.Select("*").From("accounts").Where(sq.Eq{"id": []int{1, 2}}).OrderBy("id").Suffix("FOR UPDATE"),
		psql.Select("id").From("jobs").Where("state = ?", "queued").OrderBy("run_at").Limit(1).Suffix("FOR UPDATE SKIP LOCKED"),
		psql.Select("n").Prefix("WITH recent AS (SELECT id AS n FROM users LIMIT ?)", 3).From("recent"),
		psql.Select().Column("coalesce(age, ?) AS age", 18).Columns("users.name").From("users").CrossJoin("tags"),
	}
}

func wheres() []sq.Sqlizer {
	users := func(p any, args ...any) sq.Sqlizer { return psql.Select("id").From("users").Where(p, args...) }
	return []sq.Sqlizer{
		users(sq.Eq{"name": "ann", "active": true}),
		users(sq.Eq{"age": nil}),
		users(sq.NotEq{"name": []string{"ann", "bob"}}),
		users(sq.Eq{"id": []int{}}),
		users(sq.And{sq.GtOrEq{"age": 18}, sq.Lt{"age": 60}}),
		users(sq.Or{sq.Like{"name": "a%"}, sq.ILike{"email": "%EXAMPLE%"}, sq.NotLike{"name": "b%"}}),
		users("created_at > now() - ?::interval", "1 day"),
		users(sq.Expr("id = ANY(?)", []int64{1, 2})),
		users("email ~ ? AND (to_jsonb(name) ?? 'x') IS NOT NULL", "^a"),
		users(sq.ConcatExpr("lower(name) = ", sq.Expr("lower(?)", "ANN"))),
	}
}

func inserts() []sq.Sqlizer {
	return []sq.Sqlizer{
		psql.Insert("accounts").Columns("owner", "balance").Values("dan", 1),
		psql.Insert("accounts").Columns("owner", "balance").Values("eve", 2).Values("fay", 3).Suffix("RETURNING id"),
		psql.Insert("accounts").SetMap(map[string]any{"owner": "gil", "balance": 4}),
		psql.Insert("tags").Columns("name").Select(sq.Select("DISTINCT status").From("orders").Where("total > ?", 0)),
		psql.Insert("posts").Columns("user_id", "title").Values(sq.Expr("(SELECT min(id) FROM users WHERE active = ?)", true), sq.Expr("upper(?)", "one")),
	}
}

func upserts() []sq.Sqlizer {
	return []sq.Sqlizer{
		psql.Insert("tags").Columns("name").Values("go").Suffix("ON CONFLICT DO NOTHING"),
		psql.Insert("accounts").Columns("id", "owner", "balance").Values(1, "ann", 5).
			Suffix("ON CONFLICT (id) DO UPDATE SET balance = EXCLUDED.balance"),
		psql.Insert("accounts").Columns("id", "owner", "balance").Values(1, "ann", 5).
			Suffix("ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + ?, version = EXCLUDED.version WHERE accounts.version < ? RETURNING balance", 5, 9),
	}
}

func updates() []sq.Sqlizer {
	return []sq.Sqlizer{
		psql.Update("accounts").Set("balance", 7).Where(sq.Eq{"id": 1}),
		psql.Update("accounts").SetMap(map[string]any{"balance": 8, "owner": "ann"}).Where("id = ?", 1),
		psql.Update("accounts").Set("balance", sq.Expr("balance - ?", 1)).Where(sq.And{sq.Eq{"id": 1}, sq.GtOrEq{"balance": 1}}),
		psql.Update("accounts").Set("balance", 9).Set("version", sq.Expr("version + 1")).Where(sq.Eq{"id": 1, "version": 0}),
		psql.Update("accounts").Set("balance", 9).Set("version", 7).Where(sq.Eq{"id": 1}).Where(sq.Lt{"version": 7}).Suffix("RETURNING *"),
		psql.Update("orders").Set("status", "shipped").From("users").Where("users.id = orders.user_id AND users.active"),
		psql.Update("users").Set("name", sq.Select("owner").From("accounts").Where("accounts.id = users.id")).Where(sq.Eq{"id": 1}),
		psql.Update("users").Set("age", nil).Where(sq.Expr("id IN (?)", sq.Select("user_id").From("posts").Where(sq.Gt{"views": 5}))),
		psql.Update("jobs").Prefix("WITH next AS (SELECT id FROM jobs WHERE state = ? LIMIT 1 FOR UPDATE SKIP LOCKED)", "queued").
			Set("state", "running").Where("id IN (SELECT id FROM next)"),
	}
}

func deletes() []sq.Sqlizer {
	return []sq.Sqlizer{
		psql.Delete("tags").Where(sq.Eq{"name": "none"}),
		psql.Delete("accounts").Where("balance < ?", 0).Suffix("RETURNING id"),
		psql.Delete("post_tags").Prefix("WITH old AS (SELECT id FROM tags WHERE name = ?)", "none").Where("tag_id IN (SELECT id FROM old)"),
		psql.Delete("jobs"),
	}
}

func expressions() []sq.Sqlizer {
	kind := sq.Case().When("age < 18", "'minor'").When(sq.Eq{"age": nil}, sq.Expr("?", "unknown")).Else("'adult'")
	balance := sq.Case("id").When("1", "balance - 1").When("2", "balance + 1").Else("balance")
	sub := sq.Select("user_id", "max(id) AS id").From("posts").GroupBy("user_id").Having("count(*) > ?", 0)
	return []sq.Sqlizer{
		psql.Select("name").Column(sq.Alias(kind, "kind")).From("users"),
		psql.Update("accounts").Set("balance", balance).Where(sq.Eq{"id": []int{1, 2}}),
		psql.Select("p.title").FromSelect(sub, "latest").Join("posts p ON p.id = latest.id"),
		psql.Select("name").From("users").Where(sq.Expr("EXISTS (?)", sq.Select("1").From("orders").Where("orders.user_id = users.id"))),
		psql.Select("name").From("users").JoinClause(sub.Prefix("JOIN (").Suffix(") latest ON latest.user_id = users.id")),
	}
}
