package driver

import sqldriver "database/sql/driver"

// Tx is a transaction.
type Tx struct{ inner sqldriver.Tx }

var _ sqldriver.Tx = (*Tx)(nil)

// Commit commits the transaction.
func (tx *Tx) Commit() error { return tx.inner.Commit() }

// Rollback rolls the transaction back.
func (tx *Tx) Rollback() error { return tx.inner.Rollback() }
