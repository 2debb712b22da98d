package migrations_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// objects lists what is in schema fencing.
const objects = `SELECT array_agg(name ORDER BY name) FROM (
	SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'fencing'::regnamespace AND relkind IN ('r', 'S')
	UNION ALL SELECT proname || '()' FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace) o`

func TestUpInstalls(t *testing.T) {
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	conn := open(t, dsn)
	require.Equal(t, []string{
		"allow_function()", "allowed_function", "allowed_functions()", "carry_over()", "check_function()", "check_name()", "check_parents()", "check_seal_column()", "check_sequence()", "check_table()", "check_token_column()", "check_tokens()", "check_triggers()", "claim_name()", "confirm_columns()", "disallow_function()", "doctor()", "doctor_apps()", "doctor_around()", "doctor_bounds()", "doctor_buried()", "doctor_columns()", "doctor_differences()", "doctor_family()", "doctor_functions()", "doctor_given()", "doctor_kept()", "doctor_key_columns()", "doctor_key_text()", "doctor_less()", "doctor_manifest()", "doctor_mend_first()", "doctor_moved()", "doctor_nullable()", "doctor_objects()", "doctor_owner()", "doctor_owners()", "doctor_register()",
		"doctor_registered_less()", "doctor_revoke()", "doctor_roles()", "doctor_schema()",
		"doctor_seal()", "doctor_sequences()", "doctor_sets()", "doctor_settings()", "doctor_subscriptions()", "doctor_tables()", "doctor_tokens()",
		"doctor_tombstones()", "doctor_triggers()", "doctor_wall()", "doctor_without_wall()", "doctor_words()",
		"driver_level()", "driver_rewrite()", "epoch",
		"fail()", "function_digest()", "function_rights()", "generation", "goose_db_version", "goose_db_version_id_seq", "has_function()", "incarnation", "incarnation_now()", "is_own_write()", "is_repair()", "keep_columns()", "kept_columns()", "lease", "lease_ttl()", "lease_wait()", "lock_needed()", "lock_registry()", "next_token()", "partitions()", "prune_tombstones()", "raise_epoch()", "refuse_deadlock()", "refuse_driver()", "refuse_driver_write()", "refuse_moved()", "refuse_unregistered()", "register()", "registered_above()", "registration()", "registry", "registry_changed()", "release()", "renew()",
		"repair()", "repairs", "seal()", "seal_apply()", "seal_bodies()", "seal_changed()", "seal_fail()", "seal_function()", "seal_sweep()", "setting_name()",
		"take()", "take_over()", "tombstone", "tombstone_apply()", "tombstone_bodies()", "tombstone_copy()", "tombstone_functions()",
		"tombstone_key()", "tombstone_key_bodies()", "tombstone_rekey()", "tombstone_sweep()", "tombstones()",
		"tombstones_changed()", "unregister()", "unseal()", "wall()", "wall_apply()", "wall_changed()", "wall_delete_bodies()",
		"wall_functions()", "wall_insert_bodies()", "wall_other_bodies()",
		"wall_sweep()", "wall_update_bodies()", "walls_above()",
		"write_epoch",
	}, get[[]string](t, conn, objects))
	for want := int64(1); want <= 3; want++ {
		require.Equal(t, want, get[int64](t, conn, "SELECT fencing.next_token()"))
	}
}

func TestUpIsIdempotent(t *testing.T) {
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); SELECT fencing.next_token()")
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	before, err := migrations.Version(t.Context(), dsn)
	require.NoError(t, err)
	require.Positive(t, before)

	require.NoError(t, migrations.Up(t.Context(), dsn))
	after, err := migrations.Version(t.Context(), dsn)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT count(*) FROM fencing.registry"))
	require.Equal(t, int64(2), get[int64](t, conn, "SELECT fencing.next_token()"))
}

func TestUpConcurrently(t *testing.T) {
	dsn := localpg.Database(t)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = migrations.Up(t.Context(), dsn) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	conn := open(t, dsn)
	require.Equal(t, get[int64](t, conn, "SELECT count(DISTINCT version_id) FROM fencing.goose_db_version"),
		get[int64](t, conn, "SELECT count(*) FROM fencing.goose_db_version"))
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))
}

// Another run holds the lock: Up waits, and gives up when its context ends.
func TestUpWaitsForTheLock(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	exec(t, conn, "SELECT pg_advisory_lock(x'66656e6365726f77'::bigint)")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- migrations.Up(ctx, dsn) }()
	fencetest.Eventually(t, func() bool {
		return get[bool](t, conn,
			"SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM "+
				"pg_database WHERE datname = current_database()))")
	})
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for another migration")
	require.False(t, get[bool](t, conn, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'fencing')"))
}

func TestUpBesideAnotherGoose(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	const versions = "SELECT array_agg(version_id ORDER BY id) FROM public.goose_db_version"
	exec(t, conn, `CREATE TABLE goose_db_version (id int PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, version_id bigint NOT NULL,
		is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true), (1, true), (2, true), (20240101000000, true)`)
	before := get[[]int64](t, conn, versions)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))
	require.Equal(t, before, get[[]int64](t, conn, versions))
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.Equal(t, before, get[[]int64](t, conn, versions))
}

func TestDown(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); SELECT fencing.register('orders', 'strict'); INSERT INTO orders VALUES (1, 7)")
	exists := "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'fencing')"

	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.False(t, get[bool](t, conn, exists))
	require.Equal(t, int64(7), get[int64](t, conn, "SELECT last_token FROM orders"), "the column stays")
	v, err := migrations.Version(t.Context(), dsn)
	require.NoError(t, err)
	require.Zero(t, v)
	require.NoError(t, migrations.Down(t.Context(), dsn), "a second time")
	require.False(t, get[bool](t, conn, exists), "neither call makes anything")

	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
}

// What somebody else put into the schema stays, and the schema with it; what
// somebody else built on it stops Down.
func TestDownLeavesWhatIsNotOurs(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE fencing.theirs (); CREATE TABLE audit (t bigint DEFAULT nextval('fencing.write_epoch'))")
	requireRefused(t, migrations.Down(t.Context(), dsn), "2BP01", "remove schema fencing")
	exec(t, conn, "DROP TABLE audit")
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.Equal(t, []string{"theirs"}, get[[]string](t, conn, objects))
	require.NoError(t, migrations.Up(t.Context(), dsn))
}
