package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// schemaFaults are changes of schema fencing itself. The doctor's advice undoes all
// of them but one.
var schemaFaults = []fault{
	{"registry unlogged", `ALTER TABLE fencing.registry SET UNLOGGED`, []string{"D004 schema-changed"}, "fencing.registry"},
	{"tombstones unlogged", `ALTER TABLE fencing.tombstone SET UNLOGGED`, []string{"D004 schema-changed"}, "fencing.tombstone"},
	{"rule", `CREATE RULE lost AS ON INSERT TO fencing.tombstone DO INSTEAD NOTHING`, []string{"D004 schema-changed"}, "rule lost of fencing.tombstone"},
	{"rule on the epochs", `CREATE RULE kept AS ON UPDATE TO fencing.epoch DO INSTEAD NOTHING`, []string{"D004 schema-changed"}, "rule kept of fencing.epoch"},
	{"trigger", `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER lose BEFORE INSERT ON fencing.tombstone FOR EACH ROW EXECUTE FUNCTION lose()`,
		[]string{"D004 schema-changed"}, "trigger lose of fencing.tombstone"},
	{"owner of a table", `ALTER TABLE fencing.tombstone OWNER TO pg_monitor`, []string{"D005 schema-owners"}, "table fencing.tombstone"},
	{"owner of the sequence", `ALTER SEQUENCE fencing.write_epoch OWNER TO pg_monitor`, []string{"D005 schema-owners"}, "sequence fencing.write_epoch"},
	{"owner of a function", `ALTER FUNCTION fencing.fail OWNER TO pg_monitor`, []string{"D005 schema-owners"}, "function fencing.fail(text,text,oid,text,name,name,text,text,bigint,bigint)"},
	{"schema handed over, and PUBLIC may use it", `ALTER SCHEMA fencing OWNER TO pg_monitor; GRANT USAGE ON SCHEMA fencing TO PUBLIC`, []string{"D003 schema-owner"}, "schema fencing"},
	{"functions handed over", `DO $$ DECLARE f record; BEGIN FOR f IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace AND proname ~ '^(fail|seal|wall)' LOOP
		EXECUTE format('ALTER FUNCTION %s OWNER TO pg_monitor', f.name); END LOOP; END $$`, []string{"D005 schema-owners", "D204 trigger-function"}, "function fencing.seal(regclass,text,name)"},
	{"function dropped", `DROP FUNCTION fencing.fail, fencing.seal_fail, fencing.lease_wait, fencing.renew, fencing.wall_apply, fencing.claim_name`,
		[]string{"D001 schema-broken"}, "function fencing.renew(resource text, token bigint, ttl interval)"},
	{"function of a trigger dropped", `DROP FUNCTION fencing.tombstones_changed CASCADE`, []string{"D001 schema-broken", "D210 registry-trigger"}, "function fencing.tombstones_changed()"},
	{"function changed", `CREATE OR REPLACE FUNCTION fencing.check_table(tbl regclass) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS 'BEGIN END'`,
		[]string{"D004 schema-changed"}, "function fencing.check_table(tbl regclass)"},
	{"function without its search_path", `ALTER FUNCTION fencing.next_token() RESET search_path`, []string{"D004 schema-changed"}, "function fencing.next_token()"},
	{"function as who calls it", `ALTER FUNCTION fencing.next_token() SECURITY INVOKER`, []string{"D004 schema-changed"}, "function fencing.next_token()"},
	{"function of the same name", `CREATE FUNCTION fencing.is_repair(rel oid, token int, current int) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
		[]string{"D004 schema-changed"}, "function fencing.is_repair(rel oid, token integer, current integer)"},
	{"doctor silenced", `CREATE OR REPLACE FUNCTION fencing.doctor_wall(family jsonb, apps jsonb)
		RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE sql STABLE AS $$ SELECT NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text WHERE false $$`,
		[]string{"D004 schema-changed"}, "function fencing.doctor_wall(family jsonb, apps jsonb)"},
	{"doctor's comparison silenced", `CREATE OR REPLACE FUNCTION fencing.doctor_manifest() RETURNS TABLE (kind text, parent text, object text, definition text) LANGUAGE sql AS $$ SELECT * FROM fencing.doctor_objects() $$`,
		[]string{"D004 schema-changed"}, "function fencing.doctor_manifest()"},
	{"key dropped", `ALTER TABLE fencing.epoch DROP CONSTRAINT epoch_pkey`, []string{"D001 schema-broken"}, "constraint epoch_pkey of fencing.epoch"},
	{"key of the registry dropped", `ALTER TABLE fencing.registry DROP CONSTRAINT registry_schema_name_table_name_key`, []string{"D001 schema-broken"}, "constraint registry_schema_name_table_name_key of fencing.registry"},
	{"constraint of a level changed", `ALTER TABLE fencing.registry DROP CONSTRAINT registry_wall_level_check, ADD CONSTRAINT registry_wall_level_check CHECK (wall_level <> 'attested') NOT VALID`,
		[]string{"D004 schema-changed"}, "constraint registry_wall_level_check of fencing.registry"},
	{"constraint added", `ALTER TABLE fencing.tombstone ADD CONSTRAINT small CHECK (token < 1000)`, []string{"D004 schema-changed"}, "constraint small of fencing.tombstone"},
	{"index dropped", `DROP INDEX fencing.repairs_in_progress`, []string{"D001 schema-broken"}, "index repairs_in_progress of fencing.repairs"},
	{"unique index added", `CREATE UNIQUE INDEX one ON fencing.tombstone (relid)`, []string{"D004 schema-changed"}, "index one of fencing.tombstone"},
	{"index of an expression added", `CREATE INDEX expr ON fencing.tombstone ((token + 1))`, []string{"D004 schema-changed"}, "index expr of fencing.tombstone"},
	{"index added", `CREATE INDEX plain ON fencing.tombstone (deleted_at)`, []string{}, ""},
	{"function of the epochs' trigger dropped", `DROP FUNCTION fencing.raise_epoch() CASCADE`, []string{"D001 schema-broken", "D222 seal-epoch-trigger"}, "trigger epoch on fencing.lease"},
	{"function of the seal's trigger dropped", `DROP FUNCTION fencing.seal_changed() CASCADE`, []string{"D001 schema-broken", "D210 registry-trigger"}, "trigger seal on fencing.registry"},
	{"column nullable", `ALTER TABLE fencing.registry ALTER wall_level DROP NOT NULL`, []string{"D001 schema-broken"}, "not null wall_level of fencing.registry"},
	{"default changed", `ALTER TABLE fencing.registry ALTER driver_level SET DEFAULT 'off'`, []string{"D004 schema-changed"}, "default driver_level of fencing.registry"},
	{columnAdded, `ALTER TABLE fencing.lease ADD note text`, []string{"D004 schema-changed"}, "column note of fencing.lease"},
	{"type of a column", `ALTER TABLE fencing.lease ALTER resource TYPE varchar`, []string{"D004 schema-changed"}, "column resource of fencing.lease"},
	{"row security forced", `ALTER TABLE fencing.registry ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`, []string{"D004 schema-changed"}, "fencing.registry"},
	{"policy", `ALTER TABLE fencing.epoch ENABLE ROW LEVEL SECURITY; CREATE POLICY hidden ON fencing.epoch USING (false)`, []string{"D004 schema-changed"}, "policy hidden of fencing.epoch"},
	{"increment", `ALTER SEQUENCE fencing.write_epoch INCREMENT BY 1000000000000000000`, []string{"D004 schema-changed"}, "sequence fencing.write_epoch"},
	{"something of somebody else's", `CREATE FUNCTION fencing.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TABLE fencing.my_table (id int); CREATE SEQUENCE fencing.my_sequence INCREMENT BY 2`, []string{}, ""},
}

// columnAdded is the one fault of these that is left to a person.
const columnAdded = "column added"

// schemaState is what schema fencing is made of, who owns it, and what everybody may run
// that is for its owner.
type schemaState struct {
	Objects []string
	Owners  int
	Open    int
}

// readSchema reads the state of schema fencing. However it was changed, the remedies
// bring it back as it was made, but for the rights on functions that were gone.
func readSchema(t *testing.T, conn *pgx.Conn) schemaState {
	t.Helper()
	return collect[schemaState](t, conn, `SELECT (SELECT array_agg(concat_ws(' ', kind, parent, object, definition) ORDER BY kind, parent, object) FROM fencing.doctor_objects()),
		(SELECT count(DISTINCT owner) FROM (SELECT proowner FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace
			UNION SELECT relowner FROM pg_class WHERE relnamespace = 'fencing'::regnamespace UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'fencing') x(owner)),
		(SELECT count(*) FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
			WHERE pronamespace = 'fencing'::regnamespace AND a.grantee = 0 AND (proname NOT LIKE 'doctor\_%' OR proname = 'doctor_seal') AND proname NOT IN ('registered_above', 'setting_name', 'allowed_functions', 'kept_columns') AND proname NOT LIKE '%\_bodies')`)[0]
}

// Up doesn't touch a schema of another version than its own.
func TestUpLeavesAnotherVersionAlone(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	const source = `SELECT prosrc FROM pg_proc WHERE proname = 'check_table' AND pronamespace = 'fencing'::regnamespace`
	exec(t, conn, `INSERT INTO fencing.goose_db_version (version_id, is_applied) VALUES (99, true);
		CREATE OR REPLACE FUNCTION fencing.check_table(tbl regclass) RETURNS void LANGUAGE plpgsql STABLE AS 'BEGIN END'`)
	_ = migrations.Up(t.Context(), dsn)
	require.Equal(t, "BEGIN END", get[string](t, conn, source))
}
