package sqltext

import "sort"

// ByteOffset is where a character of a text begins: the parser counts characters
// in its errors, and bytes everywhere else.
func ByteOffset(sql string, character int) int {
	for i := range sql {
		if character == 0 {
			return i
		}
		character--
	}
	return len(sql)
}

// Lines tells in which line of a text an offset is.
type Lines struct{ starts []int }

// NewLines reads where the lines of a text start.
func NewLines(text string) Lines {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return Lines{starts}
}

// Line returns the number of the line of an offset, from 1.
func (l Lines) Line(offset int) int {
	return sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > offset })
}

// Start returns where a line starts.
func (l Lines) Start(line int) int { return l.starts[line-1] }

// Place returns the line and the column of an offset, both from 1. Columns count
// bytes, as Go's tools do.
func (l Lines) Place(offset int) (line, column int) {
	line = l.Line(offset)
	return line, offset - l.Start(line) + 1
}

// Count returns the number of lines, of which a text has at least one.
func (l Lines) Count() int { return len(l.starts) }
