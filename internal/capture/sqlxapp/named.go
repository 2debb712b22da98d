package sqlxapp

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) named() []record.Step {
	return []record.Step{
		{Op: "named exec", Do: a.namedExec},
		{Op: "named query", Do: a.namedQuery},
		{Op: "in", Do: a.in},
		{Op: "get and select", Do: a.getAndSelect},
	}
}

// namedExec takes its values from structs, maps and slices of both.
func (a app) namedExec(ctx context.Context) error {
	ann := account{ID: 1, Owner: "ann", Balance: 3}
	exec := func(query string, arg any) error {
		_, err := a.db.NamedExecContext(ctx, query, arg)
		return err
	}
	return errors.Join(
		exec("INSERT INTO accounts (owner, balance) VALUES (:owner, :balance)", ann),
		exec("INSERT INTO accounts (owner, balance) VALUES (:owner, :balance)", []account{ann, {Owner: "bob"}, {Owner: "cec"}}),
		exec("INSERT INTO tags (name) VALUES (:name)", []map[string]any{{"name": "go"}, {"name": "sql"}}),
		exec("UPDATE accounts SET owner = :owner, balance = :balance, version = version + 1 WHERE id = :id AND version = :version", ann),
		exec("UPDATE users SET age = :age WHERE email = :email", map[string]any{"age": 31, "email": "ann@example.com"}),
		exec(`INSERT INTO accounts (id, owner, balance) VALUES (:id, :owner, :balance)
			ON CONFLICT (id) DO UPDATE SET balance = EXCLUDED.balance WHERE accounts.version <= EXCLUDED.version`, ann),
		exec("DELETE FROM tags WHERE name = :name", map[string]any{"name": "sql"}),
		exec("INSERT INTO jobs (kind, payload) VALUES (:kind, CAST(:payload AS jsonb))", map[string]any{"kind": "mail", "payload": `{"to":"ann"}`}),
	)
}

func (a app) namedQuery(ctx context.Context) error {
	rows, err := a.db.NamedQueryContext(ctx, "SELECT * FROM users WHERE name = :name AND active = :active", user{Name: "ann", Active: true})
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.StructScan(&user{}); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	stmt, err := a.db.PrepareNamedContext(ctx, "SELECT id, owner, balance, version FROM accounts WHERE owner = :owner ORDER BY id LIMIT 1")
	if err != nil {
		return errors.Join(err, rows.Close())
	}
	return errors.Join(rows.Close(), stmt.GetContext(ctx, &account{}, account{Owner: "ann"}), stmt.Close())
}

// in spreads slices over placeholders.
func (a app) in(ctx context.Context) error {
	var errs []error
	for _, c := range []call{
		q("SELECT * FROM users WHERE id IN (?)", []int{1, 2, 3}),
		q("UPDATE accounts SET balance = ? WHERE id IN (?) AND version < ?", 4, []int64{1, 2}, 5),
		q("DELETE FROM tags WHERE name IN (?) OR id = ?", []string{"x", "y"}, -1),
	} {
		query, args, err := sqlx.In(c.query, c.args...)
		errs = append(errs, err, a.readAll(ctx, q(a.db.Rebind(query), args...)))
	}
	query, args, err := sqlx.Named("SELECT * FROM users WHERE name IN (:names) AND active = :active", map[string]any{"names": []string{"ann", "bob"}, "active": true})
	errs = append(errs, err)
	query, args, err = sqlx.In(query, args...)
	return errors.Join(append(errs, err, a.readAll(ctx, q(a.db.Rebind(query), args...)))...)
}

func (a app) getAndSelect(ctx context.Context) error {
	var n int
	var users []user
	var accounts []account
	return errors.Join(
		a.db.GetContext(ctx, &user{}, "SELECT * FROM users WHERE id = $1", 1),
		a.db.GetContext(ctx, &n, "SELECT count(*) FROM users"),
		a.db.SelectContext(ctx, &users, "SELECT id, name, email FROM users ORDER BY name LIMIT $1 OFFSET $2", 10, 0),
		a.db.SelectContext(ctx, &accounts, "UPDATE accounts SET balance = balance + $1 WHERE owner = $2 RETURNING *", 1, "ann"),
		a.db.GetContext(ctx, &n, "INSERT INTO posts (user_id, title) VALUES ($1, $2) RETURNING id", 1, "one"),
	)
}
