package driver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

// An observer of the context hears of stale tokens: from the guard, from the
// wall, from a part of many rows, by the context of BEGIN; and of nothing else.
func TestObserverHearsOfStaleTokens(t *testing.T) {
	db, dsn := openWalled(t, migrations.Strict, migrations.WallEnforce, driver.WithPartialCheck())
	run(t, dsn, `CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE orders SET last_token = NEW.last_token WHERE id = 3; RETURN NEW; END$$`,
		`CREATE TRIGGER twice BEFORE UPDATE ON orders FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION twice()`)
	const update = `UPDATE orders SET last_token = $1 WHERE id = $2 AND last_token < $1`
	var heard []string
	with := func(token tokenctx.Token) context.Context {
		return tokenctx.WithObserver(tokenctx.WithResource(t.Context(), "Orders/EU", token), func(resource string, token tokenctx.Token) {
			heard = append(heard, fmt.Sprint(resource, " ", token))
		})
	}
	write := func(token tokenctx.Token, id int) error {
		heard = nil
		_, err := db.ExecContext(with(token), update, tokenctx.Arg, id)
		return err
	}
	require.NoError(t, write(8, 3))
	require.Empty(t, heard)
	require.ErrorIs(t, write(7, 3), driver.ErrStale)
	require.Equal(t, []string{"Orders/EU 7"}, heard, "the guard's")
	require.ErrorIs(t, write(7, 1), driver.ErrStale)
	require.Equal(t, []string{"Orders/EU 7"}, heard, "the wall's, at row 3")
	require.ErrorIs(t, write(8, 3), driver.ErrReplay)
	require.Empty(t, heard)
	require.NoError(t, write(7, 99), "no such row")
	require.Empty(t, heard)

	var partial *driver.PartialError
	_, err := db.ExecContext(with(6), `UPDATE orders SET last_token = $1 WHERE id > 1 AND last_token < $1`, tokenctx.Arg)
	require.ErrorAs(t, err, &partial)
	require.Equal(t, []string{"Orders/EU 6"}, heard)

	heard = nil
	tx, err := db.BeginTx(with(7), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(update, tokenctx.Arg, 3)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = tx.Exec(update, tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrStale)
	require.NoError(t, tx.Rollback())
	require.Equal(t, []string{"Orders/EU 7", "Orders/EU 7"}, heard)

	// what is only reported changes nothing for the program
	run(t, dsn, `DROP TRIGGER twice ON orders`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallOff))
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Report))
	var r recorder
	watching, err := driver.Open(dsn, r.option())
	require.NoError(t, err)
	defer watching.Close()
	heard = nil
	_, err = watching.ExecContext(with(7), update, tokenctx.Arg, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"stale"}, r.take())
	require.Empty(t, heard)
}
