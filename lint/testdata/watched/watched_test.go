// Package watched has tests that are run one by one, and their output compared
// with what is in ../golden.
package watched

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/lint/testdata/shop"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func open(t *testing.T, opts ...driver.Option) *sql.DB {
	db, err := shop.Open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSwallowed(t *testing.T) {
	db := open(t, lint.Watch(t))
	shop.Ship(t.Context(), db, 17)
}

func TestOpenHandle(t *testing.T) {
	db := open(t)
	lint.WatchDB(t, db)
	shop.Ship(t.Context(), db, 17)
}

func TestReported(t *testing.T) {
	db := open(t, lint.Watch(t), driver.WithLevel(driver.Report, "orders"))
	shop.Ship(t.Context(), db, 17)
}

func TestNoToken(t *testing.T) {
	db := open(t, lint.Watch(t))
	shop.Pay(t.Context(), db, 17)
}

func TestMerged(t *testing.T) {
	db := open(t, lint.Watch(t))
	for id := range 3 {
		shop.Ship(t.Context(), db, id)
	}
	shop.Cancel(t.Context(), db, 17)
}

func TestParallel(t *testing.T) {
	for name, f := range map[string]func(context.Context, *sql.DB, int){"pay": shop.Pay, "ship": shop.Ship, "cancel": shop.Cancel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, lint.Watch(t))
			for id := range 100 {
				f(tokenctx.With(t.Context(), shop.Newest), db, id)
			}
		})
	}
}

func TestSubtests(t *testing.T) {
	db := open(t, lint.Watch(t))
	for range 2 {
		t.Run("sub", func(t *testing.T) {
			t.Parallel()
			shop.Ship(t.Context(), db, 17)
		})
	}
}

func TestAllowed(t *testing.T) {
	db := open(t, lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "the refusal is what is tested", "orders")))
	shop.Ship(t.Context(), db, 17)
}

func TestAllowedElsewhere(t *testing.T) {
	db := open(t, lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "the refusal is what is tested", "payments")))
	shop.Ship(t.Context(), db, 17)
}

func TestAllowedWrongly(t *testing.T) {
	open(t, lint.Watch(t, lint.Allow("FR999", "no such rule"), lint.Allow(rewrite.UnguardedDelete, "")))
}

func TestUnusedAllow(t *testing.T) {
	db := open(t, lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "the refusal is what is tested")))
	shop.Pay(tokenctx.With(t.Context(), shop.Newest), db, 17)
}

// Whoever skips doesn't come to what is allowed.
func TestUnusedAllowAfterSkip(t *testing.T) {
	open(t, lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "the refusal is what is tested")))
	t.Skip("not here")
}

func TestSilent(t *testing.T) {
	db := open(t, lint.Watch(t))
	lint.WatchDB(t, db)
	shop.Pay(tokenctx.With(t.Context(), shop.Newest), db, 17)
	shop.Pay(tokenctx.With(t.Context(), shop.Newest-1), db, 17)
}

func TestOtherDriver(t *testing.T) {
	db, err := sql.Open("pgx", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lint.WatchDB(t, db)
}

// A statement comes when its test is over, from another test here.
func TestLate(t *testing.T) {
	var db *sql.DB
	t.Run("early", func(t *testing.T) {
		var err error
		if db, err = shop.Open(lint.Watch(t)); err != nil {
			t.Fatal(err)
		}
	})
	shop.Ship(t.Context(), db, 17)
	_ = db.Close()
}
