package driver

import (
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

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

// Only a server that knows transaction_timeout is sent it.
func TestTimeoutsByVersion(t *testing.T) {
	both := timeouts{idle: time.Second, total: time.Minute}
	for version, want := range map[string]bool{"17.2 (Debian 17.2-1)": true, "17": true, "18beta1": true, "16.9": false, "9.6.1": false, "": false, "devel": false} {
		require.Equal(t, want, strings.Contains(both.settings(version), "transaction_timeout = 60000"), version)
		require.Contains(t, both.settings(version), "idle_in_transaction_session_timeout = 1000", version)
	}
}
