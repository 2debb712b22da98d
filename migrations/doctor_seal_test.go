package migrations_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

const sealTrigger = `trigger "~fencing_zseal" on public.seals`

// sealedByRegion makes a table that is sealed by a column.
const sealedByRegion = `CREATE TABLE s2 (id int NOT NULL, region text NOT NULL, other text NOT NULL); SELECT fencing.register('s2', 'lease'), fencing.wall('s2', 'attested'), fencing.seal('s2', by_column => 'region'); `

var sealFaults = []fault{
	{"trigger dropped", `DROP TRIGGER "~fencing_zseal" ON seals`, []string{"D202 trigger-missing"}, sealTrigger},
	{"not always", `ALTER TABLE ONLY seals ENABLE TRIGGER "~fencing_zseal"`, []string{"D203 trigger-disabled"}, sealTrigger},
	{"disabled on a partition", `ALTER TABLE seals_eu DISABLE TRIGGER "~fencing_zseal"`, []string{"D203 trigger-disabled"},
		`trigger "~fencing_zseal" on public.seals_eu`},
	{"another function", `CREATE FUNCTION lax() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; DROP TRIGGER "~fencing_zseal" ON seals;
		CREATE TRIGGER "~fencing_zseal" BEFORE UPDATE ON seals FOR EACH ROW EXECUTE FUNCTION lax('enforce'); ALTER TABLE seals ENABLE ALWAYS TRIGGER "~fencing_zseal"`,
		[]string{"D204 trigger-function", "D601 trigger-after-check"}, sealTrigger},
	{"function replaced", `DO $$ DECLARE f text := (SELECT tgfoid::regproc FROM pg_trigger WHERE tgrelid = 'seals'::regclass AND tgname = '~fencing_zseal');
		BEGIN EXECUTE format('CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS ''BEGIN RETURN NEW; END''', f); END $$`,
		[]string{"D204 trigger-function"}, sealTrigger},
	{"function given away", `DO $$ DECLARE f text := (SELECT tgfoid::regproc FROM pg_trigger WHERE tgrelid = 'seals'::regclass AND tgname = '~fencing_zseal');
		BEGIN EXECUTE format('ALTER FUNCTION %s() OWNER TO pg_monitor', f); END $$`, []string{"D005 schema-owners", "D204 trigger-function"}, sealTrigger},
	{"INSERT left out", `DO $$ DECLARE f text := (SELECT tgfoid::regproc FROM pg_trigger WHERE tgrelid = 'seals'::regclass AND tgname = '~fencing_zseal');
		BEGIN EXECUTE format('CREATE OR REPLACE TRIGGER "~fencing_zseal" BEFORE UPDATE OR DELETE ON seals FOR EACH ROW EXECUTE FUNCTION %s(''enforce'')', f); END $$;
		ALTER TABLE seals ENABLE ALWAYS TRIGGER "~fencing_zseal"`, []string{"D205 trigger-changed"}, sealTrigger},
	{"after the check", trigger + `CREATE TRIGGER "~fencing_zz" BEFORE INSERT ON seals FOR EACH ROW EXECUTE FUNCTION h()`,
		[]string{"D601 trigger-after-check"}, `trigger "~fencing_zz" on public.seals`},
	{"left on a child",
		`CREATE TABLE par (id int); CREATE TABLE kid () INHERITS (par); SELECT fencing.register('par', 'lease'), fencing.wall('par'), fencing.seal('par', 'eu');
		ALTER TABLE kid NO INHERIT par`, []string{"D209 wall-left-over"}, "public.kid"},
	{"registry's trigger dropped", `DROP TRIGGER seal ON fencing.registry`, []string{"D210 registry-trigger"}, "trigger seal on fencing.registry"},
	{"epochs behind", `UPDATE fencing.epoch SET token = 1`, []string{"D221 seal-behind"}, "lease 'eu'"},
	{"one epoch behind", `UPDATE fencing.epoch SET token = 1 WHERE stripe = 7`, []string{"D221 seal-behind"}, "lease 'eu'"},
	{"epochs gone", `TRUNCATE fencing.epoch`, []string{"D221 seal-behind"}, "lease 'eu'"},
	{"epochs above the lease", `UPDATE fencing.epoch SET token = 9000`, []string{"D221 seal-behind", "D307 sequence-behind"}, "lease 'eu'"},
	{"one epoch above the lease", `UPDATE fencing.epoch SET token = 9000 WHERE stripe = 7`, []string{"D221 seal-behind", "D307 sequence-behind"}, "lease 'eu'"},
	{"one epoch gone, and the others above the lease", `DELETE FROM fencing.epoch WHERE stripe = 7; UPDATE fencing.epoch SET token = 9000`, []string{"D221 seal-behind", "D307 sequence-behind"}, "lease 'eu'"},
	{"an epoch that no token is above", `UPDATE fencing.epoch SET token = 9223372036854775807 WHERE stripe = 7`, []string{"D221 seal-behind", "D307 sequence-behind"}, "lease 'eu'"},
	{"the sequence behind the leases", `UPDATE fencing.lease SET token = fencing.next_token(); SELECT setval('fencing.write_epoch', 5)`, []string{"D307 sequence-behind"}, "sequence fencing.write_epoch"},
	{"a lease of five years", `UPDATE fencing.lease SET expires_at = now() + interval '5 years'`, []string{"D228 seal-lease-endless"}, "lease 'eu'"},
	{"one epoch gone", `DELETE FROM fencing.epoch WHERE stripe = 0`, []string{"D221 seal-behind"}, "lease 'eu'"},
	{"epochs' trigger dropped", `DROP TRIGGER epoch ON fencing.lease`, []string{"D222 seal-epoch-trigger"}, "trigger epoch on fencing.lease"},
	{"epochs' trigger not always", `ALTER TABLE fencing.lease ENABLE TRIGGER epoch`, []string{"D222 seal-epoch-trigger"}, "trigger epoch on fencing.lease"},
	{"column nullable",
		`CREATE TABLE s2 (id int, region text NOT NULL); SELECT fencing.register('s2', 'lease'), fencing.wall('s2'), fencing.seal('s2', by_column => 'region');
		ALTER TABLE s2 ALTER region DROP NOT NULL`, []string{"D223 seal-column"}, "public.s2"},
	{"column renamed", `ALTER TABLE seals RENAME region TO r`, []string{"D223 seal-column"}, "public.seals_eu"},
	{"column of another type",
		`CREATE TABLE s2 (id int, region text NOT NULL); SELECT fencing.register('s2', 'lease'), fencing.wall('s2'), fencing.seal('s2', by_column => 'region'), fencing.wall('s2', 'off');
		DROP TRIGGER "~fencing_kept_seal" ON s2; ALTER TABLE s2 ALTER region TYPE name`, []string{"D201 wall-off", "D223 seal-column", "D224 seal-without-wall"}, "public.s2"},
	{"column of another type under its seal", sealedByRegion + `DROP TRIGGER "~fencing_kept_seal" ON s2; ALTER TABLE s2 ALTER region TYPE name`, []string{"D223 seal-column"}, "public.s2"},
	{"columns exchanged", sealedByRegion + `ALTER TABLE s2 RENAME region TO x; ALTER TABLE s2 RENAME other TO region; ALTER TABLE s2 RENAME x TO other`, []string{"D223 seal-column"}, "public.s2"},
	{"columns of two types exchanged", sealedByRegion + `ALTER TABLE s2 RENAME region TO x; ALTER TABLE s2 RENAME id TO region; ALTER TABLE s2 RENAME x TO id`,
		[]string{"D204 trigger-function", "D223 seal-column"}, "public.s2"},
	{"column dropped, and another by its name", sealedByRegion + `ALTER TABLE s2 DROP region CASCADE; ALTER TABLE s2 ADD region text NOT NULL DEFAULT 'eu'`, []string{"D223 seal-column"}, "public.s2"},

	{"column generated", `CREATE TABLE s2 (id int, region text NOT NULL); SELECT fencing.register('s2', 'lease'), fencing.wall('s2'), fencing.seal('s2', by_column => 'region');
		ALTER TABLE s2 DROP region CASCADE; ALTER TABLE s2 ADD region text NOT NULL GENERATED ALWAYS AS ('eu') STORED`, []string{"D223 seal-column"}, "public.s2"},
	{"without a wall", `SELECT fencing.wall('seals', 'off')`, []string{"D201 wall-off", "D224 seal-without-wall"}, "public.seals"},
	{"a role that unseals", `GRANT EXECUTE ON FUNCTION fencing.unseal TO APP`, []string{"D407 role-executes"}, "role APP"},
}

// A role that leaves its transactions open for as long as it likes, where it
// writes what is sealed.
func TestDoctorSealTimeouts(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	role, _ := newApp(t, dsn)
	requireFound := func(want bool) {
		t.Helper()
		require.Equal(t, want, slices.Contains(codes(diagnose(t, dsn, role), "info"), "D225 seal-no-timeout"))
	}
	requireFound(true)
	for _, tt := range []struct {
		sql  string
		want bool
	}{
		{"SET idle_in_transaction_session_timeout = '10s'", false},
		{"SET idle_in_transaction_session_timeout = '0s'", true},
		{"SET idle_in_transaction_session_timeout = 10000", false},
		{"RESET idle_in_transaction_session_timeout", true},
	} {
		exec(t, admin, "ALTER ROLE "+role+" "+tt.sql)
		requireFound(tt.want)
	}
	exec(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = 5000', current_database()); END $$")
	requireFound(false)
	exec(t, admin, "ALTER ROLE "+role+" SET idle_in_transaction_session_timeout = 0")
	requireFound(true)
	exec(t, admin, "SELECT fencing.unseal('seals')")
	requireFound(false)
}

// Who may run fencing.doctor, and not the part that is about seals, is told.
func TestDoctorSealNotSeen(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	role, roleDSN := newApp(t, dsn)
	exec(t, open(t, dsn), "GRANT EXECUTE ON FUNCTION fencing.doctor TO "+role)
	findings := diagnose(t, roleDSN, role)
	i := slices.IndexFunc(findings, func(f migrations.Finding) bool { return f.Code == "D226 seal-not-seen" })
	require.GreaterOrEqual(t, i, 0)
	exec(t, open(t, dsn), findings[i].Remedy)
	require.NotContains(t, codes(diagnose(t, roleDSN, role), "info"), "D226 seal-not-seen")
	require.Empty(t, codes(diagnose(t, roleDSN, role), "error", "warning"))
}

// A table that is sealed to a lease by another name than that which is taken.
func TestDoctorSealNeverTaken(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	exec(t, admin, "CREATE TABLE s2 (id int); SELECT fencing.register('s2', 'lease'), fencing.wall('s2'), fencing.seal('s2', 'orders')")
	requireFound := func(want bool) {
		t.Helper()
		require.Equal(t, want, slices.Contains(codes(diagnose(t, dsn), "info"), "D227 seal-never-taken"))
	}
	requireFound(true)
	exec(t, admin, "SELECT fencing.take('order', '1 s', 'h')")
	requireFound(true)
	exec(t, admin, "SELECT fencing.take('orders', '1 s', 'h')")
	requireFound(false)
}

func TestDoctorSealOfNothing(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	for _, args := range []string{"'{}', '[]'", "'[]', '{}'", "NULL, NULL", "'1', '[]'"} {
		_, err := conn.Exec(t.Context(), "SELECT * FROM fencing.doctor_seal("+args+")")
		requireHint(t, err, "22023", "no tables or no roles given", "fencing.doctor()")
	}
}
