package main

import (
	"context"
	"errors"
	"flag"
	"os/exec"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"fencerow": main})
}

// tests runs the tests and stops their server.
type tests struct{ *testing.M }

func (t tests) Run() int { return localpg.Run(t.M) }

// TestScripts runs testdata/script, one file for each behaviour. A script that
// needs a database says "database" and what is in it: "empty", "installed",
// "healthy" or "broken".
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FENCEROW_DATABASE_URL", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"database": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 || databases[args[0]] == nil {
					ts.Fatalf("usage: database empty|installed|healthy|broken")
				}
				ts.Setenv("FENCEROW_DATABASE_URL", database(t, args[0]))
			},
			// exits CODE PROGRAM ARGS... requires an exit code.
			"exits": exits,
			"sql":   sqlCommand,
		},
	})
}

// databases are what a script's database can have in it.
var databases = map[string]func(ctx context.Context, dsn string) error{
	"empty":     func(ctx context.Context, dsn string) error { return execSQL(ctx, dsn, ordersTable) },
	"installed": installed,
	"healthy":   healthy,
	"broken": func(ctx context.Context, dsn string) error {
		if err := healthy(ctx, dsn); err != nil {
			return err
		}
		return execSQL(ctx, dsn, `ALTER TABLE orders DISABLE TRIGGER "~fencing_update"; ALTER SEQUENCE fencing.write_epoch CACHE 20`)
	},
}

const ordersTable = `CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL)`

func installed(ctx context.Context, dsn string) error {
	if err := execSQL(ctx, dsn, ordersTable); err != nil {
		return err
	}
	return migrations.Up(ctx, dsn)
}

func healthy(ctx context.Context, dsn string) error {
	if err := installed(ctx, dsn); err != nil {
		return err
	}
	if err := migrations.Register(ctx, dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}); err != nil {
		return err
	}
	if err := migrations.Wall(ctx, dsn, "orders", migrations.WallEnforce); err != nil {
		return err
	}
	return execSQL(ctx, dsn, `INSERT INTO orders SELECT 1, 'open', fencing.next_token()`)
}

// database makes one with that in it.
func database(t testing.TB, content string) string {
	t.Helper()
	return localpg.Database(t, localpg.Template{Name: content, Setup: databases[content]})
}

func execSQL(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// sqlCommand runs statements in the script's database.
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: sql 'STATEMENTS'")
	}
	ts.Check(execSQL(context.Background(), ts.Getenv("FENCEROW_DATABASE_URL"), args[0]))
}

// A script's database is as it should be before it is broken.
func TestDatabases(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{"healthy": true, "broken": false} {
		findings, err := migrations.Doctor(t.Context(), database(t, content))
		require.NoError(t, err)
		require.Equal(t, want, migrations.Healthy(findings), "%s: %v", content, findings)
	}
}

// exits runs a program and requires its exit code: exits 1 fencerow lint ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}
