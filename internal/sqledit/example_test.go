package sqledit_test

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
)

func ExampleText_FindClauses() {
	sql := "UPDATE jobs SET state = $1 WHERE id = $2 -- once\nRETURNING id"
	lexed := sqltext.Text{SQL: sql}
	text := sqledit.New(sql, lexed.Significant())
	clauses, ok := text.FindClauses(sqledit.Write{Target: len("UPDATE "), From: -1})
	if !ok {
		return
	}
	text.Insert(text.EndBefore(clauses.SetEnd), ", last_token = $3")
	text.Insert(text.EndBefore(clauses.End), " AND last_token < $3")
	fmt.Println(text.Apply())
	// Output:
	// UPDATE jobs SET state = $1, last_token = $3 WHERE id = $2 AND last_token < $3 -- once
	// RETURNING id
}
