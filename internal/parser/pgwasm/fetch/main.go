// Command fetch copies the parser of a published go-pgquery into package pgwasm. The
// go command verifies the module by the checksum database.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const module = "github.com/wasilibs/go-pgquery@v0.0.0-20240606042535-c0843d6592cc"

// files are the names in this package of the module's files.
var files = map[string]string{
	"internal/wasm/libpg_query.so": "libpg_query.wasm",
	"LICENSE":                      "LICENSE.wasilibs",
	"NOTICE.txt":                   "LICENSE.libpg_query",
}

func main() {
	if err := fetch(); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func fetch() error {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return fmt.Errorf("go mod download %s: %w", module, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return fmt.Errorf("go mod download %s: %w", module, err)
	}
	for from, to := range files {
		data, err := os.ReadFile(filepath.Join(downloaded.Dir, filepath.FromSlash(from)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
