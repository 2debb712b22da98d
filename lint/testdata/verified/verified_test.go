// Package verified has one test, which does what the environment says; its output
// is compared with what is in ../golden.
package verified

import (
	"database/sql"
	"os"
	"testing"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/lint/testdata/shop"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// db is opened before anybody watches.
var db *sql.DB

func TestMain(m *testing.M) {
	var opts []lint.Option
	if os.Getenv("ALLOW") != "" {
		opts = append(opts, lint.Allow(rewrite.UnguardedUpdate, "a test sends it on purpose"))
	}
	var err error
	if db, err = shop.Open(); err != nil {
		panic(err)
	}
	lint.VerifyMain(m, opts...)
}

func TestCase(t *testing.T) {
	ctx := tokenctx.With(t.Context(), shop.Newest)
	switch os.Getenv("CASE") {
	case "clean":
		shop.Pay(ctx, db, 17)
	case "swallowed":
		shop.Ship(ctx, db, 17)
		shop.Ship(ctx, db, 18)
	case "failed":
		shop.Ship(ctx, db, 17)
		t.Error("for another reason")
	case "watched": // the test answers for it
		own, err := shop.Open(lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "the refusal is what is tested")))
		if err != nil {
			t.Fatal(err)
		}
		shop.Ship(ctx, own, 17)
		if findings := lint.Check(func() { shop.Pay(t.Context(), db, 17) }); len(findings) != 1 || findings[0].Rule != rewrite.NoToken {
			t.Error(findings)
		}
		lint.WatchDB(t, db, lint.Allow(rewrite.UnguardedDelete, "the refusal is what is tested"))
		shop.Cancel(ctx, db, 17)
	case "coverage":
		for range 3 {
			shop.Pay(ctx, db, 17)
		}
		shop.Pay(tokenctx.With(t.Context(), shop.Newest-1), db, 17)
		lint.WatchDB(t, db, lint.Allow(rewrite.NoToken, "the refusal is what is tested"))
		shop.Pay(t.Context(), db, 17)
		reporting, err := shop.Open(driver.Protect("app.shipments", rewrite.Lease), driver.Protect("audit", rewrite.Lease),
			driver.WithLevel(driver.Report, "orders"), driver.WithLevel(driver.Off, "audit"),
			lint.Watch(t, lint.Allow(rewrite.UnguardedUpdate, "not guarded yet")))
		if err != nil {
			t.Fatal(err)
		}
		shop.Ship(ctx, reporting, 17)
	}
}
