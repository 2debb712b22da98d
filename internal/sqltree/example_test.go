package sqltree_test

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/sqltree"
)

func ExampleParse() {
	statements, err := sqltree.Parse("UPDATE jobs SET state = $1, owner = $2")
	if err != nil {
		fmt.Println(err)
		return
	}
	update := statements[0].Get("stmt")
	fmt.Println(update.Kind(), update.Get("relation").Str("relname"))
	for _, item := range update.List("targetList") {
		number, _ := item.Get("val").Number("number")
		fmt.Println(item.Str("name"), number)
	}
	// Output:
	// UpdateStmt jobs
	// state 1
	// owner 2
}
