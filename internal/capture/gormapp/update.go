package gormapp

import (
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) updates() []record.Step {
	return []record.Step{
		step("update column", a.updateColumn),
		step("update map", a.updateMap),
		step("update struct", a.updateStruct),
		step("update with joins and subqueries", a.updateFrom),
		step("update expression", a.updateExpr),
		step("save", a.save),
		step("optimistic lock", a.optimisticLock),
	}
}

func (a app) updateColumn() []*gorm.DB {
	ann := &User{Model: gorm.Model{ID: 1}}
	return chains(
		a.db.Model(ann).Update("name", "anna"),
		a.db.Model(&User{}).Where("active = ?", true).Update("role", "member"),
		a.db.Model(ann).Where("active = ?", true).Update("name", "anne"),
		a.db.Model(ann).UpdateColumn("name", "ann"),
		a.db.Model(&Post{ID: 1}).UpdateColumn("views", gorm.Expr("views + ?", 1)),
		a.db.Table("posts").Where("id = ?", 1).Update("title", "t"),
		a.db.Model(&OrderItem{OrderID: 1, LineNo: 1}).Update("quantity", 5),
		a.db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Account{}).Update("balance", 10),
	)
}

func (a app) updateMap() []*gorm.DB {
	type m = map[string]any
	return chains(
		a.db.Model(&User{}).Where("id = ?", 1).Updates(m{"name": "ann", "age": 31, "active": false}),
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Select("name").Updates(m{"name": "ann", "age": 32}),
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Omit("name").Updates(m{"name": "ann", "age": 32}),
		a.db.Table("users").Where("id IN ?", []int{1, 2}).Updates(m{"role": "staff"}),
		a.db.Model(&User{}).Where("role = ?", "staff").UpdateColumns(m{"role": "admin", "age": gorm.Expr("age + 1")}),
		a.db.Model(&Job{}).Where("state = ? AND run_at <= ?", "queued", now).Updates(m{"state": "running", "locked_by": "w1", "attempts": gorm.Expr("attempts + 1")}),
	)
}

func (a app) updateStruct() []*gorm.DB {
	return chains(
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Updates(User{Name: "ann", Role: "admin"}),
		a.db.Where("email = ?", "ann@example.com").Updates(&User{Name: "ann"}),
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Select("*").Omit("ID", "Email", "CreatedAt").Updates(User{Name: "ann"}),
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Select("Name", "Age").Updates(User{Name: "ann"}),
		a.db.Updates(&Account{ID: 1, Owner: "ann"}),
		a.db.Model(&Profile{ID: 1}).Updates(Profile{Address: Address{City: "Bergen"}, Tags: map[string]any{"y": true}}),
	)
}

func (a app) updateFrom() []*gorm.DB {
	return chains(
		a.db.Model(&Order{}).Where("id = ?", 1).Update("total", a.db.Model(&OrderItem{}).Select("coalesce(sum(quantity * price), 0)").Where("order_items.order_id = orders.id")),
		a.db.Model(&Post{}).Where("user_id IN (?)", a.db.Model(&User{}).Select("id").Where("NOT active")).Update("title", "hidden"),
		a.db.Table("orders AS o").Where("o.id = ?", 1).Updates(map[string]any{"status": "paid"}),
		a.db.Model(&Order{}).Clauses(clause.From{Tables: []clause.Table{{Name: "users"}}}).Where("users.id = orders.user_id AND users.active").Update("status", "shipped"),
	)
}

func (a app) updateExpr() []*gorm.DB {
	var accounts []Account
	return chains(
		a.db.Model(&Account{ID: 1}).Update("balance", gorm.Expr("balance * ? + ?", 2, 3)),
		a.db.Model(&Account{}).Where("id = ? AND balance >= ?", 1, 5).Update("balance", gorm.Expr("balance - ?", 5)),
		a.db.Model(&accounts).Clauses(clause.Returning{}).Where("owner = ?", "ann").Update("balance", gorm.Expr("balance * 2")),
		a.db.Model(&accounts).Clauses(clause.Returning{Columns: []clause.Column{{Name: "balance"}}}).Where("owner = ?", "bob").Update("balance", 1),
		a.db.Model(&Account{}).Where("id IN ?", []int{1, 2}).Update("balance", gorm.Expr("CASE id WHEN ? THEN balance - ? ELSE balance + ? END", 1, 1, 1)),
		a.db.Clauses(clause.Set{clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 9}}).Table("accounts").Where("id = ?", 1).Updates(map[string]any{}),
	)
}

func (a app) save() []*gorm.DB {
	return chains(
		a.db.Save(&Account{ID: 1, Owner: "ann", Balance: 7}),
		a.db.Save(&Account{Owner: "new"}),
		a.db.Save(&Account{ID: 900, Owner: "absent"}),
		a.db.Save(&[]Account{{ID: 1, Owner: "ann"}, {ID: 2, Owner: "bob"}}),
		a.db.Save(&OrderItem{OrderID: 1, LineNo: 1, SKU: "z", Quantity: 1}),
		a.db.Omit(clause.Associations).Save(&Post{ID: 1, UserID: 2, Title: "saved", CreatedAt: now.Add(-time.Hour)}),
	)
}

// optimisticLock is what gorm.io/plugin/optimisticlock sends, and what is
// written by hand.
func (a app) optimisticLock() []*gorm.DB {
	version := clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: "version"}, Value: 0}}}
	next := map[string]any{"balance": 3, "version": gorm.Expr("version + 1")}
	return chains(
		a.db.Model(&Account{ID: 1}).Clauses(version).Updates(next),
		a.db.Model(&Account{}).Where("id = ? AND version = ?", 1, 1).Updates(next),
		a.db.Model(&Account{ID: 1}).Where("version = ?", 2).Updates(Account{Balance: 4, Version: 3}),
		a.db.Model(&Account{ID: 1}).Where("version < ?", 9).Updates(map[string]any{"balance": 5, "version": 9}),
		a.db.Model(&Account{}).Where(&Account{ID: 1, Version: 9}).Select("Balance", "Version").Updates(&Account{Balance: 6, Version: 10}),
	)
}
