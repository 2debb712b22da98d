package fencetest

import (
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// Patience bounds the wait for what must come. A test that passes doesn't wait for it,
// so it is far more than a loaded machine needs.
const Patience = 2 * time.Minute

// tick is how long to wait before another look.
const tick = 5 * time.Millisecond

// Eventually waits until the condition holds. If it doesn't, the test fails with the
// state, of which a func() any is called then. The condition is called by the test's own
// goroutine, so that it may fail the test.
func Eventually(t testing.TB, holds func() bool, state ...any) {
	t.Helper()
	if poll(holds) {
		return
	}
	t.Fatalf("the condition did not hold for %s: %s", Patience, describe(state))
}

// EventuallyEqual is [Eventually] for a value that is read. It fails also with what was
// read last.
func EventuallyEqual[T comparable](t testing.TB, want T, read func() T, state ...any) {
	t.Helper()
	var got T
	if !poll(func() bool { got = read(); return got == want }) {
		t.Fatalf("after %s it is %v, not %v: %s", Patience, got, want, describe(state))
	}
}

// describe reads the state.
func describe(state []any) string {
	for i, s := range state {
		if read, ok := s.(func() any); ok {
			state[i] = read()
		}
	}
	return fmt.Sprintln(state...)
}

// Receive waits for a value, and fails if none comes.
func Receive[T any](t testing.TB, from <-chan T, what ...any) T {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v := <-from:
		return v
	case <-timer.C:
		t.Fatalf("nothing came for %s: %s", Patience, fmt.Sprintln(what...))
		panic("not reached")
	}
}

// poll reports whether the condition holds in time. It is looked at least once after the
// time is over: a process that was stopped meanwhile has not had its chance before.
func poll(holds func() bool) bool {
	for end := time.Now().Add(Patience); ; time.Sleep(tick) {
		isLast := time.Now().After(end)
		if holds() {
			return true
		}
		if isLast {
			return false
		}
	}
}

// Activity reads what the sessions of a handle's server do, as a state for [Eventually].
func Activity(t testing.TB, db *sql.DB) func() any {
	return func() any {
		var sessions string
		err := db.QueryRowContext(t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', pid, datname, usename, state, wait_event_type, wait_event, left(query, 100)), E'\n' ORDER BY pid), '')
			FROM pg_stat_activity WHERE backend_type = 'client backend' OR wait_event = 'SyncRep'`).Scan(&sessions)
		if err != nil {
			return err
		}
		return "sessions:\n" + sessions
	}
}
