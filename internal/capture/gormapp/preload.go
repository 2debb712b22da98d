package gormapp

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) preloads() []record.Step {
	var users []User
	var posts []Post
	var orders []Order
	db := a.db
	return []record.Step{
		step("preload", func() []*gorm.DB {
			return chains(
				db.Preload("Posts").Find(&users),
				db.Preload("Posts", "views >= ?", 0).Preload("Profile").Find(&users),
				db.Preload("Posts.Comments").Preload("Languages").Preload("Photos").Find(&users),
				db.Preload("Comments", func(db *gorm.DB) *gorm.DB { return db.Order("comments.id DESC").Limit(5) }).Find(&posts),
				db.Preload("Tags").Preload("User.Manager").First(&posts, 1),
				db.Preload(clause.Associations).Find(&users, []int{1, 2}),
				db.Joins("Profile").Preload("Manager.Posts").Find(&users),
				db.Preload("Items").Find(&orders),
			)
		}),
	}
}

// open is a scope that programs keep in one place.
func open(db *gorm.DB) *gorm.DB { return db.Where("status = ?", "pending") }

// page is a scope with parameters.
func page(n, size int) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB { return db.Offset((n - 1) * size).Limit(size) }
}

func (a app) scopes() []record.Step {
	var orders []Order
	return []record.Step{
		step("scopes", func() []*gorm.DB {
			return chains(
				a.db.Scopes(open, page(2, 10)).Order(clause.OrderByColumn{Column: clause.Column{Name: "id"}, Desc: true}).Find(&orders),
				a.db.Scopes(open).Delete(&Order{}, "total < ?", 0),
				a.db.Scopes(open).Model(&Order{}).Where("total = ?", 0).Update("status", "void"),
			)
		}),
		step("comments and hints", func() []*gorm.DB {
			return chains(
				a.db.Clauses(note("select")).Find(&orders),
				a.db.Clauses(note("update")).Model(&Order{}).Where("id = ?", 1).Update("total", 3),
				a.db.Clauses(note("delete")).Where("id = ?", -1).Delete(&Order{}),
				a.db.Clauses(note("insert")).Create(&Tag{Name: "noted"}),
			)
		}),
	}
}

// note puts a comment before a statement, as gorm.io/hints does.
type note string

// ModifyStatement adds the comment to the clause that comes first.
func (n note) ModifyStatement(stmt *gorm.Statement) {
	for _, name := range []string{"SELECT", "UPDATE", "DELETE", "INSERT"} {
		c := stmt.Clauses[name]
		c.BeforeExpression = clause.Expr{SQL: "/* orders:" + string(n) + " */"}
		stmt.Clauses[name] = c
	}
}

// Build has nothing to add.
func (n note) Build(clause.Builder) {}
