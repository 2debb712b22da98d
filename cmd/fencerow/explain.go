package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/rewrite"
)

// maxExplained bounds what is read from standard input, in bytes.
const maxExplained = 16 << 20

func explainCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain 'SQL' | - | RULE",
		Short: "say what a statement does to protected tables, and what it lacks",
		Long: `explain says which protected tables a statement writes and what proves that it
may be sent, or which rule refuses it and how it is written with its guard.
With "-" it reads the statement from standard input. With the id of a rule, such
as FR101, it prints the rule's page.`,
		Example: `  fencerow explain 'UPDATE orders SET status = $1 WHERE id = $2'
  fencerow explain FR101`,
		Args: arguments(1, 1, "one statement, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			text := args[0]
			if page := rewrite.Rule(strings.ToUpper(strings.TrimSpace(text))).Doc(); page != "" {
				_, err := io.WriteString(o.env.stdout, page)
				return err
			}
			if text == "-" {
				data, err := io.ReadAll(io.LimitReader(o.env.stdin, maxExplained))
				if err != nil {
					return fmt.Errorf("read the statement: %w", err)
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

func (o *options) explain(c *cobra.Command, text string) error {
	config, err := loadConfig(o.config)
	if err != nil {
		return err
	}
	policy, err := o.policy(c.Context(), config)
	if err != nil {
		return err
	}
	plan := policy.Plan(text)
	if _, err := io.WriteString(o.env.stdout, plan.Explain()); err != nil {
		return err
	}
	if plan.Refusal() != nil {
		return errFindings
	}
	return nil
}
