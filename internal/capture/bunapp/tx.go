package bunapp

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) transactions() []record.Step {
	return []record.Step{{Op: "transaction", Do: func(ctx context.Context) error {
		return a.db.RunInTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}, transfer)
	}}, {Op: "transaction nested", Do: a.nested}}
}

// transfer moves money from one account to another.
func transfer(ctx context.Context, tx bun.Tx) error {
	var accounts []account
	err := tx.NewSelect().Model(&accounts).Where("id IN (?)", bun.List([]int{1, 2})).Order("id").For("UPDATE").Scan(ctx)
	_, err1 := tx.NewUpdate().Model(&accounts[0]).Set("balance = balance - ?", 10).WherePK().Exec(ctx)
	_, err2 := tx.NewUpdate().Model(&accounts[1]).Set("balance = balance + ?", 10).WherePK().Exec(ctx)
	return errors.Join(err, err1, err2)
}

var errUndo = errors.New("undo")

// nested gives up an inner transaction, and keeps another.
func (a app) nested(ctx context.Context) error {
	return a.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		undone := tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.NewUpdate().Model((*account)(nil)).Set("balance = 0").Where("id = 1").Exec(ctx)
			return errors.Join(err, errUndo)
		})
		if !errors.Is(undone, errUndo) {
			return undone
		}
		return tx.RunInTx(ctx, nil, transfer)
	})
}

func (a app) raw() []record.Step {
	db := a.db
	return []record.Step{exec("raw", func() []executer {
		return []executer{
			db.NewRaw("SELECT id, name FROM users WHERE name = ? AND id IN (?)", "ann", bun.List([]int{1, 2})),
			db.NewRaw("UPDATE ? SET balance = balance + ?1 WHERE id = ?1 AND owner LIKE 'a%'", bun.Ident("accounts"), 1),
			db.NewRaw("UPDATE accounts SET balance = ? WHERE id = ?", 1, 1),
			db.NewRaw("SELECT pg_try_advisory_lock(?)", 42),
			db.NewRaw("SELECT pg_advisory_unlock(?)", 42),
			db.NewRaw("SET search_path TO public"),
			db.NewRaw("CREATE MATERIALIZED VIEW ? AS SELECT user_id, sum(total) AS total FROM orders GROUP BY user_id", bun.Ident("totals")),
			db.NewRaw("REFRESH MATERIALIZED VIEW ?", bun.Ident("totals")),
		}
	})}
}
