package record

import (
	"regexp"
	"slices"
	"strings"
)

// changing are the parts of a text that differ from run to run or from server
// to server, and what stands for them in the files.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	// A time that a library writes into a statement, as bun does with all values.
	{
		regexp.MustCompile(`'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)?'`),
		`'2026-01-02 03:04:05.678901+00:00'`,
	},
	// River asks for the version of the server, and from 18 on sends this for what
	// the older ones need.
	{regexp.MustCompile(`\(OLD\.id IS NOT NULL\) AS unique_skipped_as_duplicate`), "(xmax != 0) AS unique_skipped_as_duplicate"},
	// GORM and bun name their savepoints at random.
	{regexp.MustCompile(`\bsp\d{10,}\b`), "sp7061059532321851874"},
	{regexp.MustCompile(`\bSP_[0-9a-f]{28}\b`), "SP_4f1c0a9be25d63780f4c19d2a7b3"},
}

// foreignKey is a constraint as GORM writes it into CREATE TABLE. It goes
// through them in the order of a map, which is a new one every time.
var foreignKey = regexp.MustCompile(`,CONSTRAINT "[^"]+" FOREIGN KEY \([^)]*\) REFERENCES "[^"]+"\([^)]*\)( ON (DELETE|UPDATE) (CASCADE|RESTRICT|SET NULL))*`)

// normalize makes a text the same in every run.
func normalize(sql string) string {
	for _, c := range changing {
		sql = c.pattern.ReplaceAllString(sql, c.instead)
	}
	if strings.HasPrefix(sql, "CREATE TABLE") {
		sql = sortMatches(foreignKey, sql)
	}
	return sql
}

// sortMatches puts the parts of a text that match in order.
func sortMatches(pattern *regexp.Regexp, text string) string {
	matches := pattern.FindAllString(text, -1)
	slices.Sort(matches)
	return pattern.ReplaceAllStringFunc(text, func(string) string {
		next := matches[0]
		matches = matches[1:]
		return next
	})
}
