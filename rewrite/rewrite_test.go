package rewrite_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

var update = flag.Bool("update", false, "write rules.go")

// rules.go gives each rule of the check its name here.
func TestRuleNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/check/rules.go", nil, 0)
	require.NoError(t, err)
	var b bytes.Buffer
	b.WriteString("package rewrite\n\n// Made of internal/check/rules.go: go test ./rewrite -update\n\nimport \"github.com/fencerow/fencerow/internal/check\"\n\n// The rules. rules/FRnnn.md explains each.\nconst (\n")
	for _, decl := range file.Decls {
		for _, spec := range constants(decl) {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Rule" {
				fmt.Fprintf(&b, "%s = check.%s // %s\n", spec.Names[0].Name, spec.Names[0].Name, spec.Values[0].(*ast.BasicLit).Value)
			}
		}
	}
	b.WriteString(")\n")
	want, err := format.Source(b.Bytes())
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("rules.go", want, 0o600))
	}
	got, err := os.ReadFile("rules.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./rewrite -run TestRuleNames -update")
}

// constants returns the constants that a declaration has.
func constants(decl ast.Decl) (specs []*ast.ValueSpec) {
	if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.CONST {
		for _, spec := range d.Specs {
			specs = append(specs, spec.(*ast.ValueSpec))
		}
	}
	return specs
}

// A name that is written as in SQL is no name of a table: it would protect nothing.
func TestSpelledNames(t *testing.T) {
	for _, name := range []string{"app.orders", `"Orders"`, `odd"name`} {
		_, err := rewrite.NewPolicy(rewrite.Table{Name: name, Mode: rewrite.Lease})
		require.ErrorContains(t, err, "put the schema into Schema", name)
		_, err = rewrite.NewPolicy(rewrite.Table{Schema: "public", Name: name, Mode: rewrite.Lease})
		require.NoError(t, err, "a table may be called %s", name)
	}
}
