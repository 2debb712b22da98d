package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/migrations"
)

func registerCommand(o *options) *cobra.Command {
	var t tableConfig
	c := &cobra.Command{
		Use:   "register [TABLE --mode strict|lease]",
		Short: "protect a table, or those of the configuration",
		Long: `register adds the token column to a table where it is missing, and writes the
table into the registry, which the driver reads. Without a table it registers
those of ` + configName + `. A table that is registered takes on the mode and the resource
given now.`,
		Args: arguments(0, 1, "one table or none"),
		RunE: o.onDatabase("registering", func(c *cobra.Command, dsn string, args []string) error {
			tables, err := o.tablesToRegister(c, args, t)
			if err != nil {
				return err
			}
			before := registered(c.Context(), dsn, tables)
			if err := migrations.Register(c.Context(), dsn, tables...); err != nil {
				return err
			}
			for i, t := range tables {
				fmt.Fprintln(o.env.stdout, registration(before[i], t))
			}
			return nil
		}),
	}
	c.Flags().StringVar(&t.Mode, "mode", "", "strict (one write per token and row) or lease (a holder writes as often as it likes)")
	c.Flags().StringVar(&t.TokenColumn, "token-column", "", "column that keeps the token (default last_token)")
	c.Flags().StringVar(&t.Resource, "resource", "", "resource whose token the table takes (default: the context's default token)")
	return c
}

func (o *options) tablesToRegister(c *cobra.Command, args []string, t tableConfig) ([]migrations.Table, error) {
	configured := []tableConfig{t}
	if len(args) == 0 {
		if c.Flags().Changed("mode") || c.Flags().Changed("token-column") || c.Flags().Changed("resource") {
			return nil, errors.New("no table for the flags: name it, as in fencerow register orders --mode lease")
		}
		config, err := loadConfig(o.config)
		if err != nil {
			return nil, err
		}
		if configured = config.Tables; len(configured) == 0 {
			return nil, errors.New("no table to register: name it, or write tables into " + configName)
		}
	} else {
		configured[0].Name = args[0]
	}
	var tables []migrations.Table
	for _, t := range configured {
		if _, err := t.table(); err != nil {
			return nil, err
		}
		tables = append(tables, migrations.Table{Name: t.Name, Mode: migrations.Mode(t.Mode), TokenColumn: t.TokenColumn, Resource: t.Resource})
	}
	return tables, nil
}

func unregisterCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "unregister TABLE", Short: "end the protection of a table, and take its wall off", Args: arguments(1, 1, "one table"),
		RunE: o.onDatabase("unregistering", func(c *cobra.Command, dsn string, args []string) error {
			before := registered(c.Context(), dsn, []migrations.Table{{Name: args[0]}})
			if err := migrations.Unregister(c.Context(), dsn, args[0]); err != nil {
				return err
			}
			text := args[0] + " was not registered"
			if before[0] != nil {
				text = "unregistered " + args[0]
			}
			_, err := fmt.Fprintln(o.env.stdout, text)
			return err
		}),
	}
}

func wallCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "wall TABLE off|report|enforce|attested", Short: "set what the server's own triggers do on a registered table",
		Args: arguments(2, 2, "a table and a level (off, report, enforce or attested)"),
		RunE: o.onDatabase("setting the wall", func(c *cobra.Command, dsn string, args []string) error {
			if err := migrations.Wall(c.Context(), dsn, args[0], migrations.WallLevel(args[1])); err != nil {
				return err
			}
			_, err := fmt.Fprintf(o.env.stdout, "the wall of %s is at level %s\n", args[0], args[1])
			return err
		}),
	}
}
