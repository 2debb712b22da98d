package riverapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// task is a job that ends as it is told.
type task struct {
	Do string `json:"do"`
	N  int    `json:"n" river:"unique"`
}

// Kind names the job's table entries.
func (task) Kind() string { return "task" }

var errTask = errors.New("told to fail")

// act works a task.
func (a *app) act(ctx context.Context, job *river.Job[task]) error {
	switch job.Args.Do {
	case "fail":
		return errTask
	case "cancel":
		return river.JobCancel(errTask)
	case "snooze":
		return river.JobSnooze(time.Hour)
	case "wait":
		close(a.waits) // there is one such job
		<-ctx.Done()
		return ctx.Err()
	}
	return river.RecordOutput(ctx, job.Args.N)
}

// insert fills the queue; the jobs are worked later.
func (a *app) insert(ctx context.Context) error {
	later := &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour), Tags: []string{"later"}, Priority: 2, Queue: "mail"}
	unique := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: 24 * time.Hour, ByQueue: true}}
	many := []river.InsertManyParams{{Args: task{"complete", 1}}, {Args: task{"fail", 2}, InsertOpts: &river.InsertOpts{MaxAttempts: 1}}, {Args: task{"snooze", 3}}}
	_, err1 := a.client.Insert(ctx, task{"complete", 10}, nil)
	_, err2 := a.client.Insert(ctx, task{"complete", 11}, later)
	_, err3 := a.client.Insert(ctx, task{"complete", 12}, unique)
	_, err4 := a.client.Insert(ctx, task{"complete", 12}, unique)
	_, err5 := a.client.InsertMany(ctx, many)
	_, err6 := a.client.InsertManyFast(ctx, []river.InsertManyParams{{Args: task{"cancel", 20}}, {Args: task{"fail", 21}}})
	err7 := a.inTx(ctx, func(tx *sql.Tx) error {
		_, err1 := a.client.InsertTx(ctx, tx, task{"complete", 30}, nil)
		_, err2 := a.client.InsertManyTx(ctx, tx, many)
		_, err3 := a.client.InsertManyFastTx(ctx, tx, many)
		return errors.Join(err1, err2, err3)
	})
	return errors.Join(err1, err2, err3, err4, err5, err6, err7)
}

// look reads jobs in the ways of River's user interface.
func (a *app) look(ctx context.Context) error {
	var errs []error
	for i, params := range []*river.JobListParams{
		river.NewJobListParams(),
		river.NewJobListParams().First(5).Kinds("task").Queues(river.QueueDefault).States(rivertype.JobStateAvailable),
		river.NewJobListParams().IDs(1, 2).Priorities(1),
		river.NewJobListParams().Metadata(`{"a":1}`).OrderBy(river.JobListOrderByTime, river.SortOrderDesc).States(rivertype.JobStateCompleted),
		river.NewJobListParams().TagsAny("later").OrderBy(river.JobListOrderByScheduledAt, river.SortOrderAsc),
		river.NewJobListParams().Where("args->>'do' = @do", river.NamedArgs{"do": "fail"}),
	} {
		if _, err := a.client.JobList(ctx, params); err != nil {
			errs = append(errs, fmt.Errorf("list %d: %w", i+1, err))
		}
	}
	_, err := a.client.JobGet(ctx, 1)
	return errors.Join(append(errs, err)...)
}

// change edits jobs before any is worked.
func (a *app) change(ctx context.Context) error {
	_, err1 := a.client.JobUpdate(ctx, 1, &river.JobUpdateParams{Output: "edited"})
	_, err2 := a.client.JobCancel(ctx, 2)
	_, err3 := a.client.JobRetry(ctx, 2)
	_, err4 := a.client.JobDelete(ctx, 3)
	_, err5 := a.client.JobDeleteMany(ctx, river.NewJobDeleteManyParams().Kinds("none").First(10))
	_, err6 := a.client.JobDeleteMany(ctx, river.NewJobDeleteManyParams().IDs(-1).States(rivertype.JobStateDiscarded))
	err7 := a.inTx(ctx, func(tx *sql.Tx) error {
		_, err1 := a.client.JobCancelTx(ctx, tx, 2)
		_, err2 := a.client.JobGetTx(ctx, tx, 2)
		return errors.Join(err1, err2)
	})
	return errors.Join(err1, err2, err3, err4, err5, err6, err7)
}
