package migrations_test

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// catalogText is all that the catalog says about schema fencing and about the
// triggers of other schemas that run its functions, as one text for each object.
const catalogText = `SELECT coalesce(array_agg(d ORDER BY d COLLATE "C"), '{}') FROM (
	SELECT concat_ws(' ', 'schema', n.nspowner::regrole, n.nspacl, obj_description(n.oid, 'pg_namespace')) FROM pg_namespace n WHERE n.nspname = 'fencing'
	UNION ALL SELECT concat_ws(' ', 'relation', c.relname, c.relkind, c.relpersistence, c.relowner::regrole, c.relacl, c.reloptions, c.relrowsecurity, c.relreplident, obj_description(c.oid, 'pg_class'))
		FROM pg_class c WHERE c.relnamespace = to_regnamespace('fencing') AND c.relname NOT LIKE 'goose%'
	UNION ALL SELECT concat_ws(' ', 'column', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attnotnull, a.attidentity, a.attgenerated, a.attstorage,
		a.attstattarget, a.attacl, pg_get_expr(f.adbin, f.adrelid), col_description(c.oid, a.attnum))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
		LEFT JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = a.attnum WHERE c.relnamespace = to_regnamespace('fencing') AND c.relname NOT LIKE 'goose%'
	UNION ALL SELECT concat_ws(' ', 'constraint', k.conrelid::regclass, k.conname, k.condeferrable, k.condeferred, k.convalidated, pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint'))
		FROM pg_constraint k WHERE k.connamespace = to_regnamespace('fencing') AND k.conrelid::regclass::text NOT LIKE '%goose%'
	UNION ALL SELECT concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisclustered) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relnamespace = to_regnamespace('fencing') AND c.relname NOT LIKE 'goose%'
	UNION ALL SELECT concat_ws(' ', 'sequence', s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
		FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relnamespace = to_regnamespace('fencing') AND c.relname NOT LIKE 'goose%'
	UNION ALL SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(g.oid), g.tgenabled, obj_description(g.oid, 'pg_trigger')) FROM pg_trigger g WHERE NOT g.tgisinternal
	UNION ALL SELECT concat_ws(' ', 'function', pg_get_functiondef(p.oid), p.proacl, p.proowner::regrole, p.procost, p.prorows, obj_description(p.oid, 'pg_proc'))
		FROM pg_proc p WHERE p.pronamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'type', t.typname, t.typtype, t.typowner::regrole, t.typacl) FROM pg_type t WHERE t.typnamespace = to_regnamespace('fencing') AND t.typname !~ 'goose'
	UNION ALL SELECT concat_ws(' ', 'rule', pg_get_ruledef(w.oid)) FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class WHERE c.relnamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'policy', y.polname) FROM pg_policy y JOIN pg_class c ON c.oid = y.polrelid WHERE c.relnamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'default', x.defaclrole::regrole, x.defaclnamespace::regnamespace, x.defaclobjtype, x.defaclacl) FROM pg_default_acl x
	UNION ALL SELECT concat_ws(' ', 'registry', to_jsonb(r) - 'registered_at') FROM fencing.registry r
	UNION ALL SELECT concat_ws(' ', 'generation', g.value) FROM fencing.generation g
	UNION ALL SELECT concat_ws(' ', 'epoch', to_jsonb(e)) FROM fencing.epoch e
	UNION ALL SELECT concat_ws(' ', 'lease', to_jsonb(l)) FROM fencing.lease l) x(d)`

// allWalls puts up a wall for every combination of what the trigger functions
// depend on.
const allWalls = `SELECT setval('fencing.write_epoch', 100); CREATE SEQUENCE own; SELECT nextval('own');
DO $$
DECLARE
  x record;
  i int := 0;
BEGIN
  FOR x IN
    SELECT * FROM unnest('{strict,lease}'::text[]) mode, unnest('{report,enforce,attested}'::text[]) level, (VALUES (NULL, 'last_token'), ('r', 'last_token'), ('b''s % "\', 'tok %'' "1"\')) y(resource, col),
                  unnest(ARRAY['fencing.write_epoch', 'own', NULL]::regclass[]) issued, unnest('{none,fixed,text,varchar,uuid,int8}'::text[]) seal,
                  unnest('{none,int,several}'::text[]) tombs
     WHERE (seal = 'none' OR mode = 'lease' AND (issued IS NULL OR issued = 'fencing.write_epoch'::regclass))
       AND (seal = 'none' OR tombs = 'none')
  LOOP
    i := i + 1;
    EXECUTE format('CREATE TABLE t%s (id int%s, "k %%" varchar(20), n numeric, b bytea, "the %%s" %s NOT NULL%s)', i, CASE x.tombs WHEN 'int' THEN ' PRIMARY KEY' ELSE '' END,
                   CASE WHEN x.seal IN ('none', 'fixed') THEN 'text' ELSE x.seal END, CASE x.tombs WHEN 'several' THEN ', PRIMARY KEY ("k %", n, b, id)' ELSE '' END);
    PERFORM fencing.register(format('t%s', i)::regclass, x.mode, x.col::name, x.resource, x.issued), fencing.wall(format('t%s', i)::regclass, x.level);
    IF x.tombs <> 'none' THEN
      PERFORM fencing.tombstones(format('t%s', i)::regclass);
    END IF;
    IF x.seal = 'fixed' THEN
      PERFORM fencing.seal(format('t%s', i)::regclass, 'lease % ''"\');
    ELSIF x.seal <> 'none' THEN
      PERFORM fencing.seal(format('t%s', i)::regclass, by_column => 'the %s');
    END IF;
  END LOOP;
END $$`

// changedFunctions are those whose text differs from the chain's on purpose.
var changedFunctions = regexp.MustCompile(`^$`)

var (
	lineComment = regexp.MustCompile(`(^|\s)--[^\n]*`)
	space       = regexp.MustCompile(`\s+`)
	functionOf  = regexp.MustCompile(`FUNCTION fencing\.(\w+)\(`)
)

// normal is a text of the catalog without its white space and comments.
func normal(text string) string {
	return strings.TrimSpace(space.ReplaceAllString(lineComment.ReplaceAllString(text, " "), " "))
}

func upChain(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS(chainDir()), goose.WithTableName("goose_old"))
	require.NoError(t, err)
	_, err = p.Up(t.Context())
	require.NoError(t, err)
}

func chainDir() string { return "testdata/chain" }

func requireSameCatalog(t *testing.T, chain, baseline *pgx.Conn) {
	t.Helper()
	texts := func(conn *pgx.Conn) map[string]bool {
		found := map[string]bool{}
		for _, text := range get[[]string](t, conn, catalogText) {
			if m := functionOf.FindStringSubmatch(text); m == nil || !strings.HasPrefix(text, "function") || !changedFunctions.MatchString(m[1]) {
				found[normal(text)] = true
			}
		}
		return found
	}
	want, got := texts(chain), texts(baseline)
	require.Greater(t, len(want), 150)
	for text := range want {
		require.True(t, got[text], "only by the chain: %s", text)
	}
	for text := range got {
		require.True(t, want[text], "only by the baseline: %s", text)
	}
}

// The baseline makes what the chain of migrations made.
func TestBaselineMakesWhatTheChainMade(t *testing.T) {
	for name, setup := range map[string]string{
		"by itself":                 "SELECT 1",
		"with default privileges":   "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO pg_monitor, PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO pg_monitor; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO pg_monitor WITH GRANT OPTION; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO pg_monitor, PUBLIC; ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM PUBLIC",
		"in a schema that is there": "CREATE SCHEMA fencing; GRANT ALL ON SCHEMA fencing TO pg_monitor, PUBLIC; CREATE TABLE fencing.theirs (); GRANT ALL ON fencing.theirs TO PUBLIC",
		"with another search path":  "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = nowhere', current_database()); END $$; CREATE SCHEMA nowhere",
	} {
		t.Run(name, func(t *testing.T) {
			var conns []*pgx.Conn
			for _, up := range []func(*testing.T, string){upChain, func(t *testing.T, dsn string) {
				_, err := gooseProvider(t, dsn).Up(t.Context())
				require.NoError(t, err)
			}} {
				dsn := localpg.Database(t)
				exec(t, open(t, dsn), setup)
				up(t, dsn)
				conns = append(conns, open(t, dsn))
			}
			requireSameCatalog(t, conns[0], conns[1])
		})
	}
}

// And so it does for a role of its own, and so are all walls.
func TestBaselineMakesWhatTheChainMadeForARole(t *testing.T) {
	chain, baseline := localpg.Database(t), localpg.Database(t)
	role, chainDSN := newRole(t, chain)
	baselineDSN := with(baseline, "role", role)
	for _, dsn := range []string{chain, baseline} {
		exec(t, open(t, dsn), "CREATE SCHEMA fencing AUTHORIZATION "+role+"; CREATE SCHEMA app AUTHORIZATION "+role)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), baseline)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), "DROP OWNED BY "+role+" CASCADE")
		require.NoError(t, err)
	})
	chainDSN, baselineDSN = with(chainDSN, "search_path", "app"), with(baselineDSN, "search_path", "app")
	upChain(t, chainDSN)
	_, err := gooseProvider(t, baselineDSN).Up(t.Context())
	require.NoError(t, err)
	a, b := open(t, chainDSN), open(t, baselineDSN)
	exec(t, a, allWalls)
	exec(t, b, allWalls)
	requireSameCatalog(t, a, b)
}
