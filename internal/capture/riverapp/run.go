package riverapp

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/fencerow/fencerow/internal/capture/record"
)

type app struct {
	db     *sql.DB
	driver *riverdatabasesql.Driver
	client *river.Client[*sql.Tx]
	events <-chan *river.Event
	waits  chan struct{} // closed when the job that waits has begun
}

// Run captures River. What a running client sends comes from several
// goroutines, so those statements are put in order by their text.
func Run(ctx context.Context, s *record.Session) error {
	s.Unordered("work")
	a := &app{db: s.DB, driver: riverdatabasesql.New(s.DB), waits: make(chan struct{})}
	if err := s.Run(ctx, record.Step{Op: "migrate", Do: a.migrate}); err != nil {
		return err
	}
	if err := a.newClient(); err != nil {
		return err
	}
	return s.Run(ctx,
		record.Step{Op: "insert", Do: a.insert},
		record.Step{Op: "look", Do: a.look},
		record.Step{Op: "change", Do: a.change},
		record.Step{Op: "queues", Do: a.queues},
		record.Step{Op: "maintenance", Do: a.maintain},
		record.Step{Op: "work", Do: a.work},
		record.Step{Op: "migrate down", Do: a.migrateDown},
	)
}

func (a *app) newClient() error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(a.act))
	var err error
	a.client, err = river.NewClient(a.driver, &river.Config{
		ID:                  "client-1", // the default has the machine's name
		Logger:              slog.New(slog.DiscardHandler),
		Queues:              map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}, "mail": {MaxWorkers: 2}},
		Workers:             workers,
		FetchPollInterval:   50 * time.Millisecond,
		FetchCooldown:       10 * time.Millisecond,
		ReindexerIndexNames: []string{"river_job_kind"},
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(time.Hour),
			func() (river.JobArgs, *river.InsertOpts) { return task{Do: "complete", N: 100}, nil }, &river.PeriodicJobOpts{RunOnStart: true})},
	})
	if err != nil {
		return err
	}
	a.events, _ = a.client.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobSnoozed)
	return nil
}

func (a *app) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(a.driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = m.Validate(ctx, nil)
	return err
}

func (a *app) migrateDown(ctx context.Context) error {
	m, err := rivermigrate.New(a.driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: -1})
	return err
}

// inTx runs do in a transaction of the program's own.
func (a *app) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // the first error says more
		return err
	}
	return tx.Commit()
}
