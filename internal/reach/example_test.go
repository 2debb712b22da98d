package reach_test

import (
	"context"
	"fmt"

	"github.com/fencerow/fencerow/internal/reach"
)

// savedCatalog answers like a server in which the view recent is over the table
// orders, and orders follows the key code of customers by a foreign key ON UPDATE
// CASCADE. A function of one statement deletes from recent.
type savedCatalog struct{}

func (savedCatalog) Query(context.Context, string, ...string) ([][]string, error) {
	return [][]string{{"1", "2", `{
		"Held": [[0, 16001]],
		"Relations": [
			{"OID": "16001", "Schema": "public", "Name": "orders", "IsTable": true},
			{"OID": "16002", "Schema": "public", "Name": "customers", "IsTable": true},
			{"OID": "16003", "Schema": "public", "Name": "recent"}
		],
		"Views": [[16001, 16003]],
		"Keys": [{"Child": "16001", "Parent": "16002", "Delete": "a", "Update": "c", "From": ["customer"], "To": ["code"]}],
		"Routines": [{"OID": "16004", "Schema": "public", "Name": "clean", "Language": "sql", "Source": "DELETE FROM recent WHERE id < 1000"}]
	}`}}, nil
}

func (savedCatalog) ParameterStatus(name string) string {
	return map[string]string{"server_encoding": "UTF8", "client_encoding": "UTF8"}[name]
}

func Example() {
	tables := []reach.Table{{Schema: "public", Name: "orders", TokenColumn: "last_token", IsChosen: true}}
	catalog, err := reach.Read(context.Background(), savedCatalog{}, tables)
	if err != nil {
		panic(err)
	}
	closure := catalog.Closure(tables, nil)
	fmt.Println("views over it:", closure.Views)
	fmt.Println("functions that write it:", closure.Functions)
	for _, c := range closure.Cascades {
		fmt.Printf("an UPDATE of %s.%s cascades into %s\n", c.Name.Name, c.UpdateOf[0], c.Into.Name)
	}
	// Output:
	// views over it: [recent]
	// functions that write it: [clean]
	// an UPDATE of customers.code cascades into orders
}
