package compat

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/fencerow/fencerow/tokenctx"
)

var bunLibraries = []library{
	{"bun", "a field for the token", bunWith(bunOrder, bunOrders)},
	{"bun", "no field for the token", bunWith(bunBareOrder, bunBareOrders)},
}

// BunOrder has a field for its token, which goes back with the others.
type BunOrder struct {
	bun.BaseModel `bun:"orders,alias:o"`

	ID        int64 `bun:",pk,autoincrement"`
	Status    string
	Amount    int64
	LastToken int64
	Items     []*BunItem `bun:"rel:has-many,join:id=order_id"`
}

// BunBareOrder leaves the token to fencerow.
type BunBareOrder struct {
	bun.BaseModel `bun:"orders,alias:o"`

	ID     int64 `bun:",pk,autoincrement"`
	Status string
	Amount int64
}

// BunItem is of an order.
type BunItem struct {
	bun.BaseModel `bun:"items,alias:i"`

	ID        int64 `bun:",pk,autoincrement"`
	OrderID   int64
	SKU       string `bun:"sku"`
	LastToken int64
}

// BunSoftOrder is marked when it is deleted.
type BunSoftOrder struct {
	bun.BaseModel `bun:"orders,alias:o"`

	ID        int64 `bun:",pk,autoincrement"`
	Status    string
	DeletedAt time.Time `bun:",soft_delete,nullzero"`
}

// BunHookedOrder changes itself before it is written, and an item after that.
type BunHookedOrder struct {
	bun.BaseModel `bun:"orders,alias:o"`

	ID     int64 `bun:",pk,autoincrement"`
	Status string
}

var (
	_ bun.BeforeAppendModelHook = (*BunHookedOrder)(nil)
	_ bun.AfterUpdateHook       = (*BunHookedOrder)(nil)
)

// BeforeAppendModel is bun's hook.
func (o *BunHookedOrder) BeforeAppendModel(context.Context, bun.Query) error {
	o.Status = "mine"
	return nil
}

// AfterUpdate is bun's hook.
func (*BunHookedOrder) AfterUpdate(ctx context.Context, q *bun.UpdateQuery) error {
	_, err := q.NewUpdate().Model((*BunItem)(nil)).Set("sku = ?", "hooked").Where("id = 1").Exec(ctx)
	return err
}

func bunOrder(id int64) any     { return &BunOrder{ID: id, Status: "mine", LastToken: forged} }
func bunBareOrder(id int64) any { return &BunBareOrder{ID: id, Status: "mine"} }

func bunOrders(ids ...int64) any {
	list := []BunOrder{}
	for _, id := range ids {
		list = append(list, BunOrder{ID: id, Status: "mine", LastToken: forged})
	}
	return &list
}

func bunBareOrders(ids ...int64) any {
	list := []BunBareOrder{}
	for _, id := range ids {
		list = append(list, BunBareOrder{ID: id, Status: "mine"})
	}
	return &list
}

type bunApp struct {
	db   *bun.DB
	one  func(id int64) any
	many func(ids ...int64) any
}

func bunWith(one func(int64) any, many func(...int64) any) func(*testing.T, *env) []op {
	return func(_ *testing.T, e *env) []op {
		b := bunApp{bun.NewDB(e.db, pgdialect.New()), one, many}
		return slices.Concat(b.creates(), b.reads(), b.updates(), b.upserts(), b.deletes(), b.raw(), b.transactions(), b.hooks())
	}
}

// execer is any of bun's queries.
type execer interface {
	Exec(ctx context.Context, dest ...any) (sql.Result, error)
}

// counted returns how many rows a result has, 0 if there is none.
func counted(r sql.Result, err error) (int64, error) {
	if err != nil || r == nil {
		return 0, err
	}
	return r.RowsAffected()
}

// write is an operation on order 1 that sets it to "mine".
func (b bunApp) write(name string, query func() execer) op {
	return op{name: name, changes: rows{"o1": "mine 8"}, affected: 1, do: func(ctx context.Context) (int64, error) {
		return counted(query().Exec(ctx))
	}}
}

func (b bunApp) creates() []op {
	insert := func(model any) func() execer { return func() execer { return b.db.NewInsert().Model(model) } }
	return []op{
		b.write("create", func() execer { return b.db.NewInsert().Model(b.one(0)) }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		b.write("create, with its key", insert(b.one(50))).ofKind(inserts, rows{"o50": "mine 8"}, 1),
		b.write("create, some columns", func() execer { return b.db.NewInsert().Model(b.one(0)).Column("status") }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		b.write("create, bulk", func() execer { return b.db.NewInsert().Model(b.many(0, 0)) }).ofKind(inserts, rows{"o4": "mine 8", "o5": "mine 8"}, 2),
		b.write("create, from a map", func() execer {
			return b.db.NewInsert().Model(&map[string]any{"status": "mine"}).TableExpr("orders")
		}).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		b.write("create, returning", func() execer { return b.db.NewInsert().Model(b.one(0)).Returning("id, status") }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
	}
}

func (b bunApp) reads() []op {
	read := func(name string, query func() *bun.SelectQuery, err error) op {
		return op{name: name, kind: reads, affected: untold, err: err, do: func(ctx context.Context) (int64, error) { return untold, query().Scan(ctx) }}
	}
	return []op{
		read("first", func() *bun.SelectQuery { return b.db.NewSelect().Model(b.one(1)).WherePK() }, nil),
		read("find", func() *bun.SelectQuery { return b.db.NewSelect().Model(b.many()).Where("id < 3") }, nil),
		read("first, no such row", func() *bun.SelectQuery { return b.db.NewSelect().Model(b.one(77)).WherePK() }, sql.ErrNoRows),
		read("has many, preload", func() *bun.SelectQuery {
			return b.db.NewSelect().Model(&BunOrder{ID: 1}).Relation("Items").WherePK()
		}, nil),
	}
}

func (b bunApp) updates() []op {
	db := b.db
	set := func(where string) *bun.UpdateQuery {
		return db.NewUpdate().Model(b.one(0)).Set("status = ?", "mine").Where(where)
	}
	return []op{
		b.write("update", func() execer { return set("id = 1") }),
		b.write("update, by a map", func() execer {
			return db.NewUpdate().Model(&map[string]any{"status": "mine"}).TableExpr("orders").Where("id = 1")
		}),
		b.write("update, by a map with a token", func() execer {
			return db.NewUpdate().Model(&map[string]any{"status": "mine", "last_token": forged}).TableExpr("orders").Where("id = 1")
		}),
		b.write("update, by a model", func() execer { return db.NewUpdate().Model(b.one(1)).OmitZero().WherePK() }),
		b.write("update, some columns", func() execer { return db.NewUpdate().Model(b.one(1)).Column("status").WherePK() }),
		b.write("update, all columns", func() execer { return db.NewUpdate().Model(b.one(1)).WherePK() }),
		b.write("update, by an expression", func() execer {
			return db.NewUpdate().Model(b.one(1)).Set("status = lower(?), amount = amount + 1", "MINE").WherePK()
		}),
		b.write("update, returning", func() execer { return set("id = 1").Returning("id, status") }),
		b.write("update, if the version is", func() execer { return set("id = 1 AND version = 1").Set("version = version + 1") }),
		b.write("update, many", func() execer { return set("id IN (1, 2) OR status = 'none'") }).overTwo(),
		b.write("update, all", func() execer { return set("1 = 1") }).
			ofKind(compares, rows{"o1": "mine 8", "o2": "mine 8", "o3": "mine 8"}, 3).of(meeting("o1", "o2", "o3")),
		b.write("update, bulk", func() execer { return db.NewUpdate().Model(b.many(1, 2)).Bulk() }).overTwo(),
		b.write("update, bulk, some columns", func() execer { return db.NewUpdate().Model(b.many(1, 2)).Column("status").Bulk() }).overTwo(),
		b.write("update, by a sub-select", func() execer {
			return db.NewUpdate().Model(b.one(0)).Set("status = ?", "mine").Where("id = (?)", db.NewSelect().Model(b.one(0)).ColumnExpr("min(id)"))
		}).of(func(o *op) { o.kind = hides }),
		b.write("update, no such row", func() execer { return set("id = 77") }).ofKind(inserts, nil, 0),
		{name: "save, as it was read", changes: rows{"o1": "mine 8"}, affected: 1, do: func(ctx context.Context) (int64, error) {
			o := &BunOrder{ID: 1}
			if err := db.NewSelect().Model(o).WherePK().Scan(ctx); err != nil {
				return 0, err
			}
			o.Status = "mine"
			return counted(db.NewUpdate().Model(o).WherePK().Exec(ctx))
		}},
	}
}

func (b bunApp) upserts() []op {
	insert := func(ids ...int64) *bun.InsertQuery { return b.db.NewInsert().Model(b.many(ids...)) }
	return []op{
		b.write("upsert", func() execer { return insert(1).On("CONFLICT (id) DO UPDATE") }),
		b.write("upsert, some columns", func() execer { return insert(1).On("CONFLICT (id) DO UPDATE").Set("status = EXCLUDED.status") }),
		b.write("upsert, values", func() execer { return insert(1).On("CONFLICT (id) DO UPDATE").Set("status = ?", "mine") }),
		b.write("upsert, values with a token", func() execer {
			return insert(1).On("CONFLICT (id) DO UPDATE").Set("status = ?, last_token = ?", "mine", forged)
		}),
		b.write("upsert, bulk", func() execer { return insert(1, 2).On("CONFLICT (id) DO UPDATE").Set("status = EXCLUDED.status") }).overTwo(),
		b.write("upsert, new", func() execer { return insert(50).On("CONFLICT (id) DO UPDATE") }).ofKind(inserts, rows{"o50": "mine 8"}, 1),
		b.write("upsert, do nothing", func() execer { return insert(1, 50).On("CONFLICT DO NOTHING") }).ofKind(inserts, rows{"o50": "mine 8"}, 1),
		b.write("upsert, ignore", func() execer { return insert(1, 50).Ignore() }).ofKind(inserts, rows{"o50": "mine 8"}, 1),
	}
}

func (b bunApp) deletes() []op {
	db := b.db
	soft := func() *BunSoftOrder { return &BunSoftOrder{ID: 1} }
	return []op{
		b.write("delete", func() execer { return db.NewDelete().Model(b.one(2)).WherePK() }).ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		b.write("delete, many", func() execer { return db.NewDelete().Model(b.one(0)).Where("id > 1") }).
			ofKind(compares, rows{"o2": "", "o3": ""}, 2).of(meeting("o2", "o3")),
		b.write("delete, bulk", func() execer { return db.NewDelete().Model(b.many(2, 3)).WherePK() }).
			ofKind(compares, rows{"o2": "", "o3": ""}, 2).of(meeting("o2", "o3")),
		b.write("delete, returning", func() execer { return db.NewDelete().Model(b.one(2)).WherePK().Returning("id, status") }).
			ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		b.write("delete, no such row", func() execer { return db.NewDelete().Model(b.one(77)).WherePK() }).ofKind(inserts, nil, 0),
		b.write("soft delete", func() execer { return db.NewDelete().Model(soft()).WherePK() }).ofKind(compares, rows{"o1": "theirs 8 deleted"}, 1),
		b.write("soft delete, update", func() execer { return db.NewUpdate().Model(soft()).Set("status = ?", "mine").WherePK() }),
		b.write("soft delete, undone", func() execer {
			return db.NewUpdate().Model(soft()).Set("deleted_at = NULL, status = ?", "mine").WherePK().WhereAllWithDeleted()
		}),
		b.write("soft delete, for good", func() execer {
			return db.NewDelete().Model(&BunSoftOrder{ID: 2}).WherePK().WhereAllWithDeleted().ForceDelete()
		}).
			ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
	}
}

func (b bunApp) raw() []op {
	return []op{
		b.write("raw SQL", func() execer { return b.db.NewRaw("UPDATE orders SET status = ? WHERE id = ?", "mine", 1) }),
		{name: "raw SQL, returning", changes: rows{"o1": "mine 8"}, affected: untold, do: func(ctx context.Context) (int64, error) {
			return untold, b.db.NewRaw("UPDATE orders SET status = ? WHERE id = ? RETURNING id, status", "mine", 1).Scan(ctx, b.one(0))
		}},
		{name: "raw SQL, prepared", changes: rows{"o1": "mine 8"}, affected: 1, do: func(ctx context.Context) (int64, error) {
			stmt, err := b.db.PrepareContext(ctx, "UPDATE orders SET status = $1 WHERE id = $2")
			if err != nil {
				return 0, err
			}
			defer stmt.Close()
			return counted(stmt.ExecContext(ctx, "mine", 1))
		}},
	}
}

func (b bunApp) transactions() []op {
	set := func(ctx context.Context, tx bun.IDB, id int64) error {
		_, err := tx.NewUpdate().Model(b.one(id)).Column("status").WherePK().Exec(ctx)
		return err
	}
	steps := func(name string, changes rows, do func(ctx context.Context, tx bun.Tx) error) op {
		return op{name: name, changes: changes, affected: untold, do: func(ctx context.Context) (int64, error) {
			return untold, b.db.RunInTx(ctx, nil, do)
		}}
	}
	return []op{
		steps("transaction", rows{"o1": "mine 8", "o2": "mine 8"}, func(ctx context.Context, tx bun.Tx) error {
			return errors.Join(set(ctx, tx, 2), set(ctx, tx, 1))
		}),
		steps("transaction, nested", rows{"o1": "mine 8", "o2": "mine 8", "o3": "mine 8"}, func(ctx context.Context, tx bun.Tx) error {
			first := set(ctx, tx, 2)
			inner := tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				_, created := tx.NewInsert().Model(b.one(50)).Exec(ctx)
				err := errors.Join(created, set(ctx, tx, 1))
				_, deleted := tx.NewDelete().Model(b.one(50)).WherePK().Exec(ctx)
				return errors.Join(err, deleted)
			})
			return errors.Join(first, ignoring(inner, tokenctx.ErrStale), set(ctx, tx, 3))
		}).of(func(o *op) { o.goesOn, o.keeps, o.twice = true, rows{"o2": "mine 8", "o3": "mine 8"}, true }),
		steps("transaction, rolled back", nil, func(ctx context.Context, tx bun.Tx) error {
			if err := set(ctx, tx, 1); err != nil {
				return err
			}
			return errUndo
		}).of(func(o *op) { o.err = errUndo }),
		steps("transaction, locked first", rows{"o1": "mine 8"}, func(ctx context.Context, tx bun.Tx) error {
			o := &BunOrder{ID: 1}
			if err := tx.NewSelect().Model(o).WherePK().For("UPDATE").Scan(ctx); err != nil {
				return err
			}
			o.Status = "mine"
			_, err := tx.NewUpdate().Model(o).WherePK().Exec(ctx)
			return err
		}),
	}
}

func (b bunApp) hooks() []op {
	hooked := func(db bun.IDB) execer { return db.NewUpdate().Model(&BunHookedOrder{ID: 1}).WherePK() }
	done := rows{"o1": "mine 8", "i1": "o1 hooked 8"}
	return []op{
		b.write("hooks", func() execer { return hooked(b.db) }).ofKind(compares, done, 1),
		{name: "hooks, stale in one", changes: done, affected: untold, meets: []string{"i1"}, do: func(ctx context.Context) (int64, error) {
			return untold, b.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				_, err := hooked(tx).Exec(ctx)
				return err
			})
		}},
	}
}
