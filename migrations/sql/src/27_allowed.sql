-- Functions that may be called although the driver takes them for ones that write protected tables: fencing.allowed_function,
-- fencing.allow_function(), fencing.disallow_function().
--
-- A function is kept by its schema, its name, the types of its arguments and a digest of its definition, and is allowed while a function of
-- the database has all four. So one that was replaced, renamed, moved or made again with another definition is not, and a dump takes the
-- allowance along. There is no column of type regprocedure, with which pg_upgrade refuses a database.
--
-- Known limits:
--   What an allowed function makes, such as a view of a protected table, isn't known before the next statement: code that the same statement
--   calls as well can go through it. Allow what makes objects only if they lead to no protected table.
--   The definition is the function's own: what it calls, and what the names in it mean by then, may change without a word.
--   A definition that another major version prints otherwise is another one: allow the function again after the upgrade. So it may be with
--   a body that the server has parsed (BEGIN ATOMIC, RETURN) after a dump and restore.

CREATE TABLE fencing.allowed_function (
  schema_name   name        NOT NULL,
  function_name name        NOT NULL,
  arguments     text        NOT NULL,
  digest        text        NOT NULL,
  reason        text        NOT NULL CHECK (reason ~ '[^[:space:]]'),
  allowed_by    name        NOT NULL DEFAULT session_user,
  allowed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (schema_name, function_name, arguments)
);

COMMENT ON TABLE fencing.allowed_function IS
    'Functions that the driver lets through although they may write protected tables: which, by whom, when and why. Written by fencing.allow_function() and fencing.disallow_function().';

COMMENT ON COLUMN fencing.allowed_function.arguments IS 'The types of its arguments, as regprocedure writes them.';

COMMENT ON COLUMN fencing.allowed_function.digest IS 'fencing.function_digest() when it was allowed: another definition is not allowed.';

CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON fencing.allowed_function
  FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed();

CREATE TRIGGER truncated AFTER TRUNCATE ON fencing.allowed_function
  FOR EACH STATEMENT EXECUTE FUNCTION fencing.registry_changed();

ALTER TABLE fencing.allowed_function ENABLE ALWAYS TRIGGER changed;

ALTER TABLE fencing.allowed_function ENABLE ALWAYS TRIGGER truncated;

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.allowed_function
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.allowed_function ENABLE ALWAYS TRIGGER refuse_driver;

-- Of the statement that makes the function again, in UTF8 and under settings of its own, and so the same in every session and in a database
-- of another encoding. NULL for an aggregate, which has no such statement, and for what isn't there.
CREATE FUNCTION fencing.function_digest(function oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET datestyle = 'ISO, MDY'
SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex' SET jit = off AS $$
SELECT encode({{keyDigest "pg_get_functiondef(p.oid)"}}, 'hex') FROM pg_proc p
 WHERE p.oid = function_digest.function AND p.prokind <> 'a'
$$;

-- As its owner, so that a role that may not read the table learns no more than the driver goes by. In SQL, as what it calls: the driver's
-- sessions needn't load PL/pgSQL for it.
CREATE FUNCTION fencing.allowed_functions() RETURNS SETOF oid LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
SELECT p.oid
  FROM fencing.allowed_function a
  JOIN pg_namespace n ON n.nspname = a.schema_name AND n.nspname NOT IN ('fencing', 'pg_catalog', 'information_schema')
  JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = a.function_name AND oidvectortypes(p.proargtypes) = a.arguments
 WHERE a.digest = fencing.function_digest(p.oid)
$$;

COMMENT ON FUNCTION fencing.allowed_functions() IS 'The functions that are allowed now: those of fencing.allowed_function that are as they were then.';

-- Refuses what is no function, or none that can be allowed; doing is what the caller is about to do with it.
CREATE FUNCTION fencing.check_function(function regprocedure, doing text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_function record;
  v_what text;
  v_hint text;
BEGIN
  SELECT p.oid, p.prokind, n.nspname, n.oid AS schema INTO v_function
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = check_function.function;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no function given to %', doing
      USING ERRCODE = 'undefined_function', HINT = 'Name an existing function with the types of its arguments, as in ''public.run(text)''.';
  END IF;
  IF v_function.nspname = 'fencing' THEN
    v_what := 'a function of fencing itself';  v_hint := 'Allow a function of your own.';
  ELSIF v_function.nspname IN ('pg_catalog', 'information_schema') OR v_function.oid::bigint < 16384 THEN  -- FirstNormalObjectId
    v_what := 'a function of the system';  v_hint := 'Allow a function of your own that calls it.';
  ELSIF v_function.nspname LIKE 'pg\_temp\_%' THEN
    v_what := 'a temporary function';  v_hint := 'No other session sees it; allow a permanent function.';
  ELSIF v_function.prokind = 'a' THEN
    v_what := 'an aggregate';  v_hint := 'Allow the functions that it is made of.';
  ELSE
    RETURN;
  END IF;
  RAISE EXCEPTION 'fencing: % is %, which can''t be allowed', check_function.function, v_what
    USING ERRCODE = 'wrong_object_type', HINT = v_hint, SCHEMA = v_function.nspname;
END $$;

CREATE FUNCTION fencing.allow_function(function regprocedure, reason text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  PERFORM fencing.refuse_driver('fencing.allow_function()');
  PERFORM fencing.check_function(allow_function.function, 'allow');
  IF reason IS NULL OR reason !~ '[^[:space:]]' THEN
    RAISE EXCEPTION 'fencing: no reason given to allow %', allow_function.function
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Say why it may be called; it is kept in fencing.allowed_function.';
  END IF;
  INSERT INTO fencing.allowed_function AS a (schema_name, function_name, arguments, digest, reason)
  SELECT n.nspname, p.proname, oidvectortypes(p.proargtypes), fencing.function_digest(p.oid), allow_function.reason
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = allow_function.function
      ON CONFLICT ON CONSTRAINT allowed_function_pkey
         DO UPDATE SET digest = excluded.digest, reason = excluded.reason, allowed_by = excluded.allowed_by, allowed_at = excluded.allowed_at
      WHERE (a.digest, a.reason) IS DISTINCT FROM (excluded.digest, excluded.reason);  -- an UPDATE bumps the generation
END $$;

COMMENT ON FUNCTION fencing.allow_function(regprocedure, text) IS
  'Has the driver let a function through although it may write protected tables, as long as its definition stays. Calling it again allows the present definition.';

CREATE FUNCTION fencing.disallow_function(function regprocedure) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  PERFORM fencing.refuse_driver('fencing.disallow_function()');
  IF NOT EXISTS (SELECT FROM pg_proc p WHERE p.oid = disallow_function.function) THEN
    RAISE EXCEPTION 'fencing: no function given to disallow'
      USING ERRCODE = 'undefined_function', HINT = 'Name an existing function. One that is gone is in fencing.allowed_function, from where its row can be deleted.';
  END IF;
  DELETE FROM fencing.allowed_function a USING pg_proc p, pg_namespace n
   WHERE p.oid = disallow_function.function AND n.oid = p.pronamespace
     AND (a.schema_name, a.function_name, a.arguments) = (n.nspname, p.proname, oidvectortypes(p.proargtypes));
END $$;

COMMENT ON FUNCTION fencing.disallow_function(regprocedure) IS
  'Ends what fencing.allow_function() did. A function that isn''t allowed stays so.';
