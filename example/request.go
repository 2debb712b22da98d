//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fencerow/fencerow/tokenctx"
)

// response is a worker's answer to a request.
type response struct {
	status int
	body   string
	err    error // no answer came
}

// check returns an error unless the answer has the status.
func (r response) check(who string, status int) error {
	switch {
	case r.err != nil:
		return fmt.Errorf("%s does not answer: %w", who, r.err)
	case r.status != status:
		return fmt.Errorf("%s should answer %s, and answers %s: %s", who, statusText(status), statusText(r.status), r.body)
	}
	return nil
}

func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }

// post sends a request to the worker, with a token if there is one; the answer
// comes over the channel.
func (w *worker) post(ctx context.Context, path string, token tokenctx.Token) <-chan response {
	answer := make(chan response, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.address+path, nil)
		if err != nil {
			answer <- response{err: err}
			return
		}
		if token.Valid() {
			tokenctx.SetHeader(request.Header, token)
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			answer <- response{err: err}
			return
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		answer <- response{status: reply.StatusCode, body: strings.TrimSpace(string(body)), err: err}
	}()
	return answer
}
