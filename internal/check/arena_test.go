package check

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// A plan outlives the tree that it was made from, whose memory is used again:
// there must be no way from it to a node.
func TestPlansHoldNoNodes(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	var visit func(reflect.Type, string)
	visit = func(of reflect.Type, path string) {
		require.NotEqual(t, reflect.TypeFor[sqltree.Node](), of, path)
		require.NotEqual(t, reflect.TypeFor[workspace](), of, path)
		if seen[of] {
			return
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Struct:
			for i := range of.NumField() {
				visit(of.Field(i).Type, path+"."+of.Field(i).Name)
			}
		case reflect.Map:
			visit(of.Key(), path+"{key}")
			visit(of.Elem(), path+"{}")
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(of.Elem(), path+"[]")
		case reflect.Func:
			t.Errorf("%s may hold on to anything", path)
		}
	}
	visit(reflect.TypeFor[Plan](), "Plan")
	require.True(t, seen[reflect.TypeFor[Policy]()])
}

// Trees of any size and shape are made in memory that was used for others.
func TestArenasAreUsedAgain(t *testing.T) {
	p := casesPolicy(t, Lease)
	var texts []string
	for n := 0; n < 60; n += shrink {
		texts = append(texts,
			fmt.Sprintf(`UPDATE protected_rows SET value = %[1]d, last_token = $2 WHERE id = %[1]d AND last_token <= $2`, n),
			`DELETE FROM protected_rows WHERE last_token <= $1 AND id IN (`+strings.Repeat("1,", n*40)+`0)`,
			`UPDATE protected_rows SET value = `+strings.Repeat("(", n)+"1"+strings.Repeat(")", n),
			`SELECT `+strings.Repeat("a.b[1],", n*10)+`1 FROM protected_rows p`+strings.Repeat(" JOIN protected_rows USING (id)", n),
			`SELECT FROM protected_rows WHERE (`, "\x00protected_rows")
	}
	want := make([]string, len(texts))
	for i, text := range texts {
		want[i] = said(p.planIn(new(workspace), text))
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, text := range texts {
				if got := said(p.fullPlan(text)); got != want[i] {
					t.Errorf("%.100s: %.300s, not %.300s", text, got, want[i])
				}
			}
		})
	}
	group.Wait()
}

// said is all that a plan says of a text.
func said(p *Plan) string {
	return fmt.Sprintf("%s%t %t %t %t %t\n%v\n%s", p.Explain(), p.ChangesPath, p.ChangesCatalog, p.compares, p.replays, p.attests, p.tokens, p.Attested())
}
