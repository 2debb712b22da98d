package gate

import (
	"context"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// BoundToken is the token of a resource in a transaction; "" is the default.
type BoundToken struct {
	Resource string
	Token    tokenctx.Token
}

// Tokens returns the tokens of ctx that the tables take.
func (p *Protection) Tokens(ctx context.Context) (tokens []BoundToken) {
	for _, resource := range p.wanted {
		token, ok := (&rewrite.Table{Resource: resource}).Token(ctx)
		if ok {
			tokens = append(tokens, BoundToken{resource, token})
		}
	}
	return tokens
}
