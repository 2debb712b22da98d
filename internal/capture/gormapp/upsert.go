package gormapp

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) upserts() []record.Step {
	tag := func() *Tag { return &Tag{Name: "go"} }
	account := func() *Account { return &Account{ID: 1, Owner: "ann", Balance: 8} }
	name, id := []clause.Column{{Name: "name"}}, []clause.Column{{Name: "id"}}
	return []record.Step{
		step("upsert do nothing", func() []*gorm.DB {
			return chains(
				a.db.Clauses(clause.OnConflict{DoNothing: true}).Create(tag()),
				a.db.Clauses(clause.OnConflict{Columns: name, DoNothing: true}).Create(&[]Tag{*tag(), {Name: "more"}}),
				a.db.Clauses(clause.Insert{Modifier: ""}, clause.OnConflict{OnConstraint: "idx_accounts", DoNothing: true}).Session(&gorm.Session{DryRun: true}).Create(account()),
			)
		}),
		step("upsert do updates", func() []*gorm.DB {
			return chains(
				a.db.Clauses(clause.OnConflict{Columns: id, DoUpdates: clause.AssignmentColumns([]string{"owner", "balance"})}).Create(account()),
				a.db.Clauses(clause.OnConflict{Columns: id, DoUpdates: clause.Assignments(map[string]any{"balance": 0})}).Create(account()),
				a.db.Clauses(clause.OnConflict{Columns: id, DoUpdates: clause.Assignments(map[string]any{
					"balance": gorm.Expr(`"accounts"."balance" + excluded.balance`), "version": gorm.Expr("accounts.version + 1")})}).Create(account()),
				a.db.Clauses(clause.OnConflict{
					Columns: id, DoUpdates: clause.AssignmentColumns([]string{"balance", "version"}),
					Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "accounts.version < excluded.version"}}},
				}).Create(account()),
				a.db.Clauses(clause.OnConflict{OnConstraint: "accounts_pkey", DoUpdates: clause.AssignmentColumns([]string{"balance"})}).Create(account()),
				a.db.Clauses(clause.OnConflict{Columns: name, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&[]Tag{*tag(), {Name: "bulk"}}),
			)
		}),
		step("upsert update all", func() []*gorm.DB {
			return chains(
				a.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(account()),
				a.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&OrderItem{OrderID: 1, LineNo: 1, SKU: "y"}),
				a.db.Clauses(clause.OnConflict{UpdateAll: true}, clause.Returning{}).Create(&[]Account{*account(), {ID: 2, Owner: "bob"}}),
			)
		}),
	}
}
