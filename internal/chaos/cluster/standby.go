package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/internal/localpg"
)

// standbyName is that of the standby's session and slot on the primary.
const standbyName = "standby"

// Rebuild makes a new standby after a failover, while the primary is in use. It
// returns when the standby streams and, with Sync, commits wait for it.
func (c *Cluster) Rebuild(ctx context.Context) error {
	c.change.Lock()
	defer c.change.Unlock()
	primary, standby, _ := c.servers()
	if standby != nil {
		return errors.New("there is a standby: call Failover first")
	}
	link, err := proxy.Listen(addrOf(primary))
	if err != nil {
		return fmt.Errorf("make the standby's link: %w", err)
	}
	data := localpg.WithData(func(ctx context.Context, dir string) error { return backup(ctx, primary, dir, link.Addr()) })
	standby, err = localpg.Start(ctx, append(c.options(), data)...)
	if err != nil {
		link.Close()
		return fmt.Errorf("start the standby: %w", err)
	}
	if err := c.follow(ctx, primary); err != nil {
		err = fmt.Errorf("follow the primary: %w; the end of its log:\n%s\nand of the standby's:\n%s", err, primary.LogTail(), standby.LogTail())
		link.Close()
		return errors.Join(err, standby.Stop())
	}
	c.setServers(primary, standby, link)
	return nil
}

// follow waits until the standby streams and, with Sync, has commits wait.
func (c *Cluster) follow(ctx context.Context, primary *localpg.Server) error {
	const state = "state = 'streaming' AND application_name = '" + standbyName + "'"
	if err := await(ctx, primary, "EXISTS (SELECT FROM pg_stat_replication WHERE "+state+")"); err != nil || !c.config.Sync {
		return err
	}
	err := session(ctx, primary, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'")
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
		}
		return err
	})
	if err != nil {
		return err
	}
	err = await(ctx, primary, `current_setting('synchronous_standby_names') = '*'
		AND EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND `+state+")")
	if err != nil {
		return err
	}
	// It is the checkpointer that tells the backends to wait, and it reads the
	// setting before it begins a checkpoint.
	return session(ctx, primary, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
}

// await asks until the answer is yes.
func await(ctx context.Context, s *localpg.Server, condition string) error {
	return session(ctx, s, func(ctx context.Context, conn *pgx.Conn) error {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var ok bool
			if err := conn.QueryRow(ctx, "SELECT "+condition).Scan(&ok); err != nil || ok {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("%w while waiting for %s", context.Cause(ctx), condition)
			}
		}
	})
}

// backup copies the data directory of a server in use, for a standby that
// streams through link. The slot keeps what WAL the standby has not got yet.
func backup(ctx context.Context, from *localpg.Server, dir, link string) error {
	var label string
	err := session(ctx, from, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range []string{
			"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '" + standbyName + "'",
			"SELECT pg_create_physical_replication_slot('" + standbyName + "', true)",
			"SELECT pg_backup_start('standby', true)",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if err := copyData(ctx, from.DataDir(), dir); err != nil {
			return err
		}
		return conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label)
	})
	if err != nil {
		return fmt.Errorf("back up the primary: %w", err)
	}
	host, port, err := net.SplitHostPort(link)
	if err != nil {
		return err
	}
	// Written whole: nothing stays of what the other server was told.
	conf := fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres sslmode=disable gssencmode=disable application_name=%s'\nprimary_slot_name = '%[3]s'\n",
		host, port, standbyName)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "backup_label"), []byte(label), 0o600),
		os.WriteFile(filepath.Join(dir, "postgresql.auto.conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o600))
}
