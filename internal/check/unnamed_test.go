package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func unnamedPolicy(t *testing.T, c Closure) *Policy {
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease})
	require.NoError(t, err)
	p, err = p.WithClosure(c)
	require.NoError(t, err)
	return p
}

// Whatever uses a relation that writes when it is read is refused, and nothing
// else.
func TestRelationsThatWriteWhenRead(t *testing.T) {
	orders, public := Name{"public", "orders"}, func(name string) Name { return Name{"public", name} }
	p := unnamedPolicy(t, Closure{Writers: []Writer{{Name: public("called"), Into: orders, Events: []string{"READ"}}}})
	for _, sql := range []string{`SELECT * FROM called`, `TABLE public.called`, `SELECT (SELECT max(t) FROM called)`, `SELECT 1 FROM plain p, LATERAL (SELECT * FROM called) c`, `WITH c AS (SELECT * FROM called) SELECT * FROM c`,
		`INSERT INTO plain SELECT * FROM called`, `UPDATE plain SET v = c.t FROM called c`, `DELETE FROM plain USING called`, `MERGE INTO plain p USING called c ON p.id = c.t WHEN MATCHED THEN DELETE`, `INSERT INTO called VALUES (1)`, `UPDATE called SET t = 1`, `DELETE FROM called`,
		`COPY called TO STDOUT`, `COPY called FROM STDIN`, `COPY (TABLE called) TO STDOUT`, `EXPLAIN ANALYZE SELECT * FROM called`, `DECLARE c CURSOR FOR SELECT * FROM called`, `CREATE TABLE x AS SELECT * FROM called`, `SELECT * INTO x FROM called`, `TRUNCATE called`,
		`REFRESH MATERIALIZED VIEW called`, `CREATE TABLE x (LIKE called INCLUDING ALL)`, `CREATE VIEW x AS SELECT * FROM called`, `ANALYZE called`, `ANALYZE`, `VACUUM`, `VACUUM (ANALYZE) plain, called`, `CLUSTER`, `CLUSTER called USING i`, `REINDEX TABLE called`, `REINDEX INDEX i`, `REINDEX SCHEMA public`,
		`SELECT brin_summarize_new_values('i')`, `SELECT * FROM called TABLESAMPLE SYSTEM (1)`, `SELECT 1 FROM ONLY called`, `SELECT 1 WHERE EXISTS (SELECT FROM "called")`} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused, sql)
	}
	for _, sql := range []string{`SELECT * FROM plain`, `SELECT * FROM other.called`, `ANALYZE plain`, `VACUUM plain`, `CLUSTER plain USING i`, `REINDEX TABLE plain`, `SELECT 'called'`, `INSERT INTO plain VALUES (1)`, `SELECT * FROM orders`} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
	require.NoError(t, unnamedPolicy(t, Closure{}).Plan(`ANALYZE`).Refusal())
}

// While code may run that no text shows, only what works out no values is sent.
func TestUnseenCode(t *testing.T) {
	p := unnamedPolicy(t, Closure{Unseen: []UnseenCode{{Kind: "operator family", Object: "public.pairs USING btree", Function: Name{"public", "f"}, Into: Name{"public", "orders"}}}})
	for _, sql := range []string{`SELECT * FROM plain ORDER BY k`, `INSERT INTO plain VALUES (1)`, `UPDATE orders SET last_token = $1 WHERE last_token <= $1`, `ANALYZE`, `COPY plain TO STDOUT`, `CREATE INDEX ON plain (k)`, `DO 'BEGIN END'`, `BEGIN; SELECT 1`} {
		err := p.Plan(sql).Refusal()
		require.ErrorIs(t, err, ErrRefused, sql)
		require.ErrorContains(t, err, `operator family public.pairs USING btree`, sql)
	}
	for _, sql := range []string{`BEGIN`, `COMMIT`, `SAVEPOINT s`, `SHOW work_mem`, `SET work_mem = '1MB'`, `LISTEN x`} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
}
