package localpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// hostile are settings that an administrator may choose for a server, and with
// which careless SQL is slow, is cut short or finds something else: everything is
// compiled and done by parallel workers, plans are generic and are made of what
// the planner was told to avoid, and no statement may take long.
var hostile = []setting{
	{"jit", "on"}, {"jit_above_cost", "0"}, {"jit_inline_above_cost", "0"}, {"jit_optimize_above_cost", "0"},
	{"min_parallel_table_scan_size", "0"}, {"min_parallel_index_scan_size", "0"},
	{"parallel_setup_cost", "0"}, {"parallel_tuple_cost", "0"}, {"max_parallel_workers_per_gather", "2"},
	{"enable_hashjoin", "off"}, {"enable_hashagg", "off"}, {"enable_nestloop", "off"}, {"enable_material", "off"},
	{"join_collapse_limit", "1"}, {"from_collapse_limit", "1"},
	{"plan_cache_mode", "force_generic_plan"},
	{"statement_timeout", "60s"},
	{"quote_all_identifiers", "on"},
}

// isHostile reports whether servers are to be started with hostile settings.
func isHostile() bool { return os.Getenv(envHostile) != "" }

var versionNumber = regexp.MustCompile(`\d+`)

// forceParallel is the setting that has every plan made for a parallel worker, by
// the name that it has in the binaries' version.
func forceParallel(ctx context.Context, bin string) (setting, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return setting{}, fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	major, err := strconv.Atoi(versionNumber.FindString(string(out)))
	if err != nil {
		return setting{}, fmt.Errorf("read PostgreSQL's version from %q: %w", out, err)
	}
	if major < 16 {
		return setting{"force_parallel_mode", "on"}, nil
	}
	return setting{"debug_parallel_query", "on"}, nil
}
