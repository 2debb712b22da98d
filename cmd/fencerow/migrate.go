package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/migrations"
)

func migrateCommand(o *options) *cobra.Command {
	c := group("migrate", "install schema fencing in the database, or take it out")
	c.AddCommand(
		&cobra.Command{
			Use: "up", Short: "install schema fencing, or bring it up to this version", Args: arguments(0, 0, "no arguments"),
			RunE: o.onDatabase("installing schema fencing", func(c *cobra.Command, dsn string, _ []string) error {
				if err := migrations.Up(c.Context(), dsn); err != nil {
					return err
				}
				return o.printVersion(c, dsn, "schema fencing is at version %d\n")
			}),
		},
		migrateDownCommand(o),
		&cobra.Command{
			Use: "version", Short: "print the last migration that has run", Args: arguments(0, 0, "no arguments"),
			RunE: o.onDatabase("reading the version", func(c *cobra.Command, dsn string, _ []string) error {
				return o.printVersion(c, dsn, "%d\n")
			}),
		},
		&cobra.Command{
			Use: "status", Short: "list the migrations, and exit with 1 if one has not run", Args: arguments(0, 0, "no arguments"),
			RunE: o.onDatabase("reading the version", o.migrateStatus),
		},
	)
	return c
}

func migrateDownCommand(o *options) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "down", Short: "remove schema fencing with the registry, the walls and the leases", Args: arguments(0, 0, "no arguments"),
		Long: `down ends every protection. Token columns stay, and so do their values: after
another up tokens start at 1 again, and every write is stale until these are set
to 0.`,
		RunE: o.onDatabase("removing schema fencing", func(c *cobra.Command, dsn string, _ []string) error {
			if !yes {
				return errors.New("migrate down ends every protection, and tokens then start at 1 again: read fencerow migrate down --help, and give --yes")
			}
			before, beforeErr := migrations.Version(c.Context(), dsn)
			if err := migrations.Down(c.Context(), dsn); err != nil {
				return err
			}
			text := "removed schema fencing"
			if beforeErr == nil && before == 0 {
				text = "schema fencing was not there"
			}
			_, err := fmt.Fprintln(o.env.stdout, text)
			return err
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

// onDatabase is the body of a command that works on a database.
func (o *options) onDatabase(doing string, run func(c *cobra.Command, dsn string, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		dsn, err := o.database()
		if err != nil {
			return err
		}
		o.env.progress.start("fencerow: " + doing)
		defer o.env.progress.stop()
		return run(c, dsn, args)
	}
}

func (o *options) printVersion(c *cobra.Command, dsn, format string) error {
	version, err := migrations.Version(c.Context(), dsn)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.env.stdout, format, version)
	return err
}

func (o *options) migrateStatus(c *cobra.Command, dsn string, _ []string) error {
	version, err := migrations.Version(c.Context(), dsn)
	if err != nil {
		return err
	}
	known, err := knownMigrations()
	if err != nil {
		return err
	}
	pending := false
	for _, m := range known {
		state := "applied"
		if m.number > version {
			state, pending = "pending", true
		}
		fmt.Fprintf(o.env.stdout, "%s  %s\n", state, m.name)
	}
	if last := known[len(known)-1].number; version > last {
		fmt.Fprintf(o.env.stdout, "the database is at version %d, ahead of this program\n", version)
	}
	if pending {
		return errFindings
	}
	return nil
}

type migration struct {
	number int64
	name   string
}

// knownMigrations lists those of this program, in order.
func knownMigrations() ([]migration, error) {
	files, err := fs.Glob(migrations.FS, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	var known []migration
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".sql")
		prefix, _, _ := strings.Cut(name, "_")
		number, err := strconv.ParseInt(prefix, 10, 64)
		if err != nil {
			return nil, err
		}
		known = append(known, migration{number, name})
	}
	return known, nil
}
