package sqlfiles

import (
	"regexp"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// What psql reads itself, and never sends: its commands, which begin with a
// backslash outside of quotes, and the rows behind COPY ... FROM stdin. A file
// with either is blanked there, so that what is left can be lexed, and each
// byte stays at its place. See https://www.postgresql.org/docs/current/app-psql.html.
type psqlReader struct {
	text  string
	code  []byte
	start int // of the statement, -1 between two
	notes []psqlNote

	noRows bool // no end of rows is in what follows
}

type psqlNote struct {
	offset  int
	command string
}

var (
	copyFromStdin = regexp.MustCompile(`(?is)^copy\b[^']*\bfrom\s+stdin\b`)
	endOfRows     = regexp.MustCompile(`(?m)^\\\.\r?$\n?`)
	sendCommand   = regexp.MustCompile(`^\\(?:g|gx|gset|gexec|gdesc|watch|crosstabview|bind|parse)\b`)
	metaCommand   = regexp.MustCompile(`^\\[A-Za-z_?!]+`)
	wholeLine     = regexp.MustCompile(`^\\(?:!|copy|h|help|ef|ev|sf|sv)$`) // for these nothing ends the arguments but the line
	copyInto      = regexp.MustCompile(`(?i)^\\copy[ \t]+(?:"[^"\n]*"|[^\s("])+[ \t]*(?:\([^)\n]*\))?[ \t]*\bfrom\b[ \t][^\n]`)
	ownRows       = regexp.MustCompile(`(?i)^[ \t]*stdin\b`)
)

// blankPsql returns the code with blanks for what psql reads itself, and what
// was found. A text without a backslash has nothing of the kind.
func blankPsql(code string) (string, []psqlNote) {
	if strings.IndexByte(code, '\\') < 0 {
		return code, nil
	}
	r := &psqlReader{text: code, code: []byte(code), start: -1}
	for i := 0; i < len(code); {
		i = r.next(i)
	}
	return string(r.code), r.notes
}

// next reads on from i, and returns where to go on.
func (r *psqlReader) next(i int) int {
	rest := r.text[i:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"):
		return i + lineLength(rest)
	case strings.HasPrefix(rest, "/*"):
		end, _ := sqltext.CommentEnd(rest)
		return i + end
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return i + 1
	case c == '\\':
		return r.command(i)
	case c == ';':
		start := r.start
		r.start = -1
		if start >= 0 && copyFromStdin.MatchString(r.text[start:i]) {
			return r.rows(i + 1)
		}
		return i + 1
	}
	if r.start < 0 {
		r.start = i
	}
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		end, _ := sqltext.QuotedEnd(rest, c == '\'' && r.hasEscapes(i))
		return i + end
	case c == '$' && (i == 0 || !sqltext.IsNameByte(r.text[i-1])):
		if tag := sqltext.DollarTag(rest); tag != "" {
			if end := strings.Index(rest[len(tag):], tag); end >= 0 {
				return i + len(tag) + end + len(tag)
			}
			return len(r.text)
		}
	}
	return i + 1
}

// command blanks a command to the end of its line, or to the two backslashes
// behind which SQL goes on. One that sends what stands before it is an end of a
// statement.
func (r *psqlReader) command(i int) int {
	rest := r.text[i:]
	name := metaCommand.FindString(rest)
	switch {
	case strings.HasPrefix(rest, `\;`): // an end of a statement in one that is sent with the next
		r.code[i] = ' '
		return i + 1
	case name == "":
		return i + 1
	}
	end := i + lineLength(rest)
	if into := copyInto.FindString(rest); into != "" {
		return r.copyInto(i, i+len(into), end)
	}
	if !wholeLine.MatchString(name) {
		end = i + argumentsLength(rest[:end-i], len(name))
	}
	r.blank(i, end)
	if sendCommand.MatchString(rest) {
		r.code[i], r.start = ';', -1
	}
	r.notes = append(r.notes, psqlNote{i, name})
	return end
}

// copyInto leaves of \copy into a table a COPY from a file without a name. Rows
// of its own stand behind it, as behind COPY.
func (r *psqlReader) copyInto(start, from, end int) int {
	r.blank(from, end)
	r.notes = append(r.notes, psqlNote{start, `\copy`})
	next := end
	if ownRows.MatchString(r.text[from-1 : end]) {
		next = r.rows(end)
	}
	copy(r.code[from-2:], "''")
	r.code[start], r.start = ';', -1
	if end < len(r.code) {
		r.code[end] = ';'
	}
	return next
}

// rows blanks the rest of the line, and the rows, if they have an end.
func (r *psqlReader) rows(i int) int {
	if r.noRows {
		return i
	}
	line := i + lineLength(r.text[i:])
	end := endOfRows.FindStringIndex(r.text[line:])
	if end == nil {
		r.noRows = true
		return i
	}
	r.blank(i, line+end[1])
	r.notes = append(r.notes, psqlNote{min(line+1, len(r.text)), "COPY"})
	return line + end[1]
}

func (r *psqlReader) blank(start, end int) {
	for i := start; i < end; i++ {
		if r.code[i] != '\n' && r.code[i] != '\r' {
			r.code[i] = ' '
		}
	}
}

// hasEscapes reports whether the string at i is one with escapes: E'...'.
func (r *psqlReader) hasEscapes(i int) bool {
	return i > 0 && r.text[i-1]|0x20 == 'e' && (i == 1 || !sqltext.IsNameByte(r.text[i-2]))
}

// argumentsLength is where the arguments of a command end in its line: behind two
// backslashes outside of quotes, or with it.
func argumentsLength(line string, from int) int {
	for i := from; i < len(line); i++ {
		switch c := line[i]; {
		case strings.HasPrefix(line[i:], `\\`):
			return i + 2
		case c == '\'' || c == '"' || c == '`':
			end, _ := sqltext.QuotedEnd(line[i:], c == '\'')
			i += end - 1
		}
	}
	return len(line)
}

func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}
