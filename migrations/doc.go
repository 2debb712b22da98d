// Package migrations installs what fencerow needs inside PostgreSQL: schema
// fencing, with durable fencing tokens, leases and the registry of protected
// tables.
//
// Run [Up] where the application's other migrations run, and name the tables
// to protect:
//
//	if err := migrations.Up(ctx, dsn); err != nil {
//		return err
//	}
//	err := migrations.Register(ctx, dsn,
//		migrations.Table{Name: "orders", Mode: migrations.Lease},
//		migrations.Table{Name: "app.invoices", Mode: migrations.Strict, Resource: "billing"},
//	)
//
// Both may run at every start of a program and in many processes at once. Up
// does nothing if the schema is up to date. Register overwrites the table's settings, so
// two programs that register a table differently keep overwriting each other's. Every
// function opens a plain connection of its own, of pgx and not of fencerow, and closes it. Point it at the server
// itself or at a pooler in session mode: a pooler that hands the connection on
// between two statements loses the lock that keeps two migrations apart.
//
// # Tables
//
// Register adds the token column (last_token bigint NOT NULL DEFAULT 0) where
// it is missing and writes one row of fencing.registry, by calling the SQL
// function fencing.register, which migrations in other languages may call too:
//
//	SELECT fencing.register('orders', mode => 'lease');
//
// A table is kept by its oid and by the name it was registered under, and both
// are protected: a renamed table stays protected, and so does one that was
// dropped and made again. The mode has no default; see [Mode].
//
// A table is enforced at once. With [SetLevel], or the SQL function
// fencing.driver_level, the driver only reports on it, or ignores it:
//
//	SELECT fencing.driver_level('orders', 'report');
//
// An ORM's statements have no guard. With [SetRewrite], or the SQL function
// fencing.driver_rewrite, the driver adds it:
//
//	SELECT fencing.driver_rewrite('orders', true);
//
// # The wall
//
// The driver checks only its own client. With [Wall], or the SQL function
// fencing.wall, PostgreSQL itself refuses stale, unguarded and forged writes to a
// registered table from any client, by triggers:
//
//	SELECT fencing.wall('orders', 'report');  -- logs what it would refuse
//	SELECT fencing.wall('orders');            -- refuses it
//
// An UPDATE must set the token column, an INSERT give it, to a token that was
// issued and, for an UPDATE, that is not older than the row's; in mode strict
// it must be newer. A DELETE leaves no row with the token, so it needs it in a
// setting, which the driver adds and others set in the same transaction:
//
//	SELECT set_config(fencing.setting_name(NULL), '4711', true);
//	DELETE FROM orders WHERE id = 7;
//
// The name is that of the table's resource, NULL being the default token; it is
// fencing.token then. An UPDATE that moves a row to another partition needs the
// setting too. TRUNCATE is refused. At level attested UPDATE and INSERT need
// the setting as well.
//
// Refusals have SQLSTATE FN001 (stale, or in mode strict used), FN002 (no
// token), FN003 (never issued) or FN004 (not allowed: TRUNCATE, a setting with
// another token, a trigger that changed a write's, a connection of the driver
// that changes something in schema fencing). Schema, table, column and
// constraint (the trigger) are fields of the error; DETAIL is a JSON object
// with token, current, mode and resource, and relation if another table than
// the registered one was written: a partition or a child.
//
// Call Wall again after adding partitions or children, and after a restore with
// triggers disabled: it mends what is missing. [Tombstones] keeps the tokens of
// deleted keys. [Seal] compares writes with the token of a lease as well, and so
// shuts its old holder out of rows that the new one hasn't written. [Repair] sets the token of a row that a forged one has made
// unwritable.
//
// # Functions
//
// The driver refuses calls of functions that may write protected tables, as far as
// their bodies tell. One that you know to write none, or to carry a guard of its
// own, you can allow, by [AllowFunction] or by
//
//	SELECT fencing.allow_function('public.run(text)', 'it only runs reports');
//	SELECT fencing.disallow_function('public.run(text)'); -- and back
//
// It is allowed as long as its definition stays, for the handles that go by the
// registry. What has become of it since is a finding of the doctor.
//
// # Roles
//
// Up needs CREATE on the database. The role that ran it owns schema fencing,
// and should be the one that registers; it must own the tables, or be a
// superuser. Another role that registers needs
//
//	GRANT USAGE ON SCHEMA fencing TO deploy;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON fencing.registry, fencing.allowed_function TO deploy;
//	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fencing TO deploy;
//
// Nobody else starts with any right but to run the parts of the doctor, which
// only read, as who calls them, and fencing.allowed_functions(), which the driver
// asks. What the application's role needs, to
// read the registry, to draw tokens and to take leases, and no more than that:
//
//	GRANT USAGE ON SCHEMA fencing TO app;
//	GRANT SELECT ON fencing.registry, fencing.generation, fencing.lease TO app;
//	GRANT SELECT ON SEQUENCE fencing.write_epoch TO app;
//	GRANT EXECUTE ON FUNCTION fencing.next_token() TO app;
//	GRANT EXECUTE ON FUNCTION fencing.take, fencing.renew, fencing.release TO app;
//
// The wall needs no further right: its functions run as the owner of schema
// fencing, and a role without any right there gets the same answers as others. A role that can write walled tables and can't disarm the wall
// has these rights, and on the tables
//
//	GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO writer;
//
// It owns neither the tables, their schemas, the database nor schema fencing,
// is not a member of a role that does, nor of pg_execute_server_program or
// pg_write_server_files, has no CREATEROLE (before PostgreSQL 16), no UPDATE or
// USAGE on the sequence and no right to write the registry or to run
// fencing.wall; and it is not a superuser. A table's owner can
// always drop its triggers. Only the owner of schema fencing may run
// fencing.repair and fencing.prune_tombstones, whatever else is granted. Give
// EXECUTE on fencing.setting_name(text) to roles that ask it for names.
//
// # Doctor
//
// [Doctor], or the SQL function fencing.doctor, finds what takes the protection
// away: a trigger that is missing or disabled, a sequence that would give tokens
// out twice, a role of the application with rights that it must not have, a
// trigger of yours that sets the token. Each [Finding] says what mends it. Doctor
// also tries the walls with stale writes that it takes back; where it finds an
// error, [Healthy] is false, and a deployment should stop. docs/doctor.md lists
// what it finds. A role that doesn't own schema fencing needs
//
//	GRANT EXECUTE ON FUNCTION fencing.doctor, fencing.doctor_seal TO monitor;
//
// # Objects
//
// fencing.next_token() draws a token; fencing.write_epoch is the sequence
// behind it, never to be written by anyone else. fencing.registry holds a row
// for each protected table. fencing.generation holds one row, whose value
// rises in the transaction that changes the registry or what is allowed; the same moment is
// notified on channel fencerow_registry, with the new value as payload.
// fencing.allowed_function holds the functions that [AllowFunction] allows,
// fencing.tombstone the tokens of deleted keys, fencing.repairs a record
// of each repair. fencing.lease holds the leases that fencing.take(), renew() and
// release() are about, for package lease and for clients in other languages; each
// release is notified on channel fencerow_lease, with the resource as payload.
// fencing.epoch holds the newest token of each lease, for seals to compare with.
// Functions named wall_, tomb_ or seal_ and a number are those of the
// triggers; they come and go with the walls.
package migrations
