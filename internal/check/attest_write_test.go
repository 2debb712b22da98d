package check

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// attestedWrites are writes to a table that is attested, with what is sent for
// them: C stands for the condition's call and V for what an inserted token is.
var attestedWrites = map[string]string{
	"update":          `UPDATE held SET value = 'a', last_token = $1 WHERE id = 1 AND last_token < $1{C}`,
	"update, alias":   `UPDATE held h SET (value, last_token) = ('a', $1) FROM other o WHERE h.id = o.id AND h.last_token < $1{C} RETURNING h.id -- x`,
	"delete":          `DELETE FROM held WHERE id = 2 AND last_token < $1{C}`,
	"insert":          `INSERT INTO held (id, last_token, value) VALUES (11, {V}, 'a')`,
	"insert, cast":    `INSERT INTO held (id, last_token) VALUES (11, {V}::bigint), (12, {V})`,
	"insert, select":  `INSERT INTO held (id, value, last_token) SELECT id + 10, 'x', {V}::bigint FROM other UNION ALL SELECT 99, 'y', {V}::bigint RETURNING id`,
	"upsert":          `INSERT INTO held AS h (id, last_token) VALUES (3, {V}) ON CONFLICT (id) DO UPDATE SET last_token = EXCLUDED.last_token WHERE h.last_token < EXCLUDED.last_token`,
	"upsert, token":   `INSERT INTO held AS h (id, last_token) VALUES (3, {V}) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE h.last_token < $1`,
	"merge":           `MERGE INTO held h USING (VALUES (1), (77)) s(id) ON h.id = s.id WHEN MATCHED AND h.last_token < $1{C} THEN UPDATE SET value = 'm', last_token = $1 WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, {V})`,
	"with":            `WITH d AS (DELETE FROM held WHERE id = 2 AND last_token < $1{C} RETURNING id) INSERT INTO held (id, last_token) SELECT id + 50, {V} FROM d`,
	"another's":       `UPDATE other SET value = 'a' WHERE $1::bigint > 0`,
	"insert, default": `INSERT INTO other (id, last_token) VALUES (11, $1)`,
}

func attestedTexts(marked string) (sql, want string) {
	const call = "pg_catalog.set_config('fencing.token_r', $1::pg_catalog.int8::pg_catalog.text, true) IS NOT NULL"
	counted := countMark.ReplaceAllString(marked, "$1")
	marked = countMark.ReplaceAllString(marked, "")
	sql = strings.NewReplacer("{C}", "", "{V}", "$1").Replace(marked)
	want = strings.NewReplacer("{C}", " AND "+call, "{V}", "(CASE WHEN "+call+" THEN $1::pg_catalog.int8 END)").Replace(counted)
	return sql, want
}

func TestAttestedWrites(t *testing.T) {
	p, err := NewPolicy(Table{Name: "held", Mode: Strict, Resource: "r", Attested: true, Key: []string{"id"}})
	require.NoError(t, err)
	conn := attestLab(t)
	ctx := context.Background()
	_, err = conn.Exec(ctx, `CREATE TABLE held (id bigint PRIMARY KEY, value text, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE other (id bigint PRIMARY KEY, value text, last_token bigint NOT NULL DEFAULT 0);
		INSERT INTO held (id) SELECT generate_series(1, 4); INSERT INTO other (id) SELECT generate_series(1, 4);
		CREATE FUNCTION attest() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('fencing.token_r', true) IS DISTINCT FROM '8' THEN RAISE EXCEPTION 'not attested'; END IF;
			RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
		END $$;
		CREATE TRIGGER attest BEFORE INSERT OR UPDATE OR DELETE ON held FOR EACH ROW EXECUTE FUNCTION attest()`)
	require.NoError(t, err)
	for name, marked := range attestedWrites {
		t.Run(name, func(t *testing.T) {
			sql, want := attestedTexts(marked)
			plan := p.Plan(sql)
			require.NoError(t, plan.Refusal())
			require.Equal(t, want, plan.Attested())
			args := []any{int64(8)}
			if sql != want {
				args, err = bindAny(plan, 8, []any{tokenctx.Arg})
				require.NoError(t, err)
				require.ErrorContains(t, rolledBack(ctx, conn, sql, args), "not attested")
			}
			require.NoError(t, rolledBack(ctx, conn, want, args))
		})
	}
}

// rolledBack runs a statement and takes it back.
func rolledBack(ctx context.Context, conn *pgx.Conn, sql string, args []any) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	err = send(ctx, conn, sql, args)
	return errors.Join(err, tx.Rollback(ctx))
}
