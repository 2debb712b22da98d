package main

import (
	"fmt"
	"sync"
)

// tally counts what the holders were told.
type tally struct {
	wanted int
	done   func() // called once there are as many answers as wanted

	mu       sync.Mutex
	verdicts map[verdict]int
	shapes   map[string]int
	ways     map[string]int
	kinds    map[string]int
	answers  int
	alarms   int
	examples map[verdict][]string
}

// shown is how many alarms of a kind are printed.
const shown = 5

func newTally(wanted int, done func()) *tally {
	return &tally{
		wanted: wanted, done: done, verdicts: make(map[verdict]int), shapes: make(map[string]int), ways: make(map[string]int),
		kinds: make(map[string]int), examples: make(map[verdict][]string),
	}
}

// note counts the answer to a statement.
func (t *tally) note(s statement, db handle, way string, v verdict, err error) {
	text := ""
	if v.isAlarm() || v == undetermined {
		text = fmt.Sprintf("%s, %s, rewriting %t, partial check %t: %s", s.shape, way, db.isRewriting, db.isPartial, s.sql)
	}
	t.add(text, v, err)
	if !v.isAnswer() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shapes[s.shape]++
	t.ways[way]++
	for kind, is := range map[string]bool{"guarded by hand": !s.isBare, "guarded by fencerow": s.isBare, "with `WithPartialCheck`": db.isPartial} {
		if is {
			t.kinds[kind]++
		}
	}
	if t.answers++; t.answers == t.wanted {
		t.done()
	}
}

// add counts a verdict, and keeps some examples of each alarm.
func (t *tally) add(text string, v verdict, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verdicts[v]++
	if v.isAlarm() {
		t.alarms++
	}
	if (v.isAlarm() || v == undetermined) && len(t.examples[v]) < shown {
		t.examples[v] = append(t.examples[v], fmt.Sprintf("%s: %v", text, err))
	}
}
