package compat

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

// op is something that a program does through a library.
type op struct {
	name string
	do   func(ctx context.Context) (affected int64, err error)

	changes  rows     // what it does to the rows, as the holder
	affected int64    // the rows that it counts then; untold if the library doesn't
	err      error    // what it returns then
	meets    []string // the rows that have been written under a newer token, where that isn't o1 alone

	kind   kind
	goesOn bool // the program takes the stale answer and goes on
	keeps  rows // what it has changed before the stale answer, outside of a transaction, or goes on to change
	twice  bool // it writes a row more than once, which isn't for strict mode
	fenced bool // it names the token, and wouldn't run without fencerow
}

const untold = -1

// kind is what an operation compares.
type kind int

const (
	compares kind = iota
	inserts       // or finds no row: there is no token to compare with
	reads         // no token is needed
	hides         // the driver can't tell a stale write from one that finds no row, which is no error
)

// library is one way to use a library. Each column of the table is of one or more.
type library struct {
	column, use string
	ops         func(*testing.T, *env) []op
}

var libraries = slices.Concat(gormLibraries, bunLibraries, []library{
	{"sqlx", "", sqlxOps}, {"sqlc", "", sqlcOps}, {"ent", "", entOps},
})

// TestCompat runs each operation of each library, in each state of the token and
// under each kind of protection.
func TestCompat(t *testing.T) {
	table := newTable()
	t.Cleanup(func() { table.print(t) })
	for name, s := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, s)
			for _, lib := range libraries {
				for _, o := range lib.ops(t, e) {
					for _, state := range states {
						if !state.applies(s, o) {
							continue
						}
						ok := t.Run(lib.column+"/"+lib.use+"/"+o.name+"/"+state.name, func(t *testing.T) { state.check(t, e, o) })
						table.note(lib.column, o, state.name, name, ok)
					}
				}
			}
		})
	}
}

// state is what the context carries, compared with the rows.
type state struct {
	name    string
	applies func(setting, op) bool
	check   func(*testing.T, *env, op)
}

var states = []state{
	{"holder", func(s setting, o op) bool {
		return !(s.mode == "" && o.fenced) && !(s.mode == migrations.Strict && o.twice)
	}, checkHolder},
	{"stale", func(s setting, _ op) bool { return s.mode == migrations.Lease }, checkStale},
	{"replay", func(s setting, o op) bool { return s.mode == migrations.Strict && !o.twice && o.kind == compares }, checkReplay},
	{"no token", func(s setting, _ op) bool { return s.mode == migrations.Lease }, checkNoToken},
}

func checkHolder(t *testing.T, e *env, o op) {
	before := e.reset(t, older)
	checkDone(t, e, o, before)
}

func checkDone(t *testing.T, e *env, o op, before rows) {
	t.Helper()
	affected, err := o.do(tokenctx.With(t.Context(), holder))
	if o.err != nil {
		require.ErrorIs(t, err, o.err)
	} else {
		require.NoError(t, err)
	}
	after, want := e.read(t), before.with(o.changes)
	if e.unprotected { // the same, but for the tokens
		after, want = after.withoutTokens(), want.withoutTokens()
	}
	require.Equal(t, want, after)
	require.Equal(t, o.affected, affected, "rows affected")
}

func (o op) met() []string {
	if o.meets == nil {
		return []string{"o1"}
	}
	return o.meets
}

func checkStale(t *testing.T, e *env, o op) {
	before := e.reset(t, newer, o.met()...)
	if o.kind == inserts || o.kind == reads {
		checkDone(t, e, o, before)
		return
	}
	affected, err := o.do(tokenctx.With(t.Context(), holder))
	require.Equal(t, before.with(o.keeps), e.read(t))
	switch {
	case o.goesOn:
		require.NoError(t, err)
	case o.kind == hides: // the statement doesn't tell which row it meant
		require.ErrorIs(t, err, driver.ErrUndetermined)
	default:
		require.ErrorIs(t, err, tokenctx.ErrStale)
	}
	if affected != untold {
		require.Zero(t, affected, "rows affected")
	}
}

func checkReplay(t *testing.T, e *env, o op) {
	before := e.reset(t, holder, o.met()...)
	affected, err := o.do(tokenctx.With(t.Context(), holder))
	require.ErrorIs(t, err, tokenctx.ErrReplay)
	require.Equal(t, before.with(o.keeps), e.read(t))
	if affected != untold {
		require.Zero(t, affected, "rows affected")
	}
}

func checkNoToken(t *testing.T, e *env, o op) {
	before := e.reset(t, older)
	affected, err := o.do(t.Context())
	switch {
	case o.kind != reads:
		require.ErrorIs(t, err, tokenctx.ErrNoToken)
	case o.err != nil:
		require.ErrorIs(t, err, o.err)
	default:
		require.NoError(t, err)
	}
	require.Equal(t, before, e.read(t))
	if o.kind != reads && affected != untold {
		require.Zero(t, affected, "rows affected")
	}
}
