package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// calls are all functions that connect.
func calls(ctx context.Context, dsn string) map[string]error {
	_, version := migrations.Version(ctx, dsn)
	return map[string]error{
		"Up":         migrations.Up(ctx, dsn),
		"Down":       migrations.Down(ctx, dsn),
		"Version":    version,
		"Register":   migrations.Register(ctx, dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}),
		"Unregister": migrations.Unregister(ctx, dsn, "orders"),
		"SetLevel":   migrations.SetLevel(ctx, dsn, "orders", migrations.Report),
	}
}

func TestWrongDSN(t *testing.T) {
	for _, dsn := range []string{
		"postgres://app:s3cret@host:notaport/db",
		"postgres://app:s3:cret@host@db/x?port=s3cret",
		"postgres://app:s3cret/with?slash@host/db",
		"postgres://app:s3cret%zz@host/db",
		"host=localhost password=s3cret sslmode=wrong",
		"host=localhost password='s3cret",
		"s3cret",
		"postgres://app:s3cret@host/db?connect_timeout=s3cret",
		"postgres://app:s3cret@host/db?target_session_attrs=s3cret",
	} {
		for name, err := range calls(t.Context(), dsn) {
			require.ErrorContains(t, err, "wrong DSN", name)
			for ; err != nil; err = errors.Unwrap(err) {
				require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "s3cret", name)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	for _, tt := range []struct{ dsn, where string }{
		{"postgres://app:s3cret@127.0.0.1:1/db?sslmode=disable", "127.0.0.1:1"},
		{"postgres://app:s3cret@127.0.0.1:1/db?sslmode=prefer", "127.0.0.1:1"},
		{"host=/nonexistent port=5433 user=app dbname=db password=s3cret", "socket /nonexistent, port 5433"},
	} {
		for name, err := range calls(t.Context(), tt.dsn) {
			require.ErrorContains(t, err, "can't connect to PostgreSQL at "+tt.where+` (database "db", user "app"): check host and port`, name)
			require.NotContains(t, err.Error(), "s3cret", name)
			require.NotContains(t, err.Error(), "\n", name)
		}
	}
}

func TestConnectionRefused(t *testing.T) {
	dsn := localpg.Database(t)
	_, err := migrations.Version(t.Context(), with(dsn, "dbname", "no_such_database"))
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "3D000", pg.Code)
	require.ErrorContains(t, err, "create the database first")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range calls(ctx, dsn) {
		require.ErrorIs(t, err, context.Canceled, name)
	}
}
