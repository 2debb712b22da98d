package compat

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"

	"contrib.go.opencensus.io/integrations/ocsql"
	xsam "github.com/XSAM/otelsql"
	"github.com/go-jet/jet/v2/postgres"
	"github.com/luna-duclos/instrumentedsql"
	"github.com/ngrok/sqlmw"
	sqldblogger "github.com/simukti/sqldb-logger"
	"github.com/stretchr/testify/require"
	nhatthm "go.nhat.io/otelsql"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

type silent struct{}

func (silent) Log(context.Context, sqldblogger.Level, string, map[string]any) {}

// wrappers are the ways by which libraries that trace or log get around a driver.
var wrappers = map[string]func(d sqldriver.Driver, dsn string) (*sql.DB, error){
	"otelsql, opened": func(_ sqldriver.Driver, dsn string) (*sql.DB, error) { return xsam.Open("fencerow", dsn) },
	"otelsql, a connector": func(d sqldriver.Driver, dsn string) (*sql.DB, error) {
		connector, err := d.(sqldriver.DriverContext).OpenConnector(dsn)
		return xsam.OpenDB(connector), err
	},
	"nhatthm's otelsql": func(d sqldriver.Driver, dsn string) (*sql.DB, error) { return openBy(nhatthm.Wrap(d), dsn) },
	"sqlmw": func(d sqldriver.Driver, dsn string) (*sql.DB, error) {
		return openBy(sqlmw.Driver(d, new(sqlmw.NullInterceptor)), dsn)
	},
	"sqldb-logger": func(d sqldriver.Driver, dsn string) (*sql.DB, error) {
		return sqldblogger.OpenDriver(dsn, d, silent{}), nil
	},
	"instrumentedsql": func(d sqldriver.Driver, dsn string) (*sql.DB, error) {
		return openBy(instrumentedsql.WrapDriver(d), dsn)
	},
	"ocsql": func(d sqldriver.Driver, dsn string) (*sql.DB, error) {
		return openBy(ocsql.Wrap(d, ocsql.WithAllTraceOptions()), dsn)
	},
}

// byDSN is a connector of a driver that has none.
type byDSN struct {
	d   sqldriver.Driver
	dsn string
}

func (c byDSN) Connect(context.Context) (sqldriver.Conn, error) { return c.d.Open(c.dsn) }
func (c byDSN) Driver() sqldriver.Driver                        { return c.d }

func openBy(d sqldriver.Driver, dsn string) (*sql.DB, error) {
	if d, ok := d.(sqldriver.DriverContext); ok {
		connector, err := d.OpenConnector(dsn)
		return sql.OpenDB(connector), err
	}
	return sql.OpenDB(byDSN{d, dsn}), nil
}

// What is refused has the line of the application, whatever stands between, and counts that
// can't be had aren't told as none.
func TestCallerBehindWrappers(t *testing.T) {
	e := open(t, setting{migrations.Lease, migrations.WallOff})
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			db, err := wrap(e.db.Driver(), e.dsn)
			require.NoError(t, err)
			defer db.Close()
			refuse := func(send func() error) {
				t.Helper()
				var v *rewrite.Violation
				require.ErrorAs(t, send(), &v)
				require.Contains(t, v.Location, "/wrappers_test.go:")
			}
			const text = `UPDATE orders SET status = 'x'`
			refuse(func() error { _, err := db.ExecContext(t.Context(), text); return err })
			refuse(func() error { return db.QueryRowContext(t.Context(), text+` RETURNING id`).Scan(new(int)) })
			refuse(func() error { _, err := db.PrepareContext(t.Context(), text); return err })
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			refuse(func() error { _, err := tx.ExecContext(t.Context(), text); return err })
			stats, ok := driver.StatsOf(db)
			require.Equal(t, name == "sqldb-logger", ok, "it shows the driver that it wraps")
			require.True(t, !ok || stats.Checked > 0)
			refuse(func() error { _, err := postgres.RawStatement(text).ExecContext(t.Context(), tx); return err })
		})
	}
}
