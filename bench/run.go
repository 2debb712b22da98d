package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// module is where the benchmarks are.
const module = "github.com/fencerow/fencerow/bench"

// group is a benchmark function with its sub-benchmarks, and how it is run.
type group struct {
	name      string
	bench     string // the functions, as a regular expression
	benchtime string
	cpus      string // -test.cpu; empty for what the machine has
	prefix    string // of the names in the tables
	once      bool   // run in the first round only: what it counts is hardly ever another
}

// groupNames are the names of all groups, as messages have them.
const groupNames = "inprocess, misses, cache, scaling, socket, socket-onecore"

// oneCore begins the names of what was run on one core.
const oneCore = "OneCore/"

// runner runs the groups by one compiled binary.
type runner struct {
	dir    string // of the module
	temp   string
	binary string
	out    string
	groups []group
	begun  map[string]bool // the groups that have output of this run
}

// newRunner compiles the benchmarks and makes room for their output.
func newRunner(ctx context.Context, o *options) (_ *runner, err error) {
	r := &runner{groups: groupsOf(o), begun: make(map[string]bool)}
	if len(r.groups) == 0 {
		return nil, fmt.Errorf("-only %q leaves no group: there are %s (and -skip-socket leaves out those with socket)", o.only, groupNames)
	}
	dir, err := goTool(ctx, "list", "-f", "{{.Dir}}", module)
	if err != nil {
		return nil, fmt.Errorf("find module %s, run this in its repository: %w", module, err)
	}
	r.dir = strings.TrimSpace(string(dir))
	if o.out == "" {
		o.out = filepath.Join(r.dir, "results")
	}
	if r.out, err = filepath.Abs(o.out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}
	if r.temp, err = os.MkdirTemp("", "fencerow-bench"); err != nil {
		return nil, err
	}
	r.binary = filepath.Join(r.temp, "bench.test")
	if runtime.GOOS == "windows" {
		r.binary += ".exe"
	}
	if _, err := goTool(ctx, "test", "-c", "-o", r.binary, module); err != nil {
		r.close()
		return nil, fmt.Errorf("compile the benchmarks: %w", err)
	}
	return r, nil
}

// measure runs a group once and adds what it prints to its file.
func (r *runner) measure(ctx context.Context, g group) error {
	args := []string{"-test.run", "^$", "-test.bench", g.bench, "-test.count", "1", "-test.benchtime", g.benchtime, "-test.timeout", "30m"}
	if g.cpus != "" {
		args = append(args, "-test.cpu", g.cpus)
	}
	args = append([]string{r.binary}, args...)
	if g.prefix == oneCore {
		args = append([]string{"taskset", "-c", "0"}, args...) // the server inherits it
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", g.name, err, out)
	}
	mode := os.O_APPEND
	if !r.begun[g.name] { // what an earlier run has left stays until then
		mode = os.O_TRUNC
	}
	r.begun[g.name] = true
	file, err := os.OpenFile(r.file(g), mode|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(out)
	return errors.Join(err, file.Close())
}

// samples reads what all groups have printed.
func (r *runner) samples() (*samples, error) {
	all := new(samples)
	for _, g := range r.groups {
		text, err := os.ReadFile(r.file(g))
		if err != nil {
			return nil, err
		}
		if err := all.read(bytes.NewReader(text), g.prefix); err != nil {
			return nil, fmt.Errorf("%s: %w", r.file(g), err)
		}
	}
	return all, nil
}

func (r *runner) file(g group) string { return filepath.Join(r.out, g.name+".txt") }

// close removes the binary; an error would leave no more than a file in the
// system's own place for such.
func (r *runner) close() { _ = os.RemoveAll(r.temp) }

// groupsOf returns the groups to run. Those that are not timed by their number
// of operations have a benchtime of their own.
func groupsOf(o *options) []group {
	cpus, pairs := "1", strconv.Itoa(o.pairs)+"x"
	if n := runtime.NumCPU(); n > 1 {
		cpus += "," + strconv.Itoa(n)
	}
	groups := []group{
		{name: "inprocess", bench: "^BenchmarkInProcess$", benchtime: o.benchtime},
		{name: "misses", bench: "^(BenchmarkQuickWayOut|BenchmarkGuardedPlan)$", benchtime: o.benchtime},
		{name: "cache", bench: "^BenchmarkCache$", benchtime: "1x", once: true},
		{name: "scaling", bench: "^BenchmarkScaling$", benchtime: o.benchtime, cpus: cpus},
		{name: "socket", bench: "^BenchmarkSocket$", benchtime: pairs},
	}
	// a server that runs already can't be put onto a core
	if runtime.NumCPU() > 1 && os.Getenv("FENCEROW_DATABASE_URL") == "" && exec.Command("taskset", "-c", "0", "true").Run() == nil {
		groups = append(groups, group{name: "socket-onecore", bench: "^BenchmarkSocket$/.*/^at[14]$", benchtime: pairs, prefix: oneCore})
	}
	return slices.DeleteFunc(groups, func(g group) bool {
		return !o.only.MatchString(g.name) || !o.socket && strings.HasPrefix(g.name, "socket")
	})
}

func goTool(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, &complaint)
	}
	return out, nil
}
