package record

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

func TestSession(t *testing.T) {
	s, err := Open("lib", localpg.Database(t))
	require.NoError(t, err)
	exec := func(sql string, args ...any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.DB.ExecContext(ctx, sql, args...)
			return err
		}
	}
	prepare := func(ctx context.Context) error {
		stmt, err := s.DB.PrepareContext(ctx, "SELECT $1::text")
		if err != nil {
			return err
		}
		_, err = stmt.ExecContext(ctx, "a")
		require.NoError(t, err)
		return stmt.Close()
	}
	require.NoError(t, s.Setup(t.Context(), "CREATE TABLE t (a bigint)"))
	require.NoError(t, s.Run(t.Context(),
		Step{"write", exec("INSERT INTO t VALUES ($1)", int64(1))},
		Step{"prepare", prepare},
		Step{"write again", exec("INSERT INTO t VALUES ($1)", int64(2))},
	))
	err = s.Run(t.Context(), Step{"bad", exec("SELECT 1 FROM none WHERE a < 1")}, Step{"good", exec("SELECT 1")})
	require.ErrorContains(t, err, "lib: bad: ")

	got, err := s.Encode()
	require.NoError(t, err)
	require.Equal(t, `{"library":"lib","op":"bad","sql":"SELECT 1 FROM none WHERE a < 1","args":[]}
{"library":"lib","op":"good","sql":"SELECT 1","args":[]}
{"library":"lib","op":"prepare","sql":"SELECT $1::text","args":["string"]}
{"library":"lib","op":"write","sql":"INSERT INTO t VALUES ($1)","args":["int64"]}
`, string(got))
	require.NoError(t, s.Close())
}
