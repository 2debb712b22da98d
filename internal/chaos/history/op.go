// Package history is what a run of the chaos test remembers: what each worker
// asked for and was told, what was done to them and to the servers, and the
// order in which the database itself says that it took the writes.
//
// A worker records an operation twice, before it is sent and after its end:
//
//	rec := history.NewRecorder(os.Stdout, start)
//	op := rec.Call(history.Op{ID: 17, Kind: history.Update, Row: 3, Token: 8})
//	_, err := db.ExecContext(ctx, ...)
//	op.Outcome = history.OK
//	rec.Done(op)
//
// Who reads the lines puts the two together with a [Log]. An operation whose
// second line is missing, because its worker was killed, has an unknown outcome.
package history

import (
	"math"

	"golang.org/x/sys/unix"
)

// Kind is what an operation does.
type Kind string

// The kinds.
const (
	Take    Kind = "take"    // asks for the lease of a resource
	Draw    Kind = "draw"    // draws a token without a lease
	Release Kind = "release" // ends a lease
	Claim   Kind = "claim"   // raises a row's token, and reads its value
	Update  Kind = "update"  // writes a row
	Upsert  Kind = "upsert"  // writes a row by INSERT ... ON CONFLICT
	Both    Kind = "both"    // writes a row and inserts an entry in one transaction
	Strict  Kind = "strict"  // writes a row of the table in mode strict
	Insert  Kind = "insert"  // inserts an entry
	Read    Kind = "read"    // reads a row
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes. What is not written down ended as Unknown.
const (
	OK      Outcome = "ok"
	Stale   Outcome = "stale"   // rejected: the row carries a newer token
	Replay  Outcome = "replay"  // rejected: the row carries this very token
	Refused Outcome = "refused" // for certain not applied, for another reason
	None    Outcome = "none"    // no error and no row
	Unknown Outcome = "unknown"
)

// Never is the end of an operation that has none.
const Never = math.MaxInt64

// Op is one operation of a worker. Times are those of the run's [Clock].
type Op struct {
	ID       int64   `json:"id"`
	Worker   int     `json:"worker,omitempty"`
	Client   string  `json:"client,omitempty"`
	Kind     Kind    `json:"kind,omitempty"`
	Call     int64   `json:"call,omitempty"`
	End      int64   `json:"end,omitempty"`
	Outcome  Outcome `json:"out,omitempty"`
	Resource string  `json:"res,omitempty"`
	Row      int64   `json:"row,omitempty"`
	Token    int64   `json:"token,omitempty"`
	Value    int64   `json:"value,omitempty"`   // what a Read or Claim has read: the ID of the last write
	Base     int64   `json:"base,omitempty"`    // of a write: the operation under this token by which its sender knew the row
	Current  int64   `json:"current,omitempty"` // of a Stale one: the token that is newer
	Err      string  `json:"err,omitempty"`
}

// Writes reports whether the operation gives a row another value.
func (o Op) Writes() bool {
	return o.Kind == Update || o.Kind == Upsert || o.Kind == Both || o.Kind == Strict
}

// Raises reports whether the operation leaves its token in a row.
func (o Op) Raises() bool { return o.Kind == Claim || o.Writes() }

// Enters reports whether the operation inserts an entry.
func (o Op) Enters() bool { return o.Kind == Insert || o.Kind == Both }

// Grants reports whether the operation got a token.
func (o Op) Grants() bool { return (o.Kind == Take || o.Kind == Draw) && o.Outcome == OK }

// Clock is the start of a run by the machine's monotonic clock, which all
// processes share.
type Clock int64

// NewClock returns a clock that starts now.
func NewClock() Clock { return Clock(Clock(0).Now()) }

// Now is the time since the start, in nanoseconds.
func (c Clock) Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock is one of POSIX
	}
	return ts.Nano() - int64(c)
}
