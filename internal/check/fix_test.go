package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	tests := map[string]struct{ mode, sql, want string }{
		"update":             {"strict", `UPDATE protected_rows SET value = $1 WHERE id = $2`, `UPDATE protected_rows SET value = $1, last_token = $3 WHERE id = $2 AND last_token < $3`},
		"lease":              {"lease", `UPDATE protected_rows SET value = $1 WHERE id = $2`, `UPDATE protected_rows SET value = $1, last_token = $3 WHERE id = $2 AND last_token <= $3`},
		"no where":           {"strict", `update protected_rows set value = 'x';`, `update protected_rows set value = 'x', last_token = $1 WHERE last_token < $1;`},
		"or":                 {"strict", `UPDATE protected_rows SET value = $1 WHERE id = $2 OR grp = 3 RETURNING id`, `UPDATE protected_rows SET value = $1, last_token = $3 WHERE (id = $2 OR grp = 3) AND last_token < $3 RETURNING id`},
		"comments":           {"strict", "/*+ hint */ UPDATE protected_rows SET value = $1 -- a\n WHERE id = $2 /* traceparent */", "/*+ hint */ UPDATE protected_rows SET value = $1, last_token = $3 -- a\n WHERE id = $2 AND last_token < $3 /* traceparent */"},
		"from":               {"strict", `UPDATE protected_rows AS p SET value = s.value IS DISTINCT FROM 'x' FROM plain_rows s, LATERAL (SELECT 1 FROM jobs) j WHERE s.id = p.id`, `UPDATE protected_rows AS p SET value = s.value IS DISTINCT FROM 'x', last_token = $1 FROM plain_rows s, LATERAL (SELECT 1 FROM jobs) j WHERE s.id = p.id AND p.last_token < $1`},
		"raised already":     {"strict", `UPDATE protected_rows SET last_token = $1 WHERE id = $2`, `UPDATE protected_rows SET last_token = $1 WHERE id = $2 AND last_token < $1`},
		"guarded already":    {"strict", `UPDATE protected_rows SET value = $1 WHERE id = $2 AND last_token < $3`, `UPDATE protected_rows SET value = $1, last_token = $3 WHERE id = $2 AND last_token < $3`},
		"quoted":             {"strict", `UPDATE "Order Items" SET "Qty" = 1`, `UPDATE "Order Items" SET "Qty" = 1, fence = $1 WHERE fence < $1`},
		"cte":                {"strict", `WITH w AS (UPDATE protected_rows SET value = $1 WHERE id = 1 RETURNING id) SELECT * FROM w WHERE id > $2`, `WITH w AS (UPDATE protected_rows SET value = $1, last_token = $3 WHERE id = 1 AND last_token < $3 RETURNING id) SELECT * FROM w WHERE id > $2`},
		"delete":             {"strict", `DELETE FROM protected_rows WHERE id = $1`, `DELETE FROM protected_rows WHERE id = $1 AND last_token < $2`},
		"delete using":       {"strict", `DELETE FROM protected_rows p USING plain_rows s WHERE s.id = p.id`, `DELETE FROM protected_rows p USING plain_rows s WHERE s.id = p.id AND p.last_token < $1`},
		"insert":             {"strict", `INSERT INTO protected_rows (id, value) VALUES ($1, $2), ($3, coalesce($4, 'x')) RETURNING id`, `INSERT INTO protected_rows (id, value, last_token) VALUES ($1, $2, $5), ($3, coalesce($4, 'x'), $5) RETURNING id`},
		"insert select":      {"strict", `INSERT INTO protected_rows (id, value) SELECT id, value FROM plain_rows WHERE id > $1`, `INSERT INTO protected_rows (id, value, last_token) SELECT id, value, $2::bigint FROM plain_rows WHERE id > $1`},
		"upsert":             {"strict", `INSERT INTO protected_rows (id, value) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value`, `INSERT INTO protected_rows (id, value, last_token) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value, last_token = EXCLUDED.last_token WHERE protected_rows.last_token < EXCLUDED.last_token`},
		"upsert with where":  {"lease", `INSERT INTO protected_rows AS p (id, value) VALUES ($1, $2) ON CONFLICT (id) WHERE id > 0 DO UPDATE SET value = EXCLUDED.value WHERE p.grp = 1 OR p.grp = 2 RETURNING id`, `INSERT INTO protected_rows AS p (id, value, last_token) VALUES ($1, $2, $3) ON CONFLICT (id) WHERE id > 0 DO UPDATE SET value = EXCLUDED.value, last_token = EXCLUDED.last_token WHERE (p.grp = 1 OR p.grp = 2) AND p.last_token <= EXCLUDED.last_token RETURNING id`},
		"do nothing":         {"strict", `INSERT INTO protected_rows (id) VALUES ($1) ON CONFLICT DO NOTHING`, `INSERT INTO protected_rows (id, last_token) VALUES ($1, $2) ON CONFLICT DO NOTHING`},
		"nothing to guard":   {"strict", `UPDATE plain_rows SET value = $1`, `UPDATE plain_rows SET value = $1`},
		"a read":             {"strict", `SELECT * FROM protected_rows`, `SELECT * FROM protected_rows`},
		"current of":         {"strict", `UPDATE protected_rows SET value = 'x' WHERE CURRENT OF c`, ``},
		"no column list":     {"strict", `INSERT INTO protected_rows VALUES (1, 'a', 0, 8)`, ``},
		"another raise":      {"strict", `UPDATE protected_rows SET last_token = last_token + 1`, ``},
		"truncate":           {"strict", `TRUNCATE protected_rows`, ``},
		"two statements":     {"strict", `UPDATE protected_rows SET value = 'x'; SELECT 1`, ``},
		"default values":     {"strict", `INSERT INTO protected_rows DEFAULT VALUES RETURNING id`, `INSERT INTO protected_rows (last_token) VALUES ($1) RETURNING id`},
		"same name in FROM":  {"strict", `UPDATE protected_rows SET value = 'x' FROM other.protected_rows`, ``},
		"syntax error":       {"strict", `UPDATE protected_rows SET`, ``},
		"a NUL byte":         {"strict", "UPDATE protected_rows SET value = 'x'\x00", ``},
		"unicode identifier": {"strict", `UPDATE U&"protected\005frows" SET value = $1`, `UPDATE U&"protected\005frows" SET value = $1, last_token = $2 WHERE last_token < $2`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mode, err := ParseMode(test.mode)
			require.NoError(t, err)
			p := casesPolicy(t, mode)
			got, err := p.Guard(test.sql)
			require.Equal(t, test.want, got)
			if test.want == "" {
				require.ErrorIs(t, err, ErrRefused)
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.Plan(got).Refusal())
		})
	}
}
