package driver_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// asApp is how to connect as a new role with the documented rights but EXECUTE
// on fencing.doctor.
func asApp(t *testing.T, dsn string) (config *pgx.ConnConfig, role string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	role = `"App_` + config.Database + `"`
	run(t, dsn, `CREATE ROLE `+role+` LOGIN PASSWORD 'app'`, `GRANT USAGE ON SCHEMA fencing TO `+role,
		`GRANT SELECT ON fencing.registry, fencing.generation TO `+role)
	t.Cleanup(func() {
		run2(t, dsn, `REASSIGN OWNED BY `+role+` TO CURRENT_USER`, `DROP OWNED BY `+role, `DROP ROLE `+role)
	})
	config.User, config.Password = strings.Trim(role, `"`), "app"
	return config, role
}

// A handle is refused with all of the doctor's errors, until they are mended.
func TestWithDoctor(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY)`, `SELECT fencing.register('orders', 'strict')`, `SELECT fencing.wall('orders')`)
	config, role := asApp(t, dsn)
	run(t, dsn, `GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO `+role)
	open := func() error {
		db, err := driver.Open(stdlib.RegisterConnConfig(config), driver.WithDoctor())
		if err == nil {
			require.NoError(t, db.Close())
		}
		return err
	}

	require.ErrorContains(t, open(), `GRANT EXECUTE ON FUNCTION fencing.doctor TO `+role)
	run(t, dsn, `GRANT EXECUTE ON FUNCTION fencing.doctor TO `+role)
	require.NoError(t, open())
	run(t, dsn, `ALTER TABLE orders DISABLE TRIGGER "~fencing_update"`, `ALTER TABLE orders OWNER TO `+role)
	err := open()
	require.ErrorIs(t, err, driver.ErrUnhealthy)
	require.ErrorContains(t, err, "\n\terror D203 trigger-disabled: trigger \"~fencing_update\" on public.orders: the wall's trigger is disabled; "+
		"nothing is checked by it; ALTER TABLE public.orders ENABLE ALWAYS TRIGGER \"~fencing_update\"")
	require.ErrorContains(t, err, "\n\terror D401 role-owns-table: role "+role+": ")
	run(t, dsn, `ALTER TABLE orders ENABLE ALWAYS TRIGGER "~fencing_update"`, `ALTER TABLE orders OWNER TO CURRENT_USER`)
	require.NoError(t, open())
}

// A connector asks until it is told that all is well, and then no more.
func TestWithDoctorOnce(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	config, role := asApp(t, dsn)
	run(t, dsn, `GRANT EXECUTE ON FUNCTION fencing.doctor TO `+role)
	connector, err := driver.NewConnector(*config, driver.WithDoctor())
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxIdleConns(0)
	run(t, dsn, `ALTER SEQUENCE fencing.write_epoch CYCLE`)
	require.ErrorIs(t, db.Ping(), driver.ErrUnhealthy)
	require.ErrorIs(t, db.Ping(), driver.ErrUnhealthy)
	run(t, dsn, `ALTER SEQUENCE fencing.write_epoch NO CYCLE`)
	require.NoError(t, db.Ping())
	run(t, dsn, `ALTER SEQUENCE fencing.write_epoch CYCLE`)
	require.NoError(t, db.Ping())
}

// A superuser could take the wall down, so it is no application's role.
func TestWithDoctorSuperuser(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	_, err := driver.Open(dsn, driver.WithDoctor())
	require.ErrorIs(t, err, driver.ErrUnhealthy)
	require.ErrorContains(t, err, "error D411 superuser")
}

func TestWithDoctorMissing(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`)
	_, err := driver.Open(dsn, driver.WithDoctor())
	require.ErrorIs(t, err, driver.ErrNotInstalled)
	require.ErrorIs(t, err, migrations.ErrNotInstalled)
	_, err = driver.Open(dsn, driver.WithDoctor(), driver.Protect("orders", rewrite.Strict))
	require.ErrorContains(t, err, "the database has no fencing.doctor: run migrations.Up")
	plain, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	_, err = driver.Wrap(stdlib.GetConnector(*plain), driver.WithDoctor(), driver.Protect("orders", rewrite.Strict))
	require.ErrorContains(t, err, "WithDoctor is an option of Open, NewConnector and NewPoolConnector")
}
