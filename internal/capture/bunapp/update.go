package bunapp

import (
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// pgArray is a literal of PostgreSQL's array type.
func pgArray(values ...string) any { return pgdialect.Array(values) }

func (a app) updates() []record.Step {
	return []record.Step{
		exec("update model", a.updateModel),
		exec("update set", a.updateSet),
		exec("update map", a.updateMap),
		exec("update bulk", a.updateBulk),
		exec("update from", a.updateFrom),
		exec("optimistic lock", a.optimisticLock),
	}
}

func (a app) updateModel() []executer {
	ann := &user{ID: 1, Name: "ann", Email: "ann@example.com", CreatedAt: now}
	return []executer{
		a.db.NewUpdate().Model(ann).WherePK(),
		a.db.NewUpdate().Model(ann).Column("name", "email").WherePK(),
		a.db.NewUpdate().Model(ann).ExcludeColumn("settings", "created_at").Where("u.id = ?", 1),
		a.db.NewUpdate().Model(&user{ID: 1, Age: 31}).OmitZero().WherePK(),
		a.db.NewUpdate().Model(ann).OmitZero().WherePK().Returning("*"),
		a.db.NewUpdate().Model(ann).Column("name").Value("name", "upper(?)", "ann").WherePK(),
		a.db.NewUpdate().Model(&orderItem{OrderID: 1, LineNo: 1, SKU: "z"}).WherePK(),
		a.db.NewUpdate().Model(&account{ID: 1, Owner: "ann", Balance: 3}).WherePK("id", "owner"),
	}
}

func (a app) updateSet() []executer {
	one := &account{ID: 1, Owner: "ann"}
	return []executer{
		a.db.NewUpdate().Model((*account)(nil)).Set("balance = balance - ?", 1).Where("id = ?", 1),
		a.db.NewUpdate().Model((*account)(nil)).Set("balance = ?", 5).Set("owner = ?", "it's").Where("a.id = ?", 1).Where("a.balance >= ?", 0),
		a.db.NewUpdate().Model(one).Set("balance = a.balance + ?", 2).WherePK().Returning("balance"),
		a.db.NewUpdate().Model((*account)(nil)).SetColumn("balance", "greatest(balance, ?)", 0).Where("TRUE"),
		a.db.NewUpdate().Table("accounts").Set("balance = ?", 1).Where("id = ?", 1),
		a.db.NewUpdate().TableExpr("accounts AS acc").Set("balance = 2").Where("acc.id = ?", 1),
		a.db.NewUpdate().Model((*account)(nil)).ModelTableExpr("accounts").Set("balance = 2").Where("id = ?", 1),
		a.db.NewUpdate().Model((*user)(nil)).Set("settings = settings || ?", `{"theme":"light"}`).Where("id = ?", 1),
		a.db.NewUpdate().Model((*user)(nil)).Set("labels = array_append(labels, ?)", "x").WhereAllWithDeleted().Where("id = ?", 1),
		a.db.NewUpdate().Model((*account)(nil)).Comment("app:accounts").Set("balance = 3").Where("id = ?", 1).WhereOr("id = ?", 2),
		a.db.NewUpdate().Model((*account)(nil)).Set("balance = CASE WHEN balance > ? THEN balance ELSE ? END", 10, 10).Where("id IN (?)", bun.List([]int{1, 2})),
	}
}

func (a app) updateMap() []executer {
	values := map[string]any{"owner": "ann", "balance": 9}
	return []executer{
		a.db.NewUpdate().Model(&values).TableExpr("accounts").Where("id = ?", 1),
		a.db.NewUpdate().Model(&values).Table("accounts").Where("id = ? AND version = ?", 1, 0),
	}
}

func (a app) updateBulk() []executer {
	accounts := []account{{ID: 1, Owner: "ann", Balance: 1}, {ID: 2, Owner: "bob", Balance: 2}}
	items := []orderItem{{OrderID: 1, LineNo: 1, SKU: "x"}, {OrderID: 1, LineNo: 2, SKU: "y"}}
	values := a.db.NewValues(&accounts)
	return []executer{
		a.db.NewUpdate().Model(&accounts).Column("balance").Bulk(),
		a.db.NewUpdate().Model(&accounts).Bulk(),
		a.db.NewUpdate().Model(&items).Column("sku", "quantity").Bulk(),
		a.db.NewUpdate().With("_data", values).Model((*account)(nil)).TableExpr("_data").
			Set("balance = _data.balance").Set("version = a.version + 1").Where("a.id = _data.id").Where("a.version <= _data.version"),
		a.db.NewUpdate().Model(&[]account{{ID: 1}, {ID: 2}}).Set("balance = balance + 1").WherePK(),
	}
}

func (a app) updateFrom() []executer {
	db := a.db
	return []executer{
		db.NewUpdate().Model((*order)(nil)).TableExpr("users AS u").Set("status = ?", "shipped").Where("u.id = o.user_id AND u.active"),
		db.NewUpdate().Model((*order)(nil)).Set("total = (?)",
			db.NewSelect().Model((*orderItem)(nil)).ColumnExpr("coalesce(sum(quantity * price), 0)").Where("oi.order_id = o.id")).Where("o.id = ?", 1),
		db.NewUpdate().With("next", db.NewSelect().Model((*job)(nil)).Column("id").Where("state = ?", "queued").Order("run_at").Limit(1).For("UPDATE SKIP LOCKED")).
			Model(&job{}).TableExpr("next").Set("state = ?", "running").Where("j.id = next.id").Returning("j.*"),
		db.NewUpdate().Model((*job)(nil)).Set("state = ?", "failed").Where("id IN (?)", db.NewSelect().Model((*job)(nil)).Column("id").Where("run_at < ?", now)),
	}
}

func (a app) optimisticLock() []executer {
	return []executer{
		a.db.NewUpdate().Model(&account{ID: 1, Owner: "ann", Balance: 4, Version: 1}).WherePK().Where("version = ?", 0),
		a.db.NewUpdate().Model((*account)(nil)).Set("balance = ?", 5).Set("version = version + 1").Where("id = ?", 1).Where("version = ?", 1),
		a.db.NewUpdate().Model((*account)(nil)).Set("balance = ?, version = ?", 5, 7).Where("id = ? AND version < ?", 1, 7),
	}
}

// merges are refused by PostgreSQL before 15.
func (a app) merges() []record.Step {
	return []record.Step{exec("merge", func() []executer {
		accounts := []account{{ID: 1, Owner: "ann", Balance: 1}, {ID: 77, Owner: "new", Balance: 2}}
		merge := func() *bun.MergeQuery {
			return a.db.NewMerge().Model(&account{}).With("_data", a.db.NewValues(&accounts)).Using("_data").On("?TableAlias.id = _data.id")
		}
		return []executer{
			merge().WhenUpdate("MATCHED", func(q *bun.UpdateQuery) *bun.UpdateQuery { return q.Set("balance = _data.balance") }).
				WhenInsert("NOT MATCHED", func(q *bun.InsertQuery) *bun.InsertQuery {
					return q.Value("owner", "_data.owner").Value("balance", "_data.balance").Value("version", "0")
				}),
			merge().WhenDelete("MATCHED AND a.balance < 0").When("NOT MATCHED THEN DO NOTHING"),
		}
	})}
}

func (a app) deletes() []record.Step {
	db := a.db
	return []record.Step{
		exec("delete", func() []executer {
			return []executer{
				db.NewDelete().Model(&comment{ID: 1}).WherePK(),
				db.NewDelete().Model((*comment)(nil)).Where("post_id = ?", 1).Where("text = ?", "?"),
				db.NewDelete().Model(&[]comment{{ID: 1}, {ID: 2}}).WherePK().Returning("*"),
				db.NewDelete().Model(&[]orderItem{{OrderID: 1, LineNo: 1}, {OrderID: 1, LineNo: 2}}).WherePK(),
				db.NewDelete().Model((*postTag)(nil)).TableExpr("tags AS t").Where("t.id = ?TableAlias.tag_id AND t.name = ?", "none"),
				db.NewDelete().With("old", db.NewSelect().Model((*job)(nil)).Column("id").Limit(5)).Model((*job)(nil)).Where("id IN (SELECT id FROM old)"),
			}
		}),
		exec("soft delete", func() []executer {
			return []executer{
				db.NewDelete().Model(&user{ID: 2}).WherePK(),
				db.NewDelete().Model((*user)(nil)).Where("name = ?", "nobody"),
				db.NewUpdate().Model(&user{ID: 2}).Set("deleted_at = NULL").WherePK().WhereDeleted(),
				db.NewDelete().Model(&user{ID: 2}).WherePK().ForceDelete(),
				db.NewDelete().Model((*user)(nil)).WhereDeleted().ForceDelete(),
			}
		}),
	}
}
