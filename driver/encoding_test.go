package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// A database of another encoding than UTF8 may fold letters beyond ASCII where they
// stand without quotes. What reaches a protected table by such a name is not
// written in other letters, and is not misread either.
func TestFoldedNames(t *testing.T) {
	long := strings.Repeat("é", 40) // bytes there, and 80 in UTF-8, of which PostgreSQL would keep 63
	dsn := localpg.Database(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	name := config.Database + "_latin1"
	run(t, dsn, `CREATE DATABASE `+name+` ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), dsn)
		require.NoError(t, err)
		_, err = conn.Exec(context.Background(), `DROP DATABASE `+name)
		require.NoError(t, errors.Join(err, conn.Close(context.Background())))
	})
	config.Database = name
	latin := config.Copy()
	config.RuntimeParams["client_encoding"] = "UTF8"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE TABLE orders (id bigint, status text, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id);
		CREATE TABLE orders_été PARTITION OF orders DEFAULT; CREATE TABLE notes (body text);
		CREATE VIEW "`+long+`" AS SELECT * FROM orders; CREATE VIEW sicht_ö AS SELECT * FROM orders;
		CREATE FUNCTION by_long() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE "`+long+`" SET status = 'x'; END $$;
		CREATE FUNCTION by_letters() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE SICHT_Ö SET status = 'x'; END $$;
		CREATE FUNCTION plain() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE notes SET body = 'É'; -- été
		END $$`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	open := func(config *pgx.ConnConfig) *sql.DB {
		connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Lease))
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}

	require.ErrorContains(t, open(latin).PingContext(t.Context()), "put client_encoding=UTF8 into the DSN")
	db := open(config)
	for text, rule := range map[string]rewrite.Rule{
		`UPDATE orders_été SET status = 'x'`:                                             rewrite.BadText,
		`UPDATE Orders_Été SET status = 'x'`:                                             rewrite.BadText,
		`SELECT 1 FROM notes n JOIN Orders_ÉTÉ o ON true`:                                rewrite.BadText,
		`UPDATE "orders_été" SET status = 'x'`:                                           rewrite.UnguardedUpdate,
		`UPDATE "orders_été" SET status = 'é', last_token = 7 WHERE id = 1 AND id = 'é'`: rewrite.UnguardedUpdate,
		`UPDATE notes SET body = 'É' -- Été`:                                             "",
		`UPDATE "` + long + `" SET status = 'x'`:                                         rewrite.BadText,
		`SELECT by_long()`:                                                               rewrite.UnsafeFunction,
		`SELECT by_letters()`:                                                            rewrite.UnsafeFunction,
		`SELECT plain()`:                                                                 "",
		`UPDATE notes SET body = 'x'`:                                                    "",
		`UPDATE notes "Été" SET body = $q$É$q$`:                                          "",
	} {
		_, err := db.ExecContext(t.Context(), text)
		if rule == "" {
			require.NoError(t, err, text)
			continue
		}
		var violation *rewrite.Violation
		require.ErrorAs(t, err, &violation, text)
		require.Equal(t, rule, violation.Rule, text)
	}
}
