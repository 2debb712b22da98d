package entapp

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// key is the spec of every table's key.
func key() *sqlgraph.FieldSpec { return sqlgraph.NewFieldSpec("id", field.TypeInt) }

// set is the spec of a column and its value.
func set(name string, t field.Type, value driver.Value) *sqlgraph.FieldSpec {
	return &sqlgraph.FieldSpec{Column: name, Type: t, Value: value}
}

func newUser(n int) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("users", key())
	spec.Fields = []*sqlgraph.FieldSpec{
		set("name", field.TypeString, fmt.Sprint("user", n)),
		set("email", field.TypeString, fmt.Sprintf("user%d@example.com", n)),
		set("age", field.TypeInt, n),
		set("role", field.TypeEnum, "member"),
		set("created_at", field.TypeTime, now),
	}
	return spec
}

func newPost(edges ...*sqlgraph.EdgeSpec) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("posts", key())
	spec.Fields = []*sqlgraph.FieldSpec{set("title", field.TypeString, "one"), set("views", field.TypeInt64, int64(0))}
	spec.Edges = edges
	return spec
}

func newTag(name string) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("tags", key())
	spec.SetField("name", field.TypeString, name)
	return spec
}

func newAccount(owner string) *sqlgraph.CreateSpec {
	spec := sqlgraph.NewCreateSpec("accounts", key())
	spec.Fields = []*sqlgraph.FieldSpec{set("owner", field.TypeString, owner), set("balance", field.TypeInt64, int64(10)), set("version", field.TypeInt64, int64(0))}
	return spec
}

// withID gives a spec a key of the program's choice.
func withID(spec *sqlgraph.CreateSpec, id int) *sqlgraph.CreateSpec {
	spec.ID.Value = id
	return spec
}

// author is a post's edge to its user, tagged one to its tags.
func author(ids ...driver.Value) *sqlgraph.EdgeSpec {
	return &sqlgraph.EdgeSpec{Rel: sqlgraph.M2O, Inverse: true, Table: "posts", Columns: []string{"user_posts"},
		Target: &sqlgraph.EdgeTarget{Nodes: ids, IDSpec: key()}}
}

func tagged(ids ...driver.Value) *sqlgraph.EdgeSpec {
	return &sqlgraph.EdgeSpec{Rel: sqlgraph.M2M, Table: "post_tags", Columns: []string{"post_id", "tag_id"},
		Target: &sqlgraph.EdgeTarget{Nodes: ids, IDSpec: key()}}
}

// posted is a user's edge to the posts.
func posted(ids ...driver.Value) *sqlgraph.EdgeSpec {
	return &sqlgraph.EdgeSpec{Rel: sqlgraph.O2M, Table: "posts", Columns: []string{"user_posts"},
		Target: &sqlgraph.EdgeTarget{Nodes: ids, IDSpec: key()}}
}

func (a app) create(spec *sqlgraph.CreateSpec, conflict ...entsql.ConflictOption) func(context.Context) error {
	spec.OnConflict = conflict
	return func(ctx context.Context) error {
		err := sqlgraph.CreateNode(ctx, a.drv, spec)
		if errors.Is(err, sql.ErrNoRows) && conflict != nil {
			return nil // the row was there, and DO NOTHING returns none
		}
		return err
	}
}

func (a app) createBulk(conflict []entsql.ConflictOption, specs ...*sqlgraph.CreateSpec) func(context.Context) error {
	return func(ctx context.Context) error {
		return sqlgraph.BatchCreate(ctx, a.drv, &sqlgraph.BatchCreateSpec{Nodes: specs, OnConflict: conflict})
	}
}

func (a app) creates() []record.Step {
	onID := entsql.ConflictColumns("id")
	name := entsql.ConflictColumns("name")
	return []record.Step{
		all("create", a.create(newUser(1)), a.create(newTag("go")), a.create(newAccount("ann"))),
		all("create bulk", a.createBulk(nil, newUser(2), newUser(3)), a.createBulk(nil, newTag("sql"), newTag("db"), newTag("x"))),
		all("create with edges", a.create(newPost(author(1))), a.create(newPost(author(1), tagged(1, 2))),
			a.createBulk(nil, newPost(author(2), tagged(1)), newPost(author(2), tagged(2)))),
		all("upsert",
			a.create(newTag("go"), name, entsql.DoNothing()),
			a.create(newTag("go"), name, entsql.ResolveWithIgnore()),
			a.create(withID(newAccount("ann"), 1), onID, entsql.ResolveWithNewValues()),
			a.create(withID(newAccount("ann"), 1), onID, entsql.ResolveWith(func(u *entsql.UpdateSet) {
				u.SetExcluded("owner").Add("balance", 5).Set("version", 1)
			})),
			a.create(withID(newAccount("ann"), 1), onID, entsql.ResolveWithNewValues(), entsql.UpdateWhere(entsql.ExprP("accounts.version <= excluded.version"))),
			a.create(withID(newAccount("ann"), 1), entsql.ConflictConstraint("accounts_pkey"), entsql.ResolveWith(func(u *entsql.UpdateSet) { u.SetIgnore("id").SetExcluded("balance") })),
			a.createBulk([]entsql.ConflictOption{name, entsql.ResolveWithNewValues()}, newTag("go"), newTag("more")),
		),
	}
}
