package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/lint/sqlfiles"
)

// The forms of output.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatGitHub = "github"
)

func lintCommand(o *options) *cobra.Command {
	var paths []string
	var format string
	c := &cobra.Command{
		Use:   "lint --sql DIR|FILE...",
		Short: "find writes without a proven guard in SQL files",
		Long: `lint reads SQL files, and the files *.sql in directories and below, and finds
what fencerow would refuse, or in migrations, what the wall would.

Hide a finding by a comment on the line before the statement, or at the end of
one of its lines:  -- fencerow:ignore FR101 and the reason`,
		Example: `  fencerow lint --sql db
  fencerow lint --sql db/queries --sql db/migrations --format github`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(paths) == 0 && len(args) > 0 {
				return fmt.Errorf("nothing to lint: write --sql before what is SQL, as in %s --sql %s", c.CommandPath(), args[0])
			}
			if len(paths) == 0 {
				return fmt.Errorf("nothing to lint: name a directory or files, as in %s --sql db", c.CommandPath())
			}
			if err := checkFormat(format, formatText, formatJSON, formatGitHub); err != nil {
				return err
			}
			result, err := o.lint(c, append(slices.Clone(paths), args...))
			if err != nil {
				return err
			}
			switch format {
			case formatJSON:
				err = printLintJSON(o.env.stdout, result)
			case formatGitHub:
				printLintGitHub(o.env.stdout, result)
			default:
				printLintText(o.env, result)
			}
			if err == nil && len(result.Findings) > 0 {
				err = errFindings
			}
			return err
		},
	}
	c.Flags().StringArrayVar(&paths, "sql", nil, "directory or file of SQL; may be given several times, and further ones without the flag")
	c.Flags().StringVar(&format, "format", formatText, "form of the output: text, json or github (annotations)")
	return c
}

func (o *options) lint(c *cobra.Command, paths []string) (*sqlfiles.Result, error) {
	config, err := loadConfig(o.config)
	if err != nil {
		return nil, err
	}
	policy, err := o.policy(c.Context(), config)
	if err != nil {
		return nil, err
	}
	progress := o.env.progress
	progress.start("fencerow: looking for files")
	defer progress.stop()
	lint := sqlfiles.Config{
		Policy: policy, Root: filepath.Dir(config.path), Exclude: config.Exclude, Migrations: config.Migrations,
		Progress: func(files int, path string) { progress.set("fencerow: %d files read, now %s", files, path) },
	}
	result, err := sqlfiles.Lint(c.Context(), lint, paths...)
	progress.stop()
	if err != nil {
		return nil, err
	}
	where := o.config
	if where == "" {
		where = configName
	}
	for _, path := range result.Excluded {
		fmt.Fprintf(o.env.stderr, "%s is excluded by %s\n", path, where)
	}
	for _, pattern := range result.Unmatched {
		fmt.Fprintf(o.env.stderr, "%s: note: %q, of exclude or migrations, matches nothing\n", where, pattern)
	}
	if result.Files == 0 && len(result.Excluded) == 0 {
		return nil, fmt.Errorf("no .sql file in %s: name another directory, or a file itself", list(paths))
	}
	return result, nil
}

func checkFormat(format string, known ...string) error {
	if !slices.Contains(known, format) {
		return fmt.Errorf("unknown format %q: choose %s", format, list(known))
	}
	return nil
}

// list joins words as prose does.
func list(words []string) string {
	out := ""
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			out += " or "
		case i > 0:
			out += ", "
		}
		out += w
	}
	return out
}
