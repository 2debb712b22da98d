package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	modulePath = "github.com/fencerow/fencerow"
	pgxPath    = "github.com/jackc/pgx/v5"
)

// suite is pgx's suite as it lies in the module cache.
type suite struct {
	root    string // of this module
	version string // pgx's
	source  *source
}

// find reads the suite of the pgx version in go.mod.
func find(ctx context.Context) (*suite, error) {
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return nil, err
	}
	module, err := goOutput(ctx, root, "list", "-m", "-f", "{{.Dir}}\n{{.Version}}", pgxPath)
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(module, "\n")
	text, err := os.ReadFile(filepath.Join(dir, "stdlib", "sql_test.go"))
	if err != nil {
		return nil, err
	}
	source, err := parse(string(text))
	return &suite{root, version, source}, err
}

// binaries are the suite compiled as it is, and swapped.
type binaries struct {
	dir             string // theirs, temporary
	plain, fencerow string
}

func build(ctx context.Context, s *suite) (*binaries, error) {
	dir, err := os.MkdirTemp("", "fencerow-pgxsuite-")
	if err != nil {
		return nil, err
	}
	// Windows runs no other names, and elsewhere any name will do.
	b := &binaries{dir, filepath.Join(dir, "plain.exe"), filepath.Join(dir, "fencerow.exe")}
	if err := b.compile(ctx, s); err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return b, nil
}

func (b *binaries) compile(ctx context.Context, s *suite) error {
	if _, err := goOutput(ctx, s.root, "test", "-c", "-vet=off", "-o", b.plain, stdlibPath); err != nil {
		return err
	}
	swapped, err := s.source.swapped()
	if err != nil {
		return err
	}
	overlay, err := b.overlay(s.root, swapped)
	if err != nil {
		return err
	}
	_, err = goOutput(ctx, s.root, "test", "-c", "-vet=off", "-o", b.fencerow, "-overlay", overlay, "./internal/pgxsuite/suite")
	return err
}

// overlay lets the go command see the swapped suite as a package of this
// module, which it must be to use what is internal here. On disk the package
// doesn't exist, which is why nothing may run in it, as vet would.
func (b *binaries) overlay(root, swapped string) (string, error) {
	file := filepath.Join(b.dir, "sql_test.go")
	if err := os.WriteFile(file, []byte(swapped), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(root, "internal", "pgxsuite", "suite", "sql_test.go"): file}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

func (b *binaries) remove() error { return os.RemoveAll(b.dir) }

// goOutput runs the go command. The workspace is left out: it might choose
// another version of pgx than go.mod does.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
