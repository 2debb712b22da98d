-- Whether the driver sends unguarded writes to a registered table in their guarded form: fencing.registry.driver_rewrite,
-- fencing.driver_rewrite().
--
-- It is for tables that are written by an ORM, whose statements nobody writes by hand. What can't be rewritten is refused as before.
--
-- Known limits:
--   The choice stands in the row and goes with it, as the level does: a table that is unregistered and registered again starts without.
--   A driver from before this migration doesn't read it, and refuses.

-- +goose Up

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE fencing.registry ADD COLUMN driver_rewrite boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN fencing.registry.driver_rewrite IS
  'The driver sends unguarded writes to the table in their guarded form. Set by fencing.driver_rewrite().';

-- +goose StatementBegin
CREATE FUNCTION fencing.driver_rewrite(tbl regclass, on_off boolean) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  o       record;
  v_taken text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.driver_rewrite()');
  -- the lock of fencing.register: what is found here holds until the row is written
  LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;
  SELECT coalesce(n.nspname, r.schema_name) AS nspname, coalesce(c.relname, r.table_name) AS relname, r.driver_rewrite AS present,
         EXISTS (SELECT 1 FROM fencing.registry x WHERE (x.schema_name, x.table_name) = (n.nspname, c.relname)) AS named INTO o
    FROM (SELECT tbl::oid) t(oid) LEFT JOIN pg_class c ON c.oid = t.oid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry r ON r.relid = t.oid;
  IF o.relname IS NULL THEN
    RAISE EXCEPTION 'fencing: no table given to choose rewriting for' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
  END IF;
  IF on_off IS NULL THEN
    RAISE EXCEPTION 'fencing: neither on nor off given for the rewriting of %.%', quote_ident(o.nspname), quote_ident(o.relname)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = 'Choose true (unguarded writes are sent in their guarded form) or false (they are refused).';
  END IF;
  IF o.present IS NULL THEN
    PERFORM fencing.check_table(tbl);  -- no hint to register what register refuses
    RAISE EXCEPTION 'fencing: %.% is not registered%', quote_ident(o.nspname), quote_ident(o.relname),
                    CASE WHEN o.named THEN ' itself, only another table under that name' ELSE '' END
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = format('Register it first: SELECT fencing.register(%L, ...).', format('%I.%I', o.nspname, o.relname));
  END IF;
  IF o.present = on_off THEN
    RETURN;  -- an UPDATE would bump the generation
  END IF;

  -- the row protects whatever has its name now, and a choice meant for tbl must not hold for another table
  SELECT format('%I.%I', n.nspname, c.relname) INTO v_taken
    FROM fencing.registry r JOIN pg_namespace n ON n.nspname = r.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = r.table_name
   WHERE r.relid = tbl AND c.oid <> tbl::oid AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = c.oid);
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: %.% was registered as %, and another table has that name now', quote_ident(o.nspname), quote_ident(o.relname), v_taken
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = format('Say first what holds for the table that has the name: SELECT fencing.register(%L, ...) or SELECT fencing.unregister(%1$L).', v_taken);
  END IF;
  UPDATE fencing.registry r SET driver_rewrite = on_off WHERE r.relid = tbl;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.driver_rewrite(regclass, boolean) IS
  'Chooses whether the driver sends unguarded writes to a registered table in their guarded form. Choosing the same again changes nothing.';

-- The function belongs to the owner of fencing.register, and who may run that may run this; PUBLIC and those whom ALTER DEFAULT
-- PRIVILEGES names may not. A GRANT ON ALL FUNCTIONS from before this migration doesn't reach it by itself.
-- +goose StatementBegin
DO $$
DECLARE
  v_new      CONSTANT regprocedure := 'fencing.driver_rewrite(regclass, boolean)';
  v_register CONSTANT regprocedure := 'fencing.register(regclass, text, name, text, regclass)';
  v_sql      text;
BEGIN
  SELECT format('ALTER FUNCTION %s OWNER TO %I', v_new, pg_get_userbyid(r.proowner)) INTO v_sql
    FROM pg_proc r, pg_proc p WHERE r.oid = v_register AND p.oid = v_new AND r.proowner <> p.proowner;
  IF FOUND THEN
    EXECUTE v_sql;
  END IF;
  FOR v_sql IN
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', v_new, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.oid = v_new AND a.grantee <> p.proowner
  LOOP
    EXECUTE v_sql;
  END LOOP;
  FOR v_sql IN
    SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', v_new, pg_get_userbyid(a.grantee)) || CASE WHEN bool_or(a.is_grantable) THEN ' WITH GRANT OPTION' ELSE '' END
      FROM pg_proc p, aclexplode(p.proacl) a
     WHERE p.oid = v_register AND a.grantee NOT IN (0, p.proowner)
     GROUP BY a.grantee
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);

-- +goose Down

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- a change like any other, for whoever follows the generation
UPDATE fencing.registry SET driver_rewrite = false WHERE driver_rewrite;

DROP FUNCTION fencing.driver_rewrite(regclass, boolean);
ALTER TABLE fencing.registry DROP COLUMN driver_rewrite;

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);
