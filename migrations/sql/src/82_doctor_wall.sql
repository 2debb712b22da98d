-- The wall: the triggers that the level asks for, and no others.
CREATE FUNCTION fencing.doctor_wall(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := fencing.doctor_owner();
  c_bodies CONSTANT jsonb := (SELECT jsonb_agg(to_jsonb(b)) FROM (SELECT * FROM fencing.wall_update_bodies() UNION ALL SELECT * FROM fencing.wall_insert_bodies()
      UNION ALL SELECT * FROM fencing.wall_delete_bodies() UNION ALL SELECT * FROM fencing.wall_other_bodies()) b);
  -- of tombstones' functions, as in fencing.tombstone_functions
  c_settings CONSTANT text[] := '{"search_path=pg_catalog, pg_temp",enable_seqscan=off,TimeZone=UTC,"DateStyle=ISO, YMD",IntervalStyle=postgres,bytea_output=hex,extra_float_digits=1}';
  -- as in fencing.wall_apply
  c_noted CONSTANT text :=
      'WHEN ((set_config((''fencing.mark''::text || ((pg_trigger_depth() + 1))::text), (new.%1$I)::text, true) IS NULL)) ';
  c_note CONSTANT text := 'current_setting((''fencing.mark''::text || ((pg_trigger_depth() + 1))::text), true)';
  c_changed CONSTANT text := '((new.%1$I)::text IS DISTINCT FROM ' || c_note || ')';
BEGIN
  RETURN QUERY
  SELECT CASE f.wall WHEN 'off' THEN 'warning' ELSE 'info' END,
         CASE f.wall WHEN 'off' THEN 'D201 wall-off' WHEN 'report' THEN 'D206 wall-report' ELSE 'D207 lease-unattested' END, f.name,
         CASE f.wall WHEN 'off' THEN 'the table has no wall' WHEN 'report' THEN 'the wall only reports'
                     ELSE format('the wall takes SET %I = %1$I for a write under the token of the row', f.col) END,
         CASE f.wall WHEN 'off' THEN 'what does not go through the driver writes it without any check'
                     WHEN 'report' THEN 'stale and unguarded writes are in the server''s log, and in the table'
                     ELSE 'an UPDATE that copies the token needs none of its own' END,
         CASE WHEN f.issued IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class s WHERE s.oid = f.issued AND s.relkind = 'S') THEN 'run what D301 says, and then ' ELSE '' END ||
             f.first || format(CASE f.wall WHEN 'enforce' THEN 'SELECT fencing.wall(%L, ''attested'')' ELSE 'SELECT fencing.wall(%L)' END, f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name, mode text, issued oid, wall text, first text, covered boolean, unsettled boolean)
   WHERE f.root = f.oid AND (f.wall IN ('off', 'report') OR f.wall = 'enforce' AND f.mode = 'lease') AND NOT f.covered AND NOT f.unsettled;

  RETURN QUERY
  WITH kind(name, suffix, event, tomb, cond) AS (VALUES
    ('!fencing_mark', 'mark', 'mark', false, c_noted), ('!fencing_mark_insert', 'mark', 'BEFORE INSERT', false, c_noted),
        ('~fencing_named', 'named', 'mark', false, ''), ('~fencing_update', 'update', 'BEFORE UPDATE', false, ''),
    ('~fencing_insert', 'insert', 'BEFORE INSERT', false, ''), ('~fencing_delete', 'delete', 'BEFORE DELETE', false, ''),
    ('~fencing_truncate', 'truncate', 'BEFORE TRUNCATE', false, ''), ('~fencing_late', 'late', 'AFTER UPDATE', false, 'late'),
    ('~fencing_late_insert', 'late', 'AFTER INSERT', false, 'WHEN (((new.%I <= 0) OR ' || c_changed || ')) '),
        ('~fencing_bury', 'bury', 'BEFORE DELETE', true, ''),
    ('~fencing_vacate', 'bury', 'BEFORE UPDATE', true, 'vacate'), ('~fencing_tomb', 'check', 'AFTER INSERT', true, ''),
        ('~fencing_rekey1', 'bury', 'AFTER UPDATE', true, 'rekey'),
    ('~fencing_rekey2', 'check', 'AFTER UPDATE', true, 'rekey')),
  -- the primary keys, and the bodies of the functions that tombstones have for them
  keyed AS MATERIALIZED (
    SELECT f.root, y.*, (SELECT jsonb_object_agg(b.suffix, b.body) FROM fencing.tombstone_key_bodies(y.cols, y.types::regtype[], f.col, f.mode, f.resource, q.seq) b
             WHERE f.tombs AND y.cols IS NOT NULL) AS bodies
      FROM jsonb_to_recordset(family) AS f(root oid, oid oid, col name, mode text, resource text, issued oid, tombs boolean)
      LEFT JOIN LATERAL (SELECT format('%I.%I', n.nspname, c.relname) AS seq FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = f.issued AND c.relkind = 'S') q ON true
      CROSS JOIN LATERAL (SELECT bool_or(a.attgenerated <> '') AS generated, array_agg(a.attname ORDER BY u.ord) AS cols,
          array_agg(a.atttypid::regtype::text ORDER BY u.ord) AS types,
                                string_agg(format(CASE a.atttypid WHEN 'varchar'::regtype
                                    THEN '((old.%I)::text IS DISTINCT FROM (new.%1$I)::text)'
                                                                  ELSE '(old.%I IS DISTINCT FROM new.%1$I)' END, a.attname), ' OR '
                                                                      ORDER BY u.ord) AS changed
                           FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY u(num, ord), pg_attribute a
                          WHERE i.indrelid = f.root AND i.indisprimary AND a.attrelid = f.root AND a.attnum = u.num
                              AND u.ord <= i.indnkeyatts) y
     WHERE f.root = f.oid),
  wanted AS (
    -- the names of the functions, as fencing.wall_functions and fencing.tombstone_functions build them
    SELECT f.*, k.name AS trg, k.suffix, k.tomb, q.seq, f.issued IS NOT NULL AND q.seq IS NULL AS unbounded,  -- D301
           -- the trigger as the server writes it where it is as fencing made it; compare fencing.wall_apply and fencing.tombstone_apply
           format('CREATE TRIGGER %I %s ON %s FOR EACH %s %sEXECUTE FUNCTION fencing.', k.name,
                  CASE WHEN k.event <> 'mark' THEN k.event WHEN f.mode = 'strict' THEN 'BEFORE UPDATE'
                      ELSE format('BEFORE UPDATE OF %I', f.col) END, f.name,
                  CASE k.suffix WHEN 'truncate' THEN 'STATEMENT' ELSE 'ROW' END,
                  CASE WHEN k.cond = 'vacate' AND y.generated THEN ''
                       WHEN k.cond IN ('rekey', 'vacate')
                           THEN format(CASE WHEN y.changed LIKE '% OR %' THEN 'WHEN ((%s)) ' ELSE 'WHEN (%s) ' END, y.changed)
                       WHEN k.cond <> 'late' THEN format(k.cond, f.col)
                       WHEN f.mode = 'strict' THEN format('WHEN ((((new.%I <= old.%1$I) AND (((new.%1$I)::text || '' again''::text) IS DISTINCT FROM ' || c_note || ')) OR ((new.%1$I > old.%1$I) AND ' || c_changed || '))) ', f.col)
                       WHEN f.wall = 'report' THEN format('WHEN ((new.%I < old.%1$I)) ', f.col)
                       ELSE format('WHEN (((new.%I < old.%1$I) OR ' || c_changed || ')) ', f.col) END) AS def,
           CASE WHEN k.tomb THEN 'tomb_' || {{nameDigest `f.col, f.mode, f.resource, q.seq, y.cols, y.types`}} || '_' || k.suffix
                ELSE 'wall_' || {{nameDigest `f.col, f.mode, f.resource, q.seq`}} || '_' || k.suffix
                     || CASE WHEN k.suffix IN ('update', 'insert') AND f.wall = 'attested' THEN '_attested' ELSE '' END END AS func,
           -- its body, as fencing.wall_functions and fencing.tombstone_functions make it
           CASE WHEN k.tomb THEN y.bodies ->> k.suffix ELSE (SELECT format(b.body, f.col, f.mode, f.resource, fencing.setting_name(f.resource), q.seq)
               FROM jsonb_to_recordset(c_bodies) AS b(suffix text, mode text, is_bounded boolean, body text)
              WHERE b.suffix = k.suffix || CASE WHEN k.suffix IN ('update', 'insert') AND f.wall = 'attested' THEN '_attested' ELSE '' END
                AND coalesce(b.mode = f.mode, true) AND coalesce(b.is_bounded = (q.seq IS NOT NULL), true)) END AS source
      FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, col name, mode text, resource text, issued oid,
          wall text, root_wall text, tombs boolean, part boolean, torn boolean,
        first text, unsettled boolean, subscribed boolean)
      LEFT JOIN LATERAL (SELECT format('%I.%I', n.nspname, c.relname) AS seq FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = f.issued AND c.relkind = 'S') q ON true
      LEFT JOIN keyed y ON y.root = f.root, kind k
     WHERE f.wall <> 'off' AND (k.suffix <> 'named' OR f.mode = 'lease')
       AND (NOT k.tomb OR f.tombs AND y.cols IS NOT NULL AND (f.oid = f.root OR f.part))  -- D212 has the other children, and D217 what has no key
       AND NOT f.torn AND NOT f.unsettled),  -- D213, and D102, D103 and D105
  seen AS (
    SELECT w.*, t.tgenabled, t.tgfoid, t.tgparentid, p.proowner <> c_owner AS foreign_owner, p.pronamespace = c_schema
        AND p.proname = w.func AS named, CASE
             WHEN t.oid IS NULL THEN 'D202 trigger-missing'
             -- which functions it is to run only a sequence says, and none is to be made without one
             WHEN p.pronamespace <> c_schema OR NOT w.unbounded AND p.proname <> w.func OR w.unbounded AND p.proname !~ CASE WHEN w.tomb
                 THEN '^tomb_' ELSE '^wall_' END OR p.proowner <> c_owner OR l.lanname <> 'plpgsql' OR p.proconfig IS DISTINCT FROM CASE WHEN w.tomb THEN c_settings END
                  OR p.prosecdef <> (w.suffix NOT IN ('mark', 'named')) OR NOT w.unbounded AND p.prosrc IS DISTINCT FROM w.source THEN 'D204 trigger-function'
             WHEN t.tgenabled <> 'A' AND NOT (w.subscribed AND t.tgenabled = 'O') THEN 'D203 trigger-disabled'
             WHEN NOT w.unbounded AND pg_get_triggerdef(t.oid) IS DISTINCT FROM w.def || format('%I(%L)', w.func, w.wall)
                  -- triggers follow a column that is renamed, and D106 says so
                  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = w.oid AND a.attname = w.col AND NOT a.attisdropped)
             THEN 'D205 trigger-changed' END AS code,
           -- at the level that the row has by then, which another remedy may raise
           CASE WHEN w.tomb THEN format('SELECT fencing.tombstones(%L)', w.root_name)
               ELSE format('SELECT fencing.wall(r.relid, r.wall_level) FROM fencing.registry r WHERE r.relid = %L::regclass', w.root_name) END AS again,
           -- fencing.tombstones is refused for the key alone
           CASE WHEN w.tomb THEN CASE WHEN w.first LIKE '%~fencing_kept_key%' THEN 'mend what D202 says of "~fencing_kept_key", and then ' ELSE '' END ELSE w.first END AS before,
           ARRAY(SELECT format('DROP TRIGGER IF EXISTS %I ON %s', u.tgname, m.name)  -- whatever else has their names, or none is put up
                   FROM jsonb_to_recordset(family) AS m(root oid, oid oid, name text) JOIN pg_trigger u ON u.tgrelid = m.oid JOIN pg_proc g ON g.oid = u.tgfoid
                  WHERE m.root = w.root AND u.tgparentid = 0 AND g.pronamespace <> c_schema
                    AND u.tgname ~ CASE WHEN w.tomb THEN '^~fencing_(bury|vacate|tomb|rekey[12])$'
                      ELSE '^(!fencing_mark(_insert)?|~fencing_(named|update|insert|delete|truncate|late|late_insert|bury|vacate|tomb|rekey[12]|zseal))$' END
                  ORDER BY m.name, u.tgname) AS drops
      FROM wanted w LEFT JOIN pg_trigger t ON t.tgrelid = w.oid AND t.tgname = w.trg
      LEFT JOIN pg_proc p ON p.oid = t.tgfoid LEFT JOIN pg_language l ON l.oid = p.prolang)
  SELECT 'error', s.code, format('trigger %I on %s', s.trg, s.name),
         CASE left(s.code, 4) WHEN 'D202' THEN 'the wall''s trigger is missing'
              WHEN 'D203' THEN format('the wall''s trigger is %s', CASE s.tgenabled WHEN 'D' THEN 'disabled' WHEN 'R'
                  THEN 'enabled for replicas only'
                  ELSE 'not ENABLE ALWAYS' END)
              WHEN 'D204' THEN format('the wall''s trigger runs %s, %s', s.tgfoid::regprocedure,
                                      CASE WHEN s.foreign_owner THEN 'which is not the schema owner''s'
                                          ELSE 'which is not what fencing made for the table as it is' END)
              ELSE 'the wall''s trigger is not as fencing made it' END,
         CASE left(s.code, 4) WHEN 'D203' THEN CASE s.tgenabled WHEN 'O' THEN 'session_replication_role = replica passes it'
             ELSE 'nothing is checked by it' END
              WHEN 'D204' THEN 'what it checks, if anything, is for its owner to say' WHEN 'D205' THEN 'some writes pass unchecked'
              ELSE 'what it would check passes' END,
         CASE left(s.code, 4) WHEN 'D202' THEN s.before || s.again
              WHEN 'D203' THEN format(CASE WHEN s.subscribed THEN 'ALTER TABLE %s ENABLE TRIGGER %I'
                  ELSE 'ALTER TABLE %s ENABLE ALWAYS TRIGGER %I' END, s.name, s.trg)
              ELSE CASE
                WHEN s.code LIKE 'D204%' AND s.named AND s.foreign_owner THEN
                  format('ALTER FUNCTION %s OWNER TO %I', s.tgfoid::regprocedure, pg_get_userbyid(c_owner))
                -- a function, and a trigger that runs one of fencing's, is made right in its place
                WHEN cardinality(s.drops) = 0 THEN s.before || s.again
                WHEN s.tomb THEN s.before || format('BEGIN; %s; %s; COMMIT', array_to_string(s.drops, '; '), s.again)
                ELSE s.before || fencing.doctor_without_wall(s.root_name, array_to_string(s.drops, '; ')) END END
    FROM seen s WHERE s.code IS NOT NULL;

  -- what keeps the columns: D106 and D223 have the others
  RETURN QUERY
  SELECT CASE WHEN f.wall = 'off' AND m.now IS NULL THEN 'warning' ELSE 'error' END,
         CASE m.code WHEN 'D202' THEN 'D202 trigger-missing' ELSE 'D205 trigger-changed' END, format('trigger "~fencing_kept_%s" on %s', m.role, f.name), m.problem,
         CASE m.role WHEN 'key' THEN 'a stale holder may insert a key that was deleted' ELSE 'an older holder writes the rows whose tokens are forgotten' END,
         CASE WHEN f.wall = 'off' THEN '' ELSE d.code || CASE m.role WHEN 'token' THEN fencing.doctor_mend_first(f.root::regclass, 'token') ELSE '' END END || m.remedy
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name, wall text, unsettled boolean), fencing.doctor_moved(f.root::regclass) m,
    LATERAL (SELECT coalesce((  -- of a new column; D107's remedy is part of this one
      SELECT format('mend what %s says of column %I, and then ', CASE WHEN a.atttypid <> 'int8'::regtype THEN 'D108' WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'D109' ELSE 'D110' END, f.col)
        FROM pg_attribute a LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
       WHERE m.role = 'token' AND a.attrelid = f.root AND a.attname = f.col AND NOT a.attisdropped
         AND (a.atttypid <> 'int8'::regtype OR a.attidentity <> '' OR a.attgenerated <> '' OR pg_get_expr(e.adbin, e.adrelid) NOT IN ('0', '''0''::bigint', '(0)::bigint'))), '')) d(code)
   WHERE f.root = f.oid AND m.code IN ('D202', 'D205') AND NOT f.unsettled;

  RETURN QUERY
  SELECT 'error', 'D213 parents-differ', f.name,
      format('it inherits from %s, whose walls differ', string_agg(f.root_name, ' and ' ORDER BY f.root_name)),
         'it has the wall of one of them, and is written through the others unchecked',
         format('register them all with the same mode, token column, resource and sequence, and the same seal, or end all inheritances but one: ALTER TABLE %s NO INHERIT ...', f.name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text, root_name text, torn boolean) WHERE f.torn GROUP BY f.oid, f.name;

  -- Left of a wall is not a wall: what it was is for somebody to say. What has the name of a registered table is D102's or D105's.
  RETURN QUERY
  SELECT CASE WHEN g.relid IS NULL OR c.relispartition OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) THEN 'error'
      ELSE 'warning' END, 'D209 wall-left-over',
         c.oid::regclass::text, format('trigger %I of %s is on a table that has none', t.tgname, CASE left(p.proname, 4) WHEN 'tomb'
             THEN 'tombstones' ELSE 'a wall' END),
         CASE WHEN g.relid IS NULL THEN
             'the triggers may be some of those of a wall only, and others be gone: older tokens can be written, and come back with the table'
              ELSE 'writes are refused that nothing protects' END,
         CASE WHEN g.wall_level <> 'off'
             THEN format('if deleted keys are to keep their tokens, SELECT fencing.tombstones(%L), or, if not, SELECT fencing.tombstones(%1$L, false)',
             c.oid::regclass::text)
              ELSE coalesce((
                -- registered alike, it takes on the rest
                SELECT format('if it is to be protected as %s, %s, or, if not, SELECT fencing.wall(%L, ''off'')', string_agg(a.relid::text, ' or ' ORDER BY a.relid),
                         min(fencing.doctor_register(root.name, a.mode, a.token_column, a.resource, a.issued_by)
                             -- of a root, which has no triggers that say it
                             || CASE WHEN c.relispartition THEN
                                  CASE WHEN a.wall_level <> 'off' THEN format('; SELECT fencing.wall(%L, %L)', root.name, a.wall_level) ELSE '' END
                                  || CASE WHEN a.tombstones THEN format('; SELECT fencing.tombstones(%L)', root.name) ELSE '' END
                                  || CASE WHEN a.seal_resource IS NOT NULL THEN format('; SELECT fencing.seal(%L, %L)', root.name, a.seal_resource)
                                          WHEN a.seal_column IS NOT NULL THEN format('; SELECT fencing.seal(%L, by_column => %L)', root.name, a.seal_column)
                                          ELSE '' END
                                ELSE '' END), c.oid::regclass::text)
                  FROM fencing.registered_above(c.oid) a WHERE g.relid IS NULL HAVING count(*) > 0),
                format('if it is to be protected, SELECT fencing.register(%L, ...) and SELECT fencing.wall(%1$L), or, if not, SELECT fencing.wall(%L, ''off'')',
                  root.name, c.oid::regclass::text)) END
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry g ON g.relid = c.oid
    LEFT JOIN (SELECT f.oid, bool_or(f.tombs AND (f.oid = f.root OR f.part)) AS has_tombs
                 FROM jsonb_to_recordset(family) AS f(root oid, oid oid, wall text, tombs boolean, part boolean) WHERE f.wall <> 'off'
                     GROUP BY f.oid) w ON w.oid = c.oid
    -- a partition is registered as part of its root only
    CROSS JOIN LATERAL (SELECT CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid::regclass END::text AS name) root
   WHERE p.pronamespace = c_schema AND p.proname ~ '^(wall|tomb)_[0-9a-f]{16}_' AND t.tgparentid = 0
     AND CASE left(p.proname, 4) WHEN 'wall' THEN w.oid IS NULL ELSE w.has_tombs IS NOT TRUE END
     AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.schema_name = n.nspname AND x.table_name = c.relname AND x.relid <> c.oid);
END $$;

-- Tombstones, but for their triggers, which doctor_wall has.
CREATE FUNCTION fencing.doctor_tombstones(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'warning', 'D208 tombstones-without-wall', f.name, 'tombstones are on and the wall is off',
      'deletes carry no token that a tombstone could keep',
         CASE WHEN f.issued IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class s WHERE s.oid = f.issued AND s.relkind = 'S') THEN 'run what D301 says, and then ' ELSE '' END ||
             f.first || format('SELECT fencing.wall(%L)', f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, issued oid, wall text, tombs boolean, first text, unsettled boolean)
   WHERE f.root = f.oid AND f.wall = 'off' AND f.tombs AND NOT f.unsettled;

  RETURN QUERY
  SELECT 'error', 'D217 tombstones-no-key', f.name, 'tombstones are on, and it has no primary key',
         'INSERT and DELETE are refused, or keys that were deleted are inserted again by a stale holder',
         format('make the key again that it had: ALTER TABLE %s ADD PRIMARY KEY (...), and SELECT fencing.tombstones(%1$L), or, to keep none, SELECT fencing.tombstones(%1$L, false)', f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, tombs boolean)
   WHERE f.root = f.oid AND f.tombs AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = f.oid AND i.indisprimary);

  RETURN QUERY
  SELECT 'error', 'D211 tombstones-deferrable', f.name, format('tombstones are on, and the primary key %I is deferrable', k.conname),
         'an INSERT does not wait for a DELETE in progress, and passes its tombstone',
         format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', f.name, k.conname,
                regexp_replace(pg_get_constraintdef(k.oid), ' DEFERRABLE( INITIALLY DEFERRED)?$', ''))
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, tombs boolean)
    JOIN pg_index i ON i.indrelid = f.oid AND i.indisprimary AND NOT i.indimmediate JOIN pg_constraint k ON k.conindid = i.indexrelid
        AND k.contype = 'p'
   WHERE f.root = f.oid AND f.tombs;

  RETURN QUERY
  SELECT 'error', 'D212 tombstones-child', f.name, format('it inherits from %s, which has tombstones', f.root_name),
         'a key that was deleted from it can be inserted again by a stale holder',
             format('make %s a partitioned table, or ALTER TABLE %s NO INHERIT %1$s', f.root_name, f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, wall text, tombs boolean, part boolean)
   WHERE f.oid <> f.root AND NOT f.part AND f.tombs AND f.wall <> 'off';
END $$;

-- Rows whose key was deleted under a newer token than they have: put back by a restore, or with a partition that was attached. It reads
-- the whole tables. The settings are those under which keys are written as text, see fencing.tombstone_functions.
CREATE FUNCTION fencing.doctor_buried(family jsonb, scan boolean)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' SET IntervalStyle = 'postgres'
SET bytea_output = 'hex' SET extra_float_digits = 1 AS $$
DECLARE
  v_table record;
  v_key   record;
  v_from  text;
  v_count bigint;
BEGIN
  IF scan IS NOT TRUE OR NOT has_table_privilege('fencing.tombstone', 'SELECT')
      OR NOT has_function_privilege('fencing.tombstone_key(regclass)', 'EXECUTE') THEN
    RETURN;
  END IF;
  FOR v_table IN
    SELECT f.* FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name, tombs boolean)
      JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped
     WHERE f.root = f.oid AND f.tombs AND has_table_privilege(f.oid, 'SELECT')
  LOOP
    BEGIN
      SELECT * INTO v_key FROM fencing.tombstone_key(v_table.oid::regclass);
    EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported THEN
      CONTINUE;  -- D211, or fencing.tombstones refuses it
    END;
    v_from := format($q$FROM %s x JOIN fencing.tombstone d ON d.relid = %L::regclass AND d.digest = {{keyDigest "%s"}} AND d.token > x.%I$q$,
        v_table.name, v_table.name, format('ARRAY[' || array_to_string(v_key.texts, ', ') || ']', 'x'), v_table.col);
    EXECUTE 'SELECT count(*) ' || v_from INTO v_count;
    IF v_count > 0 THEN
      RETURN QUERY SELECT 'error', 'D216 token-below-tombstone', v_table.name,
        format('%s of its rows have a key that was deleted under a newer token than theirs', v_count),
        'a stale holder, which the token of the DELETE shuts out, writes them',
        -- a token that is raised shuts out more
        format('BEGIN; SET LOCAL TimeZone = ''UTC''; SET LOCAL DateStyle = ''ISO, YMD''; SELECT fencing.repair(%L, jsonb_build_object(%s), d.token, ''the key was deleted under this token'') %s; COMMIT',
          v_table.name, (SELECT string_agg(format('%L, x.%I', c, c), ', ' ORDER BY i) FROM unnest(v_key.cols) WITH ORDINALITY u(c, i)), v_from);
    END IF;
  END LOOP;
END $$;

-- What guards the schema itself: the triggers of its tables, and tables that inherit from them.
CREATE FUNCTION fencing.doctor_schema(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
BEGIN
  RETURN QUERY
  SELECT 'error', 'D210 registry-trigger', format('trigger %I on fencing.%I', k.name, k.rel),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS'
             ELSE 'it runs another function' END,
         CASE WHEN k.name IN ('changed', 'truncated') THEN 'drivers and caches don''t hear of changes'
             ELSE 'the wall doesn''t follow the registry' END,
         CASE WHEN p.oid IS NULL THEN 'run migrations.Up(ctx, dsn), which makes its function again, and then ' ELSE '' END
         || CASE WHEN t.tgfoid = p.oid THEN ''
             ELSE format('CREATE OR REPLACE TRIGGER %I AFTER %s ON fencing.%I FOR EACH %s EXECUTE FUNCTION fencing.%I(); ',
             k.name, k.event, k.rel, k.for_each, k.func) END
         || format('ALTER TABLE fencing.%I ENABLE ALWAYS TRIGGER %I', k.rel, k.name)
    FROM (VALUES ('registry', 'changed', 'INSERT OR UPDATE OR DELETE', 'ROW', 'registry_changed'),
        ('registry', 'truncated', 'TRUNCATE', 'STATEMENT', 'registry_changed'),
                 ('registry', 'wall', 'UPDATE OR DELETE', 'ROW', 'wall_changed'), ('registry', 'tombstones', 'UPDATE OR DELETE', 'ROW', 'tombstones_changed'),
                 ('allowed_function', 'changed', 'INSERT OR UPDATE OR DELETE', 'ROW', 'registry_changed'),
                 ('allowed_function', 'truncated', 'TRUNCATE', 'STATEMENT', 'registry_changed'))
                     k(rel, name, event, for_each, func)
    JOIN pg_class c ON c.relnamespace = c_schema AND c.relname = k.rel
    LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = k.name
    LEFT JOIN pg_proc p ON p.pronamespace = c_schema AND p.proname = k.func
   WHERE t.oid IS NULL OR t.tgenabled <> 'A' OR t.tgfoid IS DISTINCT FROM p.oid;

  -- what keeps the driver's own connections from what they rest on
  RETURN QUERY
  SELECT 'error', 'D230 driver-trigger', format('trigger refuse_driver on fencing.%I', c.relname),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS'
             ELSE 'it is not as fencing made it' END,
         'a statement through the driver that reaches the table can take the protection away',
         CASE WHEN pg_get_triggerdef(t.oid) = 'CREATE ' || k.def THEN '' ELSE 'CREATE OR REPLACE ' || k.def || '; ' END
         || format('ALTER TABLE fencing.%I ENABLE ALWAYS TRIGGER refuse_driver', c.relname)
    FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = 'refuse_driver',
    LATERAL (SELECT format('TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.%I FOR EACH STATEMENT '
                           'WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()',
                               c.relname) AS def) k
   WHERE c.relnamespace = c_schema AND c.relname IN ('registry', 'generation', 'incarnation', 'tombstone', 'repairs', 'lease', 'epoch', 'allowed_function')
     AND (t.oid IS NULL OR t.tgenabled <> 'A' OR pg_get_triggerdef(t.oid) <> 'CREATE ' || k.def);

  -- what is in such a table is taken for what is in its parent, and the triggers of that don't see it
  RETURN QUERY
  SELECT 'error', 'D231 schema-table-inherited', format('fencing.%I', c.relname), format('%s inherits from it', i.inhrelid::regclass),
         'its rows count for those of the schema''s table, and nothing keeps the driver''s connections, or who may write it, from them',
         format('ALTER TABLE %s NO INHERIT fencing.%I', i.inhrelid::regclass, c.relname)
    FROM pg_class c JOIN pg_inherits i ON i.inhparent = c.oid
   WHERE c.relnamespace = c_schema AND c.relkind = 'r';
END $$;
