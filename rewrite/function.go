package rewrite

import (
	"strings"
)

// fencingFunctions are the functions of schema fencing that an application
// calls.
var fencingFunctions = setOf("next_token", "take", "renew", "release", "doctor")

// sqlFunctions run SQL that they get as text, or write files that the server
// reads (https://www.postgresql.org/docs/current/functions-xml.html and others).
var sqlFunctions = setOf(
	"query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema",
	"cursor_to_xml", "cursor_to_xmlschema",
	"table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema",
	"schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema",
	"database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema",
	"ts_stat", "ts_rewrite", "lo_import", "lo_export",
)

// checkFunction checks the call of a function, by the last part of its name:
// a function of that name in a user's schema is treated alike.
func checkFunction(c *checker, n *node) {
	parts, ok := stringList(n.list("funcname"))
	if !ok || len(parts) == 0 {
		c.report(violation(UnsafeFunction, n, "a function call cannot be read; write its name plainly"))
		return
	}
	name, schema := parts[len(parts)-1], ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	switch {
	case schema == "fencing" && !fencingFunctions[name]:
		c.report(violation(UnsafeFunction, n, "function fencing.%s is not called through fencerow: use a plain connection", name))
	case name == "set_config":
		checkSetConfig(c, n)
	case name == "setval":
		c.checkSetval(n)
	case sqlFunctions[name] && !(name == "ts_rewrite" && len(n.list("args")) == 3), strings.HasPrefix(name, "dblink"):
		c.report(violation(UnsafeFunction, n, "function %s runs SQL or writes files that cannot be checked: use a plain connection", name))
	}
}

// checkSetConfig treats set_config like SET; its first argument must be a
// constant name.
func checkSetConfig(c *checker, n *node) {
	args := n.list("args")
	name, ok := "", len(args) > 0
	if ok {
		name, ok = textConstant(args[0])
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

// checkSetval allows setval on a sequence that is named by a constant and is
// not one the tokens come from.
func (c *checker) checkSetval(n *node) {
	args := n.list("args")
	if len(args) > 0 {
		arg := args[0]
		if arg.is("TypeCast") {
			arg = arg.get("arg")
		}
		if name, ok := textConstant(arg); ok && !strings.Contains(name, "fencing") && !strings.Contains(name, `"`) {
			return
		}
	}
	c.report(violation(UnsafeFunction, n, "setval on a sequence that tokens may come from: name another sequence as a literal, or use a plain connection"))
}

// textConstant reads a string literal, bare or cast to text.
func textConstant(n *node) (string, bool) {
	if n.is("TypeCast") && isBuiltinType(n.get("typeName"), "text", "varchar") {
		n = n.get("arg")
	}
	if !n.is("A_Const") || n.get("sval") == nil {
		return "", false
	}
	return n.get("sval").str("sval"), true
}
