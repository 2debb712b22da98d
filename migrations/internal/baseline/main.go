// Command baseline writes the migration that installs schema fencing,
// sql/00001_fencerow.sql, from its sources in sql/src. Package migrations runs
// it by go generate.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fencerow/fencerow/internal/localpg"
)

// target is the file that the command writes, in the directory of package
// migrations.
const target = "sql/00001_fencerow.sql"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "baseline:", err)
		os.Exit(1)
	}
}

// run makes the file twice: the manifest in it is read from a server that has run
// the first one.
func run(ctx context.Context) error {
	sources := os.DirFS("sql/src")
	first, err := build(sources, noManifest)
	if err != nil {
		return err
	}
	server, err := localpg.Start(ctx)
	if err != nil {
		return err
	}
	manifest, err := readManifest(ctx, server.DSN("postgres"), first)
	if err := errors.Join(err, server.Stop()); err != nil {
		return err
	}
	text, err := build(sources, manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}
