package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

const (
	head = `-- Schema fencing: durable tokens, the registry of protected tables, leases, the wall, seals, tombstones, repairs and the doctor.
--
-- Code generated from the files in src by go generate; DO NOT EDIT. The comment at the head of each part says what it is for and
-- what its limits are.

-- +goose Up

-- What follows is resolved in pg_catalog only, whatever search_path the migrating role has; the last statement puts it back,
-- because goose then writes its version table under a bare name.
` + enterPath
	enterPath = `SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
`
	leavePath = `
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);
`
	downHead = "\n-- +goose Down\n\n" + enterPath
)

// downFile is the source of what comes first when the schema goes: it takes the
// walls off. What drops the objects afterwards is derived from the other files.
const downFile = "99_down.sql"

// build joins the sources, in the order of their names, into one goose file.
// manifest is what the schema is made of, which the file says, too: see readManifest.
func build(sources fs.FS, manifest string) ([]byte, error) {
	names, err := fs.Glob(sources, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	templates, err := sourceTemplates(sources, manifest)
	if err != nil {
		return nil, err
	}
	var up, down strings.Builder
	for _, name := range names {
		source, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		text, err := expand(templates, name, string(source))
		if err != nil {
			return nil, err
		}
		part := &up
		if name == downFile {
			part = &down
		}
		fmt.Fprintf(part, "\n-- ---- src/%s\n\n%s", name, text)
	}
	drops, err := dropStatements(up.String())
	if err != nil {
		return nil, err
	}
	text := head + markStatements(up.String()) + leavePath + downHead + markStatements(down.String()) + "\n" + drops + "\n" + markStatements(dropSchema) + leavePath
	return []byte(text), nil
}

// markStatements puts goose's annotations around each statement with
// semicolons in it, which goose would cut there: those with $$ quotes.
func markStatements(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		begins := strings.HasPrefix(line, "CREATE FUNCTION ") || line == "DO $$\n"
		if begins {
			b.WriteString("-- +goose StatementBegin\n")
		}
		b.WriteString(line)
		if strings.HasPrefix(line, "END $$;") || line == "$$;\n" {
			b.WriteString("-- +goose StatementEnd\n")
		}
	}
	return b.String()
}

// dropSchema is the last statement of Down. migrations.Up keeps its version
// table in the schema, and migrations.Down drops the two together.
const dropSchema = `-- migrations.Up keeps its version table in the schema; migrations.Down drops the two together
DO $$
BEGIN
  DROP SCHEMA fencing;
EXCEPTION WHEN dependent_objects_still_exist THEN
  NULL;
END $$;
`

var (
	created      = regexp.MustCompile(`(?m)^CREATE (?:(TABLE|SEQUENCE|FUNCTION) (fencing\.\w+)|TRIGGER (\w+) [^;]*? ON (fencing\.\w+))`)
	defaultValue = regexp.MustCompile(` DEFAULT [^,)]*`)
)

// dropStatements drops the objects that the sources create, in the reverse order
// and each by itself: what somebody else has put into the schema stays, and what
// somebody else has built on an object stops it.
func dropStatements(up string) (string, error) {
	var drops []string
	for _, m := range created.FindAllStringSubmatchIndex(up, -1) {
		if m[2] < 0 {
			drops = append(drops, fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s;\n", up[m[6]:m[7]], up[m[8]:m[9]]))
			continue
		}
		kind, object := up[m[2]:m[3]], up[m[4]:m[5]]
		if kind == "FUNCTION" {
			arguments, err := parenthesized(up[m[1]:])
			if err != nil {
				return "", fmt.Errorf("%s: %w", object, err)
			}
			object += defaultValue.ReplaceAllString(arguments, "")
		}
		drops = append(drops, fmt.Sprintf("DROP %s %s;\n", kind, object))
	}
	slices.Reverse(drops)
	return strings.Join(drops, ""), nil
}

// parenthesized returns the list in parentheses at the start of the text, on one
// line.
func parenthesized(text string) (string, error) {
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return strings.Join(strings.Fields(text[:i+1]), " "), nil
			}
		}
		if depth == 0 {
			break
		}
	}
	return "", fmt.Errorf("it has no list of arguments")
}
