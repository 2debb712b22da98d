package gormapp

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) associations() []record.Step {
	return []record.Step{
		{Op: "association many2many", Do: a.many2many},
		{Op: "association has many", Do: a.hasMany},
		{Op: "association others", Do: a.otherAssociations},
		step("association save", func() []*gorm.DB {
			return chains(
				a.db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&Post{ID: 1, UserID: 2, Title: "one, saved",
					Comments: []Comment{{ID: 1, PostID: 1, Author: "ann", Text: "edited"}}, Tags: []Tag{{ID: 1, Name: "golang"}}}),
				a.db.Select("Tags").Delete(&Post{ID: 2}),
			)
		}),
	}
}

// many2many works on the join table of posts and tags.
func (a app) many2many(context.Context) error {
	tags := func() *gorm.Association { return a.db.Model(&Post{ID: 1}).Association("Tags") }
	var found []Tag
	tags().Count()
	return errors.Join(
		tags().Append(&Tag{Name: "db"}, &Tag{ID: 1, Name: "go"}),
		tags().Find(&found, "name <> ?", "none"),
		tags().Replace([]Tag{{Name: "new"}, {ID: 2, Name: "sql"}}),
		tags().Delete(&Tag{ID: 2}),
		tags().Clear(),
		a.db.Model(&[]Post{{ID: 1}, {ID: 2}}).Association("Tags").Append(&Tag{ID: 1, Name: "go"}, &Tag{ID: 2, Name: "sql"}),
	)
}

// hasMany works on the foreign key of the other table.
func (a app) hasMany(context.Context) error {
	comments := func() *gorm.Association { return a.db.Model(&Post{ID: 1}).Association("Comments") }
	var found []Comment
	comments().Count()
	return errors.Join(
		comments().Append(&Comment{Author: "bob", Text: "first"}, &Comment{Author: "cec", Text: "second"}),
		comments().Find(&found),
		a.db.Model(&Post{ID: 1}).Association("Comments").Unscoped().Delete(&Comment{ID: 3}),
		a.db.Model(&Post{ID: 1}).Association("Comments").Unscoped().Replace(&Comment{Author: "dan", Text: "only"}),
	)
}

// otherAssociations are belongs to, has one and polymorphic.
func (a app) otherAssociations(context.Context) error {
	ann := func() *gorm.DB { return a.db.Model(&User{Model: gorm.Model{ID: 1}}) }
	var manager User
	return errors.Join(
		ann().Association("Manager").Append(&User{Model: gorm.Model{ID: 2}}),
		ann().Association("Manager").Find(&manager),
		ann().Association("Manager").Clear(),
		ann().Association("Profile").Replace(&Profile{Bio: "new"}),
		ann().Association("Photos").Append(&Photo{URL: "b.png"}),
		a.db.Model(&User{Model: gorm.Model{ID: 1}}).Association("Photos").Unscoped().Clear(),
		ann().Association("Languages").Replace(&Language{Code: "en"}),
	)
}
