package riverapp

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

// workTimeout is far more than the jobs take.
const workTimeout = 30 * time.Second

// work runs the client until a job has ended in each way, one of them by a
// request to cancel it while it ran.
func (a *app) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	if err := a.client.Start(ctx); err != nil {
		return err
	}
	waiting, err := a.client.Insert(ctx, task{"wait", 40}, nil)
	if err != nil {
		return err
	}
	if err := a.await(ctx, river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobSnoozed); err != nil {
		return err
	}
	select {
	case <-a.waits:
	case <-ctx.Done():
		return fmt.Errorf("the job that waits has not begun: %w", ctx.Err())
	}
	if _, err := a.client.JobCancel(ctx, waiting.Job.ID); err != nil {
		return err
	}
	if err := a.await(ctx, river.EventKindJobCancelled); err != nil {
		return err
	}
	return a.client.Stop(ctx)
}

// await waits for an event of each kind.
func (a *app) await(ctx context.Context, kinds ...river.EventKind) error {
	missing := make(map[river.EventKind]bool)
	for _, kind := range kinds {
		missing[kind] = true
	}
	for len(missing) > 0 {
		select {
		case event := <-a.events:
			delete(missing, event.Kind)
		case <-ctx.Done():
			return fmt.Errorf("no event of kinds %v: %w", missing, ctx.Err())
		}
	}
	return nil
}
