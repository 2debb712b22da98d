package lint

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fencerow/fencerow/driver"
)

// TestingT is what [Watch] needs of a *testing.T.
type TestingT interface {
	Helper()
	Name() string
	Errorf(format string, args ...any)
	Cleanup(func())
}

// stderr gets the findings that no test can show.
var stderr io.Writer = os.Stderr

// Watch returns an option of [driver.Open] and the driver's other constructors that
// fails the test, at its end, if a statement was refused or reported on the handle.
// What is sent after the test has ended is printed to standard error. Parallel
// tests open a handle each: what is sent on one that they share can't be told
// apart.
func Watch(t TestingT, opts ...Option) driver.Option {
	t.Helper()
	return driver.WithReporter(failAtEnd(t, opts))
}

// WatchDB is [Watch] for a handle that is open already, until the test ends. It has
// to be one of fencerow's.
func WatchDB(t TestingT, db *sql.DB, opts ...Option) {
	t.Helper()
	stop, err := driver.ObserveDB(db, driver.Observer{Event: failAtEnd(t, opts)})
	if err != nil {
		t.Errorf("lint.WatchDB: %v", err)
		return
	}
	t.Cleanup(stop)
}

// failAtEnd returns a reporter whose findings fail the test at its end.
func failAtEnd(t TestingT, opts []Option) func(context.Context, driver.Event) {
	t.Helper()
	c, name := newCollector(opts), t.Name()
	t.Cleanup(func() {
		t.Helper()
		if findings := c.finish(!wasCutShort(t)); len(findings) > 0 {
			t.Errorf("%s", formatFindings("fencerow found in this test:", findings))
		}
	})
	return func(ctx context.Context, e driver.Event) {
		if c.record(ctx, e) && mainCollector.Load() == nil {
			_, _ = fmt.Fprintln(stderr, formatFindings("fencerow found after "+name+" had ended:", []Finding{FindingOf(violationOf(e))}))
		}
	}
}

// wasCutShort reports whether a test may not have run to its end.
func wasCutShort(t TestingT) bool {
	ended, ok := t.(interface {
		Failed() bool
		Skipped() bool
	})
	return ok && (ended.Failed() || ended.Skipped())
}

// formatFindings returns a title and the findings, each on lines of its own.
func formatFindings(title string, findings []Finding) string {
	lines := []string{title}
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}
