package entapp

import (
	"context"

	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func id() *schema.Column { return &schema.Column{Name: "id", Type: field.TypeInt, Increment: true} }

func column(name string, t field.Type) *schema.Column { return &schema.Column{Name: name, Type: t} }

func optional(name string, t field.Type) *schema.Column {
	return &schema.Column{Name: name, Type: t, Nullable: true}
}

// table is a table with a serial key.
func table(name string, columns ...*schema.Column) *schema.Table {
	t := schema.NewTable(name).AddPrimary(id())
	for _, c := range columns {
		t.AddColumn(c)
	}
	return t
}

// refer adds a foreign key.
func refer(t *schema.Table, symbol, name string, to *schema.Table, onDelete schema.ReferenceOption) {
	c, _ := t.Column(name)
	t.AddForeignKey(&schema.ForeignKey{Symbol: symbol, Columns: []*schema.Column{c}, RefTable: to, RefColumns: to.PrimaryKey, OnDelete: onDelete})
}

// tables are what code generation makes of a program's schema.
func tables() []*schema.Table {
	users := table("users",
		column("name", field.TypeString),
		&schema.Column{Name: "email", Type: field.TypeString, Unique: true},
		optional("age", field.TypeInt),
		&schema.Column{Name: "role", Type: field.TypeEnum, Enums: []string{"admin", "member"}, Default: "member"},
		optional("settings", field.TypeJSON),
		column("created_at", field.TypeTime))
	posts := table("posts",
		column("title", field.TypeString),
		&schema.Column{Name: "views", Type: field.TypeInt64, Default: 0},
		optional("user_posts", field.TypeInt))
	tags := table("tags", &schema.Column{Name: "name", Type: field.TypeString, Unique: true})
	accounts := table("accounts",
		column("owner", field.TypeString), column("balance", field.TypeInt64), column("version", field.TypeInt64))
	postTags := schema.NewTable("post_tags").AddPrimary(column("post_id", field.TypeInt)).AddPrimary(column("tag_id", field.TypeInt))
	refer(posts, "posts_users_posts", "user_posts", users, schema.SetNull)
	refer(postTags, "post_tags_post_id", "post_id", posts, schema.Cascade)
	refer(postTags, "post_tags_tag_id", "tag_id", tags, schema.Cascade)
	users.AddIndex("user_name_age", false, []string{"name", "age"})
	accounts.SetAnnotation(&entsql.Annotation{Checks: map[string]string{"balance_positive": "balance >= 0"}})
	return []*schema.Table{users, posts, tags, accounts, postTags}
}

// tablesV2 are those of a later release.
func tablesV2() []*schema.Table {
	all := tables()
	users := all[0]
	users.AddColumn(optional("nickname", field.TypeString))
	users.AddIndex("user_nickname", true, []string{"nickname"})
	if age, ok := users.Column("age"); ok {
		age.Type = field.TypeInt64
		age.Nullable = false
		age.Default = 0
	}
	return all
}

func (a app) migrations() []record.Step {
	create := func(ctx context.Context, tables []*schema.Table) error {
		m, err := schema.NewMigrate(a.drv, schema.WithDropColumn(true), schema.WithDropIndex(true))
		if err != nil {
			return err
		}
		return m.Create(ctx, tables...)
	}
	return []record.Step{
		{Op: "migrate", Do: func(ctx context.Context) error { return create(ctx, tables()) }},
		{Op: "migrate again", Do: func(ctx context.Context) error { return create(ctx, tables()) }},
		{Op: "migrate changes", Do: func(ctx context.Context) error { return create(ctx, tablesV2()) }},
		{Op: "migrate back", Do: func(ctx context.Context) error { return create(ctx, tables()) }},
	}
}
