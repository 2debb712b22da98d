package lint

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/fencerow/fencerow/driver"
)

// TestingM is what [VerifyMain] needs of a *testing.M.
type TestingM interface {
	Run() int
}

// replaced by tests
var (
	exit             = os.Exit
	stdout io.Writer = os.Stdout
)

// VerifyMain is the body of a TestMain: it runs the tests, prints the findings of
// every handle in the process to standard error, and exits. The status is 1 if
// there were findings although the tests passed. Findings that a [Watch] or a [Check]
// shows are left out. Setup and teardown go into m, which may be anything with a
// method Run that runs the tests.
func VerifyMain(m TestingM, opts ...Option) {
	exit(verify(m, opts))
}

func verify(m TestingM, opts []Option) int {
	c, covered := newCollector(opts), newCoverage()
	defer driver.Observe(driver.Observer{Event: c.recordEvent})()
	previous := mainCollector.Swap(c)
	defer mainCollector.Store(previous)
	defer driver.Observe(covered.observer())()

	code := m.Run()
	if findings := c.finish(code == 0 && runsAllTests()); len(findings) > 0 {
		_, _ = fmt.Fprintln(stderr, formatFindings("fencerow found in the tests of this package:", findings))
		code = max(code, 1)
	}
	_, _ = io.WriteString(stdout, covered.format(shownCoverage.Load()))
	return code
}

// runsAll reports whether the command line leaves no test out.
func runsAllTests() bool {
	for name, all := range map[string]string{"test.run": "", "test.skip": "", "test.list": "", "test.short": "false"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != all {
			return false
		}
	}
	return true
}
