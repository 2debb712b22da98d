package rules_test

import (
	"fmt"
	"strings"

	"github.com/fencerow/fencerow/rewrite/rules"
)

func ExamplePage() {
	heading, _, _ := strings.Cut(rules.Page("FR101"), "\n")
	fmt.Println(heading)
	// Output: # FR101 unguarded-update
}
