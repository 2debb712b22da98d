-- The registered tables that have a name which another table has now, and ask for more protection than that one has; compare
-- fencing.carry_over.
CREATE FUNCTION fencing.doctor_less() RETURNS oid[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
  v_less   oid[];
BEGIN
  SELECT coalesce(array_agg(g.relid::oid), '{}') INTO v_less
    FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
    LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
   WHERE array_position(c_levels, g.wall_level) > coalesce(array_position(c_levels, o.wall_level), 1)
      OR o.relid IS NOT NULL AND (array_position(c_levels, g.driver_level) > array_position(c_levels, o.driver_level)
                                  OR g.driver_rewrite AND NOT o.driver_rewrite)
      OR g.tombstones AND o.tombstones IS NOT TRUE
      OR coalesce(g.seal_resource, g.seal_column) IS NOT NULL
         AND coalesce(o.seal_resource, o.seal_column) IS NULL;
  IF has_table_privilege('fencing.tombstone', 'SELECT') THEN
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less
      FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
     WHERE g.tombstones AND EXISTS (
       SELECT FROM fencing.tombstone d WHERE d.relid = g.relid
          AND NOT EXISTS (SELECT FROM fencing.tombstone e WHERE e.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid)
              ELSE c.oid END AND e.digest = d.digest AND e.token >= d.token));
  ELSE  -- which of them the other table has can't be seen
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less FROM fencing.registry g WHERE g.tombstones;
  END IF;
  RETURN v_less;
END $$;

-- The registered tables, their partitions and their children, as the parts of the doctor take them: an array of objects, one for each
-- table and registered table above it. A child with a wall of its own keeps that, and doesn't belong to its parent's.
CREATE FUNCTION fencing.doctor_family() RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_less   CONSTANT oid[] := fencing.doctor_less();  -- these have a name that another table has now, which is protected less
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
BEGIN
  RETURN (
  WITH RECURSIVE family AS (
    SELECT g.relid::oid AS root, g.relid::oid AS oid FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid
        WHERE c.relkind IN ('r', 'p')
    UNION
    SELECT f.root, i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid
      JOIN pg_class t ON t.oid = i.inhrelid AND t.relpersistence <> 't'  -- a session's own
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  present AS (
    SELECT f.root, f.oid, format('%I.%I', n.nspname, c.relname) AS name, format('%I.%I', rn.nspname, rc.relname) AS root_name,
        g.token_column, g.mode, g.resource,
           g.issued_by, g.wall_level, g.tombstones, c.relispartition,
           -- of the walls of several parents, as fencing.wall_apply has it
           CASE WHEN g.wall_level = 'off' OR f.oid = f.root OR c.relispartition THEN g.wall_level
                ELSE c_levels[max(array_position(c_levels, g.wall_level)) OVER (PARTITION BY f.oid)] END AS level,
           -- by the wall of a parent, as its own would be
           g.wall_level = 'off' AND bool_or(g.wall_level <> 'off') OVER (PARTITION BY f.oid, g.token_column, g.mode,
               g.resource) AS is_covered,
           -- a child of several walled parents, whose walls can't be one
           f.oid <> f.root AND NOT c.relispartition AND g.wall_level <> 'off'
               AND (min(k.wall) OVER walls <> max(k.wall) OVER walls OR min(k.seal) OVER walls IS DISTINCT
               FROM max(k.seal) OVER walls) AS is_torn,
           -- where the triggers are to leave what a subscription's worker writes alone: D701
           bool_or(EXISTS (SELECT 1 FROM pg_subscription_rel l WHERE l.srrelid = f.oid)) OVER (PARTITION BY f.root) AS is_subscribed,
           -- D102, D103 and D105 have it as an error, and registering it changes what else there is to say; of a wall of its own all is
           -- said
           g.wall_level = 'off' AND x.relid IS NOT NULL
               AND (x.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = x.relid AND y.relkind IN ('r', 'p')))
           OR g.wall_level = 'off' AND EXISTS (  -- a partition has the name, and its root takes it over
             SELECT FROM pg_partition_tree(rc.oid) p JOIN pg_class z ON z.oid = p.relid AND z.oid <> rc.oid
                 JOIN pg_namespace zn ON zn.oid = z.relnamespace
               JOIN fencing.registry h ON h.schema_name = zn.nspname AND h.table_name = z.relname AND h.relid <> z.oid
              WHERE h.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = h.relid))
           OR rc.relispartition OR f.root IN (
             SELECT pg_partition_root(y.oid) FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid
                 WHERE y.relispartition) AS is_unsettled
      FROM family f JOIN fencing.registry g ON g.relid = f.root
      JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_class rc ON rc.oid = f.root JOIN pg_namespace rn ON rn.oid = rc.relnamespace
      LEFT JOIN fencing.registry x ON x.schema_name = rn.nspname AND x.table_name = rc.relname AND x.relid <> rc.oid,
      LATERAL (SELECT jsonb_build_array(g.token_column, g.mode, g.resource, g.issued_by)::text AS wall,
                      CASE WHEN coalesce(g.seal_resource, g.seal_column) IS NOT NULL
                           THEN jsonb_build_array(g.seal_resource, g.seal_column)::text END AS seal) k
    WINDOW walls AS (PARTITION BY f.oid, g.wall_level <> 'off'))
  SELECT coalesce(jsonb_agg(jsonb_build_object(
           'root', p.root, 'oid', p.oid, 'name', p.name, 'root_name', p.root_name, 'col', p.token_column, 'mode', p.mode, 'resource',
               p.resource,
           'issued', p.issued_by::oid, 'wall', p.level, 'root_wall', p.wall_level, 'tombs', p.tombstones, 'part', p.relispartition,
               'covered', p.is_covered, 'torn', p.is_torn, 'unsettled', p.is_unsettled,
           'subscribed', p.is_subscribed)), '[]')
    FROM present p);
END $$;

-- Tables: what the registry says, against the catalog. Registering what has the name now is the remedy: fencing.register takes over
-- what the row asks for. No row is to be deleted before somebody has decided that the table won't come back.
CREATE FUNCTION fencing.doctor_tables()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_less   CONSTANT oid[] := fencing.doctor_less();  -- these have a name that another table has now, which is protected less
BEGIN
  RETURN QUERY
  SELECT CASE WHEN x.now IS NULL AND x.instead IS NULL THEN 'warning' ELSE 'error' END,
         CASE WHEN x.now IS NULL THEN 'D101 table-gone' ELSE 'D102 table-replaced' END, x.name,
         CASE WHEN x.now IS NULL THEN 'the registered table is gone' || coalesce(format(', and a %s has its name now', x.instead), '')
              WHEN x.root IS NOT NULL THEN format('the registered table was dropped, and a partition of %s has its name now', x.root)
                  WHEN x.relid IS NULL THEN 'the registered table was dropped and made again'
              ELSE 'the registered table was dropped, and another registered one has its name now' END,
         CASE WHEN x.instead IS NOT NULL THEN 'nothing in the database checks what is written by that name'
              WHEN x.now IS NULL THEN 'the driver goes on protecting the name, and after a restore the row may stand for another table'
              WHEN x.relid IS NULL THEN
                  'nothing keeps a wall on the new one: it has the triggers that came with it, as from a dump of the table alone, or none'
              ELSE 'what protected the old one doesn''t protect the other' END,
         CASE WHEN x.instead IS NOT NULL
             THEN format('name what is to be protected in its place: SELECT fencing.register(..., %L, %L, %L, %L) and SELECT fencing.wall(..., ...), and then DELETE FROM fencing.registry WHERE relid::oid = %s',
                                                     x.mode, x.token_column, x.resource, x.issued_by, x.dead)
              WHEN x.now IS NULL THEN
                  format('make or restore the table, and then SELECT fencing.register(%L, %L, %L, %L, %L), or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                                             x.name, x.mode, x.token_column, x.resource, x.issued_by, x.dead)
              ELSE format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.name), x.mode, x.token_column, x.resource,
                  x.issued_by) END
    FROM (SELECT CASE WHEN c.relispartition
        THEN (SELECT format('%I.%I', m.nspname, p.relname) FROM pg_class p JOIN pg_namespace m ON m.oid = p.relnamespace
        WHERE p.oid = pg_partition_root(c.oid)) END AS root,
                 (SELECT CASE v.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END FROM pg_class v
                     JOIN pg_namespace m ON m.oid = v.relnamespace
                   WHERE m.nspname = g.schema_name AND v.relname = g.table_name AND v.relkind IN ('v', 'm', 'f')) AS instead,
                 format('%I.%I', g.schema_name, g.table_name) AS name, g.relid::oid AS dead, c.oid AS now, o.relid,
                     coalesce(o.mode, g.mode) AS mode,
                 coalesce(o.token_column, g.token_column) AS token_column, CASE WHEN o.relid IS NULL THEN g.resource
                     ELSE o.resource END AS resource,
                 CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END AS issued_by
            FROM fencing.registry g
            LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND c.relkind IN ('r', 'p')) ON n.nspname = g.schema_name
                AND c.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
           WHERE NOT EXISTS (SELECT 1 FROM pg_class d WHERE d.oid = g.relid)) x;

  RETURN QUERY
  SELECT CASE WHEN x.is_less THEN 'error' ELSE 'warning' END, CASE WHEN x.other IS NULL THEN 'D104 table-renamed'
      ELSE 'D105 name-taken' END, x.now,
         CASE WHEN x.other IS NULL THEN format('it was registered as %s and has been renamed since', x.was)
              ELSE format('it was registered as %s, and another table has that name now', x.was) END,
         CASE WHEN x.other IS NULL THEN 'both names are protected, and so is any table that gets the old one'
              WHEN x.o_relid IS NULL THEN
                  'the driver holds the other table for a protected one, and nothing keeps a wall on that: it has the triggers that came with it, or none'
              ELSE 'the other table is registered, too, and what protects this one doesn''t protect that' END,
         CASE WHEN x.other IS NULL THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', x.now, x.mode, x.token_column, x.resource,
             x.issued_by)
              WHEN x.o_relid IS NULL THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.was), x.mode,
                  x.token_column, x.resource, x.issued_by)
              ELSE format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.was), x.o_mode, x.o_column, x.o_resource,
                  x.o_issued) END
    FROM (SELECT g.*, format('%I.%I', n.nspname, c.relname) AS now, format('%I.%I', g.schema_name, g.table_name) AS was, t.oid AS other,
                 CASE WHEN t.relispartition THEN (SELECT format('%I.%I', pn.nspname, p.relname) FROM pg_class p
                     JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE p.oid = pg_partition_root(t.oid)) END AS root,
                 o.relid AS o_relid, o.mode AS o_mode, o.token_column AS o_column, o.resource AS o_resource, o.issued_by AS o_issued,
                 g.relid::oid = ANY (c_less) AS is_less
            FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid AND c.relkind IN ('r', 'p')
                JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN (pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace AND t.relkind IN ('r', 'p')) ON m.nspname = g.schema_name
                AND t.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN t.relispartition THEN pg_partition_root(t.oid) ELSE t.oid END
           WHERE (n.nspname, c.relname) <> (g.schema_name, g.table_name)) x;

  RETURN QUERY
  SELECT 'error', 'D103 not-a-table', format('%I.%I', n.nspname, c.relname),
         CASE WHEN c.relispartition THEN 'a partition is registered by itself' ELSE 'what is registered is not a table' END,
         CASE WHEN c.relispartition THEN 'a write through the partitioned table is not seen as one to it'
              ELSE 'nothing can protect it; a restore may have given the oid of a dropped table to something else' END,
         CASE WHEN z.what IS NOT NULL THEN
             format('what partitions of %1$s are registered for differs in %2$s: BEGIN; SELECT fencing.unregister(...) for those that are to take on what the others have; SELECT fencing.register(%1$L, ...); COMMIT',
                pg_partition_root(c.oid)::text, z.what)
              WHEN c.relispartition THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', pg_partition_root(c.oid)::text,
                  coalesce(o.mode, g.mode),
                coalesce(o.token_column, g.token_column), CASE WHEN o.relid IS NULL THEN g.resource ELSE o.resource END,
                CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END)
              WHEN EXISTS (SELECT 1 FROM pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace WHERE m.nspname = g.schema_name
                  AND t.relname = g.table_name AND t.relkind IN ('r', 'p'))
              THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', format('%I.%I', g.schema_name, g.table_name), g.mode,
                  g.token_column, g.resource, g.issued_by)
              ELSE format('make or restore table %I.%I, and then SELECT fencing.register(%L, %L, %L, %L, %L), or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                          g.schema_name, g.table_name, format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource,
                              g.issued_by, c.oid) END
    FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry o ON c.relispartition AND o.relid = pg_partition_root(c.oid),
    LATERAL (  -- compare fencing.register
      SELECT string_agg(k.what, ' and ' ORDER BY k.n) AS what
        FROM (VALUES (1, 'token_column'), (2, 'mode'), (3, 'resource'), (4, 'issued_by'), (5, 'seal')) k(n, what)
       WHERE c.relispartition
         AND 1 < (SELECT count(DISTINCT CASE k.what WHEN 'seal' THEN jsonb_build_array(h.seal_resource, h.seal_column)
             ELSE jsonb_build_array(to_jsonb(h) -> k.what) END)
                    FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid
                   WHERE (h.relid = o.relid OR y.relispartition AND pg_partition_root(y.oid) = pg_partition_root(c.oid))
                     AND (k.what <> 'seal' OR coalesce(h.seal_resource, h.seal_column) IS NOT NULL))) z
   WHERE c.relkind NOT IN ('r', 'p') OR c.relispartition;
END $$;

-- The token columns, unlogged tables, and the generation.
CREATE FUNCTION fencing.doctor_columns(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'error', x.code, x.name, format('the token column %I %s', x.col, x.what), x.so,
         CASE WHEN x.code LIKE 'D106%' THEN
             format('ALTER TABLE %1$s RENAME COLUMN ... TO %2$I; if it was dropped, which forgets the tokens: ALTER TABLE %1$s ADD COLUMN %2$I bigint NOT NULL DEFAULT ..., with the newest token that was given out%3$s, and then ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0',
             x.root_name, x.col, (SELECT format(' (SELECT last_value FROM %I.%I)', n.nspname, q.relname) FROM pg_class q
                 JOIN pg_namespace n ON n.oid = q.relnamespace WHERE q.oid = x.issued))
              WHEN x.code LIKE 'D107%' THEN y.fix
              ELSE format('ALTER TABLE %s ALTER COLUMN %I %s', x.name, x.col, x.fix) END
    FROM (SELECT f.*, CASE WHEN a.attname IS NULL THEN 'D106 column-missing' WHEN a.atttypid <> 'int8'::regtype THEN 'D108 column-type'
                           WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'D109 column-generated'
                           WHEN NOT a.attnotnull THEN 'D107 column-nullable' ELSE 'D110 column-default' END AS code,
                 CASE WHEN a.attname IS NULL THEN 'is missing' WHEN a.atttypid <> 'int8'::regtype
                     THEN format('is %s, not bigint', format_type(a.atttypid,
                     a.atttypmod))
                      WHEN a.attidentity <> '' THEN 'is an identity column' WHEN a.attgenerated <> '' THEN 'is a generated column'
                      WHEN NOT a.attnotnull THEN 'may be null'
                          ELSE format('has the default %s', pg_get_expr(d.adbin, d.adrelid)) END AS what,
                 CASE WHEN a.attname IS NULL THEN 'every guarded write fails' WHEN a.atttypid <> 'int8'::regtype
                     THEN 'tokens are not compared exactly'
                      WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'the table sets the token, not the write'
                      WHEN NOT a.attnotnull THEN 'a null is neither older nor newer than a token'
                          ELSE 'a row that was written without a token has one' END AS so,
                 CASE WHEN a.atttypid <> 'int8'::regtype THEN 'TYPE bigint' WHEN a.attidentity <> '' THEN 'DROP IDENTITY'
                     WHEN a.attgenerated <> '' THEN 'DROP EXPRESSION'
                      WHEN NOT a.attnotnull THEN 'SET NOT NULL' ELSE 'SET DEFAULT 0' END AS fix
            FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, root_wall text, col name, issued oid,
                unsettled boolean)
            LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
           WHERE a.attname IS NULL OR a.atttypid <> 'int8'::regtype OR a.attidentity <> '' OR a.attgenerated <> '' OR NOT a.attnotnull
               AND NOT f.unsettled
              OR pg_get_expr(d.adbin, d.adrelid) NOT IN ('0', '''0''::bigint', '(0)::bigint')) x,
    -- the wall refuses the UPDATE, and to be put up while any of the tables may have nulls
    LATERAL (SELECT format(CASE x.root_wall WHEN 'off' THEN '%1$s'
        ELSE 'BEGIN; SELECT fencing.wall(%2$L, ''off''); %1$s; SELECT fencing.wall(%2$L, %3$L); COMMIT' END,
                           string_agg(format('UPDATE ONLY %s SET %I = 0 WHERE %2$I IS NULL', f.name, f.col), '; ')
                           || '; ' || string_agg(format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.col), '; '), x.root_name,
                               x.root_wall) AS fix
               FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name)
               JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped AND NOT a.attnotnull
              WHERE x.code LIKE 'D107%' AND f.root = x.root) y;

  RETURN QUERY
  SELECT 'warning', 'D111 unlogged', f.name, 'the table is unlogged', 'a crash empties it, and with the rows their tokens are gone',
         format('ALTER TABLE %s SET LOGGED', f.name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text) JOIN pg_class c ON c.oid = f.oid WHERE c.relpersistence = 'u';

  IF has_table_privilege('fencing.generation', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D112 generation-missing', 'fencing.generation', 'its row is missing',
        'the driver finds nothing registered, and nothing can be registered',
           -- above whatever drivers have seen
           format('INSERT INTO fencing.generation (value) VALUES (%s)', extract(epoch FROM now())::bigint)
     WHERE NOT EXISTS (SELECT 1 FROM fencing.generation);
  END IF;
END $$;
