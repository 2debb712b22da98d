package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

func TestMain(m *testing.M) { localpg.Main(m) }

var isWhole = flag.Bool("alarms", false, "send statements under faults, too")

// The short form: nobody is alarmed but where a token was raised on purpose.
func TestPresentHoldersAreNotAlarmed(t *testing.T) {
	if !*isWhole {
		t.Skip("make test-long runs it: it takes minutes on a busy machine")
	}
	for name, c := range map[string]config{"alarms": {seed: 11, statements: 1000}, "raised": {seed: 11, statements: 500, isRaised: true}} {
		t.Run(name, func(t *testing.T) {
			r, err := run(t.Context(), c)
			if errors.Is(err, localpg.ErrNoServer) && os.Getenv("FENCEROW_DATABASE_URL") != "" {
				t.Skipf("this test needs servers of its own: %v", err)
			}
			require.NoError(t, err)
			var text bytes.Buffer
			printExamples(&text, r)
			require.NoError(t, printTable(&text, []*result{r}))
			t.Log(text.String())
			require.Empty(t, r.problem())
			if c.isRaised {
				require.Positive(t, r.verdicts[ended], "a stale write ends its lease")
			}
		})
	}
}

// A seed gives the same statements again.
func TestSeeds(t *testing.T) {
	list := func(seed uint64) (texts []string) {
		random := rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			s := choose(random, "orders", false)
			texts = append(texts, fmt.Sprint(s.sql, s.args))
		}
		return texts
	}
	require.Equal(t, list(7), list(7))
	require.NotEqual(t, list(7), list(8))
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		n    int64
		err  error
		want verdict
	}{
		"rows":                          {n: 2, want: written},
		"none":                          {n: 0, want: nothing},
		"no count":                      {n: -1, want: unseen},
		"stale":                         {err: &driver.StaleError{}, want: stale},
		"replay":                        {err: &driver.ReplayError{}, want: replay},
		"partial":                       {err: &driver.PartialError{Stale: 1}, want: partial},
		"undetermined":                  {err: driver.ErrUndetermined, want: needless},
		"undetermined, broken":          {err: errors.Join(driver.ErrUndetermined, io.EOF), want: undetermined},
		"refused":                       {err: &rewrite.Violation{}, want: refused},
		"a deadlock":                    {err: &pgconn.PgError{Code: "40P01"}, want: taken},
		"wrong SQL":                     {err: &pgconn.PgError{Code: "42601"}, want: refused},
		"a statement's time is over":    {err: context.DeadlineExceeded, want: broken},
		"anything else":                 {err: errors.New("no such thing"), want: refused},
		"stale, and the connection too": {err: errors.Join(&driver.StaleError{}, io.EOF), want: stale},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, judge(c.n, c.err)) })
	}
}

func TestProblems(t *testing.T) {
	r := &result{config: config{statements: 5}, tally: newTally(5, func() {})}
	require.Contains(t, r.problem(), "only 0 statements")
	r.add("", ended, nil)
	require.Contains(t, r.problem(), "1 false alarms")
	r.isRaised = true
	require.Contains(t, r.problem(), "nobody was told")
	r.add("", stale, nil)
	require.Empty(t, r.problem())
}
