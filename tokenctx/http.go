package tokenctx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Header is the HTTP request header that [Middleware] reads the token from.
const Header = "Fencing-Token"

// Middleware puts the token of the request's Fencing-Token header into the
// request's context as the default token. A request without the header passes
// on without a token; one whose header is malformed, repeated, zero or negative
// is answered with status 400 and never reaches next.
//
// The header is believed as it stands: put Middleware only where the callers
// are trusted (a scheduler, a gateway that strips the header from outside
// requests). A caller that sends a token too high does not only get in, it
// also locks out every holder after it.
func Middleware(next http.Handler) http.Handler {
	return middleware(next, With)
}

// ResourceMiddleware is [Middleware] for one named resource: the token is
// carried as by [WithResource].
func ResourceMiddleware(resource string, next http.Handler) http.Handler {
	return middleware(next, func(ctx context.Context, t Token) context.Context {
		return WithResource(ctx, resource, t)
	})
}

// SetHeader writes t into the Fencing-Token header of a request to a service
// that uses [Middleware].
func SetHeader(h http.Header, t Token) { h.Set(Header, t.String()) }

func middleware(next http.Handler, with func(context.Context, Token) context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(Header)
		if len(values) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		t, err := parseHeader(values)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(with(r.Context(), t)))
	})
}

// parseHeader takes decimal digits only: what ParseInt lets through beside
// them ("+8") is not a token that this package has written.
func parseHeader(values []string) (Token, error) {
	if len(values) > 1 {
		return 0, errors.New("header " + Header + " is repeated: send one token")
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("header %s is out of range: a token is at most %d", Header, int64(1<<63-1))
	case err != nil || values[0][0] == '+':
		return 0, errors.New("header " + Header + " is malformed: send one positive decimal integer")
	case n <= 0:
		return 0, errors.New("header " + Header + " is not positive: tokens start at 1")
	}
	return Token(n), nil
}
