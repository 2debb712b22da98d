package fencerow_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The functions below are the snippets of README.md, word for word, and run
// against PostgreSQL.

func install(ctx context.Context, dsn string) error {
	err := migrations.Up(ctx, dsn)
	if err == nil {
		err = migrations.Register(ctx, dsn, migrations.Table{Name: "orders", Mode: migrations.Lease})
	}
	return err
}

func openHandle(dsn string) (*sql.DB, error) {
	db, err := sql.Open("fencerow", dsn) // was: sql.Open("pgx", dsn)
	return db, err
}

func pay(ctx context.Context, db *sql.DB) error {
	token, err := lease.NextToken(ctx, db) // or a number from your lock service that only grows
	if err != nil {
		return err
	}
	ctx = tokenctx.With(ctx, token)
	_, err = db.ExecContext(ctx, `UPDATE orders SET status = $1, last_token = $2
		WHERE id = $3 AND last_token <= $2`, "paid", tokenctx.Arg, 17)
	if errors.Is(err, driver.ErrStale) {
		return fmt.Errorf("another holder has taken over: %w", err)
	}
	return err
}

func payUnderLease(ctx context.Context, db *sql.DB) error {
	err := lease.Run(ctx, db, "orders", 30*time.Second, func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, `UPDATE orders SET status = $1, last_token = $2
			WHERE id = $3 AND last_token <= $2`, "paid", tokenctx.Arg, 17) // ctx carries the lease's token
		return err
	})
	return err
}

func openFromCode(dsn string) (*sql.DB, error) {
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.Protect("payments", rewrite.Strict))
	return db, err
}

func withBilling(ctx context.Context, token tokenctx.Token) context.Context {
	ctx = tokenctx.WithResource(ctx, "billing", token)
	return ctx
}

func writes() []string {
	insert := `INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3)`
	upsert := `INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token
		WHERE orders.last_token <= EXCLUDED.last_token`
	remove := `DELETE FROM orders WHERE id = $1 AND last_token <= $2`
	return []string{insert, upsert, remove}
}

func serve(payHandler http.Handler) {
	http.Handle("/pay", tokenctx.Middleware(payHandler)) // r.Context() now carries the token
}

func payInTransaction(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.Exec(`UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`, "paid", tokenctx.Arg, 17)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func putUpWall(ctx context.Context, dsn string) error {
	err := migrations.Wall(ctx, dsn, "orders", migrations.WallEnforce)
	return err
}

func reportOnly(ctx context.Context, dsn string) error {
	err := migrations.SetLevel(ctx, dsn, "orders", migrations.Report)
	return err
}

func openReporting(dsn string) (*sql.DB, error) {
	db, err := driver.Open(dsn, driver.WithReporter(driver.LogTo(slog.Default())))
	return db, err
}

func verifyMain(m *testing.M) {
	lint.VerifyMain(m) // all that a func TestMain(m *testing.M) needs
}

func openForORM(dsn string) (*sql.DB, error) {
	db, err := driver.Open(dsn, driver.WithRewrite()) // gorm.Open(postgres.New(postgres.Config{Conn: db}))
	return db, err
}

func openWatched(t *testing.T, dsn string) (*sql.DB, error) {
	db, err := driver.Open(dsn, lint.Watch(t)) // or lint.WatchDB(t, db)
	return db, err
}

func allowOldJob(t *testing.T, db *sql.DB) {
	lint.WatchDB(t, db, lint.Allow(rewrite.UnguardedUpdate, "an old job, which is to be refused", "orders"))
}

func TestReadmeRuns(t *testing.T) {
	dsn := localpg.Database(t)
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Exec(`CREATE TABLE orders (id bigint PRIMARY KEY, status text); INSERT INTO orders VALUES (17, 'new');
		CREATE TABLE payments (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`)
	require.NoError(t, err)
	require.NoError(t, install(t.Context(), dsn))
	fenced, err := openHandle(dsn)
	require.NoError(t, err)
	defer fenced.Close()
	require.NoError(t, pay(t.Context(), fenced))
	status, token := order(t, plain, 17)
	require.Equal(t, "paid", status)
	require.EqualValues(t, 1, token)

	require.NoError(t, payUnderLease(t.Context(), fenced))
	_, token = order(t, plain, 17)
	require.EqualValues(t, 2, token)

	sql := writes()
	_, err = fenced.ExecContext(holder(t, 50), sql[0], 18, "new", tokenctx.Arg)
	require.NoError(t, err)
	_, err = fenced.ExecContext(holder(t, 51), sql[1], 18, "paid", tokenctx.Arg)
	require.NoError(t, err)
	_, err = fenced.ExecContext(holder(t, 50), sql[1], 18, "stale", tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = fenced.ExecContext(holder(t, 51), sql[2], 18, tokenctx.Arg)
	require.NoError(t, err)
	token52, ok := tokenctx.FromResource(withBilling(t.Context(), 52), "billing")
	require.True(t, ok)
	require.EqualValues(t, 52, token52)

	_, err = plain.Exec(`UPDATE orders SET last_token = 99`)
	require.NoError(t, err)
	require.ErrorIs(t, pay(t.Context(), fenced), driver.ErrStale)
	err = payUnderLease(t.Context(), fenced)
	require.ErrorIs(t, err, driver.ErrStale)
	require.ErrorIs(t, err, lease.ErrLost)

	require.ErrorIs(t, payInTransaction(holder(t, 98), fenced), driver.ErrStale)
	require.NoError(t, payInTransaction(holder(t, 100), fenced))

	_, err = plain.Exec(`SELECT setval('fencing.write_epoch', 200)`)
	require.NoError(t, err)
	require.NoError(t, putUpWall(t.Context(), dsn))
	_, err = plain.Exec(`UPDATE orders SET status = 'by psql'`)
	require.ErrorContains(t, err, "FN002")
	require.NoError(t, payInTransaction(holder(t, 101), fenced))
	_, err = fenced.ExecContext(holder(t, 101), sql[2], 17, tokenctx.Arg)
	require.NoError(t, err)
	require.NoError(t, reportOnly(t.Context(), dsn))
	reporting, err := openReporting(dsn)
	require.NoError(t, err)
	defer reporting.Close()
	_, err = reporting.Exec(`UPDATE orders SET status = 'reported' WHERE id = 17`)
	require.NoError(t, err)
	stats, ok := driver.StatsOf(reporting)
	require.True(t, ok)
	require.EqualValues(t, 1, stats.Reported[rewrite.UnguardedUpdate])

	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
	forORM, err := openForORM(dsn)
	require.NoError(t, err)
	defer forORM.Close()
	_, err = forORM.ExecContext(holder(t, 102), `INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3)`, 19, "by a model", 0)
	require.NoError(t, err)
	_, err = forORM.ExecContext(holder(t, 103), `UPDATE orders SET status = $1 WHERE id = $2`, "by an ORM", 19)
	require.NoError(t, err)
	_, err = forORM.ExecContext(holder(t, 102), `UPDATE orders SET status = $1 WHERE id = $2`, "stale", 19)
	require.ErrorIs(t, err, driver.ErrStale)

	db, err := openFromCode(dsn)
	require.NoError(t, err)
	defer db.Close()
	serve(http.NotFoundHandler())

	watched, err := openWatched(t, dsn)
	require.NoError(t, err)
	defer watched.Close()
	allowOldJob(t, db)
	_ = verifyMain // would end this process

	_, err = db.Exec(`UPDATE orders SET status = $1 WHERE id = $2`, "paid", 17)
	_, message, _ := strings.Cut(err.Error(), ": ")
	blocks := snippets(t, "text")
	require.Len(t, blocks, 1)
	require.Equal(t, strings.TrimSpace(blocks[0]), "/repo/store/orders.go:42: "+message)
}

// Every snippet of the README stands in this file, and every make target that
// it names is one.
func TestReadmeIsThis(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	for _, block := range snippets(t, "go") {
		require.Contains(t, unindented(string(source)), unindented(block))
		require.LessOrEqual(t, strings.Count(block, "\n"), 15)
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, target := range regexp.MustCompile(`(?m)^\s*make ([a-z-]+)`).FindAllStringSubmatch(string(readme), -1) {
		require.Contains(t, string(makefile), "\n"+target[1]+":")
	}
}

// snippets returns the README's code blocks of a language.
func snippets(t *testing.T, language string) []string {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func unindented(s string) string {
	return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(s, "")
}
