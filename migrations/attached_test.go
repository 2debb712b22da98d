package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// Tables that have triggers of the wall of their own, as children of a walled
// table or from a dump of them alone, become partitions, and the wall is put up
// over them.
func TestWallOverPartitionsWithTriggers(t *testing.T) {
	const (
		parent = `CREATE TABLE p (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE q () INHERITS (p);
			SELECT fencing.register('p', 'lease'), fencing.wall('p');`
		sealed   = `SELECT fencing.seal('p', 'row');`
		takeOver = `ALTER TABLE q NO INHERIT p; ALTER TABLE p RENAME TO old; CREATE TABLE p (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
			ALTER TABLE p ATTACH PARTITION q DEFAULT; DROP TABLE old;`
		// what pg_dump has of a partition comes with its triggers
		left = `CREATE TABLE q (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0); SELECT fencing.register('q', 'lease'), fencing.wall('q', 'attested');
			ALTER TABLE fencing.registry DISABLE TRIGGER USER; DELETE FROM fencing.registry; ALTER TABLE fencing.registry ENABLE TRIGGER USER;
			DO $$ DECLARE n name; BEGIN FOR n IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'fencing.registry'::regclass LOOP EXECUTE format('ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER %I', n); END LOOP; END $$;
			CREATE TABLE p (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); ALTER TABLE p ATTACH PARTITION q DEFAULT;`
		nested = `CREATE TABLE p (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE q (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE q1 PARTITION OF q DEFAULT;
			SELECT fencing.register('q', 'lease'), fencing.wall('q'); DROP TABLE p;
			CREATE TABLE p (id int NOT NULL, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); ALTER TABLE p ATTACH PARTITION q DEFAULT;`
	)
	for name, tt := range map[string]struct{ setup, call, mode string }{
		"a child, register":         {parent + takeOver, "SELECT fencing.register('p', 'lease')", "lease"},
		"a child, another mode":     {parent + takeOver, "SELECT fencing.register('p', 'strict')", "strict"},
		"a sealed child, register":  {parent + sealed + takeOver, "SELECT fencing.register('p', 'lease')", "lease"},
		"left over":                 {left, "SELECT fencing.register('p', 'lease'), fencing.wall('p')", "lease"},
		"left over, another mode":   {left, "SELECT fencing.register('p', 'strict'), fencing.wall('p')", "strict"},
		"partitions of a partition": {nested, "SELECT fencing.register('p', 'lease'), fencing.wall('p')", "lease"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, tt.setup)
			exec(t, conn, tt.call)
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			require.Equal(t, tt.mode, get[string](t, conn, "SELECT mode FROM fencing.registry"))
			// the partitions have copies, and a trigger of their own only for TRUNCATE
			require.Equal(t, []string{"~fencing_truncate"},
				get[[]string](t, conn, `SELECT array_agg(DISTINCT tgname::text) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
				WHERE c.relispartition AND tgparentid = 0 AND tgname LIKE '%fencing%' AND tgname <> '~fencing_kept_token'`))
			_, err := conn.Exec(t.Context(), "INSERT INTO q VALUES (1)")
			requireRefused(t, err, "FN002")
			require.NoError(t, migrations.Wall(t.Context(), dsn, "p", migrations.WallOff))
			require.Zero(t, get[int](t, conn, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '%fencing\\_%' AND tgname <> '~fencing_kept_token' AND tgrelid IN ('p'::regclass, 'q'::regclass)"))
		})
	}
}
