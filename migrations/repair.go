package migrations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Repair sets the token of one row of a registered table to token, past the
// wall: for a row whose token is so high that no holder can write it any more.
// Give the token of the row's last rightful write; 0 has any holder write it,
// a stale one too.
//
// key has a value for each column of the table's primary key, as encoding/json
// writes it: numbers, strings, booleans, times; a bytea as the string "\\x...".
// reason must say why. Who repaired what, when and why is kept in
// fencing.repairs. Run it as the role that owns schema fencing, which needs
// SELECT and UPDATE on the table.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (no such
// row, a token that was never issued, a table without primary key) come with its
// hint and unwrap to [*pgconn.PgError].
func Repair(ctx context.Context, dsn, table string, key map[string]any, token int64, reason string) error {
	const op = "repair a row of"
	if err := checkName(op, table); err != nil {
		return err
	}
	switch {
	case len(key) == 0:
		return fmt.Errorf("%s %s: no key given: name the row by all columns of the primary key", op, table)
	case token < 0:
		return fmt.Errorf("%s %s: negative token %d: give the token of the row's last rightful write, or 0", op, table, token)
	case strings.TrimSpace(reason) == "":
		return fmt.Errorf("%s %s: no reason given: say why; it is kept in fencing.repairs", op, table)
	}
	text, err := json.Marshal(key)
	if err != nil {
		var cause *json.MarshalerError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fmt.Errorf("%s %s: the key can't be written as JSON: give numbers, strings, booleans or times: %w", op, table, err)
	}
	return callOn(ctx, dsn, op, table,
		`SELECT fencing.repair($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text::pg_catalog.jsonb, $3::pg_catalog.int8, $4::pg_catalog.text)`,
		table, string(text), token, reason)
}
