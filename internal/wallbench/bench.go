package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// clients of pgbench, each with rows of its own: a token that is older than
// another client's would save the write.
const clients = 2

// wall is a way to protect a table.
type wall struct {
	name, table, mode, level string
	tombstones               bool
	sealed                   bool // its writes are all under the token of one lease
}

// walls; the first entry has no wall.
var walls = []wall{
	{name: "no wall", table: "t_none"},
	{name: "strict", table: "t_strict", mode: "strict", level: "enforce"},
	{name: "lease", table: "t_lease", mode: "lease", level: "enforce"},
	{name: "attested", table: "t_attested", mode: "lease", level: "attested"},
	{name: "lease, tombstones", table: "t_tombstones", mode: "lease", level: "enforce", tombstones: true},
	{name: "lease, seal", table: "t_sealed", mode: "lease", level: "enforce", sealed: true},
}

// create makes the wall's table, of rows for the UPDATEs.
func (w wall) create(ctx context.Context, conn *pgx.Conn) error {
	sql := fmt.Sprintf(`CREATE TABLE %[1]s (id bigint PRIMARY KEY, v bigint NOT NULL, last_token bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
		INSERT INTO %[1]s SELECT i, 0, 0 FROM generate_series(1, 100000) i; SELECT setval('fencing.write_epoch', 1000000000000000);`, w.table)
	if w.level != "" {
		sql += fmt.Sprintf("SELECT fencing.register('%[1]s', '%[2]s'); SELECT fencing.wall('%[1]s', '%[3]s'); SELECT fencing.tombstones('%[1]s', %[4]t)", w.table, w.mode, w.level, w.tombstones)
	}
	if w.sealed {
		sql += fmt.Sprintf("; SELECT fencing.seal('%s', 'bench')", w.table)
	}
	_, err := conn.Exec(ctx, sql)
	return err
}

// op is a transaction to measure. In sql :t is the table, :set, where it is
// needed, puts the token into the setting.
type op struct {
	name, sql string
	count     int // transactions of a client with synchronous_commit off
	synced    int // and on
}

const (
	row   = "\\set id random(1, 50000) + :client_id * 50000\n"
	batch = "\\set id random(0, 48) * 1000 + 1 + :client_id * 50000\n"
	// DELETEs delete what the INSERTs before them have inserted.
	next      = "\\set n :n + 1\n\\set id :client_id * 100000000 + 1000000 + :n\n"
	nextBatch = "\\set n :n + 1\n\\set id :client_id * 100000000 + 10000000 + :n * 1000\n"
)

var ops = []op{
	{"UPDATE of 1 row", row + "UPDATE :t SET v = v + 1, last_token = :tok WHERE id = :id AND last_token < :tok:and_attest;", 12000, 1500},
	{"UPDATE of 1,000 rows", batch + "UPDATE :t SET v = v + 1, last_token = :tok WHERE id BETWEEN :id AND :id + 999 AND last_token < :tok:and_attest;", 60, 60},
	{"INSERT of 1 row", next + "INSERT INTO :t SELECT :id, 0, :tok:where_attest;", 12000, 1500},
	{"DELETE of 1 row", next + "DELETE FROM :t WHERE id = :id AND last_token < :tok:and_set;", 12000, 1500},
	{"INSERT of 1,000 rows", nextBatch + "INSERT INTO :t SELECT :id + i, 0, :tok FROM generate_series(0, 999) i:where_attest;", 40, 40},
	{"DELETE of 1,000 rows", nextBatch + "DELETE FROM :t WHERE id BETWEEN :id AND :id + 999 AND last_token < :tok:and_set;", 40, 40},
}

// script is the op for pgbench on the wall's table. A token that is put into
// the setting is put there by the statement itself, once.
func (o op) script(w wall) string {
	const set = "(SELECT set_config('fencing.token', :tok::text, true)) IS NOT NULL"
	set1, attest := "", ""
	if w.level != "" {
		set1 = set
	}
	if w.level == "attested" {
		attest = set
	}
	prefixed := func(prefix, s string) string {
		if s == "" {
			return ""
		}
		return prefix + s
	}
	raise, guard := "\\set tok :tok + 1\n", "<"
	if w.sealed {
		raise, guard = "", "<="
	}
	return raise + strings.NewReplacer("last_token <", "last_token "+guard, ":and_attest", prefixed(" AND ", attest), ":where_attest", prefixed(" WHERE ", attest),
		":and_set", prefixed(" AND ", set1), ":t ", w.table+" ").Replace(o.sql)
}

var commits = []string{"off", "on"}

type measure struct {
	op     int
	commit string
}

type bench struct {
	pgbench, dsn string
	conn         *pgx.Conn
	scale        float64
	base         int                     // the newest token used
	rates        map[measure][][]float64 // by wall and round
}

// round takes each measurement once, the walls in turns, so that what else the
// machine does falls on all of them.
func (b *bench) round(ctx context.Context) error {
	if b.rates == nil {
		b.rates = map[measure][][]float64{}
	}
	for _, commit := range commits {
		for i, op := range ops {
			m := measure{i, commit}
			if b.rates[m] == nil {
				b.rates[m] = make([][]float64, len(walls))
			}
			for _, j := range order(len(b.rates[m][0])) {
				rate, err := b.run(ctx, op, walls[j], commit)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", op.name, walls[j].name, err)
				}
				b.rates[m][j] = append(b.rates[m][j], rate)
			}
		}
	}
	return nil
}

// order has the walls forwards and backwards by turns.
func order(round int) []int {
	n := make([]int, len(walls))
	for i := range n {
		n[i] = i
		if round%2 == 1 {
			n[i] = len(walls) - 1 - i
		}
	}
	return n
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

// run is one run of pgbench; it returns the rate.
func (b *bench) run(ctx context.Context, o op, w wall, commit string) (float64, error) {
	for _, sql := range []string{"VACUUM " + w.table, "VACUUM fencing.tombstone", "CHECKPOINT"} {
		if _, err := b.conn.Exec(ctx, sql); err != nil {
			return 0, err
		}
	}
	first := b.base
	if w.sealed {
		first++
		_, err := b.conn.Exec(ctx, `INSERT INTO fencing.lease VALUES ('bench', 'bench', $1, 'infinity')
			ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token`, first)
		if err != nil {
			return 0, err
		}
	}
	count := o.count
	if commit == "on" {
		count = o.synced
	}
	count = max(1, int(float64(count)*b.scale))
	cmd := exec.CommandContext(ctx, b.pgbench, "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-t", strconv.Itoa(count),
		"-D", fmt.Sprintf("tok=%d", first), "-D", "n=0", "-f", "-", b.dsn)
	b.base += count
	cmd.Stdin = strings.NewReader(o.script(w))
	cmd.Env = append(cmd.Environ(), "LC_ALL=C", "PGOPTIONS=-c synchronous_commit="+commit)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	found := tps.FindSubmatch(out)
	if found == nil || strings.Contains(string(out), "ERROR") {
		return 0, fmt.Errorf("pgbench has no rate: %s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// check makes sure that all tables have had the same writes: a statement that
// writes nothing is fast.
func (b *bench) check(ctx context.Context) error {
	for _, w := range walls {
		var same bool
		err := b.conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) = 100000 AND sum(v) = (SELECT sum(v) FROM %s) AND sum(v) > 0 FROM %s", walls[0].table, w.table)).Scan(&same)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s has not had the writes of %s", w.table, walls[0].table)
		}
	}
	return nil
}
