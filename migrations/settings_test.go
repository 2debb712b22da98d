package migrations_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// Every function does the same where a backslash in a text escapes, both in the
// database that is migrated so and in one that is used so.
func TestWithoutStandardConformingStrings(t *testing.T) {
	for _, migrated := range []bool{false, true} {
		dsn := localpg.Database(t)
		off := with(dsn, "standard_conforming_strings", "off")
		up := dsn
		if migrated {
			up = off
		}
		require.NoError(t, migrations.Up(t.Context(), up))
		check := open(t, dsn)
		clean := open(t, localpg.Database(t, installed))
		require.Equal(t, get[[]string](t, clean, description), get[[]string](t, check, description), "what was read at the start doesn't depend on it")
		const set = `CREATE TABLE t (id int PRIMARY KEY, v text, "re%ss" text NOT NULL DEFAULT ''); CREATE TABLE s (id int PRIMARY KEY, v text); CREATE TABLE k ("i%sd" int PRIMARY KEY, v text);
			CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT;`
		conn := open(t, off)
		exec(t, conn, fmt.Sprintf(set, `\`, `\`))
		exec(t, conn,
			`SELECT fencing.register('t', 'lease', 'tok', 'it''s {a} [<] (b)'), fencing.register('s', 'strict'), `+
				`fencing.register('k', 'lease'), fencing.register('p', 'strict')`)
		for _, level := range []string{"report", "enforce", "attested", "off", "enforce"} {
			exec(t, conn, fmt.Sprintf(`SELECT fencing.wall('t', '%[1]s'), fencing.wall('s', '%[1]s'), fencing.wall('k', '%[1]s'), fencing.wall('p', '%[1]s')`, level))
		}
		exec(t, conn, `SELECT fencing.tombstones('k'), fencing.tombstones('p'), fencing.seal('t', E'r \\ \'')`)
		exec(t, conn, `SELECT fencing.driver_level('t', 'report'), fencing.driver_rewrite('t', true), fencing.unseal('t'), fencing.seal('t', 'r')`)
		exec(t, conn, `ALTER TABLE k ALTER v SET NOT NULL; SELECT fencing.seal('k', by_column => 'v'), fencing.unseal('k')`)
		exec(t, conn, "SELECT setval('fencing.write_epoch', 100)")
		grant(t, check, "r", 60)
		require.NoError(t,
			inTx(t, conn,
				"INSERT INTO t (id, tok) VALUES (1, 60); UPDATE t SET v = 'x', tok = 60; INSERT INTO s VALUES (1, '', 50); "+
					"UPDATE s SET last_token = 60; INSERT INTO k VALUES (1, '', 60)"))
		require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM k"))
		require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "INSERT INTO k VALUES (1, '', 59)")))
		require.Equal(t, "FN001 ~fencing_update 59 60", refusal(t, inTx(t, conn, "UPDATE s SET last_token = 59")))
		require.Equal(t, "FN001 ~fencing_zseal 59 60", refusal(t, inTx(t, conn, "INSERT INTO t (id, tok) VALUES (2, 59)")))
		exec(t, conn, `SELECT fencing.repair('s', '{"id": 1}', 7, 'lower case')`)
		_, err := conn.Exec(t.Context(), `SELECT fencing.repair('s', '{"id": 1}', 7, '  ')`)
		requireHint(t, err, "22023", "no reason given")
		exec(t, conn, `SELECT fencing.take('q', '1 h', 'me'), fencing.renew('q', 1, '1 h'), fencing.release('q', 1), fencing.prune_tombstones('k', 1000)`)
		require.Empty(t, get[[]string](t, conn, "SELECT coalesce(array_agg(code || object), '{}') FROM fencing.doctor() WHERE severity <> 'info' AND code !~ 'D503'"))
		require.Equal(t, get[[]string](t, check, "SELECT array_agg(code || object) FROM fencing.doctor()"),
			get[[]string](t, conn, "SELECT array_agg(code || object) FROM fencing.doctor()"))
		exec(t, conn, "SELECT fencing.unregister('t'), fencing.unregister('s'), fencing.unregister('k')")
		require.NoError(t, migrations.Down(t.Context(), off))
	}
}

// A table whose rows are partly on another server can't be protected, which is
// said before anything is done, however the table came by them.
func TestForeignPartitions(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE FOREIGN DATA WRAPPER far")
	exec(t, conn, `CREATE SERVER far FOREIGN DATA WRAPPER far;
		CREATE TABLE p (id int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9);
		CREATE TABLE sub PARTITION OF p FOR VALUES FROM (9) TO (99) PARTITION BY RANGE (id);
		CREATE TABLE parent (id int, last_token bigint NOT NULL DEFAULT 0); CREATE FOREIGN TABLE child () INHERITS (parent) SERVER far`)
	refused := func(sql, words string) {
		_, err := conn.Exec(t.Context(), sql)
		requireHint(t, err, "42809", words, "foreign table", "on another server")
	}
	exec(t, conn, "SELECT fencing.register('p', 'lease'), fencing.wall('p'); CREATE FOREIGN TABLE fp PARTITION OF sub FOR VALUES FROM (9) TO (20) SERVER far")
	for _, level := range []string{"report", "enforce", "attested"} {
		refused("SELECT fencing.wall('p', '"+level+"')", "its partition public.fp is a foreign table")
	}
	refused("SELECT fencing.register('p', 'lease')", "its partition public.fp is a foreign table")
	refused("SELECT fencing.register('parent', 'strict')", "its child public.child is a foreign table")
	err := migrations.Register(t.Context(), dsn, migrations.Table{Name: "parent", Mode: migrations.Lease})
	requireRefused(t, err, "42809", "register parent", "its child public.child is a foreign table", "NO INHERIT")
	require.Contains(t, codes(diagnose(t, dsn), "error"), "D214 foreign-child")
	exec(t, conn, "ALTER TABLE sub DETACH PARTITION fp; SELECT fencing.wall('p')")
	require.Empty(t, codes(diagnose(t, dsn), "error"))
}

// A lease without an end is held, like any other.
func TestLeaseWithoutAnEnd(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	for _, end := range []string{"infinity", "290000-01-01"} {
		exec(t, conn, "DELETE FROM fencing.lease")
		first := take(t, conn, "r", "1 h", "first")
		require.NotNil(t, first.Token)
		exec(t, conn, "UPDATE fencing.lease SET expires_at = '"+end+"'")
		second := take(t, conn, "r", "1 h", "second")
		require.Nil(t, second.Token)
		require.Equal(t, "first", *second.HeldBy)
		require.True(t, get[bool](t, conn, "SELECT fencing.renew('r', $1, '1 h')", *first.Token), "and so it ends again")
		require.True(t, get[bool](t, conn, "SELECT expires_at < now() + interval '2 h' FROM fencing.lease"))
		exec(t, conn, "UPDATE fencing.lease SET expires_at = '"+end+"'")
		require.True(t, get[bool](t, conn, "SELECT fencing.release('r', $1)", *first.Token))
		require.NotNil(t, take(t, conn, "r", "1 h", "second").Token)
	}
}

// With the sequence at its end there is no room for the jump: the error says so.
func TestNoRoomToJump(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	for _, at := range []string{"9223372032559808512", "9223372036854775807"} {
		exec(t, conn, "SELECT setval('fencing.write_epoch', "+at+"); DELETE FROM fencing.incarnation")
		_, err := conn.Exec(t.Context(), "SELECT fencing.next_token()")
		requireHint(t, err, "2200H", "too near its end for the jump", "fencing.repair")
	}
	exec(t, conn, "SELECT setval('fencing.write_epoch', 9223372032559808511)")
	require.Positive(t, get[int64](t, conn, "SELECT fencing.next_token()"))
}
