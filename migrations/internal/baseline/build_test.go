package main

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

// The migration that is checked in is the one that the sources make.
func TestBaselineIsUpToDate(t *testing.T) {
	sources := os.DirFS("../../sql/src")
	first, err := build(sources, noManifest)
	require.NoError(t, err)
	manifest, err := readManifest(t.Context(), localpg.Database(t), first)
	require.NoError(t, err)
	want, err := build(sources, manifest)
	require.NoError(t, err)
	got, err := os.ReadFile("../../" + target)
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "%s is not what its sources make: run go generate ./migrations", target)
}

func TestBuild(t *testing.T) {
	text, err := build(fstest.MapFS{
		"triggers/t.sql.tmpl": {Data: []byte("x{{if .Attested}} attested{{end}}")},
		"10_a.sql":            {Data: []byte("CREATE TABLE fencing.a (id int);\n\n-- why\nCREATE FUNCTION fencing.f(x text DEFAULT 'a'::text,\n  y int) RETURNS int AS $$\nBEGIN\n  RETURN 1;\nEND $$;\n")},
		"20_b.sql":            {Data: []byte("CREATE SEQUENCE fencing.s; -- {{body \"t\" \"attested\"}}\nCREATE TABLE fencing.b (id int);\nCREATE TRIGGER t AFTER INSERT OR UPDATE OF id\n  ON fencing.b FOR EACH ROW EXECUTE FUNCTION fencing.f();\n")},
		downFile:              {Data: []byte("UPDATE fencing.a SET id = 0;\n")},
	}, "(1)")
	require.NoError(t, err)
	require.Contains(t, string(text), "-- why\n-- +goose StatementBegin\nCREATE FUNCTION fencing.f")
	require.Contains(t, string(text), "CREATE SEQUENCE fencing.s; -- \nx attested")
	require.Contains(t, string(text), "END $$;\n-- +goose StatementEnd\n")
	require.Contains(t, string(text), "UPDATE fencing.a SET id = 0;\n\nDROP TRIGGER IF EXISTS t ON fencing.b;\nDROP TABLE fencing.b;\nDROP SEQUENCE fencing.s;\nDROP FUNCTION fencing.f(x text, y int);\nDROP TABLE fencing.a;\n")

	_, err = build(fstest.MapFS{"triggers/t.sql.tmpl": {}, "10_a.sql": {Data: []byte("CREATE FUNCTION fencing.f RETURNS int")}}, "")
	require.ErrorContains(t, err, "fencing.f: it has no list of arguments")
	_, err = build(fstest.MapFS{"triggers/t.sql.tmpl": {}, "10_a.sql": {Data: []byte(`{{body "t" "sealed"}}`)}}, "")
	require.ErrorContains(t, err, `unknown word "sealed"`)
}
