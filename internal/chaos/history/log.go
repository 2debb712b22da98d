package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// lineMax keeps a line below what a pipe takes as a whole.
const lineMax = 4096

// errMax bounds the text of an error in a line.
const errMax = 300

// Recorder writes operations as lines. Many goroutines may use it.
type Recorder struct {
	clock Clock
	mu    sync.Mutex
	w     io.Writer
}

// NewRecorder returns a recorder that writes each line by one call of Write.
func NewRecorder(w io.Writer, clock Clock) *Recorder { return &Recorder{w: w, clock: clock} }

// Call records that an operation is about to be sent, and returns it with the
// time.
func (r *Recorder) Call(op Op) Op {
	op.Call = r.clock.Now()
	r.write(op)
	return op
}

// Done records how an operation ended.
func (r *Recorder) Done(op Op) {
	op.End = r.clock.Now()
	op.Err = op.Err[:min(len(op.Err), errMax)]
	r.write(op)
}

// write panics if it fails: what isn't recorded must not be done.
func (r *Recorder) write(op Op) {
	line, err := json.Marshal(op)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, err = r.w.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("record operation %d: %v", op.ID, err))
	}
}

// Log collects the lines of all workers. Many goroutines may use it.
type Log struct {
	mu  sync.Mutex
	ops []*Op
	at  map[int64]*Op
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{at: make(map[int64]*Op)} }

// Read adds the lines of one worker until they end, and tells heard of each.
// The last one may be cut off.
func (l *Log) Read(r io.Reader, heard func(Op)) error {
	lines := bufio.NewReaderSize(r, lineMax)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var op Op
		if err := json.Unmarshal(line, &op); err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
		l.Add(op)
		heard(op)
	}
}

// Add adds a line, which has all that the one before has.
func (l *Log) Add(op Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.at[op.ID]
	if !ok {
		known = new(Op)
		l.ops, l.at[op.ID] = append(l.ops, known), known
	}
	*known = op
}

// Ops returns all operations, those without an end as unknown.
func (l *Log) Ops() []Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	ops := make([]Op, len(l.ops))
	for i, op := range l.ops {
		ops[i] = *op
		if op.End == 0 {
			ops[i].End, ops[i].Outcome = Never, Unknown
		}
	}
	return ops
}
