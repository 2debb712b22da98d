package wordsearch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencerow/fencerow/internal/wordsearch"
)

// BenchmarkSearch compares Search with a plain search of the same words: split at what belongs
// to no word, lower case, a look into a map.
func BenchmarkSearch(b *testing.B) {
	words := map[string]wordsearch.Meaning{"orders": wordsearch.Hit, "update": wordsearch.Write, "insert": wordsearch.Write}
	table := wordsearch.New(words)
	var text strings.Builder
	for i := 0; text.Len() < 1024; i++ {
		fmt.Fprintf(&text, "SELECT u.id, u.name FROM users u JOIN jobs j%d ON j%d.id = u.id WHERE u.active AND j%d.state = $1 ", i, i, i)
	}
	for name, search := range map[string]func(string) bool{
		"eight bytes at a time": func(text string) bool { hit, _ := table.Search(text); return hit != "" },
		"plain":                 func(text string) bool { return searchPlainly(words, text) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if search(text.String()) {
					b.Fatal("found a word that isn't there")
				}
			}
		})
	}
}

func searchPlainly(words map[string]wordsearch.Meaning, text string) bool {
	separates := func(r rune) bool {
		return r < 0x80 && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}
	for word := range strings.FieldsFuncSeq(text, separates) {
		if words[strings.ToLower(word)]&wordsearch.Hit != 0 {
			return true
		}
	}
	return false
}
