package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const (
	stdlibPath  = "github.com/jackc/pgx/v5/stdlib"
	openingPath = "github.com/fencerow/fencerow/internal/pgxsuite/opening"
)

// source is the suite's file.
type source struct {
	text  string
	fset  *token.FileSet
	file  *ast.File
	edits []edit
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

func parse(text string) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sql_test.go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse pgx's suite: %w", err)
	}
	return &source{text: text, fset: fset, file: file}, nil
}

// tests are the names of the suite's tests.
func (s *source) tests() []string {
	var names []string
	for f := range s.functions("Test") {
		names = append(names, f.Name.Name)
	}
	return names
}

var createTable = regexp.MustCompile(`(?i)\bcreate\s+(?:temporary\s+)?table\s+(\w+)`)

// tables are the names of the tables that the suite makes.
func (s *source) tables() (names []string) {
	for _, m := range createTable.FindAllStringSubmatch(s.text, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *source) functions(prefix string) func(yield func(*ast.FuncDecl) bool) {
	return func(yield func(*ast.FuncDecl) bool) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, prefix) && !yield(f) {
				return
			}
		}
	}
}

// swapped is the suite with its databases opened by package opening. All edits
// stay within a line, so that a failure points to pgx's own line.
func (s *source) swapped() (string, error) {
	s.edits = nil
	if s.swapImport() != 1 || s.swapOpen() == 0 || s.plainHelpers() == 0 {
		return "", errors.New("pgx's suite has changed: it no longer imports stdlib, calls sql.Open or has helpers skip...(t, db) as swap.go expects")
	}
	slices.SortFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, e := range s.edits {
		b.WriteString(s.text[at:e.from])
		b.WriteString(e.with)
		at = e.to
	}
	b.WriteString(s.text[at:])
	return b.String(), nil
}

// swapImport puts package opening in the place of stdlib.
func (s *source) swapImport() (n int) {
	for _, i := range s.file.Imports {
		if i.Path.Value == `"`+stdlibPath+`"` {
			s.edit(i.Pos(), i.End(), `stdlib "`+openingPath+`"`)
			n++
		}
	}
	return n
}

// swapOpen turns sql.Open into package opening's.
func (s *source) swapOpen() (n int) {
	ast.Inspect(s.file, func(node ast.Node) bool {
		if sel, ok := node.(*ast.SelectorExpr); ok && sel.Sel.Name == "Open" {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "sql" {
				s.edit(x.Pos(), x.End(), "stdlib")
				n++
			}
		}
		return true
	})
	return n
}

// plainHelpers gives a plain database to the helpers that find out which
// server it is.
func (s *source) plainHelpers() (n int) {
	for f := range s.functions("skip") {
		s.edit(f.Body.Lbrace+1, f.Body.Lbrace+1, " db = stdlib.Plain(t);")
		n++
	}
	return n
}

func (s *source) edit(from, to token.Pos, with string) {
	s.edits = append(s.edits, edit{s.fset.Position(from).Offset, s.fset.Position(to).Offset, with})
}
