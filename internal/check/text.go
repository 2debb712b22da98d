package check

import (
	"fmt"
	"strings"
)

// textRunners are functions of PostgreSQL and its extensions that run SQL which they are
// given, or read a table that they are given the name of.
var textRunners = setOf("schedule", "schedule_in_database", "run_command_on_workers", "run_command_on_shards", "run_command_on_placements", "run_command_on_coordinator",
	"run_command_on_all_nodes", "pg_background_launch",
	"query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "table_to_xml", "table_to_xml_and_xmlschema", "cursor_to_xml",
	"schema_to_xml", "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xml_and_xmlschema",
	"ts_stat", "ts_rewrite", "connectby", "xpath_table", "crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstabn")

// RunsText reports whether a function of PostgreSQL or one of its extensions runs SQL
// that it is given. Both names are as they are stored; the schema is "" where none is
// written.
func RunsText(name, schema string) bool {
	if strings.HasPrefix(name, "schedule") {
		return schema == "cron" && textRunners[name]
	}
	return textRunners[name] || strings.HasPrefix(name, "dblink")
}

// UnreadRoutine is a function, procedure or aggregate that may write protected
// tables by a body that isn't read.
type UnreadRoutine struct {
	Name
	By        Name   // whose body it is: its own, or that of one that it calls
	Signature string // of By, with the types that tell it from others
	Why       string // the body isn't read: what By does or has
	Into      Name   // a protected table without a wall
}

// reason says why the table may be written, behind whoever writes it by this.
func (u *UnreadRoutine) reason() string {
	if u.Name == u.By {
		return "it " + u.Why
	}
	return u.signature() + ", which it calls, " + u.Why
}

func (u *UnreadRoutine) signature() string {
	if u.Signature == "" {
		return u.By.Schema + "." + u.By.Name
	}
	return u.Signature
}

// remedy says what to do about it.
func (u *UnreadRoutine) remedy() string {
	return fmt.Sprintf("put up the wall on that table, write %s plainly, or, if it writes no protected table, allow it: SELECT fencing.allow_function('%s', 'why'), or driver.WithGuardedFunctions(%q)",
		u.By, strings.ReplaceAll(u.signature(), "'", "''"), u.By.Schema+"."+u.By.Name)
}

// unreadFunction returns what is known of a function that may write by a body that
// isn't read, nil if that isn't why it is refused.
func (p *Policy) unreadFunction(schema, name string) *UnreadRoutine {
	for i, u := range p.closure.Unread {
		if u.Name.Name == name && u.Name.IsIn(schema) {
			return &p.closure.Unread[i]
		}
	}
	return nil
}
