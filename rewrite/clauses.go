package rewrite

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// clauses says where the clauses of one statement stand, as indexes of tokens.
// They are taken from the tokens, since the tree gives no ends.
type clauses struct {
	first  int // the target's name
	setEnd int // what ends the SET list, or the source of an INSERT
	where  int // WHERE, -1 if there is none
	end    int // RETURNING, or what ends the statement
	source int // VALUES or SELECT of an INSERT
	action int // SET of ON CONFLICT DO UPDATE, -1 if there is none
}

// clauses finds the clauses of a write by its key words outside brackets.
func (f *fixer) clauses(n *node) (clauses, bool) {
	rel := n.get("relation").offset()
	first := slices.IndexFunc(f.tokens, func(t token) bool { return t.start == rel })
	if first < 0 {
		return clauses{}, false
	}
	c := clauses{first: first, where: -1, source: -1, action: -1}
	from := -1
	if n.kind == "UpdateStmt" && len(n.list("fromClause")) > 0 {
		from = firstOffset(n.get("fromClause"))
	}
	fromToken, conflict, depth := -1, -1, 0
	i := first
	for ; i < len(f.tokens) && depth >= 0; i++ {
		switch kind := f.tokens[i].kind; {
		case kind == pg_query.Token_ASCII_40 || kind == pg_query.Token_ASCII_91:
			depth++
		case kind == pg_query.Token_ASCII_41 || kind == pg_query.Token_ASCII_93:
			depth--
		case depth > 0 || f.is(i-1, pg_query.Token_ASCII_46): // a key word behind a dot is a name
		case kind == pg_query.Token_ASCII_59:
			depth = -1
		case kind == pg_query.Token_FROM && f.tokens[i].start < from:
			fromToken = i // the last one before FROM's first item
		case kind == pg_query.Token_ON && n.kind == "InsertStmt" && f.is(i+1, pg_query.Token_CONFLICT):
			conflict = i
		case kind == pg_query.Token_WHERE && (n.kind != "InsertStmt" || c.action >= 0):
			c.where = i
		case kind == pg_query.Token_SET && conflict >= 0 && c.action < 0:
			c.action = i
		case (kind == pg_query.Token_VALUES || kind == pg_query.Token_SELECT) && c.source < 0:
			c.source = i
		case kind == pg_query.Token_RETURNING:
			depth = -1
		}
		if depth < 0 {
			break
		}
	}
	c.end = i
	c.setEnd = c.end
	for _, boundary := range []int{fromToken, c.where} {
		if boundary >= 0 {
			c.setEnd = min(c.setEnd, boundary)
		}
	}
	if n.kind == "InsertStmt" && conflict >= 0 {
		c.source = min(c.source, conflict)
	}
	return c, true
}

func (f *fixer) is(i int, kind pg_query.Token) bool {
	return i < len(f.tokens) && f.tokens[i].kind == kind
}

// closing returns the token that closes the bracket at the given one.
func (f *fixer) closing(open int) int {
	depth := 0
	for i := open; i < len(f.tokens); i++ {
		switch f.tokens[i].kind {
		case pg_query.Token_ASCII_40:
			depth++
		case pg_query.Token_ASCII_41:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// thens returns the THEN of each action of a MERGE.
func (f *fixer) thens(n *node) []int {
	rel := n.get("relation").offset()
	first := slices.IndexFunc(f.tokens, func(t token) bool { return t.start == rel })
	var out []int
	depth, cases := 0, 0
	for i := max(first, 1); i < len(f.tokens) && depth >= 0; i++ {
		switch kind := f.tokens[i].kind; {
		case kind == pg_query.Token_ASCII_40 || kind == pg_query.Token_ASCII_91:
			depth++
		case kind == pg_query.Token_ASCII_41 || kind == pg_query.Token_ASCII_93:
			depth--
		case depth > 0 || f.is(i-1, pg_query.Token_ASCII_46):
		case kind == pg_query.Token_CASE:
			cases++
		case kind == pg_query.Token_END_P:
			cases--
		case kind == pg_query.Token_THEN && cases == 0:
			out = append(out, i)
		}
	}
	return out
}

// guardInsert adds the token column to the column list and the token to every
// row, and guards ON CONFLICT DO UPDATE.
func (f *fixer) guardInsert(n *node, t target, c clauses) bool {
	table := t.tables[0]
	cols := n.list("cols")
	if len(cols) == 0 || c.source < 0 {
		return false
	}
	if !slices.ContainsFunc(cols, func(col *node) bool { return col.str("name") == table.TokenColumn }) {
		open := c.first
		for open < c.source && f.tokens[open].kind != pg_query.Token_ASCII_40 {
			open++
		}
		end := f.closing(open)
		if end < 0 || end > c.source || !f.addToSource(n.get("selectStmt"), c) {
			return false
		}
		f.insert(f.before(end), ", "+identifier(table.TokenColumn))
	}
	conflict := n.get("onConflictClause")
	if conflict == nil || conflict.str("action") != "ONCONFLICT_UPDATE" {
		return true
	}
	token := "EXCLUDED." + identifier(table.TokenColumn)
	read := tokenOperand
	if f.policy.changesExcluded(table) {
		token = f.next
	} else {
		read = excludedReader(table)
	}
	return c.action >= 0 && f.guardUpdate(n, t, c, token, conflict.list("targetList"), conflict.get("whereClause"), read)
}

// addToSource adds the token to each row of an INSERT's source: VALUES, or one
// SELECT whose list ends at FROM or at the end.
func (f *fixer) addToSource(source *node, c clauses) bool {
	if !source.is("SelectStmt") || source.str("op") != "SETOP_NONE" || source.get("withClause") != nil {
		return false
	}
	if rows := source.list("valuesLists"); rows != nil {
		open := c.source + 1
		for range rows {
			if !f.is(open, pg_query.Token_ASCII_40) {
				return false
			}
			end := f.closing(open)
			if end < 0 {
				return false
			}
			f.insert(f.before(end), ", "+f.next)
			open = end + 2 // past the comma
		}
		return true
	}
	from := source.get("fromClause")
	if from == nil {
		return false
	}
	at, depth, last := firstOffset(from), 0, -1
	for i := c.source; i < len(f.tokens) && f.tokens[i].start < at; i++ {
		switch f.tokens[i].kind {
		case pg_query.Token_ASCII_40:
			depth++
		case pg_query.Token_ASCII_41:
			depth--
		case pg_query.Token_FROM:
			if depth == 0 {
				last = i
			}
		}
	}
	if last < 0 {
		return false
	}
	f.insert(f.before(last), ", "+f.next+"::bigint")
	return true
}
