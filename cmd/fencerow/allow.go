package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/migrations"
)

func allowCommand(o *options) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "allow FUNCTION --reason WHY",
		Short: "have the driver let a function through that it would refuse",
		Long: `allow has the driver let a function through although it takes it for one that
writes protected tables: as fencerow allow 'public.run(text)' --reason 'writes
reports only'. It holds while the function's definition stays as it is.`,
		Args: arguments(1, 1, "one function"),
		RunE: o.onDatabase("allowing", func(c *cobra.Command, dsn string, args []string) error {
			if err := migrations.AllowFunction(c.Context(), dsn, args[0], reason); err != nil {
				return err
			}
			_, err := fmt.Fprintf(o.env.stdout, "allowed %s as it is now\n", args[0])
			return err
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "why it may be called; kept in fencing.allowed_function")
	return c
}

func disallowCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "disallow FUNCTION", Short: "end what allow did", Args: arguments(1, 1, "one function"),
		RunE: o.onDatabase("disallowing", func(c *cobra.Command, dsn string, args []string) error {
			if err := migrations.DisallowFunction(c.Context(), dsn, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(o.env.stdout, "%s is not allowed\n", args[0])
			return err
		}),
	}
}
