package sqltext_test

import (
	"fmt"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

func ExampleCheck() {
	fault := sqltext.Check("SELECT '\x00'")
	fmt.Println(fault.Kind == sqltext.NulByte)
	fmt.Println(sqltext.Check("SELECT "+strings.Repeat("+", 100)+"1").Kind == sqltext.LongOperator)
	fmt.Println(sqltext.Check("SELECT 1") == nil)
	// Output:
	// true
	// true
	// true
}

func ExampleRedact() {
	fmt.Println(sqltext.Redact("SELECT name -- of the patient\nFROM patients WHERE id = 4711"))
	// Output: SELECT name FROM patients WHERE id = ?
}

func ExampleSplitNames() {
	names, err := sqltext.SplitNames(`App."Order Items"`, '.')
	fmt.Printf("%q %v\n", names, err)
	// Output: ["app" "Order Items"] <nil>
}
