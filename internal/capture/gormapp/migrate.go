package gormapp

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// models are in the order in which they refer to one another.
func models() []any {
	return []any{&User{}, &Profile{}, &Language{}, &Photo{}, &Tag{}, &Post{}, &Comment{}, &Order{}, &OrderItem{}, &Account{}, &Job{}}
}

// userV2 is User after a release that has changed columns.
type userV2 struct {
	gorm.Model
	Name     string `gorm:"size:200;not null;index"`
	Nickname string `gorm:"default:none;comment:for greetings"`
	Age      int64
}

// TableName puts it in User's place.
func (userV2) TableName() string { return "users" }

func (a app) migrations() []record.Step {
	return []record.Step{
		plain("migrate", func() error { return a.db.AutoMigrate(models()...) }),
		plain("migrate again", func() error { return a.db.AutoMigrate(models()...) }),
		plain("migrate changes", func() error { return a.db.AutoMigrate(&userV2{}) }),
		{Op: "migrator", Do: a.migrator},
	}
}

// migrator changes the schema step by step.
func (a app) migrator(context.Context) error {
	m := a.db.Migrator()
	m.HasTable(&User{})
	m.HasColumn(&User{}, "Nickname")
	m.HasIndex(&User{}, "idx_users_name")
	m.HasConstraint(&Post{}, "fk_users_posts")
	_, errTypes := m.ColumnTypes(&Post{})
	_, errIndexes := m.GetIndexes(&Post{})
	_, errTables := m.GetTables()
	return errors.Join(
		errTypes, errIndexes, errTables,
		m.RenameColumn(&userV2{}, "nickname", "nick"),
		m.DropColumn(&userV2{}, "nick"),
		m.AlterColumn(&User{}, "Role"),
		m.DropIndex(&User{}, "idx_users_name"),
		m.CreateIndex(&User{}, "Name"),
		m.RenameIndex(&User{}, "idx_users_name", "idx_users_full_name"),
		m.DropConstraint(&Post{}, "chk_posts_views"),
		m.CreateConstraint(&Post{}, "chk_posts_views"),
		m.RenameTable("jobs", "tasks"),
		m.RenameTable("tasks", "jobs"),
		m.CreateView("active_users", gorm.ViewOption{Replace: true, Query: a.db.Model(&User{}).Where("active")}),
		m.DropView("active_users"),
	)
}

func (a app) drops() []record.Step {
	return []record.Step{
		plain("drop tables", func() error { return a.db.Migrator().DropTable(&Photo{}, "user_languages", &Language{}) }),
	}
}
