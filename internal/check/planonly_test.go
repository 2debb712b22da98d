package check

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// An EXPLAIN that only plans a write needs no guard and no token, whatever else would be
// refused is.
func TestPlannedWritesNeedNoProof(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease})
	require.NoError(t, err)
	p, err = p.WithClosure(Closure{Functions: []Name{{Schema: "public", Name: "touch"}}, Views: []Name{{Schema: "public", Name: "open_orders"}}, Cascades: []Cascade{{Name: Name{Schema: "public", Name: "customers"}, Into: Name{Schema: "public", Name: "orders"}, Delete: true}}})
	require.NoError(t, err)
	for _, sql := range []string{
		`EXPLAIN UPDATE orders SET n = 1`, `EXPLAIN VERBOSE DELETE FROM orders WHERE id = $1`, `EXPLAIN (COSTS off, FORMAT json) INSERT INTO orders VALUES (1, 2)`, `EXPLAIN (ANALYZE false) UPDATE orders SET n = 1`,
		`EXPLAIN (ANALYZE, ANALYZE off) DELETE FROM orders`, `EXPLAIN INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 1`, `EXPLAIN WITH w AS (UPDATE orders SET n = 1 RETURNING id) SELECT * FROM w`,
		`EXPLAIN MERGE INTO orders o USING plain s ON o.id = s.id WHEN MATCHED THEN DELETE`, `EXPLAIN UPDATE orders SET n = 1, last_token = 8 WHERE last_token > 8`,
	} {
		plan := p.Plan(sql)
		require.NoError(t, plan.Refusal(), sql)
		require.False(t, plan.Guarded(), sql)
		require.False(t, plan.Rewritten(), sql)
	}
	for sql, rule := range map[string]Rule{
		`EXPLAIN ANALYZE UPDATE orders SET n = 1`: UnguardedUpdate, `EXPLAIN (ANALYZE true) DELETE FROM orders`: UnguardedDelete, `EXPLAIN (ANALYZE off, ANALYZE) DELETE FROM orders`: UnguardedDelete, `EXPLAIN (ANALYZE 1) DELETE FROM orders`: UnguardedDelete,
		`EXPLAIN UPDATE orders SET n = 1; SELECT 1`: UnguardedUpdate, `SELECT 1; EXPLAIN UPDATE orders SET n = 1`: UnguardedUpdate,
		`EXPLAIN UPDATE orders SET n = touch()`: UnsafeFunction, `EXPLAIN SELECT touch()`: UnsafeFunction, `EXPLAIN UPDATE open_orders SET n = 1`: ViewWrite, `EXPLAIN DELETE FROM customers`: CascadeWrite, `EXPLAIN EXECUTE p`: SQLPrepare,
		`EXPLAIN UPDATE orders SET n = query_to_xml($1, true, true, '')::text::int`: UnsafeFunction, `EXPLAIN CREATE TABLE orders AS SELECT 1`: ProtectedDDL,
	} {
		requireRule(t, rule, p.Plan(sql).Refusal(), sql)
	}
}

// Where statements are rewritten, what is planned is what would be sent.
func TestPlannedWritesAreRewritten(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease, Rewrite: true})
	require.NoError(t, err)
	for sql, sent := range map[string]string{
		`EXPLAIN UPDATE orders SET n = $1 WHERE id = 3`:                 `EXPLAIN UPDATE orders SET n = $1, last_token = $2 WHERE id = 3 AND last_token <= $2`,
		`EXPLAIN (COSTS off) DELETE FROM orders WHERE id = 3 OR id = 4`: `EXPLAIN (COSTS off) DELETE FROM orders WHERE (id = 3 OR id = 4) AND last_token <= $1`,
	} {
		plan := p.Plan(sql)
		require.NoError(t, plan.Refusal(), sql)
		require.True(t, plan.Rewritten(), sql)
		require.Equal(t, sent, plan.Text(), sql)
	}
	plan := p.Plan(`EXPLAIN INSERT INTO orders VALUES (1)`) // it can't be rewritten
	require.NoError(t, plan.Refusal())
	require.False(t, plan.Rewritten())
	_, err = plan.BindAll(tokenctx.With(context.Background(), 8), nil)
	require.NoError(t, err)
}
