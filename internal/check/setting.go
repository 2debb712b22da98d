package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkVariableSet checks SET, SET LOCAL and RESET.
func checkVariableSet(c *checker, n *sqltree.Node, _ bool) {
	name := n.Str("name")
	switch n.Str("kind") {
	case "VAR_RESET_ALL":
		c.report(violation(SessionSetting, n, "RESET ALL changes settings that the check of later statements rests on: reset them by name"))
	case "VAR_SET_MULTI": // SET TRANSACTION, SET SESSION CHARACTERISTICS
		if !strings.HasPrefix(strings.ToUpper(name), "TRANSACTION") && !strings.HasPrefix(strings.ToUpper(name), "SESSION CHARACTERISTICS") {
			c.report(violation(UnknownNode, n, "SET %s cannot be checked: use a plain connection", name))
		}
	case "VAR_SET_VALUE":
		values, known := settingValues(n.List("args"))
		c.setting(n, name, values, known)
	default: // DEFAULT, FROM CURRENT, RESET
		c.setting(n, name, nil, true)
	}
}

// checkStoredSetting checks ALTER ROLE, DATABASE and SYSTEM ... SET, which act on
// sessions to come. A search path set so is refused whatever it is.
func checkStoredSetting(c *checker, n *sqltree.Node, _ bool) {
	set := n.Get("setstmt")
	if set == nil {
		return
	}
	if sqltext.Lower(set.Str("name")) == "search_path" || set.Str("kind") == "VAR_RESET_ALL" {
		c.report(violation(SessionSetting, n, "%s of search_path or of all settings changes sessions to come: use a plain connection", statementName(n.Kind())))
		return
	}
	if name := sqltext.Lower(set.Str("name")); strings.HasSuffix(name, "_command") || strings.HasSuffix(name, "_libraries") || strings.HasSuffix(name, "_library") {
		c.report(violation(SessionSetting, n, "setting %s makes the server run commands or code: use a plain connection", name))
		return
	}
	checkVariableSet(c, set, false)
}

// setting checks the change of one setting. values is nil where it goes back
// to its default, and known is false where the value isn't constant.
func (c *checker) setting(at *sqltree.Node, name string, values []string, known bool) {
	folded := strings.ToLower(name)
	const advice = "; set it on the role or in the connection string, over a plain connection"
	switch {
	case strings.HasPrefix(folded, "fencing.token"):
		c.report(violation(SessionSetting, at, "setting %s is not changed through fencerow: put the token into the context, the driver sends it along", folded))
	case protectedSettings[folded] || strings.HasPrefix(folded, "fencing."):
		c.report(violation(SessionSetting, at, "setting %s is not changed through fencerow: the protection rests on it%s", folded, advice))
	case folded == "standard_conforming_strings" && !(known && len(values) == 1 && isOn(values[0])):
		c.report(violation(SessionSetting, at, "standard_conforming_strings must stay on: with it off the server reads texts otherwise than the check%s", advice))
	case folded == "client_encoding" && !(known && len(values) == 1 && isUTF8(values[0])):
		c.report(violation(SessionSetting, at, "client_encoding must stay UTF8: in another the server reads texts otherwise than the check%s", advice))
	case folded == "search_path" && c.stored:
		c.report(violation(SessionSetting, at, "a change of search_path that is stored in an object would not be seen when it runs: leave it out, or use a plain connection"))
	case folded == "search_path":
		c.changesPath = true
		names := func(schema string) bool {
			return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(strings.ToLower(v), schema) })
		}
		switch {
		case !known || names("pg_catalog"):
			c.report(violation(SessionSetting, at, "search_path must be a literal list without pg_catalog: otherwise the operator < may become somebody's own"))
		case names("fencing"):
			c.report(violation(SessionSetting, at, "search_path must not name the schema fencing: its tables and functions would then be reached by bare names; write fencing.take and the like with their schema"))
		}
	}
}

// protectedSettings are those that the protection rests on, and those that
// bring code into later sessions.
var protectedSettings = setOf("session_replication_role", "role", "session_authorization", "allow_system_table_mods",
	"session_preload_libraries", "local_preload_libraries", "shared_preload_libraries")

// settingValues returns the constants of a SET's list.
func settingValues(args []*sqltree.Node) ([]string, bool) {
	values := make([]string, 0, len(args))
	for _, a := range args {
		if a.Is("TypeCast") { // SET TIME ZONE INTERVAL '...'
			a = a.Get("arg")
		}
		if !a.Is("A_Const") {
			return nil, false
		}
		switch {
		case a.Get("sval") != nil:
			values = append(values, a.Get("sval").Str("sval"))
		case a.Get("boolval") != nil:
			values = append(values, map[bool]string{true: "on", false: "off"}[a.Get("boolval").Flag("boolval")])
		default:
			values = append(values, "")
		}
	}
	return values, true
}

func isOn(v string) bool {
	v = strings.ToLower(strings.TrimSpace(v))
	return v == "on" || v == "true" || v == "yes" || v == "1"
}

func isUTF8(v string) bool {
	v = strings.ToLower(strings.Trim(strings.TrimSpace(v), `'"`))
	return v == "utf8" || v == "utf-8" || v == "unicode"
}
