package gormapp

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) locks() []record.Step {
	return []record.Step{
		plain("lock rows", func() error { return a.db.Transaction(lockRows) }),
		plain("queue", func() error { return a.db.Transaction(takeJobs) }),
	}
}

func lockRows(tx *gorm.DB) error {
	var accounts []Account
	locked := func(l clause.Locking) error { return tx.Clauses(l).Where("balance > ?", 0).Find(&accounts).Error }
	return errors.Join(
		locked(clause.Locking{Strength: "UPDATE"}),
		locked(clause.Locking{Strength: "SHARE"}),
		locked(clause.Locking{Strength: "NO KEY UPDATE"}),
		locked(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}),
		locked(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}),
		locked(clause.Locking{Strength: "SHARE", Table: clause.Table{Name: clause.CurrentTable}}),
		tx.Exec("SELECT pg_advisory_xact_lock(?)", 42).Error,
	)
}

// takeJobs takes work from a queue table, in the two usual ways.
func takeJobs(tx *gorm.DB) error {
	var jobs []Job
	next := tx.Model(&Job{}).Select("id").Where("state = ? AND run_at <= ?", "queued", now).Order("run_at").Limit(1).
		Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"})
	return errors.Join(
		tx.Model(&jobs).Clauses(clause.Returning{}).Where("id = (?)", next).Updates(map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")}).Error,
		tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("state = ?", "queued").Order("run_at").Limit(10).Find(&jobs).Error,
	)
}

var errUndo = errors.New("undo")

func (a app) transactions() []record.Step {
	return []record.Step{
		plain("transaction", func() error { return a.db.Transaction(transfer) }),
		{Op: "transaction nested", Do: a.nested},
		{Op: "transaction by hand", Do: a.byHand},
	}
}

// transfer moves money from one account to another.
func transfer(tx *gorm.DB) error {
	var from, to Account
	return errors.Join(
		tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&from, 1).Error,
		tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&to, 2).Error,
		tx.Model(&from).Update("balance", gorm.Expr("balance - ?", 1)).Error,
		tx.Model(&to).Update("balance", gorm.Expr("balance + ?", 1)).Error,
	)
}

// nested gives up an inner transaction, and keeps another.
func (a app) nested(context.Context) error {
	return a.db.Transaction(func(tx *gorm.DB) error {
		undone := tx.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(&Account{ID: 1}).Update("owner", "lost").Error, errUndo)
		})
		if !errors.Is(undone, errUndo) {
			return undone
		}
		return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&Account{ID: 1}).Update("owner", "kept").Error })
	})
}

// byHand uses the isolation levels and named savepoints.
func (a app) byHand(context.Context) error {
	tx := a.db.Begin(&sql.TxOptions{Isolation: sql.LevelSerializable})
	tx.SavePoint("before_update")
	tx.Model(&Account{ID: 1}).Update("owner", "lost")
	tx.RollbackTo("before_update")
	ro := a.db.Begin(&sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	ro.First(&Account{})
	undone := a.db.Transaction(func(*gorm.DB) error { return errUndo })
	if !errors.Is(undone, errUndo) {
		return undone
	}
	return errors.Join(tx.Error, tx.Commit().Error, ro.Rollback().Error)
}
