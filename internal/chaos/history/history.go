package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// History is all of a run.
type History struct {
	Ops []Op `json:"-"`

	Sync      bool       // replication is synchronous
	Sealed    bool       // the tables are sealed: a grant itself shuts older holders out
	End       int64      // of the last operation
	Faults    []Fault    // what the nemesis did
	Failovers []Failover // in their order
	Writes    []Write    // the database's record of accepted writes, by row and number
	Leases    []Lease    // and of leases taken, in the order of their numbers
	Entries   []Entry    // what has been inserted
	Final     []State    // of the rows that were written, read when all was over
}

// Fault is one thing that the nemesis did.
type Fault struct {
	Kind       string
	Worker     int // whom it hit; 0 for a server
	Start, End int64
}

// Failover is the promotion of the standby.
type Failover struct {
	Hold  int64   // the standby has what was acknowledged before
	Kill  int64   // the primary was up until here
	Up    int64   // the new one had been read, and the workers were not let in before
	State []State // what it had then
}

// State is a row at one moment; rows that never were written are left out.
type State struct{ Row, Value, Token int64 }

// Write is what a trigger has recorded of an accepted write to a row, in the
// same transaction. Seq numbers the writes of a row, counted in the row itself.
type Write struct {
	Row, Seq           int64
	Strict             bool
	Op                 int64 // the operation that the statement names
	OldValue, NewValue int64
	OldToken, NewToken int64
}

// Lease is what a trigger has recorded of a lease that was taken. Seq is drawn
// while the lease's row is locked, so it orders the leases of a resource.
type Lease struct {
	Seq                int64
	Resource           string
	OldToken, NewToken int64
}

// Entry is a row of the table of entries.
type Entry struct{ Op, Token int64 }

// The files of a history.
const (
	opsFile  = "operations.jsonl"
	restFile = "database.json"
)

// Save writes the history into a directory, for [Load].
func (h *History) Save(dir string) (err error) {
	rest, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, restFile), rest, 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, opsFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	for _, op := range h.Ops {
		if err := lines.Encode(op); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Load reads a history that was saved.
func Load(dir string) (*History, error) {
	h := new(History)
	rest, err := os.ReadFile(filepath.Join(dir, restFile))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(rest, h); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, opsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := json.NewDecoder(bufio.NewReader(f)); ; {
		var op Op
		if err := lines.Decode(&op); err == io.EOF {
			return h, nil
		} else if err != nil {
			return nil, err
		}
		h.Ops = append(h.Ops, op)
	}
}
