package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/chaos/schedule"
	"github.com/fencerow/fencerow/internal/chaos/worker"
	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) {
	worker.MainIfAsked()
	localpg.Main(m)
}

// seed is fixed, so that a failure can be tried again.
const seed = 11

// requireRun runs the short form. It goes on until it has met its minima, as
// long as a slow machine may need for that.
func requireRun(t *testing.T, c Config) *Result {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	c.Seed, c.Workers, c.Limit, c.Say = seed, 3, 90*time.Second, t.Logf
	r, err := run(t.Context(), c)
	if errors.Is(err, localpg.ErrNoServer) && os.Getenv("FENCEROW_DATABASE_URL") != "" {
		t.Skipf("this test needs servers of its own: %v", err)
	}
	require.NoError(t, err)
	var text bytes.Buffer
	printViolations(&text, r)
	require.NoError(t, printTable(&text, []*Result{r}))
	t.Logf("seed %d\n%s", c.Seed, &text)
	if problem := r.Problem(); problem != "" {
		dir, err := keep(r)
		require.Fail(t, problem, "the history is in %s (%v)", dir, err)
	}
	return r
}

func TestChaos(t *testing.T) {
	r := requireRun(t, Config{Kind: asynchronous, Duration: 20 * time.Second})
	for _, kind := range []schedule.Kind{schedule.Pause, schedule.Crash, schedule.Failover} {
		require.Positive(t, r.Counts.Faults[string(kind)], "%s", kind)
	}
	require.Positive(t, r.Counts.Accepted)
}

func TestControls(t *testing.T) {
	for control, found := range map[Kind][]string{plain: {"chain", "order", "updates"}, excluded: {"leases"}} {
		t.Run(string(control), func(t *testing.T) {
			r := requireRun(t, Config{Kind: control, Duration: 6 * time.Second})
			for _, check := range found {
				require.NotEmpty(t, violationsOf(r, check), "%s", check)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	r := &Result{Config: Config{Kind: asynchronous}}
	require.Contains(t, r.Problem(), "not exercised")
	r.Config.Kind = nextval
	require.Contains(t, r.Problem(), "nothing was found")
}

func TestConfigs(t *testing.T) {
	o := options{runs: "async,sync,wall,plain", duration: 10 * time.Minute, other: time.Minute, seed: 7, workers: 6}
	configs, err := o.configs()
	require.NoError(t, err)
	require.Len(t, configs, 4)
	for i, d := range []time.Duration{5 * time.Minute, 5 * time.Minute, time.Minute, time.Minute} {
		require.Equal(t, d, configs[i].Duration)
		require.Equal(t, configs[0].schedule(), configs[i].schedule(), "the controls run the same schedule")
	}
	o.runs = "async,none"
	_, err = o.configs()
	require.ErrorContains(t, err, `no run "none"`)
}
