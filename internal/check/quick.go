package check

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// The quick way out clears, without the parser and whatever lexer reads it, a
// text that cannot touch a protected table: one statement of a kind that
// changes nothing but rows, without any word by which it could reach one. It
// may say no as often as it likes; it must never say yes to a text that the
// full check would refuse or bind a token in.

// quickKinds are the first words of the texts that may be cleared. What such a
// statement can do beside changing the rows of the tables it names, it can do
// only by calling a function.
var quickKinds = setOf("select", "insert", "update", "delete", "merge", "values", "with",
	"begin", "start", "commit", "rollback", "savepoint", "release", "end", "abort")

// quickWords can run other code or change what the check rests on.
var quickWords = setOf("fencing", "set_config", "setval",
	"session_replication_role", "session_authorization", "allow_system_table_mods", "standard_conforming_strings", "client_encoding", "search_path",
	"execute", "prepare", "prepared", "deallocate", "discard", "program", "cron")

// quickWrites can write a catalog, if one is named.
var quickWrites = setOf("insert", "update", "delete", "merge", "copy", "truncate")

// quickSystem are names beginning with pg_ that are no catalogs.
var quickSystem = setOf("pg_catalog", "pg_advisory_lock", "pg_advisory_xact_lock", "pg_try_advisory_lock", "pg_try_advisory_xact_lock",
	"pg_advisory_unlock", "pg_notify", "pg_sleep", "pg_typeof", "pg_backend_pid", "pg_is_in_recovery", "pg_get_serial_sequence",
	"pg_column_size", "pg_relation_size", "pg_total_relation_size", "pg_size_pretty")

// quickSet is what a policy's texts are searched for.
type quickSet struct {
	listed map[string]bool  // words by which a protected table can be reached
	words  wordsearch.Table // those, and the others that matter
	never  bool             // a name has no word to look for
	beyond bool             // a name has letters beyond ASCII
}

// newQuickSet collects the words of everything the policy knows by name.
func (p *Policy) newQuickSet() *quickSet {
	q := &quickSet{listed: make(map[string]bool, len(p.byName)+len(quickWords))}
	for w := range quickWords {
		q.listed[w] = true
	}
	for name := range p.byName {
		q.add(name)
	}
	c := p.closure
	for _, list := range [][]Name{c.Functions, c.AllowedFunctions, c.Sequences, c.TriggerFunctions} {
		for _, n := range list {
			q.add(n.Name)
		}
	}
	if p.hasReaders {
		for _, name := range maintainers {
			q.listed[name] = true
		}
	}
	if len(c.EventTriggers) > 0 {
		q.listed["into"] = true // SELECT INTO makes a table
	}
	calls := make(map[string]bool)
	for _, n := range c.OwnCallers {
		if strings.IndexFunc(n.Name, func(r rune) bool { return r >= utf8.RuneSelf || !sqltext.IsWordRune(r) }) < 0 {
			calls[sqltext.Lower(n.Name)] = true
		} else {
			q.add(n.Name)
		}
	}
	if p.hasFencing() {
		maps.Copy(calls, fencingChanges)
		q.words = wordsearch.New(q.meanings(fencingRelations, calls))
	} else {
		q.words = wordsearch.New(q.meanings(nil, calls))
	}
	return q
}

// meanings returns what each word that matters can do: those by which the policy
// reaches a protected table, the names of relations of the schema fencing and of
// functions that may reach it, and the words of SQL.
func (q *quickSet) meanings(relations, calls map[string]bool) map[string]wordsearch.Meaning {
	words := make(map[string]wordsearch.Meaning, len(q.listed)+len(sqlFunctions)+len(quickWrites))
	for word := range quickWrites {
		words[word] = wordsearch.Write
	}
	words["information_schema"] = wordsearch.Catalog
	for word := range quickSystem {
		words[word] = 0
	}
	for word := range relations {
		words[word] |= wordsearch.OwnRelation
	}
	for word := range calls {
		words[word] |= wordsearch.OwnCaller
	}
	for word := range sqlFunctions {
		words[word] = wordsearch.Hit
	}
	for word := range q.listed {
		words[word] = wordsearch.Hit
	}
	return words
}

// add looks for a name by its longest run of identifier bytes. Between quotes
// the run stands as it is, since what bounds it there is no such byte.
//
// A longer identifier is cut to the name's length, which only its last run
// doesn't show; where that may be, the last run is not the one to look for.
func (q *quickSet) add(name string) {
	q.beyond = q.beyond || !sqltext.IsASCII(name)
	best, whole := "", strings.IndexFunc(name, func(r rune) bool { return !sqltext.IsWordRune(r) }) < 0
	for rest := sqltext.Lower(name); rest != ""; {
		start := strings.IndexFunc(rest, sqltext.IsWordRune)
		if start < 0 {
			break
		}
		rest = rest[start:]
		end := strings.IndexFunc(rest, func(r rune) bool { return !sqltext.IsWordRune(r) })
		if end < 0 {
			end = len(rest)
		}
		last := end == len(rest) && !whole && len(name) > sqltext.MaxName-utf8.UTFMax
		if run := rest[:end]; !last && rank(run) > rank(best) {
			best = run
		}
		rest = rest[end:]
	}
	if best == "" {
		q.never = true
		return
	}
	q.listed[best] = true
}

// rank prefers long words, and those that aren't SQL's own: nearly every text
// has an ORDER.
func rank(run string) int {
	if sqltext.IsReserved(run) {
		return 1
	}
	return 2 * len(run)
}

// clears reports whether the quick way out clears a text.
func (p *Policy) clears(sql string) bool {
	if len(p.closure.Unseen) > 0 {
		return false
	}
	rest := firstWord(sql)
	if !beginsQuick(rest) {
		return false
	}
	if i := strings.IndexByte(rest, ';'); i >= 0 && strings.TrimLeft(rest[i:], "; \t\r\n") != "" {
		return false
	}
	// letters beyond ASCII are others in another encoding, which a session may have come to
	hit, found := p.quick.find(sql)
	mayNameOwn := found&wordsearch.OwnCaller != 0 || found&wordsearch.OwnRelation != 0 && found&wordsearch.Write != 0
	return hit == "" && !mayNameOwn && (!p.quick.beyond || sqltext.IsASCII(sql))
}

// beginsQuick reports whether a text begins with one of quickKinds.
func beginsQuick(text string) bool {
	end := 0
	for end < len(text) && sqltext.IsNameByte(text[end]) {
		end++
	}
	return end <= len("savepoint") && isQuickKind(text[:end])
}

func isQuickKind(word string) bool {
	var folded [len("savepoint")]byte
	for i := range copy(folded[:], word) {
		folded[i] |= 0x20 // no letter is another's upper case, and none of these has another sign
	}
	return quickKinds[string(folded[:len(word)])]
}

// firstWord returns a text from its first word on: behind white space, brackets
// and comments, which nest.
func firstWord(sql string) string {
	for {
		for sql != "" && strings.IndexByte(" \t\r\n(", sql[0]) >= 0 {
			sql = sql[1:]
		}
		switch {
		case strings.HasPrefix(sql, "--"):
			end := strings.IndexAny(sql, "\r\n")
			if end < 0 {
				return ""
			}
			sql = sql[end:]
		case strings.HasPrefix(sql, "/*"):
			end, ok := sqltext.CommentEnd(sql)
			if !ok {
				return ""
			}
			sql = sql[end:]
		default:
			return sql
		}
	}
}

// hit returns the first word of a text by which it could reach a protected
// table, "" if there is none.
func (p *Policy) hit(text string) string {
	hit, _ := p.quick.find(text)
	return hit
}

// find returns the first of the words in a text, and the kinds of the words of a text
// without any.
func (q *quickSet) find(text string) (hit string, found wordsearch.Meaning) {
	if q.never {
		return text, 0
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "NUL", 0
	}
	return q.words.Search(text)
}
