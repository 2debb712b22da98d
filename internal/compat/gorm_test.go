package compat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/fencerow/fencerow/tokenctx"
)

var gormLibraries = []library{
	{"GORM", "a field for the token", gormWith(order, orders, gorm.Config{})},
	{"GORM", "no field for the token", gormWith(bareOrder, bareOrders, gorm.Config{})},
	{"GORM", "prepared", gormWith(order, orders, gorm.Config{PrepareStmt: true, PrepareStmtTTL: keep, TranslateError: true, SkipDefaultTransaction: true})},
}

func init() { logger.Default = logger.Discard } // stale writes are meant

// keep is a time so long that GORM starts no goroutine to look at it, which
// it would never end.
const keep = 10 * 365 * 24 * time.Hour

// Order has a field for its token, which goes back with the others.
type Order struct {
	ID        int64
	Status    string
	Amount    int64
	LastToken int64
}

// BareOrder leaves the token to fencerow.
type BareOrder struct {
	ID     int64
	Status string
	Amount int64
}

// TableName is where GORM keeps BareOrder.
func (BareOrder) TableName() string { return "orders" }

// SoftOrder is marked when it is deleted.
type SoftOrder struct {
	ID        int64
	Status    string
	DeletedAt gorm.DeletedAt
}

// TableName is where GORM keeps SoftOrder.
func (SoftOrder) TableName() string { return "orders" }

// HookedOrder changes itself and an item with each update.
type HookedOrder struct {
	ID     int64
	Status string
}

// TableName is where GORM keeps HookedOrder.
func (HookedOrder) TableName() string { return "orders" }

// BeforeUpdate is GORM's hook.
func (o *HookedOrder) BeforeUpdate(tx *gorm.DB) error {
	tx.Statement.SetColumn("status", "mine")
	return nil
}

// AfterUpdate is GORM's hook.
func (o *HookedOrder) AfterUpdate(tx *gorm.DB) error {
	return tx.Exec("UPDATE items SET sku = ? WHERE id = ?", "hooked", 1).Error
}

// forged is what a model may have in the field of its token: it is never taken
// for one.
const forged = 99

func order(id int64) any     { return &Order{ID: id, Status: "mine", LastToken: forged} }
func bareOrder(id int64) any { return &BareOrder{ID: id, Status: "mine"} }

func orders(ids ...int64) any {
	var list []Order
	for _, id := range ids {
		list = append(list, Order{ID: id, Status: "mine", LastToken: forged})
	}
	return &list
}

func bareOrders(ids ...int64) any {
	var list []BareOrder
	for _, id := range ids {
		list = append(list, BareOrder{ID: id, Status: "mine"})
	}
	return &list
}

func openGorm(t *testing.T, e *env, config gorm.Config) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: e.db}), &config)
	require.NoError(t, err)
	return db
}

// gormWith returns the operations of one kind of model, and one way to run GORM.
func gormWith(one func(int64) any, many func(...int64) any, config gorm.Config) func(*testing.T, *env) []op {
	return func(t *testing.T, e *env) []op {
		g := gormApp{db: openGorm(t, e, config), one: one, many: many, alone: config.SkipDefaultTransaction}
		var ops []op
		for _, list := range [][]op{g.creates(), g.reads(), g.updates(), g.saves(), g.upserts(), g.deletes(), g.raw(), g.transactions(), g.hooks(), g.associations()} {
			ops = append(ops, list...)
		}
		return ops
	}
}

type gormApp struct {
	db    *gorm.DB
	one   func(id int64) any     // a model
	many  func(ids ...int64) any // a slice of models
	alone bool                   // each statement is a transaction of its own
}

// write is an operation on order 1 that sets it to "mine".
func (g gormApp) write(name string, do func(db *gorm.DB) *gorm.DB) op {
	return op{name: name, changes: rows{"o1": "mine 8"}, affected: 1, do: g.chain(do)}
}

func (g gormApp) chain(do func(db *gorm.DB) *gorm.DB) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		tx := do(g.db.WithContext(ctx))
		return tx.RowsAffected, tx.Error
	}
}

// steps is an operation that counts no rows.
func (g gormApp) steps(name string, changes rows, do func(db *gorm.DB) error) op {
	return op{name: name, changes: changes, affected: untold, do: func(ctx context.Context) (int64, error) {
		return untold, do(g.db.WithContext(ctx))
	}}
}

// of changes what an operation is expected to do.
func (o op) of(change func(*op)) op {
	change(&o)
	return o
}

func (o op) ofKind(k kind, changes rows, affected int64) op {
	o.kind, o.changes, o.affected = k, changes, affected
	return o
}

// overTwo is an operation on the orders 1 and 2.
func (o op) overTwo() op {
	o.changes, o.affected, o.meets = rows{"o1": "mine 8", "o2": "mine 8"}, 2, []string{"o1", "o2"}
	return o
}

func (g gormApp) creates() []op {
	return []op{
		g.write("create", func(db *gorm.DB) *gorm.DB { return db.Create(g.one(0)) }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		g.write("create, with its key", func(db *gorm.DB) *gorm.DB { return db.Create(g.one(50)) }).ofKind(inserts, rows{"o50": "mine 8"}, 1),
		g.write("create, some columns", func(db *gorm.DB) *gorm.DB { return db.Select("Status").Create(g.one(0)) }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		g.write("create, bulk", func(db *gorm.DB) *gorm.DB { return db.Create(g.many(0, 0)) }).ofKind(inserts, rows{"o4": "mine 8", "o5": "mine 8"}, 2),
		g.write("create, in batches", func(db *gorm.DB) *gorm.DB { return db.CreateInBatches(g.many(0, 0, 0), 2) }).
			ofKind(inserts, rows{"o4": "mine 8", "o5": "mine 8", "o6": "mine 8"}, 3),
		g.write("create, from a map", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(0)).Create(map[string]any{"Status": "mine"})
		}).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		g.write("create, where none is", func(db *gorm.DB) *gorm.DB {
			return db.Where("status = ?", "none").Attrs("status", "mine").FirstOrCreate(g.one(0))
		}).ofKind(inserts, rows{"o4": "mine 8"}, 1),
	}
}

func (g gormApp) reads() []op {
	return []op{
		g.write("first", func(db *gorm.DB) *gorm.DB { return db.First(g.one(1)) }).ofKind(reads, nil, 1),
		g.write("find", func(db *gorm.DB) *gorm.DB { return db.Find(g.many(), []int{1, 2}) }).ofKind(reads, nil, 2),
		g.write("first, no such row", func(db *gorm.DB) *gorm.DB { return db.First(g.one(77)) }).ofKind(reads, nil, 0).
			of(func(o *op) { o.err = gorm.ErrRecordNotFound }),
	}
}

func (g gormApp) updates() []op {
	mine := map[string]any{"status": "mine"}
	return []op{
		g.write("update", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).Update("status", "mine") }),
		g.write("update, by a map", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).Updates(mine) }),
		g.write("update, by a map with a token", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(1)).Updates(map[string]any{"status": "mine", "last_token": int64(forged)})
		}),
		g.write("update, by a map with Arg", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(1)).Updates(map[string]any{"status": "mine", "last_token": tokenctx.Arg})
		}).of(fenced),
		g.write("update, by a model", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).Updates(g.one(0)) }),
		g.write("update, some columns", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).Select("status").Updates(g.one(1)) }),
		g.write("update, all columns", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).Select("*").Updates(g.one(1)) }),
		g.write("update, without hooks", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(1)).UpdateColumns(mine) }),
		g.write("update, by an expression", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(1)).Updates(map[string]any{"status": gorm.Expr("lower(?)", "MINE"), "amount": gorm.Expr("amount + ?", 1)})
		}),
		g.write("update, returning", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(1)).Clauses(clause.Returning{}).Update("status", "mine")
		}),
		g.write("update, if the version is", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(1)).Where("version = ?", 1).Updates(map[string]any{"status": "mine", "version": gorm.Expr("version + 1")})
		}),
		g.write("update, many", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(0)).Where("id IN ? OR status = ?", []int{1, 2}, "none").Update("status", "mine")
		}).overTwo(),
		g.write("update, all", func(db *gorm.DB) *gorm.DB {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(g.one(0)).Update("status", "mine")
		}).ofKind(compares, rows{"o1": "mine 8", "o2": "mine 8", "o3": "mine 8"}, 3).of(func(o *op) { o.meets = []string{"o1", "o2", "o3"} }),
		g.write("update, by a sub-select", func(db *gorm.DB) *gorm.DB {
			return db.Model(g.one(0)).Where("id = (?)", g.db.Model(g.one(0)).Select("min(id)")).Update("status", "mine")
		}).of(func(o *op) { o.kind = hides }),
		g.write("update, no such row", func(db *gorm.DB) *gorm.DB { return db.Model(g.one(77)).Update("status", "mine") }).ofKind(inserts, nil, 0),
		{name: "update, generics", changes: rows{"o1": "mine 8"}, affected: 1, do: func(ctx context.Context) (int64, error) {
			n, err := gorm.G[Order](g.db).Where("id = ?", 1).Updates(ctx, Order{Status: "mine", LastToken: forged})
			return int64(n), err
		}},
		g.write("update, first or create", func(db *gorm.DB) *gorm.DB {
			return db.Where("id = ?", 1).Assign("status", "mine").FirstOrCreate(g.one(0))
		}),
	}
}

func (g gormApp) saves() []op {
	return []op{
		g.write("save", func(db *gorm.DB) *gorm.DB { return db.Save(g.one(1)) }),
		g.write("save, as it was read", func(db *gorm.DB) *gorm.DB {
			o := Order{ID: 1}
			if tx := db.First(&o); tx.Error != nil {
				return tx
			}
			o.Status = "mine"
			return db.Save(&o)
		}),
		g.write("save, no such row", func(db *gorm.DB) *gorm.DB { return db.Save(g.one(77)) }).ofKind(inserts, rows{"o77": "mine 8"}, 1),
		g.write("save, a new one", func(db *gorm.DB) *gorm.DB { return db.Save(g.one(0)) }).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		g.write("save, many", func(db *gorm.DB) *gorm.DB { return db.Save(g.many(1, 2)) }).overTwo(),
	}
}

func (g gormApp) upserts() []op {
	on := func(c clause.OnConflict, ids ...int64) func(db *gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB { return db.Clauses(c).Create(g.many(ids...)) }
	}
	key := []clause.Column{{Name: "id"}}
	return []op{
		g.write("upsert", on(clause.OnConflict{UpdateAll: true}, 1)),
		g.write("upsert, some columns", on(clause.OnConflict{Columns: key, DoUpdates: clause.AssignmentColumns([]string{"status"})}, 1)),
		g.write("upsert, values", on(clause.OnConflict{Columns: key, DoUpdates: clause.Assignments(map[string]any{"status": "mine"})}, 1)),
		g.write("upsert, values with a token", on(clause.OnConflict{Columns: key, DoUpdates: clause.Assignments(map[string]any{"status": "mine", "last_token": forged})}, 1)),
		g.write("upsert, bulk", on(clause.OnConflict{UpdateAll: true}, 1, 2)).overTwo(),
		g.write("upsert, new", on(clause.OnConflict{UpdateAll: true}, 50)).ofKind(inserts, rows{"o50": "mine 8"}, 1),
		g.write("upsert, do nothing", on(clause.OnConflict{DoNothing: true}, 1, 50)).ofKind(inserts, rows{"o50": "mine 8"}, 2), // as GORM counts them
	}
}

func (g gormApp) deletes() []op {
	return []op{
		g.write("delete", func(db *gorm.DB) *gorm.DB { return db.Delete(g.one(2)) }).ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		g.write("delete, by its key", func(db *gorm.DB) *gorm.DB { return db.Delete(g.one(0), 2) }).ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		g.write("delete, many", func(db *gorm.DB) *gorm.DB { return db.Where("id > ?", 1).Delete(g.one(0)) }).
			ofKind(compares, rows{"o2": "", "o3": ""}, 2).of(meeting("o2", "o3")),
		g.write("delete, returning", func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.Returning{}).Delete(g.one(2)) }).
			ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		g.write("delete, no such row", func(db *gorm.DB) *gorm.DB { return db.Delete(g.one(77)) }).ofKind(inserts, nil, 0),
		g.write("soft delete", func(db *gorm.DB) *gorm.DB { return db.Delete(&SoftOrder{ID: 1}) }).ofKind(compares, rows{"o1": "theirs 8 deleted"}, 1),
		g.write("soft delete, update", func(db *gorm.DB) *gorm.DB { return db.Model(&SoftOrder{ID: 1}).Update("status", "mine") }),
		g.write("soft delete, undone", func(db *gorm.DB) *gorm.DB {
			return db.Unscoped().Model(&SoftOrder{ID: 1}).Updates(map[string]any{"deleted_at": nil, "status": "mine"})
		}),
		g.write("soft delete, for good", func(db *gorm.DB) *gorm.DB { return db.Unscoped().Delete(&SoftOrder{ID: 2}) }).
			ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
	}
}

// fenced is for operations that name the token.
func fenced(o *op) { o.fenced = true }

// meeting says which rows a stale holder meets.
func meeting(names ...string) func(*op) { return func(o *op) { o.meets = names } }

func (g gormApp) raw() []op {
	return []op{
		g.write("raw SQL", func(db *gorm.DB) *gorm.DB { return db.Exec("UPDATE orders SET status = ? WHERE id = ?", "mine", 1) }),
		g.write("raw SQL, named", func(db *gorm.DB) *gorm.DB {
			return db.Exec("UPDATE orders SET status = @status WHERE id = @id", map[string]any{"status": "mine", "id": 1})
		}),
		g.write("raw SQL, returning", func(db *gorm.DB) *gorm.DB {
			return db.Raw("UPDATE orders SET status = ? WHERE id = ? RETURNING *", "mine", 1).Scan(g.one(0))
		}),
		g.write("raw SQL, guarded by hand", func(db *gorm.DB) *gorm.DB {
			return db.Exec("UPDATE orders SET status = @s, last_token = @t WHERE id = 1 AND last_token < @t", map[string]any{"s": "mine", "t": tokenctx.Arg})
		}).of(fenced),
	}
}

var errUndo = errors.New("undone")

func (g gormApp) transactions() []op {
	set := func(tx *gorm.DB, id int64) error { return tx.Model(g.one(id)).Update("status", "mine").Error }
	both := rows{"o1": "mine 8", "o2": "mine 8"}
	return []op{
		g.steps("transaction", both, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return errors.Join(set(tx, 2), set(tx, 1)) })
		}),
		g.steps("transaction, nested", rows{"o1": "mine 8", "o2": "mine 8", "o3": "mine 8"}, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				first := set(tx, 2)
				inner := tx.Transaction(func(tx *gorm.DB) error {
					return errors.Join(tx.Create(g.one(0)).Error, set(tx, 1), tx.Delete(g.one(4)).Error)
				})
				if errors.Is(inner, tokenctx.ErrStale) {
					inner = nil // rolled back to its savepoint
				}
				return errors.Join(first, inner, set(tx, 3))
			})
		}).of(func(o *op) { o.goesOn, o.keeps, o.twice = true, rows{"o2": "mine 8", "o3": "mine 8"}, true }),
		g.steps("transaction, savepoint", rows{"o2": "mine 8"}, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				err := errors.Join(tx.SavePoint("s").Error, ignoring(set(tx, 1), tokenctx.ErrStale), tx.RollbackTo("s").Error)
				return errors.Join(err, set(tx, 2))
			})
		}).of(func(o *op) { o.goesOn, o.keeps, o.twice = true, rows{"o2": "mine 8"}, true }),
		g.steps("transaction, rolled back", nil, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := set(tx, 1); err != nil {
					return err
				}
				return errUndo
			})
		}).of(func(o *op) { o.err = errUndo }),
		g.write("transaction, locked first", func(db *gorm.DB) (out *gorm.DB) {
			err := db.Transaction(func(tx *gorm.DB) error {
				o := Order{ID: 1}
				if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&o).Error; err != nil {
					return err
				}
				o.Status = "mine"
				out = tx.Save(&o)
				return out.Error
			})
			out.Error = err
			return out
		}),
	}
}

// ignoring returns an error unless it is the given one.
func ignoring(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return err
}

func (g gormApp) hooks() []op {
	hooked := g.write("hooks", func(db *gorm.DB) *gorm.DB { return db.Model(&HookedOrder{ID: 1}).Update("status", "no") }).
		ofKind(compares, rows{"o1": "mine 8", "i1": "o1 hooked 8"}, 1)
	inner := hooked.of(func(o *op) {
		o.name, o.meets, o.affected = "hooks, stale in one", []string{"i1"}, untold
		o.do = func(ctx context.Context) (int64, error) { // GORM counts the update that it takes back
			_, err := hooked.do(ctx)
			return untold, err
		}
	})
	if g.alone {
		return []op{hooked}
	}
	return []op{hooked, inner}
}
