package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// baselineFile is the migration that makes the functions of schema fencing.
const baselineFile = "sql/00001_fencerow.sql"

// schemaFunction is a function of schema fencing as a migration makes it.
type schemaFunction struct{ name, head, body string }

// schemaFunctions are the functions that the program's migrations make, read once.
var schemaFunctions = sync.OnceValues(readFunctions)

func readFunctions() ([]schemaFunction, error) {
	text, err := fs.ReadFile(FS, baselineFile)
	if err != nil {
		return nil, err
	}
	up, _, _ := strings.Cut(string(text), "\n"+annotation+"Down\n")
	var functions []schemaFunction
	for {
		_, rest, found := strings.Cut(up, annotation+"StatementBegin\n")
		if !found {
			return functions, nil
		}
		var statement string
		statement, up, _ = strings.Cut(rest, "\n"+annotation+"StatementEnd")
		if f, ok := parseFunction(statement); ok {
			functions = append(functions, f)
		}
	}
}

// parseFunction takes a statement apart that makes a function. All bodies are quoted
// by $$.
func parseFunction(statement string) (f schemaFunction, ok bool) {
	const create, schema = "CREATE FUNCTION ", "fencing."
	if !strings.HasPrefix(statement, create+schema) {
		return schemaFunction{}, false
	}
	head, body, _ := strings.Cut(statement[len(create):], " AS $$")
	f.head = head
	f.name, _, _ = strings.Cut(head[len(schema):], "(")
	f.body, ok = strings.CutSuffix(body, "$$;")
	return f, ok
}

// differencesSQL selects the functions of schema fencing that aren't as the
// program's migrations make them: their names, and whether they are missing.
// What is asked is in the program, and not in the schema, where somebody may have
// changed it. It is for a search_path of pg_catalog alone.
func differencesSQL(functions []schemaFunction) (string, error) {
	bodies := make(map[string]string)
	for _, f := range functions {
		bodies[f.name] = f.body
	}
	const objects, manifest = "doctor_objects", "doctor_manifest"
	if bodies[objects] == "" || bodies[manifest] == "" {
		return "", fmt.Errorf("%s has no function %s or %s", baselineFile, objects, manifest)
	}
	return fmt.Sprintf(`SELECT DISTINCT split_part(m.object, '(', 1), m.object, o.object IS NULL
		FROM (%s) AS m(kind, parent, object, definition)
		LEFT JOIN (%s) AS o(kind, parent, object, definition) ON o.kind = m.kind AND o.object = m.object
		WHERE m.kind = 'function' AND m.definition IS DISTINCT FROM o.definition
		UNION ALL
		SELECT 'doctor_manifest', 'doctor_manifest()', p.oid IS NULL FROM (SELECT to_regprocedure('fencing.doctor_manifest()') AS oid) f LEFT JOIN pg_proc p ON p.oid = f.oid
		WHERE p.prosrc IS DISTINCT FROM %s
		ORDER BY 2`, bodies[manifest], bodies[objects], quoteLiteral(bodies[manifest])), nil
}

// quoteLiteral quotes a text, of whatever kind standard_conforming_strings is.
func quoteLiteral(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// enterPath has names mean those of pg_catalog until the transaction ends.
const enterPath = `SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('check_function_bodies', 'off', true),
	pg_catalog.set_config('standard_conforming_strings', 'on', true)`

// mendFunctions makes those functions of schema fencing again that are missing,
// or that somebody has changed, if the schema is of the version of this program.
// Rights on a function that was missing have to be granted again. db holds the
// lock.
func mendFunctions(ctx context.Context, db *sql.DB) error {
	functions, err := schemaFunctions()
	if err != nil {
		return err
	}
	latest, err := latestVersion()
	if err != nil {
		return err
	}
	query, err := differencesSQL(functions)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var at int64
	if err := tx.QueryRowContext(ctx, `SELECT pg_catalog.max(version_id) FROM `+versionTable).Scan(&at); err != nil || at != latest {
		return err
	}
	if _, err := tx.ExecContext(ctx, enterPath); err != nil {
		return err
	}
	changed, missing, err := differingFunctions(ctx, tx, query)
	if err != nil || len(changed) == 0 {
		return err
	}
	keepsNone, err := isFromBeforeKept(ctx, tx)
	if err != nil {
		return err
	}
	for _, f := range functions {
		if !slices.Contains(changed, f.name) {
			continue
		}
		if _, err := tx.ExecContext(ctx, "CREATE OR REPLACE FUNCTION "+f.head+" AS $$"+f.body+"$$"); err != nil {
			return fmt.Errorf("make function fencing.%s again: %w", f.name, err)
		}
	}
	var rights string
	if err := tx.QueryRowContext(ctx, rightsSQL, missing).Scan(&rights); err != nil {
		return fmt.Errorf("read the rights on the functions made again: %w", err)
	}
	if _, err := tx.ExecContext(ctx, rights); err != nil {
		return fmt.Errorf("set the rights on the functions made again: %w", err)
	}
	if keepsNone {
		if _, err := tx.ExecContext(ctx, keepSQL); err != nil {
			return fmt.Errorf("put up the triggers that keep the columns of registered tables: %w", err)
		}
	}
	return tx.Commit()
}

// isFromBeforeKept reports whether the schema was made by a program that had no
// triggers to keep the columns of registered tables. Where these were dropped, it
// was not: what they would have told is for somebody to say.
func isFromBeforeKept(ctx context.Context, tx *sql.Tx) (is bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT to_regprocedure('fencing.doctor_manifest()') IS NOT NULL`).Scan(&is)
	if err == nil && is {
		err = tx.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT FROM fencing.doctor_manifest() m WHERE m.object = 'kept_columns()')`).Scan(&is)
	}
	if err != nil {
		return false, fmt.Errorf("read what the schema was made with: %w", err)
	}
	return is, nil
}

// keepSQL has triggers keep the columns of all registered tables, as these are called
// now. A table on which the role may put no trigger is left to the doctor, and so is
// one whose wall goes by another column.
const keepSQL = `SELECT fencing.keep_columns(r.relid, k.role, k.columns) FROM fencing.registry r
	JOIN pg_class c ON c.oid = r.relid AND c.relkind IN ('r', 'p') AND NOT c.relispartition,
	LATERAL (SELECT 'token', ARRAY[r.token_column] UNION ALL SELECT 'seal', ARRAY[r.seal_column] WHERE r.seal_column IS NOT NULL
	  UNION ALL SELECT 'key', array_agg(a.attname ORDER BY u.n) FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY u(num, n), pg_attribute a
	             WHERE r.tombstones AND i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = u.num AND u.n <= i.indnkeyatts) k(role, columns)
	WHERE has_table_privilege(c.oid, 'TRIGGER') AND k.columns IS NOT NULL
	  AND (r.wall_level = 'off' OR k.role <> 'token' OR EXISTS (SELECT FROM pg_trigger t JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid
	    JOIN pg_attribute a ON d.refclassid = 'pg_class'::regclass AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
	   WHERE t.tgrelid = c.oid AND t.tgname = '~fencing_late' AND a.attname = r.token_column))
	  AND k.columns <@ ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)`

// rightsSQL selects the statements that give the functions of the signatures $1 the
// rights that they have in a new schema: what 90_grants.sql does for all.
const rightsSQL = `SELECT coalesce(string_agg(s.sql, '; ' ORDER BY s.sql DESC), '') FROM (
	SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
	  FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
	 WHERE p.pronamespace = 'fencing'::regnamespace AND a.grantee <> p.proowner AND format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) = ANY ($1)
	UNION ALL
	SELECT format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', p.oid::regprocedure) FROM pg_proc p
	 WHERE p.pronamespace = 'fencing'::regnamespace AND (starts_with(p.proname, 'doctor_') AND p.proname <> 'doctor_seal' OR p.proname IN ('registered_above', 'setting_name', 'allowed_functions', 'kept_columns') OR p.proname ~ '_bodies$')
	   AND format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) = ANY ($1)) s(sql)`

// differingFunctions returns the names of the functions that differ, and the
// signatures of those of them that are missing.
func differingFunctions(ctx context.Context, tx *sql.Tx, query string) (changed, missing []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	missing = []string{}
	for rows.Next() {
		var name, signature string
		var isMissing bool
		if err := rows.Scan(&name, &signature, &isMissing); err != nil {
			return nil, nil, err
		}
		changed = append(changed, name)
		if isMissing {
			missing = append(missing, signature)
		}
	}
	return changed, missing, rows.Err()
}
