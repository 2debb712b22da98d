package driver_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

var (
	sqlBlock    = regexp.MustCompile("(?s)```sql[^\n]*\n(.*?)```")
	outboxBlock = regexp.MustCompile(`(?s)^WITH paid AS \(.*\)\s*INSERT INTO (\w+)`)
	outboxShort = regexp.MustCompile("`(INSERT INTO outbox \\.\\.\\. SELECT \\.\\.\\. FROM paid)`")
)

// outboxExamples returns the statements of the docs that write an order and a message of
// it, by their page. README has the INSERT alone, shortened.
func outboxExamples(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, block := range sqlBlock.FindAllStringSubmatch(string(text), -1) {
			if outboxBlock.MatchString(block[1]) {
				found[path] = block[1]
			}
		}
		return err
	}))
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	short := outboxShort.FindStringSubmatch(string(readme))
	require.NotNil(t, short)
	insert := strings.Replace(strings.Replace(short[1], "...", "(topic, order_id)", 1), "...", "'paid', id", 1)
	whole := found["../docs/outcomes.md"]
	found["../README.md"] = whole[:strings.LastIndex(whole, "INSERT INTO")] + insert
	return found
}

// What the docs recommend for an outbox writes nothing under a stale token, and says so,
// in a transaction or not.
func TestOutboxOfTheDocs(t *testing.T) {
	examples := outboxExamples(t)
	for _, page := range []string{"../README.md", "../docs/outcomes.md", "../rewrite/rules/FR204.md", "../rewrite/rules/FR212.md"} {
		require.Contains(t, examples, page)
	}
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE outbox (topic text, order_id bigint); CREATE TABLE receipts (order_id bigint); CREATE TABLE payment_log (order_id bigint)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	for page, query := range examples {
		table := outboxBlock.FindStringSubmatch(query)[1]
		written := func() (paid, messages int) {
			require.NoError(t, plain.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM orders WHERE status = 'paid'), (SELECT count(*) FROM `+table+`)`).Scan(&paid, &messages))
			return paid, messages
		}
		for way, send := range withinWays {
			_, err = plain.Exec(t.Context(), `TRUNCATE orders, outbox, receipts, payment_log; INSERT INTO orders VALUES (17, 'new', 9)`)
			require.NoError(t, err)
			_, err = send(tokenctx.With(t.Context(), 7), db, query, tokenctx.Arg, 17)
			require.ErrorIs(t, err, driver.ErrStale, "%s, %s", page, way)
			paid, messages := written()
			require.Zero(t, paid+messages, "%s, %s", page, way)
			_, err = send(tokenctx.With(t.Context(), 10), db, query, tokenctx.Arg, 17)
			require.NoError(t, err, "%s, %s", page, way)
			paid, messages = written()
			require.Equal(t, [2]int{1, 1}, [2]int{paid, messages}, "%s, %s", page, way)
		}
	}
}

// The outbox may be a view whose rule writes another table. The count that comes along
// needs RETURNING: where a rule has none, PostgreSQL refuses the statement, and nothing is
// written.
func TestOutboxBehindARule(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE outbox (topic text, order_id bigint);
		CREATE VIEW plain_box AS SELECT * FROM outbox; CREATE VIEW ruled_box AS SELECT * FROM outbox; CREATE VIEW returning_box AS SELECT * FROM outbox; CREATE VIEW fired_box AS SELECT * FROM outbox;
		CREATE RULE r AS ON INSERT TO ruled_box DO INSTEAD INSERT INTO outbox VALUES (NEW.topic, NEW.order_id);
		CREATE RULE r AS ON INSERT TO returning_box DO INSTEAD INSERT INTO outbox VALUES (NEW.topic, NEW.order_id) RETURNING outbox.*;
		CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO outbox VALUES (NEW.topic, NEW.order_id); RETURN NEW; END $$;
		CREATE TRIGGER fired INSTEAD OF INSERT ON fired_box FOR EACH ROW EXECUTE FUNCTION fired()`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	for _, box := range []string{"plain_box", "ruled_box", "returning_box", "fired_box"} {
		for form, insert := range map[string]string{"dependent": ` SELECT 'paid', id FROM paid`, "independent": ` VALUES ('paid', 17)`} {
			query := `WITH paid AS (` + withinR + `) INSERT INTO ` + box + ` (topic, order_id)` + insert
			for way, send := range withinWays {
				name := box + ", " + form + ", " + way
				reset := func() {
					_, err = plain.Exec(t.Context(), `TRUNCATE orders, outbox; INSERT INTO orders VALUES (17, 'new', 9)`)
					require.NoError(t, err)
				}
				reset()
				_, err = send(tokenctx.With(t.Context(), 7), db, query, tokenctx.Arg, 17)
				if box == "ruled_box" {
					require.ErrorContains(t, err, "RETURNING", name)
				} else {
					require.ErrorIs(t, err, driver.ErrStale, name)
				}
				messages := 0
				require.NoError(t, plain.QueryRow(t.Context(), `SELECT count(*) FROM outbox`).Scan(&messages))
				require.Equal(t, form == "independent" && box != "ruled_box", messages > 0, name)
				_, err = send(tokenctx.With(t.Context(), 10), db, query, tokenctx.Arg, 17)
				if box == "ruled_box" {
					require.ErrorContains(t, err, "RETURNING", name)
				} else {
					require.NoError(t, err, name)
				}
			}
		}
	}
}
