package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/fencerow/fencerow/internal/localpg"
)

func main() {
	out := flag.String("out", "../../rewrite/testdata/captured", "directory to write LIBRARY.jsonl files to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}

// run captures every library on a server of its own. An existing server could
// be of another version, and some libraries ask for that.
func run(ctx context.Context, out string) (err error) {
	srv, err := localpg.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return captureAll(ctx, srv, out)
}
