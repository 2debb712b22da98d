package driver_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// What somebody has put into the schema fencing, or tied to what is there, isn't taken
// for its own, whatever it is called.
func TestObjectsPutIntoFencing(t *testing.T) {
	const does = ` LANGUAGE plpgsql AS $$ BEGIN RESET fencing.session; UPDATE fencing.registry SET driver_level = 'off'; RETURN 1; END $$`
	for name, c := range map[string]struct{ setup, use string }{
		"a function called like one that is called": {`CREATE FUNCTION fencing.take(i int) RETURNS int` + does, `SELECT fencing.take(1)`},
		"the same by a bare name":                   {`CREATE FUNCTION fencing.renew(i int) RETURNS int` + does, `SELECT renew(1)`},
		"a function called like a helper":           {`CREATE FUNCTION fencing.lease_ttl(i int) RETURNS int` + does, `SELECT lease_ttl(1)`},
		"another function":                          {`CREATE FUNCTION fencing.mine() RETURNS int` + does, `SELECT mine()`},
		"another function, that is called":          {`CREATE FUNCTION fencing.mine() RETURNS int` + does + `; CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT fencing.mine()'`, `SELECT public.f()`},
		"another function, by a default":            {`CREATE FUNCTION fencing.release(i int) RETURNS int` + does + `; CREATE TABLE public.d (i int, j int DEFAULT fencing.release(1))`, `INSERT INTO public.d (i) VALUES (1)`},
		"a function that writes a table":            {`CREATE FUNCTION fencing.renew(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = 7; RETURN 1; END $$`, `SELECT fencing.renew(1)`},
		"a view of the registry":                    {`CREATE VIEW fencing.v AS SELECT * FROM fencing.registry`, `UPDATE v SET driver_level = 'off'`},
		"a view of a table":                         {`CREATE VIEW fencing.v AS SELECT * FROM public.orders`, `UPDATE v SET n = 8`},
		"a view above":                              {`CREATE VIEW fencing.v AS SELECT * FROM fencing.registry; CREATE VIEW public.above AS SELECT * FROM fencing.v`, `DELETE FROM public.above`},
		"a view that calls":                         {`CREATE FUNCTION public.f() RETURNS int` + does + `; CREATE VIEW fencing.v AS SELECT public.f()`, `SELECT * FROM v`},
		"a child":                                   {`CREATE TABLE public.kid () INHERITS (fencing.registry)`, `INSERT INTO public.kid SELECT * FROM fencing.registry`},
		"a parent":                                  {`CREATE TABLE public.par (driver_level text); ALTER TABLE fencing.registry ALTER driver_level DROP DEFAULT, INHERIT public.par`, `UPDATE public.par SET driver_level = 'off'`},
		"a parent's view":                           {`CREATE TABLE public.par (driver_level text); ALTER TABLE fencing.registry INHERIT public.par; CREATE VIEW public.over AS SELECT * FROM public.par`, `UPDATE public.over SET driver_level = 'off'`},
		"a table that one references":               {`CREATE TABLE public.res (id text PRIMARY KEY); INSERT INTO public.res VALUES ('r'); ALTER TABLE fencing.lease ADD FOREIGN KEY (resource) REFERENCES public.res ON DELETE CASCADE`, `DELETE FROM public.res`},
		"a table that one references, far": {`CREATE TABLE public.top (id text PRIMARY KEY); INSERT INTO public.top VALUES ('r'); CREATE TABLE public.res (id text PRIMARY KEY REFERENCES public.top ON DELETE CASCADE); INSERT INTO public.res VALUES ('r');
			ALTER TABLE fencing.lease ADD FOREIGN KEY (resource) REFERENCES public.res ON DELETE CASCADE`, `DELETE FROM public.top`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, fencetest.Installed)
			run(t, dsn, resettingSchema, `INSERT INTO orders VALUES (1, 0, 9)`)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
			run(t, dsn, `INSERT INTO fencing.lease SELECT (jsonb_populate_record(NULL::fencing.lease, '{"resource": "r", "token": 1, "holder": "h", "expires_at": "2000-01-01"}')).* ON CONFLICT DO NOTHING; SELECT setval('fencing.write_epoch', 1000)`, c.setup)
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			before := stateOf(t, plain)
			db := openReset(t, dsn, "a function, RESET ALL")
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = conn.ExecContext(t.Context(), `SELECT public.set_tenant('fencing, public')`)
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), c.use)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			for _, text := range []string{`SELECT count(*) FROM orders`, `INSERT INTO public.log VALUES (1)`, `SELECT fencing.next_token()`} {
				if name != "the same by a bare name" {
					_, err = conn.ExecContext(t.Context(), text)
					require.NoError(t, err, text)
				}
			}
			require.Equal(t, before, stateOf(t, plain))
			_, err = plain.Exec(t.Context(), `SELECT set_config('search_path', 'fencing, public', false)`)
			require.NoError(t, err)
			_, err = plain.Exec(t.Context(), c.use)
			require.NoError(t, err)
			require.NotEqual(t, before, stateOf(t, plain), "the bypass is real")
		})
	}
}

// A sequence that tokens come from isn't reset through the table of a column that has
// come to own it.
func TestOwnedSequence(t *testing.T) {
	const setup = `CREATE SEQUENCE tokens; CREATE TABLE owner (i bigint) PARTITION BY LIST (i); CREATE TABLE owner_1 PARTITION OF owner FOR VALUES IN (1);
		CREATE FUNCTION empties() RETURNS void LANGUAGE plpgsql AS $$ BEGIN TRUNCATE owner RESTART IDENTITY; END $$;
		CREATE FUNCTION sets(s regclass) RETURNS bigint LANGUAGE sql AS 'SELECT setval(s, 1)';
		CREATE FUNCTION sets_all() RETURNS void LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN SELECT oid::regclass AS s FROM pg_class WHERE relname = 'tokens' LOOP PERFORM setval(r.s, 1); END LOOP; END $$;
		CREATE FUNCTION sets_other() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM setval(pg_get_serial_sequence('owned', 'id'), 1); END $$; CREATE TABLE owned (id bigserial);
		CREATE TABLE issued (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`
	dsn, plain := acted(t, actCase{setup: setup})
	run(t, dsn, `SELECT fencing.register('issued', 'lease', issued_by => 'tokens')`)
	uses := []string{`TRUNCATE owner RESTART IDENTITY`, `TRUNCATE owner, plain RESTART IDENTITY CASCADE`, `SELECT empties()`}
	for _, use := range uses {
		_, err := openReset(t, dsn, "nobody").Exec(use)
		require.NoError(t, err, use)
	}
	_, err := openReset(t, dsn, "nobody").Exec(`SELECT sets_other()`)
	require.NoError(t, err)
	uses = append(uses, `SELECT sets('tokens')`, `SELECT sets(oid) FROM pg_class WHERE relname = 'tokens'`, `SELECT sets_all()`)
	run(t, dsn, `ALTER SEQUENCE tokens OWNED BY owner_1.i; SELECT setval('tokens', 1000)`)
	for _, use := range uses {
		_, err := openReset(t, dsn, "nobody").Exec(use)
		require.ErrorIs(t, err, rewrite.ErrRefused, use)
	}
	_, err = openReset(t, dsn, "nobody").Exec(`TRUNCATE owner`)
	require.NoError(t, err)
	for _, use := range uses {
		var last int64
		require.NoError(t, plain.QueryRow(t.Context(), `SELECT last_value FROM tokens`).Scan(&last))
		require.EqualValues(t, 1000, last)
		run(t, dsn, use)
		require.NoError(t, plain.QueryRow(t.Context(), `SELECT last_value FROM tokens`).Scan(&last))
		require.EqualValues(t, 1, last, "no way: %s", use)
		run(t, dsn, `SELECT setval('tokens', 1000)`)
	}
}
