package worker

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/rewrite"
)

// client is one goroutine's worth of a worker.
type client struct {
	*worker
	name string
	rand *rand.Rand
}

type worker struct {
	Config
	db   *sql.DB
	rec  *history.Recorder
	last atomic.Int64 // operation
}

// kinds are the clients of a worker.
var kinds = []struct {
	name  string
	count int
	turn  func(*client, context.Context)
}{
	{"believer", 2, (*client).believe},
	{"holder", 1, (*client).hold},
	{"taker", 2, (*client).takeAtOnce},
	{"drawer", 1, (*client).draw},
	{"reader", 1, (*client).read},
}

// run works until it is told to end.
func run(c Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	db, err := c.open()
	if err != nil {
		return err
	}
	w := &worker{Config: c, db: db, rec: history.NewRecorder(os.Stdout, c.Start)}
	w.last.Store(int64(c.Worker)*1e12 + int64(c.Life)*1e8)
	var clients sync.WaitGroup
	for _, kind := range kinds {
		for i := range kind.count {
			name := fmt.Sprintf("%s %d.%d.%d", kind.name, c.Worker, c.Life, i)
			client := &client{worker: w, name: name, rand: rand.New(rand.NewPCG(c.Seed, hash(name)))}
			clients.Go(func() {
				for ctx.Err() == nil {
					kind.turn(client, ctx)
				}
			})
		}
	}
	clients.Wait()
	return db.Close()
}

// open opens the handle that the way to write asks for. It needs no server to be
// there: a worker may start while that is down.
func (c Config) open() (db *sql.DB, err error) {
	switch c.Write {
	case Plain:
		db, err = sql.Open("pgx", c.DSN)
	case Report:
		db, err = c.openReport()
	default:
		db, err = sql.Open("fencerow", c.DSN)
	}
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(8)
	db.SetConnMaxLifetime(time.Minute)
	return db, nil
}

func (c Config) openReport() (*sql.DB, error) {
	config, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(*config,
		driver.Protect("rows", rewrite.Lease), driver.Protect("entries", rewrite.Lease), driver.Protect("strict_rows", rewrite.Strict),
		driver.WithLevel(driver.Report, "rows", "entries", "strict_rows"))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(s) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// rest is a moment's pause, so that a run's history stays of a size that can be
// checked; longer after a failure, while the server is away.
func (c *client) rest(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(time.Duration(c.rand.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// rotation is the number of the rows in use.
func (w *worker) rotation() int {
	return min(int(time.Duration(w.Start.Now())/w.Rotate), w.Rotations-1)
}
