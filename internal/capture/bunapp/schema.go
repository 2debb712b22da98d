package bunapp

import (
	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) schema() []record.Step {
	return []record.Step{
		exec("create table", func() []executer {
			var queries []executer
			for _, model := range models() {
				queries = append(queries, a.db.NewCreateTable().Model(model))
			}
			return append(queries,
				a.db.NewCreateTable().Model((*tag)(nil)).IfNotExists(),
				a.db.NewCreateTable().Model((*comment)(nil)).ModelTableExpr("archived_comments").
					ForeignKey("(post_id) REFERENCES posts (id) ON DELETE CASCADE"),
				a.db.NewCreateTable().Model((*job)(nil)).ModelTableExpr("scratch").Temp().Varchar(40),
				a.db.NewCreateTable().Model((*order)(nil)).ModelTableExpr("orders_by_hash").PartitionBy("HASH (id)").WithForeignKeys(),
			)
		}),
		exec("create index", func() []executer {
			return []executer{
				a.db.NewCreateIndex().Model((*post)(nil)).Index("posts_user_id_idx").Column("user_id"),
				a.db.NewCreateIndex().Model((*user)(nil)).Index("users_lower_email_idx").Unique().IfNotExists().ColumnExpr("lower(email)"),
				a.db.NewCreateIndex().Model((*order)(nil)).Index("orders_open_idx").Column("status").Include("total").Where("status = ?", "pending"),
				a.db.NewCreateIndex().Model((*job)(nil)).Index("jobs_run_at_idx").Concurrently().Using("btree").Column("run_at"),
			}
		}),
	}
}

func (a app) schemaChanges() []record.Step {
	return []record.Step{
		exec("alter table", func() []executer {
			return []executer{
				a.db.NewAddColumn().Model((*user)(nil)).ColumnExpr("nickname TEXT DEFAULT ''").IfNotExists(),
				a.db.NewDropColumn().Model((*user)(nil)).Column("nickname"),
				a.db.NewRaw("ALTER TABLE ? ADD CONSTRAINT accounts_balance_check CHECK (balance >= ?)", ident("accounts"), -1000),
			}
		}),
		exec("truncate and drop", func() []executer {
			return []executer{
				a.db.NewTruncateTable().Model((*job)(nil)),
				a.db.NewTruncateTable().Model((*comment)(nil)).Cascade().ContinueIdentity(),
				a.db.NewDropIndex().Index("jobs_run_at_idx").Concurrently().IfExists(),
				a.db.NewDropTable().Model((*profile)(nil)).IfExists().Cascade(),
			}
		}),
	}
}
