package compat

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// sources have what the snippets of the pages are, in the language of each.
var sources = map[string][]string{
	"go":   {"gorm_docs_test.go", "bun_docs_test.go", "others_docs_test.go", "outcomes_test.go"},
	"sql":  {"sqlcdb/query.sql"},
	"yaml": {"sqlcdb/sqlc.yaml"},
}

// Every snippet of docs/orm stands in code that runs here.
func TestDocsAreThis(t *testing.T) {
	pages, err := filepath.Glob("../../docs/orm/*.md")
	require.NoError(t, err)
	require.Len(t, pages, 5)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(readme), "docs/orm/"+filepath.Base(page))
		blocks := regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks, page)
		for _, block := range blocks {
			require.NotEmpty(t, sources[block[1]], "%s: a snippet in %q", page, block[1])
			found := false
			for _, file := range sources[block[1]] {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				found = found || strings.Contains(unindented(string(source)), unindented(block[2]))
			}
			require.True(t, found, "%s: no file has the snippet\n%s", page, block[2])
		}
	}
}

func unindented(s string) string {
	return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(s, "")
}

// The snippets do what their pages say.
func TestSnippets(t *testing.T) {
	e := open(t, settings["attested"])
	g, err := gormHandle(e.dsn)
	require.NoError(t, err)
	pool, err := g.DB()
	require.NoError(t, err)
	defer pool.Close()
	b, err := bunHandle(e.dsn)
	require.NoError(t, err)
	defer b.Close()
	x, err := sqlxHandle(e.dsn)
	require.NoError(t, err)
	defer x.Close()
	handle, q, err := sqlcHandle(e.dsn)
	require.NoError(t, err)
	defer handle.Close()
	d, err := entDriver(e.dsn)
	require.NoError(t, err)
	defer d.Close()
	for name, test := range map[string]struct {
		do      func(context.Context) error
		changes rows
		meets   []string
		keeps   rows
		goesOn  bool
	}{
		"gorm":        {func(ctx context.Context) error { return gormWrite(ctx, g, holder) }, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
		"gorm nested": {func(ctx context.Context) error { return gormNested(ctx, g) }, rows{"o1": "paid 8", "o2": "paid 8"}, []string{"o1"}, rows{"o2": "paid 8"}, true},
		"gorm replace": {
			func(ctx context.Context) error { return gormReplace(ctx, g, []Item{{SKU: "new"}}) },
			rows{"i1": "none theirs 8", "i2": "none theirs 8", "i3": "o1 new 8"}, []string{"i1", "i2"}, nil, false,
		},
		"bun":          {func(ctx context.Context) error { return bunWrite(ctx, b, holder) }, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
		"bun merge":    {func(ctx context.Context) error { return bunMerge(ctx, b, []BunOrder{{ID: 1, Status: "paid"}}) }, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
		"sqlx":         {func(ctx context.Context) error { return sqlxWrite(ctx, x, SqlxOrder{ID: 1, Status: "paid"}) }, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
		"sqlx guarded": {func(ctx context.Context) error { return sqlxWriteGuarded(ctx, x, SqlxOrder{ID: 1, Status: "paid"}) }, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
		"sqlc":         {func(ctx context.Context) error { return sqlcWrite(ctx, q, holder) }, rows{"o1": "paid 8", "o2": "paid 8"}, []string{"o1"}, nil, false},
		"ent": {func(ctx context.Context) error {
			return d.Exec(ctx, `UPDATE "orders" SET "status" = $1 WHERE "id" = $2`, []any{"paid", 1}, nil)
		}, rows{"o1": "paid 8"}, []string{"o1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := e.reset(t, older)
			require.NoError(t, test.do(held(t)))
			require.Equal(t, before.with(test.changes), e.read(t))
			before = e.reset(t, newer, test.meets...)
			if err := test.do(held(t)); test.goesOn {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, tokenctx.ErrStale)
			}
			require.Equal(t, before.with(test.keeps), e.read(t))
		})
	}
	_, err = b.NewAddColumn().Model((*BunOrder)(nil)).ColumnExpr("note text").Exec(held(t))
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.NoError(t, bunMigrate(t.Context(), e.dsn))
}
