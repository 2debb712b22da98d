//go:build unix

package sqlfiles

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// usedProcessorTime is the processor time that this program has used.
func usedProcessorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
