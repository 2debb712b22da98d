package sqltext

import "strings"

// QuoteName writes a name between quotes, whatever it is.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteLiteral writes a string constant, which standard_conforming_strings keeps from
// having escapes.
func QuoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// QuoteIfNeeded quotes a name where PostgreSQL would fold or misread it.
func QuoteIfNeeded(name string) string {
	plain := name != "" && (name[0] == '_' || name[0] >= 'a' && name[0] <= 'z')
	for i := range len(name) {
		c := name[i]
		plain = plain && (c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if plain && !IsReserved(name) {
		return name
	}
	return QuoteName(name)
}

// IsReserved reports whether a word is a key word that can't stand as a column's or
// table's name without quotes.
func IsReserved(word string) bool { return reservedWords[word] }

// See https://www.postgresql.org/docs/current/sql-keywords-appendix.html.
var reservedWords = func() map[string]bool {
	words := make(map[string]bool)
	for _, word := range strings.Fields(`all analyse analyze and any array as asc asymmetric authorization binary both case cast check
	collate collation column concurrently constraint create cross current_catalog current_date current_role current_schema
	current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign
	freeze from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
	localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
	returning right select session_user similar some symmetric system_user table tablesample then to trailing true union unique
	user using variadic verbose when where window with`) {
		words[word] = true
	}
	return words
}()
