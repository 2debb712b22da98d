package lease

import (
	"database/sql"
	"sync"
)

// pollCount counts the polls that are under way over each handle. One writer may block
// many of them, and they must leave connections of the pool for renewals and for work.
type pollCount struct {
	mu sync.Mutex
	n  map[*sql.DB]int
}

var polls = pollCount{n: make(map[*sql.DB]int)}

// sparedConnections is how many connections of a larger pool the polls leave free.
const sparedConnections = 2

// begin counts a poll, and reports whether the pool can spare a connection for it.
func (c *pollCount) begin(db *sql.DB) bool {
	most := db.Stats().MaxOpenConnections
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.n[db] >= max(1, most-sparedConnections) {
		return false
	}
	c.n[db]++
	return true
}

func (c *pollCount) end(db *sql.DB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[db]--; c.n[db] == 0 {
		delete(c.n, db)
	}
}
