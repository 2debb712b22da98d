package compat

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// held is the context of the present holder.
func held(t *testing.T) context.Context { return tokenctx.With(t.Context(), holder) }

// The errors are whole where a program gets them: with both tokens, with the
// server's own error where there is one, and GORM's translation of others.
func TestErrorsOnTheirWay(t *testing.T) {
	e := open(t, settings["wall"])
	g := openGorm(t, e, gorm.Config{TranslateError: true})
	b := bun.NewDB(e.db, pgdialect.New())
	e.reset(t, newer, "o1")
	for name, err := range map[string]error{
		"GORM": g.WithContext(held(t)).Save(order(1)).Error,
		"bun":  ofExec(b.NewUpdate().Model(bunOrder(1)).WherePK().Exec(held(t))),
	} {
		var stale *driver.StaleError
		require.ErrorAs(t, err, &stale, name)
		require.Equal(t, driver.StaleError{Table: "orders", Token: holder, Current: newer}, *stale, name)
		require.True(t, driver.NotApplied(err), name)
	}
	require.ErrorIs(t, g.WithContext(held(t)).Create(order(1)).Error, gorm.ErrDuplicatedKey)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, ofExec(b.NewInsert().Model(bunOrder(1)).Exec(held(t))), &pgErr)
	require.ErrorAs(t, g.WithContext(tokenctx.With(t.Context(), 1_000_000)).Save(order(2)).Error, &pgErr, "the wall: never issued")
	require.Equal(t, "FN003", pgErr.Code)
}

func ofExec(_ any, err error) error { return err }

// The field of a model has the row's token when the row has been read, and after
// a write with RETURNING.
func TestLastTokenIsRead(t *testing.T) {
	e := open(t, settings["attested"])
	g, b := openGorm(t, e, gorm.Config{}).WithContext(held(t)), bun.NewDB(e.db, pgdialect.New())
	e.reset(t, older)
	var o Order
	require.NoError(t, g.First(&o, 1).Error)
	require.EqualValues(t, older, o.LastToken)
	o = Order{ID: 1, LastToken: forged}
	require.NoError(t, g.Model(&o).Clauses(clause.Returning{}).Updates(Order{Status: "mine", LastToken: forged}).Error)
	require.EqualValues(t, holder, o.LastToken)
	o = Order{Status: "mine", LastToken: forged}
	require.NoError(t, g.Clauses(clause.Returning{}).Create(&o).Error)
	require.EqualValues(t, holder, o.LastToken)

	read := BunOrder{ID: 2}
	require.NoError(t, b.NewSelect().Model(&read).WherePK().Scan(t.Context()))
	require.EqualValues(t, older, read.LastToken)
	read.LastToken = forged
	require.NoError(t, ofExec(b.NewUpdate().Model(&read).WherePK().Returning("last_token").Exec(held(t))))
	require.EqualValues(t, holder, read.LastToken)
}

// Where one row of several is stale the others are written, and the driver says so;
// where it can't tell, too.
func TestSomeStale(t *testing.T) {
	e := open(t, settings["attested"])
	g, b, x := openGorm(t, e, gorm.Config{}).WithContext(held(t)), bun.NewDB(e.db, pgdialect.New()), sqlx.NewDb(e.db, "fencerow")
	upsert := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"status"})}
	named := []SqlxOrder{{ID: 1, Status: "mine"}, {ID: 2, Status: "mine"}}
	for name, write := range map[string]func() error{
		"GORM update": func() error { return g.Model(&Order{}).Where("id < 3").Update("status", "mine").Error },
		"GORM updates": func() error {
			return g.Model(&Order{}).Where("id IN ?", []int64{1, 2}).Updates(Order{Status: "mine"}).Error
		},
		"GORM delete": func() error { return g.Where("id IN ?", []int64{3, 1}).Delete(&Order{}).Error },
		"GORM save":   func() error { return g.Save(orders(1, 2)).Error },
		"GORM upsert": func() error { return g.Clauses(upsert).Create(orders(1, 2)).Error },
		"bun update": func() error {
			return ofExec(b.NewUpdate().Model(bunOrder(0)).Set("status = ?", "mine").Where("id < 3").Exec(held(t)))
		},
		"bun bulk": func() error { return ofExec(b.NewUpdate().Model(bunOrders(1, 2)).Bulk().Exec(held(t))) },
		"bun bulk, returning": func() error {
			return ofExec(b.NewUpdate().Model(bunOrders(1, 2)).Bulk().Returning("o.status").Exec(held(t)))
		},
		"bun upsert": func() error {
			return ofExec(b.NewInsert().Model(bunOrders(1, 2)).On("CONFLICT (id) DO UPDATE").Exec(held(t)))
		},
		"bun delete": func() error { return ofExec(b.NewDelete().Model(bunOrders(3, 1)).WherePK().Exec(held(t))) },
		"sqlx upsert": func() error {
			return ofExec(x.NamedExecContext(held(t), "INSERT INTO orders (id, status) VALUES (:id, :status) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status", named))
		},
		"sqlx values": func() error {
			return ofExec(x.ExecContext(held(t), "UPDATE orders SET status = v.status FROM (VALUES ($1::bigint, $2::text), ($3, $4)) v(id, status) WHERE orders.id = v.id", 1, "mine", 2, "mine"))
		},
		"sqlx list": func() error {
			query, args, err := sqlx.In("UPDATE orders SET status = ? WHERE id IN (?)", "mine", []int{1, 2})
			require.NoError(t, err)
			return ofExec(x.ExecContext(held(t), x.Rebind(query), args...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e.reset(t, newer, "o1")
			var partial *driver.PartialError
			require.ErrorAs(t, write(), &partial)
			require.Equal(t, [2]int64{1, 1}, [2]int64{partial.Applied, partial.Stale})
		})
	}
	e.reset(t, newer, "o1")
	first := g.Session(&gorm.Session{NewDB: true}).Model(&Order{}).Select("min(id)")
	require.ErrorIs(t, g.Model(&Order{}).Where("id = (?)", first).Update("status", "mine").Error, driver.ErrUndetermined)
}

// bun writes values into the text, which gets long.
func TestLongTexts(t *testing.T) {
	e := open(t, settings["driver"])
	b := bun.NewDB(e.db, pgdialect.New())
	long := &BunOrder{ID: 1, Status: strings.Repeat("it's long; ", 10_000)}
	before := e.reset(t, newer, "o1")
	require.ErrorIs(t, ofExec(b.NewUpdate().Model(long).WherePK().Exec(held(t))), tokenctx.ErrStale)
	require.Equal(t, before, e.read(t))
	e.reset(t, older)
	require.NoError(t, ofExec(b.NewUpdate().Model(long).WherePK().Exec(held(t))))
	require.Equal(t, long.Status+" 8", e.read(t)["o1"])

	ids := make([]int64, 1200)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	e.reset(t, newer, "o1", "o2", "o3")
	bulk := func() error { return ofExec(b.NewUpdate().Model(bunOrders(ids...)).Bulk().Exec(held(t))) }
	require.ErrorIs(t, bulk(), tokenctx.ErrStale)
	require.ErrorIs(t, ofExec(b.NewInsert().Model(bunOrders(ids[:3]...)).On("CONFLICT (id) DO UPDATE").Exec(held(t))), tokenctx.ErrStale)
	require.NoError(t, ofExec(b.NewInsert().Model(bunOrders(ids[3:]...)).Exec(held(t))))
	var partial *driver.PartialError
	require.ErrorAs(t, bulk(), &partial)
	require.Equal(t, [2]int64{int64(len(ids)) - 3, 3}, [2]int64{partial.Applied, partial.Stale})
	require.Len(t, e.read(t), len(ids)+2)
}

// A change of structure is refused, and said where to make it.
func TestMigrations(t *testing.T) {
	e := open(t, settings["wall"])
	g := openGorm(t, e, gorm.Config{})
	type Order struct {
		ID        int64
		Status    string
		Note      string
		LastToken tokenctx.Token `gorm:"not null;default:0"`
	}
	err := g.WithContext(held(t)).AutoMigrate(&Order{})
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, "plain connection")
	require.NoError(t, migrate(e.dsn, &Order{}))
	require.NoError(t, migrate(e.dsn, &Order{}), "again, with nothing to do")
	column := func() (c string) {
		require.NoError(t, e.plain.QueryRow(t.Context(), `SELECT data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, 'none') FROM information_schema.columns
			WHERE table_name = 'orders' AND column_name = 'last_token'`).Scan(&c))
		return c
	}
	require.Equal(t, "bigint NO 0", column())

	e.reset(t, older)
	require.NoError(t, g.WithContext(held(t)).Create(&Order{Status: "mine", Note: "new"}).Error)
	require.Equal(t, "mine 8", e.read(t)["o4"])
	require.NoError(t, migrate(e.dsn, &BareOrder{}))
	require.Equal(t, "bigint NO 0", column(), "a model without the field leaves it alone")
	require.NoError(t, migrate(e.dsn, new(untagged)))
	require.Equal(t, "bigint YES none", column(), "what the tag is for; the doctor finds it")
}

type untagged struct {
	ID        int64
	LastToken tokenctx.Token
}

// TableName is where GORM keeps untagged.
func (untagged) TableName() string { return "orders" }
