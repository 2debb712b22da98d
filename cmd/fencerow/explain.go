package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/docs"
	"github.com/fencerow/fencerow/lint/sqlfiles"
	"github.com/fencerow/fencerow/rewrite"
)

// maxExplained bounds what is read from standard input, in bytes.
const maxExplained = 16 << 20

// explainable is what has a page, and is no statement.
var explainable = regexp.MustCompile(`^(FR|FN|D)[0-9]+$`)

// explanation returns the page of a rule, of an error of the wall or of a finding of
// the doctor, by its id. The page is empty if there is none of that id.
func explanation(id string) string {
	return cmp.Or(rewrite.Rule(id).Doc(), docs.WallError(id), docs.Finding(id))
}

// behindFlags puts a statement that begins with a comment behind "--", so that
// it isn't taken for a flag: no flag has white space in its name.
func behindFlags(args []string) []string {
	if slices.Contains(args, "--") {
		return args
	}
	isStatement := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(arg, "--") && strings.ContainsAny(name, " \t\r\n")
	}
	i := slices.IndexFunc(args, isStatement)
	if i < 0 || !slices.Contains(args[:i], "explain") {
		return args
	}
	return append(slices.Delete(slices.Clone(args), i, i+1), "--", args[i])
}

func explainCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain 'SQL' | - | ID",
		Short: "say what a statement does to protected tables, and what it lacks, or what an id means",
		Long: `explain says which protected tables a statement writes and what proves that it
may be sent, or which rule refuses it and how it is written with its guard.
It may have the placeholders that files have. With "-" it reads the statement from standard input.

With an id it prints what there is to know of it, without a network: of a rule
(FR101), of an error of the wall (FN001) or of a finding of the doctor (D203).`,
		Example: `  fencerow explain 'UPDATE orders SET status = $1 WHERE id = $2'
  fencerow explain FR101
  fencerow explain D203`,
		Args: arguments(1, 1, "one statement, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			text := args[0]
			if id := strings.ToUpper(strings.TrimSpace(text)); explainable.MatchString(id) {
				page := explanation(id)
				if page == "" {
					return fmt.Errorf("nothing has the id %s: docs/rules.md lists the rules (FR101), docs/wall.md the errors of the wall (FN001), docs/doctor.md the findings of the doctor (D203)", id)
				}
				_, err := io.WriteString(o.env.stdout, page)
				return err
			}
			if text == "-" {
				data, err := readAll(c.Context(), io.LimitReader(o.env.stdin, maxExplained+1))
				if err != nil {
					return fmt.Errorf("read the statement: %w", err)
				}
				if len(data) > maxExplained {
					return fmt.Errorf("the statement is longer than %d MiB, of which no part is explained: give a shorter one", maxExplained>>20)
				}
				text = string(data)
			}
			if strings.TrimSpace(text) == "" {
				return fmt.Errorf("no statement: give it in quotes, as in %s 'DELETE FROM orders'", c.CommandPath())
			}
			return o.explain(c, text)
		},
	}
}

// readAll is [io.ReadAll] until the context ends: nothing else ends a read of a
// terminal.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	var data []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		data, err = io.ReadAll(r)
	}()
	select {
	case <-done:
		return data, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (o *options) explain(c *cobra.Command, text string) error {
	config, err := loadConfig(o.config)
	if err != nil {
		return err
	}
	policy, err := o.policy(c.Context(), config)
	if err != nil {
		return err
	}
	said, refused := sqlfiles.Explain(policy, text)
	if _, err := io.WriteString(o.env.stdout, said); err != nil {
		return err
	}
	if refused {
		return errFindings
	}
	return nil
}
