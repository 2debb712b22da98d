package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No part of a statement stands for all of it, and none is waited for for ever.
func TestExplainStandardInput(t *testing.T) {
	explain := func(ctx context.Context, stdin io.Reader) (int, string) {
		var out bytes.Buffer
		env := &environment{stdin: stdin, stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
		return run(ctx, env, []string{"explain", "--config", "testdata/page/fencerow.yaml", "-"}), out.String()
	}
	code, out := explain(t.Context(), strings.NewReader("SELECT 1 /*"+strings.Repeat(" ", maxExplained)+"*/; DELETE FROM orders"))
	require.Equal(t, exitError, code)
	require.Contains(t, out, "longer than 16 MiB")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never, end := io.Pipe()
	defer end.Close()
	code, out = explain(ctx, never)
	require.Equal(t, exitError, code)
	require.Equal(t, "fencerow: interrupted\n", out)
}
