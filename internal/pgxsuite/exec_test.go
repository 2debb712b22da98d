package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test that panics does not end, and its parent has the message.
const events = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"a\n"}
{"Action":"run","Test":"TestA/exec"}
{"Action":"output","Test":"TestA/exec","Output":"b\n"}
{"Action":"output","Test":"TestA","Output":"panic: c\n"}
{"Action":"pass","Test":"TestB"}
{"Action":"fail"}
`

func TestReadEvents(t *testing.T) {
	got, err := readEvents(strings.NewReader(events))
	require.NoError(t, err)
	require.Equal(t, results{
		"TestA":      {output: "a\npanic: c\n"},
		"TestA/exec": {output: "b\n"},
		"TestB":      {outcome: "pass"},
	}, got)
	require.True(t, got.failed())
	require.Equal(t, "a\npanic: c\nb\n", got.output("TestA/exec"))
	require.Equal(t, []string{"TestA/exec", "TestB"}, got.cases())

	_, err = readEvents(strings.NewReader("{"))
	require.Error(t, err)
}

func TestPattern(t *testing.T) {
	require.Equal(t, "^TestA$|^TestB$/^a\\+b$", pattern("TestA", "TestB/a+b"))
	require.Empty(t, pattern())
	require.NotRegexp(t, regexp.MustCompile(pattern("TestA")), "TestAB")
}

func TestTail(t *testing.T) {
	require.Equal(t, "short", tail("short"))
	require.Equal(t, "..."+strings.Repeat("b", 4096), tail("a"+strings.Repeat("b", 4096)))
}
