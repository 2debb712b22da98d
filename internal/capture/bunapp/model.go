package bunapp

import (
	"time"

	"github.com/uptrace/bun"
)

type user struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        int64     `bun:",pk,autoincrement"`
	Name      string    `bun:",notnull"`
	Email     string    `bun:",unique"`
	Age       int       `bun:",nullzero"`
	Active    bool      `bun:",notnull,default:true"`
	Settings  settings  `bun:"type:jsonb"`
	Labels    []string  `bun:",array"`
	Posts     []*post   `bun:"rel:has-many,join:id=user_id"`
	Profile   *profile  `bun:"rel:has-one,join:id=user_id"`
	CreatedAt time.Time `bun:",nullzero,notnull,default:current_timestamp"`
	DeletedAt time.Time `bun:",soft_delete,nullzero"`
}

type settings struct {
	Theme string `json:"theme"`
}

type profile struct {
	bun.BaseModel `bun:"table:profiles,alias:pr"`

	ID     int64 `bun:",pk,autoincrement"`
	UserID int64
	Bio    string
}

type post struct {
	bun.BaseModel `bun:"table:posts,alias:p"`

	ID       int64 `bun:",pk,autoincrement"`
	UserID   int64
	User     *user `bun:"rel:belongs-to,join:user_id=id"`
	Title    string
	Views    int64
	Comments []comment `bun:"rel:has-many,join:id=post_id"`
	Tags     []tag     `bun:"m2m:post_tags,join:Post=Tag"`
}

type comment struct {
	bun.BaseModel `bun:"table:comments,alias:c"`

	ID     int64 `bun:",pk,autoincrement"`
	PostID int64
	Text   string
}

type tag struct {
	bun.BaseModel `bun:"table:tags,alias:t"`

	ID   int64  `bun:",pk,autoincrement"`
	Name string `bun:",unique"`
}

type postTag struct {
	bun.BaseModel `bun:"table:post_tags"`

	PostID int64 `bun:",pk"`
	Post   *post `bun:"rel:belongs-to,join:post_id=id"`
	TagID  int64 `bun:",pk"`
	Tag    *tag  `bun:"rel:belongs-to,join:tag_id=id"`
}

type order struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID     int64 `bun:",pk,autoincrement"`
	UserID int64
	Status string      `bun:",default:'pending'"`
	Total  float64     `bun:"type:numeric(10,2)"`
	Items  []orderItem `bun:"rel:has-many,join:id=order_id"`
}

type orderItem struct {
	bun.BaseModel `bun:"table:order_items,alias:oi"`

	OrderID  int64 `bun:",pk"`
	LineNo   int   `bun:",pk"`
	SKU      string
	Quantity int
	Price    float64
}

type account struct {
	bun.BaseModel `bun:"table:accounts,alias:a"`

	ID      int64 `bun:",pk,autoincrement"`
	Owner   string
	Balance int64
	Version int64
}

type job struct {
	bun.BaseModel `bun:"table:jobs,alias:j"`

	ID      int64 `bun:",pk,autoincrement"`
	Kind    string
	State   string
	Payload []byte
	RunAt   time.Time
}

// models are in the order in which they are created.
func models() []any {
	return []any{(*user)(nil), (*profile)(nil), (*post)(nil), (*comment)(nil), (*tag)(nil), (*postTag)(nil),
		(*order)(nil), (*orderItem)(nil), (*account)(nil), (*job)(nil)}
}
