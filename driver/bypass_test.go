package driver_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// bypass is a way to write the protected table orders, or past it, that a
// statement's text doesn't show.
type bypass struct {
	setup   string
	refused []string // by the driver; over a plain connection each does the harm
	harm    string   // a query that tells whether it is done; bypassHarm if empty
	after   string   // what a plain connection runs between the two
	passes  []string
}

// bypassHarm tells that the row of orders isn't as bypassSchema has made it.
const bypassHarm = `SELECT NOT EXISTS (SELECT FROM public.orders WHERE id = 1 AND code = 'ABC' AND n = 9 AND last_token = 9)`

// ofSchema is a database with a schema, for the cases of a table: it is made once.
func ofSchema(schema string) localpg.Template {
	return localpg.Template{Name: schema, Setup: func(ctx context.Context, dsn string) error { return fencetest.Exec(ctx, dsn, schema) }}
}

// checkBypasses shows for each that plain pgx lets it through, and that the
// driver doesn't.
func checkBypasses(t *testing.T, schema string, cases map[string]bypass) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, ofSchema(schema))
			run(t, dsn, c.setup)
			for _, sql := range c.refused {
				require.True(t, c.harms(t, dsn, sql), "over a plain connection: %s", sql)
			}
			db, err := driver.Open(dsn, driver.Protect("public.orders", rewrite.Lease))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			for _, sql := range c.refused {
				_, err := db.ExecContext(tokenctx.With(t.Context(), 10), sql)
				require.ErrorIs(t, err, rewrite.ErrRefused, sql)
			}
			for _, sql := range c.passes {
				_, err := db.ExecContext(tokenctx.With(t.Context(), 10), sql)
				require.NoError(t, err, sql)
			}
		})
	}
}

// harms runs a statement over a plain connection, and takes it back.
func (c bypass) harms(t *testing.T, dsn, sql string) (done bool) {
	t.Helper()
	harm := c.harm
	if harm == "" {
		harm = bypassHarm
	}
	fencetest.With(t, dsn, func(conn *pgx.Conn) {
		for _, s := range []string{"BEGIN", sql, c.after} {
			_, err := conn.Exec(t.Context(), s)
			require.NoError(t, err, s)
		}
		require.NoError(t, conn.QueryRow(t.Context(), harm).Scan(&done))
	})
	return done
}
