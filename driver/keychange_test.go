package driver_test

import "testing"

// keySchema has orders follow the key code of customers, which is ABC.
const keySchema = `
CREATE TABLE customers (id int PRIMARY KEY, name text, note text, code text UNIQUE);
CREATE TABLE orders (id bigint PRIMARY KEY, code text, n int, last_token bigint NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 'ABC', 9, 9);
CREATE FUNCTION sets_code() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := upper(NEW.name); RETURN NEW; END $$;
CREATE FUNCTION sets_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW := jsonb_populate_record(NEW, jsonb_build_object('code', upper(NEW.name))); RETURN NEW; END $$;
CREATE FUNCTION sets_name() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SELECT 'zzz' INTO NEW.name; RETURN NEW; END $$;
CREATE FUNCTION sets_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'changed by ' || current_user; IF NEW.code = 'x' THEN RAISE 'no'; END IF; RETURN NEW; END $$;
`

// Where the key is generated from the name.
const generatedKey = `DROP TABLE customers; CREATE TABLE customers (id int PRIMARY KEY, name text, note text, code text GENERATED ALWAYS AS (upper(name)) STORED UNIQUE);
INSERT INTO customers VALUES (1, 'abc'); `

const (
	plainKey = `INSERT INTO customers VALUES (1, 'abc', '', 'ABC'); `
	follows  = `ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES customers (code) ON UPDATE CASCADE; `
	// each of these gives the customer another name
	renames        = `UPDATE customers SET name = 'q' WHERE id = 1`
	renamesUpsert  = `INSERT INTO customers (id, name) VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name`
	renamesMerge   = `MERGE INTO customers c USING (VALUES (1)) v (id) ON c.id = v.id WHEN MATCHED THEN UPDATE SET name = 'q'`
	renamesWith    = `WITH u AS (UPDATE customers SET name = 'q' RETURNING 1) SELECT count(*) FROM u`
	renameFunction = `CREATE FUNCTION rename_customer() RETURNS void LANGUAGE sql AS 'UPDATE customers SET name = ''q'''; `
	renamesByCall  = `SELECT rename_customer()`
	annotates      = `UPDATE customers SET note = 'y' WHERE id = 1`
	addsCustomer   = `INSERT INTO customers (id, name) VALUES (2, 'two')`
)

// A key that orders follow may change although no statement names it.
func TestKeysThatChangeUnnamed(t *testing.T) {
	trigger := func(function, on string) string {
		return `CREATE TRIGGER t BEFORE ` + on + ` FOR EACH ROW EXECUTE FUNCTION ` + function + `(); `
	}
	checkBypasses(t, keySchema, map[string]bypass{
		"generated": {setup: generatedKey + follows + renameFunction,
			refused: []string{renames, renamesUpsert, renamesMerge, renamesWith, renamesByCall, `UPDATE customers SET (note, name) = ('x', 'q')`},
			passes:  []string{annotates, addsCustomer, `UPDATE customers SET id = 3 WHERE id = 2`, `DELETE FROM customers WHERE id = 3`}},
		"generated, set null": {
			setup: generatedKey + `ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES customers (code) ON UPDATE SET NULL;`, refused: []string{renames},
			passes: []string{annotates},
		},
		"generated, set default": {
			setup: generatedKey + `ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES customers (code) ON UPDATE SET DEFAULT;`, refused: []string{renames},
			passes: []string{annotates},
		},
		"generated, no action": {
			setup:  generatedKey + `ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES customers (code) ON DELETE CASCADE; DELETE FROM orders;`,
			passes: []string{renames, annotates},
		},
		"generated, by a view": {setup: generatedKey + follows + `CREATE VIEW buyers AS SELECT id AS number, name AS called FROM customers`, refused: []string{`UPDATE buyers SET called = 'q'`}},
		"generated in two columns": {setup: `DROP TABLE customers; CREATE TABLE customers (id int PRIMARY KEY, name text, note text, code text GENERATED ALWAYS AS (left(name, 2) || right(note, 1)) STORED UNIQUE); INSERT INTO customers VALUES (1, 'AB', 'C');` + follows,
			refused: []string{`UPDATE customers SET name = 'XX'`, `UPDATE customers SET note = 'D'`}, passes: []string{addsCustomer}},
		"trigger": {setup: plainKey + follows + renameFunction + trigger("sets_code", "INSERT OR UPDATE ON customers"),
			refused: []string{renames, renamesUpsert, renamesMerge, renamesWith, renamesByCall}, passes: []string{addsCustomer}},
		"trigger that sets the row":                 {setup: plainKey + follows + trigger("sets_row", "UPDATE ON customers"), refused: []string{renames}, passes: []string{addsCustomer}},
		"trigger that sets what a key is made from": {setup: generatedKey + follows + trigger("sets_name", "UPDATE ON customers"), refused: []string{annotates, renames}, passes: []string{addsCustomer}},
		"trigger of one column":                     {setup: plainKey + follows + trigger("sets_code", "UPDATE OF name ON customers"), refused: []string{renames}, passes: []string{annotates}},
		"trigger that sets another column": {
			setup:  plainKey + follows + renameFunction + trigger("sets_note", "UPDATE ON customers"),
			passes: []string{renames, renamesUpsert, renamesMerge, renamesByCall},
		},
		"trigger that is disabled": {setup: plainKey + follows + trigger("sets_code", "UPDATE ON customers") + `ALTER TABLE customers DISABLE TRIGGER t`, passes: []string{renames}},
		"trigger, set null": {setup: plainKey + `ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES customers (code) ON UPDATE SET NULL;` + trigger("sets_code", "UPDATE ON customers"),
			refused: []string{renames}},
		"trigger of a partition": {setup: `DROP TABLE customers; CREATE TABLE customers (id int, name text, note text, code text, UNIQUE (id, code)) PARTITION BY LIST (id); CREATE TABLE customers_1 PARTITION OF customers FOR VALUES IN (1);` + plainKey +
			`ALTER TABLE orders ADD customer int DEFAULT 1, ADD FOREIGN KEY (customer, code) REFERENCES customers (id, code) ON UPDATE CASCADE;` + trigger("sets_code", "UPDATE ON customers_1"),
			refused: []string{renames, `UPDATE customers_1 SET name = 'q'`}},
		"trigger of a partitioned table": {setup: `DROP TABLE customers; CREATE TABLE customers (id int, name text, note text, code text, UNIQUE (id, code)) PARTITION BY LIST (id); CREATE TABLE customers_1 PARTITION OF customers FOR VALUES IN (1);` + plainKey +
			`ALTER TABLE orders ADD customer int DEFAULT 1, ADD FOREIGN KEY (customer, code) REFERENCES customers (id, code) ON UPDATE CASCADE;` + trigger("sets_code", "UPDATE ON customers"),
			refused: []string{renames, `UPDATE customers_1 SET name = 'q'`}},
		"trigger of a child": {setup: `CREATE TABLE vips (UNIQUE (code)) INHERITS (customers); INSERT INTO vips VALUES (1, 'abc', '', 'ABC'); ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES vips (code) ON UPDATE CASCADE;` + trigger("sets_code", "UPDATE ON vips"),
			refused: []string{renames, `UPDATE vips SET name = 'q'`}},
		"chain, generated": {setup: `CREATE TABLE regions (code text PRIMARY KEY, note text); INSERT INTO regions VALUES ('abc');
			CREATE TABLE areas (id int PRIMARY KEY, region text REFERENCES regions ON UPDATE CASCADE ON DELETE SET NULL, code text GENERATED ALWAYS AS (upper(COALESCE(region, 'none'))) STORED UNIQUE); INSERT INTO areas VALUES (1, 'abc');
			ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES areas (code) ON UPDATE CASCADE`,
			refused: []string{`UPDATE regions SET code = 'q'`, `DELETE FROM regions`, `UPDATE areas SET region = NULL`}, passes: []string{`UPDATE regions SET note = 'x'`, `UPDATE areas SET id = 2`}},
		"chain, trigger": {setup: `CREATE TABLE regions (code text PRIMARY KEY, note text); INSERT INTO regions VALUES ('abc'), ('other');
			CREATE TABLE areas (name text DEFAULT 'other' REFERENCES regions ON UPDATE CASCADE ON DELETE SET DEFAULT, id int PRIMARY KEY, code text UNIQUE); INSERT INTO areas VALUES ('abc', 1, 'ABC');
			ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES areas (code) ON UPDATE CASCADE;` + trigger("sets_code", "UPDATE OF name ON areas"),
			refused: []string{`UPDATE regions SET code = 'q' WHERE code = 'abc'`, `DELETE FROM regions WHERE code = 'abc'`}, passes: []string{`UPDATE regions SET note = 'x'`, `UPDATE areas SET id = 2`}},
		"chain, the trigger above": {setup: `CREATE TABLE regions (code text PRIMARY KEY, name text, note text); INSERT INTO regions VALUES ('ABC', 'abc');
			CREATE TABLE areas (id int PRIMARY KEY, code text UNIQUE REFERENCES regions ON UPDATE CASCADE); INSERT INTO areas VALUES (1, 'ABC');
			ALTER TABLE orders ADD FOREIGN KEY (code) REFERENCES areas (code) ON UPDATE CASCADE;` + trigger("sets_code", "UPDATE ON regions"),
			refused: []string{`UPDATE regions SET name = 'q'`}, passes: []string{`UPDATE areas SET id = 2`}},
		"trigger that writes the parent": {setup: generatedKey + follows + `CREATE TABLE feed (name text); CREATE FUNCTION feeds() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE customers SET name = NEW.name; RETURN NEW; END $$;` +
			`CREATE TRIGGER t AFTER INSERT ON feed FOR EACH ROW EXECUTE FUNCTION feeds()`, refused: []string{`INSERT INTO feed VALUES ('q')`}, passes: []string{`DELETE FROM feed`}},
	})
}
