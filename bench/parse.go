package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// result is a line of a benchmark's output.
type result struct {
	cpus   int
	values map[string]float64 // by unit
}

// samples are results by the benchmark's name, without "Benchmark" and the number
// of CPUs, in the order of the rounds.
type samples struct {
	names   []string // in the order in which they came first
	results map[string][]result
}

// read adds the results in r, with what their names are to begin with. Other lines
// are passed over.
func (s *samples) read(r io.Reader, prefix string) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, res, err := parseResult(fields)
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		s.add(prefix+name, res)
	}
	return lines.Err()
}

func (s *samples) add(name string, r ...result) {
	if s.results == nil {
		s.results = make(map[string][]result)
	}
	if s.results[name] == nil {
		s.names = append(s.names, name)
	}
	s.results[name] = append(s.results[name], r...)
}

// at returns the values of a benchmark in one unit, by round; with cpus 0 for
// whatever number of CPUs.
func (s *samples) at(name, unit string, cpus int) (out []float64) {
	for _, r := range s.results[name] {
		if v, ok := r.values[unit]; ok && (cpus == 0 || r.cpus == cpus) {
			out = append(out, v)
		}
	}
	return out
}

// most is the largest number of CPUs that a benchmark was run with.
func (s *samples) most(name string) (cpus int) {
	for _, r := range s.results[name] {
		cpus = max(cpus, r.cpus)
	}
	return cpus
}

// ratios are those of two benchmarks, each within a round.
func (s *samples) ratios(a, b, unit string) []float64 {
	return combined(s.at(a, unit, 0), s.at(b, unit, 0), quotient)
}

// differences are those of two benchmarks, each within a round.
func (s *samples) differences(a, b, unit string) []float64 {
	return combined(s.at(a, unit, 0), s.at(b, unit, 0), func(a, b float64) float64 { return a - b })
}

func quotient(a, b float64) float64 { return a / b }

// combined takes two series round by round; a round that one of them lacks is
// left out.
func combined(a, b []float64, combine func(a, b float64) float64) (out []float64) {
	for i := range min(len(a), len(b)) {
		out = append(out, combine(a[i], b[i]))
	}
	return out
}

// median is not a number for no values.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func parseResult(fields []string) (name string, r result, err error) {
	name, r.cpus = splitCPUs(strings.TrimPrefix(fields[0], "Benchmark"))
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return "", r, fmt.Errorf("number of iterations: %w", err)
	}
	if len(fields)%2 != 0 {
		return "", r, fmt.Errorf("a value without a unit")
	}
	r.values = make(map[string]float64)
	for i := 2; i < len(fields); i += 2 {
		if r.values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return "", r, err
		}
	}
	return name, r, nil
}

// splitCPUs takes off what testing adds to a name where there is more than one.
func splitCPUs(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i], n
		}
	}
	return name, 1
}
