package driver

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeouts end transactions that are begun under a token; 0 sends none.
type timeouts struct{ idle, total time.Duration }

// maxTimeout is PostgreSQL's for a setting in milliseconds.
const maxTimeout = math.MaxInt32 * time.Millisecond

// WithTransactionTimeouts bounds the transactions that are begun under a token,
// so that the open one of a paused holder can't hold up its successor, which
// waits for it at a row that both write or at a sealed table. The server ends
// the session of one that has been idle between two statements for longer than
// idle, or that has been open for longer than total. Its work is rolled back, and
// its next statement fails.
//
// They are the settings idle_in_transaction_session_timeout and
// transaction_timeout, which go along with BEGIN in the same round trip. The
// second is known to PostgreSQL 17 and newer, and isn't sent to an older one. A
// session whose client has stopped reading in the middle of a large result is
// not idle; there only total helps. 0 leaves the server's own setting, for a
// transaction that SQL begins too. See
// https://www.postgresql.org/docs/current/runtime-config-client.html.
func WithTransactionTimeouts(idle, total time.Duration) Option {
	return func(s *settings) error {
		for _, d := range []time.Duration{idle, total} {
			if d < 0 || d > 0 && d < time.Millisecond || d > maxTimeout {
				return fmt.Errorf("fencerow: WithTransactionTimeouts(%v, %v): give a millisecond to %v, or 0 for the server's own", idle, total, maxTimeout.Truncate(time.Hour))
			}
		}
		s.timeouts = timeouts{idle, total}
		return nil
	}
}

// settings is the SQL that goes along with BEGIN to a server of the version.
func (t timeouts) settings(version string) string {
	var text string
	if t.idle > 0 {
		text = fmt.Sprintf("; set local idle_in_transaction_session_timeout = %d", t.idle.Milliseconds())
	}
	if t.total > 0 && hasTransactionTimeout(version) {
		text += fmt.Sprintf("; set local transaction_timeout = %d", t.total.Milliseconds())
	}
	return text
}

// hasTransactionTimeout reads the major number of what server_version says,
// "17.2 (Debian 17.2-1)" or "18beta1".
func hasTransactionTimeout(version string) bool {
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits >= 0 {
		version = version[:digits]
	}
	major, err := strconv.Atoi(version)
	return err == nil && major >= 17
}
