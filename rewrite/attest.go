package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// SettingName returns the name of the setting that carries the token of a
// resource, "" being the default one, to the triggers of the server.
//
// Names of settings ignore case and take letters, digits, "_" and "$". So all
// bytes of a resource but a-z, 0-9 and "_" are written as "$" and two
// hexadecimal digits; a name that gets too long is "$m" and a hash.
func SettingName(resource string) string {
	if resource == "" {
		return "fencing.token"
	}
	var b strings.Builder
	b.WriteString("token_")
	for _, c := range []byte(resource) {
		if c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "$%02x", c)
		}
	}
	if b.Len() > maxName {
		hash := sha256.Sum256([]byte(resource))
		return "fencing.token_$m" + hex.EncodeToString(hash[:])[:40]
	}
	return "fencing." + b.String()
}

// deletion is a place where a text deletes rows of a protected table.
type deletion struct {
	stmt   *node // the DELETE or MERGE
	at     *node // what has the condition: the DELETE, or the MERGE's action
	table  *Table
	guards []guard
}

// Attested returns the text to be sent: a DELETE leaves no row with the token,
// so each condition under which the text deletes protected rows ends with a
// call that puts the token into the setting of SettingName, where a trigger of
// the server finds it. It takes the same arguments as the text itself.
//
// A DELETE whose token can't be told for all its rows at once stays as it is,
// and so does a text for which nothing shows that the calls are all that was
// added. The server then refuses it.
func (p *Plan) Attested() string {
	p.attestOnce.Do(func() { p.attested = p.attest() })
	return p.attested
}

func (p *Plan) attest() string {
	calls := settingCalls(p.deletes)
	if len(calls) == 0 {
		return p.text
	}
	f := &fixer{checker: checker{sql: p.text}, tokens: significant(p.text)}
	done := make(map[*node]bool, len(calls))
	for _, d := range p.deletes {
		call, ok := calls[d.at]
		if !ok || done[d.at] {
			continue
		}
		done[d.at] = true
		end, ok := f.conditionEnd(d)
		if !ok {
			return p.text
		}
		f.insert(f.before(end), " AND "+call)
	}
	if text := f.apply(); addsOnly(p.root, text, calls) {
		return text
	}
	return p.text
}

// settingCalls returns the call that each deletion's condition ends with. It
// leaves out those whose token isn't known, or whose name stands for tables
// that take another one each.
func settingCalls(deletes []deletion) map[*node]string {
	calls := make(map[*node]string)
	for _, d := range deletes {
		call := d.settingCall()
		if earlier, ok := calls[d.at]; ok && earlier != call {
			call = ""
		}
		calls[d.at] = call
	}
	for at, call := range calls {
		if call == "" {
			delete(calls, at)
		}
	}
	return calls
}

// settingCall writes the call with the first guard's token that can be told:
// all the guards have to compare with the same.
func (d deletion) settingCall() string {
	for _, g := range d.guards {
		if text, ok := g.asText(); ok {
			return fmt.Sprintf("pg_catalog.set_config('%s', %s, true) IS NOT NULL", SettingName(d.table.Resource), text)
		}
	}
	return ""
}

// asText writes the token of an operand as SQL of type text. Bare names of
// types could be somebody's own.
func (o operand) asText() (string, bool) {
	switch {
	case o.param > 0:
		return fmt.Sprintf("$%d::pg_catalog.int8::pg_catalog.text", o.param), true
	case o.literal > 0:
		return fmt.Sprintf("'%d'", o.literal), true
	case len(o.rows) == 0 || slices.ContainsFunc(o.rows, func(row operand) bool { return !row.same(o.rows[0]) }):
		return "", false
	}
	return o.rows[0].asText()
}

// conditionEnd returns the token before which a deletion's condition ends.
func (f *fixer) conditionEnd(d deletion) (int, bool) {
	if d.stmt == d.at {
		c, ok := f.clauses(d.stmt)
		return c.end, ok
	}
	whens, thens := d.stmt.list("mergeWhenClauses"), f.thens(d.stmt)
	i := slices.Index(whens, d.at)
	if i < 0 || len(thens) != len(whens) {
		return 0, false
	}
	return thens[i], true
}
