package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// Whatever form a rewritten write has, and however it is sent, it tells of the rows that
// its guard leaves out: of how many where that is known, or that it can't tell.
func TestRewrittenFormsAreToldInPart(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease, driver.WithRewrite())
	const update, merge = ` ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status`, ` WHEN MATCHED THEN UPDATE SET status = 'x'`
	for name, test := range map[string]struct {
		sql            string
		applied, stale int64 // 0: that some are left out, and not which
		none           bool  // the one row is stale
	}{
		"VALUES in brackets":         {sql: `INSERT INTO orders (id, status) (VALUES (1, 'x'), (2, 'x'))` + update, applied: 1, stale: 1},
		"a UNION ALL of constants":   {sql: `INSERT INTO orders (id, status) SELECT 1, 'x' UNION ALL (SELECT 2, 'x' UNION ALL VALUES (3, 'x'))` + update, applied: 2, stale: 1},
		"a UNION":                    {sql: `INSERT INTO orders (id, status) SELECT 1, 'x' UNION SELECT 2, 'x'` + update},
		"a UNION ALL of a table":     {sql: `INSERT INTO orders (id, status) SELECT 3, 'x' UNION ALL SELECT id, body FROM notes` + update},
		"EXCEPT":                     {sql: `INSERT INTO orders (id, status) VALUES (1, 'x'), (2, 'x') EXCEPT SELECT 9, 'x'` + update},
		"WITH":                       {sql: `INSERT INTO orders (id, status) WITH n AS (SELECT id, body FROM notes) SELECT * FROM n` + update},
		"WITH, VALUES":               {sql: `INSERT INTO orders (id, status) WITH n AS (SELECT 1) VALUES (1, 'x'), (2, 'x')` + update},
		"a table in brackets":        {sql: `INSERT INTO orders (id, status) (SELECT id, body FROM notes)` + update},
		"several columns":            {sql: `UPDATE orders SET (status, last_token) = ('x', 0) WHERE id < 3`, applied: 1, stale: 1},
		"several columns of a query": {sql: `UPDATE orders SET (status, code) = (SELECT 'x', 'y' || orders.id) WHERE id < 3`, applied: 1, stale: 1},
		"MERGE, a list":              {sql: `MERGE INTO orders USING (VALUES (1), (2)) v(id) ON v.id = orders.id` + merge, applied: 1, stale: 1},
		"MERGE, a list, twice":       {sql: `MERGE INTO orders USING (VALUES (1), (2)) v(id) ON v.id = orders.id WHEN MATCHED AND v.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET status = 'x'`},
		"MERGE, nothing for some":    {sql: `MERGE INTO orders USING (VALUES (1), (2)) v(id) ON v.id = orders.id WHEN MATCHED AND orders.id > 7 THEN DO NOTHING` + merge},
		"MERGE, a list that inserts": {sql: `MERGE INTO orders USING (VALUES (2), (9)) v(id) ON v.id = orders.id WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)` + merge, applied: 1, stale: 1},
		"MERGE, a table":             {sql: `MERGE INTO orders USING notes ON notes.id = orders.id` + merge},
		"MERGE, a table, DELETE":     {sql: `MERGE INTO orders USING notes ON notes.id = orders.id WHEN MATCHED THEN DELETE`},
		"MERGE, by no key":           {sql: `MERGE INTO orders USING (VALUES (1)) v(id) ON v.id + 1 >= orders.id` + merge},
		"MERGE, WITH":                {sql: `WITH v AS (SELECT id FROM notes) MERGE INTO orders USING v ON v.id = orders.id` + merge},
		"MERGE, one row":             {sql: `MERGE INTO orders USING (VALUES (2)) v(id) ON v.id = orders.id` + merge, none: true},
		"MERGE, one row of a table":  {sql: `MERGE INTO orders USING (SELECT * FROM notes WHERE id = 2) n ON n.id = orders.id` + merge, none: true},
	} {
		for way, send := range waysToRead {
			resetRows(t, plain)
			err := send(tokenctx.With(t.Context(), 7), db, test.sql)
			var partial *driver.PartialError
			switch {
			case test.stale > 0:
				require.ErrorAs(t, err, &partial, "%s, %s", name, way)
				require.Equal(t, [2]int64{test.applied, test.stale}, [2]int64{partial.Applied, partial.Stale}, "%s, %s", name, way)
			case test.none:
				require.Error(t, err, "%s, %s", name, way)
			case err == nil:
				require.Fail(t, "nothing is told", "%s, %s", name, way)
			}
			require.Equal(t, test.none && driver.NotApplied(err), driver.NotApplied(err), "%s, %s", name, way)
			require.NotErrorIs(t, err, rewrite.ErrRefused, "%s, %s", name, way)
			resetRows(t, plain)
			require.NoError(t, send(tokenctx.With(t.Context(), 8), db, test.sql), "%s, %s", name, way)
		}
	}
}
