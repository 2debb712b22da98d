package riverapp

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// allQueues stands for all of them.
const allQueues = "*"

// queues makes a queue as a client does when it starts, and steers it.
func (a *app) queues(ctx context.Context) error {
	_, err := a.driver.GetExecutor().QueueCreateOrSetUpdatedAt(ctx, &riverdriver.QueueCreateOrSetUpdatedAtParams{Name: "mail", Metadata: []byte("{}")})
	_, err1 := a.client.QueueGet(ctx, "mail")
	_, err2 := a.client.QueueList(ctx, river.NewQueueListParams().First(10))
	_, err3 := a.client.QueueUpdate(ctx, "mail", &river.QueueUpdateParams{Metadata: []byte(`{"a":1}`)})
	return errors.Join(err, err1, err2, err3,
		a.client.QueuePause(ctx, "mail", nil), a.client.QueueResume(ctx, "mail", nil),
		a.client.QueuePause(ctx, allQueues, nil), a.client.QueueResume(ctx, allQueues, nil),
		a.client.Notify().RequestResign(ctx))
}

// maintain calls what River's leader calls every few minutes, or only when a
// client has died; waiting for that would take too long.
func (a *app) maintain(ctx context.Context) error {
	e := a.driver.GetExecutor()
	past := time.Now().Add(-time.Hour)
	elected, err1 := e.LeaderAttemptElect(ctx, &riverdriver.LeaderElectParams{LeaderID: "client-1", TTL: time.Minute})
	if err1 != nil {
		return err1
	}
	_, err1 = e.LeaderAttemptReelect(ctx, &riverdriver.LeaderReelectParams{ElectedAt: elected.ElectedAt, LeaderID: "client-1", TTL: time.Minute})
	_, err2 := e.LeaderGetElectedLeader(ctx, &riverdriver.LeaderGetElectedLeaderParams{})
	_, err3 := e.LeaderDeleteExpired(ctx, &riverdriver.LeaderDeleteExpiredParams{})
	_, err4 := e.LeaderResign(ctx, &riverdriver.LeaderResignParams{ElectedAt: elected.ElectedAt, LeaderID: "client-1", LeadershipTopic: "river_leadership"})
	_, err5 := e.JobDeleteBefore(ctx, &riverdriver.JobDeleteBeforeParams{CompletedDoDelete: true, CompletedFinalizedAtHorizon: past, CancelledFinalizedAtHorizon: past, DiscardedFinalizedAtHorizon: past, Max: 100})
	_, err6 := e.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{Max: 10, StuckHorizon: past})
	_, err7 := e.JobRescueMany(ctx, &riverdriver.JobRescueManyParams{ID: []int64{-1}, Error: [][]byte{[]byte("{}")}, FinalizedAt: []*time.Time{nil},
		ScheduledAt: []time.Time{past}, State: []string{"available"}, StuckHorizon: past})
	_, err8 := e.JobSchedule(ctx, &riverdriver.JobScheduleParams{Max: 10})
	_, err9 := e.QueueDeleteExpired(ctx, &riverdriver.QueueDeleteExpiredParams{Max: 10, UpdatedAtHorizon: past})
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, a.reindex(ctx, e), count(ctx, e))
}

// reindex is the leader's nightly work.
func (a *app) reindex(ctx context.Context, e riverdriver.Executor) error {
	const index = "river_job_kind"
	_, err1 := e.IndexExists(ctx, &riverdriver.IndexExistsParams{Index: index})
	_, err2 := e.IndexesExist(ctx, &riverdriver.IndexesExistParams{IndexNames: []string{index}})
	_, err3 := e.IndexReindexArtifacts(ctx, &riverdriver.IndexReindexArtifactsParams{Index: index})
	return errors.Join(err1, err2, err3,
		e.IndexReindex(ctx, &riverdriver.IndexReindexParams{Index: index}),
		e.IndexDropIfExists(ctx, &riverdriver.IndexDropIfExistsParams{Index: index + "_ccnew"}))
}

// count is what River's user interface shows.
func count(ctx context.Context, e riverdriver.Executor) error {
	_, err1 := e.JobCountByAllStates(ctx, &riverdriver.JobCountByAllStatesParams{})
	_, err2 := e.JobCountByQueueAndState(ctx, &riverdriver.JobCountByQueueAndStateParams{QueueNames: []string{"mail"}})
	_, err3 := e.JobCountByState(ctx, &riverdriver.JobCountByStateParams{State: rivertype.JobStateAvailable})
	_, err4 := e.JobKindList(ctx, &riverdriver.JobKindListParams{Max: 10})
	_, err5 := e.QueueNameList(ctx, &riverdriver.QueueNameListParams{Max: 10})
	_, err6 := e.JobGetCancelRequested(ctx, &riverdriver.JobGetCancelRequestedParams{ID: []int64{1}})
	return errors.Join(err1, err2, err3, err4, err5, err6)
}
