package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Name is the name under which the driver is registered with database/sql.
const Name = "fencerow"

// openTimeout bounds how long Driver.Open and Open may take to connect, where
// the DSN sets no connect_timeout of its own.
const openTimeout = 60 * time.Second

// Driver is the database/sql driver. It is registered as "fencerow".
type Driver struct {
	connector *Connector // whose driver it is, nil for the registered one
}

var (
	_ sqldriver.Driver        = (*Driver)(nil)
	_ sqldriver.DriverContext = (*Driver)(nil)
)

func init() { sql.Register(Name, &Driver{}) }

// Open opens a connection; database/sql calls OpenConnector instead.
func (d *Driver) Open(dsn string) (sqldriver.Conn, error) {
	connector, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return connector.Connect(ctx)
}

// OpenConnector reads the DSN, in either of pgx's forms. What is protected
// comes from the database's registry, which is read with each new connection.
func (d *Driver) OpenConnector(dsn string) (sqldriver.Connector, error) {
	inner, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c, err := newConnector(inner, true, nil)
	if err == nil && d.connector != nil {
		c.counters = d.connector.counters // a wrapper's handle may show this driver, and StatsOf asks it
	}
	return c, err
}

// Open returns a handle on the database, after one connection has shown that
// the protected tables are there with a usable token column. Without
// [Protect] or [ProtectTable] they come from the database's registry.
func Open(dsn string, opts ...Option) (*sql.DB, error) {
	inner, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := newConnector(inner, true, opts)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// registeredPrefix begins the names that stdlib.RegisterConnConfig gives out.
const registeredPrefix = "registeredConnConfig"

// parseDSN returns pgx's own connector, which reads the DSN again with each
// connection, and so the environment and the files that it names.
func parseDSN(dsn string) (sqldriver.Connector, error) {
	if !strings.HasPrefix(dsn, registeredPrefix) {
		if _, err := pgx.ParseConfig(dsn); err != nil {
			return nil, errDSN(err)
		}
	}
	inner, err := stdlib.GetDefaultDriver().(sqldriver.DriverContext).OpenConnector(dsn)
	return &dsnConnector{inner, dsn}, err
}

// dsnConnector is pgx's connector with errors that don't repeat the DSN.
type dsnConnector struct {
	sqldriver.Connector
	dsn string
}

func (c *dsnConnector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var malformed *pgconn.ParseConfigError
	switch {
	case !errors.As(err, &malformed):
		return conn, err
	case strings.HasPrefix(c.dsn, registeredPrefix):
		return nil, fmt.Errorf("fencerow: configuration %s is not registered: call stdlib.RegisterConnConfig before, and UnregisterConnConfig after the handle is closed, or pass the configuration itself to driver.NewConnector", c.dsn)
	}
	return nil, errDSN(err)
}

// errDSN says what is wrong with a DSN without repeating any of it: pgx finds
// the password to leave out in most malformed forms only.
func errDSN(err error) error {
	reason := "it is neither a URL nor a list of keywords"
	if _, message, ok := strings.Cut(err.Error(), "`: "); ok {
		reason, _, _ = strings.Cut(message, " (")
	}
	if cause := errors.Unwrap(err); cause != nil && !strings.ContainsAny(cause.Error(), "\"'`:/") {
		reason += ": " + cause.Error()
	}
	return fmt.Errorf("fencerow: malformed DSN: %s; write a URL like postgres://user:password@host:5432/database, or keywords like \"host=localhost dbname=shop\"", reason)
}
