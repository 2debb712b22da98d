-- The doctor: fencing.doctor(), which finds what takes the protection away or will do so, and says what mends it.
--
-- It only reads, as the calling role and what that may see: the catalog, which is open to everybody, fencing.registry, and, for the
-- one look at rows, tables and sequences that the role may read. The calling role needs EXECUTE and the application's other rights.
--
-- Known limits:
--   Roles are judged by the rights that they have. Nothing tells a role that deploys from an application that has too many rights:
--   without the argument roles, a role that owns what is protected is a warning, and any other with too many an error.
--   A trigger function may set the token column without naming it, and may name it without setting it: its text is searched only, and
--   what it calls is not. The wall compares the token itself.
--   What the schema's owner has put into fencing's own functions isn't compared with anything; migrations.Doctor tries the wall.
--   Tokens are compared with their sequence where the token column leads an index, and elsewhere only with scan => true.

CREATE FUNCTION fencing.doctor(scan boolean DEFAULT false, roles name[] DEFAULT NULL)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_epoch  CONSTANT oid := to_regclass('fencing.write_epoch');
  -- who owns what is in the schema, if another was given the schema alone: see D003
  c_owner  CONSTANT oid := (SELECT CASE WHEN has_schema_privilege(c.relowner, n.oid, 'USAGE') THEN n.nspowner ELSE coalesce(c.relowner, n.nspowner) END
                              FROM pg_namespace n LEFT JOIN pg_class c ON c.oid = to_regclass('fencing.registry') WHERE n.oid = c_schema);
  c_db     CONSTANT oid := (SELECT oid FROM pg_database WHERE datname = current_database());
  c_changed CONSTANT text := '((new.%1$I)::text IS DISTINCT FROM current_setting((''fencing.mark''::text || ((pg_trigger_depth() + 1))::text), true))';  -- as in fencing.wall_apply
  c_instead CONSTANT text := 'the start of the server stands in for what it tells: tokens jump far ahead at each start, too';
  c_nothing CONSTANT text := 'a promotion or a restore may go unnoticed, and tokens be given out again';
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
  v_family jsonb;  -- the registered tables, their partitions and their children
  v_seqs   oid[];  -- the sequences that bound tokens
  v_apps   jsonb;  -- the roles that are judged
  v_last   bigint;
  v_max    bigint;
  v_min    bigint;
  v_now    record; -- what tokens are drawn from
  v_own    jsonb;  -- what the tables and sequences are in, and its owners
  v_tables text[]; -- of the schema, which are missing
  v_less   oid[];  -- the tables that protect more than the one that has their registered name now
  v_what   text;
  r        record;
BEGIN
  -- The schema itself. Without its tables nothing of what follows can be looked at; an error in what follows is a finding, too.
  SELECT array_agg('fencing.' || x ORDER BY i) INTO v_tables
    FROM unnest('{registry,generation,incarnation,tombstone,repairs,lease,epoch}'::text[]) WITH ORDINALITY u(x, i)
   WHERE to_regclass('fencing.' || x) IS NULL
     -- of later versions
     AND (x NOT IN ('lease', 'epoch') OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proname = CASE x WHEN 'lease' THEN 'take' ELSE 'seal' END));
  IF v_tables IS NOT NULL THEN
    RETURN QUERY SELECT 'error', 'D001 schema-broken', 'schema fencing', format('%s is missing', array_to_string(v_tables, ', ')),
      'what rests on it fails or lets everything through, and the doctor can''t look at the rest',
      format('restore %s from a backup, or from a copy of the database', array_to_string(v_tables, ', '));
    RETURN;
  END IF;
  RETURN QUERY
  SELECT 'error', 'D001 schema-broken', 'schema fencing', format('function fencing.%I is missing', x), 'what calls it fails',
         'make it again as the files of this version of package migrations have it, or restore it from a backup'
    FROM unnest('{next_token,incarnation_now,register,unregister,wall,tombstones,repair}'::text[]) x
   WHERE NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proname = x);
  IF NOT has_table_privilege('fencing.registry', 'SELECT') THEN
    RETURN QUERY SELECT 'error', 'D002 doctor-stopped', 'table fencing.registry', format('role %I may not read it', current_user), 'nothing was looked at',
      format('GRANT SELECT ON fencing.registry TO %I', current_user);
    RETURN;
  END IF;

  RETURN QUERY
  SELECT 'error', 'D003 schema-owner', 'schema fencing',
         format('it belongs to role %I, and what is in it to role %I, which may not use it', pg_get_userbyid(n.nspowner), pg_get_userbyid(c_owner)),
         'no token can be drawn, and every write to a table with a wall fails', format('ALTER SCHEMA fencing OWNER TO %I', pg_get_userbyid(c_owner))
    FROM pg_namespace n WHERE n.oid = c_schema AND n.nspowner <> c_owner;

  BEGIN  -- whatever fails is a finding: see the end
  -- Tables: what the registry says, against the catalog. Registering what has the name now is the remedy: fencing.register takes over
  -- what the row asks for. No row is to be deleted before somebody has decided that the table won't come back.
  RETURN QUERY
  SELECT CASE WHEN x.now IS NULL AND x.instead IS NULL THEN 'warning' ELSE 'error' END,
         CASE WHEN x.now IS NULL THEN 'D101 table-gone' ELSE 'D102 table-replaced' END, x.name,
         CASE WHEN x.now IS NULL THEN 'the registered table is gone' || coalesce(format(', and a %s has its name now', x.instead), '')
              WHEN x.root IS NOT NULL THEN format('the registered table was dropped, and a partition of %s has its name now', x.root) WHEN x.relid IS NULL THEN 'the registered table was dropped and made again'
              ELSE 'the registered table was dropped, and another registered one has its name now' END,
         CASE WHEN x.instead IS NOT NULL THEN 'nothing in the database checks what is written by that name'
              WHEN x.now IS NULL THEN 'the driver goes on protecting the name, and after a restore the row may stand for another table'
              WHEN x.relid IS NULL THEN 'nothing keeps a wall on the new one: it has the triggers that came with it, as from a dump of the table alone, or none'
              ELSE 'what protected the old one doesn''t protect the other' END,
         CASE WHEN x.instead IS NOT NULL THEN format('name what is to be protected in its place: SELECT fencing.register(..., %L, %L, %L, %L) and SELECT fencing.wall(..., ...), and then DELETE FROM fencing.registry WHERE relid::oid = %s',
                                                     x.mode, x.token_column, x.resource, x.issued_by, x.dead)
              WHEN x.now IS NULL THEN format('make or restore the table, and then SELECT fencing.register(%L, %L, %L, %L, %L), or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                                             x.name, x.mode, x.token_column, x.resource, x.issued_by, x.dead)
              ELSE format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.name), x.mode, x.token_column, x.resource, x.issued_by) END
    FROM (SELECT CASE WHEN c.relispartition THEN (SELECT format('%I.%I', m.nspname, p.relname) FROM pg_class p JOIN pg_namespace m ON m.oid = p.relnamespace WHERE p.oid = pg_partition_root(c.oid)) END AS root,
                 (SELECT CASE v.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END FROM pg_class v JOIN pg_namespace m ON m.oid = v.relnamespace
                   WHERE m.nspname = g.schema_name AND v.relname = g.table_name AND v.relkind IN ('v', 'm', 'f')) AS instead,
                 format('%I.%I', g.schema_name, g.table_name) AS name, g.relid::oid AS dead, c.oid AS now, o.relid, coalesce(o.mode, g.mode) AS mode,
                 coalesce(o.token_column, g.token_column) AS token_column, CASE WHEN o.relid IS NULL THEN g.resource ELSE o.resource END AS resource,
                 CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END AS issued_by
            FROM fencing.registry g
            LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND c.relkind IN ('r', 'p')) ON n.nspname = g.schema_name AND c.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
           WHERE NOT EXISTS (SELECT 1 FROM pg_class d WHERE d.oid = g.relid)) x;

  -- compare fencing.carry_over; seals and rewriting come with later versions
  SELECT coalesce(array_agg(g.relid::oid), '{}') INTO v_less
    FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
    LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
   WHERE array_position(c_levels, g.wall_level) > coalesce(array_position(c_levels, o.wall_level), 1)
      OR o.relid IS NOT NULL AND (array_position(c_levels, g.driver_level) > array_position(c_levels, o.driver_level)
                                  OR (to_jsonb(g) ->> 'driver_rewrite')::boolean AND NOT (to_jsonb(o) ->> 'driver_rewrite')::boolean)
      OR g.tombstones AND o.tombstones IS NOT TRUE
      OR coalesce(to_jsonb(g) ->> 'seal_resource', to_jsonb(g) ->> 'seal_column') IS NOT NULL
         AND coalesce(to_jsonb(o) ->> 'seal_resource', to_jsonb(o) ->> 'seal_column') IS NULL;
  IF has_table_privilege('fencing.tombstone', 'SELECT') THEN
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less
      FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
     WHERE g.tombstones AND EXISTS (
       SELECT FROM fencing.tombstone d WHERE d.relid = g.relid
          AND NOT EXISTS (SELECT FROM fencing.tombstone e WHERE e.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END AND e.digest = d.digest AND e.token >= d.token));
  ELSE  -- which of them the other table has can't be seen
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less FROM fencing.registry g WHERE g.tombstones;
  END IF;

  RETURN QUERY
  SELECT CASE WHEN x.is_less THEN 'error' ELSE 'warning' END, CASE WHEN x.other IS NULL THEN 'D104 table-renamed' ELSE 'D105 name-taken' END, x.now,
         CASE WHEN x.other IS NULL THEN format('it was registered as %s and has been renamed since', x.was)
              ELSE format('it was registered as %s, and another table has that name now', x.was) END,
         CASE WHEN x.other IS NULL THEN 'both names are protected, and so is any table that gets the old one'
              WHEN x.o_relid IS NULL THEN 'the driver holds the other table for a protected one, and nothing keeps a wall on that: it has the triggers that came with it, or none'
              ELSE 'the other table is registered, too, and what protects this one doesn''t protect that' END,
         CASE WHEN x.other IS NULL THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', x.now, x.mode, x.token_column, x.resource, x.issued_by)
              WHEN x.o_relid IS NULL THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.was), x.mode, x.token_column, x.resource, x.issued_by)
              ELSE format('SELECT fencing.register(%L, %L, %L, %L, %L)', coalesce(x.root, x.was), x.o_mode, x.o_column, x.o_resource, x.o_issued) END
    FROM (SELECT g.*, format('%I.%I', n.nspname, c.relname) AS now, format('%I.%I', g.schema_name, g.table_name) AS was, t.oid AS other,
                 CASE WHEN t.relispartition THEN (SELECT format('%I.%I', pn.nspname, p.relname) FROM pg_class p JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE p.oid = pg_partition_root(t.oid)) END AS root,
                 o.relid AS o_relid, o.mode AS o_mode, o.token_column AS o_column, o.resource AS o_resource, o.issued_by AS o_issued,
                 g.relid::oid = ANY (v_less) AS is_less
            FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid AND c.relkind IN ('r', 'p') JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN (pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace AND t.relkind IN ('r', 'p')) ON m.nspname = g.schema_name AND t.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN t.relispartition THEN pg_partition_root(t.oid) ELSE t.oid END
           WHERE (n.nspname, c.relname) <> (g.schema_name, g.table_name)) x;

  RETURN QUERY
  SELECT 'error', 'D103 not-a-table', format('%I.%I', n.nspname, c.relname),
         CASE WHEN c.relispartition THEN 'a partition is registered by itself' ELSE 'what is registered is not a table' END,
         CASE WHEN c.relispartition THEN 'a write through the partitioned table is not seen as one to it'
              ELSE 'nothing can protect it; a restore may have given the oid of a dropped table to something else' END,
         CASE WHEN z.what IS NOT NULL THEN format('what partitions of %1$s are registered for differs in %2$s: BEGIN; SELECT fencing.unregister(...) for those that are to take on what the others have; SELECT fencing.register(%1$L, ...); COMMIT',
                pg_partition_root(c.oid)::text, z.what)
              WHEN c.relispartition THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', pg_partition_root(c.oid)::text, coalesce(o.mode, g.mode),
                coalesce(o.token_column, g.token_column), CASE WHEN o.relid IS NULL THEN g.resource ELSE o.resource END,
                CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END)
              WHEN EXISTS (SELECT 1 FROM pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace WHERE m.nspname = g.schema_name AND t.relname = g.table_name AND t.relkind IN ('r', 'p'))
              THEN format('SELECT fencing.register(%L, %L, %L, %L, %L)', format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource, g.issued_by)
              ELSE format('make or restore table %I.%I, and then SELECT fencing.register(%L, %L, %L, %L, %L), or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                          g.schema_name, g.table_name, format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource, g.issued_by, c.oid) END
    FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry o ON c.relispartition AND o.relid = pg_partition_root(c.oid),
    LATERAL (  -- compare fencing.register
      SELECT string_agg(k.what, ' and ' ORDER BY k.n) AS what
        FROM (VALUES (1, 'token_column'), (2, 'mode'), (3, 'resource'), (4, 'issued_by'), (5, 'seal')) k(n, what)
       WHERE c.relispartition
         AND 1 < (SELECT count(DISTINCT CASE k.what WHEN 'seal' THEN jsonb_build_array(to_jsonb(h) -> 'seal_resource', to_jsonb(h) -> 'seal_column') ELSE jsonb_build_array(to_jsonb(h) -> k.what) END)
                    FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid
                   WHERE (h.relid = o.relid OR y.relispartition AND pg_partition_root(y.oid) = pg_partition_root(c.oid))
                     AND (k.what <> 'seal' OR coalesce(to_jsonb(h) ->> 'seal_resource', to_jsonb(h) ->> 'seal_column') IS NOT NULL))) z
   WHERE c.relkind NOT IN ('r', 'p') OR c.relispartition;

  -- a child with a wall of its own keeps that, and is no part of its parent's
  WITH RECURSIVE family AS (
    SELECT g.relid::oid AS root, g.relid::oid AS oid FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid WHERE c.relkind IN ('r', 'p')
    UNION
    SELECT f.root, i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  present AS (
    SELECT f.root, f.oid, format('%I.%I', n.nspname, c.relname) AS name, format('%I.%I', rn.nspname, rc.relname) AS root_name, g.token_column, g.mode, g.resource,
           g.issued_by, g.wall_level, g.tombstones, c.relispartition,
           -- of the walls of several parents, as fencing.wall_apply has it
           CASE WHEN g.wall_level = 'off' OR f.oid = f.root OR c.relispartition THEN g.wall_level
                ELSE c_levels[max(array_position(c_levels, g.wall_level)) OVER (PARTITION BY f.oid)] END AS level,
           -- by the wall of a parent, as its own would be
           g.wall_level = 'off' AND bool_or(g.wall_level <> 'off') OVER (PARTITION BY f.oid, g.token_column, g.mode, g.resource) AS is_covered,
           -- a child of several walled parents, whose walls can't be one
           f.oid <> f.root AND NOT c.relispartition AND g.wall_level <> 'off' AND (min(k.wall) OVER walls <> max(k.wall) OVER walls OR min(k.seal) OVER walls IS DISTINCT FROM max(k.seal) OVER walls) AS is_torn,
           -- where the triggers are to leave what a subscription's worker writes alone: D701
           bool_or(EXISTS (SELECT 1 FROM pg_subscription_rel l WHERE l.srrelid = f.oid)) OVER (PARTITION BY f.root) AS is_subscribed,
           -- D102, D103 and D105 have it as an error, and registering it changes what else there is to say; of a wall of its own all is said
           g.wall_level = 'off' AND x.relid IS NOT NULL AND (x.relid::oid = ANY (v_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = x.relid AND y.relkind IN ('r', 'p')))
           OR g.wall_level = 'off' AND EXISTS (  -- a partition has the name, and its root takes it over
             SELECT FROM pg_partition_tree(rc.oid) p JOIN pg_class z ON z.oid = p.relid AND z.oid <> rc.oid JOIN pg_namespace zn ON zn.oid = z.relnamespace
               JOIN fencing.registry h ON h.schema_name = zn.nspname AND h.table_name = z.relname AND h.relid <> z.oid
              WHERE h.relid::oid = ANY (v_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = h.relid))
           OR rc.relispartition OR f.root IN (
             SELECT pg_partition_root(y.oid) FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid WHERE y.relispartition) AS is_unsettled
      FROM family f JOIN fencing.registry g ON g.relid = f.root
      JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_class rc ON rc.oid = f.root JOIN pg_namespace rn ON rn.oid = rc.relnamespace
      LEFT JOIN fencing.registry x ON x.schema_name = rn.nspname AND x.table_name = rc.relname AND x.relid <> rc.oid,
      LATERAL (SELECT jsonb_build_array(g.token_column, g.mode, g.resource, g.issued_by)::text AS wall,  -- seals come with a later version
                      CASE WHEN coalesce(to_jsonb(g) ->> 'seal_resource', to_jsonb(g) ->> 'seal_column') IS NOT NULL
                           THEN jsonb_build_array(to_jsonb(g) -> 'seal_resource', to_jsonb(g) -> 'seal_column')::text END AS seal) k
    WINDOW walls AS (PARTITION BY f.oid, g.wall_level <> 'off'))
  SELECT coalesce(jsonb_agg(jsonb_build_object(
           'root', p.root, 'oid', p.oid, 'name', p.name, 'root_name', p.root_name, 'col', p.token_column, 'mode', p.mode, 'resource', p.resource,
           'issued', p.issued_by::oid, 'wall', p.level, 'root_wall', p.wall_level, 'tombs', p.tombstones, 'part', p.relispartition, 'covered', p.is_covered, 'torn', p.is_torn, 'unsettled', p.is_unsettled,
           'subscribed', p.is_subscribed)), '[]')
    INTO v_family FROM present p;

  RETURN QUERY
  SELECT 'error', x.code, x.name, format('the token column %I %s', x.col, x.what), x.so,
         CASE WHEN x.code LIKE 'D106%' THEN format('ALTER TABLE %1$s RENAME COLUMN ... TO %2$I; if it was dropped, which forgets the tokens: ALTER TABLE %1$s ADD COLUMN %2$I bigint NOT NULL DEFAULT ..., with the newest token that was given out%3$s, and then ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0',
             x.root_name, x.col, (SELECT format(' (SELECT last_value FROM %I.%I)', n.nspname, q.relname) FROM pg_class q JOIN pg_namespace n ON n.oid = q.relnamespace WHERE q.oid = x.issued))
              WHEN x.code LIKE 'D107%' THEN y.fix
              ELSE format('ALTER TABLE %s ALTER COLUMN %I %s', x.name, x.col, x.fix) END
    FROM (SELECT f.*, CASE WHEN a.attname IS NULL THEN 'D106 column-missing' WHEN a.atttypid <> 'int8'::regtype THEN 'D108 column-type'
                           WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'D109 column-generated'
                           WHEN NOT a.attnotnull THEN 'D107 column-nullable' ELSE 'D110 column-default' END AS code,
                 CASE WHEN a.attname IS NULL THEN 'is missing' WHEN a.atttypid <> 'int8'::regtype THEN format('is %s, not bigint', format_type(a.atttypid,
                     a.atttypmod))
                      WHEN a.attidentity <> '' THEN 'is an identity column' WHEN a.attgenerated <> '' THEN 'is a generated column'
                      WHEN NOT a.attnotnull THEN 'may be null' ELSE format('has the default %s', pg_get_expr(d.adbin, d.adrelid)) END AS what,
                 CASE WHEN a.attname IS NULL THEN 'every guarded write fails' WHEN a.atttypid <> 'int8'::regtype THEN 'tokens are not compared exactly'
                      WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'the table sets the token, not the write'
                      WHEN NOT a.attnotnull THEN 'a null is neither older nor newer than a token' ELSE 'a row that was written without a token has one' END AS so,
                 CASE WHEN a.atttypid <> 'int8'::regtype THEN 'TYPE bigint' WHEN a.attidentity <> '' THEN 'DROP IDENTITY'
                     WHEN a.attgenerated <> '' THEN 'DROP EXPRESSION'
                      WHEN NOT a.attnotnull THEN 'SET NOT NULL' ELSE 'SET DEFAULT 0' END AS fix
            FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, root_name text, root_wall text, col name, issued oid, unsettled boolean)
            LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
           WHERE a.attname IS NULL OR a.atttypid <> 'int8'::regtype OR a.attidentity <> '' OR a.attgenerated <> '' OR NOT a.attnotnull AND NOT f.unsettled
              OR pg_get_expr(d.adbin, d.adrelid) NOT IN ('0', '''0''::bigint', '(0)::bigint')) x,
    -- the wall refuses the UPDATE, and to be put up while any of the tables may have nulls
    LATERAL (SELECT format(CASE x.root_wall WHEN 'off' THEN '%1$s' ELSE 'BEGIN; SELECT fencing.wall(%2$L, ''off''); %1$s; SELECT fencing.wall(%2$L, %3$L); COMMIT' END,
                           string_agg(format('UPDATE ONLY %s SET %I = 0 WHERE %2$I IS NULL', f.name, f.col), '; ')
                           || '; ' || string_agg(format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.col), '; '), x.root_name, x.root_wall) AS fix
               FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, col name)
               JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped AND NOT a.attnotnull
              WHERE x.code LIKE 'D107%' AND f.root = x.root) y;

  RETURN QUERY
  SELECT 'warning', 'D111 unlogged', f.name, 'the table is unlogged', 'a crash empties it, and with the rows their tokens are gone',
         format('ALTER TABLE %s SET LOGGED', f.name)
    FROM jsonb_to_recordset(v_family) AS f(oid oid, name text) JOIN pg_class c ON c.oid = f.oid WHERE c.relpersistence = 'u';

  IF has_table_privilege('fencing.generation', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D112 generation-missing', 'fencing.generation', 'its row is missing', 'the driver finds nothing registered, and nothing can be registered',
           -- above whatever drivers have seen
           format('INSERT INTO fencing.generation (value) VALUES (%s)', extract(epoch FROM now())::bigint)
     WHERE NOT EXISTS (SELECT 1 FROM fencing.generation);
  END IF;

  -- The wall: the triggers that the level asks for, and no others.
  RETURN QUERY
  SELECT CASE f.wall WHEN 'off' THEN 'warning' ELSE 'info' END,
         CASE f.wall WHEN 'off' THEN 'D201 wall-off' WHEN 'report' THEN 'D206 wall-report' ELSE 'D207 lease-unattested' END, f.name,
         CASE f.wall WHEN 'off' THEN 'the table has no wall' WHEN 'report' THEN 'the wall only reports'
                     ELSE format('the wall takes SET %I = %1$I for a write under the token of the row', f.col) END,
         CASE f.wall WHEN 'off' THEN 'what does not go through the driver writes it without any check'
                     WHEN 'report' THEN 'stale and unguarded writes are in the server''s log, and in the table'
                     ELSE 'an UPDATE that copies the token needs none of its own' END,
         format('SELECT fencing.wall(%L, %L)', f.name, CASE f.wall WHEN 'enforce' THEN 'attested' ELSE 'enforce' END)
    FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, col name, mode text, wall text, covered boolean, unsettled boolean)
   WHERE f.root = f.oid AND (f.wall IN ('off', 'report') OR f.wall = 'enforce' AND f.mode = 'lease') AND NOT f.covered AND NOT f.unsettled;

  RETURN QUERY
  WITH kind(name, suffix, event, tomb, cond) AS (VALUES
    ('!fencing_mark', 'mark', 'mark', false, ''), ('!fencing_mark_insert', 'mark_insert', 'BEFORE INSERT', false, ''), ('~fencing_update', 'update', 'BEFORE UPDATE', false, ''),
    ('~fencing_insert', 'insert', 'BEFORE INSERT', false, ''), ('~fencing_delete', 'delete', 'BEFORE DELETE', false, ''),
    ('~fencing_truncate', 'truncate', 'BEFORE TRUNCATE', false, ''), ('~fencing_late', 'late', 'AFTER UPDATE', false, 'late'),
    ('~fencing_late_insert', 'late', 'AFTER INSERT', false, 'WHEN (((new.%I <= 0) OR ' || c_changed || ')) '), ('~fencing_bury', 'bury', 'BEFORE DELETE', true, ''),
    ('~fencing_vacate', 'bury', 'BEFORE UPDATE', true, 'vacate'), ('~fencing_tomb', 'check', 'AFTER INSERT', true, ''), ('~fencing_rekey1', 'bury', 'AFTER UPDATE', true, 'rekey'),
    ('~fencing_rekey2', 'check', 'AFTER UPDATE', true, 'rekey')),
  wanted AS (
    -- the names of the functions, as fencing.wall_functions and fencing.tombstone_functions build them
    SELECT f.*, k.name AS trg, k.suffix, k.tomb, f.issued IS NOT NULL AND q.seq IS NULL AS unbounded,  -- D301
           -- the trigger as the server writes it where it is as fencing made it; compare fencing.wall_apply and fencing.tombstone_apply
           format('CREATE TRIGGER %I %s ON %s FOR EACH %s %sEXECUTE FUNCTION fencing.', k.name,
                  CASE WHEN k.event <> 'mark' THEN k.event WHEN f.mode = 'strict' THEN 'BEFORE UPDATE' ELSE format('BEFORE UPDATE OF %I', f.col) END, f.name,
                  CASE k.suffix WHEN 'truncate' THEN 'STATEMENT' ELSE 'ROW' END,
                  CASE WHEN k.cond = 'vacate' AND y.generated THEN ''
                       WHEN k.cond IN ('rekey', 'vacate') THEN format(CASE WHEN y.changed LIKE '% OR %' THEN 'WHEN ((%s)) ' ELSE 'WHEN (%s) ' END, y.changed)
                       WHEN k.cond <> 'late' THEN format(k.cond, f.col)
                       WHEN f.mode = 'strict' THEN format('WHEN (((new.%I <= old.%1$I) OR ' || c_changed || ')) ', f.col)
                       WHEN f.wall = 'report' THEN format('WHEN ((new.%I < old.%1$I)) ', f.col)
                       ELSE format('WHEN (((new.%I < old.%1$I) OR ' || c_changed || ')) ', f.col) END) AS def,
           CASE WHEN k.tomb THEN 'tomb_' || left(md5(jsonb_build_array(f.col, f.mode, f.resource, q.seq, y.cols, y.types)::text), 16) || '_' || k.suffix
                ELSE 'wall_' || left(md5(jsonb_build_array(f.col, f.mode, f.resource, q.seq)::text), 16) || '_' || k.suffix
                     || CASE WHEN k.suffix IN ('update', 'insert') AND f.wall = 'attested' THEN '_attested' ELSE '' END END AS func
      FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, root_name text, col name, mode text, resource text, issued oid, wall text, root_wall text, tombs boolean, part boolean, torn boolean,
        unsettled boolean, subscribed boolean)
      LEFT JOIN LATERAL (SELECT format('%I.%I', n.nspname, c.relname) AS seq FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = f.issued AND c.relkind = 'S') q ON true
      LEFT JOIN LATERAL (SELECT bool_or(a.attgenerated <> '') AS generated, array_agg(a.attname ORDER BY u.ord) AS cols, array_agg(a.atttypid::regtype::text ORDER BY u.ord) AS types,
                                string_agg(format(CASE a.atttypid WHEN 'varchar'::regtype THEN '((old.%I)::text IS DISTINCT FROM (new.%1$I)::text)'
                                                                  ELSE '(old.%I IS DISTINCT FROM new.%1$I)' END, a.attname), ' OR ' ORDER BY u.ord) AS changed
                           FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY u(num, ord), pg_attribute a
                          WHERE i.indrelid = f.root AND i.indisprimary AND a.attrelid = f.root AND a.attnum = u.num AND u.ord <= i.indnkeyatts) y ON true, kind k
     WHERE f.wall <> 'off' AND (NOT k.tomb OR f.tombs AND (f.oid = f.root OR f.part))  -- D212 has the other children
       AND NOT f.torn AND NOT f.unsettled),  -- D213, and D102, D103 and D105
  seen AS (
    SELECT w.*, t.tgenabled, t.tgfoid, t.tgparentid, p.proowner <> c_owner AS foreign_owner, p.pronamespace = c_schema AND p.proname = w.func AS named, CASE
             WHEN t.oid IS NULL THEN 'D202 trigger-missing'
             -- which functions it is to run only a sequence says, and none is to be made without one
             WHEN p.pronamespace <> c_schema OR NOT w.unbounded AND p.proname <> w.func OR w.unbounded AND p.proname !~ CASE WHEN w.tomb THEN '^tomb_' ELSE '^wall_' END OR p.proowner <> c_owner OR l.lanname <> 'plpgsql' OR (p.proconfig IS NOT NULL) <> w.tomb
                  OR p.prosecdef <> (w.suffix NOT LIKE 'mark%') OR position(CASE WHEN w.suffix LIKE 'mark%' THEN 'pg_catalog.set_config(' ELSE 'PERFORM fencing.fail(' END IN p.prosrc) = 0 THEN 'D204 trigger-function'
             WHEN t.tgenabled <> 'A' AND NOT (w.subscribed AND t.tgenabled = 'O') THEN 'D203 trigger-disabled'
             WHEN NOT w.unbounded AND pg_get_triggerdef(t.oid) IS DISTINCT FROM w.def || format('%I(%L)', w.func, w.wall)
                  -- triggers follow a column that is renamed, and D106 says so
                  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = w.oid AND a.attname = w.col AND NOT a.attisdropped)
             THEN 'D205 trigger-changed' END AS code,
           -- of tombstones with the root's trigger the copies go, and never the tombstones
           CASE WHEN w.tomb THEN CASE WHEN t.tgparentid <> 0 THEN format('DROP TRIGGER IF EXISTS %I ON %s; ', w.trg, w.root_name) ELSE '' END
                ELSE format('SELECT fencing.wall(%L, ''off''); ', w.root_name) END AS off,
           CASE WHEN w.tomb THEN format('SELECT fencing.tombstones(%L)', w.root_name) ELSE format('SELECT fencing.wall(%L, %L)', w.root_name, w.root_wall) END AS again
      FROM wanted w LEFT JOIN pg_trigger t ON t.tgrelid = w.oid AND t.tgname = w.trg
      LEFT JOIN pg_proc p ON p.oid = t.tgfoid LEFT JOIN pg_language l ON l.oid = p.prolang)
  SELECT 'error', s.code, format('trigger %I on %s', s.trg, s.name),
         CASE left(s.code, 4) WHEN 'D202' THEN 'the wall''s trigger is missing'
              WHEN 'D203' THEN format('the wall''s trigger is %s', CASE s.tgenabled WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'enabled for replicas only'
                  ELSE 'not ENABLE ALWAYS' END)
              WHEN 'D204' THEN format('the wall''s trigger runs %s, %s', s.tgfoid::regprocedure,
                                      CASE WHEN s.foreign_owner THEN 'which is not the schema owner''s'
                                          ELSE 'which is not what fencing made for the table as it is' END)
              ELSE 'the wall''s trigger is not as fencing made it' END,
         CASE left(s.code, 4) WHEN 'D203' THEN CASE s.tgenabled WHEN 'O' THEN 'session_replication_role = replica passes it' ELSE 'nothing is checked by it' END
              WHEN 'D204' THEN 'what it checks, if anything, is for its owner to say' WHEN 'D205' THEN 'some writes pass unchecked'
              ELSE 'what it would check passes' END,
         CASE left(s.code, 4) WHEN 'D202' THEN s.again
              WHEN 'D203' THEN format(CASE WHEN s.subscribed THEN 'ALTER TABLE %s ENABLE TRIGGER %I' ELSE 'ALTER TABLE %s ENABLE ALWAYS TRIGGER %I' END, s.name, s.trg)
              -- A function or a trigger of the right name is taken for the right one, and tables share the functions.
              ELSE CASE
                WHEN s.code LIKE 'D204%' AND s.named AND s.foreign_owner THEN
                  format('ALTER FUNCTION %s OWNER TO %I', s.tgfoid::regprocedure, pg_get_userbyid(c_owner))
                WHEN s.code LIKE 'D204%' AND s.named THEN
                  format('BEGIN; DROP FUNCTION IF EXISTS %s CASCADE; SELECT %s FROM fencing.registry r JOIN pg_class c ON c.oid = r.relid WHERE r.wall_level <> ''off'' AND c.relkind IN (''r'', ''p'') AND NOT c.relispartition%s; COMMIT', s.tgfoid::regprocedure,
                         CASE WHEN s.tomb THEN 'fencing.tombstones(r.relid)' ELSE 'fencing.wall(r.relid, r.wall_level)' END, CASE WHEN s.tomb THEN ' AND r.tombstones' ELSE '' END)
                ELSE 'BEGIN; ' || s.off || CASE WHEN s.tgparentid = 0 THEN format('DROP TRIGGER IF EXISTS %I ON %s; ', s.trg, s.name) ELSE '' END
                     || s.again || '; COMMIT' END END
    FROM seen s WHERE s.code IS NOT NULL;

  RETURN QUERY
  SELECT 'warning', 'D208 tombstones-without-wall', f.name, 'tombstones are on and the wall is off', 'deletes carry no token that a tombstone could keep',
         format('SELECT fencing.wall(%L, ''enforce'')', f.name)
    FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, wall text, tombs boolean, unsettled boolean)
   WHERE f.root = f.oid AND f.wall = 'off' AND f.tombs AND NOT f.unsettled;

  RETURN QUERY
  SELECT 'error', 'D211 tombstones-deferrable', f.name, format('tombstones are on, and the primary key %I is deferrable', k.conname),
         'an INSERT does not wait for a DELETE in progress, and passes its tombstone',
         format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', f.name, k.conname,
                regexp_replace(pg_get_constraintdef(k.oid), ' DEFERRABLE( INITIALLY DEFERRED)?$', ''))
    FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, tombs boolean)
    JOIN pg_index i ON i.indrelid = f.oid AND i.indisprimary AND NOT i.indimmediate JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype = 'p'
   WHERE f.root = f.oid AND f.tombs;

  RETURN QUERY
  SELECT 'error', 'D212 tombstones-child', f.name, format('it inherits from %s, which has tombstones', f.root_name),
         'a key that was deleted from it can be inserted again by a stale holder', format('make %s a partitioned table, or ALTER TABLE %s NO INHERIT %1$s', f.root_name, f.name)
    FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, root_name text, wall text, tombs boolean, part boolean)
   WHERE f.oid <> f.root AND NOT f.part AND f.tombs AND f.wall <> 'off';

  RETURN QUERY
  SELECT 'error', 'D213 parents-differ', f.name, format('it inherits from %s, whose walls differ', string_agg(f.root_name, ' and ' ORDER BY f.root_name)),
         'it has the wall of one of them, and is written through the others unchecked',
         format('register them all with the same mode, token column, resource and sequence, and the same seal, or end all inheritances but one: ALTER TABLE %s NO INHERIT ...', f.name)
    FROM jsonb_to_recordset(v_family) AS f(oid oid, name text, root_name text, torn boolean) WHERE f.torn GROUP BY f.oid, f.name;

  -- Left of a wall is not a wall: what it was is for somebody to say. What has the name of a registered table is D102's or D105's.
  RETURN QUERY
  SELECT CASE WHEN g.relid IS NULL OR c.relispartition OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) THEN 'error' ELSE 'warning' END, 'D209 wall-left-over',
         c.oid::regclass::text, format('trigger %I of %s is on a table that has none', t.tgname, CASE left(p.proname, 4) WHEN 'tomb' THEN 'tombstones' ELSE 'a wall' END),
         CASE WHEN g.relid IS NULL THEN 'the triggers may be some of those of a wall only, and others be gone: older tokens can be written, and come back with the table'
              ELSE 'writes are refused that nothing protects' END,
         CASE WHEN g.wall_level <> 'off' THEN format('if deleted keys are to keep their tokens, SELECT fencing.tombstones(%L), or, if not, SELECT fencing.tombstones(%1$L, false)', c.oid::regclass::text)
              ELSE format('if it is to be protected, SELECT fencing.register(%L, ...) and SELECT fencing.wall(%1$L), or, if not, SELECT fencing.wall(%1$L, ''off'')', c.oid::regclass::text) END
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry g ON g.relid = c.oid
    LEFT JOIN (SELECT f.oid, bool_or(f.tombs AND (f.oid = f.root OR f.part)) AS has_tombs
                 FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, wall text, tombs boolean, part boolean) WHERE f.wall <> 'off' GROUP BY f.oid) w ON w.oid = c.oid
   WHERE p.pronamespace = c_schema AND p.proname ~ '^(wall|tomb)_[0-9a-f]{16}_' AND t.tgparentid = 0
     AND CASE left(p.proname, 4) WHEN 'wall' THEN w.oid IS NULL ELSE w.has_tombs IS NOT TRUE END
     AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.schema_name = n.nspname AND x.table_name = c.relname AND x.relid <> c.oid);

  RETURN QUERY
  SELECT 'error', 'D210 registry-trigger', format('trigger %I on fencing.registry', k.name),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS' ELSE 'it runs another function' END,
         CASE WHEN k.name IN ('changed', 'truncated') THEN 'drivers and caches don''t hear of changes' ELSE 'the wall doesn''t follow the registry' END,
         CASE WHEN t.tgfoid = p.oid THEN '' ELSE format('CREATE OR REPLACE TRIGGER %I AFTER %s ON fencing.registry FOR EACH %s EXECUTE FUNCTION fencing.%I(); ',
             k.name, k.event, k.for_each, k.func) END
         || format('ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER %I', k.name)
    FROM (VALUES ('changed', 'INSERT OR UPDATE OR DELETE', 'ROW', 'registry_changed'), ('truncated', 'TRUNCATE', 'STATEMENT', 'registry_changed'),
                 ('wall', 'UPDATE OR DELETE', 'ROW', 'wall_changed'), ('tombstones', 'UPDATE OR DELETE', 'ROW', 'tombstones_changed')) k(name, event, for_each, func)
    LEFT JOIN pg_trigger t ON t.tgrelid = 'fencing.registry'::regclass AND t.tgname = k.name
    LEFT JOIN pg_proc p ON p.pronamespace = c_schema AND p.proname = k.func
   WHERE t.oid IS NULL OR t.tgenabled <> 'A' OR t.tgfoid IS DISTINCT FROM p.oid;

  -- what keeps the driver's own connections from what they rest on
  RETURN QUERY
  SELECT 'error', 'D230 driver-trigger', format('trigger refuse_driver on fencing.%I', c.relname),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS' ELSE 'it is not as fencing made it' END,
         'a statement through the driver that reaches the table can take the protection away',
         CASE WHEN pg_get_triggerdef(t.oid) = 'CREATE ' || k.def THEN '' ELSE 'CREATE OR REPLACE ' || k.def || '; ' END
         || format('ALTER TABLE fencing.%I ENABLE ALWAYS TRIGGER refuse_driver', c.relname)
    FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = 'refuse_driver',
    LATERAL (SELECT format('TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.%I FOR EACH STATEMENT '
                           'WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()', c.relname) AS def) k
   WHERE c.relnamespace = c_schema AND c.relname IN ('registry', 'generation', 'incarnation', 'tombstone', 'repairs', 'lease', 'epoch')
     AND (t.oid IS NULL OR t.tgenabled <> 'A' OR pg_get_triggerdef(t.oid) <> 'CREATE ' || k.def);

  -- what is in such a table is taken for what is in its parent, and the triggers of that don't see it
  RETURN QUERY
  SELECT 'error', 'D231 schema-table-inherited', format('fencing.%I', c.relname), format('%s inherits from it', i.inhrelid::regclass),
         'its rows count for those of the schema''s table, and nothing keeps the driver''s connections, or who may write it, from them',
         format('ALTER TABLE %s NO INHERIT fencing.%I', i.inhrelid::regclass, c.relname)
    FROM pg_class c JOIN pg_inherits i ON i.inhparent = c.oid
   WHERE c.relnamespace = c_schema AND c.relkind = 'r';

  -- Sequences: each that bounds tokens.
  SELECT array_agg(DISTINCT s.oid) INTO v_seqs
    FROM (SELECT c_epoch AS oid WHERE c_epoch IS NOT NULL UNION SELECT g.issued_by::oid FROM fencing.registry g WHERE g.issued_by IS NOT NULL) s;

  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', 'sequence fencing.write_epoch', 'it is gone', 'no token can be drawn, and writes to tables with a wall fail',
         -- the first draw from another sequence jumps above all that was given out
         format('BEGIN; CREATE SEQUENCE fencing.write_epoch AS bigint MINVALUE 1 NO CYCLE CACHE 1; ALTER SEQUENCE fencing.write_epoch OWNER TO %I; '
                'ALTER TABLE fencing.registry ALTER COLUMN issued_by SET DEFAULT ''fencing.write_epoch''; SELECT fencing.next_token(); COMMIT', pg_get_userbyid(c_owner))
         -- who reads the registry read the sequence, too
         || coalesce((SELECT format('; GRANT SELECT ON SEQUENCE fencing.write_epoch TO %s', string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, ', '))
                        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass('fencing.registry') AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner HAVING count(*) > 0), '')
   WHERE c_epoch IS NULL;

  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', format('%I.%I', g.schema_name, g.table_name),
         format('the sequence that bounds its tokens, %s, is gone', g.issued_by::oid),
         CASE g.wall_level WHEN 'off' THEN 'the wall can''t be put on' ELSE 'every write is refused' END,
         format('SELECT fencing.register(%L, %L, %L, %L)', format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource)
    FROM fencing.registry g WHERE g.issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = g.issued_by AND c.relkind = 'S');

  RETURN QUERY
  SELECT x.severity, x.code, format('sequence %I.%I', n.nspname, c.relname), x.problem, x.consequence, replace(x.remedy, '%s', format('%I.%I', n.nspname, c.relname))
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT 'error', 'D302 sequence-cache', format('it has CACHE %s', s.seqcache),
          'sessions keep tokens back and use them later, when larger ones have been given out',
             'ALTER SEQUENCE %s CACHE 1' WHERE s.seqcache > 1
      UNION ALL SELECT 'error', 'D303 sequence-cycle', 'it starts again at its end', 'tokens are given out a second time', 'ALTER SEQUENCE %s NO CYCLE'
          WHERE s.seqcycle
      UNION ALL SELECT 'warning', 'D304 sequence-owned', format('it belongs to a column of %s', d.refobjid::regclass), 'it is dropped with that column',
             'ALTER SEQUENCE %s OWNED BY NONE'
        FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
            AND d.deptype IN ('a', 'i')
      UNION ALL SELECT 'error', 'D306 sequence-direction', format('it counts by %s from %s on', s.seqincrement, s.seqmin), 'tokens must be positive and rise',
             'ALTER SEQUENCE %s INCREMENT BY 1 MINVALUE 1' WHERE s.seqincrement < 1 OR s.seqmin < 1
      UNION ALL SELECT 'warning', 'D308 sequence-small', format('it ends at %s', s.seqmax), 'no token can be drawn after that, and nothing written',
             'ALTER SEQUENCE %s AS bigint NO MAXVALUE' WHERE s.seqmax < 9223372036854775807
      UNION ALL SELECT 'error', 'D309 sequence-unlogged', 'it is unlogged', 'a crash starts it again, and tokens are given out a second time',
          'ALTER SEQUENCE %s SET LOGGED'
       WHERE c.relpersistence = 'u'
      UNION ALL SELECT 'warning', 'D314 sequence-near-end', format('it is at %s', pg_sequence_last_value(c.oid)),
             'there is no room for the jump of tokens after a restore, a promotion or a copy of the database: none can be drawn then',
             'stop all writers; SELECT pg_catalog.setval(''%s'', ...), to a value above every token that was given out; fencing.repair for rows with a larger one'
       WHERE CASE WHEN c.oid = c_epoch AND has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN pg_sequence_last_value(c.oid) >= 9223372032559808512 END
      UNION ALL SELECT 'error', 'D310 sequence-unreadable', format('role %I, which owns the wall''s functions, can''t read it', pg_get_userbyid(c_owner)),
             'every write to a table with a wall is refused', format('GRANT SELECT ON SEQUENCE %%s TO %I', pg_get_userbyid(c_owner))
       WHERE NOT has_sequence_privilege(c_owner, c.oid, 'SELECT')
    ) x(severity, code, problem, consequence, remedy)
   WHERE s.seqrelid = ANY (v_seqs);

  -- a lock service draws from a sequence of its own with nextval
  RETURN QUERY
  SELECT CASE WHEN bool_or(a.privilege_type = 'UPDATE') OR c.oid = c_epoch THEN 'error' ELSE 'warning' END, 'D305 sequence-rights', format('sequence %I.%I',
      n.nspname, c.relname),
         format('role %s has %s on it', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
             string_agg(DISTINCT a.privilege_type, ' and ')),
         CASE WHEN bool_or(a.privilege_type = 'UPDATE') THEN 'setval issues any token, or gives old ones out again'
             ELSE 'nextval issues tokens that a crash gives out again' END,
         format('REVOKE USAGE, UPDATE ON SEQUENCE %I.%I FROM %s', n.nspname, c.relname, CASE a.grantee WHEN 0 THEN 'PUBLIC'
             ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
   WHERE c.oid = ANY (v_seqs) AND a.grantee <> c.relowner AND a.privilege_type IN ('USAGE', 'UPDATE')
   GROUP BY c.oid, n.nspname, c.relname, a.grantee;

  -- servers run by others may keep them back
  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', 'function fencing.next_token()', format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner),
      f.oid::regprocedure),
         'no token can be drawn', format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['fencing.incarnation_now()',  -- and PostgreSQL 17's has a fourth argument
           'pg_logical_emit_message(boolean, text, text)', 'pg_logical_emit_message(boolean, text, text, boolean)']) u(name),
         LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.next_token()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', format('function %s', p.oid::regprocedure), format('role %I, which owns it, may not use schema fencing', pg_get_userbyid(p.proowner)),
         'it fails whoever calls it', format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, pg_get_userbyid(c_owner))
    FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proname IN ('next_token', 'incarnation_now', 'take', 'renew', 'release')
     AND p.proowner <> c_owner AND NOT has_schema_privilege(p.proowner, c_schema, 'USAGE');

  -- what incarnation_now() may not run, then what it may run and doesn't work here
  RETURN QUERY
  SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()', format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner), f.oid::regprocedure),
         CASE WHEN has_function_privilege(p.proowner, to_regprocedure('pg_postmaster_start_time()')::oid, 'EXECUTE') THEN c_instead ELSE c_nothing END,
         format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']) u(name), LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  -- it runs as its owner: without rights there, or without the sequence, which are other findings, it fails
  IF c_epoch IS NOT NULL AND NOT pg_is_in_recovery()
     AND EXISTS (SELECT FROM pg_proc p WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND has_function_privilege(p.oid, 'EXECUTE')
                    AND has_schema_privilege(p.proowner, c_schema, 'USAGE')) THEN
    v_now := fencing.incarnation_now();
    RETURN QUERY
    SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()', format('%s gives an error on this server', u.name),
           CASE WHEN 'pg_postmaster_start_time()' = ANY (v_now.unread) THEN c_nothing ELSE c_instead END, format('look at the error of SELECT %s', u.name)
      FROM pg_proc p, unnest(v_now.unread) u(name)
     WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND u.name <> 'pg_postmaster_start_time()'
       AND NOT EXISTS (SELECT 1 FROM regexp_matches(u.name, 'pg_[a-z_]+', 'g') m(names), pg_proc f
                        WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.proname = m.names[1] AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE'));
    IF has_table_privilege('fencing.incarnation', 'SELECT') THEN
      RETURN QUERY
      SELECT 'info', 'D312 incarnation-other', 'sequence fencing.write_epoch', 'since tokens were last drawn the server, the database or the sequence has become another, as by a restore',
             'the next token is far above all before', 'SELECT fencing.next_token()'
       WHERE NOT EXISTS (
         SELECT FROM fencing.incarnation i WHERE i.tli = v_now.tli AND i.sysid = v_now.sysid AND i.dbid = v_now.dbid AND i.seqid = v_now.seqid);
    END IF;
  END IF;

  FOR r IN
    SELECT f.*, CASE WHEN c.oid IS NOT NULL THEN format('%I.%I', n.nspname, c.relname) END AS seq
      FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, col name, wall text, issued oid, unsettled boolean)
      LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = f.issued AND c.relkind = 'S'
      JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.atttypid = 'int8'::regtype AND NOT a.attisdropped
     WHERE f.root = f.oid AND has_column_privilege(f.oid, a.attnum, 'SELECT') AND has_schema_privilege((SELECT relnamespace FROM pg_class t
         WHERE t.oid = f.oid), 'USAGE')
       AND (f.issued IS NULL OR c.oid IS NOT NULL AND has_sequence_privilege(c.oid, 'SELECT, USAGE'))
       AND (scan OR EXISTS (SELECT 1 FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am m ON m.oid = ic.relam
                             WHERE i.indrelid = f.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree')
                AND NOT EXISTS (SELECT 1 FROM pg_inherits h JOIN pg_class hc ON hc.oid = h.inhrelid WHERE h.inhparent = f.oid AND NOT hc.relispartition))
  LOOP
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I DESC NULLS LAST LIMIT 1', r.col, r.name) INTO v_max;
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I NULLS LAST LIMIT 1', r.col, r.name) INTO v_min;
    IF v_min < 0 AND NOT r.unsettled THEN
      RETURN QUERY SELECT 'warning', 'D113 token-negative', r.name, format('a row has token %s, which none ever is', v_min),
        'it was written before the table was registered, or past the wall; the row is held for one in the middle of a write',
        format(CASE r.wall WHEN 'off' THEN '%1$s' ELSE 'BEGIN; SELECT fencing.wall(%2$L, ''off''); %1$s; SELECT fencing.wall(%2$L, %3$L); COMMIT' END,
               format('UPDATE %s SET %I = 0 WHERE %2$I < 0', r.name, r.col), r.name, r.wall);
    END IF;
    CONTINUE WHEN r.seq IS NULL;
    v_last := coalesce(pg_sequence_last_value(r.issued), 0);  -- after the rows: it only rises
    IF v_max > v_last THEN
      RETURN QUERY SELECT 'error', 'D307 sequence-behind', r.name, format('a row has token %s, and sequence %s is at %s', v_max, r.seq, v_last),
        'nobody can write that row: it was written past the wall, or the sequence was put back',
        format('SELECT fencing.repair(%L, ''{"key column": ...}'', 0, ''why'') if the token was forged, else SELECT pg_catalog.setval(%L, %s)', r.name, r.seq,
            v_max);
    END IF;
  END LOOP;

  -- whoever owns a schema can drop what is in it; pg_database_owner stands for the owner of the database
  SELECT jsonb_agg(o) INTO v_own
    FROM (SELECT CASE n.nspowner WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END AS owner,
                 format('schema %I, which %s is in', n.nspname, min(c.oid::regclass::text)) AS what, format('SCHEMA %I', n.nspname) AS name
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, pg_database d
           WHERE d.oid = c_db AND n.oid <> c_schema AND (c.oid = ANY (v_seqs) OR c.oid IN (SELECT f.oid FROM jsonb_to_recordset(v_family) AS f(oid oid)))
           GROUP BY n.oid, n.nspname, n.nspowner, d.datdba
          UNION ALL SELECT d.datdba, format('database %I', d.datname), format('DATABASE %I', d.datname) FROM pg_database d WHERE d.oid = c_db) o;

  -- Roles. Those named by the caller, or that can log in, or be taken by one that can, and write a protected table. One that owns
  -- what is protected may be there to deploy, which is only for the caller to rule out.
  SELECT coalesce(jsonb_agg(jsonb_build_object('oid', a.oid, 'name', a.rolname,
           -- those that it is, or can take by SET ROLE, whether it inherits their rights or not; D414 has the superusers
           'takes', ARRAY(SELECT m.oid FROM pg_roles m WHERE pg_has_role(a.oid, m.oid, 'MEMBER') AND NOT m.rolsuper ORDER BY m.oid), 'sev', CASE WHEN roles IS NULL AND (
             pg_has_role(a.oid, c_owner, 'MEMBER')
             OR EXISTS (SELECT 1 FROM jsonb_to_recordset(v_own) AS o(owner oid) WHERE pg_has_role(a.oid, o.owner, 'MEMBER'))
             OR EXISTS (SELECT 1 FROM jsonb_to_recordset(v_family) AS f(oid oid) JOIN pg_class c ON c.oid = f.oid WHERE pg_has_role(a.oid, c.relowner, 'MEMBER')))
           THEN 'warning' ELSE 'error' END)), '[]') INTO v_apps
    FROM pg_roles a
   WHERE NOT a.rolsuper AND CASE WHEN roles IS NOT NULL THEN a.rolname = ANY (roles)
     ELSE (a.rolcanlogin OR a.rolname !~ '^pg_' AND EXISTS (SELECT 1 FROM pg_roles l WHERE l.rolcanlogin AND NOT l.rolsuper
             AND pg_has_role(l.oid, a.oid, 'MEMBER') AND NOT pg_has_role(l.oid, a.oid, 'USAGE')))
      AND EXISTS (SELECT 1 FROM jsonb_to_recordset(v_family) AS f(oid oid), pg_roles m WHERE pg_has_role(a.oid, m.oid, 'MEMBER') AND NOT m.rolsuper
                   AND (has_table_privilege(m.oid, f.oid, 'INSERT, UPDATE, DELETE') OR has_any_column_privilege(m.oid, f.oid, 'INSERT, UPDATE'))) END;

  RETURN QUERY
  SELECT 'warning', 'D412 role-missing', format('role %I', x.name), 'there is no such role', 'nothing was looked at for it',
      'name the roles that the application connects as'
    FROM unnest(roles) AS x(name) WHERE NOT EXISTS (SELECT 1 FROM pg_roles a WHERE a.rolname = x.name);

  RETURN QUERY
  SELECT CASE WHEN roles IS NULL THEN 'info' ELSE 'error' END, 'D411 superuser', format('role %I', a.rolname),
      CASE WHEN a.rolcanlogin THEN 'it can log in, and is a superuser' ELSE 'it is a superuser' END,
      'it can take the wall down: it is for administrators, not for an application',
         -- not NOSUPERUSER: it may be the only one
         CASE WHEN roles IS NULL THEN 'name the role that the application connects as, as in SELECT * FROM fencing.doctor(roles => ''{app}'') or --role app, and only that is judged'
              ELSE 'connect the application as another role, which is no superuser' END
    FROM pg_roles a WHERE a.rolsuper AND CASE WHEN roles IS NULL THEN a.rolcanlogin ELSE a.rolname = ANY (roles) END;

  RETURN QUERY
  WITH acl(obj, object, privilege, grantee) AS (
    SELECT c.oid, format('TABLE %s', c.oid::regclass), x.privilege_type, x.grantee FROM pg_class c, aclexplode(c.relacl) x
     WHERE c.relnamespace = c_schema AND c.relkind IN ('r', 'p', 'v') OR c.oid IN (SELECT f.oid FROM jsonb_to_recordset(v_family) AS f(oid oid))
    UNION SELECT a.attrelid, format('TABLE %s', a.attrelid::regclass), x.privilege_type, x.grantee
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) x WHERE c.relnamespace = c_schema
    UNION SELECT n.oid, 'SCHEMA fencing', x.privilege_type, x.grantee FROM pg_namespace n, aclexplode(n.nspacl) x WHERE n.oid = c_schema
    UNION SELECT p.oid, format('FUNCTION %s', p.oid::regprocedure), x.privilege_type, x.grantee
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x WHERE p.pronamespace = c_schema
    UNION SELECT a.oid, 'PARAMETER session_replication_role', x.privilege_type, x.grantee
      FROM pg_parameter_acl a, aclexplode(a.paracl) x WHERE a.parname = 'session_replication_role')
  SELECT CASE WHEN x.mild THEN 'warning' ELSE a.sev END, x.code, format('role %I', a.name), x.problem, x.consequence, coalesce(x.remedy, (
           -- the rights may be PUBLIC's, or another role's that it is a member of
           SELECT string_agg(format('REVOKE %s ON %s FROM %s', e.privileges, e.object, CASE e.grantee WHEN 0 THEN 'PUBLIC'
               ELSE quote_ident(pg_get_userbyid(e.grantee)) END), '; ')
             FROM (SELECT e.object, e.grantee, string_agg(e.privilege, ', ' ORDER BY e.privilege) AS privileges FROM acl e
                    WHERE e.obj = ANY (x.objs) AND e.privilege = ANY (x.privileges) AND (e.grantee = 0 OR pg_has_role(a.oid, e.grantee, 'MEMBER'))
                    GROUP BY e.object, e.grantee) e),
           format('REVOKE pg_write_all_data FROM %I, or from the role that it has this through', a.name))
    FROM jsonb_to_recordset(v_apps) AS a(oid oid, name name, sev text, takes oid[]),
    LATERAL (
      -- what it owns, or a role owns that it is a member of
      SELECT CASE WHEN o.owner = a.oid THEN CASE o.kind WHEN 't' THEN 'D401 role-owns-table' WHEN 'w' THEN 'D413 role-owns-around'
                 ELSE 'D402 role-owns-schema' END ELSE 'D403 role-in-owner' END AS code,
             CASE WHEN o.owner = a.oid THEN format('it owns %s', o.what) ELSE format('it is a member of %I, which owns %s', pg_get_userbyid(o.owner),
                 o.what) END AS problem,
             CASE o.kind WHEN 'w' THEN 'whoever logs in as it can drop what is in it, and make tables without a wall in its place'
                         ELSE 'whoever logs in as it can drop the triggers' END AS consequence,
             CASE WHEN o.owner = a.oid THEN format(CASE o.kind WHEN 't' THEN 'ALTER TABLE %s OWNER TO ...' WHEN 's' THEN 'ALTER SCHEMA %s OWNER TO ...'
                 ELSE 'ALTER %s OWNER TO ...' END, o.name)
                  ELSE format('REVOKE %I FROM %I', pg_get_userbyid(o.owner), a.name) END || ', or connect the application as another role' AS remedy,
             NULL::oid[] AS objs, NULL::text[] AS privileges, false AS mild
        FROM (SELECT DISTINCT c.relowner, 't', format('table %s', f.name), f.name FROM jsonb_to_recordset(v_family) AS f(oid oid, name text)
            JOIN pg_class c ON c.oid = f.oid
              UNION ALL SELECT c_owner, 's', 'schema fencing', 'fencing'
              UNION ALL SELECT w.owner, 'w', w.what, w.name FROM jsonb_to_recordset(v_own) AS w(owner oid, what text, name text)
              UNION ALL SELECT DISTINCT c.relowner, 'o', format('%s %s', CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, c.oid::regclass),
                               format('%s %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
                          FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND (c.relnamespace = c_schema AND c.relowner <> c_owner
                              OR c.oid = ANY (v_seqs) AND c.relnamespace <> c_schema)
              UNION ALL SELECT DISTINCT p.proowner, 'o', format('function %s', p.oid::regprocedure), format('FUNCTION %s', p.oid::regprocedure)
                          FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proowner <> c_owner) o(owner, kind, what, name)
       WHERE pg_has_role(a.oid, o.owner, 'MEMBER')
      UNION ALL
      SELECT 'D404 role-table-rights', format('it has %s on %s', array_to_string(v.privileges, ', '), v.name),
             CASE WHEN 'TRIGGER' = ANY (v.privileges) THEN 'it can put a trigger there that changes what is written, after the check'
                  WHEN 'TRUNCATE' <> ALL (v.privileges) THEN 'its foreign keys can stop rows from being deleted'
                  WHEN v.wall = 'off' THEN 'it can empty the table, tokens included' ELSE 'only the wall''s trigger stops it from emptying the table' END,
             NULL, ARRAY[v.oid], v.privileges, 'TRIGGER' <> ALL (v.privileges) AND ('TRUNCATE' <> ALL (v.privileges) OR v.wall <> 'off')
        FROM (SELECT f.oid, f.name, f.wall, array_agg(y.privilege ORDER BY y.privilege) AS privileges
                FROM jsonb_to_recordset(v_family) AS f(oid oid, name text, wall text) JOIN pg_class c ON c.oid = f.oid, (VALUES ('TRIGGER'), ('TRUNCATE'),
                    ('REFERENCES')) y(privilege)
               WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_table_privilege(m, f.oid, y.privilege)) AND NOT pg_has_role(a.oid, c.relowner, 'MEMBER')
               GROUP BY f.oid, f.name, f.wall) v
      UNION ALL
      SELECT 'D405 role-create', 'it may create objects in schema fencing', 'it can put something of its own in the place of what the wall calls',
             NULL, ARRAY[c_schema], ARRAY['CREATE'], false
       WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_schema_privilege(m, c_schema, 'CREATE')) AND NOT pg_has_role(a.oid, c_owner, 'MEMBER')
      UNION ALL
      SELECT 'D406 role-writes-registry', format('it may write %s', c.oid::regclass), 'it can let go of any table, or move what tokens rest on',
             NULL, ARRAY[c.oid], ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'], false
        FROM pg_class c WHERE c.relnamespace = c_schema AND c.relkind IN ('r', 'p', 'v') AND NOT pg_has_role(a.oid, c.relowner, 'MEMBER')
         AND EXISTS (SELECT FROM unnest(a.takes) m
                      WHERE has_table_privilege(m, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER') OR has_any_column_privilege(m, c.oid, 'INSERT, UPDATE'))
      UNION ALL
      SELECT 'D407 role-executes', format('it may run %s', string_agg(DISTINCT CASE p.prorettype WHEN 'trigger'::regtype THEN 'trigger functions'
          ELSE format('fencing.%I', p.proname) END, ', ')), 'it can let go of tables, given the rights on the registry, or put the wall''s triggers to other uses',
             NULL, array_agg(p.oid), ARRAY['EXECUTE'], false
        FROM pg_proc p WHERE p.pronamespace = c_schema AND NOT pg_has_role(a.oid, p.proowner, 'MEMBER') AND EXISTS (SELECT FROM unnest(a.takes) m WHERE has_function_privilege(m, p.oid, 'EXECUTE'))
         AND (p.proname ~ '^(wall.*|register|unregister|driver_level|driver_rewrite|claim_name|(prune_)?tombstone.*|repair.*|(un)?seal.*)$' OR p.prorettype = 'trigger'::regtype)
      HAVING count(*) > 0
      UNION ALL
      SELECT 'D408 role-replication', 'it may set session_replication_role', 'foreign keys and all triggers but the wall''s don''t hold for it',
             NULL, ARRAY(SELECT q.oid FROM pg_parameter_acl q WHERE q.parname = 'session_replication_role'), ARRAY['SET'], false
       WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_parameter_privilege(m, 'session_replication_role', 'SET'))
      UNION ALL
      -- from PostgreSQL 16 on it needs ADMIN OPTION on a role to take it, which makes it a member
      SELECT 'D414 role-makes-roles', CASE WHEN m.oid = a.oid THEN 'it has CREATEROLE' ELSE format('it is a member of %I, which %s', m.rolname,
                 CASE WHEN m.rolsuper THEN 'is a superuser' ELSE 'has CREATEROLE' END) END,
             CASE WHEN m.rolsuper THEN 'it can do all that a superuser can' ELSE 'it can make itself a member of the owner of what is protected' END,
             CASE WHEN m.oid = a.oid THEN format('ALTER ROLE %I NOCREATEROLE', a.name)
                  ELSE format('REVOKE %I FROM %I, or from the role that it has this through', m.rolname, a.name) END, NULL, NULL, false
        FROM pg_roles m
       WHERE (m.rolsuper OR m.rolcreaterole AND current_setting('server_version_num')::int < 160000) AND pg_has_role(a.oid, m.oid, 'MEMBER')
      UNION ALL
      SELECT 'D415 role-server-files', format('it is a member of %I', m.rolname), 'it can run what it likes as the server, or write the server''s files',
             format('REVOKE %I FROM %I, or from the role that it has this through', m.rolname, a.name), NULL, NULL, false
        FROM pg_roles m WHERE m.rolname IN ('pg_execute_server_program', 'pg_write_server_files') AND pg_has_role(a.oid, m.oid, 'MEMBER')
      ) x
   ORDER BY 3, 2, 4;

  RETURN QUERY
  SELECT 'warning', 'D410 role-rights-missing', format('role %I', a.name), format('it can write protected tables, but has no %s', string_agg(g.what,
      ', no ' ORDER BY g.n)),
         'the driver refuses to open a connection of it', string_agg(format('GRANT %s TO %I', g.what, a.name), '; ' ORDER BY g.n)
    FROM jsonb_to_recordset(v_apps) AS a(oid oid, name name, sev text),
    LATERAL (VALUES (1, 'USAGE ON SCHEMA fencing', has_schema_privilege(a.oid, c_schema, 'USAGE')),
                    (2, 'SELECT ON fencing.registry', has_table_privilege(a.oid, 'fencing.registry'::regclass, 'SELECT')),
                    (3, 'SELECT ON fencing.generation', has_table_privilege(a.oid, 'fencing.generation'::regclass, 'SELECT'))) g(n, what, has)
   WHERE NOT g.has AND a.sev = 'error' AND EXISTS (SELECT 1 FROM jsonb_to_recordset(v_family) AS f(oid oid)
           WHERE has_table_privilege(a.oid, f.oid, 'INSERT, UPDATE, DELETE') OR has_any_column_privilege(a.oid, f.oid, 'INSERT, UPDATE'))
   GROUP BY a.name;

  -- Settings of the database, of the judged roles, and of all roles.
  RETURN QUERY
  WITH setting AS (
    SELECT s.setrole, s.setdatabase, lower(split_part(e, '=', 1)) AS name, substr(e, position('=' IN e) + 1) AS value,
           CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'all roles' WHEN s.setrole = 0 THEN format('database %I', current_database())
               ELSE format('role %I', pg_get_userbyid(s.setrole)) END AS object,
           CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL' WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', current_database())
                ELSE format('ALTER ROLE %I', pg_get_userbyid(s.setrole)) || CASE s.setdatabase WHEN 0 THEN '' ELSE format(' IN DATABASE %I',
                    current_database()) END END AS alter
      FROM pg_db_role_setting s, unnest(s.setconfig) e
     WHERE s.setdatabase IN (0, c_db) AND (s.setrole = 0 OR s.setrole IN (SELECT a.oid FROM jsonb_to_recordset(v_apps) AS a(oid oid))
           OR s.setrole = (SELECT o.oid FROM pg_roles o WHERE o.rolname = session_user))
    UNION ALL
    SELECT 0, 0, s.name, s.reset_val, 'the server''s configuration', 'ALTER SYSTEM'
      FROM pg_settings s WHERE s.source IN ('configuration file', 'command line', 'environment variable', 'global') AND s.name <> 'search_path'),
  path AS (
    SELECT s.*, array_position(p.schemas, 'pg_catalog') AS at, p.schemas
      FROM setting s, LATERAL (SELECT array_agg(btrim(btrim(x), '"') ORDER BY i) FROM unnest(string_to_array(s.value, ',')) WITH ORDINALITY u(x, i)) p(schemas)
     WHERE s.name = 'search_path')
  SELECT 'warning', 'D501 setting-path', p.object, format('its search_path %s has schemas before pg_catalog', p.value),
         'their operators take the place of <, and the driver refuses protected writes there', format('%s SET search_path = ... without pg_catalog', p.alter)
    FROM path p WHERE p.at > 1
  UNION ALL
  SELECT 'error', 'D409 role-path-create', format('role %I', a.name),
      format('it may create schema or objects of %I, which its search_path has before pg_catalog', x.schema),
         'it can replace the operators that unqualified statements rest on', format('%s SET search_path = ... without pg_catalog', p.alter)
    FROM path p, jsonb_to_recordset(v_apps) AS a(oid oid, name name, takes oid[]), LATERAL (SELECT replace(q, '$user', a.name::text)
        FROM unnest(p.schemas[1:p.at - 1]) q) x(schema)
    LEFT JOIN pg_namespace n ON n.nspname = x.schema
   WHERE p.at > 1 AND (p.setrole = 0 OR p.setrole = a.oid)
     AND EXISTS (SELECT FROM unnest(a.takes) m WHERE CASE WHEN n.oid IS NULL THEN has_database_privilege(m, c_db, 'CREATE') ELSE has_schema_privilege(m, n.oid, 'CREATE') END)
  UNION ALL
  SELECT x.severity, x.code, s.object, format('it sets %s to %s', s.name, s.value), x.consequence, format('%s RESET %I', s.alter, s.name)
    FROM setting s, LATERAL (
      SELECT 'error', 'D502 setting-replication-role', 'foreign keys and all triggers but the wall''s don''t hold' WHERE s.name = 'session_replication_role'
          AND lower(s.value) NOT IN ('origin', 'local')
      UNION ALL SELECT 'error', 'D503 setting-strings', 'the server reads a backslash in a text otherwise than the driver, which refuses protected writes there'
       WHERE s.name = 'standard_conforming_strings' AND lower(s.value) IN ('off', 'false', 'no', '0', 'of', 'n', 'f')
      UNION ALL SELECT 'warning', 'D504 setting-encoding', 'a program that doesn''t set it itself has its texts read otherwise than they were checked'
       WHERE s.name = 'client_encoding' AND upper(replace(replace(s.value, '-', ''), '_', '')) NOT IN ('UTF8', 'UNICODE')
      UNION ALL SELECT 'error', 'D505 setting-token', 'every transaction has a token that no lock gave it' WHERE s.name ~ '^fencing[.]token'
          AND s.value <> '') x(severity, code, consequence);

  -- Triggers and rules of others on protected tables, and foreign keys. What a trigger's function may do is told by its text, without
  -- comments and constants: set the token column by name, or NEW as a whole, and who writes in another language is trusted with nothing.
  RETURN QUERY
  SELECT x.severity, x.code, format('trigger %I on %s', t.tgname, f.name), x.problem, x.consequence, x.remedy
    FROM jsonb_to_recordset(v_family) AS f(oid oid, name text, col name, mode text, wall text)
    JOIN pg_trigger t ON t.tgrelid = f.oid AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'D' AND t.tgtype & 3 = 3  -- BEFORE, FOR EACH ROW
    JOIN pg_proc p ON p.oid = t.tgfoid AND p.pronamespace <> c_schema JOIN pg_language l ON l.oid = p.prolang,
    LATERAL (SELECT regexp_replace(regexp_replace(p.prosrc, '--[^' || chr(10) || ']*', ' ', 'g'), '/[*]([^*]|[*]+[^*/])*[*]+/', ' ', 'g') AS text) b,
    LATERAL (SELECT CASE WHEN f.col ~ '^[[:alnum:]_]+$' THEN b.text ~* ('[[:<:]]' || f.col || '[[:>:]]') ELSE position(lower(f.col) IN lower(b.text)) > 0 END
                    OR position(lower(f.col) IN lower(encode(t.tgargs, 'escape'))) > 0 AS names) n,
    LATERAL (SELECT format('"?new"?[[:space:]]*[.][[:space:]]*"?%s"?', regexp_replace(f.col, '[^[:alnum:]_]', '\\\&', 'g')) AS col,
                    '(^|;|[[:<:]](begin|then|else|loop)[[:>:]]|>>)[[:space:]]*' AS start,  -- of a statement: elsewhere = compares
                    '[[:<:]]into[[:space:]]+(strict[[:space:]]+)?([^[:space:],();]+[[:space:]]*,[[:space:]]*)*' AS into) e,
    LATERAL (SELECT CASE
               WHEN t.tgtype & 20 = 0 THEN NULL
               WHEN l.lanname = 'plpgsql' THEN CASE
                 WHEN b.text ~* (e.start || e.col || '[[:space:]]*:?=') OR b.text ~* (e.into || e.col) THEN 'column'
                 WHEN b.text ~* (e.start || '"?new"?[[:space:]]*:?=') OR b.text ~* (e.into || '"?new"?[[:space:]]*([^.[:alnum:]_$[:space:]]|[[:space:]][^.]|$)') THEN 'row'
                 WHEN EXISTS (SELECT FROM regexp_matches(b.text, '[[:<:]]return[[:>:]]([^;]*)', 'gi') m(r)
                               WHERE lower(regexp_replace(m.r[1], '[[:space:]"]+', '', 'g')) NOT IN ('new', 'old', 'null', '(new)', 'coalesce(new,old)', 'coalesce(old,new)')) THEN 'row' END
               WHEN n.names THEN 'column'
               WHEN l.lanname NOT IN ('internal', 'c') THEN 'row' END AS sets,
             b.text ~* '("?new"?[[:space:]]*:?=|[[:<:]]return[[:>:]][[:space:]]*[^;[:space:]]*[(])[^;]*[[:<:]]old[[:>:]]' AS of_old) z,
    LATERAL (SELECT z.sets, z.sets = 'row' AND z.of_old AND f.wall IN ('enforce', 'attested') AS refused) y,
    -- before the mark that notes the token, and after what EXCLUDED has of an upsert
    LATERAL (SELECT t.tgtype & 16 > 0 AND t.tgname < '!fencing_mark' COLLATE "C" OR t.tgtype & 4 > 0 AND t.tgname < '!fencing_mark_insert' COLLATE "C" AS early,
                    t.tgtype & 4 > 0 AND t.tgname > '~fencing_insert' COLLATE "C" AS late) o,
    LATERAL (
      SELECT 'warning' AS severity, 'D601 trigger-after-check' AS code, 'it runs after the wall''s own check' AS problem,
          'what it changes in the row has been checked before, and is not again' AS consequence,
             format('ALTER TRIGGER %I ON %s RENAME TO ..., to a name before "~fencing"', t.tgname, f.name) AS remedy
       WHERE f.wall <> 'off' AND (t.tgtype & 16 > 0 AND t.tgname > '~fencing_update' COLLATE "C" OR t.tgtype & 4 > 0 AND t.tgname > '~fencing_insert' COLLATE "C")
      UNION ALL
      SELECT 'error', 'D606 trigger-sets-token', format('its function %s sets %s', p.oid::regprocedure, CASE y.sets WHEN 'column' THEN format('the token column %I', f.col)
               ELSE format('the row as a whole, and with it the token column %I', f.col) END),
             CASE WHEN f.wall NOT IN ('enforce', 'attested') THEN 'it can lower the token of a write, and a stale holder writes the row after that'
                  WHEN o.early THEN 'it can change the token of a write before the wall looks at it, and a stale write passes'
                  WHEN o.late THEN 'it can lower the token that an upsert takes from EXCLUDED after the wall has looked at it'
                  ELSE 'the wall refuses each write whose token it changes' END,
             CASE WHEN y.sets = 'row' AND f.wall NOT IN ('enforce', 'attested')
                  THEN format('have it set the columns that it means to set, or SELECT fencing.wall(%L, ''enforce''), which refuses a write whose token it changes, or DROP TRIGGER %I ON %s', f.name, t.tgname, f.name)
                  -- between the marks and the check the wall refuses what it changes; in mode lease the token is marked there, which D603 is about
                  WHEN y.sets = 'row' AND (f.mode = 'strict' OR t.tgtype & 16 = 0)
                  THEN format('have it set the columns that it means to set, one by one, or ALTER TRIGGER %I ON %s RENAME TO %I, where the wall refuses a write whose token it changes',
                              t.tgname, f.name, left('!g_' || t.tgname, 60))
                  WHEN y.sets = 'row' THEN format('have it set the columns that it means to set, one by one, or DROP TRIGGER %I ON %s; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                                                  t.tgname, f.name, p.oid)
                  ELSE format('have it leave that column alone, or DROP TRIGGER %I ON %s; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)', t.tgname, f.name, p.oid) END
        -- the wall's marks note the token before it, and compare with it afterwards
       WHERE y.sets = 'column' OR y.sets = 'row' AND (f.wall NOT IN ('enforce', 'attested') OR o.early OR o.late)
      UNION ALL
      SELECT 'warning', 'D602 trigger-token', format('its function %s has the token column %I in its text', p.oid::regprocedure, f.col),
             'it may set the token of the row, or take it away', format('look at it: SELECT pg_catalog.pg_get_functiondef(%s)', p.oid)
       WHERE t.tgtype & 20 > 0 AND n.names AND y.sets IS DISTINCT FROM 'column'
      UNION ALL
      SELECT CASE WHEN y.refused THEN 'error' ELSE 'warning' END, 'D603 trigger-sees-mark', format('it runs between the wall''s mark and its check, which keep %I negative for that time', f.col),
             CASE WHEN y.refused THEN format('its function %s makes the row of OLD, without the token of the write: each UPDATE is refused', p.oid::regprocedure)
                  WHEN y.sets IS NULL THEN 'it sees that value, and could set one itself' ELSE 'it sees that value, and each UPDATE whose token it changes is refused' END,
             -- before the mark a function that sets the token has a stale write pass
             CASE WHEN y.sets IS NULL THEN format('ALTER TRIGGER %I ON %s RENAME TO %I', t.tgname, f.name, left('!a_' || t.tgname, 60))
                  ELSE format('leave its name as it is, and have it set the columns that it means to set, one by one, or have it run AFTER; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                              p.oid) END
       WHERE f.wall <> 'off' AND f.mode = 'lease' AND t.tgtype & 16 > 0 AND t.tgname > '!fencing_mark' COLLATE "C" AND t.tgname < '~fencing_update' COLLATE "C"
         AND y.sets IS DISTINCT FROM 'column') x;  -- which D606 has

  RETURN QUERY
  SELECT 'error', 'D604 rule', format('rule %I on %s', w.rulename, f.name), 'the table has a rule', 'it makes something else of a checked statement',
      format('DROP RULE %I ON %s', w.rulename, f.name)
    FROM jsonb_to_recordset(v_family) AS f(oid oid, name text) JOIN pg_rewrite w ON w.ev_class = f.oid AND w.rulename <> '_RETURN' AND w.ev_enabled <> 'D';

  RETURN QUERY
  SELECT 'warning', 'D605 cascade', format('constraint %I on %s', k.conname, f.name), format('changes of %s cascade into the table, which has no wall',
      k.confrelid::regclass),
         'rows are changed under no token', format('SELECT fencing.wall(%L, ''enforce'')', f.root_name)
    FROM jsonb_to_recordset(v_family) AS f(oid oid, name text, root_name text, wall text, covered boolean, unsettled boolean) JOIN pg_constraint k ON k.conrelid = f.oid AND k.contype = 'f'
        AND k.conparentid = 0
   WHERE f.wall = 'off' AND NOT f.covered AND NOT f.unsettled AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'));

  RETURN QUERY
  SELECT CASE WHEN f.wall = 'off' THEN 'warning' WHEN w.alter IS NULL THEN 'info' ELSE 'error' END, 'D701 subscription', f.name, format('subscription %I writes the table', s.subname),
         CASE WHEN f.wall = 'off' THEN 'its writes are not checked'
              WHEN w.alter IS NULL THEN 'the wall''s triggers don''t fire for its worker, whose writes the publisher''s wall has checked, nor with session_replication_role = replica'
              ELSE 'the wall''s triggers stop its worker at a DELETE, and at tokens that were never issued here' END,
         CASE WHEN w.alter IS NULL THEN format('have one of the two write it: ALTER SUBSCRIPTION %I DISABLE, or take the table out of the publication', s.subname)
              ELSE format('run %s, so that its worker gets in, or have this database alone write the table: ALTER SUBSCRIPTION %I DISABLE, or take the table out of the publication', w.alter, s.subname) END
    FROM jsonb_to_recordset(v_family) AS f(root oid, oid oid, name text, wall text) JOIN pg_subscription_rel l ON l.srrelid = f.oid
        JOIN pg_subscription s ON s.oid = l.srsubid,
    LATERAL (SELECT string_agg(format('ALTER TABLE %s ENABLE TRIGGER %I', m.name, t.tgname), '; ' ORDER BY m.oid <> f.root, m.name, t.tgname) AS alter
               FROM jsonb_to_recordset(v_family) AS m(root oid, oid oid, name text) JOIN pg_trigger t ON t.tgrelid = m.oid JOIN pg_proc p ON p.oid = t.tgfoid
              WHERE m.root = f.root AND f.wall <> 'off' AND t.tgenabled = 'A' AND p.pronamespace = c_schema AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_') w;

  -- seals come with a later version
  IF to_regprocedure('fencing.doctor_seal(jsonb, jsonb)') IS NOT NULL THEN
    IF has_function_privilege('fencing.doctor_seal(jsonb, jsonb)', 'EXECUTE') THEN
      RETURN QUERY EXECUTE 'SELECT * FROM fencing.doctor_seal($1, $2)' USING v_family, v_apps;
    ELSE
      RETURN QUERY SELECT 'info', 'D226 seal-not-seen', 'function fencing.doctor_seal(jsonb, jsonb)', format('role %I may not run it', current_user),
        'nothing was looked at about seals', format('GRANT EXECUTE ON FUNCTION fencing.doctor_seal TO %I', current_user);
    END IF;
  END IF;
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_what = MESSAGE_TEXT;
    RETURN QUERY SELECT 'error', 'D002 doctor-stopped', 'schema fencing', 'an error stopped the doctor: ' || regexp_replace(v_what, '[[:space:]]+', ' ', 'g'),
      'the rest was not looked at', 'mend what the other findings say, or what the error says, and run the doctor again; it may be that the role has too few rights';
  END;
END $$;

COMMENT ON FUNCTION fencing.doctor(boolean, name[]) IS
  'Finds what takes the protection away, and what mends it. scan: also read whole tables for their highest token; roles: the application''s.';
