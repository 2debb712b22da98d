-- How the driver holds each registered table: fencing.registry.driver_level and driver_rewrite, fencing.driver_level() and
-- driver_rewrite().
--
-- A code base adopts step by step: a table is registered, held at report until nothing is reported any more, then enforced.
-- enforce is the default, and a new row's level in any case, so that no table is let go of without a word.
--
-- Rewriting is for tables that are written by an ORM, whose statements nobody writes by hand: the driver sends unguarded writes in their
-- guarded form. What can't be rewritten is refused as without it.
--
-- Known limits:
--   Level and choice stand in the row, and fencing.register hands them on to the table that has the name now. A table unregistered and
--   registered again starts at enforce, and without rewriting.

-- Refuses a table whose row stands for another one, too, that has got its registered name: the driver protects both by the row, and what
-- is meant for tbl must not hold for the other. schema_name and table_name are what tbl is called.
CREATE FUNCTION fencing.check_name(tbl regclass, schema_name name, table_name name) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_taken text;
BEGIN
  SELECT format('%I.%I', n.nspname, c.relname) INTO v_taken
    FROM fencing.registry r JOIN pg_namespace n ON n.nspname = r.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = r.table_name
   WHERE r.relid = tbl AND c.oid <> tbl::oid AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = c.oid);
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: %.% was registered as %, and another table has that name now', quote_ident(schema_name),
        quote_ident(table_name), v_taken
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = schema_name, TABLE = table_name,
            HINT = format('Say first what holds for the table that has the name: SELECT fencing.register(%L, ...) or SELECT fencing.unregister(%1$L).',
                v_taken);
  END IF;
END $$;

CREATE FUNCTION fencing.driver_level(tbl regclass, level text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  v_table  record;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.driver_level()');
  FOR v_look IN 1..2 LOOP  -- as in fencing.wall
    SELECT coalesce(n.nspname, r.schema_name) AS nspname, coalesce(c.relname, r.table_name) AS relname, r.driver_level AS present,
           EXISTS (SELECT 1 FROM fencing.registry x WHERE (x.schema_name, x.table_name) = (n.nspname, c.relname)) AS named INTO v_table
      FROM (SELECT tbl::oid) t(oid) LEFT JOIN pg_class c ON c.oid = t.oid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN fencing.registry r ON r.relid = t.oid;
    IF v_table.relname IS NULL THEN
      RAISE EXCEPTION 'fencing: no table given to set the level of' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
    END IF;
    IF level IS NULL OR level NOT IN ('off', 'report', 'enforce') THEN
      RAISE EXCEPTION 'fencing: % for %.%', CASE WHEN level IS NULL THEN 'no level given' ELSE format('unknown level %L', level) END,
                      quote_ident(v_table.nspname), quote_ident(v_table.relname)
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = 'Choose ''off'' (the driver doesn''t look at the table), ''report'' (unguarded statements run and are reported) or ''enforce'' (they are refused).';
    END IF;
    IF v_table.present IS NULL THEN
      PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname, is_named => v_table.named);
    END IF;
    IF v_table.present = level THEN
      RETURN;  -- an UPDATE would bump the generation
    END IF;
    EXIT WHEN v_look = 2;
    LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;
  END LOOP;
  PERFORM fencing.check_name(tbl, v_table.nspname, v_table.relname);
  UPDATE fencing.registry r SET driver_level = level WHERE r.relid = tbl;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.driver_level', tbl, v_detail);
END $$;

COMMENT ON FUNCTION fencing.driver_level(regclass, text) IS
  'Sets the level at which the driver holds a registered table: off, report or enforce. Setting it again changes nothing.';

CREATE FUNCTION fencing.driver_rewrite(tbl regclass, on_off boolean) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  v_table  record;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.driver_rewrite()');
  FOR v_look IN 1..2 LOOP  -- as in fencing.wall
    SELECT coalesce(n.nspname, r.schema_name) AS nspname, coalesce(c.relname, r.table_name) AS relname, r.driver_rewrite AS present,
           EXISTS (SELECT 1 FROM fencing.registry x WHERE (x.schema_name, x.table_name) = (n.nspname, c.relname)) AS named INTO v_table
      FROM (SELECT tbl::oid) t(oid) LEFT JOIN pg_class c ON c.oid = t.oid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN fencing.registry r ON r.relid = t.oid;
    IF v_table.relname IS NULL THEN
      RAISE EXCEPTION 'fencing: no table given to choose rewriting for' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
    END IF;
    IF on_off IS NULL THEN
      RAISE EXCEPTION 'fencing: neither on nor off given for the rewriting of %.%', quote_ident(v_table.nspname), quote_ident(v_table.relname)
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = 'Choose true (unguarded writes are sent in their guarded form) or false (they are refused).';
    END IF;
    IF v_table.present IS NULL THEN
      PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname, is_named => v_table.named);
    END IF;
    IF v_table.present = on_off THEN
      RETURN;  -- an UPDATE would bump the generation
    END IF;
    EXIT WHEN v_look = 2;
    LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;
  END LOOP;
  PERFORM fencing.check_name(tbl, v_table.nspname, v_table.relname);
  UPDATE fencing.registry r SET driver_rewrite = on_off WHERE r.relid = tbl;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.driver_rewrite', tbl, v_detail);
END $$;

COMMENT ON FUNCTION fencing.driver_rewrite(regclass, boolean) IS
  'Chooses whether the driver sends unguarded writes to a registered table in their guarded form. Choosing the same again changes nothing.';
