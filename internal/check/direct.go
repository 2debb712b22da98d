package check

import (
	"database/sql/driver"
	"slices"

	"github.com/fencerow/fencerow/tokenctx"
)

// Direct reports whether a text can be sent as it was given, with nothing to
// be looked at before but the token's place among its arguments; see
// [Binder.BindDirect].
func (p *Plan) Direct() bool { return p.direct }

// Takes returns the table whose token the text takes, nil if it takes none. It is
// for texts that are [Plan.Direct].
func (p *Plan) Takes() *Table {
	if p.later == nil {
		return nil
	}
	return p.later.table
}

// TakesAt reports whether a placeholder of such a text is one of the token's.
func (p *Plan) TakesAt(number int) bool {
	return p.later != nil && slices.Contains(p.later.places, int64(number))
}

// BindDirect is Bind for a text that is [Plan.Direct] and takes the token t. It
// reports false, having done nothing, where the places of the token don't hold t
// as an int64 or [tokenctx.Arg]: Bind tells what is wrong with that, or binds it.
// The other arguments are not looked at. Where all places hold the token the
// arguments are returned themselves.
func (b *Binder) BindDirect(p *Plan, t tokenctx.Token, args []driver.NamedValue) (bound []driver.NamedValue, ok bool) {
	if !p.direct || p.Takes() == nil || !t.Valid() {
		return nil, false
	}
	stands := false
	for _, number := range p.later.places {
		if number > int64(len(args)) {
			return nil, false
		}
		switch v := args[number-1].Value.(type) {
		case int64:
			if v != int64(t) {
				return nil, false
			}
		case tokenctx.ArgValue:
			stands = true
		default:
			return nil, false
		}
	}
	if !stands {
		return args, true
	}
	if cap(b.args) > keptArgs {
		b.args = nil
	}
	b.args = append(b.args[:0], args...)
	for _, number := range p.later.places {
		b.args[number-1].Value = b.box(t)
	}
	return b.args, true
}

// places returns the placeholders that hold the token of one resource, with a
// table that takes it.
func places(tokens []tokenUse) (table *Table, numbers []int64) {
	var seen set[int64] // there may be as many as rows
	for _, use := range tokens {
		if use.param == 0 || table != nil && use.table.Resource != table.Resource {
			return nil, nil
		}
		if table = use.table; !seen.has(use.param) {
			seen.add(use.param)
			numbers = append(numbers, use.param)
		}
	}
	return table, numbers
}
