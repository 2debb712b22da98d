package pgwasm

import (
	"strings"
	"testing"
)

// BenchmarkParse is the tree of a text of some 100 bytes and one of 1 KB.
func BenchmarkParse(b *testing.B) {
	short := "UPDATE orders SET status = $1, last_token = $3 WHERE id = $2 AND last_token <= $3 RETURNING id, total"
	for name, sql := range map[string]string{
		"100B": short,
		"1KB":  short + strings.Repeat(", coalesce(total, 0) + 1 AS more", 28),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseToJSON(sql); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStart is how long the first caller waits, and an instance's memory.
func BenchmarkStart(b *testing.B) {
	if _, err := compiled(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := compile()
		if err != nil {
			b.Fatal(err)
		}
		in, err := newInstance(p)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(in.memory.Size())/(1<<20), "MB-instance")
		if err := p.runtime.Close(in.ctx); err != nil {
			b.Fatal(err)
		}
	}
}
