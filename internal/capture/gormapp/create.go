package gormapp

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) creates() []record.Step {
	db := a.db
	return []record.Step{
		step("create", func() []*gorm.DB {
			return chains(
				db.Create(&User{Name: "ann", Email: "ann@example.com", Age: ptr(30), Role: "admin"}),
				db.Create(&Account{Owner: "ann", Balance: 100}),
				db.Create(&Order{UserID: 1, Total: 12.5}),
				db.Create(&Job{Kind: "mail", State: "queued", Payload: []byte("{}"), RunAt: now}),
				db.Create(&OrderItem{OrderID: 1, LineNo: 1, SKU: "a-1", Quantity: 2, Price: 6.25}),
			)
		}),
		step("create with associations", func() []*gorm.DB {
			return chains(
				db.Create(&User{
					Name: "bob", Email: "bob@example.com", ManagerID: ptr(uint(1)),
					Profile:   Profile{Bio: "hi", Address: Address{"1 Main St", "Oslo"}, Tags: map[string]any{"x": 1}},
					Posts:     []Post{{Title: "one", Comments: []Comment{{Author: "ann", Text: "ok"}}, Tags: []Tag{{Name: "go"}, {Name: "sql"}}}, {Title: "two"}},
					Languages: []Language{{Code: "en", Name: "English"}, {Code: "no", Name: "Norsk"}},
					Photos:    []Photo{{URL: "a.png"}},
				}),
			)
		}),
		step("create some columns", func() []*gorm.DB {
			return chains(
				db.Select("Name", "Email").Create(&User{Name: "cec", Email: "cec@example.com"}),
				db.Omit("Role", clause.Associations).Create(&User{Name: "dan", Email: "dan@example.com"}),
			)
		}),
		step("create bulk", func() []*gorm.DB {
			return chains(
				db.Create([]User{{Name: "eve", Email: "eve@example.com"}, {Name: "fay", Email: "fay@example.com"}}),
				db.CreateInBatches(manyUsers(5), 2),
				db.Create(&[]OrderItem{{OrderID: 1, LineNo: 2, SKU: "b-1", Quantity: 1}, {OrderID: 1, LineNo: 3, SKU: "c-1", Quantity: 4}}),
			)
		}),
		step("create from maps", func() []*gorm.DB {
			return chains(
				db.Model(&Account{}).Create(map[string]any{"Owner": "bob", "Balance": 50}),
				db.Model(&Account{}).Create(&[]map[string]any{{"Owner": "cec", "Balance": 5}, {"Owner": "dan", "Balance": 7}}),
				db.Table("accounts").Create(map[string]any{"owner": "eve", "balance": clause.Expr{SQL: "(SELECT max(balance) FROM accounts)"}}),
				db.Model(&Account{}).Create(map[string]any{"owner": gorm.Expr("upper(?)", "fay"), "balance": 0}),
			)
		}),
		step("create returning", func() []*gorm.DB {
			return chains(
				db.Clauses(clause.Returning{}).Create(&Tag{Name: "returned"}),
				db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "created_at"}}}).Create(&Post{UserID: 1, Title: "three"}),
			)
		}),
	}
}

func manyUsers(n int) []User {
	users := make([]User, n)
	for i := range users {
		users[i] = User{Name: fmt.Sprint("user", i), Email: fmt.Sprintf("user%d@example.com", i)}
	}
	return users
}
