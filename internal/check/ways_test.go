package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// What a closure says of views, disabled triggers, event triggers and names off
// the path is looked at where it counts, and nowhere else.
func TestOtherWays(t *testing.T) {
	p, err := check.NewPolicy(check.Table{Name: "orders", Mode: check.Strict})
	require.NoError(t, err)
	orders := check.Name{Schema: "public", Name: "orders"}
	writer := func(name string, events ...string) check.Writer {
		return check.Writer{Name: check.Name{Schema: "public", Name: name}, Into: orders, Events: events}
	}
	c := check.Closure{
		Writers:   []check.Writer{writer("counted", "REFRESH"), writer("defaulted", "INSERT", "LIKE"), writer("queue", "INSERT"), writer("asleep", "ENABLE")},
		Functions: []check.Name{{Schema: "bill", Name: "log"}, {Schema: "public", Name: "touch"}, {Schema: "pg_catalog", Name: "added"}},
	}
	p, err = p.WithClosure(c)
	require.NoError(t, err)
	public := p.ForPath("public")
	for _, sql := range []string{`REFRESH MATERIALIZED VIEW counted`, `REFRESH MATERIALIZED VIEW CONCURRENTLY public.counted`, `CREATE TABLE z (id int, LIKE defaulted)`, `CREATE SCHEMA s CREATE TABLE z (LIKE public.defaulted)`,
		`ALTER TABLE asleep ENABLE TRIGGER t`, `SELECT bill.log('x')`, `SELECT touch()`, `SELECT added()`, `SET search_path = bill; SELECT log('x')`, `SELECT log(1)`} {
		require.ErrorIs(t, public.Plan(sql).Refusal(), check.ErrRefused, sql)
	}
	for _, sql := range []string{`REFRESH MATERIALIZED VIEW other`, `REFRESH MATERIALIZED VIEW app.counted`, `CREATE TABLE z (LIKE queue)`, `CREATE TABLE z (LIKE app.defaulted)`, `INSERT INTO asleep VALUES (1)`,
		`SELECT pg_catalog.log(1)`, `SELECT app.touch()`, `CREATE TABLE z (id int)`} {
		require.NoError(t, public.Plan(sql).Refusal(), sql)
	}
	require.ErrorIs(t, p.Plan(`SELECT log(1)`).Refusal(), check.ErrRefused)

	c.EventTriggers = []check.Name{{Schema: "public", Name: "on_ddl"}}
	p, err = p.WithClosure(c)
	require.NoError(t, err)
	for sql, refused := range map[string]bool{
		`CREATE TABLE z (id int)`: true, `CREATE INDEX ON z (id)`: true, `DROP VIEW v`: true, `COMMENT ON TABLE z IS 'x'`: true, `GRANT SELECT ON z TO app`: true, `SELECT 1 INTO z`: true, `CREATE TABLE z AS SELECT 1`: true,
		`SELECT 1`: false, `INSERT INTO z VALUES (1)`: false, `TRUNCATE z`: false, `CREATE ROLE r`: false, `SET statement_timeout = 1`: false, `DO $$ BEGIN PERFORM 1; END $$`: false, `VACUUM z`: false,
	} {
		require.Equal(t, refused, p.Plan(sql).Refusal() != nil, sql)
	}
}
