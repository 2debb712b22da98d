// Command baseline writes the migration that installs schema fencing,
// sql/00001_fencerow.sql, from its sources in sql/src. Package migrations runs
// it by go generate.
package main

import (
	"fmt"
	"os"
)

// target is the file that the command writes, in the directory of package
// migrations.
const target = "sql/00001_fencerow.sql"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "baseline:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := build(os.DirFS("sql/src"))
	if err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}
