package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/rewrite"
)

func TestOutcome(t *testing.T) {
	byServer := func(code, detail string) error { return &pgconn.PgError{Code: code, Detail: detail} }
	tests := map[string]struct {
		err  error
		want history.Outcome
	}{
		"no error":            {nil, history.OK},
		"stale":               {&driver.StaleError{Token: 7, Current: 8}, history.Stale},
		"stale in a tx":       {rolledBack{&driver.StaleError{Token: 7, Current: 8}}, history.Stale},
		"stale by the wall":   {&driver.StaleError{Err: byServer("FN001", "")}, history.Stale},
		"replay":              {&driver.ReplayError{Token: 7}, history.Replay},
		"refused":             {fmt.Errorf("write: %w", rewrite.ErrRefused), history.Refused},
		"not committed":       {rolledBack{errors.New("connection reset")}, history.Refused},
		"no connection":       {fmt.Errorf("dial: %w", &pgconn.ConnectError{}), history.Refused},
		"no row":              {none(sql.ErrNoRows), history.None},
		"cut off":             {errors.New("unexpected EOF"), history.Unknown},
		"too late":            {context.DeadlineExceeded, history.Unknown},
		"ended by the server": {byServer("57P01", ""), history.Unknown},
		"the wall: stale":     {byServer("FN001", `{"token": "7", "current": "8", "mode": "lease"}`), history.Stale},
		"the wall: replay":    {byServer("FN001", `{"token": "7", "current": "7", "mode": "strict"}`), history.Replay},
		"the wall: no token":  {byServer("FN002", `{"token": null}`), history.Refused},
		"the wall: forged":    {byServer("FN003", `{"token": "7", "current": "8"}`), history.Refused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, outcome(test.err)) })
	}
}

func TestRows(t *testing.T) {
	c := Config{Resources: 3, Rows: 4, Rotations: 10}
	all := map[int64]bool{}
	for _, strict := range []bool{false, true} {
		for _, n := range c.RowNumbers(strict) {
			require.False(t, all[n], "row %d twice", n)
			all[n] = true
		}
	}
	require.Len(t, all, 10*4*(3+1))
	for resource := range c.Resources + 1 {
		for _, n := range c.rows(9, resource) {
			require.True(t, all[n], "row %d", n)
		}
	}
}
