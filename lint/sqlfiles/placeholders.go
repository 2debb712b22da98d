package sqlfiles

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// query is a statement with PostgreSQL's placeholders.
type query struct {
	text  string
	edits []edit
	names []string // how $1, $2, ... are written in the file; nil if as they are
}

// edit is a place that was written otherwise.
type edit struct {
	start, end int // in the statement as it is
	text       string
}

// placeholders returns a statement with $n for what sqlc, pgx.NamedArgs and
// others write: @name, sqlc.arg(name) and its like, and ?, and psql's variables.
func placeholders(code string, tokens []parser.Token) query {
	return readPlaceholders(code, tokens, false)
}

// readPlaceholders is placeholders, or in a migration psql's variables alone.
func readPlaceholders(code string, tokens []parser.Token, migration bool) query {
	if len(tokens) == 0 {
		return query{}
	}
	from := tokens[0].Start
	r := &placeholderReader{code: code, tokens: tokens, numbers: map[string]int{}, migration: migration}
	for _, t := range tokens {
		if t.Kind == parser.PARAM {
			n, _ := strconv.Atoi(code[t.Start+1 : t.End])
			r.last = max(r.last, n)
			r.numbered = true
		}
	}
	for i := 0; i < len(tokens); i++ {
		i += r.at(i)
	}
	q := query{text: code[from:tokens[len(tokens)-1].End]}
	if len(r.edits) == 0 {
		return q
	}
	var b strings.Builder
	last := 0
	for _, e := range r.edits {
		e.start, e.end = e.start-from, e.end-from
		b.WriteString(q.text[last:e.start] + e.text)
		last = e.end
		q.edits = append(q.edits, e)
	}
	b.WriteString(q.text[last:])
	q.text = b.String()
	if !r.numbered && !r.positional {
		q.names = r.names
	}
	return q
}

// placeholderReader looks for placeholders of another kind.
type placeholderReader struct {
	code       string
	tokens     []parser.Token
	edits      []edit
	numbers    map[string]int // by name
	names      []string       // in the order of their numbers
	last       int            // the highest number
	numbered   bool           // there is a $n
	positional bool           // there is a ?
	migration  bool           // only psql's variables are read
	brackets   int            // [ that are open
}

// at looks at the token at i, and returns how many of the following it took.
func (r *placeholderReader) at(i int) int {
	t := r.tokens[i]
	word := r.code[t.Start:t.End]
	switch {
	case t.IsComment():
		return 0
	case word == "[":
		r.brackets++
	case word == "]":
		r.brackets = max(0, r.brackets-1)
	case word == ":":
		return r.variable(i)
	case r.migration:
		return 0
	case strings.EqualFold(word, "sqlc"):
		return r.sqlc(i)
	case word == "@" && i+1 < len(r.tokens) && r.tokens[i+1].Start == t.End && r.tokens[i+1].IsName():
		next := r.tokens[i+1]
		r.named(t.Start, next.End, r.code[next.Start:next.End])
		return 1
	case len(word) > 1 && word != "<@" && comparisons[word[:len(word)-1]] && word[len(word)-1] == '@' && i+1 < len(r.tokens) && r.tokens[i+1].Start == t.End && r.tokens[i+1].IsName():
		next := r.tokens[i+1] // of these PostgreSQL has only <@ itself
		r.named(t.End-1, next.End, r.code[next.Start:next.End])
		r.edits[len(r.edits)-1].text = " " + r.edits[len(r.edits)-1].text
		return 1
	case word == "?" && r.stands(i):
		r.positional = true
		r.last++
		r.edits = append(r.edits, edit{t.Start, t.End, "$" + strconv.Itoa(r.last)})
	case len(word) > 1 && comparisons[word[:len(word)-1]] && word[len(word)-1] == '?' && r.stands(i):
		r.positional = true
		r.last++
		r.edits = append(r.edits, edit{t.End - 1, t.End, " $" + strconv.Itoa(r.last)})
	}
	return 0
}

// comparisons may be written without a blank before a ? or @name.
var comparisons = map[string]bool{"=": true, "<": true, ">": true, "<=": true, ">=": true, "<>": true, "!=": true, "+": true, "-": true, "*": true, "/": true, "||": true}

// stands reports whether the ? at i, or at the end of the operator there, is a
// placeholder: jsonb's operator of that name has an operand on both sides.
func (r *placeholderReader) stands(i int) bool {
	if r.code[r.tokens[i].Start] != '?' {
		return i+1 == len(r.tokens) || !r.operand(i+1)
	}
	if i > 0 {
		switch before := r.tokens[i-1]; {
		case before.Kind == parser.IDENT, before.IsLiteral(), before.Kind == parser.PARAM,
			before.Kind == parser.RPAREN, before.Kind == parser.RBRACK: // ) ]
			return false
		case before.IsName() && !before.IsReserved():
			return i+1 == len(r.tokens) || !r.operand(i+1)
		}
	}
	return true
}

// operand reports whether an operand may begin at i.
func (r *placeholderReader) operand(i int) bool {
	t := r.tokens[i]
	return t.IsLiteral() || t.Kind == parser.PARAM || t.Kind == parser.LPAREN || t.IsName() && !t.IsReserved()
}

// sqlc reads sqlc.arg(name) and the like.
func (r *placeholderReader) sqlc(i int) int {
	const dot, function, open, argument, shut = 1, 2, 3, 4, 5
	if i+shut >= len(r.tokens) {
		return 0
	}
	word := func(at int) string { return r.code[r.tokens[i+at].Start:r.tokens[i+at].End] }
	if word(dot) != "." || word(open) != "(" || word(shut) != ")" {
		return 0
	}
	start, end, name := r.tokens[i].Start, r.tokens[i+shut].End, strings.Trim(word(argument), `'"`)
	switch strings.ToLower(word(function)) {
	case "arg", "narg", "slice":
		r.named(start, end, name)
	case "embed":
		r.edits = append(r.edits, edit{start, end, word(argument) + ".*"})
	default:
		return 0
	}
	return shut
}

func (r *placeholderReader) named(start, end int, name string) {
	n, ok := r.numbers[name]
	if !ok {
		r.last++
		n = r.last
		r.numbers[name] = n
		r.names = append(r.names, r.code[start:end])
	}
	r.edits = append(r.edits, edit{start, end, "$" + strconv.Itoa(n)})
}

// offset returns where in the statement as it is written a byte of the text is.
func (q *query) offset(at int) int {
	moved := 0 // by how much the text is longer, up to here
	for _, e := range q.edits {
		if at < e.start+moved {
			break
		}
		if at < e.start+moved+len(e.text) {
			return e.start
		}
		moved += len(e.text) - (e.end - e.start)
	}
	return at - moved
}

var dollarNumber = regexp.MustCompile(`\$[0-9]+`)

// spelled returns a text with the placeholders as they are in the file, and
// where a byte of it then is. A new one, for the token, gets a name like them.
func (q *query) spelled(text string, at int) (string, int) {
	if len(q.names) == 0 {
		return text, at
	}
	var b strings.Builder
	last, moved := 0, 0
	for _, m := range dollarNumber.FindAllStringIndex(text, -1) {
		name := q.name(text[m[0]+1 : m[1]])
		b.WriteString(text[last:m[0]] + name)
		if m[1] <= at {
			moved += len(name) - (m[1] - m[0])
		}
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String(), at + moved
}

func (q *query) name(number string) string {
	n, err := strconv.Atoi(number)
	if err == nil && n >= 1 && n <= len(q.names) {
		return q.names[n-1]
	}
	token := "token"
	for taken := strings.Join(q.names, " "); strings.Contains(taken, token); {
		token = "new_" + token
	}
	if mark := q.names[0][:1]; mark == "@" || mark == ":" {
		return mark + token
	}
	return fmt.Sprintf("sqlc.arg(%s)", token)
}
