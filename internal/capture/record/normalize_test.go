package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormalize(t *testing.T) {
	fk := func(name string) string {
		return `,CONSTRAINT "` + name + `" FOREIGN KEY ("x") REFERENCES "t"("id") ON DELETE CASCADE ON UPDATE SET NULL`
	}
	tests := []struct{ name, in, want string }{
		{"plain", "SELECT '2026-01-02'", "SELECT '2026-01-02'"},
		{"timestamp", "SET at = '2031-12-24 18:00:01.5+00:00' WHERE", "SET at = '2026-01-02 03:04:05.678901+00:00' WHERE"},
		{"timestamp ISO", "'2031-12-24T18:00:01Z'", "'2026-01-02 03:04:05.678901+00:00'"},
		{"GORM's savepoint", "SAVEPOINT sp13615963676728419373", "SAVEPOINT sp7061059532321851874"},
		{"named savepoint", "SAVEPOINT sp1", "SAVEPOINT sp1"},
		{"bun's savepoint", "RELEASE SAVEPOINT SP_00112233445566778899aabbccdd", "RELEASE SAVEPOINT SP_4f1c0a9be25d63780f4c19d2a7b3"},
		{"River on PostgreSQL 18", "RETURNING id, (OLD.id IS NOT NULL) AS unique_skipped_as_duplicate", "RETURNING id, (xmax != 0) AS unique_skipped_as_duplicate"},
		{"constraints", `CREATE TABLE "u" ("x" int` + fk("b") + fk("a") + ")", `CREATE TABLE "u" ("x" int` + fk("a") + fk("b") + ")"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, normalize(tt.in)) })
	}
}
