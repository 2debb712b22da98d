// Command plain writes the migrations that install schema fencing as one SQL
// file for psql:
//
//	go run github.com/fencerow/fencerow/migrations/plain > fencing.sql
//	psql -v ON_ERROR_STOP=1 -f fencing.sql
package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/fencerow/fencerow/migrations"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := migrations.Plain()
	if err != nil {
		return err
	}
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(text); err != nil {
			return err
		}
	}
	return nil
}
