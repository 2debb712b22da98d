//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strconv"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/tokenctx"
)

// rows serves the rows of a protected table. Nothing in it is made for the
// demonstration: each handler takes the request's context, into which the
// middleware has put the token, and hands it to every statement.
type rows struct {
	db *sql.DB // sql.Open("fencerow", dsn)

	// compute makes the new value of the old one. It takes long, which is why
	// there is a lock, and why a pause is likely to hit it.
	compute func(ctx context.Context, old string) (string, error)
}

func (h *rows) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rows/{id}", h.update)
	mux.HandleFunc("POST /rows/{id}/forgotten", h.forgotten)
	return tokenctx.Middleware(mux)
}

// update reads a row, computes, and writes the result under the request's token.
func (h *rows) update(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	var value string
	if err := h.db.QueryRowContext(ctx, `SELECT value FROM protected_rows WHERE id = $1`, id).Scan(&value); err != nil {
		fail(w, err)
		return
	}
	value, err := h.compute(ctx, value)
	if err != nil {
		fail(w, err)
		return
	}
	result, err := h.db.ExecContext(ctx,
		`UPDATE protected_rows SET value = $1, last_token = $2 WHERE id = $3 AND last_token < $2`,
		value, tokenctx.Arg, id)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, result, value)
}

// forgotten is what a hurried colleague adds a year later. It compiles, and
// works in every test in which nobody is paused.
func (h *rows) forgotten(w http.ResponseWriter, r *http.Request) {
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	const value = "written without a guard"
	result, err := h.db.ExecContext(r.Context(), `UPDATE protected_rows SET value = $1 WHERE id = $2`, value, id)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, result, value)
}

// pathID reads the row's id from the path; if there is none it has answered.
func pathID(w http.ResponseWriter, r *http.Request) (id int64, ok bool) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		http.Error(w, "the id of a row is a number", http.StatusBadRequest)
	}
	return id, err == nil
}

// answer says what has been written. No row and no error means that there is
// none of that id: a row with a newer token is an error.
func answer(w http.ResponseWriter, result sql.Result, value string) {
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		fail(w, err)
		return
	}
	_, _ = w.Write([]byte(value)) // a caller that is gone needs no answer
}

// fail answers with what an error means to the caller: our own scheduler, who
// may see the text.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError // also for rewrite.ErrRefused: the bug is here
	switch {
	case errors.Is(err, driver.ErrStale), errors.Is(err, driver.ErrReplay):
		status = http.StatusConflict // not to be retried under this token
	case errors.Is(err, driver.ErrNoToken):
		status = http.StatusBadRequest
	case errors.Is(err, sql.ErrNoRows):
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}
