package reach

import (
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// otherExtensions may stand in no text with other statements: what they bring along runs code, reads
// tables by a name that it is given, or changes what is stored behind PostgreSQL's back.
var otherExtensions = map[string]string{
	"adminpack": "writes files", "amcheck": "works out the expressions of indexes", "dblink": "runs SQL", "file_fdw": "has foreign tables that run programs", "intagg": "has aggregates",
	"old_snapshot": "not looked at", "pg_logicalinspect": "not looked at", "pg_surgery": "changes rows", "pg_visibility": "truncates a table's map", "pg_walinspect": "not looked at",
	"pg_overexplain": "not looked at", "postgres_fdw": "has foreign tables", "refint": "runs SQL that its triggers' arguments name", "xml2": "runs SQL",
}

// languageExtensions are languages, and what converts values for them.
var languageExtensions = regexp.MustCompile(`^(bool_|hstore_|jsonb_|ltree_)?pl(perl|python|tcl)[0-9]*u?$`)

// extensionsElsewhere are plain ones that PostgreSQL doesn't bring along.
var extensionsElsewhere = []string{"postgis", "vector"}

// functionsElsewhere are functions that no server or extension of PostgreSQL's own has.
var functionsElsewhere = []string{
	"run_command_on_workers", "run_command_on_shards", "run_command_on_placements", "run_command_on_coordinator", "run_command_on_all_nodes", "pg_background_launch", "table_import_from_s3",
}

// isPlainExtension reports whether something else may stand in a text behind CREATE EXTENSION.
func isPlainExtension(p *check.Policy, name string) bool {
	return p.Plan(`CREATE EXTENSION "`+name+`"; UPDATE plain SET v = 'x'`).Refusal() == nil
}

// namesOf returns the first column of a query.
func namesOf(t *testing.T, s testSession, query string, args ...any) []string {
	t.Helper()
	rows, err := s.Conn.Query(t.Context(), query, args...)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

// Each extension that the server has is known as plain or as another, and what the plain ones bring
// along writes nothing and runs no SQL that it is given, but for functions that are known by name.
func TestExtensionsByTheServer(t *testing.T) {
	s := connected(t, attackSchema)
	p := policyFrom(t, &Catalog{}, oneTable("orders"))
	available := namesOf(t, s, `SELECT name FROM pg_available_extensions`)
	for _, name := range available {
		isKnown := otherExtensions[name] != "" || languageExtensions.MatchString(name)
		require.NotEqual(t, isKnown, isPlainExtension(p, name), "is %s plain, or one of otherExtensions: read what it brings along", name)
		if !isKnown {
			_, err := s.Exec(t.Context(), `CREATE EXTENSION IF NOT EXISTS "`+name+`" CASCADE`)
			require.NoError(t, err, name)
		}
	}
	for _, name := range extensionsElsewhere {
		require.True(t, isPlainExtension(p, name), name)
	}
	rows, err := s.Conn.Query(t.Context(), `SELECT p.proname::text, l.lanname::text, COALESCE(pg_get_function_sqlbody(p.oid), p.prosrc) FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' WHERE l.lanname NOT IN ('c', 'internal')`)
	require.NoError(t, err)
	var name, language, source string
	_, err = pgx.ForEachRow(rows, []any{&name, &language, &source}, func() error {
		body := readRoutine(language, source)
		require.Empty(t, body.unread, name)
		require.Empty(t, body.targets, name)
		return nil
	})
	require.NoError(t, err)
	for _, name := range namesOf(t, s, `SELECT DISTINCT prosrc FROM pg_proc WHERE oid >= 16384 AND prosrc ~* '(sql|exec|spi|crosstab|connectby)' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c')`) {
		require.True(t, runsGiven(name) || regexp.MustCompile(`^(crosstab|connectby)`).MatchString(name) || harmlessNames.MatchString(name), "does %s run what it is given?", name)
	}
	require.Empty(t, namesOf(t, s, `SELECT evtname::text FROM pg_event_trigger`))
}

// harmlessNames are functions of plain extensions that have such a word in their names, and run
// nothing that they are given.
var harmlessNames = regexp.MustCompile(`ltxtq_.*exec`)

// The functions that run what they are given are known by the names that the server has.
func TestGivenFunctionsByTheServer(t *testing.T) {
	s := connected(t, attackSchema)
	for _, name := range []string{"tablefunc", "xml2", "adminpack", "pg_surgery"} {
		if len(namesOf(t, s, `SELECT name FROM pg_available_extensions WHERE name = $1`, name)) > 0 {
			_, err := s.Exec(t.Context(), `CREATE EXTENSION "`+name+`"`)
			require.NoError(t, err)
		}
	}
	has := namesOf(t, s, `SELECT DISTINCT proname::text FROM pg_proc`)
	contrib := len(namesOf(t, s, `SELECT name FROM pg_available_extensions WHERE name = 'xml2'`)) > 0
	for _, name := range check.SQLFunctions() {
		isBuiltin := regexp.MustCompile(`_to_xml|^ts_|^lo_|^setval$`).MatchString(name)
		if slices.Contains(functionsElsewhere, name) || !isBuiltin && !contrib || regexp.MustCompile(`^pg_file_|^crosstabn$`).MatchString(name) {
			continue
		}
		require.Contains(t, has, name, "no function of this name is there")
	}
	for _, name := range namesOf(t, s, `SELECT DISTINCT proname::text FROM pg_proc WHERE oid < 16384 AND proname ~ '^(query|table|cursor|schema|database)_to_xml|^ts_(stat|rewrite)|^lo_(im|ex)port|^setval$'`) {
		require.Contains(t, check.SQLFunctions(), name)
	}
}
