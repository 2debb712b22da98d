package gate

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// SearchPath splits the setting search_path into schemas, with "$user"
// replaced by the role.
func SearchPath(setting, user string) ([]string, error) {
	schemas, err := sqltext.SplitNames(setting, ',')
	if err != nil {
		return nil, err
	}
	for i, s := range schemas {
		if s == "$user" {
			schemas[i] = user
		}
	}
	// SET search_path = '' leaves one empty name
	return slices.DeleteFunc(schemas, func(s string) bool { return s == "" }), nil
}
