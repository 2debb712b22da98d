package driver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// allowedSchema has a table without a wall and functions that write it: by SQL that
// they make, or by their own, or by another function.
const allowedSchema = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'new');
	CREATE TABLE audit (id int); CREATE SCHEMA app; SELECT fencing.register('orders', 'lease');
	CREATE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE q || ' WHERE true'; END $$;
	CREATE FUNCTION calls() RETURNS void LANGUAGE sql AS $$ SELECT run('UPDATE or' || 'ders SET status = status') $$;
	CREATE FUNCTION touch() RETURNS int LANGUAGE sql AS $$ UPDATE orders SET status = 'touched' RETURNING 1 $$;
	CREATE FUNCTION touch(n int) RETURNS int LANGUAGE sql AS $$ SELECT n $$;
	CREATE PROCEDURE settle(a int) LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET status = 'settled' WHERE id = a; END $$;
	CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE or' || 'ders SET status = ''noted'''; RETURN NEW; END $$;
	CREATE TRIGGER noted AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION noted();
	CREATE FUNCTION stamped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW := jsonb_populate_record(NEW, '{"status": "stamped"}'); RETURN NEW; END $$;
	CREATE TRIGGER stamped BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stamped();`

const (
	callRun    = `SELECT run('UPDATE orders SET status = status')`
	callCalls  = `SELECT calls()`
	callTouch  = `SELECT touch()`
	callSettle = `CALL settle(1)`
	fireNoted  = `INSERT INTO audit VALUES (1)`
	plainRead  = `SELECT status FROM orders`
)

// A function that the registry allows may be called, over handles that are open,
// too, as long as it is the one that was allowed.
func TestAllowedFunctions(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, allowedSchema)
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond)) // each use looks
	require.NoError(t, err)
	defer db.Close()
	allow := func(function string) string { return `SELECT fencing.allow_function('` + function + `', 'why')` }
	for _, step := range []struct {
		name, sql       string
		refused, passes []string
	}{
		{"none is allowed", `SELECT`, []string{callRun, callCalls, callTouch, callSettle, fireNoted}, []string{plainRead}},
		{"one is", allow("run(text)"), []string{callTouch, callSettle, fireNoted}, []string{callRun, callCalls}},
		{"all are", allow("touch()") + ";" + allow("settle(int)") + ";" + allow("noted()"), nil, []string{callRun, callTouch, callSettle, fireNoted}},
		{"disallowed", `SELECT fencing.disallow_function('settle(int)')`, []string{callSettle}, []string{callRun, callTouch, fireNoted}},
		{"its row deleted", `DELETE FROM fencing.allowed_function WHERE function_name = 'noted'`, []string{fireNoted}, []string{callRun, callTouch}},
		{"replaced", `CREATE OR REPLACE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; END $$`, []string{callRun, callCalls}, []string{callTouch}},
		{"allowed again", allow("run(text)"), nil, []string{callRun, callCalls}},
		{"renamed", `ALTER FUNCTION run RENAME TO run_it`, []string{`SELECT run_it('UPDATE orders SET status = status')`}, []string{callTouch}},
		{"another by its name", `CREATE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE q || ''; END $$`, []string{callRun, callCalls}, []string{callTouch}},
		{"made again as it was", `DROP FUNCTION run; ALTER FUNCTION run_it RENAME TO run`, nil, []string{callRun, callCalls}},
		{"moved", `ALTER FUNCTION run SET SCHEMA app; ALTER FUNCTION calls SET search_path = app, public`, []string{callCalls, `SELECT app.run('UPDATE orders SET status = status')`}, nil},
		{"moved back", `ALTER FUNCTION app.run SET SCHEMA public`, nil, []string{callRun, callCalls}},
		{"its schema renamed", `ALTER FUNCTION touch() SET SCHEMA app; SELECT fencing.allow_function('app.touch()', 'why'); ALTER SCHEMA app RENAME TO other`, []string{`SELECT other.touch()`}, nil},
		{"and back", `ALTER SCHEMA other RENAME TO app`, nil, []string{`SELECT app.touch()`}},
		{"an overload that writes", `CREATE FUNCTION app.touch(a text) RETURNS int LANGUAGE sql AS $$ UPDATE orders SET status = a RETURNING 1 $$`, []string{`SELECT app.touch()`, `SELECT app.touch('x')`}, nil},
		{"allowed as well", allow("app.touch(text)"), nil, []string{`SELECT app.touch()`, `SELECT app.touch('x')`}},
		{"one in another schema", `CREATE FUNCTION touch() RETURNS int LANGUAGE sql AS $$ UPDATE orders SET status = 'x' RETURNING 1 $$`, []string{callTouch}, []string{`SELECT app.touch()`}},
	} {
		run(t, dsn, step.sql)
		for _, sql := range step.refused {
			_, err := db.Exec(sql)
			require.ErrorIs(t, err, rewrite.ErrRefused, "%s: %s", step.name, sql)
		}
		for _, sql := range step.passes {
			_, err := db.Exec(sql)
			require.NoError(t, err, "%s: %s", step.name, sql)
		}
	}

	// a trigger that may change the token, too
	stamp := func() error {
		_, err := db.ExecContext(tokenctx.With(t.Context(), 5), `INSERT INTO orders (id, last_token) VALUES (7, $1)`, tokenctx.Arg)
		return err
	}
	require.ErrorIs(t, stamp(), rewrite.ErrRefused)
	run(t, dsn, allow("stamped()"))
	require.NoError(t, stamp())
}

// What a transaction replaces is not what was allowed; nor is it in the same text.
func TestAllowedFunctionsWithinATransaction(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, allowedSchema, `SELECT fencing.allow_function('run(text)', 'why')`,
		`CREATE FUNCTION make() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CREATE OR REPLACE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS ''BEGIN EXECUTE q || ''''''''; END'''; END $$;
		 CREATE FUNCTION rename() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER FUNCTION run RENAME TO run_it; END $$`)
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, change := range []string{`SELECT make()`, `ALTER FUNCTION run(text) STABLE`, `ALTER FUNCTION run(text) SET search_path = app`, `DROP FUNCTION run`} {
		for _, together := range []bool{false, true} {
			tx, err := db.Begin()
			require.NoError(t, err)
			if together {
				_, err = tx.Exec(change + "; " + callRun)
			} else if _, err = tx.Exec(change); err == nil {
				_, err = tx.Exec(callRun)
			}
			require.ErrorIs(t, err, rewrite.ErrRefused, "%s, together: %t", change, together)
			require.NoError(t, tx.Rollback())
		}
	}
	for _, change := range []string{`SELECT rename()`, `ALTER FUNCTION run(text) RENAME TO run_it`} {
		const callRenamed = `SELECT run_it('UPDATE orders SET status = status')`
		tx, err := db.Begin()
		require.NoError(t, err)
		if _, err = tx.Exec(change); err == nil {
			_, err = tx.Exec(callRenamed)
		}
		require.ErrorIs(t, err, rewrite.ErrRefused, change)
		require.NoError(t, tx.Rollback())
		_, err = db.Exec(change + "; " + callRenamed)
		require.ErrorIs(t, err, rewrite.ErrRefused, change)
	}
	_, err = db.Exec(callRun)
	require.NoError(t, err)
}

// The role of the application needs no right for it, and without the function that
// tells what is allowed nothing is. Tables from code know of no allowance.
func TestWhoKnowsWhatIsAllowed(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	config, role := asApp(t, dsn)
	roleDSN := stdlib.RegisterConnConfig(config)
	run(t, dsn, allowedSchema, `SELECT fencing.allow_function('run(text)', 'why')`, `GRANT ALL ON orders, audit TO `+role)
	requireCall := func(isAllowed bool, dsn string, opts ...driver.Option) {
		t.Helper()
		db, err := driver.Open(dsn, opts...)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(callRun)
		require.Equal(t, !isAllowed, errors.Is(err, rewrite.ErrRefused), "%v", err)
	}
	requireCall(true, roleDSN)
	requireCall(false, dsn, driver.Protect("orders", rewrite.Lease))
	requireCall(true, dsn, driver.Protect("orders", rewrite.Lease), driver.WithGuardedFunctions("run"))
	run(t, dsn, `REVOKE EXECUTE ON FUNCTION fencing.allowed_functions() FROM PUBLIC`)
	requireCall(false, roleDSN)
	requireCall(true, dsn)
	run(t, dsn, `DROP FUNCTION fencing.allowed_functions()`)
	requireCall(false, dsn)
}

// A name that is allowed for some types only says so.
func TestAllowedOverloadSaysWhy(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, allowedSchema, `CREATE FUNCTION touch(a text) RETURNS int LANGUAGE sql AS $$ UPDATE orders SET status = a RETURNING 1 $$`,
		`SELECT fencing.allow_function('touch()', 'why')`)
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, sql := range []string{callTouch, `SELECT touch('x')`, `SELECT public.touch(1)`} {
		_, err = db.Exec(sql)
		require.ErrorContains(t, err, "is allowed with some types of arguments and may write a protected table with others", sql)
	}
}
