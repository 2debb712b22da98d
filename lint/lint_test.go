package lint

import (
	"bytes"
	"database/sql"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/lint/testdata/shop"
	"github.com/fencerow/fencerow/rewrite"
)

// fakeT is a test that ends when it is told to.
type fakeT struct {
	cleanups []func()
	ended    bool
	errors   []string
}

func (f *fakeT) Helper()          {}
func (f *fakeT) Name() string     { return "TestFake" }
func (f *fakeT) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fakeT) Errorf(format string, args ...any) {
	if f.ended {
		panic("Errorf after the test has ended")
	}
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeT) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	f.ended = true
}

// lockedBuffer is standard error for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// printed replaces standard error for a test.
func printed(t *testing.T) *lockedBuffer {
	before, b := stderr, &lockedBuffer{}
	stderr = b
	t.Cleanup(func() { stderr = before })
	return b
}

func open(t *testing.T, opts ...driver.Option) *sql.DB {
	t.Helper()
	db, err := shop.Open(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// A test ends while its application still sends: each statement is told of once, by
// the test or after it.
func TestWatchEndsInBetween(t *testing.T) {
	const senders, each = 4, 100
	late, f := printed(t), &fakeT{}
	db := open(t, Watch(f))
	var group sync.WaitGroup
	first := make(chan struct{}, senders)
	for range senders {
		group.Go(func() {
			for id := range each {
				shop.Ship(t.Context(), db, id)
				if id == 0 {
					first <- struct{}{}
				}
			}
		})
	}
	<-first
	f.end()
	group.Wait()
	shop.Ship(t.Context(), db, 17)

	require.Len(t, f.errors, 1)
	inTime := 1
	if _, times, ok := strings.Cut(f.errors[0], "unguarded-update), "); ok {
		_, err := fmt.Sscanf(times, "%d times", &inTime)
		require.NoError(t, err)
	}
	require.Equal(t, senders*each+1, inTime+strings.Count(late.String(), "fencerow found after TestFake had ended:\n"))
}

// What a handle hears is nothing to a test that watches another one, nor to the one
// that watched it before.
func TestWatchDBHearsItsHandle(t *testing.T) {
	late := printed(t)
	one, other := open(t), open(t)
	var before, now, elsewhere fakeT
	WatchDB(&before, one)
	before.end()
	WatchDB(&now, one)
	WatchDB(&elsewhere, other)
	shop.Ship(t.Context(), one, 17)
	now.end()
	elsewhere.end()
	require.Empty(t, before.errors)
	require.Len(t, now.errors, 1)
	require.Empty(t, elsewhere.errors)
	require.Empty(t, late.String())
}

func TestCheck(t *testing.T) {
	one, other := open(t), open(t, driver.WithLevel(driver.Report, "orders"))
	findings := Check(func() {
		shop.Ship(t.Context(), one, 17)
		shop.Ship(t.Context(), other, 17)
		shop.Pay(t.Context(), one, 17)
		shop.Cancel(t.Context(), one, 17)
	}, Allow(rewrite.UnguardedDelete, "the refusal is what is tested", "payments", "public.orders"))
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s %s %d", f.Rule, f.Table, f.Times))
	}
	require.Equal(t, []string{"FR111 payments 1", "FR301 orders 1", "FR101 orders 2"}, got)
	require.Contains(t, findings[0].Headline(), `lint_test.go:`)
	require.Contains(t, findings[0].Headline(), `lint.Allow (the refusal is what is tested) met no such statement on "payments": remove it`)
}

// However a function ends, nobody listens after it: what is sent then is not the
// Check's to answer for.
func TestCheckEndsWithItsFunction(t *testing.T) {
	printed(t)
	db := open(t)
	for name, way := range map[string]func(){"returns": func() {}, "panics": func() { panic("done") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var group sync.WaitGroup
			group.Go(func() {
				defer func() { _ = recover() }()
				Check(way)
			})
			group.Wait()
			code := verify(testingM(func() int { shop.Ship(t.Context(), db, 17); return 0 }), nil)
			require.Equal(t, 1, code)
		})
	}
}

// testingM runs tests that are none.
type testingM func() int

func (m testingM) Run() int { return m() }

func TestVerifyMainExits(t *testing.T) {
	db := open(t)
	ship := func() { shop.Ship(t.Context(), db, 17) }
	tests := map[string]struct {
		run  func()
		code int
		want int
	}{
		"passed":               {func() {}, 0, 0},
		"passed with findings": {ship, 0, 1},
		"failed":               {func() {}, 2, 2},
		"failed with findings": {ship, 2, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, status := exit, -1
			defer func() { exit = before }()
			exit = func(code int) { status = code }
			told := printed(t)
			VerifyMain(testingM(func() int { tt.run(); return tt.code }))
			require.Equal(t, tt.want, status)
			require.Equal(t, strings.Contains(name, "findings"), strings.Contains(told.String(), "\n/"), told)
			require.Nil(t, mainCollector.Load())
		})
	}
}

func TestCoverageFlag(t *testing.T) {
	for value, want := range map[string]string{"true": "true", "1": "true", "": "", "false": "", "json": "json", "xml": "refused"} {
		var f coverageFlag
		got := "refused"
		if f.Set(value) == nil {
			got = f.String()
		}
		require.Equal(t, want, got, value)
	}
}
