package sqlfiles

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// file is a file of SQL, taken apart.
type file struct {
	path       string
	text       string        // as it is, without a byte order mark
	code       string        // what is lexed: as long as text, with blanks for what isn't SQL
	lines      sqltext.Lines // where each begins
	tokens     []parser.Token
	statements []statement
	fault      *sqltext.Stop // where the rest can't be read
	migration  bool
	queries    bool // it has queries of sqlc's
	notes      []Note
}

// statement is one of a file, by its tokens. It begins with the first that is no
// comment, and doesn't include the semicolon.
type statement struct {
	first, last int  // in file.tokens
	named       bool // a query of sqlc's
}

var (
	gooseLine   = regexp.MustCompile(`^--\s*\+goose\s+(\w+)`)
	sqlcLine    = regexp.MustCompile(`^(?:--|/\*)\s*name:\s*\w[\w.-]*(?:\s+:\w|\s*(?:\*/)?\s*$)`)
	migrateName = regexp.MustCompile(`(?i)\.(?:up|down)\.sql$`)
	gooseEnvsub = regexp.MustCompile(`(?m)^[ \t]*--[ \t]*\+goose[ \t]+ENVSUB[ \t]+(ON|OFF)\b`)
	envVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z_0-9]*)(?::?-([^}]*))?\}(\.)?`)
)

// byteOrderMark may stand before UTF-8, where it means nothing.
const byteOrderMark = "\ufeff"

// readFile takes a text apart. migration says that it is known to be one.
func readFile(name, text string, migration bool) *file {
	f := &file{path: name, text: strings.TrimPrefix(text, byteOrderMark), migration: migration}
	f.lines = sqltext.NewLines(f.text)
	f.code = f.substituted(f.text)
	var found []psqlNote
	f.code, found = blankPsql(f.code)
	f.note(found)
	f.tokens, f.fault = sqltext.ScanPrefix(f.code)
	f.split()
	f.migration = f.migration || len(found) > 0 || migrateName.MatchString(path.Base(name)) ||
		!f.queries && slices.ContainsFunc(f.statements, f.changesStructure)
	return f
}

// substituted puts stand-ins of the same length where goose would put variables
// of the environment: the default, or a name. As a schema it may be any, and is
// left out.
func (f *file) substituted(text string) string {
	if !strings.Contains(text, "ENVSUB") {
		return text
	}
	var b strings.Builder
	last := 0
	switches := gooseEnvsub.FindAllStringSubmatchIndex(text, -1)
	for i, s := range switches {
		if text[s[2]:s[3]] != "ON" {
			continue
		}
		end := len(text)
		if i+1 < len(switches) {
			end = switches[i+1][0]
		}
		b.WriteString(text[last:s[1]] + envVariable.ReplaceAllStringFunc(text[s[1]:end], func(variable string) string {
			parts := envVariable.FindStringSubmatch(variable)
			dot := parts[3]
			switch {
			case strings.Contains(variable, "-"):
				return parts[2] + dot + strings.Repeat(" ", len(variable)-len(parts[2])-len(dot))
			case dot != "":
				return strings.Repeat(" ", len(variable))
			}
			return "_" + "_" + parts[1] + "_"
		}))
		last = end
	}
	b.WriteString(text[last:])
	text = b.String()
	if text != f.text {
		f.notes = append(f.notes, Note{f.path, f.lines.Line(strings.Index(f.text, "${")), "variables of the environment are read as their default or as a name"})
	}
	return text
}

// note tells of what psql reads, once for each command.
func (f *file) note(found []psqlNote) {
	count := map[string]int{}
	for _, n := range found {
		count[n.command]++
	}
	for _, n := range found {
		times := count[n.command]
		delete(count, n.command)
		switch {
		case times == 0:
			continue
		case n.command == "COPY":
			n.command = "rows of COPY FROM stdin"
		default:
			n.command = `psql's ` + n.command
		}
		if times > 1 {
			n.command += fmt.Sprintf(" (%d times)", times)
		}
		f.notes = append(f.notes, Note{f.path, f.lines.Line(n.offset), n.command + " passed over"})
	}
}

// split finds the statements. They end with a semicolon, but for those in
// brackets and in the body of BEGIN ATOMIC, and with what goose and sqlc write
// between two.
func (f *file) split() {
	first, last, brackets, blocks, named := -1, -1, 0, 0, false
	end := func() {
		if first >= 0 {
			f.statements = append(f.statements, statement{first, last, named})
			named = false
		}
		first, brackets, blocks = -1, 0, 0
	}
	for i, t := range f.tokens {
		if t.IsComment() {
			word := f.code[t.Start:t.End]
			isName := sqlcLine.MatchString(word)
			if f.beginsLine(t.Start) && (isName || gooseLine.MatchString(word)) {
				end()
				named, f.queries = isName, f.queries || isName
				f.migration = f.migration || !isName
			}
			continue
		}
		switch t.Kind {
		case parser.SEMICOLON: // ;
			if brackets == 0 && blocks == 0 {
				end()
				continue
			}
		case parser.LPAREN: // (
			brackets++
		case parser.RPAREN: // )
			brackets = max(0, brackets-1)
		case parser.ATOMIC:
			if last >= 0 && f.tokens[last].Kind == parser.BEGIN {
				blocks++
			}
		case parser.CASE:
			if blocks > 0 {
				blocks++
			}
		case parser.END:
			blocks = max(0, blocks-1)
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if f.fault == nil {
		end() // else it is the one that can't be read
	}
}

// beginsLine reports whether nothing but white space stands before an offset in
// its line: goose and sqlc look for their comments only there.
func (f *file) beginsLine(offset int) bool {
	return strings.TrimSpace(f.text[f.lines.Start(f.lines.Line(offset)):offset]) == ""
}

// changesStructure reports whether a statement changes the structure.
func (f *file) changesStructure(s statement) bool {
	switch f.tokens[s.first].Kind {
	case parser.ALTER, parser.DROP, parser.COMMENT, parser.GRANT, parser.REVOKE:
		return true
	case parser.CREATE:
		second := f.tokens[min(s.first+1, s.last)].Kind
		return second != parser.TEMP && second != parser.TEMPORARY
	}
	return false
}

// migrates reports whether a statement is judged as in a migration. Among
// queries of sqlc's, what has no name and changes the structure is for sqlc to
// read, and isn't sent.
func (f *file) migrates(s statement) bool {
	return f.migration || f.queries && !s.named && f.changesStructure(s)
}
