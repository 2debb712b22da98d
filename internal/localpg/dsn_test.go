package localpg

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestWithDatabase(t *testing.T) {
	tests := []struct{ name, dsn, want string }{
		{"url", "postgres://u:p%2Fw@h:5433/old?sslmode=disable", "postgres://u:p%2Fw@h:5433/new%20%27x%5C?sslmode=disable"},
		{"other scheme", "postgresql://h/old", "postgresql://h/new%20%27x%5C"},
		{"no path", "postgres://u@h", "postgres://u@h/new%20%27x%5C"},
		{"no path, a query", "postgres://u@h?sslmode=disable", "postgres://u@h/new%20%27x%5C?sslmode=disable"},
		{"socket", "postgres:///old?host=/run/pg&user=u", "postgres:///new%20%27x%5C?host=/run/pg&user=u"},
		{"name in the query", "postgres://h/?dbname=old&user=u&database=old", "postgres://h/new%20%27x%5C?user=u"},
		{"several hosts", "postgres://h1:1,h2:2/old?sslmode=disable", "postgres://h1:1,h2:2/new%20%27x%5C?sslmode=disable"},
		{"keywords", "host=h dbname=old user=u", `dbname='new \'x\\' host=h user=u`},
		{"no name", "host=h  user = u ", `dbname='new \'x\\' host=h user=u`},
		{"quoted", `user=u password='a\'b dbname=c' dbname='ol d' host=h`, `dbname='new \'x\\' user=u password='a\'b dbname=c' host=h`},
		{"escaped", `user=u password=a\ b database=old host=h`, `dbname='new \'x\\' user=u password=a\ b host=h`},
		{"empty value last", "host=h dbname=old password=", `dbname='new \'x\\' host=h password=`},
		{"empty quoted value", "host=h password='' user=u", `dbname='new \'x\\' host=h password='' user=u`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const name = `new 'x\`
			require.NoError(t, checkURL(tt.dsn))
			got := withDatabase(tt.dsn, name)
			require.Equal(t, tt.want, got)

			before, err := pgx.ParseConfig(tt.dsn)
			require.NoError(t, err)
			after, err := pgx.ParseConfig(got)
			require.NoError(t, err)
			require.Equal(t, name, after.Database)
			require.Equal(t, before.Host, after.Host)
			require.Equal(t, before.Port, after.Port)
			require.Equal(t, before.User, after.User)
			require.Equal(t, before.Password, after.Password)
		})
	}
}

func TestOpenMalformedURL(t *testing.T) {
	tests := []struct{ name, dsn string }{
		{"bad port", "postgres://u:hunter2@h:x/db"},
		{"bad escape", "postgres://u:hunter2%zz@h/db"},
		{"unterminated quote", "host=h password='hunter2"},
		{"no keyword", "hunter2"},
		{"another scheme", "mysql://u:hunter2@h/db"},
		{"bad sslmode", "host=h password=hunter2 sslmode=hunter2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envURL, tt.dsn)
			_, err := Open(t.Context())
			require.EqualError(t, err, "FENCEROW_DATABASE_URL is not a usable connection string (not shown: it may hold a password): "+
				"write it as postgres://user@host:5432/postgres or as host=... user=... dbname=postgres")
		})
	}
}

func TestOpenUnreachableURL(t *testing.T) {
	t.Setenv(envURL, "host="+t.TempDir()+" user=u password=hunter2 dbname=d")
	_, err := Open(t.Context())
	require.ErrorContains(t, err, "FENCEROW_DATABASE_URL: connect to the PostgreSQL server")
	require.NotContains(t, err.Error(), "hunter2")
}
