//go:build go1.27

package driver

import (
	sqldriver "database/sql/driver"
	"reflect"
)

func init() { optional = append(optional, reflect.TypeFor[sqldriver.RowsColumnScanner]()) }
