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
--   Tokens are compared with their sequence where the token column leads an index, and elsewhere only with scan => true.

-- Who owns the schema and what is in it: the role that owns most of it, if something was given to another one.
CREATE FUNCTION fencing.doctor_owner() RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
BEGIN
  RETURN (SELECT o.owner
            FROM (SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'fencing'
                  UNION ALL SELECT c.relowner FROM pg_class c WHERE c.relnamespace = 'fencing'::regnamespace AND c.relkind IN ('r', 'S')
                  UNION ALL SELECT p.proowner FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace) o(owner)
           GROUP BY o.owner ORDER BY count(*) DESC, o.owner LIMIT 1);
END $$;

-- What of the schema belongs to another role than the rest of it.
CREATE FUNCTION fencing.doctor_owners()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_owner CONSTANT oid := fencing.doctor_owner();
BEGIN
  -- All or nothing: what one role owns and another one's functions read fails for everybody. The schema alone is given back, since to give it
  -- the rest could make an application's role the owner of what checks its writes.
  RETURN QUERY
  SELECT 'error', 'D003 schema-owner', 'schema fencing',
         format('it belongs to role %I, and what is in it to role %I', pg_get_userbyid(n.nspowner), pg_get_userbyid(c_owner)),
         'that role can drop what is in it; and where the other may not use it, no token can be drawn and every write to a table with a wall fails',
         format('ALTER SCHEMA fencing OWNER TO %I', pg_get_userbyid(c_owner))
    FROM pg_namespace n WHERE n.nspname = 'fencing' AND n.nspowner <> c_owner;

  RETURN QUERY
  SELECT 'error', 'D005 schema-owners', lower(x.kind) || ' ' || x.name,
         format('it belongs to role %I, and the rest of the schema to role %I', pg_get_userbyid(x.owner), pg_get_userbyid(c_owner)),
         'what the functions of the schema need of it fails, or that role can change what they rest on',
         format('ALTER %s %s OWNER TO %I', x.kind, x.name, pg_get_userbyid(c_owner))
    FROM (SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass::text, c.relowner FROM pg_class c
           WHERE c.relnamespace = 'fencing'::regnamespace
             AND (CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, c.relname::text) IN (SELECT m.kind, m.object FROM fencing.doctor_manifest() m)
          UNION ALL
          SELECT 'FUNCTION', p.oid::regprocedure::text, p.proowner FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace) x(kind, name, owner)
   WHERE x.owner <> c_owner ORDER BY x.kind DESC, x.name;
END $$;

CREATE FUNCTION fencing.doctor(scan boolean DEFAULT false, roles name[] DEFAULT NULL)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
    SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  v_family jsonb;   -- the registered tables, their partitions and their children
  v_apps   jsonb;   -- the roles that are judged
  v_tables text[];  -- of the schema, which are missing
  v_what   text;
BEGIN
  -- The schema itself. Without its tables nothing of what follows can be looked at; an error in what follows is a finding, too.
  SELECT array_agg('fencing.' || x ORDER BY i) INTO v_tables
    FROM unnest('{registry,generation,incarnation,tombstone,repairs,lease,epoch,allowed_function}'::text[]) WITH ORDINALITY u(x, i)
   WHERE to_regclass('fencing.' || x) IS NULL;
  IF v_tables IS NOT NULL THEN
    RETURN QUERY SELECT 'error', 'D001 schema-broken', 'schema fencing', format('%s is missing', array_to_string(v_tables, ', ')),
      'what rests on it fails or lets everything through, and the doctor can''t look at the rest',
      format('restore %s from a backup, or from a copy of the database', array_to_string(v_tables, ', '));
    RETURN;
  END IF;
  IF NOT has_table_privilege('fencing.registry', 'SELECT') THEN
    RETURN QUERY SELECT 'error', 'D002 doctor-stopped', 'table fencing.registry', format('role %I may not read it', current_user),
        'nothing was looked at',
      format('GRANT SELECT ON fencing.registry TO %I', current_user);
    RETURN;
  END IF;

  RETURN QUERY SELECT * FROM fencing.doctor_owners();
  RETURN QUERY SELECT * FROM fencing.doctor_differences();

  BEGIN  -- whatever fails is a finding: see the end
    v_family := fencing.doctor_family();
    v_apps := fencing.doctor_apps(v_family, doctor.roles);
    -- Each by itself: what was found before an error stays found. What stands in the way of registering a table comes before that.
    RETURN QUERY SELECT * FROM fencing.doctor_columns(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_tables();
    RETURN QUERY SELECT * FROM fencing.doctor_functions();
    RETURN QUERY SELECT * FROM fencing.doctor_wall(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_tombstones(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_buried(v_family, doctor.scan);
    RETURN QUERY SELECT * FROM fencing.doctor_schema(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_sequences(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_roles(v_family, v_apps, doctor.roles);
    RETURN QUERY SELECT * FROM fencing.doctor_settings(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_triggers(v_family, v_apps);
    RETURN QUERY SELECT * FROM fencing.doctor_subscriptions(v_family, v_apps);
    IF has_function_privilege('fencing.doctor_seal(jsonb, jsonb)', 'EXECUTE') THEN
      RETURN QUERY SELECT * FROM fencing.doctor_seal(v_family, v_apps);
    ELSE
      RETURN QUERY SELECT 'info', 'D226 seal-not-seen', 'function fencing.doctor_seal(jsonb, jsonb)',
          format('role %I may not run it', current_user),
        'nothing was looked at about seals', format('GRANT EXECUTE ON FUNCTION fencing.doctor_seal TO %I', current_user);
    END IF;
    -- last, because it locks tables: who waits for nothing after that is in no deadlock
    RETURN QUERY SELECT * FROM fencing.doctor_tokens(v_family, doctor.scan);
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_what = MESSAGE_TEXT;
    RETURN QUERY SELECT 'error', 'D002 doctor-stopped', 'schema fencing',
        'an error stopped the doctor: ' || regexp_replace(v_what, '[[:space:]]+', ' ', 'g'),
      'the rest was not looked at',
          'mend what the other findings say, or what the error says, and run the doctor again; it may be that the role has too few rights';
  END;
END $$;

COMMENT ON FUNCTION fencing.doctor(boolean, name[]) IS
  'Finds what takes the protection away, and what mends it. scan: also read whole tables for their highest token; roles: the application''s.';
