package driver

import (
	sqldriver "database/sql/driver"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// Where BEGIN works and what is sent with it doesn't, the connection is not
// left inside a transaction.
func TestHalfABegin(t *testing.T) {
	dsn := localpg.Database(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(t.Context())
	_, err = admin.Exec(t.Context(), `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	require.NoError(t, err)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	connector, err := NewConnector(*config, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	inner, err := connector.Connect(t.Context())
	require.NoError(t, err)
	conn := inner.(*Conn)
	defer conn.Close()

	_, err = conn.beginWith(t.Context(), sqldriver.TxOptions{}, "; select 1/0")
	var pgErr *pgconn.PgError
	require.True(t, errors.As(err, &pgErr))
	require.Equal(t, "22012", pgErr.Code)
	require.EqualValues(t, 'I', conn.std.Conn().PgConn().TxStatus())
	require.NoError(t, conn.Ping(t.Context()))

	_, err = conn.beginWith(t.Context(), sqldriver.TxOptions{Isolation: 99}, "")
	plainErr := func() error { _, err := conn.std.BeginTx(t.Context(), sqldriver.TxOptions{Isolation: 99}); return err }()
	require.EqualError(t, err, plainErr.Error())
}
