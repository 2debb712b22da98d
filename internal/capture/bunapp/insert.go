package bunapp

import (
	"github.com/uptrace/bun"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// ident quotes a name in a query.
func ident(name string) bun.Ident { return bun.Ident(name) }

func (a app) inserts() []record.Step {
	db := a.db
	return []record.Step{
		exec("insert", func() []executer {
			return []executer{
				db.NewInsert().Model(&user{Name: "ann", Email: "ann@example.com", Age: 30, Active: true, Settings: settings{"dark"}, Labels: []string{"a", "b'c"}}),
				db.NewInsert().Model(&user{Name: "bob o'neil", Email: "bob@example.com"}).Returning("id, created_at"),
				db.NewInsert().Model(&profile{UserID: 1, Bio: `back\slash and "quotes"`}).Returning("NULL"),
				db.NewInsert().Model(&post{UserID: 1, Title: "one"}).Value("title", "upper(?)", "one"),
				db.NewInsert().Model(&post{UserID: 2, Title: "two"}).ExcludeColumn("views"),
				db.NewInsert().Model(&account{Owner: "ann", Balance: 100}).Column("owner", "balance"),
				db.NewInsert().Model(&order{UserID: 1, Total: 12.5}),
				db.NewInsert().Model(&job{Kind: "mail", State: "queued", Payload: []byte("{}\x00\xff"), RunAt: now}),
			}
		}),
		exec("insert bulk", func() []executer {
			return []executer{
				db.NewInsert().Model(&[]account{{Owner: "bob", Balance: 5}, {Owner: "cec", Balance: 7}}),
				db.NewInsert().Model(&[]tag{{Name: "go"}, {Name: "sql"}}).Returning("*"),
				db.NewInsert().Model(&[]postTag{{PostID: 1, TagID: 1}, {PostID: 1, TagID: 2}}),
				db.NewInsert().Model(&[]comment{{PostID: 1, Text: "?"}, {PostID: 1, Text: "-- no comment; DROP"}}),
				db.NewInsert().Model(&[]orderItem{{OrderID: 1, LineNo: 1, SKU: "a-1", Quantity: 2, Price: 1.5}, {OrderID: 1, LineNo: 2, SKU: "b-1", Quantity: 1}}),
			}
		}),
		exec("insert from maps", func() []executer {
			one := map[string]any{"owner": "dan", "balance": 1, "version": 0}
			return []executer{
				db.NewInsert().Model(&one).Table("accounts"),
				db.NewInsert().Model(&one).Table("accounts").Returning("id"),
			}
		}),
		exec("insert from select", func() []executer {
			return []executer{
				db.NewInsert().Table("tags").Column("name").TableExpr("(SELECT DISTINCT status AS name FROM orders) AS s"),
				db.NewInsert().With("src", db.NewSelect().Model((*user)(nil)).ColumnExpr("id AS user_id, name AS bio")).
					Table("profiles").Column("user_id", "bio").TableExpr("src"),
			}
		}),
	}
}

func (a app) upserts() []record.Step {
	db := a.db
	return []record.Step{
		exec("upsert", func() []executer {
			ann := &account{ID: 1, Owner: "ann", Balance: 50}
			return []executer{
				db.NewInsert().Model(&tag{Name: "go"}).Ignore(),
				db.NewInsert().Model(&tag{Name: "go"}).On("CONFLICT (name) DO NOTHING"),
				db.NewInsert().Model(ann).On("CONFLICT (id) DO UPDATE"),
				db.NewInsert().Model(ann).On("CONFLICT (id) DO UPDATE").Set("balance = EXCLUDED.balance, version = a.version + 1"),
				db.NewInsert().Model(ann).On("CONFLICT (id) DO UPDATE").Set("balance = a.balance + EXCLUDED.balance").Where("a.version < ?", 9).Returning("balance"),
				db.NewInsert().Model(&[]account{*ann, {ID: 2, Owner: "bob"}}).On("CONFLICT ON CONSTRAINT accounts_pkey DO UPDATE").Set("owner = EXCLUDED.owner"),
			}
		}),
	}
}
