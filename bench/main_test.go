package main

import (
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// canned is what benchmarks have printed in two rounds.
func canned(t *testing.T) *samples {
	t.Helper()
	s := new(samples)
	for file, prefix := range map[string]string{"output.txt": "", "socket.txt": oneCore} {
		text, err := os.Open("testdata/" + file)
		require.NoError(t, err)
		require.NoError(t, s.read(text, prefix))
		require.NoError(t, text.Close())
	}
	return s
}

func TestParse(t *testing.T) {
	s := canned(t)
	const raw = "InProcess/exec/unprotected/hit/100B/raw"
	require.Equal(t, []float64{200, 400}, s.at(raw, "ns/op", 0))
	require.Equal(t, []float64{100, 100}, s.at("Scaling/own/raw", "ns/op", 1))
	require.Equal(t, []float64{50, 50}, s.at("Scaling/own/raw", "ns/op", 2))
	require.Equal(t, 2, s.most("Scaling/own/raw"))
	require.Empty(t, s.at(raw, "ns/KB", 0))
	require.Equal(t, []float64{0.99}, s.at("OneCore/Socket/exec/at4", "x-plain", 0))
	require.Equal(t, []float64{60, 20}, s.differences(strings.Replace(raw, "raw", "fencerow", 1), raw, "ns/op"))
	require.Equal(t, []float64{1.75, 2}, s.speedups("Scaling/own/fencerow"))
}

func TestParseErrors(t *testing.T) {
	for line, complaint := range map[string]string{
		"BenchmarkA 10 1.5 ns/op 3":   "a value without a unit",
		"BenchmarkA ten 1.5 ns/op":    "number of iterations",
		"BenchmarkA 10 fast ns/op":    "invalid syntax",
		"BenchmarkA-2 10 1.5e ns/op ": "invalid syntax",
	} {
		require.ErrorContains(t, new(samples).read(strings.NewReader(line), ""), complaint, line)
	}
	s := new(samples)
	require.NoError(t, s.read(strings.NewReader("BenchmarkA\nPASS\nok  \tsome/package\t1.2s\n--- BENCH: BenchmarkB-2\n"), ""))
	require.Empty(t, s.names)
}

// row is a row of a table whose cells match.
func row(cells ...string) *regexp.Regexp {
	for i, c := range cells {
		cells[i] = regexp.QuoteMeta(c)
	}
	return regexp.MustCompile(`(?m)^\| *` + strings.Join(cells, ` *\| *`) + ` *\|$`)
}

func TestTables(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printAll(&b, canned(t)))
	for _, cells := range [][]string{
		{"1", "unprotected Exec, over raw", "≤ 50 ns", "40.0 ns", "20.0 ns", "60.0 ns", "met"},
		{"1", "unprotected Exec, allocations over raw", "≤ 0", "0", "0", "0", "met"},
		{"2", "guarded Exec of 100B, of sqlmw's time", "≤ 0.9", "0.945", "0.940", "0.950", "NOT met"},
		{"2", "guarded Exec of 100B, allocations over raw", "≤ 0", "1", "1", "1", "NOT met"},
		{"2", "guarded Exec of 1KB, of sqlmw's time", "-", "not measured", "-", "-", "-"},
		{"3", "unseen text without a protected name, ordinary, 1KB, per KB", "≤ 1000 ns", "640.0 ns", "640.0 ns", "640.0 ns", "met"},
		{"5", "exec, goroutines: 4, of plain pgx's throughput", "≥ 0.98", "not measured", "-", "-", "-"},
		{"5", "exec, goroutines: 4, on one core, of plain pgx's throughput", "-", "0.990", "0.990", "0.990", "-"},
		{"6", "hits in the own cache: gain by more cores, of raw's gain", "≥ 0.9", "0.938", "0.875", "1.000", "met"},
		{"7", "guarded UPDATE of 1 row on a walled table, of the rate without a wall", "≥ 0.85; synced ≥ 0.9", "by internal/wallbench", "-", "-", "-"},
		{"exec/guarded/hit/100B", "300", "1.50", "-", "1.42", "+124", "2", "+2", "-", "+1"},
		{"exec, goroutines: 4", "2", "33322", "0.990", "75.2", "73.0", "1068.6", "1121.6"},
		{"QuickWayOut/ordinary/1KB/1table", "2", "620", "640", "0", "-", "-"},
		{"Scaling/own/fencerow", "1", "140", "-", "-", "-", "-"},
		{"Scaling/own/fencerow", "2", "75", "-", "-", "-", "-"},
	} {
		require.Regexp(t, row(cells...), b.String())
	}
	for line := range strings.Lines(b.String()) {
		require.False(t, strings.Contains(line, "NaN") || strings.HasPrefix(line, "|") && !strings.HasSuffix(line, "|\n"), line)
	}
}

// Each target is about benchmarks that there are.
func TestTargetsAreMeasured(t *testing.T) {
	s := new(samples)
	for name, units := range benchmarks() {
		values := make(map[string]float64)
		for _, unit := range units {
			values[unit] = 1
		}
		s.add(name, result{1, values}, result{2, values})
	}
	for _, target := range targets() {
		require.NotEmpty(t, target.measure(s), target.what)
		require.Empty(t, target.measure(new(samples)), target.what)
	}
}

// benchmarks are all of them, with their units.
func benchmarks() map[string][]string {
	all, timed := make(map[string][]string), []string{"ns/op", "allocs/op"}
	for _, c := range scenarios() {
		for _, r := range c.rivals() {
			all["InProcess/"+c.name()+"/"+r.name] = timed
		}
	}
	for sort := range unprotectedSorts {
		for _, s := range quickSizes {
			for name := range quickTables {
				all["QuickWayOut/"+sort+"/"+s.name+"/"+name] = append(timed, "ns/KB")
			}
		}
	}
	for _, s := range guardedSizes {
		for _, p := range parsers(nil) {
			all["GuardedPlan/"+s.name+"/"+p.name] = timed
		}
	}
	for _, f := range fillings {
		all["Cache/"+string(f.kind)] = []string{"ns/op", "x-bound", "hits/op"}
	}
	for _, place := range scaling {
		for _, r := range wrappers {
			all["Scaling/"+place.where+"/"+r.name] = timed
		}
	}
	for _, name := range socketNames() {
		all[name.bench], all[oneCore+name.bench] = []string{"x-plain"}, []string{"x-plain"}
	}
	return all
}

func TestVerdict(t *testing.T) {
	most, least := target{limit: 0.9}, target{limit: 0.98, atLeast: true}
	require.Equal(t, []string{"met", "met", "NOT met"}, []string{most.verdict(0.89), most.verdict(0.9), most.verdict(0.91)})
	require.Equal(t, []string{"NOT met", "met", "met"}, []string{least.verdict(0.97), least.verdict(0.98), least.verdict(1)})
	require.Equal(t, "-", target{limit: 1, beside: true}.verdict(2))
	require.Equal(t, "NOT met", least.verdict(math.NaN()))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 3, 1, 2}))
	require.True(t, math.IsNaN(median(nil)))
}

func TestFlags(t *testing.T) {
	names := func(args ...string) (out []string) {
		o, err := parseFlags(args, io.Discard)
		require.NoError(t, err)
		for _, g := range groupsOf(o) {
			out = append(out, g.name)
		}
		return out
	}
	require.Subset(t, names(), []string{"inprocess", "misses", "cache", "scaling", "socket"})
	require.Equal(t, []string{"inprocess", "misses", "cache", "scaling"}, names("-skip-socket"))
	require.Equal(t, []string{"cache", "scaling"}, names("-only", "^cache|scal"))
	for _, args := range [][]string{{"-rounds", "0"}, {"-pairs", "0"}, {"-only", "("}, {"socket"}, {"-unknown"}} {
		_, err := parseFlags(args, io.Discard)
		require.Error(t, err, args)
	}
}
