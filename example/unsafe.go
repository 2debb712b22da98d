//go:build unix

package main

import (
	"context"
	"database/sql"
	"net/http"
)

// unsafeRows is [rows] without fencing, as most services have it: the lock is
// believed, and the statement compares nothing.
type unsafeRows struct {
	db      *sql.DB // sql.Open("pgx", dsn)
	compute func(ctx context.Context, old string) (string, error)
}

func (h *unsafeRows) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rows/{id}", h.update)
	return mux
}

func (h *unsafeRows) update(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	var value string
	if err := h.db.QueryRowContext(ctx, `SELECT value FROM unprotected_rows WHERE id = $1`, id).Scan(&value); err != nil {
		fail(w, err)
		return
	}
	value, err := h.compute(ctx, value)
	if err != nil {
		fail(w, err)
		return
	}
	// Asking here once more whether the lock is still ours would not help: the
	// pause may as well come after that.
	result, err := h.db.ExecContext(ctx, `UPDATE unprotected_rows SET value = $1 WHERE id = $2`, value, id)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, result, value)
}
