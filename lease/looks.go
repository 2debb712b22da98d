package lease

import (
	"database/sql"
	"sync"
)

// lookCount counts the looks that are under way over each handle. Many of them
// may be held up by one writer, and must leave the pool connections for renewals
// and for the work.
type lookCount struct {
	mu sync.Mutex
	n  map[*sql.DB]int
}

var looks = lookCount{n: make(map[*sql.DB]int)}

// spared is how many connections of a pool looks leave, if it has more.
const spared = 2

// begin counts a look, and reports whether the pool can spare its connection.
func (c *lookCount) begin(db *sql.DB) bool {
	most := db.Stats().MaxOpenConnections
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.n[db] >= max(1, most-spared) {
		return false
	}
	c.n[db]++
	return true
}

func (c *lookCount) end(db *sql.DB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[db]--; c.n[db] == 0 {
		delete(c.n, db)
	}
}
