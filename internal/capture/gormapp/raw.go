package gormapp

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) raw() []record.Step {
	var users []User
	var n int64
	return []record.Step{
		step("raw", func() []*gorm.DB {
			return chains(
				a.db.Raw("SELECT id, name, age FROM users WHERE name = ?", "ann").Scan(&users),
				a.db.Raw("SELECT * FROM users WHERE name = @name OR role = @role", sql.Named("name", "ann"), sql.Named("role", "admin")).Find(&users),
				a.db.Raw("WITH recent AS (SELECT * FROM users ORDER BY id DESC LIMIT ?) SELECT * FROM recent WHERE active", 3).Scan(&users),
				a.db.Raw("SELECT count(*) FROM users u, LATERAL (SELECT 1 FROM posts p WHERE p.user_id = u.id LIMIT 1) x").Scan(&n),
				a.db.Raw("UPDATE accounts SET balance = balance + ? WHERE id = ? RETURNING balance", 1, 1).Scan(&n),
				a.db.Exec("UPDATE orders SET status = ? WHERE id IN ?", "paid", []int64{1, 2, 3}),
				a.db.Exec("UPDATE users SET name = ? WHERE id = ?", gorm.Expr("name || ?", "!"), 1),
				a.db.Exec("INSERT INTO tags (name) SELECT DISTINCT role FROM users WHERE role IS NOT NULL AND role <> '' ON CONFLICT DO NOTHING"),
				a.db.Exec("DELETE FROM jobs WHERE state = ? AND run_at < now() - interval '30 days'", "done"),
				a.db.Exec("TRUNCATE TABLE photos RESTART IDENTITY CASCADE"),
				a.db.Exec("SET LOCAL statement_timeout = '5s'"),
				a.db.Exec("ANALYZE users"),
			)
		}),
	}
}

func (a app) prepared() []record.Step {
	var users []User
	db := a.db.Session(&gorm.Session{PrepareStmt: true})
	return []record.Step{
		step("prepared mode", func() []*gorm.DB {
			return chains(
				db.Where("name = ? AND role = ? AND active", "ann", "admin").Find(&users),
				db.Model(&User{Model: gorm.Model{ID: 1}}).Updates(map[string]any{"name": "ann", "role": "admin"}),
				db.Create(&Comment{PostID: 1, Author: "ann", Text: "prepared"}),
				db.Delete(&Comment{}, "author = ? AND text = ?", "ann", "prepared"),
			)
		}),
	}
}

// generics is the interface that GORM has had since 1.30.
func (a app) generics() []record.Step {
	return []record.Step{{Op: "generics", Do: func(ctx context.Context) error {
		users := gorm.G[User](a.db)
		if _, err := users.Where("name = ?", "ann").Where("role <> ?", "").Find(ctx); err != nil {
			return err
		}
		if err := gorm.G[Tag](a.db).Create(ctx, &Tag{Name: "generic"}); err != nil {
			return err
		}
		if _, err := users.Where("id = ? AND name <> ?", 1, "").Update(ctx, "role", "admin"); err != nil {
			return err
		}
		if _, err := users.Where("id = ? AND email <> ?", 1, "").Updates(ctx, User{Name: "ann"}); err != nil {
			return err
		}
		_, err := gorm.G[Tag](a.db).Where("name = ?", "generic").Delete(ctx)
		return err
	}}}
}

func (a app) deletes() []record.Step {
	return []record.Step{
		step("delete", func() []*gorm.DB {
			return chains(
				a.db.Delete(&Comment{ID: 1}),
				a.db.Delete(&Comment{}, 10),
				a.db.Delete(&Comment{}, []int{1, 2, 3}),
				a.db.Where("author = ?", "bob").Delete(&Comment{}),
				a.db.Where("post_id IN (?)", a.db.Model(&Post{}).Select("id").Where("views < ?", 0)).Delete(&Comment{}),
				a.db.Delete(&OrderItem{OrderID: 1, LineNo: 3}),
				a.db.Delete(&[]OrderItem{{OrderID: 1, LineNo: 1}, {OrderID: 1, LineNo: 2}}),
				a.db.Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(&Job{}),
			)
		}),
		step("soft delete", func() []*gorm.DB {
			return chains(
				a.db.Delete(&Post{ID: 1}),
				a.db.Where("age < ?", 18).Delete(&User{}),
				a.db.Unscoped().Model(&Post{}).Where("id = ?", 1).Update("deleted_at", nil),
				a.db.Unscoped().Delete(&Post{ID: 3}),
				a.db.Unscoped().Where("deleted_at IS NOT NULL AND deleted_at < ?", now).Delete(&Post{}),
			)
		}),
	}
}
