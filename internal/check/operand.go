package check

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// operand is a token as it is written in a statement: a placeholder, a
// positive integer literal, or the name of a column that holds the token in
// every row (EXCLUDED's, or one of a list of VALUES).
type operand struct {
	param   int64 // the placeholder's number, 0 if it is none
	literal int64
	name    string
	rows    []operand // what stands behind the name, if it isn't known otherwise
	at      *sqltree.Node
	cast    *sqltree.Node // what casts it by the bare name of a type, which could be somebody's own: a TypeName or FuncCall
}

// same reports whether two operands always have the same value.
func (o operand) same(other operand) bool {
	return o.param == other.param && o.literal == other.literal && o.name == other.name
}

// spelled writes an operand as SQL. A literal is somebody's value, so it is
// not repeated.
func (o operand) spelled() string {
	switch {
	case o.param > 0:
		return fmt.Sprintf("$%d", o.param)
	case o.name != "":
		return o.name
	}
	return "the token"
}

// operandReader reads an expression as a token operand.
type operandReader func(*sqltree.Node) (operand, bool)

// tokenOperand reads n as a token operand: $n or a plain positive decimal
// integer, bare or cast to one of the built-in integer types. A fraction is
// none (8.4 admits an equal token and is rounded on assignment).
func tokenOperand(n *sqltree.Node) (operand, bool) {
	n, cast := castOperand(n)
	if n == nil {
		return operand{}, false
	}
	switch n.Kind() {
	case "ParamRef":
		number, ok := n.Number("number")
		return operand{param: number, at: n, cast: cast}, ok && number > 0
	case "A_Const":
		v, ok := integerLiteral(n)
		return operand{literal: v, at: n, cast: cast}, ok
	}
	return operand{}, false
}

// castOperand returns what n casts to one of the built-in integer types, or n
// itself, and what casts it if that is done by a bare name: $1::int8, int8($1).
func castOperand(n *sqltree.Node) (arg, bare *sqltree.Node) {
	switch {
	case n.Is("TypeCast"):
		typeName := n.Get("typeName")
		if isBuiltinInteger(typeName) {
			return n.Get("arg"), nil
		}
		if isBareInteger(typeName) {
			return n.Get("arg"), typeName
		}
	case n.Is("FuncCall"):
		return calledCast(n)
	}
	return n, nil
}

// calledCast is castOperand for a call of a function of the type's name. Given a
// placeholder, it is the cast: the server looks for a type of that name.
func calledCast(n *sqltree.Node) (arg, bare *sqltree.Node) {
	args := n.List("args")
	if len(args) != 1 || n.Str("funcformat") != "COERCE_EXPLICIT_CALL" || len(n.List("agg_order")) > 0 || n.Get("agg_filter") != nil ||
		n.Get("over") != nil || n.Flag("agg_within_group") || n.Flag("agg_star") || n.Flag("agg_distinct") || n.Flag("func_variadic") {
		return n, nil
	}
	var room [2]string
	parts, ok := sqltree.AppendStrings(room[:0], n.List("funcname"))
	switch {
	case !ok:
	case len(parts) == 1 && slices.Contains(integerTypes, parts[0]):
		return args[0], n
	case len(parts) == 2 && parts[0] == "pg_catalog" && slices.Contains(integerTypes, parts[1]):
		return args[0], nil
	}
	return n, nil
}

// reader returns the reader for a statement's guards and raises. Beside plain
// operands it knows the columns of VALUES lists in FROM that hold a token in
// every row, as bulk updates write them.
func (c *checker) reader(stmt *sqltree.Node, fromField string) operandReader {
	return c.readerWith(stmt, fromField, nil)
}

// readerWith is reader for a part of a statement that has a WITH of its own.
func (c *checker) readerWith(stmt *sqltree.Node, fromField string, outer *sqltree.Node) operandReader {
	lists := findValues(stmt, fromField, outer)
	return func(n *sqltree.Node) (operand, bool) {
		if o, ok := tokenOperand(n); ok {
			return o, true
		}
		return lists.token(n)
	}
}

// integerLiteral returns the value of a positive integer constant. The tree
// holds an int4 as a number, left out unless it is positive, and any larger
// number as its text.
func integerLiteral(n *sqltree.Node) (int64, bool) {
	if n.IsNonDecimal {
		return 0, false
	}
	if i := n.Get("ival"); i != nil {
		v, ok := i.Number("ival")
		return v, ok && v > 0
	}
	f := n.Get("fval")
	if f == nil {
		return 0, false
	}
	s := f.Str("fval")
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v > 0
}

// isBuiltinInteger reports whether a type is pg_catalog's int2, int4 or int8,
// as the grammar writes smallint, integer and bigint. An unqualified name is
// looked up in the search path, where a temporary type comes first.
func isBuiltinInteger(typeName *sqltree.Node) bool {
	return isBuiltinType(typeName, "int2", "int4", "int8")
}

// integerTypes are the built-in types of integers.
var integerTypes = []string{"int2", "int4", "int8"}

// isBareInteger reports whether a type is called like a built-in integer, without
// its schema. It is one only once the schema has been written into the text.
func isBareInteger(typeName *sqltree.Node) bool {
	var room [2]string
	parts := simpleType(room[:0], typeName)
	return len(parts) == 1 && slices.Contains(integerTypes, parts[0])
}

func isBuiltinType(typeName *sqltree.Node, names ...string) bool {
	var room [2]string
	parts := simpleType(room[:0], typeName)
	return len(parts) == 2 && parts[0] == "pg_catalog" && slices.Contains(names, parts[1])
}

// simpleType appends the parts of a type's name, nothing if it has more than that.
func simpleType(parts []string, typeName *sqltree.Node) []string {
	if typeName == nil || len(typeName.List("arrayBounds")) > 0 || len(typeName.List("typmods")) > 0 ||
		typeName.Flag("setof") || typeName.Flag("pct_type") {
		return nil
	}
	parts, ok := sqltree.AppendStrings(parts, typeName.List("names"))
	if !ok {
		return nil
	}
	return parts
}

// isBigintCast reports whether n casts its operand to bigint.
func isBigintCast(n *sqltree.Node) bool {
	return n.Is("TypeCast") && isBuiltinType(n.Get("typeName"), "int8")
}

// bareBigint returns the name of the type that n casts its operand to, if that is
// a bare int8.
func bareBigint(n *sqltree.Node) *sqltree.Node {
	if !n.Is("TypeCast") {
		return nil
	}
	typeName := n.Get("typeName")
	var room [2]string
	if parts := simpleType(room[:0], typeName); len(parts) != 1 || parts[0] != "int8" {
		return nil
	}
	return typeName
}
