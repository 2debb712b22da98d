package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/migrations"
)

// hostileTo are settings of a session each of which spoils the driver's own
// queries when they are sent as any other is.
var hostileTo = map[string]string{
	"statement_timeout":             "-c statement_timeout=50ms",
	"lock_timeout":                  "-c lock_timeout=1ms",
	"idle timeouts":                 "-c idle_in_transaction_session_timeout=50ms",
	"read only":                     "-c default_transaction_read_only=on",
	"serializable":                  "-c default_transaction_isolation=serializable -c default_transaction_deferrable=on",
	"repeatable read":               "-c default_transaction_isolation=repeatable\\ read",
	"row_security":                  "-c row_security=off",
	"jit":                           "-c jit=on -c jit_above_cost=0 -c jit_inline_above_cost=0 -c jit_optimize_above_cost=0 -c statement_timeout=2s",
	"parallel":                      "-c min_parallel_table_scan_size=0 -c min_parallel_index_scan_size=0 -c parallel_setup_cost=0 -c parallel_tuple_cost=0",
	"generic plans":                 "-c plan_cache_mode=force_generic_plan",
	"the planner's hands are bound": "-c enable_nestloop=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c enable_indexscan=off -c enable_sort=off -c join_collapse_limit=1 -c geqo_threshold=2",
	"quoted names":                  "-c quote_all_identifiers=on",
	"somebody's own operators":      "-c search_path=evil,pg_catalog,public",
}

// hostileSchema has a registered table that was renamed, what reaches it, and
// operators that find nothing.
const hostileSchema = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
	CREATE VIEW v AS SELECT * FROM orders;
	CREATE FUNCTION touch() RETURNS void LANGUAGE sql AS 'UPDATE orders SET status = status';
	CREATE SCHEMA evil;
	CREATE FUNCTION evil.no(oid, oid) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
	CREATE FUNCTION evil.no(name, name) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
	CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.no);
	CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.no)`

// Whatever the session has set, a look reads the same, in either protocol, and
// leaves the settings as they were.
func TestOwnQueriesUnderHostileSettings(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	fencetest.Run(t, dsn, hostileSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	fencetest.Run(t, dsn, `ALTER TABLE orders RENAME TO sales`)
	want := lookOver(t, dsn, pgx.QueryExecModeCacheStatement, "")
	require.Len(t, want.Tables, 2)
	for name, options := range hostileTo {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				got := lookOver(t, dsn, mode, options)
				require.True(t, gate.SameTables(want.Tables, got.Tables), "%v", got.Tables)
				require.Equal(t, want.Closures, got.Closures)
			})
		}
	}
}

// lookOver looks by a connection with options, and checks that it leaves them.
func lookOver(t *testing.T, dsn string, mode pgx.QueryExecMode, options string) *gate.Protection {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.DefaultQueryExecMode = mode
	if options != "" {
		config.RuntimeParams["options"] = options
	}
	c, err := NewConnector(*config)
	require.NoError(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	const settings = `SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name <> 'transaction_timeout'`
	ask := func() (all string) {
		results, err := conn.PgConn().Exec(t.Context(), "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL search_path = pg_catalog; SET LOCAL jit = off; "+settings+"; COMMIT").ReadAll()
		require.NoError(t, err)
		return string(results[4].Rows[0][0])
	}
	before := ask()
	s, err := c.look(t.Context(), conn, true)
	require.NoError(t, err)
	_, err = c.lookAgain(t.Context(), conn)
	require.NoError(t, err)
	require.Equal(t, before, ask())
	require.Equal(t, byte('I'), conn.PgConn().TxStatus())
	require.Equal(t, "postgres", s.user)
	return c.current.Load()
}

// recordingSession keeps the query by which the catalog is read, and doesn't answer.
type recordingSession struct {
	query string
	args  []string
}

var errRecorded = errors.New("the query is recorded")

func (s *recordingSession) Query(_ context.Context, sql string, args ...string) ([][]string, error) {
	s.query, s.args = sql, args
	return nil, errRecorded
}

func (*recordingSession) ParameterStatus(string) string { return "" }

// Nothing of an own query is compiled where a session has everything compiled that can
// be: that takes longer than all that a handle does to open.
func TestOwnQueriesAreNotCompiled(t *testing.T) {
	for _, partitions := range []int{2, 200} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			dsn := localpg.Database(t, fencetest.Installed)
			fencetest.Run(t, dsn, `CREATE TABLE p (id bigint, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)`,
				fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP EXECUTE format('CREATE TABLE p%%s PARTITION OF p FOR VALUES FROM (%%s) TO (%%s)', i, i, i + 1); END LOOP; END $$`, partitions))
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "p", Mode: migrations.Lease}))
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			config.RuntimeParams["options"] = "-c jit=on -c jit_above_cost=0"
			connector, err := NewConnector(*config)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			require.NoError(t, db.Ping())
			require.NoError(t, db.Close())

			conn, err := pgx.ConnectConfig(t.Context(), config)
			require.NoError(t, err)
			defer conn.Close(context.Background())
			var compiles bool
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_jit_available()`).Scan(&compiles))
			reading := new(recordingSession)
			_, err = reach.Read(t.Context(), reading, []reach.Table{{Schema: "public", Name: "p"}})
			require.ErrorIs(t, err, errRecorded)
			rows, err := conn.Query(t.Context(), "EXPLAIN "+reading.query, reading.args[0])
			require.NoError(t, err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Equal(t, compiles, slices.Contains(plan, "JIT:"), "or the test shows nothing: %v", plan)
			own, err := connector.askOwn(t.Context(), conn, "EXPLAIN "+reading.query, reading.args[0])
			require.NoError(t, err)
			require.NotEmpty(t, own.rows)
			require.NotContains(t, own.rows, []string{"JIT:"})
		})
	}
}

// An own query that fails leaves its connection as it was, in a transaction too.
func TestOwnQueryThatFails(t *testing.T) {
	dsn := localpg.Database(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, state := range []byte{'I', 'T'} {
			t.Run(fmt.Sprintf("%v/%c", mode, state), func(t *testing.T) {
				config, err := pgx.ParseConfig(dsn)
				require.NoError(t, err)
				config.DefaultQueryExecMode = mode
				c, err := NewConnector(*config)
				require.NoError(t, err)
				conn, err := pgx.ConnectConfig(t.Context(), config)
				require.NoError(t, err)
				defer conn.Close(context.Background())
				if state == 'T' {
					_, err = conn.Exec(t.Context(), `BEGIN; CREATE TABLE kept (id int)`)
					require.NoError(t, err)
				}
				for query, want := range map[string]string{`SELECT 1 / 0`: "22012", `SELECT FROM nowhere`: "42P01", `SELEC`: "42601", `SELECT pg_sleep(60)`: "57014"} {
					if want == "42601" && mode == pgx.QueryExecModeSimpleProtocol {
						continue // the whole text is parsed first, and nothing of it runs
					}
					patience := fencetest.Patience
					if want == "57014" {
						patience = 2 * time.Second // it is what ends the query
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					_, err = c.askOwn(ctx, conn, query)
					cancel()
					var pgErr *pgconn.PgError
					require.ErrorAs(t, err, &pgErr)
					require.Equal(t, want, pgErr.Code)
					require.Equal(t, state, conn.PgConn().TxStatus())
				}
				answer, err := c.askOwn(t.Context(), conn, `SELECT $1, NULL, $2`, `it's \ $2`, `"Ä"`)
				require.NoError(t, err)
				require.Equal(t, [][]string{{`it's \ $2`, "", `"Ä"`}}, answer.rows)
				require.Equal(t, state, conn.PgConn().TxStatus())
				if state == 'T' {
					_, err = conn.Exec(t.Context(), `SELECT FROM kept; ROLLBACK`)
					require.NoError(t, err)
				}
			})
		}
	}
}

// tripCounter counts how often a connection waits for an answer.
type tripCounter struct {
	net.Conn
	wrote bool
	n     *int
}

func (c *tripCounter) Write(b []byte) (int, error) {
	c.wrote = true
	return c.Conn.Write(b)
}

func (c *tripCounter) Read(b []byte) (int, error) {
	if c.wrote {
		c.wrote = false
		*c.n++
	}
	return c.Conn.Read(b)
}

func countTrips(config *pgx.ConnConfig) *int {
	n := new(int)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &tripCounter{Conn: conn, n: n}, err
	}
	return n
}

// A look takes one round trip where nothing has changed, and a new connection
// one for each of its questions, in either protocol.
func TestRoundTripsOfLooks(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	fencetest.Run(t, dsn, hostileSchema)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for _, registered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/%v", mode, registered), func(t *testing.T) {
				if registered {
					require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
				} else {
					fencetest.Run(t, dsn, `DELETE FROM fencing.registry`)
				}
				config, err := pgx.ParseConfig(dsn)
				require.NoError(t, err)
				config.DefaultQueryExecMode = mode
				n := countTrips(config)
				c, err := NewConnector(*config)
				require.NoError(t, err)
				conn, err := pgx.ConnectConfig(t.Context(), config)
				require.NoError(t, err)
				defer conn.Close(context.Background())
				trips := func(do func() error) int {
					before := *n
					require.NoError(t, do())
					return *n - before
				}
				look := func() error { _, err := c.look(t.Context(), conn, false); return err }
				again := func() error { _, err := c.lookAgain(t.Context(), conn); return err }
				if registered {
					require.Equal(t, 3, trips(look), "the registry, the tables, the catalog")
					require.Equal(t, 2, trips(look), "the catalog is known")
				} else {
					require.Equal(t, 1, trips(look), "the catalog isn't read where nothing is registered")
				}
				require.Equal(t, 1, trips(again))
			})
		}
	}
}
