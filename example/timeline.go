//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// width is the number of columns that the output keeps to.
const width = 98

// timeline prints who did what, and when.
type timeline struct {
	out   io.Writer
	start time.Time
}

// say prints one event.
func (t *timeline) say(who, format string, args ...any) {
	head := fmt.Sprintf("%6.2fs  %-9s  ", time.Since(t.start).Seconds(), who)
	t.print(head, strings.Repeat(" ", len(head)), fmt.Sprintf(format, args...))
}

// more prints what belongs to the last event.
func (t *timeline) more(text string) {
	indent := strings.Repeat(" ", 20)
	t.print(indent, indent, text)
}

// quote prints a message of several lines as it is, but for lines that are too
// long.
func (t *timeline) quote(message string) {
	for line := range strings.Lines(message) {
		t.print("    ", "        ", strings.TrimRight(line, "\n"))
	}
}

// note prints a paragraph that is not an event.
func (t *timeline) note(format string, args ...any) {
	t.print("", "", fmt.Sprintf(format, args...))
}

// print breaks text between words. The first line begins with head, the others
// with indent.
func (t *timeline) print(head, indent, text string) {
	for {
		room := width - len(head)
		cut := len(text)
		if utf8.RuneCountInString(text) > room {
			// not in the leading blanks, which are there for a reason
			start := len(text) - len(strings.TrimLeft(text, " "))
			if cut = strings.LastIndexByte(text[start:min(room+1, len(text))], ' '); cut > 0 {
				cut += start
			} else {
				cut = len(text)
			}
		}
		fmt.Fprintln(t.out, strings.TrimRight(head+text[:cut], " "))
		if cut == len(text) {
			return
		}
		head, text = indent, text[cut+1:]
	}
}
