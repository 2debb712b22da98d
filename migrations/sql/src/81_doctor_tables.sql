-- The statement that registers a table so. Of a sequence that is gone the functions of the table's wall have the name. Without one, or where
-- no sequence has the name now, somebody has to say where tokens come from: by another one forged tokens would pass, or no token.
CREATE FUNCTION fencing.doctor_register(tbl text, mode text, token_column name, resource text, issued_by regclass) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  v_seq text := issued_by::text;
BEGIN
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    SELECT replace(m.names[1], '''''', '''') INTO v_seq
      FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid, LATERAL regexp_match(p.prosrc, 'pg_sequence_last_value[(]''((?:[^'']|'''')+)''::') m(names)
     -- by the catalog: to_regclass is an error for a role without USAGE on the schema
     WHERE t.tgrelid IN (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE format('%I.%I', n.nspname, c.relname) = tbl)
       AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^wall_[0-9a-f]{16}_' AND m.names IS NOT NULL LIMIT 1;
    IF v_seq = 'fencing.write_epoch' THEN  -- D301 makes it again
      RETURN format('SELECT fencing.register(%L, %L, %L, %L)', tbl, mode, token_column, resource);
    END IF;
    IF v_seq IS NULL OR NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                                     WHERE format('%I.%I', n.nspname, c.relname) = v_seq AND c.relkind = 'S') THEN
      RETURN format('SELECT fencing.register(%L, %L, %L, %L, ...) with the sequence that its tokens come from, which is above all that were given out', tbl, mode, token_column, resource)
        || CASE WHEN v_seq IS NULL THEN '' ELSE format(', and was called %s', v_seq) END;
    END IF;
  END IF;
  RETURN format('SELECT fencing.register(%L, %L, %L, %L, %L)', tbl, mode, token_column, resource, v_seq);
END $$;

-- The statement that does something, if anything, while the wall of a table is off. It puts the wall up at the level that the registry has when
-- it is run.
CREATE FUNCTION fencing.doctor_without_wall(tbl text, sql text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RETURN format('DO $fencing$ DECLARE v_level text := (SELECT r.wall_level FROM fencing.registry r WHERE r.relid = %1$L::regclass); '
                'BEGIN PERFORM fencing.wall(%1$L, ''off''); %2$sPERFORM fencing.wall(%1$L, v_level); END $fencing$', tbl, coalesce(sql || '; ', ''));
END $$;

-- Whether a table is registered for less than another one was, or for other tokens, so that somebody has to say which it is to be; both are
-- rows of the registry. Levels are for fencing.carry_over to compare.
CREATE FUNCTION fencing.doctor_registered_less(former jsonb, present jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN former ->> 'token_column' <> present ->> 'token_column' OR former ->> 'resource' IS DISTINCT FROM present ->> 'resource'
      OR former ->> 'mode' = 'strict' AND present ->> 'mode' = 'lease' OR former ->> 'issued_by' IS NOT NULL AND present ->> 'issued_by' IS NULL
      OR present ->> 'mode' = 'strict' AND coalesce(former ->> 'seal_resource', former ->> 'seal_column') IS NOT NULL;
END $$;

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
                                  OR g.driver_rewrite AND NOT o.driver_rewrite
                                  OR fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o)))
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
      -- no session sees the rows of another one's temporary child; D214 has foreign tables
      JOIN pg_class k ON k.oid = i.inhrelid AND k.relpersistence <> 't' AND k.relkind <> 'f'
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
           -- what stands in the way of fencing.wall
           max(CASE WHEN f.oid = f.root THEN fencing.doctor_mend_first(f.root::regclass) END) OVER (PARTITION BY f.root) AS first,
           -- D102, D103 and D105 have it as an error, and registering it changes what else there is to say; of a wall of its own all is
           -- said
           g.wall_level = 'off' AND x.relid IS NOT NULL
               AND (x.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = x.relid AND y.relkind IN ('r', 'p')))
           OR g.wall_level = 'off' AND f.root IN (  -- a partition has the name, and its root takes it over
             SELECT pg_partition_root(z.oid) FROM fencing.registry h JOIN pg_namespace zn ON zn.nspname = h.schema_name
               JOIN pg_class z ON z.relnamespace = zn.oid AND z.relname = h.table_name AND z.relispartition
              WHERE h.relid <> z.oid AND (h.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = h.relid)))
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
               'first', p.first, 'covered', p.is_covered, 'torn', p.is_torn, 'unsettled', p.is_unsettled,
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
         CASE WHEN x.now IS NULL THEN 'the registered table is gone' || coalesce(', and a ' || x.instead || ' has its name now', '')
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
                  format('make or restore the table, and then %s, or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                         fencing.doctor_register(x.name, x.mode, x.token_column, x.resource, x.issued_by), x.dead)
              WHEN x.is_other THEN format('if it is to be protected as what was dropped, %s, or, if it is right as it is registered, %s',
                         -- mode strict has no use for a seal
                         CASE WHEN x.g_mode = 'strict' AND x.is_sealed THEN format('BEGIN; SELECT fencing.unseal(%L); %s; COMMIT', coalesce(x.root, x.name), a.register) ELSE a.register END,
                         CASE WHEN x.is_apart THEN format('BEGIN; DELETE FROM fencing.registry WHERE relid::oid = %s; %s; COMMIT', x.dead, b.register) ELSE b.register END)
              ELSE fencing.doctor_register(coalesce(x.root, x.name), x.mode, x.token_column, x.resource, x.issued_by) END
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
                 CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END AS issued_by,
                 g.mode AS g_mode, g.token_column AS g_column, g.resource AS g_resource, g.issued_by AS g_issued,
                 o.relid IS NOT NULL AND fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o)) AS is_other,
                 coalesce(o.seal_resource, o.seal_column) IS NOT NULL AS is_sealed,
                 -- the one can't take on what the other is registered for; compare fencing.register
                 c.relispartition AND (g.mode, g.resource, g.issued_by) IS DISTINCT FROM (o.mode, o.resource, o.issued_by)
                   OR o.mode = 'strict' AND coalesce(g.seal_resource, g.seal_column) IS NOT NULL AS is_apart
            FROM fencing.registry g
            LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND c.relkind IN ('r', 'p')) ON n.nspname = g.schema_name
                AND c.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
           WHERE NOT EXISTS (SELECT 1 FROM pg_class d WHERE d.oid = g.relid)) x,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.name), x.g_mode, x.g_column, x.g_resource, x.g_issued) AS register) a,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.name), x.mode, x.token_column, x.resource, x.issued_by) AS register) b;

  RETURN QUERY
  SELECT CASE WHEN x.is_less THEN 'error' ELSE 'warning' END, CASE WHEN x.other IS NULL THEN 'D104 table-renamed'
      ELSE 'D105 name-taken' END, x.now,
         CASE WHEN x.other IS NULL THEN format('it was registered as %s and has been renamed since', x.was)
              ELSE format('it was registered as %s, and another table has that name now', x.was) END,
         CASE WHEN x.other IS NULL THEN 'both names are protected, and so is any table that gets the old one'
              WHEN x.o_relid IS NULL THEN
                  'the driver holds the other table for a protected one, and nothing keeps a wall on that: it has the triggers that came with it, or none'
              ELSE 'the other table is registered, too, and what protects this one doesn''t protect that' END,
         CASE WHEN x.other IS NULL THEN fencing.doctor_mend_first(x.relid) || fencing.doctor_register(x.now, x.mode, x.token_column, x.resource, x.issued_by)
              WHEN x.o_relid IS NULL THEN fencing.doctor_register(coalesce(x.root, x.was), x.mode, x.token_column, x.resource, x.issued_by)
              WHEN x.is_other THEN format('if %s is to be protected as this one is, %s, or, if it is right as it is registered, %s', coalesce(x.root, x.was),
                         CASE WHEN x.mode = 'strict' AND x.is_sealed THEN format('BEGIN; SELECT fencing.unseal(%L); %s; COMMIT', coalesce(x.root, x.was), a.register) ELSE a.register END,
                         CASE WHEN x.o_mode = 'strict' AND x.seal IS NOT NULL THEN format('BEGIN; SELECT fencing.unseal(%L); %s; %s; COMMIT', x.now, b.register, x.seal) ELSE b.register END)
              ELSE fencing.doctor_register(coalesce(x.root, x.was), x.o_mode, x.o_column, x.o_resource, x.o_issued) END
    FROM (SELECT g.*, format('%I.%I', n.nspname, c.relname) AS now, format('%I.%I', g.schema_name, g.table_name) AS was, t.oid AS other,
                 CASE WHEN t.relispartition THEN (SELECT format('%I.%I', pn.nspname, p.relname) FROM pg_class p
                     JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE p.oid = pg_partition_root(t.oid)) END AS root,
                 o.relid AS o_relid, o.mode AS o_mode, o.token_column AS o_column, o.resource AS o_resource, o.issued_by AS o_issued,
                 coalesce(o.seal_resource, o.seal_column) IS NOT NULL AS is_sealed,
                 CASE WHEN coalesce(g.seal_resource, g.seal_column) IS NOT NULL THEN format('SELECT fencing.seal(%L, %L, %L)', format('%I.%I', n.nspname, c.relname), g.seal_resource, g.seal_column) END AS seal,
                 g.relid::oid = ANY (c_less) AS is_less, o.relid IS NOT NULL AND (fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o))
                   -- the two have exchanged their names
                   OR (n.nspname, c.relname) = (o.schema_name, o.table_name) AND fencing.doctor_registered_less(to_jsonb(o), to_jsonb(g))) AS is_other
            FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid AND c.relkind IN ('r', 'p')
                JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN (pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace AND t.relkind IN ('r', 'p')) ON m.nspname = g.schema_name
                AND t.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN t.relispartition THEN pg_partition_root(t.oid) ELSE t.oid END
           WHERE (n.nspname, c.relname) <> (g.schema_name, g.table_name)
             -- what has the name of another row is that row's matter: to register it here would settle that without a word
             AND (t.oid IS NOT NULL OR NOT EXISTS (SELECT FROM fencing.registry y WHERE y.relid <> g.relid AND (y.schema_name, y.table_name) = (n.nspname, c.relname)))) x,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.was), x.mode, x.token_column, x.resource, x.issued_by) AS register) a,
    LATERAL (SELECT fencing.doctor_register(x.now, x.mode, x.token_column, x.resource, x.issued_by) AS register) b;

  RETURN QUERY
  WITH member AS MATERIALIZED (
    SELECT h.*, CASE WHEN y.relispartition THEN pg_partition_root(y.oid)::oid ELSE y.oid END AS whole
      FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid),
  whole AS MATERIALIZED (  -- compare fencing.register
    SELECT m.whole AS oid, nullif(concat_ws(' and ', CASE WHEN count(DISTINCT m.token_column) > 1 THEN 'token_column' END,
             CASE WHEN count(DISTINCT m.mode) > 1 THEN 'mode' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.resource)) > 1 THEN 'resource' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.issued_by)) > 1 THEN 'issued_by' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.seal_resource, m.seal_column))
               FILTER (WHERE coalesce(m.seal_resource, m.seal_column) IS NOT NULL) > 1 THEN 'seal' END), '') AS what
      FROM member m GROUP BY m.whole)
  SELECT 'error', 'D103 not-a-table', format('%I.%I', n.nspname, c.relname),
         CASE WHEN c.relispartition THEN 'a partition is registered by itself' ELSE 'what is registered is not a table' END,
         CASE WHEN c.relispartition THEN 'a write through the partitioned table is not seen as one to it'
              ELSE 'nothing can protect it; a restore may have given the oid of a dropped table to something else' END,
         CASE WHEN z.what IS NOT NULL THEN
             format('what partitions of %1$s are registered for differs in %2$s: BEGIN; SELECT fencing.unregister(...) for those that are to take on what the others have; SELECT fencing.register(%1$L, ...); COMMIT',
                pg_partition_root(c.oid)::text, z.what)
              WHEN c.relispartition THEN fencing.doctor_register(pg_partition_root(c.oid)::regclass::text, coalesce(o.mode, g.mode),
                coalesce(o.token_column, g.token_column), CASE WHEN o.relid IS NULL THEN g.resource ELSE o.resource END,
                CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END)
              WHEN EXISTS (SELECT 1 FROM pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace WHERE m.nspname = g.schema_name
                  AND t.relname = g.table_name AND t.relkind IN ('r', 'p'))
              THEN fencing.doctor_register(format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource, g.issued_by)
              ELSE format('make or restore table %I.%I, and then %s, or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                          g.schema_name, g.table_name, fencing.doctor_register(format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column,
                              g.resource, g.issued_by), c.oid) END
    FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry o ON c.relispartition AND o.relid = pg_partition_root(c.oid)
    LEFT JOIN whole z ON c.relispartition AND z.oid = pg_partition_root(c.oid)
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
             coalesce((SELECT m.remedy FROM fencing.doctor_moved(x.root::regclass) m WHERE m.code = 'D106' AND m.now IS NOT NULL),
               format('ALTER TABLE %1$s RENAME COLUMN ... TO %2$I; if it was dropped, which forgets the tokens: ALTER TABLE %1$s ADD COLUMN %2$I bigint NOT NULL DEFAULT ..., with the newest token that was given out%3$s, and then ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0',
               x.root_name, x.col, (SELECT format(' (SELECT last_value FROM %I.%I)', n.nspname, q.relname) FROM pg_class q
                   JOIN pg_namespace n ON n.oid = q.relnamespace WHERE q.oid = x.issued)))
              WHEN x.code LIKE 'D107%' THEN CASE x.root_wall WHEN 'off' THEN '' ELSE x.first END || y.fix
              WHEN x.code LIKE 'D108%' THEN
                format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %2$I TYPE bigint USING %2$I::bigint, ALTER COLUMN %2$I SET DEFAULT 0',
                  CASE WHEN x.is_inherited THEN x.root_name ELSE x.name END, x.col)
              ELSE format('ALTER TABLE %s ALTER COLUMN %I %s', x.name, x.col, x.fix) END
    FROM (SELECT f.*, a.attinhcount > 0 AS is_inherited, CASE WHEN a.attname IS NULL THEN 'D106 column-missing' WHEN a.atttypid <> 'int8'::regtype THEN 'D108 column-type'
                           WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'D109 column-generated'
                           WHEN v.nullable THEN 'D107 column-nullable' ELSE 'D110 column-default' END AS code,
                 CASE WHEN a.attname IS NULL THEN 'is missing' WHEN a.atttypid <> 'int8'::regtype
                     THEN format('is %s, not bigint', format_type(a.atttypid,
                     a.atttypmod))
                      WHEN a.attidentity <> '' THEN 'is an identity column' WHEN a.attgenerated <> '' THEN 'is a generated column'
                      WHEN v.nullable THEN 'may be null'
                          ELSE format('has the default %s', pg_get_expr(d.adbin, d.adrelid)) END AS what,
                 CASE WHEN a.attname IS NULL THEN 'every guarded write fails' WHEN a.atttypid <> 'int8'::regtype
                     THEN 'tokens are not compared exactly'
                      WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'the table sets the token, not the write'
                      WHEN v.nullable THEN 'a null is neither older nor newer than a token'
                          ELSE 'a row that was written without a token has one' END AS so,
                 CASE WHEN a.atttypid <> 'int8'::regtype THEN 'TYPE bigint' WHEN a.attidentity <> '' THEN 'DROP IDENTITY'
                     WHEN a.attgenerated <> '' THEN 'DROP EXPRESSION'
                      WHEN v.nullable THEN 'SET NOT NULL' ELSE 'SET DEFAULT 0' END AS fix
            FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, root_wall text, col name, issued oid,
                first text, unsettled boolean)
            LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            CROSS JOIN LATERAL (SELECT fencing.doctor_nullable(f.oid, a.attnum)) v(nullable)
           WHERE a.attname IS NULL OR a.atttypid <> 'int8'::regtype OR a.attidentity <> '' OR a.attgenerated <> '' OR v.nullable
               AND NOT f.unsettled
              OR pg_get_expr(d.adbin, d.adrelid) NOT IN ('0', '''0''::bigint', '(0)::bigint')) x,
    -- the wall refuses the UPDATE, and to be put up while any of the tables may have nulls
    LATERAL (SELECT CASE x.root_wall WHEN 'off' THEN u.sql ELSE fencing.doctor_without_wall(x.root_name, u.sql) END
               FROM (SELECT string_agg(format('UPDATE ONLY %s SET %I = 0 WHERE %2$I IS NULL', f.name, f.col), '; ')
                           || '; ' || string_agg(format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.col), '; ') AS sql
               FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name)
               JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped AND fencing.doctor_nullable(f.oid, a.attnum)
              WHERE x.code LIKE 'D107%' AND f.root = x.root) u) y(fix);

  RETURN QUERY
  SELECT 'warning', 'D111 unlogged', f.name, 'the table is unlogged', 'a crash empties it, and with the rows their tokens are gone',
         format('ALTER TABLE %s SET LOGGED', f.name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text) JOIN pg_class c ON c.oid = f.oid WHERE c.relpersistence = 'u';

  RETURN QUERY
  SELECT 'error', 'D214 foreign-child', i.inhrelid::regclass::text, format('it is a foreign table, and a %s of %s', CASE WHEN c.relispartition THEN 'partition'
           ELSE 'child' END, f.name),
         'its rows are on another server, where nothing of this one compares their tokens',
         format('ALTER TABLE %s, or protect it where its rows are, and take it out of this table ...', CASE WHEN c.relispartition
             THEN format('%s DETACH PARTITION %s', i.inhparent::regclass, i.inhrelid::regclass) ELSE format('%s NO INHERIT %s', i.inhrelid::regclass, i.inhparent::regclass) END)
    FROM (SELECT DISTINCT f.oid, f.name FROM jsonb_to_recordset(family) AS f(oid oid, name text)) f JOIN pg_inherits i ON i.inhparent = f.oid
    JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind = 'f';

  RETURN QUERY
  SELECT CASE WHEN f.wall IN ('off', 'report') AND NOT f.covered THEN 'warning' ELSE 'info' END, 'D215 driver-level', f.name,
         CASE g.driver_level WHEN 'off' THEN 'the driver doesn''t look at the table' ELSE 'the driver only reports unguarded statements' END,
         CASE WHEN f.wall IN ('off', 'report') AND NOT f.covered THEN 'nothing refuses a stale write' ELSE 'the wall alone refuses stale writes' END,
         format('SELECT fencing.driver_level(%L, ''enforce'')', f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, wall text, covered boolean) JOIN fencing.registry g ON g.relid = f.root
   WHERE f.root = f.oid AND g.driver_level <> 'enforce';

  IF has_table_privilege('fencing.generation', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D112 generation-missing', 'fencing.generation', 'its row is missing',
        'the driver finds nothing registered, and nothing can be registered',
           -- above whatever drivers have seen
           format('INSERT INTO fencing.generation (value) VALUES (%s)', extract(epoch FROM now())::bigint)
     WHERE NOT EXISTS (SELECT 1 FROM fencing.generation);
  END IF;
END $$;

-- Functions that were allowed, against the catalog. To forget that one was is all that a remedy may say: whether the present definition is to
-- be let through is for somebody to decide who has read it.
CREATE FUNCTION fencing.doctor_functions()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
BEGIN
  IF has_table_privilege('fencing.allowed_function', 'SELECT') AND has_function_privilege('fencing.allowed_functions()', 'EXECUTE') THEN
    RETURN QUERY
    SELECT 'warning', 'D114 allowed-function', format('function %s', x.name),
           CASE WHEN x.oid IS NULL THEN 'it was allowed, and is gone: dropped, renamed or moved to another schema'
                ELSE 'its definition is not the one that was allowed'
                     || CASE WHEN (SELECT p.prosqlbody IS NOT NULL FROM pg_proc p WHERE p.oid = x.oid) THEN ', or a restore has written its parsed body anew' ELSE '' END END,
           CASE WHEN x.oid IS NULL THEN 'one that is made again as it was is allowed at once; what it is called now is not'
                ELSE 'the driver takes it for one that is not allowed, until somebody has read it and called fencing.allow_function again' END,
           CASE WHEN x.oid IS NULL
             THEN format('DELETE FROM fencing.allowed_function WHERE (schema_name, function_name, arguments) = (%L, %L, %L)', x.schema_name, x.function_name, x.arguments)
                ELSE format('SELECT fencing.disallow_function(%L)', x.name) END
      FROM (SELECT a.*, format('%I.%I(%s)', a.schema_name, a.function_name, a.arguments) AS name, p.oid
              FROM fencing.allowed_function a
              LEFT JOIN (pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace)
                ON n.nspname = a.schema_name AND p.proname = a.function_name AND oidvectortypes(p.proargtypes) = a.arguments
             WHERE p.oid IS NULL OR p.oid NOT IN (SELECT f FROM fencing.allowed_functions() f)) x
     ORDER BY x.name;
  END IF;
END $$;
