package tokenctx

import (
	"database/sql/driver"
	"errors"
)

// ArgValue is the type of [Arg].
type ArgValue struct{}

var _ driver.Valuer = ArgValue{}

// Arg stands for "the context's token" in the arguments of a statement:
//
//	db.ExecContext(ctx, query, "paid", tokenctx.Arg, 17)
//
// fencerow's driver replaces it by the token that the statement's context
// carries for the table. It is accepted at a token position only. Any other
// driver reports an error when it is asked to send it.
var Arg ArgValue

// errArg is what another driver gets when it asks Arg for a value.
var errArg = errors.New("tokenctx.Arg was asked for its value, by a driver that is not fencerow or by a helper in front of it: open the database with sql.Open(\"fencerow\", dsn), or pass the token itself")

// Value always fails: only fencerow's driver can resolve the context's token.
func (ArgValue) Value() (driver.Value, error) { return nil, errArg }

// String returns the name under which Arg is written in Go code.
func (ArgValue) String() string { return "tokenctx.Arg" }
