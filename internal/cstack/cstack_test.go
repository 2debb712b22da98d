//go:build cgo

package cstack

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limit of the process is what its threads get.
func TestSize(t *testing.T) {
	if os.Getenv("FENCEROW_PRINT_STACK") != "" {
		_, _ = os.Stdout.WriteString("stack:" + strconv.Itoa(Size()) + "\n")
		return
	}
	require.Positive(t, Size())
	for _, kilobytes := range []int{512, 2048} {
		cmd := exec.Command("sh", "-c", `ulimit -S -s "$1" && exec "$0" -test.run '^TestSize$'`, os.Args[0], strconv.Itoa(kilobytes))
		cmd.Env = append(os.Environ(), "FENCEROW_PRINT_STACK=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, rest, _ := strings.Cut(string(out), "stack:")
		size, _, _ := strings.Cut(rest, "\n")
		require.Equal(t, strconv.Itoa(kilobytes<<10), size)
	}
}
