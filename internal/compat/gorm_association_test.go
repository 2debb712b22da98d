package compat

import (
	"gorm.io/gorm"
)

// Item is of an order, and protected too.
type Item struct {
	ID        int64
	OrderID   *int64
	Order     *Order
	SKU       string
	LastToken int64
}

// BareItem leaves the token to fencerow.
type BareItem struct {
	ID      int64
	OrderID *int64
	SKU     string
}

// TableName is where GORM keeps BareItem.
func (BareItem) TableName() string { return "items" }

// Parent is an order with its items.
type Parent[I any] struct {
	ID     int64
	Status string
	Items  []I `gorm:"foreignKey:OrderID"`
}

// TableName is where GORM keeps Parent.
func (Parent[I]) TableName() string { return "orders" }

func (g gormApp) associations() []op {
	item := func(id int64) Item { return Item{ID: id, SKU: "mine", LastToken: forged} }
	if _, bare := g.one(0).(*BareOrder); bare {
		return associationsOf(g, func(id int64) BareItem { return BareItem{ID: id, SKU: "mine"} })
	}
	return append(associationsOf(g, item),
		g.steps("belongs to, create", rows{"i3": "o1 mine 8"}, func(db *gorm.DB) error {
			i := item(0)
			i.Order = &Order{ID: 1, Status: "not written", LastToken: forged}
			return db.Create(&i).Error
		}).of(func(o *op) { o.kind = inserts }),
		g.steps("belongs to, replace", rows{"i1": "o2 theirs 8"}, func(db *gorm.DB) error {
			return db.Model(&Item{ID: 1}).Association("Order").Replace(&Order{ID: 2})
		}).of(meeting("i1")),
		g.steps("belongs to, clear", rows{"i1": "none theirs 8"}, func(db *gorm.DB) error {
			return db.Model(&Item{ID: 1}).Association("Order").Clear()
		}).of(meeting("i1")))
}

// associationsOf are those of an order with many items.
func associationsOf[I any](g gormApp, item func(id int64) I) []op {
	items := func(db *gorm.DB, of int64) *gorm.Association {
		return db.Model(&Parent[I]{ID: of}).Association("Items")
	}
	one := func(items ...I) *Parent[I] { return &Parent[I]{ID: 1, Status: "mine", Items: items} }
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	kept := func(changes rows) func(*op) { // what is not in one transaction with the rest
		return func(o *op) {
			if o.meets = []string{"i1"}; g.alone {
				o.keeps = changes
			}
		}
	}
	return []op{
		g.steps("has many, create", rows{"o4": "mine 8", "i3": "o4 mine 8", "i4": "o4 mine 8"}, func(db *gorm.DB) error {
			return db.Create(&Parent[I]{Status: "mine", Items: []I{item(0), item(0)}}).Error
		}).of(func(o *op) { o.kind = inserts }),
		g.steps("has many, save with the parent", rows{"o1": "mine 8", "i1": "o1 theirs 8", "i3": "o1 mine 8"}, func(db *gorm.DB) error {
			return db.Save(one(item(1), item(0))).Error
		}),
		g.steps("has many, save in full", rows{"o1": "mine 8", "i1": "o1 mine 8"}, func(db *gorm.DB) error {
			return full(db).Save(one(item(1))).Error
		}).of(kept(rows{"o1": "mine 8"})),
		g.steps("has many, update in full", rows{"o1": "mine 8", "i1": "o1 mine 8"}, func(db *gorm.DB) error {
			return full(db).Updates(one(item(1))).Error
		}).of(kept(rows{"o1": "mine 8"})),
		g.steps("has many, append new", rows{"i3": "o1 mine 8"}, func(db *gorm.DB) error {
			i := item(0)
			return items(db, 1).Append(&i)
		}).of(func(o *op) { o.kind = inserts }),
		g.steps("has many, append another's", rows{"i1": "o2 theirs 8"}, func(db *gorm.DB) error {
			i := item(1)
			return items(db, 2).Append(&i)
		}).of(meeting("i1")),
		g.steps("has many, replace", rows{"i1": "none theirs 8", "i2": "none theirs 8", "i3": "o1 mine 8"}, func(db *gorm.DB) error {
			i := item(0)
			return items(db, 1).Replace(&i)
		}).of(func(o *op) { o.meets, o.keeps = []string{"i1", "i2"}, rows{"i3": "o1 mine 8"} }),
		g.steps("has many, replace in a transaction", rows{"i1": "none theirs 8", "i2": "none theirs 8", "i3": "o1 mine 8"}, func(db *gorm.DB) error {
			i := item(0)
			return db.Transaction(func(tx *gorm.DB) error { return items(tx, 1).Replace(&i) })
		}).of(meeting("i1", "i2")),
		g.steps("has many, take out", rows{"i1": "none theirs 8"}, func(db *gorm.DB) error {
			i := item(1)
			return items(db, 1).Delete(&i)
		}).of(meeting("i1")),
		g.steps("has many, delete", rows{"i1": ""}, func(db *gorm.DB) error {
			i := item(1)
			return items(db, 1).Unscoped().Delete(&i)
		}).of(meeting("i1")),
		g.steps("has many, clear", rows{"i1": "none theirs 8", "i2": "none theirs 8"}, func(db *gorm.DB) error {
			return items(db, 1).Clear()
		}).of(meeting("i1", "i2")),
		g.steps("has many, delete with the parent", rows{"o1": "", "i1": "", "i2": ""}, func(db *gorm.DB) error {
			return db.Select("Items").Delete(&Parent[I]{ID: 1}).Error
		}).of(meeting("i1", "i2")),
		g.steps("has many, preload", nil, func(db *gorm.DB) error {
			return db.Preload("Items").First(&Parent[I]{}, 1).Error
		}).of(func(o *op) { o.kind = reads }),
	}
}
