package driver

import sqldriver "database/sql/driver"

// Tx is a transaction.
type Tx struct {
	inner sqldriver.Tx
	conn  *Conn
}

var _ sqldriver.Tx = (*Tx)(nil)

// Commit commits the transaction.
func (tx *Tx) Commit() error {
	tx.conn.inTx = false
	return tx.inner.Commit()
}

// Rollback rolls the transaction back.
func (tx *Tx) Rollback() error {
	tx.conn.inTx = false
	return tx.inner.Rollback()
}
