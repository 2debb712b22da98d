package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/fencerow/fencerow/internal/pgxsuite/opening"
)

// result is what became of a test.
type result struct {
	outcome string // pass, fail or skip, as the go command says; "" if it did not end
	output  string
}

// results are the tests of a run, subtests too, by name.
type results map[string]result

// execute runs the suite's binary on a database. A failing test is no error.
func execute(ctx context.Context, binary, dir, dsn string, args ...string) (results, error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.v=test2json", "-test.timeout=5m"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), opening.EnvDSN+"="+dsn)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	runErr := cmd.Run()
	if exit := (*exec.ExitError)(nil); runErr != nil && !errors.As(runErr, &exit) || ctx.Err() != nil {
		return nil, errors.Join(runErr, ctx.Err())
	}
	text := out.String()
	found, err := convert(ctx, &out)
	if err != nil {
		return nil, err
	}
	if runErr != nil && !found.failed() {
		return nil, fmt.Errorf("the suite ended with %w, though none of its tests failed:\n%s", runErr, tail(text))
	}
	return found, nil
}

// failed says whether a test failed or did not end.
func (r results) failed() bool {
	for _, test := range r {
		if test.outcome != "pass" && test.outcome != "skip" {
			return true
		}
	}
	return false
}

// output is what a test has printed, with what its parents have: a panic is
// reported as theirs.
func (r results) output(test string) string {
	i := strings.LastIndexByte(test, '/')
	if i < 0 {
		return r[test].output
	}
	return r.output(test[:i]) + r[test].output
}

// convert reads a test binary's output by the go command's own converter.
func convert(ctx context.Context, r io.Reader) (results, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json")
	cmd.Stdin = r
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	return readEvents(bytes.NewReader(out))
}

func readEvents(r io.Reader) (results, error) {
	found := make(results)
	for d := json.NewDecoder(r); ; {
		var event struct{ Action, Test, Output string }
		if err := d.Decode(&event); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read test2json's events: %w", err)
		}
		if event.Test == "" {
			continue
		}
		test := found[event.Test]
		switch event.Action {
		case "pass", "fail", "skip":
			test.outcome = event.Action
		case "output":
			test.output += event.Output
		}
		found[event.Test] = test
	}
}

// pattern selects exactly the given tests, for -test.run and -test.skip.
func pattern(names ...string) string {
	var alternatives []string
	for _, name := range names {
		parts := strings.Split(name, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		alternatives = append(alternatives, strings.Join(parts, "/"))
	}
	return strings.Join(alternatives, "|")
}

// tail is the end of a long output.
func tail(text string) string {
	const size = 4096
	if len(text) > size {
		text = "..." + text[len(text)-size:]
	}
	return text
}
