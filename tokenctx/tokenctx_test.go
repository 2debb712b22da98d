package tokenctx_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

func ExampleWith() {
	ctx := tokenctx.With(context.Background(), 8)
	token, ok := tokenctx.From(ctx)
	fmt.Println(token, ok)
	// Output: 8 true
}

func ExampleWithResource() {
	ctx := tokenctx.WithResource(context.Background(), "orders", 8)
	_, isDefault := tokenctx.From(ctx)
	token, ok := tokenctx.FromResource(ctx, "orders")
	fmt.Println(isDefault, token, ok)
	// Output: false 8 true
}

func TestTokens(t *testing.T) {
	bg := context.Background()
	both := tokenctx.WithResource(tokenctx.With(bg, 8), "orders", 9)
	derived, cancel := context.WithCancel(both)
	defer cancel()
	tests := map[string]struct {
		ctx      context.Context
		resource string
		token    tokenctx.Token
		ok       bool
	}{
		"none":                      {bg, "", 0, false},
		"none of that name":         {tokenctx.With(bg, 8), "orders", 0, false},
		"default":                   {both, "", 8, true},
		"named":                     {both, "orders", 9, true},
		"another name":              {both, "jobs", 0, false},
		"the nearest wins":          {tokenctx.With(both, 10), "", 10, true},
		"the nearest of a name":     {tokenctx.WithResource(both, "orders", 11), "orders", 11, true},
		"one leaves the other":      {tokenctx.With(both, 10), "orders", 9, true},
		"a derived context keeps":   {derived, "orders", 9, true},
		"an invalid one shadows":    {tokenctx.With(both, 0), "", 0, true},
		"a resource without a name": {tokenctx.WithResource(bg, "", 8), "", 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			token, ok := tokenctx.From(test.ctx)
			if test.resource != "" {
				token, ok = tokenctx.FromResource(test.ctx, test.resource)
			}
			require.Equal(t, test.token, token)
			require.Equal(t, test.ok, ok)
		})
	}
}

func TestTokenValid(t *testing.T) {
	require.True(t, tokenctx.Token(1).Valid())
	require.False(t, tokenctx.Token(0).Valid())
	require.False(t, tokenctx.Token(-1).Valid())
}

func TestArgHasNoValue(t *testing.T) {
	_, err := driver.Valuer(tokenctx.Arg).Value()
	require.ErrorContains(t, err, "by a driver that is not fencerow")
	require.Equal(t, "tokenctx.Arg", fmt.Sprint(tokenctx.Arg))
}

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	stale := fmt.Errorf("save: %w", &tokenctx.StaleError{Table: "orders", Token: 7, Current: 8, Err: cause})
	require.ErrorIs(t, stale, tokenctx.ErrStale)
	require.NotErrorIs(t, stale, tokenctx.ErrReplay)
	require.ErrorIs(t, stale, cause)
	require.ErrorContains(t, stale, `stale token 7 on "orders": the row carries, or was deleted under, token 8`)
	require.ErrorContains(t, &tokenctx.StaleError{Table: "orders", Token: 7}, "the row carries a newer token")

	replay := fmt.Errorf("save: %w", &tokenctx.ReplayError{Table: "orders", Token: 7, Err: cause})
	require.ErrorIs(t, replay, tokenctx.ErrReplay)
	require.NotErrorIs(t, replay, tokenctx.ErrStale)
	require.ErrorIs(t, replay, cause)
	require.ErrorContains(t, replay, `replay of token 7 on "orders"`)
}

func TestMiddleware(t *testing.T) {
	tests := map[string]struct {
		header []string
		status int
		body   string
	}{
		"none":            {nil, http.StatusOK, "0 false"},
		"a token":         {[]string{"8"}, http.StatusOK, "8 true"},
		"the largest":     {[]string{"9223372036854775807"}, http.StatusOK, "9223372036854775807 true"},
		"empty":           {[]string{""}, http.StatusBadRequest, "malformed"},
		"text":            {[]string{"eight"}, http.StatusBadRequest, "malformed"},
		"a fraction":      {[]string{"8.5"}, http.StatusBadRequest, "malformed"},
		"hexadecimal":     {[]string{"0x8"}, http.StatusBadRequest, "malformed"},
		"a sign":          {[]string{"+8"}, http.StatusBadRequest, "malformed"},
		"an underscore":   {[]string{"1_000"}, http.StatusBadRequest, "malformed"},
		"a list":          {[]string{"8, 9"}, http.StatusBadRequest, "malformed"},
		"zero":            {[]string{"0"}, http.StatusBadRequest, "not positive"},
		"negative":        {[]string{"-8"}, http.StatusBadRequest, "not positive"},
		"too large":       {[]string{"9223372036854775808"}, http.StatusBadRequest, "out of range"},
		"repeated":        {[]string{"8", "8"}, http.StatusBadRequest, "repeated"},
		"empty and again": {[]string{"", "8"}, http.StatusBadRequest, "repeated"},
	}
	for name, test := range tests {
		for wrapper, middleware := range map[string]func(http.Handler) http.Handler{
			"default":  tokenctx.Middleware,
			"resource": func(h http.Handler) http.Handler { return tokenctx.ResourceMiddleware("orders", h) },
		} {
			t.Run(name+"/"+wrapper, func(t *testing.T) {
				handler := middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					token, ok := tokenctx.From(r.Context())
					if wrapper == "resource" {
						require.False(t, ok)
						token, ok = tokenctx.FromResource(r.Context(), "orders")
					}
					fmt.Fprint(w, token, " ", ok)
				}))
				request := httptest.NewRequest(http.MethodPost, "/", nil)
				for _, h := range test.header {
					request.Header.Add("fencing-token", h)
				}
				response := httptest.NewRecorder()
				handler.ServeHTTP(response, request)
				require.Equal(t, test.status, response.Code)
				require.Contains(t, response.Body.String(), test.body)
				require.NotContains(t, strings.ToLower(response.Body.String()), "panic")
			})
		}
	}
}

func TestSetHeader(t *testing.T) {
	h := http.Header{}
	tokenctx.SetHeader(h, 8)
	require.Equal(t, "8", h.Get(tokenctx.Header))
}
