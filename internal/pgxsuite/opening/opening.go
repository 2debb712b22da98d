// Package opening stands in for pgx's package stdlib in pgx's own test suite:
// it has the names that the suite uses, with fencerow's driver behind those
// that open a database. What fencerow has no counterpart for panics, saying so.
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

// What panics instead of opening; the list of skips knows them.
const (
	NoOptions = "not built yet: a counterpart of stdlib's options for OpenDB"
	NoPool    = "not built yet: a counterpart of stdlib's OpenDBFromPool"
)

// The names of package stdlib that open nothing.
type (
	Conn             = stdlib.Conn
	OptionOpenDB     = stdlib.OptionOpenDB
	ShouldPingParams = stdlib.ShouldPingParams
)

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
	if len(opts) > 0 {
		panic(NoOptions)
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

// OpenDBFromPool stands in for stdlib.OpenDBFromPool.
func OpenDBFromPool(*pgxpool.Pool, ...OptionOpenDB) *sql.DB { panic(NoPool) }

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
