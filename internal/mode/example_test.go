package mode_test

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/mode"
)

func ExampleParse() {
	fmt.Println(mode.Parse("lease"))
	fmt.Println(mode.Parse("loose"))
	// Output:
	// lease <nil>
	//  unknown mode "loose": choose strict (one write per token and row) or lease (a holder writes as often as it likes)
}
