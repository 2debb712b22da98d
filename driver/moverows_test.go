package driver_test

import "testing"

// moveSchema has a partitioned table log beside orders, whose rows an UPDATE may move.
const moveSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, code text, n int, last_token bigint NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 'ABC', 9, 9);
CREATE TABLE log (id int, k int, note text) PARTITION BY LIST (k);
CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (1);
CREATE TABLE log_2 PARTITION OF log FOR VALUES IN (2, 3) PARTITION BY LIST (k);
CREATE TABLE log_2a PARTITION OF log_2 FOR VALUES IN (2);
CREATE TABLE log_2b PARTITION OF log_2 FOR VALUES IN (3);
INSERT INTO log VALUES (9, 1), (2, 2);
CREATE FUNCTION pays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET code = 'paid'; RETURN NULL; END $$;
`

// An UPDATE of a partitioned table deletes and inserts the rows that it moves to
// another partition.
func TestMovedRowsReach(t *testing.T) {
	const (
		moves      = `UPDATE log SET k = 2 WHERE id = 9`
		movesBelow = `UPDATE log_2 SET k = 3 WHERE id = 2`
		adds       = `INSERT INTO log VALUES (3, 1)`
	)
	checkBypasses(t, moveSchema, map[string]bypass{
		"INSERT trigger":              {setup: `CREATE TRIGGER t AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION pays()`, refused: []string{moves, movesBelow, `MERGE INTO log USING (VALUES (9)) v (id) ON log.id = v.id WHEN MATCHED THEN UPDATE SET k = 2`}},
		"INSERT trigger, by a view":   {setup: `CREATE TRIGGER t AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION pays(); CREATE VIEW notes AS SELECT * FROM log`, refused: []string{`UPDATE notes SET k = 2 WHERE id = 9`}},
		"INSERT trigger, by a call":   {setup: `CREATE TRIGGER t AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION pays(); CREATE FUNCTION moves() RETURNS void LANGUAGE sql AS 'UPDATE log SET k = 2 WHERE id = 9'`, refused: []string{`SELECT moves()`}},
		"DELETE trigger of a leaf":    {setup: `CREATE TRIGGER t AFTER DELETE ON log_1 FOR EACH ROW EXECUTE FUNCTION pays()`, refused: []string{moves}, passes: []string{adds, movesBelow}},
		"INSERT trigger of a leaf":    {setup: `CREATE TRIGGER t AFTER INSERT ON log_2b FOR EACH ROW EXECUTE FUNCTION pays()`, refused: []string{movesBelow, `UPDATE log SET k = 3 WHERE id = 9`}},
		"key of a leaf, cascade":      {setup: `ALTER TABLE log_1 ADD UNIQUE (id); ALTER TABLE orders ADD FOREIGN KEY (n) REFERENCES log_1 (id) ON DELETE CASCADE`, refused: []string{moves}, passes: []string{adds, movesBelow}},
		"key of a leaf, set null":     {setup: `ALTER TABLE log_1 ADD UNIQUE (id); ALTER TABLE orders ADD FOREIGN KEY (n) REFERENCES log_1 (id) ON DELETE SET NULL`, refused: []string{moves}},
		"key of a leaf, no action":    {setup: `ALTER TABLE log_1 ADD UNIQUE (id); ALTER TABLE orders ADD FOREIGN KEY (n) REFERENCES log_1 (id)`, passes: []string{movesBelow}},
		"key of the whole table":      {setup: `ALTER TABLE log ADD UNIQUE (id, k); ALTER TABLE orders ADD k int DEFAULT 1, ADD FOREIGN KEY (n, k) REFERENCES log (id, k) ON DELETE CASCADE`, passes: []string{movesBelow, adds}},
		"a key that moves by cascade": {setup: `CREATE TABLE kinds (k int PRIMARY KEY); INSERT INTO kinds VALUES (1), (2); DELETE FROM log WHERE k = 2; ALTER TABLE log ADD FOREIGN KEY (k) REFERENCES kinds ON UPDATE CASCADE; CREATE TRIGGER t AFTER DELETE ON log_1 FOR EACH ROW EXECUTE FUNCTION pays()`, refused: []string{`UPDATE kinds SET k = 3 WHERE k = 1`}},
		"no partitions":               {setup: `CREATE TABLE plain (id int); INSERT INTO plain VALUES (1); CREATE TABLE child () INHERITS (plain); CREATE TRIGGER t AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION pays()`, passes: []string{`UPDATE plain SET id = 2`}},
	})
}

// A table is written by its parent's name, too, if it is a foreign one that leads
// to orders.
func TestForeignChildren(t *testing.T) {
	const server = `CREATE EXTENSION postgres_fdw; DO $$ BEGIN EXECUTE format('CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)', trim(both chr(34) from current_setting('unix_socket_directories')), current_setting('port'), current_database()); END $$;
		CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user 'postgres');`
	const harm = `SELECT NOT EXISTS (SELECT FROM far WHERE id = 1 AND code = 'ABC') OR EXISTS (SELECT FROM far WHERE id = 7)`
	const options = ` SERVER here OPTIONS (schema_name 'public', table_name 'orders')`
	checkBypasses(t, moveSchema, map[string]bypass{
		"partition": {harm: harm, setup: server + `CREATE TABLE all_orders (id bigint, code text, n int, last_token bigint) PARTITION BY LIST (id); CREATE FOREIGN TABLE far PARTITION OF all_orders DEFAULT` + options,
			refused: []string{`UPDATE all_orders SET code = 'paid'`, `INSERT INTO all_orders VALUES (7, 'new', 1, 1)`, `DELETE FROM all_orders`}},
		"child": {harm: harm, setup: server + `CREATE TABLE any_orders (id bigint, code text, n int, last_token bigint); CREATE FOREIGN TABLE far () INHERITS (any_orders)` + options,
			refused: []string{`UPDATE any_orders SET code = 'paid'`, `DELETE FROM any_orders`}},
	})
}
