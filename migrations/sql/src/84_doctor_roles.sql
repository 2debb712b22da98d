-- The statement that takes rights which a role has been given by another one. What that role was given with the option to grant it to others is
-- that role's to take, and goes from whom these have given it to in turn.
CREATE FUNCTION fencing.doctor_revoke(privileges text, object text, grantee oid, grantor oid, owner oid) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  c_revoke CONSTANT text := format('REVOKE %s ON %s FROM %s CASCADE', privileges, object, CASE grantee WHEN 0 THEN 'PUBLIC'
      ELSE quote_ident(pg_get_userbyid(grantee)) END);
BEGIN
  RETURN CASE WHEN grantor = owner THEN c_revoke ELSE format('SET ROLE %I; %s; RESET ROLE', pg_get_userbyid(grantor), c_revoke) END;
END $$;

-- What the tables and sequences are in, and its owners: whoever owns a schema can drop what is in it. pg_database_owner stands for the
-- owner of the database.
CREATE FUNCTION fencing.doctor_around(family jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_db     CONSTANT oid := (SELECT oid FROM pg_database WHERE datname = current_database());
  c_seqs   CONSTANT oid[] := fencing.doctor_bounds();
BEGIN
  RETURN (SELECT jsonb_agg(o)
    FROM (SELECT CASE n.nspowner WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END AS owner,
                 format('schema %I, which %s is in', n.nspname, min(c.oid::regclass::text)) AS what, format('SCHEMA %I', n.nspname) AS name
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, pg_database d
           WHERE d.oid = c_db AND n.oid <> c_schema
               AND (c.oid = ANY (c_seqs) OR c.oid IN (SELECT f.oid FROM jsonb_to_recordset(family) AS f(oid oid)))
           GROUP BY n.oid, n.nspname, n.nspowner, d.datdba
          UNION ALL SELECT d.datdba, format('database %I', d.datname), format('DATABASE %I', d.datname) FROM pg_database d
              WHERE d.oid = c_db) o);
END $$;

-- The roles that are judged: those named by the caller, or that can log in, or be taken by one that can, and write a protected table.
-- One that owns what is protected may be there to deploy, which is only for the caller to rule out.
CREATE FUNCTION fencing.doctor_apps(family jsonb, roles name[]) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_owner  CONSTANT oid := fencing.doctor_owner();
  c_own    CONSTANT jsonb := fencing.doctor_around(family);
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('oid', a.oid, 'name', a.rolname,
           -- those that it is, or can take by SET ROLE, whether it inherits their rights or not; D414 has the superusers
           'takes', ARRAY(SELECT m.oid FROM pg_roles m WHERE pg_has_role(a.oid, m.oid, 'MEMBER') AND NOT m.rolsuper ORDER BY m.oid), 'sev',
               CASE WHEN doctor_apps.roles IS NULL AND (
             pg_has_role(a.oid, c_owner, 'MEMBER')
             OR EXISTS (SELECT 1 FROM jsonb_to_recordset(c_own) AS o(owner oid) WHERE pg_has_role(a.oid, o.owner, 'MEMBER'))
             OR EXISTS (SELECT 1 FROM jsonb_to_recordset(family) AS f(oid oid) JOIN pg_class c ON c.oid = f.oid
                 WHERE pg_has_role(a.oid, c.relowner, 'MEMBER')))
           THEN 'warning' ELSE 'error' END)), '[]')
    FROM pg_roles a
   WHERE NOT a.rolsuper AND CASE WHEN doctor_apps.roles IS NOT NULL THEN a.rolname = ANY (doctor_apps.roles)
     ELSE (a.rolcanlogin OR a.rolname !~ '^pg_' AND EXISTS (SELECT 1 FROM pg_roles l WHERE l.rolcanlogin AND NOT l.rolsuper
             AND pg_has_role(l.oid, a.oid, 'MEMBER') AND NOT pg_has_role(l.oid, a.oid, 'USAGE')))
      AND EXISTS (SELECT 1 FROM jsonb_to_recordset(family) AS f(oid oid), pg_roles m WHERE pg_has_role(a.oid, m.oid, 'MEMBER')
          AND NOT m.rolsuper
                   AND (has_table_privilege(m.oid, f.oid, 'INSERT, UPDATE, DELETE')
                       OR has_any_column_privilege(m.oid, f.oid, 'INSERT, UPDATE'))) END);
END $$;

-- What the judged roles own and may do.
CREATE FUNCTION fencing.doctor_roles(family jsonb, apps jsonb, roles name[])
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := fencing.doctor_owner();
  c_seqs   CONSTANT oid[] := fencing.doctor_bounds();
  c_own    CONSTANT jsonb := fencing.doctor_around(family);
  c_made   CONSTANT text[] := ARRAY(SELECT m.object FROM fencing.doctor_manifest() m WHERE m.kind = 'function');
BEGIN
  RETURN QUERY
  SELECT 'warning', 'D412 role-missing', format('role %I', x.name), 'there is no such role', 'nothing was looked at for it',
      'name the roles that the application connects as'
    FROM unnest(roles) AS x(name) WHERE NOT EXISTS (SELECT 1 FROM pg_roles a WHERE a.rolname = x.name);

  RETURN QUERY
  SELECT CASE WHEN roles IS NULL THEN 'info' ELSE 'error' END, 'D411 superuser', format('role %I', a.rolname),
      CASE WHEN a.rolcanlogin THEN 'it can log in, and is a superuser' ELSE 'it is a superuser' END,
      'it can take the wall down: it is for administrators, not for an application',
         -- not NOSUPERUSER: it may be the only one
         CASE WHEN roles IS NULL THEN
             'name the role that the application connects as, as in SELECT * FROM fencing.doctor(roles => ''{app}'') or --role app, and only that is judged'
              ELSE 'connect the application as another role, which is no superuser' END
    FROM pg_roles a WHERE a.rolsuper AND CASE WHEN roles IS NULL THEN a.rolcanlogin ELSE a.rolname = ANY (roles) END;

  -- what everybody may is found where no role is judged, too: after a restore without privileges (pg_restore -x) there may be none
  RETURN QUERY
  SELECT 'error', 'D407 role-executes', 'PUBLIC', format('everybody may run %s', string_agg(DISTINCT CASE p.prorettype WHEN 'trigger'::regtype THEN 'trigger functions'
           ELSE format('fencing.%I', p.proname) END, ', ')) || CASE WHEN bool_or(p.proacl IS NULL) THEN ', as after a restore without privileges' ELSE '' END,
         'whoever has rights on the registry can let go of tables, and who may make triggers can put the wall''s to other uses',
         format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.oid::regprocedure::text))
    FROM pg_proc p
   WHERE p.pronamespace = c_schema AND EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x WHERE x.grantee = 0)
     AND (p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_' OR format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) = ANY (c_made))
     AND (p.proname = 'doctor_seal' OR NOT starts_with(p.proname, 'doctor_') AND p.proname NOT IN ('registered_above', 'setting_name', 'allowed_functions', 'kept_columns') AND p.proname !~ '_bodies$')
     -- what an application calls may be everybody's, if somebody has said so
     AND (p.proacl IS NULL OR p.proname NOT IN ('next_token', 'take', 'renew', 'release', 'lease_ttl', 'incarnation_now', 'doctor', 'doctor_seal'))
  HAVING count(*) > 0;

  RETURN QUERY
  WITH acl(obj, object, privilege, grantee, grantor, owner) AS (
    SELECT c.oid, format('TABLE %s', c.oid::regclass), x.privilege_type, x.grantee, x.grantor, c.relowner FROM pg_class c, aclexplode(c.relacl) x
     WHERE c.relnamespace = c_schema AND c.relkind IN ('r', 'p', 'v')
         OR c.oid IN (SELECT f.oid FROM jsonb_to_recordset(family) AS f(oid oid))
    UNION SELECT a.attrelid, format('TABLE %s', a.attrelid::regclass), x.privilege_type, x.grantee, x.grantor, c.relowner
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) x WHERE c.relnamespace = c_schema
    UNION SELECT n.oid, 'SCHEMA fencing', x.privilege_type, x.grantee, x.grantor, n.nspowner FROM pg_namespace n, aclexplode(n.nspacl) x WHERE n.oid = c_schema
    UNION SELECT p.oid, format('FUNCTION %s', p.oid::regprocedure), x.privilege_type, x.grantee, x.grantor, p.proowner
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x WHERE p.pronamespace = c_schema
    -- a superuser's are taken as that of the server's first one
    UNION SELECT a.oid, 'PARAMETER session_replication_role', x.privilege_type, x.grantee, x.grantor, 10
      FROM pg_parameter_acl a, aclexplode(a.paracl) x WHERE a.parname = 'session_replication_role')
  SELECT CASE WHEN x.mild THEN 'warning' ELSE a.sev END, x.code, format('role %I', a.name), x.problem, x.consequence, coalesce(x.remedy, (
           -- the rights may be PUBLIC's, or another role's that it is a member of
           SELECT string_agg(fencing.doctor_revoke(e.privileges, e.object, e.grantee, e.grantor, e.owner), '; ')
             FROM (SELECT e.object, e.grantee, e.grantor, e.owner, string_agg(e.privilege, ', ' ORDER BY e.privilege) AS privileges FROM acl e
                    WHERE e.obj = ANY (x.objs) AND e.privilege = ANY (x.privileges)
                        AND (e.grantee = 0 OR pg_has_role(a.oid, e.grantee, 'MEMBER'))
                    GROUP BY e.object, e.grantee, e.grantor, e.owner) e),
           format('REVOKE pg_write_all_data FROM %I, or from the role that it has this through', a.name))
    FROM jsonb_to_recordset(apps) AS a(oid oid, name name, sev text, takes oid[]),
    LATERAL (
      -- what it owns, or a role owns that it is a member of
      SELECT CASE WHEN o.owner = a.oid THEN CASE o.kind WHEN 't' THEN 'D401 role-owns-table' WHEN 'w' THEN 'D413 role-owns-around'
                 ELSE 'D402 role-owns-schema' END ELSE 'D403 role-in-owner' END AS code,
             CASE WHEN o.owner = a.oid THEN format('it owns %s', o.what)
                 ELSE format('it is a member of %I, which owns %s', pg_get_userbyid(o.owner),
                 o.what) END AS problem,
             CASE o.kind WHEN 'w' THEN 'whoever logs in as it can drop what is in it, and make tables without a wall in its place'
                         ELSE 'whoever logs in as it can drop the triggers' END AS consequence,
             CASE WHEN o.owner = a.oid THEN format(CASE o.kind WHEN 't' THEN 'ALTER TABLE %s OWNER TO ...' WHEN 's'
                 THEN 'ALTER SCHEMA %s OWNER TO ...'
                 ELSE 'ALTER %s OWNER TO ...' END, o.name)
                  ELSE format('REVOKE %I FROM %I', pg_get_userbyid(o.owner), a.name) END || ', or connect the application as another role'
                      AS remedy,
             NULL::oid[] AS objs, NULL::text[] AS privileges, false AS mild
        FROM (SELECT DISTINCT c.relowner, 't', format('table %s', f.name), f.name FROM jsonb_to_recordset(family) AS f(oid oid, name text)
            JOIN pg_class c ON c.oid = f.oid
              UNION SELECT o.owner, 's', 'schema fencing', 'fencing'
                      FROM (SELECT c_owner UNION SELECT n.nspowner FROM pg_namespace n WHERE n.oid = c_schema) o(owner)
              UNION ALL SELECT w.owner, 'w', w.what, w.name FROM jsonb_to_recordset(c_own) AS w(owner oid, what text, name text)
              UNION ALL SELECT DISTINCT c.relowner, 'o', format('%s %s', CASE c.relkind WHEN 'S' THEN 'sequence'
                  ELSE 'table' END, c.oid::regclass),
                               format('%s %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass)
                          FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND (c.relnamespace = c_schema AND c.relowner <> c_owner
                              OR c.oid = ANY (c_seqs) AND c.relnamespace <> c_schema)
              UNION ALL SELECT DISTINCT p.proowner, 'o', format('function %s', p.oid::regprocedure),
                  format('FUNCTION %s', p.oid::regprocedure)
                          FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proowner <> c_owner) o(owner, kind, what, name)
       WHERE pg_has_role(a.oid, o.owner, 'MEMBER')
      UNION ALL
      SELECT 'D404 role-table-rights', format('it has %s on %s', array_to_string(v.privileges, ', '), v.name),
             CASE WHEN 'TRIGGER' = ANY (v.privileges) THEN 'it can put a trigger there that changes what is written, after the check'
                  WHEN 'TRUNCATE' <> ALL (v.privileges) THEN 'its foreign keys can stop rows from being deleted'
                  WHEN v.wall = 'off' THEN 'it can empty the table, tokens included'
                      ELSE 'only the wall''s trigger stops it from emptying the table' END,
             NULL, ARRAY[v.oid], v.privileges, 'TRIGGER' <> ALL (v.privileges) AND ('TRUNCATE' <> ALL (v.privileges) OR v.wall <> 'off')
        FROM (SELECT f.oid, f.name, f.wall, array_agg(y.privilege ORDER BY y.privilege) AS privileges
                FROM jsonb_to_recordset(family) AS f(oid oid, name text, wall text) JOIN pg_class c ON c.oid = f.oid,
                    (VALUES ('TRIGGER'), ('TRUNCATE'),
                    ('REFERENCES')) y(privilege)
               WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_table_privilege(m, f.oid, y.privilege))
                   AND NOT pg_has_role(a.oid, c.relowner, 'MEMBER')
               GROUP BY f.oid, f.name, f.wall) v
      UNION ALL
      SELECT 'D405 role-create', 'it may create objects in schema fencing',
          'it can put something of its own in the place of what the wall calls',
             NULL, ARRAY[c_schema], ARRAY['CREATE'], false
       WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_schema_privilege(m, c_schema, 'CREATE'))
           AND NOT pg_has_role(a.oid, c_owner, 'MEMBER')
           AND NOT pg_has_role(a.oid, (SELECT n.nspowner FROM pg_namespace n WHERE n.oid = c_schema), 'MEMBER')
      UNION ALL
      SELECT 'D406 role-writes-registry', format('it may write %s', c.oid::regclass),
          'it can let go of any table, or move what tokens rest on',
             NULL, ARRAY[c.oid], ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'], false
        FROM pg_class c WHERE c.relnamespace = c_schema AND c.relkind IN ('r', 'p', 'v') AND NOT pg_has_role(a.oid, c.relowner, 'MEMBER')
         AND EXISTS (SELECT FROM unnest(a.takes) m
                      WHERE has_table_privilege(m, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
                          OR has_any_column_privilege(m, c.oid, 'INSERT, UPDATE'))
      UNION ALL
      SELECT 'D407 role-executes', format('it may run %s', string_agg(DISTINCT CASE p.prorettype WHEN 'trigger'::regtype
          THEN 'trigger functions'
          ELSE format('fencing.%I', p.proname) END, ', ')),
              'it can let go of tables, given the rights on the registry, or put the wall''s triggers to other uses',
             NULL, array_agg(p.oid), ARRAY['EXECUTE'], false
        FROM pg_proc p WHERE p.pronamespace = c_schema AND NOT pg_has_role(a.oid, p.proowner, 'MEMBER')
            AND EXISTS (SELECT FROM unnest(a.takes) m WHERE has_function_privilege(m, p.oid, 'EXECUTE'))
         AND (p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_' OR format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) = ANY (c_made))
         -- those that an application calls, and the doctor's
         AND p.proname NOT IN ('next_token', 'take', 'renew', 'release', 'lease_ttl', 'setting_name', 'incarnation_now', 'registered_above', 'allowed_functions', 'kept_columns', 'doctor')
         AND p.proname !~ '_bodies$'
         AND NOT starts_with(p.proname, 'doctor_')
      HAVING count(*) > 0
      UNION ALL
      SELECT 'D408 role-replication', 'it may set session_replication_role',
          'foreign keys and all triggers but the wall''s don''t hold for it',
             NULL, ARRAY(SELECT q.oid FROM pg_parameter_acl q WHERE q.parname = 'session_replication_role'), ARRAY['SET'], false
       WHERE EXISTS (SELECT FROM unnest(a.takes) m WHERE has_parameter_privilege(m, 'session_replication_role', 'SET'))
      UNION ALL
      -- from PostgreSQL 16 on it needs ADMIN OPTION on a role to take it, which makes it a member
      SELECT 'D414 role-makes-roles', CASE WHEN m.oid = a.oid THEN 'it has CREATEROLE'
          ELSE format('it is a member of %I, which %s', m.rolname,
                 CASE WHEN m.rolsuper THEN 'is a superuser' ELSE 'has CREATEROLE' END) END,
             CASE WHEN m.rolsuper THEN 'it can do all that a superuser can'
                 ELSE 'it can make itself a member of the owner of what is protected' END,
             CASE WHEN m.oid = a.oid THEN format('ALTER ROLE %I NOCREATEROLE', a.name)
                  ELSE format('REVOKE %I FROM %I, or from the role that it has this through', m.rolname, a.name) END, NULL, NULL, false
        FROM pg_roles m
       WHERE (m.rolsuper OR m.rolcreaterole AND current_setting('server_version_num')::int < 160000) AND pg_has_role(a.oid, m.oid, 'MEMBER')
      UNION ALL
      SELECT 'D415 role-server-files', format('it is a member of %I', m.rolname),
          'it can run what it likes as the server, or write the server''s files',
             format('REVOKE %I FROM %I, or from the role that it has this through', m.rolname, a.name), NULL, NULL, false
        FROM pg_roles m WHERE m.rolname IN ('pg_execute_server_program', 'pg_write_server_files') AND pg_has_role(a.oid, m.oid, 'MEMBER')
      ) x
   ORDER BY 3, 2, 4;

  RETURN QUERY
  SELECT 'warning', 'D410 role-rights-missing', format('role %I', a.name),
      format('it can write protected tables, but has no %s', string_agg(g.what,
      ', no ' ORDER BY g.n)),
         'the driver refuses to open a connection of it', string_agg(format('GRANT %s TO %I', g.what, a.name), '; ' ORDER BY g.n)
    FROM jsonb_to_recordset(apps) AS a(oid oid, name name, sev text),
    LATERAL (VALUES (1, 'USAGE ON SCHEMA fencing', has_schema_privilege(a.oid, c_schema, 'USAGE')),
                    (2, 'SELECT ON fencing.registry', has_table_privilege(a.oid, 'fencing.registry'::regclass, 'SELECT')),
                    (3, 'SELECT ON fencing.generation', has_table_privilege(a.oid, 'fencing.generation'::regclass, 'SELECT')),
                    (4, 'SELECT ON SEQUENCE fencing.write_epoch', coalesce(has_sequence_privilege(a.oid, to_regclass('fencing.write_epoch')::oid, 'SELECT'), true))) g(n,
                        what, has)
   WHERE NOT g.has AND a.sev = 'error' AND EXISTS (SELECT 1 FROM jsonb_to_recordset(family) AS f(oid oid)
           WHERE has_table_privilege(a.oid, f.oid, 'INSERT, UPDATE, DELETE') OR has_any_column_privilege(a.oid, f.oid, 'INSERT, UPDATE'))
   GROUP BY a.name;
END $$;

-- Settings of the database, of the judged roles, and of all roles.
CREATE FUNCTION fencing.doctor_settings(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_db     CONSTANT oid := (SELECT oid FROM pg_database WHERE datname = current_database());
BEGIN
  RETURN QUERY
  WITH setting AS (
    SELECT s.setrole, s.setdatabase, lower(split_part(e, '=', 1)) AS name, substr(e, position('=' IN e) + 1) AS value,
           CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'all roles' WHEN s.setrole = 0 THEN format('database %I', current_database())
               ELSE format('role %I', pg_get_userbyid(s.setrole)) END AS object,
           CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL' WHEN s.setrole = 0
               THEN format('ALTER DATABASE %I', current_database())
                ELSE format('ALTER ROLE %I', pg_get_userbyid(s.setrole)) || CASE s.setdatabase WHEN 0 THEN '' ELSE format(' IN DATABASE %I',
                    current_database()) END END AS alter
      FROM pg_db_role_setting s, unnest(s.setconfig) e
     WHERE s.setdatabase IN (0, c_db) AND (s.setrole = 0 OR s.setrole IN (SELECT a.oid FROM jsonb_to_recordset(apps) AS a(oid oid))
           OR s.setrole = (SELECT o.oid FROM pg_roles o WHERE o.rolname = session_user))
    UNION ALL
    SELECT 0, 0, s.name, s.reset_val, 'the server''s configuration', 'ALTER SYSTEM'
      FROM pg_settings s WHERE s.source IN ('configuration file', 'command line', 'environment variable', 'global')
          AND s.name <> 'search_path'),
  path AS (
    SELECT s.*, array_position(p.schemas, 'pg_catalog') AS at, p.schemas
      FROM setting s, LATERAL (SELECT array_agg(btrim(btrim(x), '"') ORDER BY i)
          FROM unnest(string_to_array(s.value, ',')) WITH ORDINALITY u(x, i)) p(schemas)
     WHERE s.name = 'search_path')
  SELECT 'warning', 'D501 setting-path', p.object, format('its search_path %s has schemas before pg_catalog', p.value),
         'their operators take the place of <, and the driver refuses protected writes there',
             format('%s SET search_path = ... without pg_catalog', p.alter)
    FROM path p WHERE p.at > 1
  UNION ALL
  SELECT 'error', 'D409 role-path-create', format('role %I', a.name),
      format('it may create schema or objects of %I, which its search_path has before pg_catalog', x.schema),
         'it can replace the operators that unqualified statements rest on', format('%s SET search_path = ... without pg_catalog', p.alter)
    FROM path p, jsonb_to_recordset(apps) AS a(oid oid, name name, takes oid[]), LATERAL (SELECT replace(q, '$user', a.name::text)
        FROM unnest(p.schemas[1:p.at - 1]) q) x(schema)
    LEFT JOIN pg_namespace n ON n.nspname = x.schema
   WHERE p.at > 1 AND (p.setrole = 0 OR p.setrole = a.oid)
     AND EXISTS (SELECT FROM unnest(a.takes) m WHERE CASE WHEN n.oid IS NULL THEN has_database_privilege(m, c_db, 'CREATE')
         ELSE has_schema_privilege(m, n.oid, 'CREATE') END)
  UNION ALL
  SELECT x.severity, x.code, s.object, format('it sets %s to %s', s.name, s.value), x.consequence, format('%s RESET %I', s.alter, s.name)
    FROM setting s, LATERAL (
      SELECT 'error', 'D502 setting-replication-role', 'foreign keys and all triggers but the wall''s don''t hold'
          WHERE s.name = 'session_replication_role'
          AND lower(s.value) NOT IN ('origin', 'local')
      UNION ALL SELECT 'error', 'D503 setting-strings',
          'the server reads a backslash in a text otherwise than the driver, which refuses protected writes there'
       WHERE s.name = 'standard_conforming_strings' AND lower(s.value) IN ('off', 'false', 'no', '0', 'of', 'n', 'f')
      UNION ALL SELECT 'warning', 'D504 setting-encoding',
          'a program that doesn''t set it itself has its texts read otherwise than they were checked'
       WHERE s.name = 'client_encoding' AND upper(replace(replace(s.value, '-', ''), '_', '')) NOT IN ('UTF8', 'UNICODE')
      UNION ALL SELECT 'error', 'D505 setting-token', 'every transaction has a token that no lock gave it' WHERE s.name ~ '^fencing[.]token'
          AND s.value <> '') x(severity, code, consequence);
END $$;
