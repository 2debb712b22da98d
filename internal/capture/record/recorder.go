package record

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Statement is one line of a file of captured statements.
type Statement struct {
	Library string   `json:"library"`
	Op      string   `json:"op"` // what the program was doing
	SQL     string   `json:"sql"`
	Args    []string `json:"args"` // Go types of the bound values
}

// Recorder collects the distinct statements of one library.
type Recorder struct {
	library string

	mu         sync.Mutex
	op         string
	paused     bool
	unordered  map[string]bool // operations whose statements race
	statements []*Statement
	byText     map[string]*Statement
}

func newRecorder(library string) *Recorder {
	return &Recorder{library: library, byText: make(map[string]*Statement), unordered: make(map[string]bool)}
}

// setOp names what the statements from here on are sent for.
func (r *Recorder) setOp(op string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.op = op
}

// setPaused says that the statements from here on are not the library's.
func (r *Recorder) setPaused(paused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = paused
}

// executed notes a statement with the values bound to it. A text that was only
// prepared before gets its arguments here.
func (r *Recorder) executed(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused {
		return
	}
	s := r.statement(sql)
	if len(s.Args) == 0 {
		s.Args = typeNames(args)
	}
}

// prepared notes a statement whose arguments are not known yet.
func (r *Recorder) prepared(sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.paused {
		r.statement(sql)
	}
}

// statement returns the entry for a text, made if it is new.
func (r *Recorder) statement(sql string) *Statement {
	sql = normalize(sql)
	s := r.byText[sql]
	if s == nil {
		s = &Statement{Library: r.library, Op: r.op, SQL: sql, Args: []string{}}
		r.byText[sql] = s
		r.statements = append(r.statements, s)
	}
	return s
}

// sorted returns the statements by operation, and in each as they came.
func (r *Recorder) sorted() []*Statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.statements)
	slices.SortStableFunc(out, func(a, b *Statement) int {
		if a.Op == b.Op && r.unordered[a.Op] {
			return strings.Compare(a.SQL, b.SQL)
		}
		return strings.Compare(a.Op, b.Op)
	})
	return out
}

func typeNames(args []any) []string {
	names := make([]string, len(args))
	for i, arg := range args {
		names[i] = fmt.Sprintf("%T", arg)
	}
	return names
}
