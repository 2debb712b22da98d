-- What schema fencing is made of: fencing.doctor_objects(), as the catalog has it, and fencing.doctor_manifest(), as it was when this file
-- was built. fencing.doctor() reports each difference.
--
-- The manifest is made by a server that has run this file: see internal/baseline. It has nothing that differs between the major versions
-- of PostgreSQL, and leaves itself out. Constraints of NOT NULL, which are in the catalog as of version 18 only, count as the columns' own.
--
-- Known limits:
--   Who may write functions of the schema can make the doctor say what they like. migrations.Doctor has a manifest of its own for that, and
--   compares the doctor's functions with it.
--   The trigger functions of walls, tombstones and seals are made later: the findings about triggers compare those.

-- parent is the table that an object is part of, and empty for what is in the schema itself.
CREATE FUNCTION fencing.doctor_objects() RETURNS TABLE (kind text, parent text, object text, definition text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
WITH rel AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing' AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
SELECT 'table', '', c.relname::text, concat_ws(', ', CASE c.relkind WHEN 'r' THEN 'table' ELSE 'relation of kind ' || c.relkind::text END,
       CASE c.relpersistence WHEN 'p' THEN 'logged' ELSE 'unlogged' END, CASE WHEN c.relrowsecurity THEN 'row security' END,
       CASE WHEN c.relforcerowsecurity THEN 'forced row security' END)
  FROM rel c
UNION ALL
SELECT 'column', c.relname, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attcollation <> t.typcollation THEN 'of another collation' END,
       CASE WHEN a.attidentity <> '' THEN 'identity' END, CASE WHEN a.attgenerated <> '' THEN 'generated' END)
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
UNION ALL
SELECT 'not null', c.relname, a.attname, 'NOT NULL'
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
UNION ALL
SELECT 'default', c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid)
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = ''
  JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint', c.relname, k.conname, pg_get_constraintdef(k.oid)
  FROM rel c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype NOT IN ('n', 't')
UNION ALL
SELECT 'index', c.relname, x.relname, pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END
  FROM rel c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
 WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = c.oid)
UNION ALL
SELECT 'trigger', c.relname, t.tgname, pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'A' THEN '' ELSE ' not always' END
  FROM rel c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
UNION ALL
SELECT 'rule', c.relname, r.rulename, '' FROM rel c JOIN pg_rewrite r ON r.ev_class = c.oid AND r.rulename <> '_RETURN'
UNION ALL
SELECT 'policy', c.relname, p.polname, '' FROM rel c JOIN pg_policy p ON p.polrelid = c.oid
UNION ALL
SELECT 'sequence', '', c.relname, format('%s, INCREMENT BY %s', format_type(s.seqtypid, NULL), s.seqincrement)
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing'
UNION ALL
SELECT 'function', '', format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)),
       concat_ws(' ', md5(p.prosrc), l.lanname, md5(jsonb_build_array(pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prokind,
       p.prosecdef, p.proleakproof, p.proisstrict, p.provolatile, p.proparallel, p.proconfig)::text))
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
 WHERE n.nspname = 'fencing' AND p.proname <> 'doctor_manifest' AND p.proname !~ '^(wall|tomb|seal)_[0-9a-f]{16}_'
$$;

COMMENT ON FUNCTION fencing.doctor_objects() IS 'What is in schema fencing, one row for each object and its definition.';

CREATE FUNCTION fencing.doctor_manifest() RETURNS TABLE (kind text, parent text, object text, definition text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
{{manifest}}
$$;

COMMENT ON FUNCTION fencing.doctor_manifest() IS 'What is in schema fencing as fencing made it; compare fencing.doctor_objects().';

-- The differences. What has a code of its own is left out: the triggers of the schema's tables, a missing table, which stops the doctor, and
-- the sequence.
CREATE FUNCTION fencing.doctor_differences()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_epoch CONSTANT boolean := to_regclass('fencing.write_epoch') IS NOT NULL;
BEGIN
  RETURN QUERY
  WITH difference AS (
    SELECT coalesce(m.kind, o.kind) AS kind, coalesce(m.parent, o.parent) AS parent, coalesce(m.object, o.object) AS object,
           m.definition AS wanted, o.definition AS present
      FROM fencing.doctor_manifest() m FULL JOIN fencing.doctor_objects() o ON o.kind = m.kind AND o.parent = m.parent AND o.object = m.object
     WHERE m.definition IS DISTINCT FROM o.definition)
  SELECT CASE WHEN d.wanted IS NULL AND d.kind IN ('column', 'index') THEN 'warning' ELSE 'error' END,
         CASE WHEN d.present IS NULL THEN 'D001 schema-broken' ELSE 'D004 schema-changed' END,
         CASE d.kind WHEN 'function' THEN format('function fencing.%s', d.object) WHEN 'sequence' THEN format('sequence fencing.%I', d.object)
              WHEN 'table' THEN format('fencing.%I', d.object) ELSE format('%s %I of fencing.%I', d.kind, d.object, d.parent) END,
         CASE WHEN d.present IS NULL THEN 'it is missing' WHEN d.wanted IS NULL AND d.kind = 'function' THEN 'it has the name of a function of fencing, and is none'
              WHEN d.wanted IS NULL THEN 'fencing made none such' WHEN d.kind = 'function' THEN 'it is not as fencing made it'
              ELSE format('it is %s, and not %s', d.present, d.wanted) END,
         CASE WHEN d.present IS NULL AND d.kind = 'function' THEN 'what calls it fails; rights on it have to be granted again'
              WHEN d.kind = 'function' THEN 'what it checks, if anything, is for its author to say'
              WHEN d.kind IN ('trigger', 'rule', 'policy') THEN 'it can change or leave out what is written there'
              WHEN d.kind = 'table' AND d.present LIKE '%unlogged%' THEN 'a crash empties it'
              WHEN d.kind = 'table' THEN 'rows that a role doesn''t see don''t count for it'
              WHEN d.kind = 'sequence' THEN 'tokens are given out in another order, or run out'
              ELSE 'what the table is trusted to hold may be wrong, or its writes fail' END,
         CASE d.kind
           WHEN 'function' THEN CASE WHEN d.wanted IS NULL THEN format('DROP FUNCTION fencing.%s', d.object)
             ELSE 'run migrations.Up(ctx, dsn), which makes it again' END
           WHEN 'table' THEN format('ALTER TABLE fencing.%I %s', d.object, concat_ws(', ', CASE WHEN d.present LIKE '%unlogged%' THEN 'SET LOGGED' END,
             CASE WHEN d.present LIKE '%row security%' THEN 'DISABLE ROW LEVEL SECURITY' END, CASE WHEN d.present LIKE '%forced%' THEN 'NO FORCE ROW LEVEL SECURITY' END))
           WHEN 'sequence' THEN format('ALTER SEQUENCE fencing.%I AS bigint INCREMENT BY 1', d.object)
           WHEN 'column' THEN CASE WHEN d.present IS NULL THEN format('restore it: ALTER TABLE fencing.%I RENAME COLUMN ... TO %I, or take the table from a backup', d.parent, d.object)
             WHEN d.wanted IS NULL THEN format('if nothing of yours needs it, ALTER TABLE fencing.%I DROP COLUMN %I, or leave it, if every write may do without it', d.parent, d.object)
             ELSE format('ALTER TABLE fencing.%I ALTER COLUMN %I TYPE %s', d.parent, d.object, d.wanted) END
           WHEN 'not null' THEN format('ALTER TABLE fencing.%I ALTER COLUMN %I %s NOT NULL', d.parent, d.object, CASE WHEN d.wanted IS NULL THEN 'DROP' ELSE 'SET' END)
           WHEN 'default' THEN format('ALTER TABLE fencing.%I ALTER COLUMN %I ', d.parent, d.object) || coalesce('SET DEFAULT ' || d.wanted, 'DROP DEFAULT')
           WHEN 'constraint' THEN format('ALTER TABLE fencing.%I ', d.parent) || concat_ws(', ', CASE WHEN d.present IS NOT NULL THEN format('DROP CONSTRAINT %I', d.object) END,
             CASE WHEN d.wanted IS NOT NULL THEN format('ADD CONSTRAINT %I %s', d.object, d.wanted) END)
           WHEN 'index' THEN concat_ws('; ', CASE WHEN d.present IS NOT NULL THEN format('DROP INDEX fencing.%I', d.object) END, d.wanted)
           WHEN 'trigger' THEN format('DROP TRIGGER %I ON fencing.%I', d.object, d.parent)
           WHEN 'rule' THEN format('DROP RULE %I ON fencing.%I', d.object, d.parent)
           ELSE format('DROP POLICY %I ON fencing.%I', d.object, d.parent) END
    FROM difference d
   WHERE (d.wanted IS NOT NULL AND (d.kind <> 'trigger' AND (d.kind NOT IN ('table', 'sequence') OR d.present IS NOT NULL))
          OR d.wanted IS NULL AND CASE d.kind
            -- what else is in the schema is for others to answer for; but not what is taken for a function of fencing's
            WHEN 'function' THEN EXISTS (SELECT FROM fencing.doctor_manifest() f WHERE f.kind = 'function' AND split_part(f.object, '(', 1) = split_part(d.object, '(', 1))
            WHEN 'index' THEN d.present ~ '^CREATE UNIQUE |[(].*[(]| WHERE '
            ELSE true END AND (d.parent = '' AND d.kind = 'function' OR EXISTS (SELECT FROM fencing.doctor_manifest() t WHERE t.kind = 'table' AND t.object = d.parent)))
     -- of a missing column all else is missing, too, and of an added one all else is new
     AND NOT (d.kind IN ('not null', 'default') AND EXISTS (SELECT FROM difference c WHERE c.kind = 'column' AND c.parent = d.parent AND c.object = d.object
         AND (c.wanted IS NULL OR c.present IS NULL)))
     AND NOT (d.kind IN ('constraint', 'index') AND EXISTS (SELECT FROM difference c WHERE c.kind = 'column' AND c.parent = d.parent AND c.present IS NULL))
     AND (c_epoch OR d.wanted IS DISTINCT FROM '''fencing.write_epoch''::regclass')  -- D301 has it
   ORDER BY d.kind = 'constraint' AND d.wanted LIKE 'FOREIGN%', d.kind, d.parent, d.object;
END $$;
