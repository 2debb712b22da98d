package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

// BoundToken is the token of a resource in a transaction; "" is the default.
type BoundToken struct {
	Resource string
	Token    tokenctx.Token
}

// BoundTokens are the tokens that a transaction is bound to.
type BoundTokens []BoundToken

// Of returns the token for a resource.
func (tokens BoundTokens) Of(resource string) (tokenctx.Token, bool) {
	for _, b := range tokens {
		if b.Resource == resource {
			return b.Token, true
		}
	}
	return 0, false
}

// Tokens returns the tokens of ctx that the tables take.
func (p *Protection) Tokens(ctx context.Context) (tokens BoundTokens) {
	for _, resource := range p.wanted {
		token, ok := (&check.Table{Resource: resource}).Token(ctx)
		if ok {
			tokens = append(tokens, BoundToken{resource, token})
		}
	}
	return tokens
}

// SetLocal is the SQL that tells the server the tokens. It has no SELECT, which
// would take the snapshot of a transaction that isn't READ COMMITTED.
func (tokens BoundTokens) SetLocal() string {
	var b strings.Builder
	for _, bound := range tokens {
		if bound.Token.Valid() {
			fmt.Fprintf(&b, "; set local %s = '%d'", check.SettingName(bound.Resource), bound.Token)
		}
	}
	return b.String()
}

// OtherToken refuses a statement under another token than its transaction's, which was
// begun with a context.
func OtherToken(ctx context.Context, t *check.Table, tokens BoundTokens, begun context.Context) *check.Violation {
	if _, _, isAmbiguous := tokenctx.Ambiguous(ctx); isAmbiguous && t.Resource == "" {
		return betweenLeases(ctx, t.String())
	}
	own, ok := t.Token(ctx)
	if bound, isBound := tokens.Of(t.Resource); !ok || !isBound || own == bound {
		return nil
	}
	bound, _ := tokens.Of(t.Resource)
	v := check.Refuse(check.OtherToken, fmt.Sprintf("write to protected table %q carries another token than its transaction: %s, and the transaction was begun with %s; begin one transaction for each token, or begin it with a context that has none",
		t.String(), tokenOf(ctx, own), tokenOf(begun, bound)))
	v.Table = t.String()
	return v
}

// tokenOf names a token, and the resource that its context carries it for.
func tokenOf(ctx context.Context, token tokenctx.Token) string {
	if resource, ok := tokenctx.ResourceOf(ctx, token); ok {
		return fmt.Sprintf("token %d of %q", token, resource)
	}
	return fmt.Sprintf("token %d", token)
}

// betweenLeases says why a context has no default token, if it carries those of two
// leases.
func betweenLeases(ctx context.Context, table string) *check.Violation {
	outer, inner, ok := tokenctx.Ambiguous(ctx)
	if !ok {
		return nil
	}
	v := check.Refuse(check.NoToken, fmt.Sprintf("write to protected table %q under two leases, of %q and, within it, of %q: the table names no resource, so nothing says whose token it takes; register it with the resource of the lease that protects it (migrations.Table{Resource: ...}), or pass the context of that lease alone", table, outer, inner))
	v.Table = table
	return v
}

// SayBetween is betweenLeases in the place of an error that there is no token.
func SayBetween(ctx context.Context, err error) error {
	var v *check.Violation
	if !errors.As(err, &v) || v.Rule != check.NoToken {
		return err
	}
	if between := betweenLeases(ctx, v.Table); between != nil {
		return between
	}
	return err
}
