package gormapp

import (
	"time"

	"gorm.io/gorm"
)

// User has soft deletes, associations of all kinds and a reference to itself.
type User struct {
	gorm.Model
	Name      string `gorm:"size:100;not null;index"`
	Email     string `gorm:"uniqueIndex;not null"`
	Age       *int
	Active    bool `gorm:"default:true"`
	Role      string
	ManagerID *uint
	Manager   *User
	Profile   Profile
	Posts     []Post
	Languages []Language `gorm:"many2many:user_languages"`
	Photos    []Photo    `gorm:"polymorphic:Owner"`
}

// Profile is a user's, one each.
type Profile struct {
	ID      uint
	UserID  uint `gorm:"uniqueIndex"`
	Bio     string
	Address Address        `gorm:"embedded;embeddedPrefix:addr_"`
	Tags    map[string]any `gorm:"serializer:json;type:jsonb"`
}

// Address is embedded in a profile.
type Address struct{ Street, City string }

// Language is shared by users.
type Language struct {
	Code string `gorm:"primaryKey;size:8"`
	Name string
}

// Photo belongs to a row of any table.
type Photo struct {
	ID        uint
	URL       string
	OwnerID   uint
	OwnerType string
}

// Post has comments and shares tags.
type Post struct {
	ID        uint
	UserID    uint `gorm:"index:idx_posts_user_created,priority:1"`
	User      User `gorm:"constraint:OnUpdate:CASCADE,OnDelete:CASCADE"`
	Title     string
	Body      string
	Views     int64 `gorm:"check:views >= 0"`
	Comments  []Comment
	Tags      []Tag     `gorm:"many2many:post_tags"`
	CreatedAt time.Time `gorm:"index:idx_posts_user_created,priority:2,sort:desc"`
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
}

// Comment belongs to a post.
type Comment struct {
	ID     uint
	PostID uint
	Author string
	Text   string `gorm:"comment:what was said"`
}

// Tag is shared by posts.
type Tag struct {
	ID   uint
	Name string `gorm:"uniqueIndex"`
}

// Order is bought by a user.
type Order struct {
	ID        uint
	UserID    uint
	Status    string `gorm:"type:varchar(20);default:pending;index:idx_orders_open,where:status = 'pending'"`
	Total     float64
	Items     []OrderItem
	CreatedAt time.Time
}

// OrderItem has a key of two columns.
type OrderItem struct {
	OrderID  uint `gorm:"primaryKey;autoIncrement:false"`
	LineNo   int  `gorm:"primaryKey;autoIncrement:false"`
	SKU      string
	Quantity int
	Price    float64
}

// Account is updated under an optimistic lock.
type Account struct {
	ID        uint
	Owner     string
	Balance   int64
	Version   int64
	UpdatedAt int64 `gorm:"autoUpdateTime:milli"`
}

// Job is a row of a hand-made queue.
type Job struct {
	ID       string `gorm:"type:uuid;primaryKey;default:gen_random_uuid()"`
	Kind     string
	State    string
	Payload  []byte
	RunAt    time.Time
	LockedBy *string
	Attempts int
}
