package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// aboutWalls are the parts of the doctor that read the triggers of walls and seals.
const aboutWalls = `(SELECT fencing.doctor_family() AS f) family, LATERAL (SELECT code, problem FROM fencing.doctor_wall(f, '[]')
	UNION ALL SELECT code, problem FROM fencing.doctor_seal(f, '[]')) part`

// A trigger function whose body is another one is found, whatever it has of the
// right one's text.
func TestDoctorBodies(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		t.Run(mode, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "SELECT setval('fencing.write_epoch', 9); CREATE TABLE t (id int PRIMARY KEY, r text NOT NULL); SELECT fencing.register('t', '"+mode+"', 'my token', 'a%b'), fencing.wall('t', 'attested')")
			if mode == "lease" {
				exec(t, conn, "SELECT fencing.seal('t', by_column => 'r')")
			}
			const made = "SELECT string_agg(DISTINCT p.proname || md5(p.prosrc), ' ' ORDER BY p.proname || md5(p.prosrc)) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = 't'::regclass"
			before := get[string](t, conn, made)
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			names := get[[]string](t, conn, "SELECT array_agg(DISTINCT p.proname::text) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = 't'::regclass AND p.proname <> 'kept_columns'")
			for _, name := range names {
				body := get[string](t, conn, "SELECT prosrc FROM pg_proc WHERE proname = $1", name)
				definer := ""
				if get[bool](t, conn, "SELECT prosecdef FROM pg_proc WHERE proname = $1", name) {
					definer = "SECURITY DEFINER"
				}
				for _, changed := range []string{strings.Replace(body, "BEGIN", "BEGIN\n  IF true THEN RETURN coalesce(NEW, OLD); END IF;", 1), body + " -- more"} {
					exec(t, conn, "CREATE OR REPLACE FUNCTION fencing."+name+"() RETURNS trigger LANGUAGE plpgsql "+definer+" AS $changed$"+changed+"$changed$")
					require.True(t, get[bool](t, conn, "SELECT bool_or(problem LIKE '%runs fencing."+name+"()%') FROM "+aboutWalls+" WHERE code = 'D204 trigger-function'"), name)
				}
			}
			require.Contains(t, codes(diagnose(t, dsn), "error"), "D204 trigger-function")
			left := advise(t, dsn)
			require.Empty(t, codes(left, "error"), "%v", left)
			require.Equal(t, before, get[string](t, conn, made))
		})
	}
}
