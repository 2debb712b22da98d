package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tally is what a run of the suite adds up to. It counts cases: tests, or
// their subtests where they have some, which mostly are the exec modes.
type tally struct {
	run                     string
	passed, failed, skipped int
	problems                []string // why the whole must fail
}

// cases are the tests and subtests that have no subtests, in order.
func (r results) cases() []string {
	names := slices.Sorted(maps.Keys(r))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}

// baseline counts pgx's own run.
func baseline(run string, plain results) tally {
	t := tally{run: run}
	for _, name := range plain.cases() {
		switch plain[name].outcome {
		case "pass":
			t.passed++
		case "skip":
			t.skipped++
		default:
			t.fail(name, "fails without fencerow", plain)
		}
	}
	return t
}

// compare holds a run through fencerow against pgx's own.
func compare(run string, plain, got results, list []skip) tally {
	t := tally{run: run}
	for _, name := range plain.cases() {
		outcome := got[name].outcome
		entry, ok := listed(list, name)
		switch {
		case ok && outcome == "pass":
			t.passed++
			t.problem(name, "passes, but skips.go lists it: take it out there", got)
		case ok && strings.Contains(got.output(name), entry.says):
			t.skipped++
		case ok:
			t.fail(name, fmt.Sprintf("is listed in skips.go (%s), but does not fail with %q", entry.reason, entry.says), got)
		case outcome == "pass":
			t.passed++
		case outcome == "skip" && plain[name].outcome == "skip":
			t.skipped++
		case outcome == "skip":
			t.fail(name, "is skipped, but passes through pgx alone", got)
		case outcome == "":
			t.fail(name, "did not run to its end", got)
		default:
			t.fail(name, "fails", got)
		}
	}
	return t
}

func (t *tally) fail(test, what string, r results) {
	t.failed++
	t.problem(test, what, r)
}

func (t *tally) problem(test, what string, r results) {
	output := strings.ReplaceAll(strings.TrimSpace(tail(r.output(test))), "\n", "\n    ")
	t.problems = append(t.problems, fmt.Sprintf("%s: %s %s\n    %s", t.run, test, what, output))
}

// unknown are the entries of the list that name none of the suite's cases.
func unknown(plain results, list []skip) []string {
	var names []string
	for _, s := range list {
		if !slices.ContainsFunc(plain.cases(), s.covers) {
			names = append(names, s.name)
		}
	}
	return names
}
