package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// socketPort is the number in the name of the socket; nothing listens on TCP.
const socketPort = 5432

// startTimeout bounds initdb, start and recovery when the caller does not.
const startTimeout = time.Minute

// cluster is a data directory and the postmaster on it.
type cluster struct {
	bin      string
	cache    string // where new data directories are kept, or "" for nowhere
	dir      *serverDir
	as       *account
	settings []string
	proc     *process // nil while none runs
}

// newCluster makes a data directory and starts its server.
func newCluster(ctx context.Context, bin, cache string, o *options) (*cluster, error) {
	as, err := serverAccount()
	if err != nil {
		return nil, err
	}
	if isHostile() {
		force, err := forceParallel(ctx, bin)
		if err != nil {
			return nil, err
		}
		o.settings = append([]setting{force}, o.settings...) // what a test sets comes later, and counts
	}
	dir, err := newServerDir(as, o.isSynced())
	if err != nil {
		return nil, err
	}
	c := &cluster{bin: bin, cache: cache, dir: dir, as: as, settings: o.args()}
	if err := c.fill(ctx, o.data); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// fill makes the data directory, by write if there is one.
func (c *cluster) fill(ctx context.Context, write func(ctx context.Context, dir string) error) error {
	if write == nil {
		return c.fillNew(ctx)
	}
	if err := os.Mkdir(c.dir.data(), 0o700); err != nil {
		return err
	}
	if err := write(ctx, c.dir.data()); err != nil {
		return fmt.Errorf("write the data directory: %w", err)
	}
	return c.giveData()
}

// giveData makes the server's user the owner of the data directory.
func (c *cluster) giveData() error {
	if c.as == nil {
		return nil
	}
	return filepath.WalkDir(c.dir.data(), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, c.as.uid, c.as.gid))
	})
}

// initdbArgs are what initdb is told beside where the data directory is.
var initdbArgs = []string{"--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"}

// initdb makes a new data directory, which takes a second.
func (c *cluster) initdb(ctx context.Context) error {
	cmd := c.command("initdb", append([]string{"--pgdata=" + c.dir.data()}, initdbArgs...)...)
	cmd.Dir = c.dir.path
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("initdb: %w; the end of its output:\n%s", err, c.dir.tail())
	}
	return nil
}

// start starts the postmaster and returns when it accepts connections.
func (c *cluster) start(ctx context.Context) error {
	args := []string{"-D", c.dir.data()}
	args = append(args, c.settings...)
	args = append(args, "-c", "listen_addresses=", "-c", "unix_socket_directories="+quoteList(c.dir.path), "-p", strconv.Itoa(socketPort))
	cmd := c.command("postgres", args...)
	cmd.Dir = c.dir.data()
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	c.proc = p
	if err := c.ready(ctx); err != nil {
		return errors.Join(err, c.stop(syscall.SIGQUIT))
	}
	return nil
}

// quoteList makes a path the only entry of a setting that is a list.
func quoteList(path string) string { return `"` + strings.ReplaceAll(path, `"`, `""`) + `"` }

// command prepares a server program: as the server's user, with the log as its
// output, and deaf to what the environment says about other servers.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Stdout, cmd.Stderr = c.dir.log, c.dir.log
	cmd.SysProcAttr = attrs(c.as)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// ready waits until the server takes a connection, or has ended instead.
func (c *cluster) ready(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(ctx, c.dsn("postgres"))
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.proc.done:
			return fmt.Errorf("postgres ended before it took a connection (%v); the end of its log:\n%s", c.proc.err, c.dir.tail()) //nolint:errorlint // nil if it ended with status 0
		case <-ctx.Done():
			return fmt.Errorf("postgres did not take a connection in time (%w; last: %w); the end of its log:\n%s", context.Cause(ctx), err, c.dir.tail())
		}
	}
}

func ping(ctx context.Context, dsn string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// dsn is a URL that pgx, and so fencerow, and psql read alike.
func (c *cluster) dsn(database string) string {
	q := url.Values{"host": {c.dir.path}, "port": {strconv.Itoa(socketPort)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// running says whether there is a postmaster, as far as we have heard.
func (c *cluster) running() bool {
	if c.proc == nil {
		return false
	}
	select {
	case <-c.proc.done:
		return false
	default:
		return true
	}
}

// stop ends the postmaster: SIGINT shuts down in order, SIGQUIT at once.
func (c *cluster) stop(sig syscall.Signal) error {
	if c.proc == nil {
		return nil
	}
	p := c.proc
	c.proc = nil
	return p.end(sig, 20*time.Second)
}

// kill ends the postmaster as a crash would.
func (c *cluster) kill() error {
	if !c.running() {
		return errors.New("the server does not run: call Restart first")
	}
	p := c.proc
	c.proc = nil
	err := crash(p.cmd.Process.Pid)
	if err == nil {
		<-p.done
	}
	return err
}

// remove stops the postmaster, if one runs, and deletes the directory.
func (c *cluster) remove() error {
	err := c.stop(syscall.SIGQUIT)
	removeSharedMemory(c.dir.data(), c.as) // there is none unless it was killed
	return errors.Join(err, c.dir.remove())
}
