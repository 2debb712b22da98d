package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// options are the flags of all commands.
type options struct {
	env         *environment
	config      string
	databaseURL string
}

// release is the version of a release, which goreleaser's ldflags set. The go command
// knows the version otherwise.
var release string

const databaseVariable = "FENCEROW_DATABASE_URL"

func newRoot(env *environment) *cobra.Command {
	o := &options{env: env}
	root := &cobra.Command{
		Use:           "fencerow",
		Short:         "keep stale lock holders out of protected PostgreSQL tables",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: `fencerow finds writes of protected tables that prove no fencing token, and
installs and examines what refuses them in the database.

exit codes: 0 clean, 1 findings, 2 an error`,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&o.config, "config", "", "configuration file (default: "+configName+" in the working directory or above)")
	flags.StringVar(&o.databaseURL, "database-url", "", "connection string (default: $"+databaseVariable+", where no other user of the machine can read a password)")
	root.AddCommand(lintCommand(o), explainCommand(o), migrateCommand(o), registerCommand(o), unregisterCommand(o), wallCommand(o), allowCommand(o), disallowCommand(o), doctorCommand(o), versionCommand(o))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, c.CommandPath())
	})
	return root
}

// database is the connection string for a command that needs one.
func (o *options) database() (string, error) {
	if o.databaseURL != "" {
		return o.databaseURL, nil
	}
	if dsn := o.env.getenv(databaseVariable); dsn != "" {
		return dsn, nil
	}
	return "", errors.New("no database: set " + databaseVariable + " to its connection string, or give --database-url")
}

// arguments checks how many there are, and says which are meant.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return fmt.Errorf("%s takes %s, and there are %d arguments: see %[1]s --help", c.CommandPath(), what, len(args))
		}
		return nil
	}
}

// group is a command that has others below it.
func group(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s has no command %q: see %[1]s --help", c.CommandPath(), args[0])
		}
		return c.Help()
	}}
}

func versionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of this program, its grammar and its migrations",
		Args:  arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			version := cmp.Or(release, "(unknown)")
			if info, ok := debug.ReadBuildInfo(); ok && release == "" && info.Main.Version != "" {
				version = info.Main.Version
			}
			known, err := knownMigrations()
			if err != nil {
				return err
			}
			fmt.Fprintf(o.env.stdout, "fencerow %s\ngrammar of PostgreSQL 16\nmigrations up to %d\n", version, known[len(known)-1].number)
			return nil
		},
	}
}
