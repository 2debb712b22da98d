package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

// clock is one that a test moves on.
type clock struct {
	asked chan time.Duration
	tick  chan time.Time
}

func newClock() *clock { return &clock{make(chan time.Duration), make(chan time.Time)} }

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.asked <- d
	return c.tick
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	p := &progress{w: &out, after: c.after}
	p.start("reading")
	require.Equal(t, progressDelay, <-c.asked)
	p.set("%d files", 1)
	require.Empty(t, out.String(), "not in the first second")

	c.tick <- time.Time{}
	require.Equal(t, progressInterval, <-c.asked)
	require.Equal(t, clearLine+"1 files", out.String())

	c.tick <- time.Time{}
	<-c.asked
	require.Equal(t, clearLine+"1 files", out.String(), "nothing new")

	p.set("%s", strings.Repeat("ä", 100))
	c.tick <- time.Time{}
	<-c.asked
	require.Equal(t, clearLine+"1 files"+clearLine+strings.Repeat("ä", progressWidth), out.String())

	p.stop()
	require.True(t, strings.HasSuffix(out.String(), clearLine), "the line is taken off")
	p.stop()
}

// The line is gone before anything else is written.
func TestClearing(t *testing.T) {
	var terminal bytes.Buffer
	c := newClock()
	p := &progress{w: &terminal, after: c.after}
	w := &clearing{p, &terminal}
	p.start("working")
	<-c.asked
	c.tick <- time.Time{}
	<-c.asked
	_, err := w.Write([]byte("done\n"))
	require.NoError(t, err)
	p.stop()
	require.Equal(t, clearLine+"working"+clearLine+"done\n", terminal.String())
}

// What takes less than a second writes nothing.
func TestProgressOfShortWork(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	p := &progress{w: &out, after: c.after}
	for range 2 {
		p.start("reading")
		<-c.asked
		p.stop()
	}
	require.Empty(t, out.String())
	var none *progress
	none.start("reading")
	none.set("x")
	none.stop()
}

func TestWantsColour(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true},
		{map[string]string{"TERM": "xterm"}, true},
		{map[string]string{"NO_COLOR": "1"}, false},
		{map[string]string{"TERM": "dumb"}, false},
	} {
		require.Equal(t, tt.want, wantsColour(func(name string) string { return tt.env[name] }), tt.env)
	}
}

// Colours change nothing but the colour.
func TestColoured(t *testing.T) {
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	require.NoError(t, err)
	f := lint.FindingOf(&policy.Plan("UPDATE orders SET a = 1").Violations[0])
	f.Path, f.Line, f.Column = "a.sql", 1, 8
	got := coloured(f)
	for _, part := range []string{bold + "a.sql:1:8" + reset + ": UPDATE on", red + "^^^^^^" + reset, "\n" + green + "  fix:", "\n" + dim + "  docs:"} {
		require.Contains(t, got, part)
	}
	require.Equal(t, f.String(), strings.NewReplacer(bold, "", red, "", green, "", dim, "", reset, "").Replace(got))
}

// Every command ends with its context.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const dsn = "postgres://app@127.0.0.1:1/x"
	for _, args := range [][]string{
		{"lint", "--sql", "."}, {"explain", "SELECT 1"}, {"migrate", "up"}, {"migrate", "down", "--yes"}, {"migrate", "version"},
		{"migrate", "status"}, {"register", "orders", "--mode", "lease"}, {"unregister", "orders"}, {"wall", "orders", "off"}, {"doctor"},
		{"allow", "f()", "--reason", "x"}, {"disallow", "f()"},
	} {
		var out, errs bytes.Buffer
		env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return dsn }}
		require.Equal(t, exitError, run(ctx, env, args), args)
		require.Equal(t, "fencerow: interrupted\n", errs.String(), args)
		require.Empty(t, out.String(), args)
	}
}

func TestSplitName(t *testing.T) {
	for _, tt := range []struct{ text, schema, name string }{
		{"orders", "", "orders"},
		{"Orders", "", "orders"},
		{`"Orders"`, "", "Orders"},
		{"app.orders", "app", "orders"},
		{`"a.b"."c""d"`, "a.b", `c"d`},
		{`App."Order Items"`, "app", "Order Items"},
		{"größe", "", "größe"},
	} {
		schema, name, err := splitName(tt.text)
		require.NoError(t, err, tt.text)
		require.Equal(t, []string{tt.schema, tt.name}, []string{schema, name}, tt.text)
	}
	for _, text := range []string{"", " ", ".", "a.", ".a", "a.b.c", "a b", `"a`, `""`, "a..b", "1a", "a-b", `a"b"`} {
		_, _, err := splitName(text)
		require.ErrorContains(t, err, "is not the name of a table", text)
	}
}
