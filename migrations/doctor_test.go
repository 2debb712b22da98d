package migrations_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// healthy is what the doctor finds nothing wrong with, odd names included.
const healthy = `CREATE SCHEMA "my App"; CREATE TABLE "my App"."Order ""Lines""" (id int PRIMARY KEY, note text);
	CREATE TABLE orders (id int PRIMARY KEY, note text); CREATE TABLE jobs (id int PRIMARY KEY, note text, last_token bigint NOT NULL);
	CREATE INDEX ON orders (id, note);
	CREATE TABLE parted (id int, at date) PARTITION BY RANGE (at);
	CREATE TABLE parted_24 PARTITION OF parted FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (id);
	CREATE TABLE parted_24_1 PARTITION OF parted_24 FOR VALUES FROM (1) TO (10);
	CREATE TABLE parent (id int); CREATE TABLE child (more text) INHERITS (parent);
	SELECT fencing.register('orders', 'strict'), fencing.register('jobs', 'lease'), fencing.register('parted', 'lease', resource => 'bill''s %s'),
		fencing.register('parent', 'strict'), fencing.register('"my App"."Order ""Lines"""', 'strict', token_column => 'Last Token');
	CREATE INDEX ON orders (last_token); CREATE INDEX ON parted (last_token);
	SELECT fencing.wall(relid, 'enforce') FROM fencing.registry; SELECT fencing.wall('jobs', 'attested');
	CREATE TABLE keyed (a text, b numeric, c int, PRIMARY KEY (b, a) INCLUDE (c)) PARTITION BY RANGE (b); CREATE TABLE keyed_1 PARTITION OF keyed DEFAULT;
	SELECT fencing.register('keyed', 'lease'); SELECT fencing.wall('keyed'); SELECT fencing.tombstones('keyed');
	CREATE TABLE seals (id int, region text NOT NULL) PARTITION BY LIST (region); CREATE TABLE seals_eu PARTITION OF seals FOR VALUES IN ('eu');
	SELECT fencing.register('seals', 'lease'); SELECT fencing.wall('seals'); SELECT fencing.seal('seals', by_column => 'region');
	SELECT fencing.next_token(); SELECT fencing.next_token(); SELECT fencing.take('eu', '1 h', 'h'); INSERT INTO seals SELECT 1, 'eu', token FROM fencing.lease;
	INSERT INTO orders VALUES (1, 'a', 2); INSERT INTO parted VALUES (1, '2024-05-05', 1); INSERT INTO child VALUES (1, 'm', 2);
	INSERT INTO "my App"."Order ""Lines""" VALUES (1, 'o', 1); INSERT INTO keyed VALUES ('a', 1.50, 3, 2);
	BEGIN; SET LOCAL fencing.token = '1'; INSERT INTO jobs VALUES (1, 'j', 1); COMMIT`

var doctored = localpg.Template{Name: "doctored", Setup: func(ctx context.Context, dsn string) error {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	return runSQL(ctx, dsn, healthy)
}}

// newApp is a role that logs in, with exactly the documented rights and those
// to write the tables.
func newApp(t *testing.T, dsn string) (role, roleDSN string) {
	t.Helper()
	role, roleDSN = newRole(t, dsn)
	fencetest.Run(t, dsn, "ALTER ROLE "+role+" LOGIN;"+documentedGrants(t, "app", role)+`
		GRANT USAGE ON SCHEMA "my App" TO `+role+`; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, "my App" TO `+role)
	return role, roleDSN
}

// codes are the codes of the findings of some severities, each once.
func codes(findings []migrations.Finding, severities ...string) []string {
	found := []string{}
	for _, f := range findings {
		if slices.Contains(severities, f.Severity) {
			found = append(found, f.Code)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// diagnose asks the doctor over a session that is kept for the next call with the same
// DSN, until the test ends that was the first to call.
func diagnose(t *testing.T, dsn string, roles ...string) []migrations.Finding {
	t.Helper()
	session := takeDoctor(t, dsn)
	findings, err := session.Doctor(t.Context(), roles...)
	if err != nil {
		session.Close()
	} else {
		giveDoctor(dsn, session)
	}
	require.NoError(t, err)
	for _, f := range findings {
		for _, part := range []string{f.Severity, f.Code, f.Object, f.Problem, f.Consequence, f.Remedy} {
			require.NotEmpty(t, part, "%v", f)
			require.NotContains(t, part, "\n")
		}
	}
	return findings
}

// doctors are the idle sessions by DSN. A DSN has an entry as long as its first test runs.
var doctors = struct {
	sync.Mutex
	idle map[string][]migrations.DoctorSession
}{idle: make(map[string][]migrations.DoctorSession)}

func takeDoctor(t *testing.T, dsn string) migrations.DoctorSession {
	t.Helper()
	doctors.Lock()
	idle, isKnown := doctors.idle[dsn]
	if !isKnown {
		t.Cleanup(func() { dismissDoctors(dsn) })
	}
	doctors.idle[dsn] = nil
	doctors.Unlock()
	for i, session := range idle {
		if session.Works(t.Context()) {
			for _, rest := range idle[i+1:] {
				giveDoctor(dsn, rest)
			}
			return session
		}
		session.Close()
	}
	session, err := migrations.OpenDoctor(t.Context(), dsn)
	require.NoError(t, err)
	return session
}

func giveDoctor(dsn string, session migrations.DoctorSession) {
	doctors.Lock()
	defer doctors.Unlock()
	if _, isKnown := doctors.idle[dsn]; isKnown {
		doctors.idle[dsn] = append(doctors.idle[dsn], session)
		return
	}
	session.Close() // its test has ended
}

// dismissDoctors closes the idle sessions, for a test that needs a database to itself.
func dismissDoctors(dsn string) {
	doctors.Lock()
	defer doctors.Unlock()
	for _, session := range doctors.idle[dsn] {
		session.Close()
	}
	delete(doctors.idle, dsn)
}

func TestDoctorHealthy(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	role, roleDSN := newApp(t, dsn)
	admin := open(t, dsn)
	for _, roles := range [][]string{nil, {role}} {
		findings := diagnose(t, dsn, roles...)
		require.Empty(t, codes(findings, "error", "warning"), "%v", findings)
		require.True(t, migrations.Healthy(findings))
		require.NotContains(t, codes(findings, "info"), "D802 wall-not-tried", "%v", findings)
	}
	require.Empty(t, get[[]string](t, admin, "SELECT coalesce(array_agg(code), '{}') FROM fencing.doctor(scan => true) WHERE severity <> 'info'"))
	readOnly := diagnose(t, with(dsn, "default_transaction_read_only", "on"))
	require.Empty(t, codes(readOnly, "error", "warning"), "%v", readOnly)
	require.Contains(t, codes(readOnly, "info"), "D802 wall-not-tried")
	require.Equal(t, []string{"D412 role-missing"}, codes(diagnose(t, dsn, "no such role"), "error", "warning"))

	// as the application's role
	_, err := migrations.Doctor(t.Context(), roleDSN)
	requireRefused(t, err, "42501", "run the doctor: permission denied for function doctor", "EXECUTE on fencing.doctor")
	exec(t, admin, "GRANT EXECUTE ON FUNCTION fencing.doctor TO "+role)
	findings := diagnose(t, roleDSN, role)
	require.Empty(t, codes(findings, "error", "warning"), "%v", findings)
	require.Contains(t, codes(findings, "info"), "D802 wall-not-tried", "it has no right to TRUNCATE")
	require.Empty(t, get[[]string](t, open(t, roleDSN), "SELECT coalesce(array_agg(code), '{}') FROM fencing.doctor(scan => true) WHERE severity <> 'info'"))
	require.Empty(t,
		get[[]string](t, open(t, with(roleDSN, "search_path", "mine, pg_catalog")),
			"SELECT coalesce(array_agg(code), '{}') FROM fencing.doctor(true) WHERE severity <> 'info'"))
}

func TestDoctorChangesNothing(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	const content = `SELECT concat_ws(' ', (SELECT json_agg(o ORDER BY id) FROM orders o), (SELECT json_agg(j ORDER BY id) FROM jobs j), (SELECT json_agg(p) FROM parted p),
		(SELECT json_agg(c) FROM child c), (SELECT json_agg(r ORDER BY relid) FROM fencing.registry r), (SELECT value FROM fencing.generation), (SELECT last_value FROM fencing.write_epoch))`
	exec(t, admin,
		"CREATE TABLE plain (id int, last_token bigint NOT NULL DEFAULT 0); INSERT INTO plain VALUES (1, 0); "+
			"SELECT fencing.register('plain', 'lease'); SELECT fencing.wall('plain', 'report')")
	before := get[string](t, admin, content)
	require.Contains(t, codes(diagnose(t, dsn), "info"), "D206 wall-report")
	require.Equal(t, before, get[string](t, admin, content))
}

func TestDoctorNotInstalled(t *testing.T) {
	dsn := localpg.Database(t)
	_, err := migrations.Doctor(t.Context(), dsn)
	require.ErrorIs(t, err, migrations.ErrNotInstalled)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Empty(t, codes(diagnose(t, dsn), "error", "warning"))

	conn := open(t, dsn)
	exec(t, conn, "DELETE FROM fencing.goose_db_version WHERE version_id > 0")
	findings := diagnose(t, dsn)
	require.Equal(t, []string{"D901 version-behind"}, codes(findings, "warning"))
	require.Equal(t, "warning D901 version-behind: schema fencing: it is at version 0, and this program has migrations up to 1; "+
		"what the newer version mends is not mended here; run migrations.Up(ctx, dsn)", findings[0].String())

	exec(t, conn, "DROP FUNCTION fencing.doctor")
	_, err = migrations.Doctor(t.Context(), dsn)
	require.ErrorIs(t, err, migrations.ErrNotInstalled)
	requireRefused(t, err, "42883", "run the doctor: schema fencing is not installed as this program needs it: run migrations.Up")
}

// A row that somebody has locked, and a table that somebody reads, hold nobody up.
func TestDoctorBesideOthers(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	other := open(t, dsn)
	exec(t, other, "BEGIN; SELECT * FROM orders FOR UPDATE")
	findings := diagnose(t, dsn)
	require.Empty(t, codes(findings, "error", "warning"))
	var about []string
	for _, f := range findings {
		if f.Code == "D802 wall-not-tried" {
			require.Equal(t, "public.orders", f.Object)
			about = append(about, f.Problem)
		}
	}
	require.Equal(t, []string{"UPDATE and DELETE could not be tried: it has no row that is free, or none that the role sees",
		"TRUNCATE could not be tried: canceling statement due to lock timeout"}, about)
	exec(t, other, "ROLLBACK")
}

// Who owns what is protected may be there to deploy, unless it is named.
func TestDoctorRoles(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	app, _ := newApp(t, dsn)
	deploy, _ := newRole(t, dsn)
	exec(t, admin, "ALTER ROLE "+deploy+" LOGIN;"+documentedGrants(t, "deploy", deploy)+"ALTER TABLE orders OWNER TO "+deploy)
	owns := []string{"D401 role-owns-table", "D406 role-writes-registry", "D407 role-executes"}
	findings := diagnose(t, dsn)
	require.Equal(t, owns, codes(findings, "warning"), "%v", findings)
	require.True(t, migrations.Healthy(findings))
	findings = diagnose(t, dsn, app, deploy)
	require.Equal(t, owns, codes(findings, "error"))
	require.False(t, migrations.Healthy(findings))
	require.Empty(t, codes(diagnose(t, dsn, app), "error", "warning"))

	// a right that comes from elsewhere is taken back there
	exec(t, admin, "GRANT pg_write_all_data TO "+app)
	findings = diagnose(t, dsn, app)
	require.Equal(t, []string{"D406 role-writes-registry"}, codes(findings, "error", "warning"))
	require.Equal(t, "REVOKE pg_write_all_data FROM "+app+", or from the role that it has this through", findings[0].Remedy)
}

// Without an index, rows are read on request only.
func TestDoctorScan(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	exec(t, admin, "DROP INDEX orders_last_token_idx; CREATE INDEX ON orders (last_token) WHERE id > 5; SELECT setval('fencing.write_epoch', 1)")
	const behind = "SELECT count(*) FROM fencing.doctor($1) WHERE code = 'D307 sequence-behind' AND object = 'public.orders'"
	require.Equal(t, int64(0), get[int64](t, admin, behind, false))
	require.Equal(t, int64(1), get[int64](t, admin, behind, true))
}

// Hundreds of partitions don't keep a deployment waiting: what the doctor reads grows
// with them, and not by their square.
func TestDoctorManyTables(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	newApp(t, dsn)
	exec(t, admin, "CREATE TABLE many (id int) PARTITION BY RANGE (id)")
	grow := func(from, to int) (read float64) {
		exec(t, admin, fmt.Sprintf(`DO $$ BEGIN
			FOR i IN %[1]d..%[2]d LOOP
				EXECUTE format('CREATE TABLE many_%%s PARTITION OF many FOR VALUES FROM (%%s) TO (%%s)', i, i, i + 1);
				IF i %% 3 = 0 THEN EXECUTE format('CREATE TABLE t%%s (id int)', i); PERFORM fencing.register(format('t%%s', i)::regclass, 'strict'); END IF;
			END LOOP;
			IF %[1]d = 1 THEN PERFORM fencing.register('many', 'lease'); END IF;
		END $$;
		SELECT fencing.wall(relid, 'enforce') FROM fencing.registry WHERE wall_level = 'off' OR relid = 'many'::regclass`, from, to))
		require.Empty(t, codes(diagnose(t, dsn), "error", "warning"))
		plan := get[[]map[string]any](t, admin, "EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) SELECT * FROM fencing.doctor()")
		return plan[0]["Plan"].(map[string]any)["Shared Hit Blocks"].(float64)
	}
	half, whole := grow(1, 75), grow(76, 150)
	t.Log(half, whole)
	require.Less(t, whole, 3*half, "four times as much would be the square")
}

// A superuser is for administrators; one that an application was said to
// connect as is an error.
func TestDoctorSuperuser(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	require.Contains(t, codes(diagnose(t, dsn), "info"), "D411 superuser")
	for _, f := range append(diagnose(t, dsn), diagnose(t, dsn, get[string](t, admin, "SELECT current_user::text"))...) {
		require.NotContains(t, f.Remedy, "NOSUPERUSER", "it may be the only one: %v", f)
	}
	super := get[string](t, admin, "SELECT current_user::text")
	require.Equal(t, []string{"D411 superuser"}, codes(diagnose(t, dsn, super), "error"))
	app, _ := newApp(t, dsn)
	require.Empty(t, codes(diagnose(t, dsn, app), "error", "warning"))
	exec(t, admin, "ALTER ROLE "+app+" NOLOGIN SUPERUSER")
	require.Equal(t, []string{"D411 superuser"}, codes(diagnose(t, dsn, app), "error"))
}

// Before PostgreSQL 16 CREATEROLE was enough to become a member of the owner.
func TestDoctorMakesRoles(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	app, _ := newApp(t, dsn)
	in, _ := newRole(t, dsn)
	want := []string{}
	if major(t, admin) < 16 {
		want = []string{"D414 role-makes-roles"}
	}
	exec(t, admin, "ALTER ROLE "+app+" CREATEROLE")
	require.Equal(t, want, codes(diagnose(t, dsn), "error", "warning"))
	exec(t, admin, "ALTER ROLE "+app+" NOCREATEROLE; ALTER ROLE "+in+" CREATEROLE; GRANT "+in+" TO "+app)
	require.Equal(t, want, codes(diagnose(t, dsn, app), "error", "warning"))
	exec(t, admin, "ALTER ROLE "+in+" NOCREATEROLE SUPERUSER")
	require.Equal(t, []string{"D414 role-makes-roles"}, codes(diagnose(t, dsn, app), "error", "warning"))
}
