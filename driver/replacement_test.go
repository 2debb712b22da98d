package driver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// replacementSchema has a protected table with a partition of another below it.
const replacementSchema = `
CREATE TABLE jobs (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE parts (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE log (id bigint, note text);
INSERT INTO jobs VALUES (1, 0, 5); INSERT INTO parts VALUES (1, 0, 5);
`

// guardedWrites are proved writes to a table of that schema.
var guardedWrites = map[string]string{
	"UPDATE": `UPDATE TABLE SET n = 1, last_token = $1 WHERE id = 1 AND last_token <= $1`,
	"DELETE": `DELETE FROM TABLE WHERE id = 1 AND last_token <= $1`,
	"INSERT": `INSERT INTO TABLE (id, n, last_token) VALUES (2, 0, $1)`,
	"WITH":   `WITH x AS (UPDATE TABLE SET n = 1, last_token = $1 WHERE id = 1 AND last_token <= $1 RETURNING id) INSERT INTO log (id) SELECT id FROM x`,
}

// A rule that does something instead of a protected write makes nothing of its
// proof.
func TestRulesThatReplaceAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		rule, table string
		refused     []string // the writes that are refused, and that write nothing by plain pgx
	}{
		"nothing":                {`CREATE RULE r AS ON UPDATE TO jobs DO INSTEAD NOTHING`, "jobs", []string{"UPDATE", "WITH"}},
		"a condition":            {`CREATE RULE r AS ON UPDATE TO jobs WHERE OLD.id = 1 DO INSTEAD NOTHING`, "jobs", []string{"UPDATE", "WITH"}},
		"an entry in a log":      {`CREATE RULE r AS ON UPDATE TO jobs DO INSTEAD INSERT INTO log VALUES (OLD.id, 'instead')`, "jobs", []string{"UPDATE", "WITH"}},
		"DELETE":                 {`CREATE RULE r AS ON DELETE TO jobs DO INSTEAD NOTHING`, "jobs", []string{"DELETE"}},
		"DELETE as a log":        {`CREATE RULE r AS ON DELETE TO jobs DO INSTEAD INSERT INTO log VALUES (OLD.id, 'gone')`, "jobs", []string{"DELETE"}},
		"INSERT":                 {`CREATE RULE r AS ON INSERT TO jobs DO INSTEAD NOTHING`, "jobs", []string{"INSERT"}},
		"INSERT elsewhere":       {`CREATE RULE r AS ON INSERT TO jobs DO INSTEAD INSERT INTO log VALUES (NEW.id, 'new')`, "jobs", []string{"INSERT"}},
		"of a partitioned table": {`CREATE RULE r AS ON UPDATE TO parts DO INSTEAD NOTHING`, "parts", []string{"UPDATE", "WITH"}},
		"of a partition":         {`CREATE RULE r AS ON UPDATE TO parts_1 DO INSTEAD NOTHING`, "parts_1", []string{"UPDATE", "WITH"}},
		"not of the one written": {`CREATE RULE r AS ON UPDATE TO parts_1 DO INSTEAD NOTHING`, "parts", nil},
		"ALSO":                   {`CREATE RULE r AS ON UPDATE TO jobs DO ALSO INSERT INTO log VALUES (OLD.id, 'too')`, "jobs", nil},
		"disabled":               {`CREATE RULE r AS ON UPDATE TO jobs DO INSTEAD NOTHING; ALTER TABLE jobs DISABLE RULE r`, "jobs", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t)
			run(t, dsn, replacementSchema, c.rule)
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			db, err := driver.Open(dsn, driver.Protect("jobs", rewrite.Lease), driver.Protect("parts", rewrite.Lease))
			require.NoError(t, err)
			defer db.Close()
			for write, text := range guardedWrites {
				text = strings.ReplaceAll(text, "TABLE", c.table)
				refused := false
				for _, r := range c.refused {
					refused = refused || r == write
				}
				changed, err := changesRows(t, plain, c.table, text)
				if !strings.Contains(c.rule, "WHERE") && write != "WITH" { // PostgreSQL may refuse a rule under WITH
					require.NoError(t, err, write)
					require.Equal(t, !refused, changed, write)
				}
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				_, err = tx.ExecContext(tokenctx.With(t.Context(), 9), text, tokenctx.Arg)
				if refused {
					require.ErrorIs(t, err, rewrite.ErrRefused, write)
					require.ErrorContains(t, err, "DO INSTEAD", write)
				} else if write != "WITH" {
					require.NoError(t, err, write)
				}
				require.NoError(t, tx.Rollback())
			}
		})
	}
}

// changesRows runs a write by plain pgx, tells whether it has changed the table, and
// takes it back.
func changesRows(t *testing.T, conn *pgx.Conn, table, text string) (changed bool, err error) {
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	var before, after string
	state := `SELECT coalesce(string_agg(x::text, ' ' ORDER BY id), '') FROM ` + table + ` x`
	require.NoError(t, tx.QueryRow(t.Context(), state).Scan(&before))
	if _, err := tx.Exec(t.Context(), text, 9); err != nil {
		return false, err
	}
	require.NoError(t, tx.QueryRow(t.Context(), state).Scan(&after))
	return before != after, nil
}
