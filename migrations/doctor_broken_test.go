package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// mend runs what the doctor prints, for as long as it prints anything that can
// be run, and returns the errors and warnings that stay.
func mend(t *testing.T, dsn string) []string {
	t.Helper()
	return codes(advise(t, dsn), "error", "warning")
}

// giveSchema gives schema fencing and all that is in it to a role, as if that had run
// the migrations.
func giveSchema(owner string) string {
	return strings.ReplaceAll(`ALTER SCHEMA fencing OWNER TO APP; DO $$ DECLARE o text; BEGIN
		FOR o IN SELECT format('TABLE %s', oid::regclass) FROM pg_class WHERE relnamespace = 'fencing'::regnamespace AND relkind IN ('r', 'S') AND relname <> 'goose_db_version_id_seq'
			UNION ALL SELECT format('FUNCTION %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace
		LOOP EXECUTE 'ALTER ' || o || ' OWNER TO APP'; END LOOP; END $$;`, "APP", owner)
}

// Where the wall breaks for everybody, the doctor says so, to the owner, to the
// application and to a superuser.
func TestDoctorWhereTheSchemaIsBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		sql     string
		want    string // among the errors
		mends   bool   // the remedies bring all back
		healthy bool
	}{
		"schema given away":            {sql: "ALTER SCHEMA fencing OWNER TO OTHER", want: "D003 schema-owner", mends: true},
		"sequence dropped":             {sql: "DROP SEQUENCE fencing.write_epoch CASCADE", want: "D301 sequence-missing"},
		"functions given away":         {sql: "ALTER FUNCTION fencing.next_token() OWNER TO OTHER", want: "D311 tokens-not-drawn", mends: true},
		"registry dropped":             {sql: "DROP TABLE fencing.registry CASCADE", want: "D001 schema-broken"},
		"registry truncated":           {sql: "TRUNCATE fencing.registry", want: ""},
		"generation dropped":           {sql: "DROP TABLE fencing.generation CASCADE", want: "D001 schema-broken"},
		"incarnation dropped":          {sql: "DROP TABLE fencing.incarnation CASCADE", want: "D001 schema-broken"},
		"incarnation emptied":          {sql: "DELETE FROM fencing.incarnation", want: ""},
		"lease dropped":                {sql: "DROP TABLE fencing.lease CASCADE", want: "D001 schema-broken"},
		"epoch dropped":                {sql: "DROP TABLE fencing.epoch CASCADE", want: "D001 schema-broken"},
		"tombstones dropped":           {sql: "DROP TABLE fencing.tombstone CASCADE", want: "D001 schema-broken"},
		"next_token dropped":           {sql: "DROP FUNCTION fencing.next_token() CASCADE", want: "D001 schema-broken"},
		"incarnation_now dropped":      {sql: "DROP FUNCTION fencing.incarnation_now() CASCADE", want: "D001 schema-broken"},
		"a registry trigger's dropped": {sql: "DROP FUNCTION fencing.wall_changed() CASCADE", want: "D210 registry-trigger"},
		"epoch's function dropped":     {sql: "DROP FUNCTION fencing.raise_epoch() CASCADE", want: "D222 seal-epoch-trigger"},
		"column of the registry gone":  {sql: "ALTER TABLE fencing.registry DROP COLUMN wall_level CASCADE", want: "D002 doctor-stopped"},
		"right on incarnation gone":    {sql: "REVOKE ALL ON fencing.incarnation FROM OWN", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			admin := open(t, dsn)
			owner, ownerDSN := newRole(t, dsn)
			other, _ := newRole(t, dsn)
			app, appDSN := newRole(t, dsn)
			exec(t, admin, "CREATE SCHEMA app AUTHORIZATION "+owner+";"+giveSchema(owner))
			exec(t, open(t, ownerDSN), documentedGrants(t, "app", app)+`GRANT EXECUTE ON FUNCTION fencing.doctor, fencing.doctor_seal TO `+app+`;
				CREATE TABLE app.t (id int PRIMARY KEY); SELECT fencing.register('app.t', 'lease'); SELECT fencing.wall('app.t'), fencing.tombstones('app.t'), fencing.seal('app.t', 'r')`)
			exec(t, admin, strings.NewReplacer("TO OTHER", "TO "+other, "FROM OWN", "FROM "+owner).Replace(tt.sql))
			for who, dsn := range map[string]string{"superuser": dsn, "owner": ownerDSN, "application": appDSN} {
				findings, err := migrations.Doctor(t.Context(), dsn)
				if tt.sql == "ALTER SCHEMA fencing OWNER TO OTHER" && who == "owner" {
					requireRefused(t, err, "42501", "the role needs USAGE on schema fencing")
					continue
				}
				require.NoError(t, err, who)
				if tt.want != "" {
					require.Contains(t, codes(findings, "error"), tt.want, "%s: %v", who, findings)
				}
			}
			if tt.mends {
				var left []string
				for _, code := range mend(t, dsn) {
					if !strings.HasPrefix(code, "D4") {
						left = append(left, code)
					}
				}
				require.Empty(t, left)
				exec(t, open(t, ownerDSN), "SELECT fencing.next_token()")
			}
		})
	}
}

// What was found before an error is found all the same.
func TestDoctorKeepsWhatItFoundBeforeAnError(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	conn := open(t, dsn)
	exec(t, conn, `ALTER TABLE orders DISABLE TRIGGER "~fencing_update"; DROP FUNCTION fencing.doctor_settings`)
	findings := diagnose(t, dsn)
	require.Equal(t, []string{"D001 schema-broken", "D002 doctor-stopped", "D203 trigger-disabled"}, codes(findings, "error"))
	for _, f := range findings {
		if f.Code == "D002 doctor-stopped" {
			require.Contains(t, f.Problem, "function fencing.doctor_settings(jsonb, jsonb) does not exist")
		}
	}
}

// A dropped sequence comes back by the doctor's remedy, and what is drawn from
// the new one is above all from before.
func TestDoctorBringsTheSequenceBack(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	before := get[int64](t, conn, "SELECT setval('fencing.write_epoch', 4711)")
	exec(t, conn, "DROP SEQUENCE fencing.write_epoch CASCADE")
	findings := diagnose(t, dsn)
	require.Contains(t, codes(findings, "error"), "D301 sequence-missing")
	for _, f := range findings {
		if f.Code == "D301 sequence-missing" {
			exec(t, conn, f.Remedy)
		}
	}
	require.Greater(t, get[int64](t, conn, "SELECT fencing.next_token()"), before)
}

// Rights that a role has only after SET ROLE are judged like its own.
func TestDoctorOnRightsBySetRole(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	power, _ := newRole(t, dsn)
	between, _ := newRole(t, dsn)
	app, appDSN := newApp(t, dsn)
	grants := []string{"GRANT %s TO %s"}
	if major(t, admin) >= 16 {
		grants = append(grants, "GRANT %s TO %s WITH INHERIT FALSE, SET TRUE")
	}
	for i, grant := range grants {
		for _, chain := range [][]string{{power, app}, {power, between, app}} {
			exec(t, admin, map[bool]string{true: "ALTER ROLE " + app + " NOINHERIT", false: "ALTER ROLE " + app + " INHERIT"}[i == 0])
			for j := range len(chain) - 1 {
				exec(t, admin, fmt.Sprintf(grant, chain[j], chain[j+1]))
			}
			for code, sql := range map[string][2]string{
				"D404 role-table-rights":    {"GRANT TRIGGER ON orders TO " + power, "REVOKE TRIGGER ON orders FROM " + power},
				"D405 role-create":          {"GRANT CREATE ON SCHEMA fencing TO " + power, "REVOKE CREATE ON SCHEMA fencing FROM " + power},
				"D406 role-writes-registry": {"GRANT UPDATE ON fencing.epoch TO " + power, "REVOKE UPDATE ON fencing.epoch FROM " + power},
				"D407 role-executes":        {"GRANT EXECUTE ON FUNCTION fencing.wall TO " + power, "REVOKE EXECUTE ON FUNCTION fencing.wall FROM " + power},
				"D408 role-replication": {"GRANT SET ON PARAMETER session_replication_role TO " + power,
					"REVOKE SET ON PARAMETER session_replication_role FROM " + power},
			} {
				for _, roles := range [][]string{nil, {app}} {
					exec(t, admin, sql[0])
					findings := diagnose(t, dsn, roles...)
					require.Equal(t, []string{code}, codes(findings, "error", "warning"), "%s: %v", grant, findings)
					for _, f := range findings {
						if f.Code == code {
							require.Equal(t, "role "+app, f.Object)
							exec(t, admin, f.Remedy)
							break
						}
					}
				}
				require.Empty(t, codes(diagnose(t, dsn, app), "error", "warning"), "after its remedy")
				exec(t, admin, sql[1])
			}
			for j := range len(chain) - 1 {
				exec(t, admin, fmt.Sprintf("REVOKE %s FROM %s", chain[j], chain[j+1]))
			}
		}
	}
	// what a member of a writing role could do, which has no right to write itself
	exec(t, admin, "ALTER ROLE "+app+" NOINHERIT; REVOKE ALL ON ALL TABLES IN SCHEMA public, \"my App\" FROM "+app+"; GRANT INSERT, UPDATE ON orders TO "+between+
		"; GRANT "+between+", "+power+" TO "+app+"; GRANT UPDATE ON fencing.epoch TO "+power)
	require.Contains(t, codes(diagnose(t, dsn), "error"), "D406 role-writes-registry")
	writer := open(t, appDSN)
	_, err := writer.Exec(t.Context(), "UPDATE fencing.epoch SET token = token")
	require.True(t, isState(err, "42501"), err)
}
