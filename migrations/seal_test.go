package migrations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// sealed makes a table t with rows 1 and 2 of lease r and 3 of lease s, none of
// which the present holders have written, and seals it. Lease r is held under
// 60, after 50, and lease s under 70; lease never was never taken.
func sealed(t testing.TB, level, by string) (dsn string, conn *pgx.Conn) {
	t.Helper()
	dsn = localpg.Database(t, prepared(fmt.Sprintf(`CREATE TABLE t (id int PRIMARY KEY, res text NOT NULL DEFAULT 'r', v text NOT NULL DEFAULT '');
		SELECT fencing.register('t', 'lease'); INSERT INTO t VALUES (1, 'r', 'old', 50), (2, 'r', 'old', 0), (3, 's', 'old', 40);
		SELECT setval('fencing.write_epoch', 1000); SELECT fencing.wall('t', '%s');`, level)+
		granting("r", 50)+granting("r", 60)+granting("s", 70)+"SELECT fencing.seal('t', "+by+")"))
	return dsn, open(t, dsn)
}

// The two ways to seal a table.
const (
	fixed    = "resource => 'r'"
	byColumn = "by_column => 'res'"
)

// grant has a lease taken under a token that the test chooses.
func grant(t testing.TB, conn *pgx.Conn, resource string, token int) {
	t.Helper()
	exec(t, conn, granting(resource, token))
}

func granting(resource string, token int) string {
	return fmt.Sprintf(`INSERT INTO fencing.lease AS l VALUES ('%s', 'h', %d, clock_timestamp() + interval '12 h')
		ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token, expires_at = EXCLUDED.expires_at;`, resource, token)
}

// Each kind of statement, under the present token of lease r and under others,
// for rows that the present holder has not written. The token of a statement is
// {t}.
func TestSealStatements(t *testing.T) {
	// token 70 is lease s's, 100 nobody's
	states := map[string]string{"50": "FN001", "60": "", "70": "FN004", "100": "FN004"}
	for _, by := range []string{fixed, byColumn} {
		_, conn := sealed(t, "enforce", by)
		for name, sql := range map[string]string{
			"update":            "UPDATE t SET v = 'new', last_token = {t} WHERE id = 1",
			"untouched":         "UPDATE t SET v = 'new', last_token = {t} WHERE id = 2",
			"guarded":           "UPDATE t SET v = 'new', last_token = {t} WHERE id = 2 AND last_token <= {t}",
			"insert":            "INSERT INTO t VALUES (9, 'r', 'new', {t})",
			"insert several":    "INSERT INTO t SELECT i, 'r', 'new', {t} FROM generate_series(10, 20) i",
			"upsert":            "INSERT INTO t VALUES (1, 'r', 'new', {t}) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, last_token = EXCLUDED.last_token",
			"upsert, untouched": "INSERT INTO t VALUES (2, 'r', 'new', {t}) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, last_token = EXCLUDED.last_token",
			"upsert, new":       "INSERT INTO t VALUES (9, 'r', 'new', {t}) ON CONFLICT (id) DO NOTHING",
			"merge":             "MERGE INTO t USING (VALUES (2)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'new', last_token = {t}",
			"merge, new":        "MERGE INTO t USING (VALUES (9)) s(id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (9, 'r', 'new', {t})",
			"merge, delete":     "SET LOCAL fencing.token = '{t}'; MERGE INTO t USING (VALUES (2)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE",
			"delete":            "SET LOCAL fencing.token = '{t}'; DELETE FROM t WHERE id = 1",
			"delete untouched":  "SET LOCAL fencing.token = '{t}'; DELETE FROM t WHERE id = 2",
			"as a replica":      "SET LOCAL session_replication_role = replica; UPDATE t SET v = 'new', last_token = {t} WHERE id = 2",
			"cte":               "WITH u AS (UPDATE t SET v = 'new', last_token = {t} WHERE id = 2 RETURNING id) SELECT * FROM u",
		} {
			for token, want := range states {
				for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
					_, err := try(t, conn, "SET TRANSACTION ISOLATION LEVEL "+isolation+";"+strings.ReplaceAll(sql, "{t}", token))
					if want != "" {
						want = fmt.Sprintf("%.5s ~fencing_zseal %s 60", want, token)
					}
					require.Equal(t, want, refusal(t, err), "%s, %s, %s, %s", by, name, token, isolation)
				}
			}
		}
	}
}

// What is refused for other reasons than an old token, and what the message says.
func TestSealRefusals(t *testing.T) {
	_, fix := sealed(t, "enforce", fixed)
	_, col := sealed(t, "enforce", byColumn)
	for _, tt := range []struct {
		name      string
		conn      *pgx.Conn
		sql, want string
		words     []string
	}{
		{"stale", fix, "UPDATE t SET last_token = 50 WHERE id = 2", "FN001 ~fencing_zseal 50 60",
			[]string{"stale token 50 on UPDATE of public.t, for which lease 'r' was taken under 60", "stop working on it"}},
		{"stale by column", col, "UPDATE t SET last_token = 50 WHERE id = 2", "FN001 ~fencing_zseal 50 60", []string{"the lease that res names was taken under 60"}},
		{"another lease's row, fixed", fix, "UPDATE t SET last_token = 60 WHERE id = 3", "", nil},
		{"another lease's row", col, "UPDATE t SET last_token = 60 WHERE id = 3", "FN001 ~fencing_zseal 60 70", nil},
		{"own row of the other lease", col, "UPDATE t SET last_token = 70 WHERE id = 3", "", nil},
		{"another lease's larger token", fix, "UPDATE t SET last_token = 70 WHERE id = 1", "FN004 ~fencing_zseal 70 60",
			[]string{"is not the one of lease 'r', which is 60: write under the token that the lease gave"}},
		{"two leases at once", col, "UPDATE t SET last_token = 60 WHERE id = 1; UPDATE t SET last_token = 70 WHERE id = 3", "", nil},
		{"one token for two leases", col, "UPDATE t SET last_token = 70", "FN004 ~fencing_zseal 70 60", nil},
		{"never taken", col, "INSERT INTO t VALUES (9, 'never', 'new', 60)", "FN002 ~fencing_zseal 60 -",
			[]string{"the lease that res names, which was never taken: take it"}},
		{"never taken, old snapshots", col,
			"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (9, 'never', 'new', 60)", "FN002 ~fencing_zseal 60 -", nil},
		{"moved", col, "UPDATE t SET res = 's', last_token = 70 WHERE id = 1", "FN004 ~fencing_zseal 70 -",
			[]string{"moves a row to another lease", "leave res as it is"}},
		{"moved, the same", col, "UPDATE t SET res = 'r', last_token = 60 WHERE id = 1", "", nil},
		{"moved, fixed", fix, "UPDATE t SET res = 's', last_token = 60 WHERE id = 1", "", nil},
		{"moved by an upsert", col,
			"INSERT INTO t VALUES (1, 's', '', 70) ON CONFLICT (id) DO UPDATE SET res = EXCLUDED.res, last_token = EXCLUDED.last_token",
			"FN004 ~fencing_zseal 70 -", nil},
		{"a null", col, "UPDATE t SET res = NULL, last_token = 60 WHERE id = 1", "FN004 ~fencing_zseal 60 -", nil},
		{"an inserted null", col, "INSERT INTO t VALUES (9, NULL, '', 60)", "FN002 ~fencing_zseal 60 -", nil},
		{"the wall speaks first", fix, "UPDATE t SET v = 'new' WHERE id = 1", "FN002 ~fencing_update - 50", nil},
		{"the wall, DELETE", fix, "DELETE FROM t WHERE id = 1", "FN002 ~fencing_delete - 50", nil},
		{"never issued", fix, "INSERT INTO t VALUES (9, 'r', '', 1001)", "FN003 ~fencing_insert 1001 -", nil},
		{"the row's own token, which is old", fix, "UPDATE t SET last_token = last_token WHERE id = 1", "FN001 ~fencing_zseal 50 60", nil},
	} {
		_, err := try(t, tt.conn, tt.sql)
		require.Equal(t, tt.want, refusal(t, err), tt.name)
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			require.Equal(t, "public t", pg.SchemaName+" "+pg.TableName, tt.name)
			for _, w := range tt.words {
				require.Contains(t, pg.Message, w, tt.name)
			}
		}
	}
}

// The levels of the wall are the seal's.
func TestSealLevels(t *testing.T) {
	const stale, fresh = "UPDATE t SET last_token = 50 WHERE id = 2", "UPDATE t SET last_token = 60 WHERE id = 2"
	for level, want := range map[string]string{"report": "", "enforce": "FN001 ~fencing_zseal 50 60", "attested": "FN001 ~fencing_zseal 50 60"} {
		for _, by := range []string{fixed, byColumn} {
			dsn, conn := sealed(t, level, by)
			_, err := try(t, conn, "SET LOCAL fencing.token = '50';"+stale)
			require.Equal(t, want, refusal(t, err), level)
			_, err = try(t, conn, "SET LOCAL fencing.token = '60';"+fresh+"; DELETE FROM t WHERE id = 1")
			require.NoError(t, err)
			if level != "report" {
				continue
			}
			notices := 0
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
				require.Equal(t, "FN001", n.Code)
				require.Equal(t, "~fencing_zseal", n.ConstraintName)
				notices++
			}
			other, err := pgx.ConnectConfig(t.Context(), config)
			require.NoError(t, err)
			defer other.Close(t.Context())
			exec(t, other, "SET client_min_messages = log; BEGIN ISOLATION LEVEL SERIALIZABLE; "+stale)
			require.Equal(t, 1, notices, "logged")
			require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", other.PgConn().PID()), "nobody waits for it")
		}
	}
}

// COPY is like INSERT.
func TestSealCopy(t *testing.T) {
	_, conn := sealed(t, "enforce", byColumn)
	for _, tt := range []struct {
		token int
		want  string
	}{{50, "FN001 ~fencing_zseal 50 60"}, {70, "FN004 ~fencing_zseal 70 60"}, {60, ""}} {
		_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"id", "res", "last_token"}, pgx.CopyFromRows([][]any{{21, "s", 70}, {22, "r", tt.token}}))
		require.Equal(t, tt.want, refusal(t, err))
	}
	require.Equal(t, int64(5), get[int64](t, conn, "SELECT count(*) FROM t"))
}

// The types that a column with names of leases may have.
func TestSealColumnTypes(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `SELECT setval('fencing.write_epoch', 100)`)
	for typ, name := range map[string]string{
		"text": "it's", "varchar(20)": "it's", "smallint": "-7", "int": "42", "bigint": "9007199254740993",
		"uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", `text COLLATE "en-x-icu"`: "Mixed",
	} {
		exec(t, conn,
			fmt.Sprintf(`DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, "The %%1$s Column" %s NOT NULL); `+
				`SELECT fencing.register('t', 'lease', 'Last %%s'); SELECT fencing.wall('t')`,
				typ))
		require.NoError(t, migrations.SealByColumn(t.Context(), dsn, "t", "The %1$s Column"))
		literal := "'" + strings.ReplaceAll(name, "'", "''") + "'"
		grant(t, conn, strings.Trim(literal, "'"), 60)
		_, err := try(t, conn, "INSERT INTO t VALUES (1, "+literal+", 60)")
		require.NoError(t, err, typ)
		_, err = try(t, conn, "INSERT INTO t VALUES (1, "+literal+", 50)")
		require.Equal(t, "FN001 ~fencing_zseal 50 60", refusal(t, err), typ)
		if strings.HasSuffix(typ, "ci") {
			_, err = try(t, conn, "INSERT INTO t VALUES (1, 'MIXED', 60)")
			require.Equal(t, "FN002 ~fencing_zseal 60 -", refusal(t, err), "another name")
			_, err = try(t, conn, "INSERT INTO t VALUES (1, 'Mixed', 60); UPDATE t SET \"The %1$s Column\" = 'MIXED', \"Last %s\" = 60")
			require.Equal(t, "FN004 ~fencing_zseal 60 -", refusal(t, err), "another name")
		}
	}
	// a type that the column gets later is not looked at
	exec(t, conn,
		`SELECT fencing.unregister('t'); DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, res text NOT NULL); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.seal('t', by_column => 'res')`)
	_, err := try(t, conn, "ALTER TABLE t ALTER res TYPE name")
	require.ErrorContains(t, err, "cannot alter type of a column used")
	exec(t, conn, `DROP TRIGGER "~fencing_kept_seal" ON t; ALTER TABLE t ALTER res TYPE name`)
	_, err = try(t, conn, "INSERT INTO t VALUES (1, 'r', 60)")
	require.Equal(t, "FN004 ~fencing_zseal - -", refusal(t, err))
	require.ErrorContains(t, err, "has another type than when it was sealed")
}
