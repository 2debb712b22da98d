package parser_test

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/parser"
)

func ExampleScan() {
	sql := "UPDATE jobs SET state = 'done' -- at last"
	tokens, err := parser.Scan(sql)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tokens {
		fmt.Println(sql[t.Start:t.End], t.IsLiteral(), t.IsComment())
	}
	// Output:
	// UPDATE false false
	// jobs false false
	// SET false false
	// state false false
	// = false false
	// 'done' true false
	// -- at last false true
}

func ExampleDeparseSelect() {
	statement := parser.ParseMessage("select  1 +\n 2")
	sql, err := parser.DeparseSelect(statement.GetSelectStmt())
	fmt.Println(sql, err)
	// Output: SELECT 1 + 2 <nil>
}
