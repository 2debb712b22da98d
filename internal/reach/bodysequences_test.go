package reach

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// A body that sets a sequence which tokens may come from writes what the tokens are for,
// also where a wall judges all else.
func TestBodiesThatSetSequences(t *testing.T) {
	const schema = `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); CREATE SEQUENCE toks; CREATE SEQUENCE other; CREATE TABLE plain (id bigserial);
		CREATE SCHEMA fencing; CREATE SEQUENCE fencing.write_epoch;`
	setting := map[string]string{
		"given": `PERFORM setval(x, 1);`, "given_text": `PERFORM setval(x::text::regclass, 1);`, "all_of_them": `FOR r IN SELECT oid::regclass AS s FROM pg_class WHERE relkind = 'S' LOOP PERFORM setval(r.s, 1); END LOOP;`,
		"named": `PERFORM setval('toks', 1);`, "by_cast": `PERFORM setval('public.toks'::regclass, 1, false);`, "quoted": `PERFORM pg_catalog.setval('"toks"', 1);`, "epoch": `PERFORM setval('fencing.write_epoch', 1);`, "numbered": `PERFORM setval('16400', 1);`, "pieces": `PERFORM setval('to' || 'ks', 1);`, "escaped": `PERFORM setval(E'to\x6bs', 1);`,
		"altered": `ALTER SEQUENCE toks RESTART;`, "altered_as_table": `ALTER TABLE toks RENAME TO gone;`, "made_text": `EXECUTE 'ALTER SEQUENCE ' || x || ' RESTART';`, "made_setval": `EXECUTE format('SELECT setval(%L, 1)', x);`, "by_constant": `EXECUTE 'SELECT setval(''toks'', 1)';`, "dropped": `DROP SEQUENCE toks; CREATE SEQUENCE toks;`,
	}
	leaving := map[string]string{
		"another": `PERFORM setval('other', 1);`, "of_column": `PERFORM setval(pg_get_serial_sequence('plain', 'id'), (SELECT max(id) FROM plain));`, "nexts": `PERFORM nextval(x), currval('toks');`, "makes": `CREATE SEQUENCE third;`,
		"texts": `EXECUTE 'SELECT ' || x;`, "structure": `ALTER TABLE plain ADD v text;`,
	}
	var setup string
	for _, bodies := range []map[string]string{setting, leaving} {
		for name, body := range bodies {
			setup += `CREATE FUNCTION ` + name + `(x regclass) RETURNS void LANGUAGE plpgsql AS $f$ DECLARE r record; BEGIN ` + body + ` END $f$;`
		}
	}
	tables := oneTable("orders")
	tables[0].HasWall, tables[0].IssuedBy = true, check.Name{Schema: "public", Name: "toks"}
	functions := readingOf(t, schema+setup, tables).Closure(tables, nil).Functions
	for name, body := range setting {
		require.Contains(t, functions, check.Name{Schema: "public", Name: name}, body)
	}
	require.Len(t, functions, len(setting))
}
