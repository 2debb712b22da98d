package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

const (
	revokeAll = "REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn), pg_current_wal_lsn() FROM PUBLIC;"
	notStart  = "REVOKE EXECUTE ON FUNCTION pg_postmaster_start_time() FROM PUBLIC;"
)

// raising puts one that raises an error in the place of a function of the server.
func raising(name, args, returns, state string) string {
	return "ALTER FUNCTION pg_catalog." + name + " RENAME TO gone; CREATE FUNCTION pg_catalog." + name + "(" + args + ") RETURNS " + returns +
		" LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not here' USING ERRCODE = '" + state + "'; END $$"
}

// Where the server keeps back what tells its incarnation, a role that is no
// superuser installs the schema and draws all the same, and the next start of
// the server, as after a promotion, has tokens jump.
func TestTokensOnManagedServers(t *testing.T) {
	t.Parallel()
	srv := localpg.StartServer(t)
	admin := open(t, srv.DSN(""))
	exec(t, admin, "CREATE ROLE runs_it LOGIN")
	tests := []struct {
		name, setup string
		unread      []string
		jumps       bool
	}{
		{"control_revoked", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", []string{"pg_control_system()"}, true},
		{"walfile_revoked", "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC", []string{"pg_walfile_name(pg_lsn)"}, true},
		{"lsn_revoked", "REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC", []string{"pg_current_wal_lsn()"}, true},
		{"all_revoked", revokeAll, []string{"pg_control_system()", "pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()"}, true},
		{"control_missing", "ALTER FUNCTION pg_control_system() RENAME TO gone", []string{"pg_control_system()"}, true},
		{"walfile_missing", "ALTER FUNCTION pg_walfile_name(pg_lsn) RENAME TO gone", []string{"pg_walfile_name("}, true},
		{"control_unsupported", raising("pg_control_system", "OUT system_identifier int8", "int8", "0A000"), []string{"pg_control_system()"}, true},
		{"walfile_unsupported", raising("pg_walfile_name", "pg_lsn", "text", "0A000"), []string{"pg_walfile_name("}, true},
		{"lsn_not_ready", raising("pg_current_wal_lsn", "", "pg_lsn", "55000"), []string{"pg_walfile_name(pg_current_wal_lsn())"}, true},
		{"nothing_left", revokeAll + notStart, []string{"pg_control_system()", "pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()"}, false},
		{"start_alone", notStart, nil, false},
	}
	as := func(name string) string { return strings.Replace(srv.DSN(name), "//postgres@", "//runs_it@", 1) }
	for _, tt := range tests {
		exec(t, admin, "CREATE DATABASE "+tt.name+" OWNER runs_it")
		exec(t, open(t, srv.DSN(tt.name)), tt.setup)
		require.NoError(t, migrations.Up(t.Context(), as(tt.name)), tt.name)
		conn := open(t, as(tt.name))
		for want := int64(1); want <= 3; want++ {
			require.Equal(t, want, get[int64](t, conn, "SELECT fencing.next_token()"), tt.name)
		}
	}
	require.NoError(t, srv.Restart(t.Context()))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := diagnose(t, srv.DSN(tt.name))
			require.Empty(t, codes(findings, "error"), "%v", findings)
			for _, f := range findings {
				if f.Code == "D313 incarnation-unread" {
					require.Equal(t, tt.name == "nothing_left", strings.Contains(f.Consequence, "given out again"), f.Consequence)
				}
			}
			for _, function := range tt.unread {
				require.Contains(t, said(findings, "D313 incarnation-unread"), function)
			}
			require.Equal(t, len(tt.unread) > 0, said(findings, "D313 incarnation-unread") != "", "%v", findings)
			if tt.jumps {
				requireJump(t, srv.DSN(tt.name), 3)
				return
			}
			require.Equal(t, int64(4), get[int64](t, open(t, as(tt.name)), "SELECT fencing.next_token()"))
		})
	}
}

// said are the problems of the findings with a code.
func said(findings []migrations.Finding, code string) string {
	var problems []string
	for _, f := range findings {
		if f.Code == code {
			problems = append(problems, f.Problem)
		}
	}
	return strings.Join(problems, "\n")
}

// A right that is taken away, or given back, while tokens are drawn.
func TestTokensRiseAsRightsChange(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO "+role+"', current_database()); END $$")
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	conn := open(t, roleDSN)
	last := get[int64](t, conn, "SELECT fencing.next_token()")
	require.Equal(t, int64(1), last)
	for _, function := range []string{"pg_control_system()", "pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()", "pg_postmaster_start_time()"} {
		exec(t, admin, "REVOKE EXECUTE ON FUNCTION "+function+" FROM PUBLIC")
		next := get[int64](t, conn, "SELECT fencing.next_token()")
		require.Greater(t, next, last, function)
		last = next
	}
	exec(t, admin, "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn), pg_current_wal_lsn(), pg_postmaster_start_time() TO PUBLIC")
	requireJump(t, dsn, last)
}
