package wordsearch_test

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/wordsearch"
)

func ExampleTable_Search() {
	table := wordsearch.New(map[string]wordsearch.Meaning{"orders": wordsearch.Hit, "update": wordsearch.Write})
	for _, text := range []string{"SELECT * FROM Orders", "UPDATE jobs SET state = 1", "SELECT orders_id"} {
		hit, found := table.Search(text)
		fmt.Printf("%q %t\n", hit, found&wordsearch.Write != 0)
	}
	// Output:
	// "Orders" false
	// "" true
	// "" false
}

func ExampleEachWord() {
	sql := "INSERT INTO jobs VALUES ($1, 'a') -- one"
	ok := wordsearch.EachWord(sql, func(kind wordsearch.Sign, start, end int) {
		if kind == wordsearch.Placeholder || kind == wordsearch.StringLiteral {
			fmt.Println(sql[start:end])
		}
	})
	fmt.Println(ok)
	// Output:
	// $1
	// 'a'
	// true
}
