package driver_test

import "testing"

// What a value becomes by its type or a function may be another name than the one
// that is written.
func TestBodiesWithChangedValues(t *testing.T) {
	named := func(declares, x string) bodyCase {
		return bodyCase{setup: plpgsqlBody(`DECLARE q text; ` + declares + ` BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', ` + x + `); END`)}
	}
	loop := func(list string) bodyCase {
		return bodyCase{setup: plpgsqlBody(`DECLARE n text; BEGIN FOREACH n IN ARRAY ` + list + ` LOOP EXECUTE format('UPDATE %I SET v = ''HIT''', n); END LOOP; END`)}
	}
	requireBodiesRefused(t, "", map[string]bodyCase{
		"char(6)": named(``, `'ordersXX'::char(6)`), "varchar(6)": named(``, `'ordersXX'::varchar(6)`), "character varying": named(``, `'ordersXX'::character varying(6)`), "two casts": named(``, `'ordersXX'::text::pg_catalog.varchar(6)`),
		"a variable": named(`n varchar(10) := 'orders';`, `n::varchar(6)`), "a variable's type": named(`n varchar(6);`, `substr('ordersXX'::text, 1, 6)`), "assigned": {setup: plpgsqlBody(`DECLARE n varchar(20); m character(6); BEGIN m := 'orders'; n := 'ordersXX'::char(6); m := n; EXECUTE format('UPDATE %I SET v = 1', m); END`)},
		"declared char": {setup: plpgsqlBody(`DECLARE m char(10) := 'ord' || 'ers'; BEGIN EXECUTE format('UPDATE %I SET v = 1', m::text); END`)},
		"regclass":      named(``, `('public.ord' || 'ers')::regclass`), "a regclass": named(`t regclass := 'public.ord' || 'ers';`, `t`), "a regclass, text": named(`t regclass := '"ord' || 'ers"';`, `t::text`),
		"an oid":    {setup: `DO $do$ BEGIN EXECUTE format($x$ CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ DECLARE t regclass := %s; BEGIN EXECUTE format('UPDATE %%s SET v = 1', t); END $f$ $x$, 'orders'::regclass::oid); END $do$`},
		"an oid, 2": {setup: `DO $do$ BEGIN EXECUTE format($x$ CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN EXECUTE format('UPDATE %%s SET v = 1', '%s'::regclass); END $f$ $x$, 'orders'::regclass::oid); END $do$`},
		"trim":      named(``, `trim(' ord' || 'ers ')`), "trim, a piece": named(``, `trim(' ord ') || 'ers'`), "btrim": named(``, `btrim('ord' || 'ersx', 'x')`),
		"blanks": loop(`('{plain, ord' || 'ers}')::text[]`), "a backslash": loop(`'{ord\ers}'::text[]`), "quotes": loop(`'{"ord\ers"}'::text[]`), "cut elements": loop(`'{ordersXX}'::varchar(6)[]`), "bounds": loop(`'[1:2]={plain,ord\ers}'::text[]`),
		"a text":    {setup: plpgsqlBody(`DECLARE n text; BEGIN FOREACH n IN ARRAY ARRAY['UPDATE "ord' || 'ers" SET v = 1'] LOOP EXECUTE n; END LOOP; END`)},
		"a keyword": {setup: plpgsqlBody(`BEGIN EXECUTE replace('UPDxTE', 'x', 'A') || ' ' || quote_ident((SELECT t FROM cfg)) || ' SET v = 1'; END`)},
		"a date":    {setup: plpgsqlBody(`BEGIN EXECUTE to_char(now(), 'MERGE') || ' INTO ' || quote_ident((SELECT t FROM cfg)) || ' USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET v = 1'; END`)},
	})
	requireBodiesAllowed(t, "", map[string]bodyCase{
		"text": named(``, `'plain'::text`), "varchar": named(``, `'plain'::varchar`), "a variable": named(`n varchar := 'plain';`, `n`), "regclass": {setup: plpgsqlBody(`BEGIN EXECUTE format('UPDATE %s SET v = 1', 'plain'::regclass); END`)}, "lower": named(``, `lower('PLAIN')`), "trim": named(``, `trim('plain')`),
		"an array": loop(`'{plain, audit}'::text[]`), "a list": loop(`ARRAY['plain', 'audit']`), "a value": {setup: plpgsqlBody(`DECLARE n varchar(5) := 'abc'; BEGIN EXECUTE format('UPDATE plain SET v = %L', n::char(2)); END`)},
		"texts": {setup: plpgsqlBody(`DECLARE n text; BEGIN FOREACH n IN ARRAY ARRAY['UPDATE plain SET v = 1', 'DELETE FROM audit'] LOOP EXECUTE n; END LOOP; END`)},
	})
}
