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
	process, err := syscall.GetCurrentProcess()
	require.NoError(t, err)
	var created, ended, kernel, user syscall.Filetime
	require.NoError(t, syscall.GetProcessTimes(process, &created, &ended, &kernel, &user))
	const unit = 100 * time.Nanosecond
	count := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(count(kernel)+count(user)) * unit
}
