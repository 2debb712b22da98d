package driver_test

import "testing"

// What a name or a string with UESCAPE stands for is told by the server alone, however the escape
// character itself is written, and wherever the code stands.
func TestBodiesWithUescape(t *testing.T) {
	escapes := map[string]string{
		"plain": `'!'`, "escape string": `E'!'`, "escaped": `E'\x21'`, "dollars": `$$!$$`, "tag": `$x$!$x$`, "continued": "''\n'!'", "commented": "/* a */ -- b\n '!'",
	}
	refused := make(map[string]bodyCase)
	for name, escape := range escapes {
		why := "UESCAPE"
		if name == "plain" || name == "commented" { // then the name itself is read
			why = `writes table "orders"`
		}
		refused["a table, "+name] = bodyCase{setup: plpgsqlBody(`BEGIN UPDATE public.U&"!006frders" UESCAPE ` + escape + ` SET v = 'HIT'; END`), why: why}
		refused["a function, "+name] = bodyCase{setup: plpgsqlBody(`BEGIN PERFORM public.U&"!0062ad" UESCAPE ` + escape + ` (); END`), why: why}
	}
	plain := func(name, escape string) string { return `U&"` + name + `" UESCAPE ` + escape }
	refused["SQL"] = bodyCase{setup: `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $f$ SELECT public.` + plain("!0062ad", `E'!'`) + `() $f$`, why: "UESCAPE"}
	refused["a constant that is run"] = bodyCase{setup: plpgsqlBody(`BEGIN EXECUTE 'UPDATE ` + plain("!006frders", `$$!$$`) + ` SET v = ''HIT'''; END`), why: "UESCAPE"}
	refused["a string that is run"] = bodyCase{setup: plpgsqlBody(`BEGIN EXECUTE U&'UPDATE !006frders SET v = 1' UESCAPE E'!'; END`), why: "runs SQL that it makes"}
	refused["a trigger"] = bodyCase{setup: `CREATE TABLE fired (i int); CREATE FUNCTION ff() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM public.` + plain("!0062ad", `E'!'`) + `(); RETURN NEW; END $f$; CREATE TRIGGER t AFTER INSERT ON fired FOR EACH ROW EXECUTE FUNCTION ff()`,
		use: `INSERT INTO @fired VALUES (1)`, why: "UESCAPE"}
	requireBodiesRefused(t, bodiesSchema, refused)

	// the functions that run a string in an expression may only read, and so what they call has to write
	given := `'SELECT public.` + plain("!0062ad", `E''!''`) + ` ()'`
	requireBodiesRefused(t, bodiesSchema, map[string]bodyCase{
		"a view":  {setup: `CREATE VIEW vv AS SELECT query_to_xml(` + given + `, true, true, '')`, use: `SELECT * FROM @vv`, why: `"orders"`},
		"a check": {setup: `CREATE TABLE checked (i int CHECK (query_to_xml(` + given + `, true, true, '') IS NOT NULL))`, use: `INSERT INTO @checked VALUES (1)`, why: `"orders"`},
	})
	requireBodiesAllowed(t, bodiesSchema, map[string]bodyCase{
		"unicode without UESCAPE": {setup: plpgsqlBody(`BEGIN UPDATE public.U&"\0070lain" SET v = U&'\0041'; PERFORM 'uescape'; END`)},
	})
}
