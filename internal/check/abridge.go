package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// abridged is a long text without most items of its long lists, and with empty
// strings for its long ones: what a statement is told by. Its guarded form shows
// where the guard of the long text has to stand.
type abridged struct {
	long, text string
	cuts       []cut
	strings    map[int]bool // where empty strings stand for long ones, in the text
	removed    []removal    // by place
	highest    int64        // the highest placeholder of the long text
	params     []paramAt    // the placeholders of what was left out
}

// cut is a run of items that was left out of a list: all but the first two and the
// last.
type cut struct {
	from, to int // in the long text, of the third item and of the last
	second   int // where the second item begins
	items    int
	rows     bool // of VALUES
	taken    *rowTokens
	at       int // in the text: where the last item begins
	start    int // and the second one
}

// removal is what stands for a part of the long text.
type removal struct {
	from, to int // in the long text
	instead  string
	at       int // in the text
}

const (
	abridgedFrom = 4 << 10 // the shortest text that is abridged
	longRows     = 32      // the shortest list of rows, or of other items in brackets
	longList     = 2000    // and of other items: more than a table has columns
	longString   = 256
)

// abridge returns a long text abridged, nil if there is little to leave out.
func abridge(sql string) *abridged {
	if len(sql) < abridgedFrom {
		return nil
	}
	a := &abridger{frames: make([]frame, 1, 16), out: &abridged{long: sql, strings: make(map[int]bool)}}
	if !wordsearch.EachWord(sql, a.next) || len(a.frames) != 1 || a.unbalanced {
		return nil
	}
	a.endRows()
	out := a.out
	for _, c := range out.cuts {
		a.removed = append(a.removed, removal{from: c.from, to: c.to})
	}
	slices.SortFunc(a.removed, func(x, y removal) int { return x.from - y.from })
	var b strings.Builder
	last := 0
	for _, r := range a.removed {
		if r.from < last {
			continue // a string in a list that was cut
		}
		b.WriteString(sql[last:r.from])
		if r.at = b.Len(); r.instead != "" {
			out.strings[r.at] = true
		}
		b.WriteString(r.instead)
		out.removed, last = append(out.removed, r), r.to
	}
	b.WriteString(sql[last:])
	if out.text = b.String(); 2*len(out.text) > len(sql) {
		return nil
	}
	for i := range out.cuts {
		c := &out.cuts[i]
		c.at, c.start = out.shorten(c.to), out.shorten(c.second)
	}
	out.params = a.params[:0]
	for _, p := range a.params {
		if out.highest = max(out.highest, p.number); out.leavesOut(p.at) {
			out.params = append(out.params, p)
		}
	}
	return out
}

// abridger looks for what can be left out.
type abridger struct {
	out     *abridged
	frames  []frame
	removed []removal
	params  []paramAt

	unbalanced bool // more brackets were closed than opened
}

// paramAt is a placeholder and where it stands.
type paramAt struct {
	number int64
	at     int
}

// frame is an open bracket, or the whole text, with the list that is read in it.
type frame struct {
	list  bool // what stands in it so far is a list
	rows  bool // its items are rows of VALUES
	begun bool // an item has begun
	plain bool // one of them is not in brackets
	items int
	begin [3]int // of the first items
	last  int    // of the last
}

func (a *abridger) top() *frame { return &a.frames[len(a.frames)-1] }

// next takes the next word or sign.
func (a *abridger) next(kind wordsearch.Sign, start, end int) {
	sql, top := a.out.long, a.top()
	if kind == wordsearch.ClosingSign {
		a.endRows()
		if top.list && !top.rows {
			a.cut(top, map[bool]int{false: longRows, true: longList}[top.plain])
		}
		if a.unbalanced = a.unbalanced || len(a.frames) == 1; !a.unbalanced {
			a.frames = a.frames[:len(a.frames)-1]
		}
		return
	}
	if top.rows && kind != wordsearch.OpeningSign && kind != wordsearch.CommaSign {
		a.endRows()
	}
	switch kind {
	case wordsearch.CommaSign:
		top.begun = false
		return
	case wordsearch.PlainWord:
		if strings.EqualFold(sql[start:end], "values") && (start == 0 || sql[start-1] != '.') {
			*top = frame{list: true, rows: true}
			return
		}
		top.list = top.list && listWords[sqltext.Lower(sql[start:end])]
	case wordsearch.Placeholder:
		a.params = append(a.params, paramAt{decimal(sql[start+1 : end]), start})
	case wordsearch.StringLiteral:
		if end-start > longString {
			a.removed = append(a.removed, removal{from: start, to: end, instead: "''"})
		}
	}
	if !top.begun {
		if top.begun = true; top.items < len(top.begin) {
			top.begin[top.items] = start
		}
		top.items, top.last, top.plain = top.items+1, start, top.plain || kind != wordsearch.OpeningSign
	}
	if kind == wordsearch.OpeningSign {
		a.frames = append(a.frames, frame{list: true})
	}
}

// endRows ends the list of rows that is read.
func (a *abridger) endRows() {
	if top := a.top(); top.rows {
		a.cut(top, longRows)
		top.rows, top.list = false, false
	}
}

// cut leaves the items of a list out, if there are enough. A list in one of its
// items stays whole.
func (a *abridger) cut(f *frame, least int) {
	if f.items < least {
		return
	}
	cuts := a.out.cuts
	for len(cuts) > 0 && cuts[len(cuts)-1].from > f.begin[0] {
		cuts = cuts[:len(cuts)-1]
	}
	a.out.cuts = append(cuts, cut{from: f.begin[2], to: f.last, second: f.begin[1], items: f.items - 3, rows: f.rows})
}

// listWords are words that may stand in items of a list that is cut: no part of
// the grammar splits a list at them.
var listWords = setOf("null", "true", "false", "default", "date", "timestamp", "timestamptz", "interval", "uuid", "text", "varchar", "numeric",
	"bigint", "int", "integer", "smallint", "int2", "int4", "int8", "pg_catalog", "row", "array", "lower", "upper")

// decimal reads the number of a placeholder, which is large if it is too large.
func decimal(digits string) (n int64) {
	for i := range len(digits) {
		n = min(10*n+int64(digits[i]-'0'), 1<<40)
	}
	return n
}

// shorten returns where a place of the long text that is kept is in the text.
func (a *abridged) shorten(at int) int {
	i, found := slices.BinarySearchFunc(a.removed, at, func(r removal, at int) int { return r.to - at })
	if found {
		i++
	}
	if i == 0 {
		return at
	}
	r := a.removed[i-1]
	return r.at + len(r.instead) + at - r.to
}

// lengthen returns where a place of the text is in the long one. ok is false within
// what was removed, and where the place may be on either side of it.
func (a *abridged) lengthen(at int) (long int, ok bool) {
	i, found := slices.BinarySearchFunc(a.removed, at, func(r removal, at int) int { return r.at - at })
	if found {
		return a.removed[i].from, a.removed[i].instead != ""
	}
	if i == 0 {
		return at, true
	}
	r := a.removed[i-1]
	behind := at - r.at - len(r.instead)
	return r.to + behind, behind >= 0
}

// leavesOut reports whether a place of the long text has been removed.
func (a *abridged) leavesOut(at int) bool {
	i, found := slices.BinarySearchFunc(a.removed, at, func(r removal, at int) int { return r.from - at })
	return found || i > 0 && at < a.removed[i-1].to
}

// between returns the cut of a list with two such items on either side.
func (a *abridged) between(second, last *sqltree.Node) *cut {
	from, to := sqltree.FirstOffset(second), sqltree.FirstOffset(last)
	for i := range a.cuts {
		if c := &a.cuts[i]; from >= 0 && c.start <= from && from < c.at && c.at <= to {
			return c
		}
	}
	return nil
}
