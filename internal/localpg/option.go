package localpg

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Option changes how a server is started.
type Option func(*options)

type options struct {
	settings []setting
	data     func(ctx context.Context, dir string) error // nil for initdb
}

type setting struct{ name, value string }

// WithSetting sets a server parameter, such as fsync or max_connections. Of
// two values for one parameter the later one counts.
func WithSetting(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, setting{name, value}) }
}

// WithData has the server start on what write puts into its data directory,
// such as a copy of another server's, where initdb would make a new one. The
// files become those of the user that the server runs as.
func WithData(write func(ctx context.Context, dir string) error) Option {
	return func(o *options) { o.data = write }
}

// defaults are what a server is given instead of PostgreSQL's own settings. None of
// them changes what a statement does or how it is planned. full_page_writes and
// synchronous_commit stay on: without them a SIGKILL, which tests do send, could
// lose or tear committed data.
var defaults = []setting{
	{"fsync", "off"},           // quick, and no test cuts the power
	{"max_connections", "200"}, // many tests at once share a server
	{"shared_buffers", "16MB"}, // many test binaries have servers at once
	{"timezone", "UTC"},        // initdb would take the machine's
	{"log_timezone", "UTC"},    // likewise
}

// reserved parameters say where the server lives; DSN depends on them.
var reserved = []string{
	"data_directory", "listen_addresses", "port", "unix_socket_directories", "unix_socket_permissions",
	"log_destination", "logging_collector",
}

func newOptions(opts []Option) (*options, error) {
	o := &options{settings: slices.Clone(defaults)}
	if isHostile() {
		o.settings = append(o.settings, hostile...)
	}
	for _, opt := range opts {
		opt(o)
	}
	for _, s := range o.settings {
		if !isParameter(s.name) {
			return nil, fmt.Errorf("%q is not the name of a server parameter: pass one that SHOW accepts", s.name)
		}
		if slices.Contains(reserved, strings.ToLower(s.name)) {
			return nil, fmt.Errorf("server parameter %s is set by localpg: leave it out", s.name)
		}
	}
	return o, nil
}

// isParameter keeps "a=b" and "-D" out of the command line's -c name=value.
// Extensions' parameters have a dot.
func isParameter(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

// isSynced says whether the server syncs to disk, so that it has to be on one.
func (o *options) isSynced() bool {
	var fsync string
	for _, s := range o.settings {
		if strings.EqualFold(s.name, "fsync") {
			fsync = s.value
		}
	}
	return !strings.EqualFold(fsync, "off")
}

// args are the settings as postgres takes them.
func (o *options) args() []string {
	var args []string
	for _, s := range o.settings {
		args = append(args, "-c", s.name+"="+s.value)
	}
	return args
}
