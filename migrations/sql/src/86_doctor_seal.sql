-- What the doctor finds about seals. family are the registered tables, apps the roles that are judged, as fencing.doctor has them.
CREATE FUNCTION fencing.doctor_seal(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := fencing.doctor_owner();
  v_sealed jsonb;  -- those of the family with a seal
BEGIN
  IF jsonb_typeof(family) IS DISTINCT FROM 'array' OR jsonb_typeof(apps) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION 'fencing: no tables or no roles given to look at the seals of' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'It is a part of the doctor: SELECT * FROM fencing.doctor().';
  END IF;
  SELECT coalesce(jsonb_agg(to_jsonb(f) || jsonb_build_object('lease', g.seal_resource, 'by', g.seal_column, 'typ', a.atttypid, 'held', s.now,
           -- another one has the column's name, or it was dropped
           'other', s.role IS NOT NULL, 'moved', s.remedy,
           'again', format(CASE WHEN g.seal_column IS NULL THEN 'SELECT fencing.seal(%L, resource => %L)'
               ELSE 'SELECT fencing.seal(%L, by_column => %3$L)' END,
                           f.root_name, g.seal_resource, g.seal_column))), '[]') INTO v_sealed
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, col name, resource text, wall text, part boolean,
        torn boolean, first text, unsettled boolean, subscribed boolean)
    JOIN fencing.registry g ON g.relid = f.root AND num_nonnulls(g.seal_resource, g.seal_column) = 1
    LEFT JOIN pg_attribute a ON a.attrelid = f.root AND a.attname = g.seal_column AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN LATERAL (SELECT m.role, m.now, m.remedy FROM fencing.doctor_moved(f.root::regclass) m WHERE m.role = 'seal') s ON true;

  RETURN QUERY
  SELECT 'warning', 'D224 seal-without-wall', f.name, 'it is sealed and the wall is off', 'nothing compares its writes with the lease',
         CASE WHEN f.issued IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class s WHERE s.oid = f.issued AND s.relkind = 'S') THEN 'run what D301 says, and then ' ELSE '' END ||
             f.first || format('SELECT fencing.wall(%L)', f.name)
    FROM jsonb_to_recordset(v_sealed) AS f(root oid, oid oid, name text, issued oid, wall text, first text, unsettled boolean) WHERE f.root = f.oid
        AND f.wall = 'off' AND NOT f.unsettled;

  RETURN QUERY
  SELECT 'error', 'D223 seal-column', f.name, format('the column %I, which names the lease of a row, %s', f.by, x.what), x.so, x.fix
    FROM jsonb_to_recordset(v_sealed) AS f(root oid, oid oid, name text, root_name text, wall text, "by" name, again text, held name, moved text, other boolean)
    LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.by AND a.attnum > 0 AND NOT a.attisdropped,
    -- while it is sealed by a column, that can't get another type
    LATERAL (SELECT CASE f.wall WHEN 'off' THEN 'ALTER TABLE %s ALTER COLUMN %I TYPE %s' ELSE 'BEGIN; SELECT fencing.unseal(%4$L); ALTER TABLE %1$s ALTER COLUMN %2$I TYPE %3$s; ' || replace(f.again, '%', '%%') || '; COMMIT' END AS typed) y,
    LATERAL (
      SELECT 'is missing' AS what, 'every write fails' AS so,
             CASE WHEN f.held IS NULL THEN format('SELECT fencing.seal(%L, by_column => ...), with the name that it has now', f.root_name)
               ELSE format('SELECT fencing.seal(%L, by_column => %L), by its present name, or, to give the former one back, ALTER TABLE %s RENAME COLUMN %I TO %I', f.root_name, f.held, f.root_name, f.held, f.by) END AS fix
       WHERE a.attname IS NULL
      UNION ALL SELECT 'is another one than before' || CASE WHEN f.held IS NULL THEN ', as after it was dropped' ELSE format(': the leases of the rows are in %I', f.held) END,
             'who holds the lease that a row names there now writes it, and the holder of the one that it is of can''t',
             f.moved
       WHERE f.other AND f.root = f.oid AND a.attname IS NOT NULL
      UNION ALL SELECT format('is %s now', format_type(a.atttypid, a.atttypmod)), 'every write is refused',
             format(y.typed, f.root_name, f.by, 'text', f.root_name)
       WHERE a.atttypid NOT IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype)
      UNION ALL SELECT 'has a collation under which different texts are equal', 'fencing.seal refuses the table, and two leases have one name',
             format(y.typed, f.root_name, f.by, format_type(a.atttypid, a.atttypmod) || ' COLLATE "C"', f.root_name)
       WHERE EXISTS (SELECT FROM pg_collation l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
      UNION ALL SELECT 'is a generated column', 'it is computed after the check, and every write is refused',
             format('name a column that is written: SELECT fencing.seal(%L, by_column => ...), or ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION', f.root_name, f.root_name, f.by)
       WHERE a.attgenerated <> ''
      UNION ALL SELECT 'may be null', 'a row with a null can be written by nobody',
          format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.by) WHERE fencing.doctor_nullable(f.oid, a.attnum)) x
   WHERE f.by IS NOT NULL;

  -- the trigger, as fencing.seal_apply makes it; the codes are those of the wall's own
  RETURN QUERY
  WITH seen AS (
    SELECT f.*, t.tgenabled, t.tgfoid, p.proowner, p.proname = y.func AS named, p.pronamespace <> c_schema AS is_foreign, y.func, CASE
             WHEN t.oid IS NULL THEN 'D202 trigger-missing'
             WHEN p.pronamespace <> c_schema OR p.proname <> y.func OR p.proowner <> c_owner OR l.lanname <> 'plpgsql'
                 OR p.proconfig IS NOT NULL OR NOT p.prosecdef
                  OR p.prosrc IS DISTINCT FROM (  -- as fencing.seal_function makes it
                    SELECT format(b.body, f.col, f.resource, fencing.setting_name(f.resource), f.lease, f.by, (SELECT 'pg_catalog.' || z.typname FROM pg_type z WHERE z.oid = f.typ))
                      FROM fencing.seal_bodies() b WHERE b.is_by_column = (f.by IS NOT NULL)) THEN 'D204 trigger-function'
             WHEN t.tgenabled <> 'A' AND NOT (f.subscribed AND t.tgenabled = 'O') THEN 'D203 trigger-disabled'
             WHEN pg_get_triggerdef(t.oid) <>
                 format('CREATE TRIGGER "~fencing_zseal" BEFORE INSERT OR DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION fencing.%I(%L)',
                                                     f.name, y.func, f.wall) THEN 'D205 trigger-changed' END AS code
      FROM jsonb_to_recordset(v_sealed) AS f(oid oid, name text, root_name text, col name, resource text, lease text, "by" name, typ oid,
          wall text, again text, torn boolean, unsettled boolean, subscribed boolean, other boolean)
      LEFT JOIN pg_trigger t ON t.tgrelid = f.oid AND t.tgname = '~fencing_zseal' LEFT JOIN pg_proc p ON p.oid = t.tgfoid LEFT
          JOIN pg_language l ON l.oid = p.prolang,
      LATERAL (SELECT 'seal_' || {{nameDigest `f.col, f.resource, f.lease, f.by, f.typ::regtype::text`}} || '_check' AS func) y
     WHERE f.wall <> 'off' AND NOT f.torn AND NOT f.unsettled  -- D213, and D102, D103 and D105
       -- D223 has the others
       AND (f.by IS NULL OR f.typ IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype,
           'int8'::regtype)))
  SELECT 'error', s.code, format('trigger "~fencing_zseal" on %s', s.name),
         CASE left(s.code, 4) WHEN 'D202' THEN 'the seal''s trigger is missing' WHEN 'D203' THEN 'the seal''s trigger is not ENABLE ALWAYS'
              WHEN 'D204' THEN format('the seal''s trigger runs %s, which is not what fencing made for the table as it is',
                  s.tgfoid::regprocedure)
              ELSE 'the seal''s trigger is not as fencing made it' END,
         CASE left(s.code, 4) WHEN 'D203' THEN CASE s.tgenabled WHEN 'O' THEN 'session_replication_role = replica passes it'
             ELSE 'nothing is compared with the lease' END
              ELSE 'an older holder writes rows that the new one has not written yet' END,
         CASE WHEN s.other AND s.code ~ '^D20[245]' THEN 'mend what D223 says, and then ' ELSE '' END ||
         coalesce(CASE left(s.code, 4) WHEN 'D202' THEN s.again WHEN 'D203'
             THEN format(CASE WHEN s.subscribed THEN 'ALTER TABLE %s ENABLE TRIGGER "~fencing_zseal"'
             ELSE 'ALTER TABLE %s ENABLE ALWAYS TRIGGER "~fencing_zseal"' END, s.name)
                WHEN 'D204' THEN CASE WHEN s.named AND s.proowner <> c_owner
                    THEN format('ALTER FUNCTION %s OWNER TO %I', s.tgfoid::regprocedure, pg_get_userbyid(c_owner)) END END,
              -- a function, and a trigger that runs one of fencing's, is made right in its place
              CASE WHEN s.is_foreign THEN format('BEGIN; DROP TRIGGER "~fencing_zseal" ON %s; %s; COMMIT', s.root_name, s.again) ELSE s.again END)
    FROM seen s WHERE s.code IS NOT NULL;

  -- compare fencing.doctor
  RETURN QUERY
  SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM fencing.registry g WHERE g.relid = c.oid) OR c.relispartition
      OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) THEN 'error' ELSE 'warning' END, 'D209 wall-left-over',
         c.oid::regclass::text, format('trigger %I of a seal is on a table that has none', t.tgname),
             'writes are refused that nothing protects',
         format('if it is to be sealed, SELECT fencing.seal(%L, ...) once it has a wall, or, if not, SELECT fencing.unseal(%L)',
             CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid::regclass END::text, c.oid::regclass::text)
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE p.pronamespace = c_schema AND p.proname ~ '^seal_[0-9a-f]{16}_' AND t.tgparentid = 0
     AND c.oid NOT IN (SELECT f.oid FROM jsonb_to_recordset(v_sealed) AS f(oid oid, wall text) WHERE f.wall <> 'off')
     AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.schema_name = n.nspname AND x.table_name = c.relname AND x.relid <> c.oid);

  RETURN QUERY
  SELECT 'error', k.code, format('trigger %I on fencing.%I', k.name, k.tbl),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS'
             ELSE 'it is not as fencing made it' END, k.so,
         CASE WHEN to_regprocedure(u.func) IS NULL THEN 'run migrations.Up(ctx, dsn), which makes its function again, and then ' ELSE '' END
         || CASE WHEN pg_get_triggerdef(t.oid) = 'CREATE ' || k.def THEN '' ELSE 'CREATE OR REPLACE ' || k.def || '; ' END
         || format('ALTER TABLE fencing.%I ENABLE ALWAYS TRIGGER %I', k.tbl, k.name)
    FROM (VALUES ('D210 registry-trigger', 'registry', 'seal',
        'TRIGGER seal AFTER DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed()',
                  'the seal doesn''t follow the registry'),
                 ('D222 seal-epoch-trigger', 'lease', 'epoch',
                     'TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch()',
                  'a lease that is taken shuts its old holder out of nothing, and its new one out of sealed tables')) k(code, tbl, name,
                      def, so)
    CROSS JOIN LATERAL (SELECT substring(k.def FROM 'FUNCTION (.*)$') AS func) u
    LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(format('fencing.%I', k.tbl)) AND t.tgname = k.name
   WHERE t.oid IS NULL OR t.tgenabled <> 'A' OR pg_get_triggerdef(t.oid) <> 'CREATE ' || k.def;

  IF has_table_privilege('fencing.lease', 'SELECT') AND has_table_privilege('fencing.epoch', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D221 seal-behind', format('lease %L', l.resource),
        CASE WHEN count(e.token) = 0 THEN format('its token is %s, and it has no epoch', l.token)
             WHEN max(e.token) > l.token THEN format('its token is %s, and its epoch %s', l.token, max(e.token))
             WHEN min(e.token) < l.token THEN format('its token is %s, and its epoch only %s', l.token, min(e.token))
             ELSE format('its epoch has %s rows, and not 16', count(e.token)) END,
        CASE WHEN max(e.token) > l.token THEN 'its holder is refused by sealed tables, until the lease is taken again'
             ELSE 'its holder is refused by sealed tables, and an older one may not be' END,
        -- Above the lease's token the epoch is nobody's, or another lease's holder's. A new token, above both, is neither, and who holds
        -- the lease takes it again. Where no token is above the epoch, that was forged, and one after a jump is above all others.
        CASE WHEN max(e.token) > l.token THEN
          format('BEGIN; SELECT fencing.lease_wait(%1$L); LOCK TABLE fencing.incarnation IN SHARE ROW EXCLUSIVE MODE; %2$s'
                 'UPDATE fencing.lease SET token = fencing.next_token(), holder = NULL, expires_at = ''-infinity'' WHERE resource = %1$L; COMMIT',
                 l.resource, CASE WHEN max(e.token) < 9223372032559808512
                   THEN format('SELECT pg_catalog.setval(s, %s) FROM pg_catalog.to_regclass(''fencing.write_epoch'') s WHERE coalesce(pg_catalog.pg_sequence_last_value(s), 0) < %1$s; ', max(e.token))
                   ELSE format('DELETE FROM fencing.incarnation; DELETE FROM fencing.epoch WHERE resource = %L; ', l.resource) END)
             ELSE format('UPDATE fencing.lease SET token = token WHERE resource = %L', l.resource) END
      FROM fencing.lease l LEFT JOIN fencing.epoch e ON e.resource = l.resource
     GROUP BY l.resource, l.token HAVING count(e.token) < 16 OR min(e.token) < l.token OR max(e.token) > l.token;
    RETURN QUERY
    SELECT 'warning', 'D228 seal-lease-endless', format('lease %L', l.resource), format('it ends %s, and none lasts longer than 24 hours', l.expires_at),
           'nobody else can take it until then, whatever becomes of its holder',
           format('UPDATE fencing.lease SET expires_at = clock_timestamp() + interval ''24 hours'' WHERE resource = %L', l.resource)
      FROM fencing.lease l WHERE l.expires_at > clock_timestamp() + interval '25 hours' AND l.holder IS NOT NULL;
    RETURN QUERY
    SELECT 'warning', 'D229 seal-prepared', format('prepared transaction %L', x.gid),
           format('it has written under lease %L, and is open since %s', l.resource, x.prepared),
           'who takes the lease waits for it',
           format('ROLLBACK PREPARED %L, or COMMIT PREPARED %1$L', x.gid)
      FROM pg_prepared_xacts x JOIN pg_locks o ON o.locktype = 'transactionid' AND o.transactionid = x.transaction AND o.pid IS NULL
      JOIN pg_locks k ON k.locktype = 'advisory' AND k.pid IS NULL AND k.virtualtransaction = o.virtualtransaction
      JOIN fencing.lease l ON k.objsubid = 1 AND {{leaseLockKey "l.resource"}} = (k.classid::bigint << 32) | k.objid::bigint
     WHERE x.database = current_database();
    RETURN QUERY
    SELECT 'info', 'D227 seal-never-taken', f.name, format('it is sealed to lease %L, which was never taken', f.lease),
        'every write is refused until it is taken',
           format('take the lease by this name, or name the right one: SELECT fencing.seal(%L, resource => ...)', f.root_name)
      FROM jsonb_to_recordset(v_sealed) AS f(root oid, oid oid, name text, root_name text, wall text, lease text)
     WHERE f.root = f.oid AND f.wall IN ('enforce', 'attested') AND f.lease IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM fencing.lease l WHERE l.resource = f.lease)
           AND NOT EXISTS (SELECT 1 FROM fencing.epoch e WHERE e.resource = f.lease);
  END IF;

  -- a setting of the role in this database counts, else of the role, of the database, of all, of the server
  RETURN QUERY
  SELECT 'info', 'D225 seal-no-timeout', format('role %I', a.name),
      'it writes sealed tables, and no timeout ends a transaction that it leaves open',
         'a writer that is paused within a transaction holds up who takes its lease',
         format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''10s'', or set it in each transaction', a.name)
    FROM jsonb_to_recordset(apps) AS a(oid oid, name name)
   WHERE EXISTS (SELECT 1 FROM jsonb_to_recordset(v_sealed) AS f(oid oid, wall text)
                  WHERE f.wall IN ('enforce', 'attested')
                      AND (has_table_privilege(a.oid, f.oid, 'INSERT, UPDATE, DELETE')
                      OR has_any_column_privilege(a.oid, f.oid, 'INSERT, UPDATE')))
     AND NOT EXISTS (
       SELECT 1 FROM (VALUES ('idle_in_transaction_session_timeout'), ('transaction_timeout')) n(name), LATERAL (
         SELECT x.value FROM (
           SELECT substr(e, position('=' IN e) + 1) AS value, s.setrole = a.oid AS own, s.setdatabase <> 0 AS here, true AS set
             FROM pg_db_role_setting s, unnest(s.setconfig) e
            WHERE s.setrole IN (0, a.oid) AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
              AND lower(split_part(e, '=', 1)) = n.name
           UNION ALL SELECT g.reset_val, false, false, false FROM pg_settings g WHERE g.name = n.name
               AND g.source IN ('configuration file', 'command line', 'global')) x
          ORDER BY x.own DESC, x.here DESC, x.set DESC LIMIT 1) v
        WHERE v.value !~ '^0+ ?(us|ms|s|min|h|d)?$');
END $$;

COMMENT ON FUNCTION fencing.doctor_seal(jsonb, jsonb) IS 'The part of fencing.doctor() that is about seals.';
