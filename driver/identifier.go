package driver

import (
	"fmt"
	"slices"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// splitName reads a table's name as SQL writes it, with or without a schema.
func splitName(name string) (schema, table string, err error) {
	parts, err := sqltext.SplitNames(name, '.')
	if err != nil || len(parts) == 0 || len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("fencerow: malformed table name %q: write it as in SQL, such as orders, app.orders or \"Order Items\"", name)
	}
	if len(parts) == 1 {
		return "", parts[0], nil
	}
	return parts[0], parts[1], nil
}
