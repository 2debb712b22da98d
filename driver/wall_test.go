package driver_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// refusing is a function that ends a statement as the wall does, for orders.
const refusing = `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders SELECT generate_series(1, 3);
	CREATE TABLE staging (id bigint, code text, detail text);
	CREATE FUNCTION refuse(code text, detail text, after int DEFAULT 0) RETURNS SETOF int LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1..after LOOP RETURN NEXT i; END LOOP;
		RAISE EXCEPTION USING ERRCODE = code, MESSAGE = 'refused', DETAIL = detail, SCHEMA = 'public', TABLE = 'orders';
	END $$;
	CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM refuse(NEW.code, NEW.detail); RETURN NEW; END $$;
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON staging DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_row()`

// What the database refuses comes as the driver's own errors, with the server's
// in them, wherever it comes out: of a statement, while rows are read, of COPY
// or at COMMIT.
func TestWallErrors(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, refusing)
	var r recorder
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), r.option())
	require.NoError(t, err)
	defer db.Close()
	for name, test := range map[string]struct {
		code, detail string
		check        func(*testing.T, error)
		event        string
	}{
		"stale": {"FN001", `{"token": "7", "current": "9", "mode": "strict"}`, func(t *testing.T, err error) {
			var stale *driver.StaleError
			require.ErrorAs(t, err, &stale)
			require.Equal(t, [2]tokenctx.Token{7, 9}, [2]tokenctx.Token{stale.Token, stale.Current})
			require.Equal(t, "orders", stale.Table)
		}, "stale"},
		"equal in lease mode": {"FN001", `{"token": "9", "current": "9", "mode": "lease"}`, func(t *testing.T, err error) { require.ErrorIs(t, err, driver.ErrStale) }, "stale"},
		"set by nobody":       {"FN001", `{"token": "9", "current": "9", "mode": "strict"}`, func(t *testing.T, err error) { require.ErrorIs(t, err, driver.ErrNoToken) }, "refused FR301"},
		"no detail":           {"FN001", `nothing`, func(t *testing.T, err error) { require.ErrorIs(t, err, driver.ErrStale) }, "stale"},
		"no token":            {"FN002", `{"token": null}`, func(t *testing.T, err error) { require.ErrorIs(t, err, driver.ErrNoToken) }, "refused FR301"},
		"never issued":        {"FN003", `{}`, func(t *testing.T, err error) { requireRule(t, err, rewrite.InvalidToken) }, "refused FR302"},
		"not allowed":         {"FN004", `{}`, func(t *testing.T, err error) { requireRule(t, err, rewrite.WallRefused) }, "refused FR213"},
		"an error of others":  {"FN999", `{}`, func(t *testing.T, err error) { require.IsType(t, &pgconn.PgError{}, err) }, ""},
	} {
		for entry, send := range refusals(db) {
			t.Run(name+"/"+entry, func(t *testing.T) {
				err := send(t, test.code, test.detail)
				test.check(t, err)
				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, test.code, pgErr.Code)
				require.Equal(t, test.event != "", driver.NotApplied(err))
				if test.event == "" {
					require.Empty(t, r.take())
				} else {
					require.Equal(t, []string{test.event}, r.take())
				}
			})
		}
	}
}

func requireRule(t *testing.T, err error, rule rewrite.Rule) {
	t.Helper()
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, rule, v.Rule)
	require.Equal(t, "orders", v.Table)
}

// refusals are the ways in which a refusal reaches the caller.
func refusals(db *sql.DB) map[string]func(t *testing.T, code, detail string) error {
	return map[string]func(t *testing.T, code, detail string) error{
		"Exec": func(t *testing.T, code, detail string) error {
			_, err := db.Exec(`SELECT refuse($1, $2)`, code, detail)
			return err
		},
		"QueryRow": func(t *testing.T, code, detail string) error {
			return db.QueryRow(`SELECT refuse($1, $2)`, code, detail).Scan(new(int))
		},
		"prepared": func(t *testing.T, code, detail string) error {
			stmt, err := db.Prepare(`SELECT refuse($1, $2)`)
			require.NoError(t, err)
			defer stmt.Close()
			_, err = stmt.Exec(code, detail)
			return err
		},
		"a guarded write": func(t *testing.T, code, detail string) error {
			_, err := db.ExecContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET last_token = $1 WHERE id = (SELECT refuse($2, $3)) AND last_token < $1`, tokenctx.Arg, code, detail)
			return err
		},
		"a guarded write's rows": func(t *testing.T, code, detail string) error {
			rows, err := db.QueryContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET last_token = $1 WHERE last_token < $1 RETURNING CASE WHEN id = 2 THEN (SELECT refuse($2, $3)) ELSE 1 END`, tokenctx.Arg, code, detail)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				require.NoError(t, rows.Scan(new(int)))
			}
			return rows.Err()
		},
		"COMMIT": func(t *testing.T, code, detail string) error {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec(`INSERT INTO staging VALUES (1, $1, $2)`, code, detail)
			require.NoError(t, err)
			return tx.Commit()
		},
		"COPY": func(t *testing.T, code, detail string) error {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			return conn.Raw(func(driverConn any) error {
				_, err := driverConn.(*driver.Conn).CopyFrom(t.Context(), pgx.Identifier{"staging"}, []string{"id", "code", "detail"}, pgx.CopyFromRows([][]any{{int64(1), code, detail}}))
				return err
			})
		},
	}
}
