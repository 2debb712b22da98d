package sqlxapp

import (
	"context"
	"database/sql"
	"errors"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) reads() []record.Step {
	return []record.Step{
		a.query("select",
			q("SELECT u.*, count(p.id) AS posts FROM users u LEFT JOIN posts p ON p.user_id = u.id GROUP BY u.id HAVING count(p.id) >= $1 ORDER BY posts DESC", 0),
			q("SELECT * FROM users WHERE ($1::text IS NULL OR name = $1) AND created_at > now() - interval '30 days'", nil),
			q("SELECT name, row_number() OVER (PARTITION BY active ORDER BY created_at) AS rank FROM users"),
			q("SELECT * FROM posts WHERE user_id = ANY($1)", []int64{1, 2}),
			q("SELECT DISTINCT ON (owner) owner, balance FROM accounts ORDER BY owner, balance DESC"),
			q("SELECT payload->>'to' AS recipient, payload @> $1::jsonb AS matches FROM jobs WHERE payload ? 'to'", `{"to":"ann"}`),
			q("SELECT EXISTS (SELECT 1 FROM users WHERE email = $1)", "ann@example.com"),
			q("SELECT coalesce(sum(total), 0)::float8 FROM orders WHERE status = $1", "paid"),
			q("SELECT CASE WHEN age < 18 THEN 'minor' WHEN age IS NULL THEN 'unknown' ELSE 'adult' END AS kind, count(*) FROM users GROUP BY 1"),
			q("SELECT * FROM users, LATERAL (SELECT title FROM posts WHERE user_id = users.id ORDER BY id DESC LIMIT 1) latest"),
			q("SELECT d::date FROM generate_series($1::timestamptz, $1::timestamptz + interval '2 days', '1 day') AS d", now),
			q("SELECT current_database() IS NOT NULL, version() LIKE 'PostgreSQL%', now() IS NOT NULL"),
		),
		a.query("select with",
			q("WITH totals AS (SELECT user_id, sum(total) AS total FROM orders GROUP BY user_id) SELECT u.name, t.total FROM users u JOIN totals t ON t.user_id = u.id WHERE t.total > $1", 0),
			q("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n", 3),
			q("SELECT name FROM users UNION SELECT owner FROM accounts EXCEPT SELECT name FROM tags ORDER BY 1"),
			q("VALUES (1, 'one'), (2, 'two')"),
			q("TABLE tags"),
		),
		a.query("explain and show", q("EXPLAIN (FORMAT JSON) SELECT * FROM users WHERE id = 1"), q("SHOW server_version_num"), q("SHOW transaction_isolation")),
	}
}

func (a app) writes() []record.Step {
	return []record.Step{
		a.exec("insert",
			q("INSERT INTO orders (user_id, status, total) VALUES ($1, $2, $3)", 1, "paid", 12.5),
			q("INSERT INTO order_items (order_id, line_no, sku, quantity) SELECT $1, n, 'sku-' || n, n FROM generate_series(1, 3) AS n", 1),
			q("INSERT INTO tags (name) SELECT unnest($1::text[]) ON CONFLICT (name) DO NOTHING", []string{"a", "b"}),
			q("INSERT INTO orders DEFAULT VALUES RETURNING id"),
			q(`INSERT INTO accounts AS a (id, owner, balance) VALUES ($1, $2, $3)
				ON CONFLICT (id) DO UPDATE SET (balance, version) = (EXCLUDED.balance, a.version + 1)`, 1, "ann", 4),
			q("WITH o AS (INSERT INTO orders (user_id) VALUES ($1) RETURNING id) INSERT INTO order_items (order_id, line_no, sku) SELECT id, 1, $2 FROM o", 2, "x"),
		),
		a.exec("update",
			q("UPDATE accounts SET balance = balance - $1 WHERE id = $2 AND balance >= $1", 1, 1),
			q("UPDATE accounts SET balance = $1, version = $2 WHERE id = $3 AND version < $2", 7, 9, 1),
			q("UPDATE orders o SET status = 'shipped' FROM users u WHERE u.id = o.user_id AND u.active AND o.id = $1", 1),
			q("UPDATE accounts SET balance = v.balance FROM (VALUES (1, 10), (2, 20)) AS v(id, balance) WHERE accounts.id = v.id"),
			q("UPDATE accounts a SET balance = d.balance FROM unnest($1::bigint[], $2::bigint[]) AS d(id, balance) WHERE a.id = d.id", []int64{1, 2}, []int64{5, 6}),
			q("UPDATE orders SET total = (SELECT sum(quantity * price) FROM order_items i WHERE i.order_id = orders.id) WHERE id = $1", 1),
			q("UPDATE ONLY accounts SET (owner, balance) = ('ann', 1) WHERE id = 1"),
			q("UPDATE jobs SET payload = jsonb_set(payload, '{tries}', to_jsonb($1::int)), run_at = DEFAULT WHERE id = $2", 2, 1),
			q("UPDATE users SET name = E'o\\'neil', email = $tag$it's \"quoted\"$tag$ WHERE id = 2 -- by hand"),
		),
		a.query("queue", q(`UPDATE jobs SET state = 'running'
			WHERE id = (SELECT id FROM jobs WHERE state = 'queued' AND run_at <= $1 ORDER BY run_at FOR UPDATE SKIP LOCKED LIMIT 1)
			RETURNING id, kind`, now),
			q("WITH done AS (DELETE FROM jobs WHERE state = $1 RETURNING *) SELECT count(*) FROM done", "done")),
		a.exec("delete",
			q("DELETE FROM order_items USING orders WHERE orders.id = order_items.order_id AND orders.status = $1", "void"),
			q("DELETE FROM jobs WHERE ctid IN (SELECT ctid FROM jobs WHERE run_at < $1 LIMIT 100)", now),
			q("DELETE FROM post_tags WHERE (post_id, tag_id) IN (($1, $2))", 1, 1)),
		a.exec("merge", q(`MERGE INTO accounts a USING (VALUES ($1::bigint, $2::bigint)) AS s(id, delta) ON s.id = a.id
			WHEN MATCHED AND a.balance + s.delta < 0 THEN DO NOTHING
			WHEN MATCHED THEN UPDATE SET balance = a.balance + s.delta
			WHEN NOT MATCHED THEN INSERT (id, owner, balance) VALUES (s.id, 'new', s.delta)`, 1, 5)),
	}
}

func (a app) transactions() []record.Step {
	return []record.Step{{Op: "transaction", Do: a.transfer}, {Op: "transaction levels", Do: a.levels}}
}

// transfer moves money, with a savepoint on the way.
func (a app) transfer(ctx context.Context) error {
	tx, err := a.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, query := range []string{
		"SET LOCAL lock_timeout = '2s'",
		"SELECT pg_advisory_xact_lock(hashtext('transfer'))",
		"SELECT * FROM accounts WHERE id IN (1, 2) ORDER BY id FOR NO KEY UPDATE",
		"SAVEPOINT attempt",
		"UPDATE accounts SET balance = balance - 1 WHERE id = 1",
		"ROLLBACK TO SAVEPOINT attempt",
		"RELEASE SAVEPOINT attempt",
		"SET CONSTRAINTS ALL DEFERRED",
		"LOCK TABLE tags IN SHARE ROW EXCLUSIVE MODE",
		"SELECT set_config('app.user_id', '1', true)",
		"SELECT pg_notify('accounts', '1')",
		"NOTIFY orders, 'paid'",
	} {
		_, err := tx.ExecContext(ctx, query)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, tx.Commit())...)
}

// levels begins transactions of all kinds.
func (a app) levels(ctx context.Context) error {
	var errs []error
	for _, opts := range []sql.TxOptions{
		{Isolation: sql.LevelReadUncommitted}, {Isolation: sql.LevelReadCommitted}, {Isolation: sql.LevelRepeatableRead},
		{Isolation: sql.LevelSerializable}, {ReadOnly: true}, {Isolation: sql.LevelSerializable, ReadOnly: true},
	} {
		tx, err := a.db.BeginTxx(ctx, &opts)
		if err != nil {
			return err
		}
		errs = append(errs, tx.Rollback())
	}
	return errors.Join(errs...)
}

func (a app) ddl() []record.Step {
	return []record.Step{a.execs("ddl",
		"CREATE TABLE IF NOT EXISTS events (id bigserial, at timestamptz NOT NULL, body jsonb, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
		"CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
		"ALTER TABLE users ADD COLUMN IF NOT EXISTS locale text NOT NULL DEFAULT 'en'",
		"CREATE INDEX CONCURRENTLY IF NOT EXISTS users_locale_idx ON users (locale)",
		"CREATE OR REPLACE VIEW active_users AS SELECT * FROM users WHERE active",
		"CREATE TEMPORARY TABLE staging (LIKE accounts INCLUDING DEFAULTS) ON COMMIT DROP",
		"COMMENT ON TABLE users IS 'people; who sign in'",
		"VACUUM (ANALYZE) tags",
		"TRUNCATE events, jobs RESTART IDENTITY",
		"DROP VIEW IF EXISTS active_users",
		"DISCARD TEMP",
	)}
}
