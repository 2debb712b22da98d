package migrations

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"strings"
)

// Plain returns the migrations without goose's annotations, as pairs of files
// like 00001_fencerow.up.sql and 00001_fencerow.down.sql, each a transaction of
// its own. That is what golang-migrate reads:
//
//	files, err := migrations.Plain()
//	source, err := iofs.New(files, ".")
//	m, err := migrate.NewWithSourceInstance("iofs", source, dsn)
//
// and what psql can run, in the order of their names; the command
//
//	go run github.com/fencerow/fencerow/migrations/plain > fencing.sql
//
// writes what goes up into one file. Which of them have run is then for that
// tool to know, or for you: use one way for a database.
func Plain() (fs.FS, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	names, err := fs.Glob(FS, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(FS, name)
		if err != nil {
			return nil, err
		}
		up, down, err := plain(string(text))
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "sql/"), ".sql")
		for suffix, text := range map[string]string{".up.sql": up, ".down.sql": down} {
			f, err := w.Create(base + suffix)
			if err != nil {
				return nil, err
			}
			if _, err := f.Write([]byte(text)); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
}

const annotation = "-- +goose "

// plain takes a goose file apart. What stands before both parts describes the
// first.
func plain(text string) (up, down string, err error) {
	head, rest, found := strings.Cut(text, annotation+"Up\n")
	up, down, ended := strings.Cut(rest, annotation+"Down\n")
	if !found || !ended {
		return "", "", fmt.Errorf("it has no %q or no %q", annotation+"Up", annotation+"Down")
	}
	return head + transaction(up), transaction(down), nil
}

func transaction(text string) string {
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, annotation) {
			b.WriteString(line)
		}
	}
	return b.String() + "\nCOMMIT;\n"
}
