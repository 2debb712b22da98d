// Package opening stands in for pgx's package stdlib in pgx's own test suite:
// it has the names that the suite uses, with fencerow's driver behind those
// that open a database.
package opening

import (
	"database/sql"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/driver"
)

// EnvDSN is where pgx's suite reads its connection string from.
const EnvDSN = "PGX_TEST_DATABASE"

// The names of package stdlib that open nothing.
type (
	Conn             = stdlib.Conn
	OptionOpenDB     = stdlib.OptionOpenDB
	ShouldPingParams = stdlib.ShouldPingParams
)

// The functions of package stdlib that open nothing.
var (
	OptionBeforeConnect    = stdlib.OptionBeforeConnect
	OptionAfterConnect     = stdlib.OptionAfterConnect
	OptionResetSession     = stdlib.OptionResetSession
	OptionShouldPing       = stdlib.OptionShouldPing
	RandomizeHostOrderFunc = stdlib.RandomizeHostOrderFunc
	RegisterConnConfig     = stdlib.RegisterConnConfig
	UnregisterConnConfig   = stdlib.UnregisterConnConfig
)

// Open stands in for sql.Open with one of pgx's names.
func Open(_, dsn string) (*sql.DB, error) { return sql.Open(driver.Name, dsn) }

// OpenDB stands in for stdlib.OpenDB.
func OpenDB(config pgx.ConnConfig, opts ...OptionOpenDB) *sql.DB {
	connector, err := driver.NewConnector(config, driver.WithPgx(opts...))
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

// OpenDBFromPool stands in for stdlib.OpenDBFromPool.
func OpenDBFromPool(pool *pgxpool.Pool, opts ...OptionOpenDB) *sql.DB {
	connector, err := driver.NewPoolConnector(pool, driver.WithPgx(opts...))
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(0)
	return db
}

// Plain opens the database with pgx's own driver. The suite's helpers that
// skip a test on some servers ask pgx's connection which server it is; that is
// no part of what they test.
func Plain(t testing.TB) *sql.DB {
	db, err := sql.Open("pgx", os.Getenv(EnvDSN))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
