package check

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// fencingFunctions are the functions of schema fencing that an application
// calls.
var fencingFunctions = setOf("next_token", "take", "renew", "release", "doctor")

// sqlFunctions run SQL that they get as text, or move files that the server
// reads (https://www.postgresql.org/docs/current/functions-xml.html and others).
var sqlFunctions = setOf(
	"query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema",
	"cursor_to_xml", "cursor_to_xmlschema",
	"table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema",
	"schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema",
	"database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema",
	"ts_stat", "ts_rewrite", "lo_import", "lo_export",
	"connectby", "xpath_table", // contrib: tablefunc, xml2
	"crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstabn",
	// pg_surgery, adminpack, Citus, pg_background, aws_s3
	"heap_force_kill", "heap_force_freeze", "pg_file_write", "pg_file_rename", "pg_file_unlink",
	"run_command_on_workers", "run_command_on_shards", "run_command_on_placements", "run_command_on_coordinator", "run_command_on_all_nodes",
	"pg_background_launch", "table_import_from_s3",
)

// checkFunction checks the call of a function, by the last part of its name:
// a function of that name in a user's schema is treated alike.
func checkFunction(c *checker, n *sqltree.Node) {
	parts, ok := sqltree.Strings(n.List("funcname"))
	if !ok || len(parts) == 0 {
		c.report(violation(UnsafeFunction, n, "a function call cannot be read: write its name plainly"))
		return
	}
	name, schema := parts[len(parts)-1], ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	c.checkMaintainer(n, name)
	if schema != "fencing" && c.policy.hasFencing() && givesWord(n.List("args"), "fencing") {
		c.givesOwn = true // the function may run what it is given
	}
	switch {
	case schema == "fencing" && !fencingFunctions[name]:
		c.report(violation(UnsafeFunction, n, "function fencing.%s is not called through fencerow: use a plain connection", name))
	case schema == "" && fencingChanges[name] && c.policy.hasFencing() && !c.writesProtected("", name):
		c.nameOwn(n, name)
	case c.writesProtected(schema, name):
		c.reportFunction(n, schema, name)
	case matches(c.policy.closure.OwnCallers, schema, name) && name != "set_config":
		c.callsOwn = name
	case name == "set_config":
		checkSetConfig(c, n)
	case name == "setval":
		c.checkSetval(n)
	case sqlFunctions[name] && !(name == "ts_rewrite" && len(n.List("args")) == 3), strings.HasPrefix(name, "dblink"), schema == "cron":
		c.report(violation(UnsafeFunction, n, "function %s runs SQL or writes files that cannot be checked: use a plain connection", name))
	}
}

// givesWord reports whether one of the arguments has a constant with the word in
// it.
func givesWord(args []*sqltree.Node, word string) bool {
	for _, arg := range args {
		isIn := func(s string) bool { return strings.Contains(sqltext.Lower(s), word) }
		if arg.Is("A_Const") && arg.Get("sval") != nil && isIn(arg.Get("sval").Str("sval")) || !arg.Is("SelectStmt") && !arg.Is("FuncCall") && givesWord(arg.Kids, word) {
			return true
		}
	}
	return false
}

// runsSQL reports whether a function of that name runs SQL or changes what the
// check rests on, so that no other object may call it under its own name.
func runsSQL(name string) bool {
	return sqlFunctions[name] || name == "set_config" || name == "setval" || strings.HasPrefix(name, "dblink")
}

// SQLFunctions returns the names of the functions that run the SQL which they are
// given, and of setval, which sets the sequence that it is given.
func SQLFunctions() []string {
	return append(slices.Sorted(maps.Keys(sqlFunctions)), "setval")
}

// writesProtected reports whether a call may be of a function that writes a protected table
// without a guard of its own.
func (c *checker) writesProtected(schema, name string) bool {
	closure := &c.policy.closure
	return slices.ContainsFunc(closure.Functions, func(f Name) bool {
		return f.Name == name && f.IsIn(schema) && !slices.Contains(closure.GuardedFunctions, f)
	})
}

func (c *checker) reportFunction(n *sqltree.Node, schema, name string) {
	if matches(c.policy.closure.AllowedFunctions, schema, name) {
		c.report(violation(UnsafeFunction, n, "function %s is allowed with some types of arguments and may write a protected table with others, which the text does not tell apart: rename one of the overloads, or read the others and allow them by fencing.allow_function as well", quotedName(schema, name)))
		return
	}
	if u := c.policy.unreadFunction(schema, name); u != nil {
		c.report(violation(UnsafeFunction, n, "function %s may write protected table %q: %s; %s", quotedName(schema, name), u.Into, u.reason(), u.remedy()))
		return
	}
	c.report(violation(UnsafeFunction, n, "function %s writes table %s, or gives that name to something else, in its own code or by what it calls or fires, as far as code can be read: use a plain connection, or name it in driver.WithGuardedFunctions if it carries a guard of its own", quotedName(schema, name), c.tableOf(schema, name)))
}

// tableOf names a table that a function without a guard may write.
func (c *checker) tableOf(schema, name string) string {
	closure := &c.policy.closure
	for _, f := range closure.Functions {
		if into, ok := closure.FunctionTables[f]; ok && f.Name == name && f.IsIn(schema) && !slices.Contains(closure.GuardedFunctions, f) {
			return strconv.Quote(into.String())
		}
	}
	return "that is protected"
}

// checkFieldCall refuses a writing function in the notation of a column:
// row.f stands for f(row).
func checkFieldCall(c *checker, n *sqltree.Node) {
	if len(c.policy.closure.Functions)+len(c.policy.closure.OwnCallers) == 0 {
		return
	}
	fields := n.List(map[string]string{"ColumnRef": "fields", "A_Indirection": "indirection"}[n.Kind()])
	for i, f := range fields {
		if f.Is("String") && (i > 0 || n.Kind() == "A_Indirection") && c.writesProtected("", f.Str("sval")) {
			c.reportFunction(n, "", f.Str("sval"))
		}
		if f.Is("String") && (i > 0 || n.Kind() == "A_Indirection") && matches(c.policy.closure.OwnCallers, "", f.Str("sval")) {
			c.callsOwn = f.Str("sval")
		}
	}
}

// constructors are the functions that the parser's grammar builds in and an
// older server looks up like any other.
var constructors = map[string]string{"JsonObjectConstructor": "json_object", "JsonArrayConstructor": "json_array", "JsonArrayQueryConstructor": "json_array",
	"JsonObjectAgg": "json_objectagg", "JsonArrayAgg": "json_arrayagg"}

func checkConstructor(c *checker, n *sqltree.Node) {
	if name := constructors[n.Kind()]; c.writesProtected("", name) {
		c.reportFunction(n, "", name)
	}
}

// checkSetConfig treats set_config like SET; its first argument must be a
// constant name.
func checkSetConfig(c *checker, n *sqltree.Node) {
	args := n.List("args")
	name, ok := "", len(args) > 0
	if ok {
		name, ok = textConstant(args[0])
	}
	if !ok && len(args) > 0 && customSetting(args[0]) {
		return
	}
	if !ok {
		c.report(violation(SessionSetting, n, "set_config with a name that is not a constant cannot be checked: write the setting's name as a literal"))
		return
	}
	var values []string
	known := false
	if len(args) > 1 {
		var value string
		if value, known = textConstant(args[1]); known {
			values = strings.Split(value, ",")
		}
	}
	c.setting(n, name, values, known)
}

// customSetting reports whether an expression begins with the constant prefix
// of an application's own settings, such as 'app.' || $1.
func customSetting(n *sqltree.Node) bool {
	for n.Is("A_Expr") && n.Str("kind") == "AEXPR_OP" {
		if parts, ok := sqltree.Strings(n.List("name")); !ok || len(parts) != 1 || parts[0] != "||" {
			return false
		}
		n = n.Get("lexpr")
	}
	prefix, ok := textConstant(n)
	name, _, dot := strings.Cut(prefix, ".")
	return ok && dot && name != "" && sqltext.Lower(name) != "fencing"
}

// checkSetval allows setval on a sequence that is named by a constant, or by
// pg_get_serial_sequence of constants, and that tokens don't come from.
func (c *checker) checkSetval(n *sqltree.Node) {
	args := n.List("args")
	if len(args) > 0 && c.otherSequence(args[0]) {
		return
	}
	c.report(violation(UnsafeFunction, n, "setval on a sequence that tokens may come from: name another sequence as a literal, or use a plain connection"))
}

func (c *checker) otherSequence(n *sqltree.Node) bool {
	if n.Is("TypeCast") && isBuiltinCast(n, "regclass", "text") {
		n = n.Get("arg")
	}
	if n.Is("FuncCall") {
		parts, ok := sqltree.Strings(n.List("funcname"))
		args := n.List("args")
		if !ok || parts[len(parts)-1] != "pg_get_serial_sequence" || len(args) != 2 {
			return false
		}
		table, ok := plainName(args[0])
		_, column := textConstant(args[1])
		return ok && column && table[0] != "fencing"
	}
	parts, ok := plainName(n)
	return ok && !c.isTokenSequence(parts)
}

// plainName reads a constant that names a relation as SQL does. Anything that
// regclass would read in another way (white space, a number that is an oid) is
// none.
func plainName(n *sqltree.Node) (parts []string, ok bool) {
	name, ok := textConstant(n)
	if !ok || !relationName.MatchString(name) {
		return nil, false
	}
	for _, part := range relationPart.FindAllString(name, -1) {
		if part[0] == '"' {
			parts = append(parts, part[1:len(part)-1])
		} else {
			parts = append(parts, sqltext.Lower(part))
		}
		if len(parts[len(parts)-1]) > sqltext.MaxName {
			return nil, false // would be cut to another name
		}
	}
	return parts, true
}

var (
	relationPart = regexp.MustCompile(`"[^"\\]+"|[A-Za-z_][A-Za-z0-9_$]*`)
	relationName = regexp.MustCompile(`^(?:` + relationPart.String() + `)(?:\.(?:` + relationPart.String() + `))?$`)
)

// isBuiltinCast reports whether a cast is to one of the built-in types, named
// with or without their schema.
func isBuiltinCast(n *sqltree.Node, types ...string) bool {
	typeName := n.Get("typeName")
	if len(typeName.List("typmods")) > 0 || len(typeName.List("arrayBounds")) > 0 || typeName.Flag("setof") {
		return false // varchar(n) cuts a constant short
	}
	parts, ok := sqltree.Strings(typeName.List("names"))
	if !ok || len(parts) == 0 || len(parts) > 2 || len(parts) == 2 && parts[0] != "pg_catalog" {
		return false
	}
	for _, t := range types {
		if parts[len(parts)-1] == t {
			return true
		}
	}
	return false
}

// textConstant reads a string literal, bare or cast to text.
func textConstant(n *sqltree.Node) (string, bool) {
	if n.Is("TypeCast") && isBuiltinCast(n, "text", "varchar") {
		n = n.Get("arg")
	}
	if !n.Is("A_Const") || n.Get("sval") == nil {
		return "", false
	}
	return n.Get("sval").Str("sval"), true
}
