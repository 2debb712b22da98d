package sqlcdb

import (
	"github.com/fencerow/fencerow/tokenctx"
)

// Order is a row of orders.
type Order struct {
	ID        int64
	Status    string
	LastToken tokenctx.Token
}
