package reach

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeSchema has 500 tables that reference each other and 2,000 functions of
// about 1 KB, each of which writes a table and calls another function.
const largeSchema = `CREATE TABLE t0 (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0);
DO $$ BEGIN FOR i IN 1..500 LOOP
	EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY, p bigint REFERENCES t%s ON DELETE %s, a text, b text, last_token bigint NOT NULL DEFAULT 0)', i, i/10, CASE i%3 WHEN 0 THEN 'CASCADE' WHEN 1 THEN 'SET NULL' ELSE 'NO ACTION' END);
END LOOP;
FOR i IN 1..2000 LOOP
	EXECUTE format('CREATE FUNCTION f_%s(x bigint) RETURNS bigint LANGUAGE plpgsql AS $f$ DECLARE v bigint; BEGIN %s
		UPDATE t%s SET a = ''x'' WHERE id = x; SELECT count(*) INTO v FROM t%s JOIN t%s USING (id); INSERT INTO t%s (id) VALUES (v); PERFORM f_%s(v); RETURN v; END $f$',
		i, repeat('-- a comment of some length that says what is done here and why it is
', 10), 20 + i%480, i%500, (i*7)%500, 20 + (i*3)%480, i/2 + 7);
END LOOP; END $$; ANALYZE`

func BenchmarkCatalog(b *testing.B) {
	for _, schema := range []struct{ name, sql string }{{"small", `CREATE TABLE t0 (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`}, {"large", largeSchema}} {
		session := connected(b, schema.sql)
		b.Run(schema.name+"/stamp", func(b *testing.B) {
			for b.Loop() {
				stampOf(b, session)
			}
		})
		for _, n := range []int{1, 5, 100} {
			var found *Catalog
			var err error
			b.Run(fmt.Sprintf("%s/read/%d", schema.name, n), func(b *testing.B) {
				for b.Loop() {
					found, err = Read(b.Context(), session, manyTables(n))
					require.NoError(b, err)
				}
			})
			b.Run(fmt.Sprintf("%s/closure/%d", schema.name, n), func(b *testing.B) {
				for b.Loop() {
					found.Closure(manyTables(n), nil)
				}
			})
		}
	}
}
