package reach

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/localpg"
)

// testSession reads by a connection of the test, with the settings of the driver's
// own queries that matter here.
type testSession struct{ *pgx.Conn }

func (s testSession) Query(ctx context.Context, sql string, args ...string) (rows [][]string, err error) {
	for _, statement := range []string{"BEGIN READ ONLY", "SET LOCAL search_path = pg_catalog, pg_temp", "SET LOCAL jit = off"} {
		if _, err := s.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	defer s.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	result := s.PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	for _, row := range result.Rows {
		var texts []string
		for _, value := range row {
			texts = append(texts, string(value))
		}
		rows = append(rows, texts)
	}
	return rows, result.Err
}

func (s testSession) ParameterStatus(name string) string { return s.PgConn().ParameterStatus(name) }

// stampOf reads the stamp of the catalogs.
func stampOf(t testing.TB, s Session) string {
	t.Helper()
	rows, err := s.Query(t.Context(), "SELECT "+StampColumns)
	require.NoError(t, err)
	return JoinStamp(rows[0][0], rows[0][1])
}

// connected is a connection to a database of the test with the schema.
func connected(t testing.TB, schema string) testSession {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), localpg.Database(t))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), schema)
	require.NoError(t, err)
	return testSession{conn}
}

// readingOf runs the schema and reads the catalog for tables of the test's
// database.
func readingOf(t *testing.T, schema string, tables []Table) *Catalog {
	t.Helper()
	found, err := Read(t.Context(), connected(t, schema), tables)
	require.NoError(t, err)
	return found
}

// policyFrom is the policy of the chosen tables with what the catalog says.
func policyFrom(t *testing.T, found *Catalog, tables []Table, guarded ...check.Name) *check.Policy {
	t.Helper()
	var chosen []check.Table
	for _, table := range tables {
		if table.IsChosen {
			chosen = append(chosen, check.Table{Schema: table.Schema, Name: table.Name, TokenColumn: table.TokenColumn, Mode: check.Strict})
		}
	}
	return policyOf(t, chosen, found.Closure(tables, guarded))
}

// policyOf is the policy of tables with a closure, under an ordinary search path.
func policyOf(t *testing.T, tables []check.Table, closure check.Closure) *check.Policy {
	t.Helper()
	policy, err := check.NewPolicy(tables...)
	require.NoError(t, err)
	policy, err = policy.WithClosure(closure)
	require.NoError(t, err)
	return policy.ForPath("postgres", "public")
}
