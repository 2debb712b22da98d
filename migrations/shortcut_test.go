package migrations_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// settings are what may be in the setting that carries a token; the row has 50,
// the lease 60, and 1,000 or 100 were issued.
var settings = []string{
	"", "0", "1", "49", "50", "51", "60", "61", "100", "101", "1000", "1001", "060", "00", "000000000000000060", "-60", "+60", " 60",
	"60 ", "60\n", "6 0", "6x", "60.0", "6e1", "0x3c",
	"６０", "٦٠", "6\u200b0", "999999999999999999", "100000000000000000", "1000000000000000000", "9223372036854775807", "9223372036854775808", "9999999999999999999",
	"10000000000000000000", "60000000000000000000000000000", "NULL", "Infinity", "NaN", "1_000",
}

// outcome is all that a statement's refusal says, or the rows that it left.
func outcome(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	rows, err := try(t, conn, sql)
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fmt.Sprint(pg.Code, pg.Message, pg.Detail, pg.Hint, pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName)
	}
	require.NoError(t, err)
	return rows
}

// Most writes that may pass are let through by a few expressions at the head of
// the trigger functions for DELETE and of seals. Without these short cuts the same
// is refused, in the same words, and nothing else.
func TestShortCutsRefuseNothingElse(t *testing.T) {
	t.Parallel()
	tables := map[string]func() *pgx.Conn{}
	for _, level := range []string{"report", "enforce", "attested"} {
		for _, mode := range []string{"strict", "lease"} {
			tables[mode+", "+level] = func() *pgx.Conn {
				_, conn := walled(t, mode, level)
				return conn
			}
		}
		for name, by := range map[string]string{"fixed": fixed, "by column": byColumn} {
			tables["sealed, "+name+", "+level] = func() *pgx.Conn {
				_, conn := sealed(t, level, by)
				exec(t, conn, "INSERT INTO fencing.epoch SELECT 'zero', s, 0 FROM generate_series(0, 15) s") // as none is
				return conn
			}
		}
	}
	statements := []string{
		"DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 2", "DELETE FROM t",
		"UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", "UPDATE t SET v = 'new'", "TRUNCATE t",
		"UPDATE t SET v = 'new', last_token = 50 WHERE id = 1", "UPDATE t SET v = 'new', last_token = 60",
		"UPDATE t SET v = 'new', last_token = NULL", "UPDATE t SET last_token = -60",
		"UPDATE t SET last_token = last_token", "INSERT INTO t (id, last_token) VALUES (9, 60)",
		"INSERT INTO t (id, last_token) VALUES (9, 50)", "INSERT INTO t (id) VALUES (9)",
	}
	ofLeases := []string{
		"UPDATE t SET res = 's', last_token = 60 WHERE id = 1", "UPDATE t SET res = NULL, last_token = 60 WHERE id = 1", "UPDATE t SET last_token = 70 WHERE id = 3",
		"INSERT INTO t VALUES (9, 'never', '', 60)", "INSERT INTO t VALUES (9, 'zero', '', 60)",
		"INSERT INTO t VALUES (9, NULL, '', 60)", "INSERT INTO t VALUES (9, '', '', 60)", "INSERT INTO t VALUES (9, 's', '', 70), (10, 'r', '', 60)",
	}
	for name, open := range tables {
		t.Run(name, func(t *testing.T) {
			conn := open()
			sqls := statements
			sealed := get[bool](t, conn, "SELECT seal_resource IS NOT NULL OR seal_column IS NOT NULL FROM fencing.registry")
			if sealed {
				sqls = append(sqls[:len(sqls):len(sqls)], ofLeases...)
			}
			run := func() map[string]string {
				got := map[string]string{}
				for i, isolation := range isolations {
					for j, setting := range settings {
						for k, sql := range sqls {
							isCommon := slices.Contains([]string{"", "50", "60"}, setting)
							if !isCommon && (i > 0 || k > 2 && j%10 > 0) {
								continue // the setting is little to it
							}
							sql = fmt.Sprintf("SET TRANSACTION ISOLATION LEVEL %s; SELECT set_config('fencing.token', '%s', true); %s", isolation, setting, sql)
							got[sql] = outcome(t, conn, sql)
						}
					}
					sql := "SET TRANSACTION ISOLATION LEVEL " + isolation + "; DELETE FROM t"
					got[sql] = outcome(t, conn, sql)
				}
				return got
			}
			got := run()
			cutShortCuts(t, conn, sealed)
			require.Equal(t, run(), got)
		})
	}
}

// shortCut is a part of a trigger function's body, between the comments that mark
// it.
var shortCut = regexp.MustCompile(`(?s)-- short cut: .*?-- end of the short cut\n`)

// cutShortCuts takes the short cuts out of the trigger functions.
func cutShortCuts(t *testing.T, conn *pgx.Conn, sealed bool) {
	t.Helper()
	definitions := get[[]string](t, conn, `SELECT array_agg(pg_get_functiondef(p.oid)) FROM pg_proc p
		WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall_[0-9a-f]{16}_delete|seal_[0-9a-f]{16}_check)$'`)
	want := 1
	if sealed {
		want = 2
	}
	require.Len(t, definitions, want)
	for _, definition := range definitions {
		without := shortCut.ReplaceAllString(definition, "")
		require.NotEqual(t, definition, without)
		exec(t, conn, without)
	}
}
