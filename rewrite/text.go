package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// Some functions run SQL that they are given, or that they make of what they are
// given. What that does is told by the call: where the text is a constant, it is
// checked like the body of a function.

// textRunners are functions of PostgreSQL and its extensions that run SQL which
// they are given; textReaders run it so that it can only read by itself, or read a table that
// they are given the name of.
var (
	textRunners = setOf("schedule", "schedule_in_database", "run_command_on_workers", "run_command_on_shards", "run_command_on_placements", "run_command_on_coordinator",
		"run_command_on_all_nodes", "pg_background_launch")
	textReaders = setOf("query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "table_to_xml", "table_to_xml_and_xmlschema", "cursor_to_xml",
		"schema_to_xml", "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xml_and_xmlschema",
		"ts_stat", "ts_rewrite", "connectby", "xpath_table", "crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstabn")
)

// RunsText reports whether a function of PostgreSQL or one of its extensions runs SQL
// that it is given. Both names are as they are stored; the schema is "" where none is
// written.
func RunsText(name, schema string) bool {
	if strings.HasPrefix(name, "schedule") {
		return schema == "cron" && textRunners[name]
	}
	return textRunners[name] || textReaders[name] || strings.HasPrefix(name, "dblink")
}

// ReadsText reports whether such a function only reads by itself; what it reads may
// still call functions.
func ReadsText(name string) bool { return textReaders[name] }

// checkGiven refuses the call of a function that makes SQL of what it is given, unless that
// is told, and names nothing that the protection rests on.
func (c *checker) checkGiven(n *sqltree.Node, schema, name string) {
	if matches(c.policy.closure.GuardedFunctions, schema, name) {
		return
	}
	for _, f := range c.policy.closure.TextFunctions {
		if f.Name.Name != name || schema != "" && schema != f.Schema {
			continue
		}
		for _, parameter := range f.Parameters {
			for _, arg := range givenFor(n.List("args"), parameter) {
				if text, ok := textConstant(arg); !ok {
					c.report(violation(UnsafeFunction, n, "function %s runs SQL that it makes of what it is given, and which table that writes cannot be told here: give it a literal, have the function write the table's name as a constant and quote all else that it puts in (by %%I and %%L of format), put up the wall on the protected tables, use a plain connection, or, if the function carries a guard of its own, name it in driver.WithGuardedFunctions", quotedName(schema, name)))
					return
				} else if c.policy.bodyWord(text) != "" {
					c.report(violation(UnsafeFunction, n, "function %s runs SQL that it makes of what it is given, which names what the protection rests on, or cannot be checked: use a plain connection, or, if the function carries a guard of its own, name it in driver.WithGuardedFunctions", quotedName(schema, name)))
					return
				}
			}
		}
	}
}

// givenFor returns what a call gives for a parameter: more than one thing where it isn't
// clear, and none where its default stands.
func givenFor(args []*sqltree.Node, p TextParameter) (out []*sqltree.Node) {
	for i, arg := range args {
		switch {
		case arg.Is("NamedArgExpr"):
			if arg.Str("name") == p.Name {
				out = append(out, arg.Get("arg"))
			}
		case i == p.Place || p.IsLast && i > p.Place: // of a variadic one
			out = append(out, arg)
		}
	}
	return out
}

// takesText reports whether a function of that name makes SQL of what it is given.
func (p *Policy) takesText(name string) bool {
	return slices.ContainsFunc(p.closure.TextFunctions, func(f TextFunction) bool { return f.Name.Name == name })
}

// untoldHint says for which code a refusal may be, and what to do about it.
func (p *Policy) untoldHint() string {
	if len(p.closure.Untold) == 0 {
		return ""
	}
	return "; code that runs SQL which it makes, with names that cannot be told, as function " + strconv.Quote(p.closure.Untold[0].String()) +
		" does, counts for every table without a wall: write the names as constants there, or put up the wall"
}
