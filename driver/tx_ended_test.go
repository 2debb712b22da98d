package driver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// txEndings are texts that end a transaction by SQL, or don't. The ones that fail
// end it as well.
var txEndings = map[string]struct {
	texts []string
	ends  bool
	fails bool // the last one
}{
	"COMMIT":                  {[]string{`COMMIT`}, true, false},
	"commit work":             {[]string{`commit work`}, true, false},
	"END":                     {[]string{`END`}, true, false},
	"ROLLBACK":                {[]string{`ROLLBACK`}, true, false},
	"ABORT":                   {[]string{`ABORT`}, true, false},
	"COMMIT AND CHAIN":        {[]string{`COMMIT AND CHAIN`}, true, false},
	"END AND CHAIN":           {[]string{`END AND CHAIN`}, true, false},
	"ROLLBACK AND CHAIN":      {[]string{`ROLLBACK AND CHAIN`}, true, false},
	"chain in a comment":      {[]string{`/* a */ COMMIT /* b */ AND -- c` + "\n" + `CHAIN`}, true, false},
	"PREPARE TRANSACTION":     {[]string{`PREPARE TRANSACTION 'ended'`, `ROLLBACK PREPARED 'ended'`}, true, false},
	"several statements":      {[]string{`SELECT 1; COMMIT; BEGIN`}, true, false},
	"a procedure that may":    {[]string{`COMMIT`, `CALL commits()`}, true, false},
	"a procedure that mayn't": {[]string{`CALL commits()`}, false, true},
	"after an error":          {[]string{`SELECT 1; COMMIT; BEGIN; SELECT 1 / 0`}, true, true},
	"an aborted one":          {[]string{`SAVEPOINT a`, `ROLLBACK TO a`, `COMMIT AND CHAIN`}, true, false},
	"ROLLBACK TO":             {[]string{`SAVEPOINT a`, `ROLLBACK TO SAVEPOINT a`}, false, false},
	"RELEASE":                 {[]string{`SAVEPOINT a`, `RELEASE a`}, false, false},
	"words that end nothing":  {[]string{`SELECT CASE WHEN true THEN 'COMMIT' END`}, false, false},
}

// txFollowers are what comes then.
var txFollowers = map[string][]string{
	"nothing":      nil,
	"BEGIN":        {`BEGIN`},
	"a savepoint":  {`BEGIN`, `SAVEPOINT b`},
	"another text": {`SELECT 1`, `BEGIN; SELECT 2`},
}

// The tokens of a transaction end with it, although SQL has ended it: afterwards
// nothing is written under them, and the server doesn't know them any more.
func TestTokensEndWithTheirTransaction(t *testing.T) {
	srv := localpg.StartServer(t, localpg.WithSetting("max_prepared_transactions", "5"))
	run(t, srv.DSN(""), levelSchema, `CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$`)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		db, err := driver.Open(withParameter(srv.DSN(""), "default_query_exec_mode="+mode), driver.Protect("orders", rewrite.Lease))
		require.NoError(t, err)
		defer db.Close()
		for name, ending := range txEndings {
			for after, follow := range txFollowers {
				t.Run(mode+"/"+name+"/"+after, func(t *testing.T) {
					requireTokensEnd(t, db, ending.texts, follow, ending.ends, ending.fails)
				})
			}
		}
	}
}

func requireTokensEnd(t *testing.T, db *sql.DB, texts, follow []string, ends, fails bool) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	tx, err := conn.BeginTx(tokenctx.With(context.Background(), 9), nil)
	require.NoError(t, err)
	defer tx.Rollback() // conn.Close would wait for it
	_, err = tx.ExecContext(t.Context(), writeOrder, tokenctx.Arg)
	require.NoError(t, err, "until then they hold")
	for i, text := range texts {
		_, err = conn.ExecContext(t.Context(), text)
		require.Equal(t, fails && i == len(texts)-1, err != nil, "%s: %v", text, err)
	}
	if !fails {
		for _, text := range follow {
			_, err = conn.ExecContext(t.Context(), text)
			require.NoError(t, err, text)
		}
	}
	for _, exec := range []func() error{
		func() error { _, err := conn.ExecContext(t.Context(), writeOrder, tokenctx.Arg); return err },
		func() error { _, err := tx.ExecContext(t.Context(), writeOrder, tokenctx.Arg); return err },
		func() error {
			return conn.QueryRowContext(t.Context(), writeOrder+` RETURNING 1`, tokenctx.Arg).Scan(new(int))
		},
	} {
		err := exec()
		switch {
		case ends:
			require.ErrorIs(t, err, driver.ErrNoToken)
		case fails:
			require.Error(t, err)
			require.NotErrorIs(t, err, rewrite.ErrRefused, "the transaction is there, and aborted")
		default:
			require.NoError(t, err)
		}
	}
	if fails {
		_, err = conn.ExecContext(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	}
	var token string
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT COALESCE(current_setting('fencing.token', true), '')`).Scan(&token))
	if ends || fails {
		require.Empty(t, token)
		_, err = conn.ExecContext(tokenctx.With(t.Context(), 9), writeOrder, tokenctx.Arg)
		require.NoError(t, err, "the statement's own context counts")
		_, err = conn.ExecContext(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	} else {
		require.Equal(t, "9", token)
	}
}
