// Package migrations installs what fencerow needs inside PostgreSQL: schema
// fencing, with durable fencing tokens and the registry of protected tables.
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
// Both may run at every start of a program and in many processes at once: what
// is there already stays as it is. Every function opens a plain connection of
// its own, of pgx and not of fencerow, and closes it. Point it at the server
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
// A table is enforced at once. [SetLevel], or the SQL function
// fencing.driver_level, has the driver only report on it, or leave it alone:
//
//	SELECT fencing.driver_level('orders', 'report');
//
// # Roles
//
// Up needs CREATE on the database. The role that ran it owns schema fencing,
// and should be the one that registers; it must own the tables, or be a
// superuser. Another role that registers needs
//
//	GRANT USAGE ON SCHEMA fencing TO deploy;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON fencing.registry TO deploy;
//	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fencing TO deploy;
//
// Nobody else starts with any right. What the application's role needs, to
// read the registry and to draw tokens, and no more than that:
//
//	GRANT USAGE ON SCHEMA fencing TO app;
//	GRANT SELECT ON fencing.registry, fencing.generation TO app;
//	GRANT SELECT ON SEQUENCE fencing.write_epoch TO app;
//	GRANT EXECUTE ON FUNCTION fencing.next_token() TO app;
//
// # Objects
//
// fencing.next_token() draws a token; fencing.write_epoch is the sequence
// behind it, never to be written by anyone else. fencing.registry holds a row
// for each protected table. fencing.generation holds one row, whose value
// rises in the transaction that changes the registry; the same moment is
// notified on channel fencerow_registry, with the new value as payload.
package migrations
