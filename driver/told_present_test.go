package driver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

var presentStatements = flag.Int("present", 2000, "how many statements the present holder sends")

// The present holder of a lease is never told that it is stale, whatever it sends and
// whatever goes on beside it: rows that come and go, and another lease's rows in the
// same table, which carry newer tokens.
func TestPresentHolderIsNotAlarmed(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, toldSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease, Resource: "mine"}))
	run(t, dsn, `SELECT setval('fencing.write_epoch', 1000); INSERT INTO notes VALUES (1), (2), (3);
		INSERT INTO fencing.lease VALUES ('mine', 'me', 700, 'infinity'), ('theirs', 'them', 900, 'infinity');
		INSERT INTO orders (id, code, tenant, number, last_token) SELECT i, 'other' || i, 2, i, 900 FROM generate_series(50, 60) i`)
	ctx := tokenctx.WithResource(t.Context(), "mine", 700)
	ctx = tokenctx.WithObserver(ctx, func(string, tokenctx.Token) { t.Error("the lease was ended") })
	var queries []toldShape
	for name, shape := range toldShapes() {
		if name != "CREATE TABLE AS" && name != "SELECT INTO" {
			queries = append(queries, shape)
		}
	}
	slices.SortFunc(queries, func(a, b toldShape) int { return strings.Compare(a.sql, b.sql) })
	stop := make(chan struct{})
	var beside, workers sync.WaitGroup
	beside.Go(func() { disturb(t, dsn, stop) })
	for worker := range 4 {
		db, err := driver.Open(dsn, driver.WithRewrite())
		require.NoError(t, err)
		defer db.Close()
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			for range *presentStatements / 4 {
				shape, id := queries[random.IntN(len(queries))], 1+random.IntN(6)
				query := strings.ReplaceAll(shape.sql, "{<=}", "<=")
				way := []string{"exec", "query", "in a transaction"}[random.IntN(3)]
				_, err := withinWays[way](ctx, db, query, append([]any{tokenctx.Arg}, shape.args(id)...)...)
				if isAlarm(err) {
					t.Errorf("%s: %s: %v", way, query, err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	beside.Wait()
}

// disturb has rows come, go and change without a newer token.
func disturb(t *testing.T, dsn string, stop chan struct{}) {
	plain, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer plain.Close(context.Background())
	random := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		default:
		}
		id := 1 + random.IntN(6)
		_, err := plain.Exec(context.Background(), fmt.Sprintf([]string{
			`UPDATE orders SET state = 'done' WHERE id = %[1]d AND code = '%[2]s'`, `UPDATE orders SET state = 'new' WHERE id = %[1]d AND code = '%[2]s'`,
			`DELETE FROM orders WHERE id = %[1]d AND code = '%[2]s'`, `INSERT INTO orders (id, code, number, last_token) VALUES (%[1]d, '%[2]s', %[1]d, 600) ON CONFLICT DO NOTHING`,
		}[random.IntN(4)], id, letters(id)))
		var pgErr *pgconn.PgError
		if err != nil && !errors.As(err, &pgErr) {
			t.Error(err)
			return
		}
	}
}

// isAlarm reports whether an error isn't one that PostgreSQL gives to anybody whose rows
// are written at the same time.
func isAlarm(err error) bool {
	var pgErr *pgconn.PgError
	if err == nil || errors.As(err, &pgErr) && slices.Contains([]string{"23505", "40P01", "25P02"}, pgErr.Code) {
		return errors.Is(err, driver.ErrStale)
	}
	return true
}
