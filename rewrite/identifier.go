package rewrite

import "strings"

// identifier quotes a name where PostgreSQL would fold or misread it.
func identifier(name string) string {
	plain := name != "" && (name[0] == '_' || name[0] >= 'a' && name[0] <= 'z')
	for i := range len(name) {
		c := name[i]
		plain = plain && (c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if plain && !reserved[name] {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// reserved are the key words that can't stand as a column's or table's name
// without quotes (https://www.postgresql.org/docs/current/sql-keywords-appendix.html).
var reserved = setOf(strings.Fields(`all analyse analyze and any array as asc asymmetric authorization binary both case cast check
	collate collation column concurrently constraint create cross current_catalog current_date current_role current_schema
	current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign
	freeze from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
	localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
	returning right select session_user similar some symmetric system_user table tablesample then to trailing true union unique
	user using variadic verbose when where window with`)...)
