package check

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// guardForms are guards and tokens as people and generators write them. Each text
// that passes stands beside its nearest ones that prove nothing; sent is what it is
// sent as, where that isn't as it is.
var guardForms = map[string]struct {
	mode    Mode
	passes  string
	sent    string
	refused map[string]Rule
}{
	"a bare int8": {Strict,
		`UPDATE protected_rows SET value = 'a', last_token = $1::int8 WHERE id = 1 AND last_token < $1::int8`,
		`UPDATE protected_rows SET value = 'a', last_token = $1::pg_catalog.int8 WHERE id = 1 AND last_token < $1::pg_catalog.int8`,
		map[string]Rule{
			`UPDATE protected_rows SET value = 'a', last_token = $1::evil.int8 WHERE id = 1 AND last_token < $1`: RaiseValue,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < $1::int8[]`:    GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < $1::float8`:    GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < $1::int8 + 1`:  GuardComparison,
		}},
	"CAST": {Strict,
		`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < CAST($1 AS int8)`,
		`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < CAST($1 AS pg_catalog.int8)`,
		map[string]Rule{`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < CAST($1 AS numeric)`: GuardComparison}},
	"a quoted type": {Strict,
		`DELETE FROM protected_rows WHERE last_token < $1::"int8"`, "*",
		map[string]Rule{`DELETE FROM protected_rows WHERE last_token < $1::"INT8"`: GuardComparison}},
	"the call of the type": {Strict,
		`UPDATE protected_rows SET value = 'a', last_token = int8($1) WHERE id = 1 AND last_token < int8($1)`,
		`UPDATE protected_rows SET value = 'a', last_token = pg_catalog.int8($1) WHERE id = 1 AND last_token < pg_catalog.int8($1)`,
		map[string]Rule{
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < int8($1 + 1)`:     GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < int8($1, 1)`:      GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < evil.int8($1)`:    GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < int8(x => $1)`:    GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < int8($1) OVER ()`: GuardComparison,
		}},
	"elsewhere": {Strict,
		`UPDATE protected_rows SET value = $1::int8::text, last_token = $1 WHERE id = 1 AND last_token < $1`,
		`UPDATE protected_rows SET value = $1::pg_catalog.int8::text, last_token = $1 WHERE id = 1 AND last_token < $1`,
		map[string]Rule{`UPDATE protected_rows SET value = $1::float8::text, last_token = $1 WHERE id = 1 AND last_token < $1`: TokenReuse}},
	"several columns": {Strict,
		`UPDATE protected_rows SET (value, last_token) = ('a', $1::int8) WHERE id = 1 AND last_token < $1`,
		`UPDATE protected_rows SET (value, last_token) = ('a', $1::pg_catalog.int8) WHERE id = 1 AND last_token < $1`, nil},
	"arms": {Strict,
		`INSERT INTO protected_rows (id, last_token) SELECT 1, $1::int8 UNION SELECT 2, $1::int8`,
		`INSERT INTO protected_rows (id, last_token) SELECT 1, $1::pg_catalog.int8 UNION SELECT 2, $1::pg_catalog.int8`, nil},

	"NOT, lease": {Lease,
		`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT last_token > $1`, "",
		map[string]Rule{
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT last_token < $1`:                GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT (last_token > $1 AND id = 1)`:   GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT (last_token > $1 IS TRUE)`:      GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND (NOT last_token > $1 OR id = 1)`:    GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT (NOT (last_token > $1))`:        GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT last_token = $1`:                GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT last_token OPERATOR(evil.>) $1`: GuardPosition,
		}},
	"NOT, strict": {Strict,
		`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT (last_token >= $1)`, "",
		map[string]Rule{`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT (last_token > $1)`: GuardPosition}},
	"NOT, the other way round": {Lease, `DELETE FROM protected_rows WHERE NOT $1 < last_token`, "*",
		map[string]Rule{`DELETE FROM protected_rows WHERE NOT $1 > last_token`: GuardPosition}},
	"BETWEEN": {Lease,
		`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND last_token BETWEEN 0 AND $1`, "",
		map[string]Rule{
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND last_token NOT BETWEEN 0 AND $1`:        GuardComparison,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND last_token BETWEEN SYMMETRIC 99 AND $1`: GuardComparison,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND last_token BETWEEN $1 AND 99`:           TokenReuse,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND $1 BETWEEN 0 AND last_token`:            GuardComparison,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND NOT last_token BETWEEN 0 AND $1`:        GuardPosition,
			`UPDATE protected_rows SET last_token = $1 WHERE id = 1 AND last_token BETWEEN 0 AND $1 + 1`:        GuardComparison,
		}},
	"BETWEEN, strict": {Lease, `DELETE FROM protected_rows WHERE last_token BETWEEN 0 AND 8`, "*", nil},
	"the other way round": {Lease, `UPDATE protected_rows SET last_token = $1 WHERE $1 >= last_token`, "",
		map[string]Rule{`UPDATE protected_rows SET last_token = $1 WHERE $1 <= last_token`: GuardComparison}},

	"a SELECT of constants in WITH": {Lease,
		`WITH t AS (SELECT $1::bigint AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`, "",
		map[string]Rule{
			`WITH t AS (SELECT $1 AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:                                      GuardComparison,
			`WITH t AS (SELECT $1::bigint + 1 AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:                          GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok, 9 AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:                    GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok UNION SELECT 9) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:               GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok GROUP BY ROLLUP (1)) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:          GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok), u AS (SELECT 9 AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM u AS t WHERE protected_rows.last_token <= t.tok`: OtherToken,
			`WITH t (tok) AS (SELECT 9, $1::bigint AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE protected_rows.last_token <= t.tok`:                     GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM other.t WHERE protected_rows.last_token <= t.tok`:                        GuardComparison,
			`WITH t AS (SELECT $1::bigint AS tok) UPDATE protected_rows SET value = 'a', last_token = t.tok FROM t WHERE last_token <= t.tok`:                                             AmbiguousTarget,
		}},
	"a SELECT of constants in FROM": {Lease,
		`UPDATE protected_rows SET value = 'a', last_token = x.tok FROM (SELECT 1 AS id, $1::bigint AS tok) x WHERE protected_rows.id = x.id AND protected_rows.last_token <= x.tok`, "",
		map[string]Rule{
			`UPDATE protected_rows SET value = 'a', last_token = x.tok FROM (SELECT 1 AS id, $1::bigint AS tok FROM jobs) x WHERE protected_rows.id = x.id AND protected_rows.last_token <= x.tok`: GuardComparison,
			`UPDATE protected_rows SET value = 'a', last_token = x.id FROM (SELECT 9 AS id, $1::bigint AS tok) x WHERE protected_rows.last_token <= x.id`:                                          OtherToken,
		}},
	"its columns under other names": {Lease,
		`UPDATE protected_rows SET last_token = x.tok FROM (SELECT 1, $1::bigint) x(id, tok) WHERE protected_rows.last_token <= x.tok`, "",
		map[string]Rule{`UPDATE protected_rows SET last_token = x.tok FROM (SELECT $1::bigint AS tok, 9) x(a, tok) WHERE protected_rows.last_token <= x.tok`: OtherToken}},
	"MERGE from it": {Lease,
		`MERGE INTO protected_rows t USING (SELECT 1 AS id, $1::bigint AS tok) s ON s.id = t.id WHEN MATCHED AND t.last_token <= s.tok THEN UPDATE SET last_token = s.tok WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, s.tok)`, "",
		map[string]Rule{
			`MERGE INTO protected_rows t USING (SELECT 1 AS id, $1::bigint AS tok) s ON s.id = t.id WHEN MATCHED AND t.last_token <= s.id THEN UPDATE SET last_token = s.tok`: OtherToken,
		}},

	"DO NOTHING": {Lease,
		`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED AND t.last_token > $1 THEN DO NOTHING WHEN MATCHED AND t.last_token <= $1 THEN UPDATE SET last_token = $1`, "",
		map[string]Rule{
			`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED AND t.last_token > $1 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET last_token = $1`:                            UnguardedMerge,
			`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED AND s.id > $1 THEN DO NOTHING WHEN MATCHED AND t.last_token <= $1 THEN UPDATE SET last_token = $1`:             TokenReuse,
			`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN MATCHED AND t.last_token + 1 > $1 THEN DO NOTHING WHEN MATCHED AND t.last_token <= $1 THEN UPDATE SET last_token = $1`: TokenReuse,
			`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN NOT MATCHED AND s.id > $1 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (1, $1)`:                TokenReuse,
		}},
	"OVERRIDING": {Lease, `INSERT INTO protected_rows (id, value, last_token) OVERRIDING SYSTEM VALUE VALUES (60, 'a', $1)`, "",
		map[string]Rule{
			`INSERT INTO protected_rows (id, value, last_token) OVERRIDING USER VALUE VALUES (60, 'a', $1)`:   UnguardedInsert,
			`INSERT INTO protected_rows (id, value, last_token) OVERRIDING SYSTEM VALUE VALUES (60, $1, 'a')`: UnguardedInsert,
		}},
	"OVERRIDING in MERGE": {Lease, `MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN NOT MATCHED THEN INSERT (id, last_token) OVERRIDING SYSTEM VALUE VALUES (s.id + 100, $1)`, "",
		map[string]Rule{`MERGE INTO protected_rows t USING jobs s ON s.id = t.id WHEN NOT MATCHED THEN INSERT (id, last_token) OVERRIDING USER VALUE VALUES (s.id + 100, $1)`: UnguardedMerge}},
}

// guardFormsPolicy protects a table in a database without comparisons of its own.
func guardFormsPolicy(t *testing.T, mode Mode) *Policy {
	t.Helper()
	p, err := NewPolicy(Table{Name: "protected_rows", Mode: mode, Key: []string{"id"}})
	require.NoError(t, err)
	return p.ForPath("public")
}

func TestGuardForms(t *testing.T) {
	for name, test := range guardForms {
		t.Run(name, func(t *testing.T) {
			p := guardFormsPolicy(t, test.mode)
			args := []any{int64(8)}
			require.NoError(t, answerTo(p, test.passes, args))
			plan := p.Plan(test.passes)
			switch test.sent {
			case "":
				sent, _, _ := strings.Cut(plan.Attested(), " RETURNING (SELECT pg_catalog.count(*) ")
				require.Equal(t, test.passes, sent, "but for a count")
			case "*": // a DELETE, which has the token in a setting, too
				require.NotEqual(t, test.passes, plan.Attested())
			default:
				require.Equal(t, test.sent, plan.Attested())
			}
			for text, rule := range test.refused {
				requireRule(t, rule, answerTo(p, text, args), text)
			}
		})
	}
}

// answerTo plans and binds a text that takes the token 8 alone.
func answerTo(p *Policy, sql string, args []any) error {
	plan := p.Plan(sql)
	if err := plan.Refusal(); err != nil {
		return err
	}
	_, err := plan.BindAll(tokenctx.With(context.Background(), 8), argumentsOf(args))
	return err
}

// Where another operator may come before the built-in one, the refusal says why BETWEEN is none, and
// what to write instead.
func TestBetweenByUnknownOperators(t *testing.T) {
	p := guardFormsPolicy(t, Lease)
	p, err := p.WithClosure(Closure{HasComparisons: true})
	require.NoError(t, err)
	for text, column := range map[string]string{
		`UPDATE protected_rows SET value = 'a', last_token = $1 WHERE id = 1 AND last_token BETWEEN 0 AND $1`:                                    "last_token",
		`DELETE FROM protected_rows r USING jobs j WHERE r.id = j.id AND r.last_token BETWEEN 0 AND $1`:                                          "r.last_token",
		`UPDATE protected_rows r SET value = 'a', last_token = $1 FROM jobs j WHERE r.id = j.id AND r.last_token BETWEEN 0 AND $1 AND j.id <> 4`: "r.last_token",
	} {
		err := answerTo(p, text, []any{int64(8)})
		requireRule(t, GuardComparison, err, text)
		require.ErrorContains(t, err, "before PostgreSQL 18", text)
		require.ErrorContains(t, err, "write in WHERE instead of BETWEEN: "+column+" <= $", text)
	}
	err = answerTo(p, `DELETE FROM protected_rows WHERE last_token NOT BETWEEN 0 AND $1`, []any{int64(8)})
	requireRule(t, GuardComparison, err, "NOT BETWEEN")
	require.NotContains(t, err.Error(), "PostgreSQL 18")
}
