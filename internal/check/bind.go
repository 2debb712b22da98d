package check

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"

	"github.com/fencerow/fencerow/tokenctx"
)

// Bind puts t where the statement needs a token: it returns a copy of args
// with the token, as int64, at every token position. What stood there must be
// an integer equal to t, or [tokenctx.Arg]; a literal in the text must equal t.
// The error is a *Violation. Args are indexed as PostgreSQL counts them: $1 is
// args[0].
//
// A statement that needs no token gets args back as they are.
func (p *Plan) Bind(t tokenctx.Token, args []driver.NamedValue) ([]driver.NamedValue, error) {
	return p.BindWith(func(*Table) (tokenctx.Token, bool) { return t, true }, args)
}

// BindAll is Bind with the tokens that ctx carries: each table takes the token
// of its resource, or the default one if it names none.
func (p *Plan) BindAll(ctx context.Context, args []driver.NamedValue) ([]driver.NamedValue, error) {
	return p.BindWith(func(t *Table) (tokenctx.Token, bool) { return t.Token(ctx) }, args)
}

// Token returns the token that ctx carries for the table: that of its resource,
// or the default one if it names none.
func (t *Table) Token(ctx context.Context) (tokenctx.Token, bool) {
	if t.Resource == "" {
		return tokenctx.From(ctx)
	}
	return tokenctx.FromResource(ctx, t.Resource)
}

// BindWith is Bind with the tokens that a function finds for the tables. It may
// be asked for one table more than once.
func (p *Plan) BindWith(tokens func(*Table) (tokenctx.Token, bool), args []driver.NamedValue) ([]driver.NamedValue, error) {
	return new(Binder).Bind(p, tokens, args)
}

// Binder binds tokens as [Plan.BindWith] does, one statement after the other, in
// memory of its own. It is for one goroutine at a time.
type Binder struct {
	args  []driver.NamedValue
	token tokenctx.Token
	boxed any // the token as int64
}

// Bind is [Plan.BindWith]. What it returns holds until the next call or Clear.
func (b *Binder) Bind(p *Plan, tokens func(*Table) (tokenctx.Token, bool), args []driver.NamedValue) ([]driver.NamedValue, error) {
	if err := p.Refusal(); err != nil {
		return nil, err
	}
	if len(p.tokens) == 0 {
		return args, p.checkArgs(args)
	}
	if v := b.copy(p, args); v != nil {
		return nil, v
	}
	for _, use := range p.tokens {
		t, ok := tokens(use.table)
		if v := checkToken(use.table, t, ok); v != nil {
			return nil, v
		}
		if v := b.bindOne(p, use, t, args); v != nil {
			return nil, v
		}
	}
	if v := b.bindCompared(p, tokens); v != nil {
		return nil, v
	}
	return b.args, p.checkArgs(b.args)
}

// bindCompared puts the token where tokenctx.Arg stands in a comparison with a token
// column that guards nothing.
func (b *Binder) bindCompared(p *Plan, tokens func(*Table) (tokenctx.Token, bool)) *Violation {
	if p.later == nil {
		return nil
	}
	for _, use := range p.later.compared {
		if use.param < 1 || use.param > int64(len(b.args)) || b.args[use.param-1].Value != (any)(tokenctx.Arg) {
			continue
		}
		t, ok := tokens(use.table)
		if v := checkToken(use.table, t, ok); v != nil {
			return v
		}
		b.args[use.param-1].Value = int64(t)
	}
	return nil
}

// Clear lets go of the arguments of the last statement.
func (b *Binder) Clear() {
	clear(b.args)
	b.args = b.args[:0]
}

// keptArgs is how many arguments a binder keeps memory for.
const keptArgs = 64

// copy copies the arguments, and adds those of a rewritten text.
func (b *Binder) copy(p *Plan, args []driver.NamedValue) *Violation {
	if cap(b.args) > keptArgs {
		b.args = nil
	}
	b.args = append(b.args[:0], args...)
	return p.extend(&b.args)
}

// box returns a token as the argument that is sent for it.
func (b *Binder) box(t tokenctx.Token) any {
	if b.boxed == nil || b.token != t {
		b.token, b.boxed = t, int64(t)
	}
	return b.boxed
}

// bindOne checks one token position and fills it.
func (b *Binder) bindOne(p *Plan, use tokenUse, t tokenctx.Token, args []driver.NamedValue) *Violation {
	bound := b.args
	if use.param == 0 {
		if use.literal != int64(t) {
			return p.tokenViolation(OtherToken, use, "the token literal in the statement for protected table %s is not the context's token: use a placeholder and tokenctx.Arg", quoted(use.table))
		}
		return nil
	}
	if use.param > int64(len(bound)) {
		return p.tokenViolation(MissingArgument, use, "mismatched param and argument count: token position $%d of protected table %s has no argument among the %d that were passed: pass tokenctx.Arg or the token", use.param, quoted(use.table), len(args))
	}
	i := use.param - 1
	if !p.replaces(use.param) && args[i].Value != (any)(tokenctx.Arg) {
		v, ok := integer(args[i].Value)
		if !ok {
			return p.tokenViolation(TokenArgument, use, "the argument at token position $%d of protected table %s is %s, not an integer: pass tokenctx.Arg or the token as int64", use.param, quoted(use.table), typeName(args[i].Value))
		}
		if v != int64(t) {
			return p.tokenViolation(OtherToken, use, "the argument at token position $%d of protected table %s is not the context's token: pass tokenctx.Arg, or put the token into the context with tokenctx.With", use.param, quoted(use.table))
		}
	}
	// Two tables of different resources can share a placeholder only if both
	// hold the same token: the first has replaced the value by its own.
	if earlier, done := bound[i].Value.(int64); done && earlier != int64(t) {
		return p.tokenViolation(OtherToken, use, "token position $%d stands for protected table %s and for another resource with another token: use two placeholders", use.param, quoted(use.table))
	}
	bound[i].Value = b.box(t)
	return nil
}

// checkArgs refuses tokenctx.Arg wherever it has not been replaced.
func (p *Plan) checkArgs(args []driver.NamedValue) error {
	for i := range args {
		if args[i].Value == (any)(tokenctx.Arg) {
			v := &Violation{Rule: MisplacedArg, offset: -1,
				Message: fmt.Sprintf("tokenctx.Arg is passed for $%d, which is no token position of a protected table: pass it only where the token column is compared and set; if the table should be protected, look whether it is registered under this name (a handle follows the registry within its refresh interval)", i+1)}
			return v
		}
	}
	return nil
}

func (p *Plan) tokenViolation(rule Rule, use tokenUse, format string, args ...any) *Violation {
	v := violation(rule, nil, format, args...).on(use.table)
	v.offset = use.offset
	v.locate(p.text)
	return v
}

// checkToken refuses a context that holds no usable token for a table.
func checkToken(table *Table, t tokenctx.Token, ok bool) *Violation {
	put := "tokenctx.With(ctx, token)"
	what := "token"
	if table.Resource != "" {
		put = fmt.Sprintf("tokenctx.WithResource(ctx, %q, token)", table.Resource)
		what = fmt.Sprintf("token of resource %q", table.Resource)
	}
	switch {
	case !ok:
		return (&Violation{Rule: NoToken, offset: -1, Message: fmt.Sprintf("write to protected table %s without a %s in the context: take the lock, put its token there with %s, and pass that context", quoted(table), what, put)}).on(table)
	case !t.Valid():
		return (&Violation{Rule: InvalidToken, offset: -1, Message: fmt.Sprintf("write to protected table %s with an invalid %s in the context: tokens start at 1, so what was passed to %s is none", quoted(table), what, put)}).on(table)
	}
	return nil
}

// integer resolves an argument to the integer that would be sent for it:
// pointers are followed and driver.Valuer is asked, once.
func integer(v any) (int64, bool) {
	if valuer, ok := v.(driver.Valuer); ok {
		if isNilPointer(v) {
			return 0, false
		}
		resolved, err := valuer.Value()
		if err != nil {
			return 0, false
		}
		n, ok := resolved.(int64)
		return n, ok
	}
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return 0, false
		}
		rv = rv.Elem()
		if valuer, ok := rv.Interface().(driver.Valuer); ok {
			return integer(valuer)
		}
	}
	switch {
	case rv.CanInt():
		return rv.Int(), true
	case rv.CanUint() && rv.Uint() <= math.MaxInt64:
		return int64(rv.Uint()), true
	}
	return 0, false
}

// typeName names the type of an argument; its value is never shown.
func typeName(v any) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("a %T", v)
}

func isNilPointer(v any) bool {
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}
