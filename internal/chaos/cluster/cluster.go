// Package cluster runs a primary with one streaming standby, and does to them
// what breaks distributed locks: crashes, replication that lags, failovers that
// lose what was committed last.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/internal/localpg"
)

// patience bounds each wait for a server when the caller does not.
const patience = time.Minute

// Config says what to start.
type Config struct {
	// Sync has a commit wait until the standby has it on disk.
	Sync bool
	// Setup prepares the database on the primary before there is a standby.
	Setup func(ctx context.Context, dsn string) error
	// Settings are parameters of both servers. fsync is off unless given: what
	// a killed server has written, the system still has.
	Settings map[string]string
}

// Cluster is a primary and, but between Failover and Rebuild, its standby. Its
// methods may be called by several goroutines; of Crash, Failover, Rebuild and
// Stop one waits for the other.
type Cluster struct {
	config Config
	change sync.Mutex // held while servers come and go

	mu      sync.Mutex // of what follows
	primary *localpg.Server
	standby *localpg.Server // nil if there is none
	link    *proxy.Proxy    // the standby's way to the primary
}

// Start starts a primary, sets it up and makes its standby. [Cluster.Stop] must
// be called to end them; where the system can they also end with this process.
// Without server binaries the error is [localpg.ErrNoServer].
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if _, ok := config.Settings["synchronous_standby_names"]; ok {
		return nil, errors.New("synchronous_standby_names changes with the standby: leave it out and set Sync")
	}
	c := &Cluster{config: config}
	primary, err := localpg.Start(ctx, c.options()...)
	if err != nil {
		return nil, fmt.Errorf("start the primary: %w", err)
	}
	c.primary = primary
	if config.Setup != nil {
		if err := config.Setup(ctx, c.PrimaryDSN()); err != nil {
			return nil, errors.Join(fmt.Errorf("set up the primary: %w", err), c.Stop())
		}
	}
	if err := c.Rebuild(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// options are those of both servers. Without a timeout a held link stays, and
// a cut one is made anew at once.
func (c *Cluster) options() []localpg.Option {
	opts := []localpg.Option{
		localpg.WithSetting("wal_retrieve_retry_interval", "50ms"),
		localpg.WithSetting("wal_receiver_timeout", "0"),
		localpg.WithSetting("wal_sender_timeout", "0"),
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.Settings)) {
		opts = append(opts, localpg.WithSetting(name, c.config.Settings[name]))
	}
	return opts
}

func (c *Cluster) servers() (primary, standby *localpg.Server, link *proxy.Proxy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary, c.standby, c.link
}

func (c *Cluster) setServers(primary, standby *localpg.Server, link *proxy.Proxy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary, c.standby, c.link = primary, standby, link
}

// Addr returns where the present primary listens, as a proxy's target: the path
// of a socket, or host:port where there are none. It changes with a failover.
func (c *Cluster) Addr() string {
	primary, _, _ := c.servers()
	return addrOf(primary)
}

func addrOf(s *localpg.Server) string {
	config, err := pgx.ParseConfig(s.DSN(""))
	if err != nil {
		return "" // localpg made it
	}
	_, addr := pgconn.NetworkAddress(config.Host, config.Port)
	return addr
}

// DSN returns the connection string by which the application reaches the
// primary through addr, which is a proxy's, or what [Cluster.Addr] returns.
func (c *Cluster) DSN(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.HasPrefix(addr, "/") {
		host, port = filepath.Dir(addr), strings.TrimPrefix(filepath.Base(addr), ".s.PGSQL.")
	}
	q := url.Values{"host": {host}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: q.Encode()}
	return u.String()
}

// PrimaryDSN returns the connection string of the present primary itself.
func (c *Cluster) PrimaryDSN() string {
	primary, _, _ := c.servers()
	return primary.DSN("")
}

// HoldReplication keeps the servers from hearing of each other. It ends with
// [Cluster.ResumeReplication] or with the standby, and does nothing without one.
func (c *Cluster) HoldReplication() {
	if _, _, link := c.servers(); link != nil {
		link.Hold(proxy.Both)
	}
}

// ResumeReplication lets the standby catch up.
func (c *Cluster) ResumeReplication() {
	if _, _, link := c.servers(); link != nil {
		link.Resume(proxy.Both)
	}
}

// Crash kills all processes of the primary at once, starts it again and returns
// when it accepts connections.
func (c *Cluster) Crash(ctx context.Context) error {
	c.change.Lock()
	defer c.change.Unlock()
	primary, _, _ := c.servers()
	if err := primary.Kill(); err != nil {
		return fmt.Errorf("kill the primary: %w", err)
	}
	if err := primary.Restart(ctx); err != nil {
		return fmt.Errorf("restart the primary: %w", err)
	}
	return nil
}

// Failover kills the primary for good, with what it has not sent, and promotes
// the standby. It returns when that one can be written to, at a new
// [Cluster.Addr]; nobody waits for a standby then, until [Cluster.Rebuild] has
// made one.
func (c *Cluster) Failover(ctx context.Context) error {
	c.change.Lock()
	defer c.change.Unlock()
	primary, standby, link := c.servers()
	if standby == nil {
		return errors.New("there is no standby to fail over to: call Rebuild first")
	}
	if err := primary.Kill(); err != nil {
		return fmt.Errorf("kill the primary: %w", err)
	}
	link.Close() // before anything that was held can get through
	if err := promote(ctx, standby); err != nil {
		return fmt.Errorf("promote the standby: %w; the end of its log:\n%s", err, standby.LogTail())
	}
	c.setServers(standby, nil, nil)
	return primary.Stop()
}

// promote returns when the server has left recovery. It doesn't have pg_promote
// wait for that: replay may cancel a query of the standby, and does so to one that
// is long (40001).
func promote(ctx context.Context, s *localpg.Server) error {
	return session(ctx, s, func(ctx context.Context, conn *pgx.Conn) error {
		for text, recovers := "SELECT pg_promote(false)", true; ; {
			err := conn.QueryRow(ctx, text).Scan(&recovers)
			var canceled *pgconn.PgError
			switch {
			case errors.As(err, &canceled) && canceled.Code == "40001":
			case err != nil:
				return err
			case !recovers:
				return nil
			default:
				text = "SELECT pg_is_in_recovery()"
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}

// session runs fn on a connection, and not for longer than patience.
func session(ctx context.Context, s *localpg.Server, fn func(context.Context, *pgx.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN(""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return fn(ctx, conn)
}

// Stop ends both servers and removes their directories. A second call does
// nothing.
func (c *Cluster) Stop() error {
	c.change.Lock()
	defer c.change.Unlock()
	primary, standby, link := c.servers()
	if link != nil {
		link.Close()
	}
	var err error
	if standby != nil {
		err = standby.Stop()
	}
	return errors.Join(err, primary.Stop())
}
