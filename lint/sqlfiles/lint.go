package sqlfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

// Config says what is linted, and how. A pattern is a path with "/", in which
// "*" stands for anything but "/" and "**" for any directories; it also means
// all that is below. Without a "/" it is the name of a file or directory
// anywhere.
type Config struct {
	Policy     *rewrite.Policy // required
	Root       string          // the directory that patterns are relative to; the working directory if empty
	Exclude    []string        // patterns of what isn't read
	Migrations []string        // patterns of files that run over a plain connection

	// Progress is called before a file is read, with the number of those that
	// have been.
	Progress func(files int, path string)
}

// Result is what there is to say of the files.
type Result struct {
	Files      int            // read
	Skipped    int            // files in directories, by whose names they are for another database
	Statements int            // in them
	Cleared    int            // of these, without the parser: they name nothing that is protected
	Suppressed int            // findings that a suppression hides
	Unparsed   map[string]int // statements that could not be analysed, by reason
	Findings   []lint.Finding // sorted

	// NotAnalysed are those of Unparsed that are not findings: statements of
	// migrations that name no protected table. The text is the reason.
	NotAnalysed []Note

	Notes     []Note   // in the files' order
	Excluded  []string // paths that were named, and are excluded
	Unmatched []string // patterns that mean nothing there is
}

// Note is what was passed over in a file.
type Note struct {
	Path string
	Line int // the first one
	Text string
}

// String returns the note on one line.
func (n Note) String() string { return fmt.Sprintf("%s:%d: note: %s", n.Path, n.Line, n.Text) }

// Lint reads files, and the files named *.sql in directories and below, but not
// in vendor, node_modules and those whose name begins with "." or "_", nor files
// for another database: a.mysql.up.sql, sqlite/a.sql. Links in directories are
// not followed.
func Lint(ctx context.Context, c Config, paths ...string) (*Result, error) {
	if c.Policy == nil {
		return nil, errors.New("lint SQL files: no policy: name the protected tables with rewrite.NewPolicy")
	}
	l := &linter{Config: c, result: &Result{Unparsed: map[string]int{}}, used: map[string]bool{}}
	var err error
	if l.root, err = filepath.Abs(c.Root); err != nil {
		return nil, err
	}
	if err := l.compile(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, path := range paths {
		files, err := l.find(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			abs, err := filepath.Abs(file)
			if err != nil {
				return nil, err
			}
			if seen[abs] {
				continue
			}
			seen[abs] = true
			if err := l.read(ctx, file); err != nil {
				return nil, err
			}
		}
	}
	l.result.Findings = lint.MergeFindings(l.result.Findings)
	l.reportUnmatched(paths)
	return l.result, nil
}

type linter struct {
	Config
	root                string
	exclude, migrations []pattern
	used                map[string]bool // patterns that meant something
	result              *Result
}

func (l *linter) compile() error {
	for _, list := range []struct {
		from []string
		to   *[]pattern
	}{{l.Exclude, &l.exclude}, {l.Migrations, &l.migrations}} {
		for _, text := range list.from {
			p, err := newPattern(text)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, p)
		}
	}
	return nil
}

// find lists the files to read under a path, sorted.
func (l *linter) find(ctx context.Context, root string) ([]string, error) {
	var files []string
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root = filepath.Clean(root) + string(filepath.Separator) // so that a link that is named is followed
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case l.matches(l.exclude, path) || path != root && d.IsDir() && isSkipped(d.Name()):
			if path == root {
				l.result.Excluded = append(l.result.Excluded, filepath.ToSlash(filepath.Clean(root)))
			}
			if d.IsDir() {
				return filepath.SkipDir
			}
		case path == root && !d.IsDir():
			files = append(files, path)
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), ".sql"):
			if isOtherDatabase(strings.TrimPrefix(path, root)) {
				l.result.Skipped++
			} else {
				files = append(files, path)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for SQL files: %w: name another file or directory", err)
	}
	if err != nil {
		return nil, fmt.Errorf("look for SQL files: %w", err)
	}
	return files, nil
}

func isSkipped(dir string) bool {
	return dir == "vendor" || dir == "node_modules" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

// otherDatabases are names in paths of files that are not for PostgreSQL.
var otherDatabases = map[string]bool{"mysql": true, "mariadb": true, "sqlite": true, "sqlite3": true, "cockroach": true, "cockroachdb": true, "mssql": true, "sqlserver": true, "clickhouse": true}

func isOtherDatabase(path string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '.' || r == '/' || r == filepath.Separator }),
		func(part string) bool { return otherDatabases[part] })
}

// matches reports whether one of the patterns means the path.
func (l *linter) matches(patterns []pattern, path string) bool {
	if len(patterns) == 0 {
		return false
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(l.root, abs)
	if err != nil {
		return false
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	found := false
	for _, p := range patterns {
		if p.matches(parts) {
			l.used[p.String()], found = true, true
		}
	}
	return found
}

// reportUnmatched finds the patterns that mean nothing. One that may mean what lies
// elsewhere is left alone.
func (l *linter) reportUnmatched(paths []string) {
	all := slices.ContainsFunc(paths, func(path string) bool {
		abs, err := filepath.Abs(path)
		if err != nil {
			return false
		}
		rel, err := filepath.Rel(abs, l.root)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
	for i, p := range slices.Concat(l.exclude, l.migrations) {
		if l.used[p.String()] || !all && slices.Contains(p, "**") {
			continue
		}
		if there, err := filepath.Glob(filepath.Join(l.root, filepath.FromSlash(p.String()))); err == nil && len(there) == 0 {
			l.result.Unmatched = append(l.result.Unmatched, slices.Concat(l.Exclude, l.Migrations)[i])
		}
	}
}

func (l *linter) read(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.Progress != nil {
		l.Progress(l.result.Files, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read SQL: %w", err)
	}
	l.lintText(filepath.ToSlash(path), string(data), l.matches(l.migrations, path))
	return nil
}

// lintText checks the text of a file.
func (l *linter) lintText(path, text string, migration bool) {
	l.result.Files++
	f := readFile(path, text, migration)
	l.result.Notes = append(l.result.Notes, f.notes...)
	l.result.Statements += len(f.statements)
	c := &fileCheck{file: f, policy: l.Policy, result: l.result}
	c.checkStatements()
}
