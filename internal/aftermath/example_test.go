package aftermath_test

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/aftermath"
)

// An error of the wall says which token a write carried, and which one it met.
func Example() {
	detail := aftermath.ReadDetail(&pgconn.PgError{
		Code: aftermath.WallStale, SchemaName: "public", TableName: "orders",
		Detail: `{"token": "7", "current": "8", "mode": "strict", "operation": "UPDATE"}`,
	})
	fmt.Println(detail.Operation, detail.Table, detail.OwnToken(), detail.CurrentToken())
	// Output: UPDATE orders 7 8
}
