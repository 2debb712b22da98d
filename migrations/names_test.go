package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// A function that writes names into statements, texts or digests writes them in
// one way, whatever the session has said about quotes.
func TestNamesAreQuotedInOneWay(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	require.Empty(t, get[[]string](t, conn, `SELECT coalesce(array_agg(p.proname::text), '{}') FROM pg_proc p,
		LATERAL (SELECT regexp_replace(p.prosrc, '''[a-z0-9_.]+([(][^'']*[)])?''::reg[a-z]+', '', 'g')) s(src)
		WHERE p.pronamespace = 'fencing'::regnamespace AND p.prosrc <> '' AND p.prokind = 'f'
		AND s.src ~ '%([0-9][$])?I|quote_ident[(]|::reg(class|type|proc|procedure)\M|pg_get_[a-z]+def' AND p.proname !~ '(_bodies|_manifest)$'
		AND 'quote_all_identifiers=off' <> ALL (coalesce(p.proconfig, '{}'))`))
}

// A detached partition takes on what it was part of under quote_all_identifiers,
// too.
func TestDetachedPartitionWithQuotedNames(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE orders (id int, r text NOT NULL, PRIMARY KEY (id, r)) PARTITION BY LIST (r); CREATE TABLE oe PARTITION OF orders FOR VALUES IN ('e');
		SELECT fencing.register('orders', 'lease'); SELECT fencing.wall('orders', 'attested'), fencing.tombstones('orders'), fencing.seal('orders', by_column => 'r');
		ALTER TABLE orders DETACH PARTITION oe; SET quote_all_identifiers = on; SELECT fencing.register('public.oe', 'lease', 'last_token', NULL, 'fencing.write_epoch')`)
	require.Equal(t, "attested true r", get[string](t, conn, "SELECT concat_ws(' ', wall_level, tombstones::text, seal_column) FROM fencing.registry WHERE table_name = 'oe'"))
	require.Empty(t, codes(diagnose(t, dsn), "error"))
}

// The same after a restore into a database of another encoding, of a table with
// names beyond ASCII.
func TestNamesInAnotherEncoding(t *testing.T) {
	d, ok := newDumper(t)
	if !ok {
		return
	}
	const make = `CREATE TABLE "Größe" (id int, "Rëgion" text NOT NULL, PRIMARY KEY (id, "Rëgion")) PARTITION BY LIST ("Rëgion");
		CREATE TABLE oe PARTITION OF "Größe" FOR VALUES IN ('e'); SELECT fencing.register('"Größe"', 'lease', 'Schlüssel', 'Straße');
		SELECT fencing.wall('"Größe"', 'attested'), fencing.tombstones('"Größe"'), fencing.seal('"Größe"', by_column => 'Rëgion')`
	src := open(t, d.srv.DSN("src"))
	exec(t, src, "SET client_encoding = 'UTF8'")
	exec(t, src, make)
	exec(t, open(t, d.srv.DSN("")), "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
	out, err := d.restore(t, "latin", "--encoding=UTF8")
	require.NoError(t, err, out)
	findings, err := migrations.Doctor(t.Context(), d.srv.DSN("latin"))
	require.NoError(t, err)
	require.Empty(t, codes(findings, "error"), "%v", findings)
	conn := open(t, d.srv.DSN("latin"))
	exec(t, conn, "SET client_encoding = 'UTF8'")
	exec(t, conn, `ALTER TABLE "Größe" DETACH PARTITION oe; SELECT fencing.register('public.oe', 'lease', 'Schlüssel', 'Straße')`)
	require.Equal(t, "attested true", get[string](t, conn, "SELECT concat_ws(' ', wall_level, tombstones::text) FROM fencing.registry WHERE table_name = 'oe'"))
}
