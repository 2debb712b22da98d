package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// kind is the verdict on one kind of statement: a text of it that passes and
// one that is refused. Where one is missing, the kind has none.
type kindVerdict struct{ passes, refused string }

// kindVerdicts has every kind of statement of the parser's grammar.
var kindVerdicts = map[string]kindVerdict{
	"SelectStmt": {"SELECT * FROM protected_rows", "SELECT bump_row(1, 'x')"},
	"InsertStmt": {"INSERT INTO protected_rows (id, last_token) VALUES (1, $1)", "INSERT INTO protected_rows (id) VALUES (1)"},
	"UpdateStmt": {"UPDATE protected_rows SET last_token = $1 WHERE last_token < $1", "UPDATE protected_rows SET value = 'x'"},
	"DeleteStmt": {"DELETE FROM protected_rows WHERE last_token < $1", "DELETE FROM protected_rows"},
	"MergeStmt":  {"MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED AND t.last_token < $1 THEN DELETE", "MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED THEN DELETE"},

	"ExplainStmt":       {"EXPLAIN ANALYZE UPDATE protected_rows SET last_token = $1 WHERE last_token < $1", "EXPLAIN UPDATE protected_rows SET value = 'x'"},
	"DeclareCursorStmt": {"DECLARE c CURSOR FOR SELECT * FROM protected_rows", "DECLARE c CURSOR FOR SELECT bump_row(1, 'x')"},
	"CreateTableAsStmt": {"CREATE TABLE made AS SELECT * FROM protected_rows", "CREATE TABLE protected_rows AS SELECT 1"},
	"CallStmt":          {"CALL refresh_all()", "CALL bump_proc(1, 'x')"},
	"CopyStmt":          {"COPY protected_rows TO STDOUT", "COPY protected_rows FROM STDIN"},
	"TruncateStmt":      {"TRUNCATE jobs", "TRUNCATE jobs, protected_rows"},

	"PrepareStmt":    {"PREPARE p AS SELECT 1", "PREPARE p AS UPDATE protected_rows SET last_token = 8 WHERE last_token < 8"},
	"ExecuteStmt":    {"", "EXECUTE p"},
	"DeallocateStmt": {"", "DEALLOCATE p"},
	"DiscardStmt":    {"", "DISCARD ALL"},

	"VariableSetStmt":      {"SET statement_timeout = '1s'", "SET session_replication_role = replica"},
	"AlterRoleSetStmt":     {"ALTER ROLE app SET statement_timeout = '1s'", "ALTER ROLE app SET search_path = other, pg_catalog"},
	"AlterDatabaseSetStmt": {"ALTER DATABASE cases SET timezone = 'UTC'", "ALTER DATABASE cases SET standard_conforming_strings = off"},
	"AlterSystemStmt":      {"ALTER SYSTEM SET work_mem = '8MB'", "ALTER SYSTEM RESET ALL"},

	"DoStmt":                  {"DO $$BEGIN PERFORM 1; END$$", "DO $$BEGIN UPDATE protected_rows SET value = 'x'; END$$"},
	"CreateFunctionStmt":      {"CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE FUNCTION one() RETURNS int LANGUAGE sql BEGIN ATOMIC DELETE FROM protected_rows; SELECT 1; END"},
	"RuleStmt":                {"CREATE RULE r AS ON INSERT TO jobs DO INSTEAD NOTHING", "CREATE RULE r AS ON INSERT TO jobs DO ALSO DELETE FROM protected_rows"},
	"CreateTrigStmt":          {"CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION touch()", "CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION bump_row()"},
	"CreateEventTrigStmt":     {"CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION log_ddl()", "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION bump_row()"},
	"CreateCastStmt":          {"CREATE CAST (text AS int) WITH FUNCTION to_int(text)", "CREATE CAST (text AS int) WITH FUNCTION bump_row(text)"},
	"CreateTransformStmt":     {"CREATE TRANSFORM FOR hstore LANGUAGE plpython3u (FROM SQL WITH FUNCTION a(internal))", "CREATE TRANSFORM FOR hstore LANGUAGE plpython3u (FROM SQL WITH FUNCTION bump_row(internal))"},
	"DefineStmt":              {"CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int)", "CREATE OPERATOR === (FUNCTION = bump_row, LEFTARG = bigint, RIGHTARG = text)"},
	"CreateOpClassStmt":       {"CREATE OPERATOR CLASS c FOR TYPE int USING btree AS OPERATOR 1 <, FUNCTION 1 btint4cmp(int, int)", "CREATE OPERATOR CLASS c FOR TYPE int USING btree AS FUNCTION 1 bump_row(int, int)"},
	"CreateConversionStmt":    {"CREATE CONVERSION c FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1", "CREATE CONVERSION c FOR 'UTF8' TO 'LATIN1' FROM bump_row"},
	"AlterFunctionStmt":       {"ALTER FUNCTION one() STRICT", "ALTER FUNCTION audit_noop() STRICT"},
	"AlterOperatorStmt":       {"ALTER OPERATOR === (int, int) SET (RESTRICT = NONE)", "ALTER OPERATOR === (int, int) SET (RESTRICT = bump_row)"},
	"CreateRangeStmt":         {"CREATE TYPE r AS RANGE (SUBTYPE = float8)", "CREATE TYPE r AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = bump_row)"},
	"CreateDomainStmt":        {"CREATE DOMAIN positive AS int CHECK (VALUE > 0)", "CREATE DOMAIN protected_rows AS int"},
	"LoadStmt":                {"", "LOAD 'auto_explain'"},
	"ImportForeignSchemaStmt": {"", "IMPORT FOREIGN SCHEMA public FROM SERVER s INTO public"},
	"CreateSubscriptionStmt":  {"", "CREATE SUBSCRIPTION s CONNECTION 'host=x' PUBLICATION p"},
	"AlterSubscriptionStmt":   {"", "ALTER SUBSCRIPTION s ENABLE"},
	"CreateAmStmt":            {"", "CREATE ACCESS METHOD m TYPE TABLE HANDLER h"},
	"CreatePLangStmt":         {"", "CREATE LANGUAGE l HANDLER h"},

	"CreateStmt":                 {"CREATE TABLE made (id int)", "CREATE TABLE kid () INHERITS (protected_rows)"},
	"CreateForeignTableStmt":     {"CREATE FOREIGN TABLE made (id int) SERVER s OPTIONS (table_name 'jobs')", "CREATE FOREIGN TABLE made (id int) SERVER s OPTIONS (table_name 'protected_rows')"},
	"ViewStmt":                   {"CREATE VIEW made AS SELECT * FROM jobs", "CREATE VIEW made AS SELECT * FROM protected_rows"},
	"IndexStmt":                  {"CREATE INDEX ON jobs (kind)", "CREATE INDEX ON protected_rows (value)"},
	"CreateSeqStmt":              {"CREATE SEQUENCE made", "CREATE SEQUENCE write_epoch"},
	"AlterSeqStmt":               {"ALTER SEQUENCE users_id_seq RESTART", "ALTER SEQUENCE write_epoch RESTART"},
	"CreateSchemaStmt":           {"CREATE SCHEMA made CREATE TABLE t (id int)", "CREATE SCHEMA fencing"},
	"CompositeTypeStmt":          {"CREATE TYPE made AS (a int)", "CREATE TYPE protected_rows AS (a int)"},
	"CreateEnumStmt":             {"CREATE TYPE mood AS ENUM ('sad')", "CREATE TYPE metrics AS ENUM ('sad')"},
	"AlterEnumStmt":              {"ALTER TYPE mood ADD VALUE 'ok'", "ALTER TYPE protected_rows ADD VALUE 'ok'"},
	"AlterTypeStmt":              {"ALTER TYPE mood SET (STORAGE = plain)", "ALTER TYPE protected_rows SET (STORAGE = plain)"},
	"AlterDomainStmt":            {"ALTER DOMAIN positive DROP NOT NULL", "ALTER DOMAIN metrics DROP NOT NULL"},
	"AlterTableStmt":             {"ALTER TABLE jobs ADD COLUMN a int", "ALTER TABLE protected_rows ADD COLUMN a int"},
	"AlterCollationStmt":         {"ALTER COLLATION c REFRESH VERSION", "ALTER COLLATION fencing.c REFRESH VERSION"},
	"CreateStatsStmt":            {"CREATE STATISTICS s ON a, b FROM jobs", "CREATE STATISTICS s ON id, grp FROM protected_rows"},
	"AlterStatsStmt":             {"ALTER STATISTICS s SET STATISTICS 10", "ALTER STATISTICS fencing.s SET STATISTICS 10"},
	"CreatePolicyStmt":           {"CREATE POLICY p ON jobs", "CREATE POLICY p ON protected_rows"},
	"AlterPolicyStmt":            {"ALTER POLICY p ON jobs TO PUBLIC", "ALTER POLICY p ON protected_rows TO PUBLIC"},
	"CommentStmt":                {"COMMENT ON TABLE jobs IS 'x'", "COMMENT ON TABLE protected_rows IS 'x'"},
	"SecLabelStmt":               {"SECURITY LABEL ON TABLE jobs IS 'x'", "SECURITY LABEL ON TABLE protected_rows IS 'x'"},
	"GrantStmt":                  {"GRANT SELECT ON jobs TO PUBLIC", "GRANT UPDATE ON protected_rows TO PUBLIC"},
	"CreatePublicationStmt":      {"CREATE PUBLICATION p FOR TABLE jobs", "CREATE PUBLICATION p FOR TABLE protected_rows"},
	"AlterPublicationStmt":       {"ALTER PUBLICATION p ADD TABLE jobs", "ALTER PUBLICATION p ADD TABLE protected_rows"},
	"AlterExtensionContentsStmt": {"ALTER EXTENSION e ADD TABLE jobs", "ALTER EXTENSION e ADD TABLE protected_rows"},
	"AlterObjectDependsStmt":     {"ALTER FUNCTION one() DEPENDS ON EXTENSION e", "ALTER FUNCTION audit_noop() DEPENDS ON EXTENSION e"},
	"AlterEventTrigStmt":         {"ALTER EVENT TRIGGER e DISABLE", ""},
	"CreateOpFamilyStmt":         {"CREATE OPERATOR FAMILY f USING btree", "CREATE OPERATOR FAMILY fencing.f USING btree"},
	"AlterOpFamilyStmt":          {"ALTER OPERATOR FAMILY f USING btree ADD FUNCTION 1 (int, int) btint4cmp(int, int)", "ALTER OPERATOR FAMILY f USING btree ADD FUNCTION 1 (int, int) bump_row(int, int)"},
	"CreateExtensionStmt":        {`CREATE EXTENSION IF NOT EXISTS "uuid-ossp"`, "CREATE EXTENSION e SCHEMA fencing"},
	"AlterExtensionStmt":         {"ALTER EXTENSION e UPDATE", ""},
	"RenameStmt":                 {"ALTER TABLE jobs RENAME TO tasks", "ALTER TABLE jobs RENAME TO protected_rows"},
	"AlterObjectSchemaStmt":      {"ALTER TABLE jobs SET SCHEMA other", "ALTER TABLE other.protected_rows SET SCHEMA public"},
	"AlterOwnerStmt":             {"ALTER TYPE mood OWNER TO app", "ALTER SCHEMA app OWNER TO mallory"},
	"DropStmt":                   {"DROP TABLE IF EXISTS jobs CASCADE", "DROP SCHEMA app"},
	"DropOwnedStmt":              {"", "DROP OWNED BY app"},
	"ReassignOwnedStmt":          {"", "REASSIGN OWNED BY app TO mallory"},
	"AlterTableMoveAllStmt":      {"", "ALTER TABLE ALL IN TABLESPACE a SET TABLESPACE b"},

	"TransactionStmt": {"BEGIN ISOLATION LEVEL SERIALIZABLE", ""}, "ConstraintsSetStmt": {"SET CONSTRAINTS ALL DEFERRED", ""},
	"VariableShowStmt": {"SHOW search_path", ""}, "FetchStmt": {"FETCH 10 FROM c", ""}, "ClosePortalStmt": {"CLOSE c", ""},
	"ListenStmt": {"LISTEN jobs", ""}, "UnlistenStmt": {"UNLISTEN *", ""}, "NotifyStmt": {"NOTIFY jobs, 'x'", ""},
	"LockStmt": {"LOCK TABLE protected_rows", ""}, "CheckPointStmt": {"CHECKPOINT", ""}, "VacuumStmt": {"VACUUM (ANALYZE) protected_rows", ""},
	"ClusterStmt": {"CLUSTER jobs", ""}, "ReindexStmt": {"REINDEX TABLE protected_rows", ""}, "RefreshMatViewStmt": {"REFRESH MATERIALIZED VIEW user_stats", ""},

	"GrantRoleStmt": {"GRANT app TO bob", ""}, "CreateRoleStmt": {"CREATE ROLE bob", ""}, "AlterRoleStmt": {"ALTER ROLE bob LOGIN", ""}, "DropRoleStmt": {"DROP ROLE bob", ""},
	"AlterDefaultPrivilegesStmt": {"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO app", ""},
	"CreatedbStmt":               {"CREATE DATABASE d", ""}, "AlterDatabaseStmt": {"ALTER DATABASE d CONNECTION LIMIT 5", ""}, "AlterDatabaseRefreshCollStmt": {"ALTER DATABASE d REFRESH COLLATION VERSION", ""}, "DropdbStmt": {"DROP DATABASE d", ""},
	"CreateTableSpaceStmt": {"CREATE TABLESPACE t LOCATION '/t'", ""}, "DropTableSpaceStmt": {"DROP TABLESPACE t", ""}, "AlterTableSpaceOptionsStmt": {"ALTER TABLESPACE t SET (seq_page_cost = 1)", ""},
	"AlterTSDictionaryStmt": {"ALTER TEXT SEARCH DICTIONARY d (StopWords = 'x')", ""}, "AlterTSConfigurationStmt": {"ALTER TEXT SEARCH CONFIGURATION c ADD MAPPING FOR word WITH simple", ""},
	"CreateFdwStmt": {"CREATE FOREIGN DATA WRAPPER w", ""}, "AlterFdwStmt": {"ALTER FOREIGN DATA WRAPPER w OPTIONS (a 'b')", ""},
	"CreateForeignServerStmt": {"CREATE SERVER s FOREIGN DATA WRAPPER w", ""}, "AlterForeignServerStmt": {"ALTER SERVER s OPTIONS (a 'b')", ""},
	"CreateUserMappingStmt": {"CREATE USER MAPPING FOR app SERVER s", ""}, "AlterUserMappingStmt": {"ALTER USER MAPPING FOR app SERVER s OPTIONS (a 'b')", ""}, "DropUserMappingStmt": {"DROP USER MAPPING FOR app SERVER s", ""},
	"DropSubscriptionStmt": {"DROP SUBSCRIPTION s", ""},
}

// neverOnTop are kinds that stand inside others only, or that the raw parser
// doesn't make.
var neverOnTop = setOf("RawStmt", "SetOperationStmt", "ReturnStmt", "PLAssignStmt", "ReplicaIdentityStmt")

// Every kind of statement has a verdict on purpose, so that a forgotten one
// shows.
func TestEveryKindOfStatement(t *testing.T) {
	p := casesPolicy(t, Strict)
	for kind := range sqltree.NodeTypes().Types {
		if strings.HasSuffix(kind, "Stmt") && !neverOnTop[kind] {
			require.Contains(t, kindVerdicts, kind)
			require.Contains(t, statementKinds, kind)
		}
	}
	require.Len(t, statementKinds, len(kindVerdicts))
	for kind, verdict := range kindVerdicts {
		t.Run(kind, func(t *testing.T) {
			require.NotEmpty(t, verdict.passes+verdict.refused)
			for _, sql := range []string{verdict.passes, verdict.refused} {
				if sql == "" {
					continue
				}
				stmts, err := sqltree.Parse(sql)
				require.NoError(t, err, sql)
				require.Len(t, stmts, 1)
				require.Equal(t, kind, stmts[0].Get("stmt").Kind(), sql)
			}
			if verdict.passes != "" {
				require.NoError(t, p.Plan(verdict.passes).Refusal())
			}
			if verdict.refused != "" {
				require.ErrorIs(t, p.Plan(verdict.refused).Refusal(), ErrRefused)
			}
		})
	}
	for kind := range neverOnTop {
		c := &checker{policy: p}
		c.statement(&sqltree.Node{Type: sqltree.NodeTypes().Named(kind)})
		require.Len(t, c.found, 1)
		require.Equal(t, UnknownNode, c.found[0].Rule)
	}
}
