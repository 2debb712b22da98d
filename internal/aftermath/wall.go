package aftermath

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

// What the triggers of fencing.wall end a statement with.
const (
	WallStale      = "FN001"
	WallNoToken    = "FN002"
	WallNotIssued  = "FN003"
	WallNotAllowed = "FN004"
)

// sealTrigger is the trigger of fencing.seal, whose errors have the same codes.
const sealTrigger = "~fencing_zseal"

// RefuseTrigger is what keeps connections of the driver from writing schema
// fencing, and from calling its functions that change something.
const RefuseTrigger = "refuse_driver"

// WallDetail is what an error of the wall says of the write that it ended.
type WallDetail struct {
	Token, Current *string
	Mode           string
	Resource       string // "" is the default token's
	Lease          string // that the table is sealed to; "" if each row names its own
	Operation      string // what was done to the row

	Table    string `json:"-"`
	IsSealed bool   `json:"-"` // the error is the seal's
}

// ReadDetail reads an error of the wall. What it doesn't say stays unknown.
func ReadDetail(err *pgconn.PgError) WallDetail {
	var d WallDetail
	_ = json.Unmarshal([]byte(err.Detail), &d)
	d.IsSealed = err.ConstraintName == sealTrigger
	d.Table = (&check.Table{Schema: err.SchemaName, Name: err.TableName}).String()
	return d
}

// OwnToken is the token that the write carried, 0 if that isn't known.
func (d WallDetail) OwnToken() tokenctx.Token { return tokenOf(d.Token) }

// CurrentToken is the token that the wall went by, 0 if that isn't known.
func (d WallDetail) CurrentToken() tokenctx.Token { return tokenOf(d.Current) }

// NameLease names the lease of a sealed table.
func (d WallDetail) NameLease() string {
	if d.Lease == "" {
		return "the lease that the row names, and is sealed to,"
	}
	return fmt.Sprintf("lease %s, to which the table is sealed,", strings.ReplaceAll(strconv.Quote(d.Lease), "%", "%%"))
}

// tokenOf reads a token, 0 if there is none.
func tokenOf(text *string) tokenctx.Token {
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(*text, 10, 64)
	if err != nil {
		return 0
	}
	return tokenctx.Token(n)
}

// LostToken says how a write that was sent with its token came to the wall without
// it, by what was done to the row there.
func LostToken(kinds []string, operation string) string {
	if operation == "DELETE" && !slices.Contains(kinds, "DELETE") {
		return "a row of protected table %q was to be moved to another partition or deleted by a trigger, which the database refused, since the transaction has no token for the DELETE that this is: run the statement in a transaction that was begun with the token's context"
	}
	if operation == "DELETE" {
		return "DELETE from protected table %q was refused by the database, since the transaction has no token for it, and the text cannot bring one along: write fewer rows in one statement, with one token for all of them, or run it in a transaction that was begun with the token's context"
	}
	return operation + " of protected table %q was refused by the database, since it came there without the token that was sent with it: have the table's own triggers leave the token column alone, and guard what they and the functions that the statement calls write"
}
