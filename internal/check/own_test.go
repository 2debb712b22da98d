package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A plan tells whether its text changes or calls, by a bare name, what the schema
// fencing may have; other mentions of such a name are nothing.
func TestNamesOwn(t *testing.T) {
	installed := Closure{Sequences: []Name{{"fencing", "write_epoch"}}, OwnCallers: []Name{{"public", "resets"}, {"public", "Odd Name"}}}
	for sql, want := range map[string]bool{
		"UPDATE registry SET x = 1":                                 true,
		"INSERT INTO Lease VALUES (1)":                              true,
		"WITH x AS (DELETE FROM \"epoch\") SELECT 1":                true,
		"MERGE INTO lease USING t ON true WHEN MATCHED THEN DELETE": true,
		"TRUNCATE a, generation":                                    true,
		"COPY repairs FROM STDIN":                                   true,
		"SELECT unregister('x')":                                    true,
		"SELECT * FROM wall('x')":                                   true,
		"SELECT resets()":                                           true,
		"SELECT l.resets FROM log l":                                true,
		"CALL public.resets()":                                      true,
		"SELECT \"Odd Name\"()":                                     true,
		"SELECT run('UPDATE fencing.registry SET x = 1')":           true,
		"SELECT run('x', 'FENCING' || '.lease')":                    true,
		"ALTER TABLE lease ADD COLUMN x int":                        true,
		"DROP TABLE a, lease":                                       true,
		"DROP FUNCTION fail":                                        true,
		"CREATE OR REPLACE FUNCTION take() RETURNS int LANGUAGE sql AS 'SELECT 1'": true,
		"CREATE VIEW v AS SELECT * FROM registry":                                  true,
		"UPDATE public.registry SET x = 1":                                         false,
		"UPDATE jobs SET generation = 1, lease = 2":                                false,
		"INSERT INTO jobs (epoch) SELECT lease FROM lease":                         false,
		"SELECT * FROM lease FOR UPDATE":                                           false,
		"SELECT public.wall('x')":                                                  false,
		"SELECT fencing.take('r', '1 h', 'me')":                                    false,
		"SELECT take(1), release(2)":                                               false,
		"CREATE TABLE lease (id int)":                                              false,
		"CREATE INDEX ON lease (id)":                                               false,
		"CREATE FUNCTION take() RETURNS int LANGUAGE sql AS 'SELECT 1'":            false,
		"RELEASE SAVEPOINT a":                                                      false,
	} {
		p, err := NewPolicy(Table{Name: "orders", Mode: Lease})
		require.NoError(t, err)
		require.False(t, p.Plan(sql).NamesOwn, "nothing is installed: %s", sql)
		p, err = p.WithClosure(installed)
		require.NoError(t, err)
		plan := p.Plan(sql)
		require.NoError(t, plan.Refusal(), sql)
		require.Equal(t, want, plan.NamesOwn, sql)
		require.False(t, want && plan.Direct(), sql)
		require.Equal(t, want && !strings.Contains(sql, "run("), plan.OwnName() != "", sql)
	}
}

// Where the server can't be asked right before a statement runs, the schema must be
// written.
func TestOwnNamesWithoutAMoment(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease})
	require.NoError(t, err)
	p, err = p.WithClosure(Closure{Sequences: []Name{{"fencing", "write_epoch"}}})
	require.NoError(t, err)
	for sql, isRefused := range map[string]bool{
		"SELECT f(); UPDATE registry SET x = 1":                                                   true,
		"UPDATE lease SET x = 1; SELECT 1":                                                        true,
		"COMMIT; DELETE FROM lease":                                                               true,
		"SELECT 1; SELECT wall('x')":                                                              true,
		"PREPARE p AS UPDATE registry SET x = 1":                                                  true,
		"PREPARE p AS SELECT unregister('x')":                                                     true,
		"DO $$ BEGIN UPDATE registry SET x = 1; END $$":                                           true,
		"DO $$ BEGIN TRUNCATE public.a, public.b, lease; END $$":                                  true,
		"DO $$ BEGIN DELETE FROM ONLY lease; END $$":                                              true,
		"DO $$ BEGIN PERFORM wall('x'); END $$":                                                   true,
		"CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'DELETE FROM epoch'":                    true,
		"UPDATE public.lease SET x = 1; SELECT 1":                                                 false,
		"PREPARE p AS SELECT * FROM registry":                                                     false,
		"DO $$ DECLARE lease int; BEGIN SELECT count(*) INTO lease FROM epoch; END $$":            false,
		"DO $$ BEGIN UPDATE public.lease SET epoch = 1; INSERT INTO a (lease) VALUES (1); END $$": false,
		"CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'DELETE FROM public.epoch'":             false,
	} {
		plan := p.Plan(sql)
		require.Equal(t, isRefused, plan.Refusal() != nil, "%s: %v", sql, plan.Refusal())
	}
}
