package gormapp

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/fencerow/fencerow/internal/capture/record"
)

func (a app) reads() []record.Step {
	return []record.Step{
		step("find", a.find),
		step("where", a.where),
		step("joins", a.joins),
		step("group", a.group),
		step("count and pluck", a.countAndPluck),
		step("subquery", a.subquery),
		{Op: "iterate", Do: a.iterate},
		step("first or create", func() []*gorm.DB {
			var u User
			return chains(
				a.db.FirstOrInit(&User{}, User{Name: "zoe"}),
				a.db.Where(User{Email: "gil@example.com"}).Attrs(User{Name: "gil"}).FirstOrCreate(&u),
				a.db.Where(User{Email: "gil@example.com"}).Assign(User{Role: "staff"}).FirstOrCreate(&u),
			)
		}),
	}
}

func (a app) find() []*gorm.DB {
	var u User
	var users []User
	return chains(
		a.db.First(&u),
		a.db.Take(&User{}),
		a.db.Last(&User{}),
		a.db.First(&User{}, 1),
		a.db.First(&User{}, "email = ?", "ann@example.com"),
		a.db.Find(&users),
		a.db.Find(&users, []int{1, 2, 3}),
		a.db.First(&OrderItem{OrderID: 1, LineNo: 1}),
		a.db.Limit(10).Offset(5).Order("age desc, name").Find(&users),
		a.db.Table("users").Select("id", "name").Where("id = ?", 1).Scan(&users),
		a.db.Model(&User{}).Select("name, coalesce(age, ?) AS age", 18).Find(&users),
		a.db.Distinct("name", "age").Order("name").Find(&users),
		a.db.Omit("email").Find(&users),
		a.db.Unscoped().Where("age > 20").Find(&users),
		a.db.Model(&User{}).Select("id", "name").Limit(1).Find(&struct {
			ID   uint
			Name string
		}{}),
	)
}

func (a app) where() []*gorm.DB {
	var users []User
	type m = map[string]any
	return chains(
		a.db.Where("name = ? AND age >= ?", "ann", 18).Find(&users),
		a.db.Where("name IN ?", []string{"ann", "bob"}).Find(&users),
		a.db.Where("name LIKE ?", "%a%").Find(&users),
		a.db.Where("created_at BETWEEN ? AND ?", now.Add(-time.Hour), now).Find(&users),
		a.db.Where("(name, role) IN ?", [][]any{{"ann", "admin"}, {"bob", ""}}).Find(&users),
		a.db.Where(&User{Name: "ann", Role: "admin"}).Find(&users),
		a.db.Where(&User{Name: "ann"}, "name", "Role").Find(&users),
		a.db.Where(m{"name": "ann", "age": 30}).Find(&users),
		a.db.Where(m{"role": nil}).Find(&users),
		a.db.Where("name = @name OR email = @name", m{"name": "ann"}).Find(&users),
		a.db.Not("name = ?", "ann").Find(&users),
		a.db.Not(m{"name": []string{"ann", "bob"}}).Find(&users),
		a.db.Where("role = ?", "admin").Or("age < ?", 20).Find(&users),
		a.db.Where(a.db.Where("name = ?", "ann").Or("name = ?", "bob")).Where("active = ?", true).Find(&users),
		a.db.Where("age IS NOT NULL").Where("NOT active").Find(&users),
		a.db.Where("email ~* ?", "^[a-z]+@").Find(&users),
	)
}

func (a app) joins() []*gorm.DB {
	var users []User
	var posts []Post
	type row struct{ Name, Title string }
	var rows []row
	return chains(
		a.db.Joins("Profile").Find(&users),
		a.db.Joins("Manager").Where(`"Manager".name = ?`, "ann").Find(&users),
		a.db.InnerJoins("User").Find(&posts),
		a.db.Joins("Profile", a.db.Where(&Profile{Bio: "hi"})).Find(&users),
		a.db.Model(&User{}).Select("users.name, posts.title").Joins("left join posts on posts.user_id = users.id").Scan(&rows),
		a.db.Table("users u").Select("u.name, p.title").Joins("JOIN posts p ON p.user_id = u.id AND p.views > ?", -1).Scan(&rows),
		a.db.Table("(?) AS t", a.db.Model(&User{}).Select("name, role AS title")).Where("t.title = ?", "admin").Find(&rows),
		a.db.Joins("JOIN (?) latest ON latest.user_id = users.id", a.db.Model(&Post{}).Select("user_id, max(id) AS id").Group("user_id")).Find(&users),
	)
}

func (a app) group() []*gorm.DB {
	type row struct {
		Role  string
		Total int
	}
	var rows []row
	return chains(
		a.db.Model(&User{}).Select("role, count(*) AS total").Group("role").Having("count(*) > ?", 0).Find(&rows),
		a.db.Model(&User{}).Select("role, sum(age) AS total").Group("role").Order("total desc nulls last").Find(&rows),
		a.db.Table("orders").Select("date_trunc('day', created_at)::text AS role, sum(total)::int AS total").Group("date_trunc('day', created_at)").Scan(&rows),
	)
}

func (a app) countAndPluck() []*gorm.DB {
	var n int64
	var names []string
	var age float64
	return chains(
		a.db.Model(&User{}).Count(&n),
		a.db.Model(&User{}).Where("age > ?", 18).Count(&n),
		a.db.Model(&User{}).Distinct("name").Count(&n),
		a.db.Model(&User{}).Group("role").Count(&n),
		a.db.Model(&User{}).Pluck("name", &names),
		a.db.Model(&User{}).Distinct().Pluck("Name", &names),
		a.db.Model(&User{}).Select("coalesce(avg(age), 0)").Scan(&age),
		a.db.Model(&User{}).Select("1").Where("email = ?", "ann@example.com").Limit(1).Scan(&n),
	)
}

func (a app) subquery() []*gorm.DB {
	var users []User
	avg := a.db.Model(&User{}).Select("avg(age)")
	return chains(
		a.db.Where("age > (?)", avg).Find(&users),
		a.db.Where("id IN (?)", a.db.Model(&Post{}).Select("user_id").Where("views >= ?", 0)).Find(&users),
		a.db.Where("EXISTS (?)", a.db.Model(&Post{}).Select("1").Where("posts.user_id = users.id")).Find(&users),
		a.db.Model(&User{}).Select("role, max(age) AS age").Group("role").Having("avg(age) >= (?)", avg).Find(&users),
		a.db.Table("(?) AS u, (?) AS t", a.db.Model(&User{}).Select("name"), a.db.Model(&Tag{}).Select("name AS tag")).Select("u.name").Scan(&[]string{}),
	)
}

// iterate reads in batches, and row by row.
func (a app) iterate(context.Context) error {
	var users []User
	batches := a.db.Where("id > ?", 0).FindInBatches(&users, 4, func(*gorm.DB, int) error { return nil })
	rows, err := a.db.Model(&User{}).Where("role = ?", "admin").Rows()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := a.db.ScanRows(rows, &User{}); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(batches.Error, rows.Err(), rows.Close())
}
