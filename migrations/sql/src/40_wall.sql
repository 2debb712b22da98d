-- The wall: triggers with which PostgreSQL itself refuses stale and unguarded writes to a registered table, whoever sends them:
-- fencing.registry.wall_level, fencing.wall(), fencing.setting_name().
--
-- Locks. fencing.wall() takes SHARE ROW EXCLUSIVE on the table, its partitions and its children until the transaction ends: reads
-- go on, writes wait. It reads no rows, so that is a moment, but first it waits for the transactions that have written the table,
-- and whoever writes it meanwhile waits behind it: set lock_timeout, and try again. Level off, and a change of mode, drop triggers,
-- for which PostgreSQL takes ACCESS EXCLUSIVE. For a large or busy table take the steps apart, each a transaction of its own:
-- fencing.register, which may add the column; the application's guards; fencing.wall at report; at enforce. What is right already is left
-- so without a lock that outlasts the call; for the order of locks see fencing.lock_registry.
--
-- The trigger functions are made for each distinct token column, mode, resource and issuing sequence, so that what runs for each row
-- looks nothing up. They run as the owner of the schema: a writer needs no right here, to be let through or to be told why not. They
-- have no SET clause, which would cost more than the check, so each operator, function and type in them is qualified; and they look
-- at the column's type first, because a type of the table's owner could bring a cast, which would run as the owner of the schema.
--
-- Known limits:
--   Level attested asks that a transaction say a token, not that it hold the lock: who reads the row's own token and puts that into
--   the setting and the column passes in mode lease, and in DELETE. It stops mistakes, and no one who means to get past.
--   Mode lease below level attested: SET last_token = last_token passes, and so does a MERGE with two UPDATE actions of which one
--   names the column. A trigger that sorts between "~fencing_named" and "~fencing_update" sees ~token.
--   A trigger that sorts after "~fencing_update" can change the row: a token that it changes is caught, other values are not. One that
--   sorts before "!fencing_mark" can change the token unseen, and so can one after "~fencing_insert" that of EXCLUDED in an upsert; the
--   doctor finds those (D606) unless their functions certainly leave the token alone.
--   A row that moves to another partition is deleted and inserted: the UPDATE needs the setting of fencing.setting_name. So does what
--   foreign keys do by themselves: the rows that they update get the token of the setting, as do those of an UPDATE without a token
--   that a trigger sends.
--   Plain children made, and partitions attached, later: partitions have all but the TRUNCATE trigger, children nothing, until
--   fencing.wall is called again. A detached partition keeps its TRUNCATE trigger until fencing.wall('...', 'off') on it.
--   Where the token column or the sequence is renamed, writes fail until it is named back, or the table registered anew.
--   A table dropped and made again has no wall until fencing.register hands it on. Its owner and superusers can drop triggers;
--   pg_restore --disable-triggers leaves them at ENABLE, not ALWAYS: fencing.wall again puts both right.
--   The triggers also fire in a logical subscriber's apply worker, which stops at a DELETE and at tokens never issued there.
--   The bound by the sequence stops tokens that nobody was given; who takes the newest one from the sequence passes.
--   At report a negative token is left out of the write, and a stale write to a strict table is logged by two triggers.

-- the setting that carries the token of a resource; what Go's rewrite.SettingName says
CREATE FUNCTION fencing.setting_name(resource text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c_bytes CONSTANT bytea := convert_to(coalesce(resource, ''), 'UTF8');
  v_name  text;
BEGIN
  IF length(c_bytes) = 0 THEN
    RETURN 'fencing.token';
  END IF;
  SELECT string_agg(CASE WHEN c = 95 OR c BETWEEN 97 AND 122 OR c BETWEEN 48 AND 57 THEN chr(c) ELSE '$' || lpad(to_hex(c), 2, '0') END, ''
      ORDER BY i)
    INTO v_name FROM (SELECT i, get_byte(c_bytes, i) AS c FROM generate_series(0, length(c_bytes) - 1) i) x;
  IF length(v_name) > 57 THEN  -- with "token_" one more than an identifier may have
    RETURN 'fencing.token_$m' || left(encode(sha256(c_bytes), 'hex'), 40);
  END IF;
  RETURN 'fencing.token_' || v_name;
END $$;

COMMENT ON FUNCTION fencing.setting_name(text) IS
  'The name of the setting in which the wall looks for the token of a resource; null or empty: of the default token. SET LOCAL it.';

-- The one place that refuses. rel is the table that is written, which may be a partition or a child; the error names the registered
-- one, under which clients know it.
CREATE FUNCTION fencing.fail(reason text, level text, rel oid, op text, trg name, col name, mode text, resource text, token bigint,
    current bigint)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_schema name;
  v_table  name;
  v_name   text;
  v_other  text;  -- what was written, where it is not the registered table
  v_state  text := 'FN004';
  v_what   text;
  v_nested CONSTANT boolean := pg_trigger_depth() > 1;  -- it is written by a foreign key's action or a trigger
BEGIN
  IF fencing.is_repair(rel, token, current) THEN
    RETURN;
  END IF;
  WITH RECURSIVE up AS (
    SELECT rel AS oid, 0 AS depth
    UNION ALL
    SELECT i.inhparent, u.depth + 1 FROM up u JOIN pg_inherits i ON i.inhrelid = u.oid)
  SELECT n.nspname, c.relname, CASE WHEN u.oid <> rel THEN (
           SELECT format('%I.%I', wn.nspname, w.relname) FROM pg_class w JOIN pg_namespace wn ON wn.oid = w.relnamespace
               WHERE w.oid = rel) END
    INTO v_schema, v_table, v_other
    FROM up u LEFT JOIN fencing.registry r ON r.relid = u.oid
    JOIN pg_class c ON c.oid = u.oid JOIN pg_namespace n ON n.oid = c.relnamespace
   ORDER BY r.relid IS NULL, r.wall_level = 'off', u.depth LIMIT 1;
  IF v_table IS NULL THEN
    RAISE EXCEPTION 'fencing: no table given of which a write is refused' USING ERRCODE = 'undefined_table',
      HINT = 'fencing.fail() is for the triggers of walled tables.';
  END IF;
  v_name := format('%I.%I', v_schema, v_table);
  CASE reason
    WHEN 'stale' THEN
      v_state := 'FN001';
      v_what := CASE WHEN token = current AND v_nested
        THEN format('token %s on %s of %s, by a foreign key or a trigger, has been used for this row, or none was given: draw a token for each write, and put it into the setting %s of the transaction first',
            token, op, v_name, quote_literal(fencing.setting_name(resource)))
        WHEN token = current
        THEN format('token %s on %s of %s has been used for this row, or %I is not set: draw a token for each write', token, op,
            v_name, col)
        ELSE format('stale token %s on %s of %s, where %s has written: stop working on it, another has taken the lock', token, op, v_name,
            current) END;
    WHEN 'deleted' THEN  -- a tombstone
      v_state := 'FN001';
      v_what := CASE WHEN token = current
        THEN format('token %s on %s of %s, whose key was deleted under this token: draw a token for each write', token, op, v_name)
        ELSE format('stale token %s on %s of %s, whose key was deleted under token %s: stop working on it, another has taken the lock',
            token, op, v_name, current) END;
    WHEN 'missing' THEN
      v_state := 'FN002';
      v_what := CASE WHEN op = 'UPDATE' AND v_nested
        THEN format('%s of %s, by a foreign key or a trigger, without a token: put it into the setting %s of the transaction first', op, v_name,
            quote_literal(fencing.setting_name(resource)))
        WHEN op = 'DELETE' THEN format('%s from %s without a token: put it into the setting %s of the transaction first', op, v_name,
            quote_literal(fencing.setting_name(resource)))
        WHEN op = 'INSERT' THEN format('%s into %s without a token: set %I to the token of the lock', op, v_name, col)
        ELSE format('%s of %s without a token: set %I to the token of the lock, and compare it in the condition', op, v_name, col) END;
    WHEN 'unattested' THEN
      v_state := 'FN002';
      v_what := format('%s of %s under a token that the transaction does not attest: put it into the setting %s first', op, v_name,
                       quote_literal(fencing.setting_name(resource)));
    WHEN 'unissued' THEN
      v_state := 'FN003';
      v_what := format('token %s on %s of %s was never issued: take the token that the lock gives', token, op, v_name);
    WHEN 'other' THEN
      v_what := format('token %s on %s of %s is not the one that the transaction attests: write under the token in the setting %s', token,
          op, v_name,
                       quote_literal(fencing.setting_name(resource)));
    WHEN 'malformed' THEN
      v_what := format('the setting %s has no token on %s of %s: put a positive bigint into it',
          quote_literal(fencing.setting_name(resource)), op, v_name);
    WHEN 'truncate' THEN
      v_what :=
          format('TRUNCATE of %s is not allowed: delete its rows under a token, or take the wall off: SELECT fencing.wall(%L, ''off'')',
          v_name, v_name);
    WHEN 'late' THEN
      v_what :=
          format('a trigger set %I to %s on %s of %s, which was written under another token: have the trigger leave that column as it is',
          col, token, op, v_name);
    WHEN 'key' THEN
      v_what :=
          format('the primary key of %s is not what its tombstones were made for, so %s is refused: put the names and types of its columns back, or call fencing.tombstones(%L) '
                       'again', v_name, op, v_name);
    ELSE
      v_what := format('column %I of %s is not bigint any more: put the type back, then call fencing.wall again', col, v_name);
  END CASE;
  IF level = 'report' THEN
    RAISE LOG USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table, COLUMN = col, CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', mode, 'resource', resource, 'operation', op)
               || CASE WHEN v_other IS NULL THEN '{}' ELSE jsonb_build_object('relation', v_other) END;
  ELSE
    RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table, COLUMN = col,
        CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', mode, 'resource', resource, 'operation', op)
               || CASE WHEN v_other IS NULL THEN '{}' ELSE jsonb_build_object('relation', v_other) END;
  END IF;
END $$;

-- Whether the running transaction has written a row, whose xmin is given. A savepoint has an id of its own, which is newer than the
-- transaction's. Another transaction's id can be in progress, too, but no row that can be changed has such an id. A row that was frozen
-- long ago may have the number of an id that is still to come.
CREATE FUNCTION fencing.is_own_write(row_xmin xid) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c_ids   CONSTANT bigint := 4294967296;  -- how many numbers an xid can have
  v_own   CONSTANT bigint := pg_current_xact_id()::text::bigint;
  v_after CONSTANT bigint := ((row_xmin::text::bigint - v_own) % c_ids + c_ids) % c_ids;
BEGIN
  RETURN v_after = 0 OR v_after < c_ids / 2 AND coalesce(pg_xact_status((v_own + v_after)::text::xid8) = 'in progress', false);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN false;
END $$;

-- Refuses a sequence that is gone: without it the trigger functions would let every token through.
CREATE FUNCTION fencing.check_sequence(issued_by regclass) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    RAISE EXCEPTION 'fencing: the sequence that bounds the tokens, %, is gone', issued_by::oid
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Restore the sequence, or register the table with the one that its tokens come from now: SELECT fencing.register(...); fencing.doctor() has the statement (D301).';
  END IF;
END $$;

-- The bodies of the wall's trigger functions, as they run but for the names that format() puts in: see fencing.wall_functions. suffix is
-- what the name of the function ends with; mode and is_bounded say for which tables it is, null being all: those of the mode, and
-- those whose tokens a sequence bounds. They come from the templates in src/triggers.
--
-- The check of an UPDATE. In mode lease a negative token is a marked one, if it isn't the row's own; -1 is 0 marked.
CREATE FUNCTION fencing.wall_update_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('update', 'strict', true, $body${{body "update_strict" "strict" "bounded"}}$body$),
  ('update_attested', 'strict', true, $body${{body "update_strict" "strict" "bounded" "attested"}}$body$),
  ('update', 'strict', false, $body${{body "update_strict" "strict"}}$body$),
  ('update_attested', 'strict', false, $body${{body "update_strict" "strict" "attested"}}$body$),
  ('update', 'lease', true, $body${{body "update_lease" "lease" "bounded"}}$body$),
  ('update_attested', 'lease', true, $body${{body "update_lease" "lease" "bounded" "attested"}}$body$),
  ('update', 'lease', false, $body${{body "update_lease" "lease"}}$body$),
  ('update_attested', 'lease', false, $body${{body "update_lease" "lease" "attested"}}$body$)
$$;

-- The check of an INSERT. Below attested it looks at the note, too: in an upsert no trigger comes after it that could, and EXCLUDED has
-- what it lets through.
CREATE FUNCTION fencing.wall_insert_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('insert', NULL, true, $body${{body "insert" "bounded"}}$body$),
  ('insert_attested', NULL, true, $body${{body "insert" "bounded" "attested"}}$body$),
  ('insert', NULL, false, $body${{body "insert"}}$body$),
  ('insert_attested', NULL, false, $body${{body "insert" "attested"}}$body$)
$$;

-- The check of a DELETE, whose token is in the setting.
CREATE FUNCTION fencing.wall_delete_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('delete', 'strict', true, $body${{body "delete" "strict" "bounded"}}$body$),
  ('delete', 'strict', false, $body${{body "delete" "strict"}}$body$),
  ('delete', 'lease', true, $body${{body "delete" "lease" "bounded"}}$body$),
  ('delete', 'lease', false, $body${{body "delete" "lease"}}$body$)
$$;

-- The marks come before other triggers and note the token that the statement writes, for ~fencing_late to compare with. The note is for
-- the depth at which the trigger runs, so that a write by a trigger in between leaves it alone. It is taken by the trigger's condition,
-- which costs less than a call and is never true. In mode lease "~fencing_named", the last trigger before the check, says that the statement
-- names the column: only then it runs, and makes the token negative. What can't be a token counts as none.
CREATE FUNCTION fencing.wall_other_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('mark', NULL, NULL::boolean, $body${{body "mark"}}$body$),
  ('named', 'lease', NULL, $body${{body "named"}}$body$),
  ('truncate', NULL, NULL, $body${{body "truncate"}}$body$),
  ('late', NULL, NULL, $body${{body "late"}}$body$)
$$;

-- Whether the schema has a trigger function as it would be made: of this name and body, and with these settings. Whose it is, is the doctor's matter.
CREATE FUNCTION fencing.has_function(name text, body text, is_definer boolean, settings text[]) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.proname = has_function.name::name AND p.pronargs = 0 AND p.pronamespace = 'fencing'::regnamespace AND l.lanname = 'plpgsql'
      AND p.prosrc = has_function.body AND p.prosecdef = has_function.is_definer AND p.proconfig IS NOT DISTINCT FROM has_function.settings);
END $$;

-- Makes the trigger functions for a table, or makes them right again, and returns what their names begin with. The name says all that is
-- written in them, as long as names are quoted in one way only. It runs as the owner of the schema, who owns them; whoever may register may
-- put triggers on them. look: makes none, and returns null where one is not right.
CREATE FUNCTION fencing.wall_functions(token_column name, mode text, resource text, issued_by regclass, look boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
DECLARE
  v_seq    CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = issued_by);
  v_prefix CONSTANT text := 'wall_' || {{nameDigest `token_column, mode, resource, v_seq`}} || '_';
  v_sql    text;
  v_body   text;
  v_is_definer boolean;
  v_function record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall_functions()');
  IF num_nulls(token_column, wall_functions.mode) > 0 THEN
    RAISE EXCEPTION 'fencing: no token column or no mode given to make the functions of a wall for'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'fencing.wall() makes them: SELECT fencing.wall(''...'').';
  END IF;
  PERFORM fencing.check_sequence(issued_by);
  IF issued_by IS NOT NULL AND NOT has_sequence_privilege(current_user, issued_by, 'SELECT, USAGE') THEN
    RAISE EXCEPTION 'fencing: role % owns the functions of the wall and can''t read sequence %', quote_ident(current_user), issued_by
      USING ERRCODE = 'insufficient_privilege', HINT = format('GRANT SELECT ON SEQUENCE %s TO %I', issued_by, current_user);
  END IF;
  FOR v_function IN
    SELECT b.suffix, b.body
      FROM (SELECT * FROM fencing.wall_update_bodies() UNION ALL SELECT * FROM fencing.wall_insert_bodies()
            UNION ALL SELECT * FROM fencing.wall_delete_bodies() UNION ALL SELECT * FROM fencing.wall_other_bodies()) b
     WHERE coalesce(b.mode = wall_functions.mode, true) AND coalesce(b.is_bounded = (v_seq IS NOT NULL), true)
  LOOP
    v_body := format(v_function.body, token_column, wall_functions.mode, resource, fencing.setting_name(resource), v_seq);
    v_is_definer := v_function.suffix NOT IN ('mark', 'named');
    CONTINUE WHEN fencing.has_function(v_prefix || v_function.suffix, v_body, v_is_definer, NULL);
    IF look THEN
      RETURN NULL;
    END IF;
    EXECUTE format('CREATE OR REPLACE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql %s AS %L', v_prefix || v_function.suffix,
                   CASE WHEN v_is_definer THEN 'SECURITY DEFINER' ELSE '' END, v_body);
  END LOOP;
  IF look THEN
    RETURN v_prefix;
  END IF;
  FOR v_sql IN SELECT r FROM fencing.function_rights(v_prefix, 'fencing.wall(regclass, text)'::regprocedure) r LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_prefix;
END $$;

-- Drops the trigger functions that no trigger runs any more: those whose names begin with one of the prefixes, or all. They go together
-- with the others of their prefix. What runs a function is found by its dependencies, which have an index.
CREATE FUNCTION fencing.wall_sweep(prefixes text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_sql text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall_sweep()');
  IF prefixes IS NULL THEN
    SELECT array_agg(DISTINCT left(p.proname, 22)) INTO prefixes FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^wall_[0-9a-f]{16}_' AND p.prorettype = 'trigger'::regtype;
  END IF;
  FOR v_sql IN
    WITH func AS (
      SELECT p.oid, x.prefix, EXISTS (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
          AND d.classid = 'pg_trigger'::regclass) AS runs
        FROM unnest(prefixes) x(prefix) JOIN pg_proc p ON p.proname >= x.prefix::name AND p.proname < (x.prefix || '~')::name
       WHERE x.prefix ~ '^wall_[0-9a-f]{16}_$' AND p.pronamespace = 'fencing'::regnamespace AND p.prorettype = 'trigger'::regtype)
    SELECT format('DROP FUNCTION %s', f.oid::regprocedure) FROM func f
        WHERE NOT EXISTS (SELECT 1 FROM func g WHERE g.prefix = f.prefix AND g.runs)
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;

-- The walled tables whose walls a table has that is a partition or a child: those next above it. A child may have several.
CREATE FUNCTION fencing.walls_above(rel oid) RETURNS SETOF fencing.registry LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE up AS (
    SELECT i.inhparent AS oid FROM pg_inherits i WHERE i.inhrelid = rel
    UNION
    SELECT i.inhparent FROM up u JOIN pg_inherits i ON i.inhrelid = u.oid
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = u.oid AND x.wall_level <> 'off'))
  SELECT r.* FROM up u JOIN fencing.registry r ON r.relid = u.oid WHERE r.wall_level <> 'off';
END $$;

-- Refuses walls of several parents on one child if the child can't have both: it has one trigger of each kind.
CREATE FUNCTION fencing.check_parents(tbl regclass) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_child record;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = tbl) THEN
    RETURN;
  END IF;
  -- only a child can have several, and a partition can't
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid
    UNION
    SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't'
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off'))
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, format('%I.%I', r.schema_name, r.table_name) AS mine,
         format('%I.%I', w.schema_name, w.table_name) AS other INTO v_child
    FROM member m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN fencing.registry r ON r.relid = tbl,
         fencing.walls_above(m.oid) w
   WHERE m.oid <> tbl::oid AND NOT c.relispartition AND w.relid <> tbl
     AND ((w.token_column, w.mode, w.resource, w.issued_by) IS DISTINCT FROM (r.token_column, r.mode, r.resource, r.issued_by)
          OR num_nonnulls(w.seal_resource, w.seal_column) = 1 AND num_nonnulls(r.seal_resource, r.seal_column) = 1
             AND (w.seal_resource, w.seal_column) IS DISTINCT FROM (r.seal_resource, r.seal_column))
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: % inherits from % and from %, whose walls differ', v_child.name, v_child.mine, v_child.other
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_child.nspname, TABLE = v_child.relname,
            HINT = format('A child has one wall. Register both with the same mode, token column, resource and sequence, and the same seal, or end one of the inheritances: ALTER TABLE %s NO INHERIT ....',
                v_child.name);
  END IF;
END $$;

-- Refuses a table on which no trigger can be put, or one of somebody else would be replaced: one whose name matches names.
CREATE FUNCTION fencing.check_triggers(tbl regclass, names text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_found record;
BEGIN
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid)
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, t.tgname INTO v_found
    FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid AND t.tgname ~ check_triggers.names JOIN pg_proc p ON p.oid = t.tgfoid
    JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE p.pronamespace <> 'fencing'::regnamespace
     -- where others are fencing's, it was put in the place of one, and gives way to that again
     AND NOT EXISTS (SELECT FROM pg_trigger o JOIN pg_proc f ON f.oid = o.tgfoid
                      WHERE o.tgrelid = m.oid AND o.tgname ~ check_triggers.names AND f.pronamespace = 'fencing'::regnamespace)
   ORDER BY m.oid, t.tgname LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: % has a trigger called %, whose function is none of fencing', v_found.name, quote_ident(v_found.tgname)
      USING ERRCODE = 'duplicate_object', SCHEMA = v_found.nspname, TABLE = v_found.relname,
            HINT = format('Give it another name: ALTER TRIGGER %I ON %s RENAME TO .... Or, if it was put in the place of fencing''s own, DROP TRIGGER %1$I ON %2$s.',
                v_found.tgname, v_found.name);
  END IF;
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid, false AS pending
    UNION
    SELECT i.inhrelid, i.inhdetachpending FROM member m JOIN pg_inherits i ON i.inhparent = m.oid)
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, i.inhparent::regclass AS parent INTO v_found
    FROM member m JOIN pg_inherits i ON i.inhrelid = m.oid AND i.inhdetachpending JOIN pg_class c ON c.oid = m.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE m.pending ORDER BY m.oid LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: partition % is being detached, and no trigger can be put on it until that has ended', v_found.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_found.nspname, TABLE = v_found.relname,
            HINT = format('If it was interrupted, end it: ALTER TABLE %s DETACH PARTITION %s FINALIZE.', v_found.parent, v_found.name);
  END IF;
END $$;

-- Makes the triggers of a table, its partitions and its children what the level asks for. What is right already stays as it is, and
-- its table is not locked. A trigger is right if the server writes it as it was written here: it keeps columns by their numbers, and
-- so follows one that is renamed. look: changes nothing, and returns the mode in which the tables have to be locked for what would be
-- changed, or null, if nothing would be.
CREATE FUNCTION fencing.wall_apply(tbl regclass, level text, token_column name, mode text, resource text, issued_by regclass,
    look boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
    SET plan_cache_mode = force_generic_plan SET quote_all_identifiers = off AS $$
DECLARE
  c_levels CONSTANT text[] := ARRAY['report', 'enforce', 'attested'];
  v_prefix text := '';
  -- conditions, as the server writes them
  c_noted CONSTANT text :=
      format('(set_config((''fencing.mark''::text || ((pg_trigger_depth() + 1))::text), (new.%I)::text, true) IS NULL)',
      coalesce(token_column, ''));
  c_note CONSTANT text := 'current_setting((''fencing.mark''::text || ((pg_trigger_depth() + 1))::text), true)';
  c_changed CONSTANT text := format('((new.%I)::text IS DISTINCT FROM %s)', coalesce(token_column, ''), c_note);
  v_all    text[];
  v_old    text[];  -- prefixes of the functions that the triggers ran before
  v_strays boolean; -- partitions have triggers of their own, from before they were attached
  v_sql    text;
  v_parent record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall_apply()');
  IF level <> 'off' THEN
    PERFORM fencing.check_parents(tbl);
    PERFORM fencing.check_triggers(tbl, '^(!fencing_mark(_insert)?|~fencing_(named|update|insert|delete|truncate|late|late_insert))$');
    PERFORM fencing.refuse_moved(tbl, 'token');
    v_prefix := fencing.wall_functions(token_column, mode, resource, issued_by, look);
    IF v_prefix IS NULL THEN
      RETURN 'ACCESS EXCLUSIVE';
    END IF;
  END IF;
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid
    UNION
    SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid  -- a child with a wall of its own keeps that
      JOIN pg_class k ON k.oid = i.inhrelid AND k.relpersistence <> 't'
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  kind(name, suffix, attestable, event, for_each) AS (VALUES
    ('!fencing_mark', 'mark', false, format(CASE mode WHEN 'strict' THEN 'BEFORE UPDATE' ELSE 'BEFORE UPDATE OF %I' END,
        token_column), format('ROW WHEN (%s)', c_noted)),
    ('!fencing_mark_insert', 'mark', false, 'BEFORE INSERT', format('ROW WHEN (%s)', c_noted)),
    ('~fencing_named', 'named', false, format('BEFORE UPDATE OF %I', token_column), 'ROW'),
    ('~fencing_update', 'update', true, 'BEFORE UPDATE', 'ROW'),
    ('~fencing_insert', 'insert', true, 'BEFORE INSERT', 'ROW'),
    ('~fencing_delete', 'delete', false, 'BEFORE DELETE', 'ROW'),
    ('~fencing_truncate', 'truncate', false, 'BEFORE TRUNCATE', 'STATEMENT'),
    -- the row's token has to be the one that the mark noted; a write that names none, which lease at level report lets through, has no note
    ('~fencing_late', 'late', false, 'AFTER UPDATE', NULL),  -- see wanted
    ('~fencing_late_insert', 'late', false, 'AFTER INSERT', format('ROW WHEN (((new.%I <= 0) OR %2$s))', token_column, c_changed))),
  wanted AS (
    SELECT m.oid, k.name, format('%I.%I', n.nspname, c.relname) AS rel, v_prefix || k.suffix || CASE WHEN k.attestable
        AND y.strictest = 'attested' THEN '_attested' ELSE '' END AS func,
           k.event, coalesce(k.for_each, format(CASE
             -- ~fencing_update says in the note if the row gets the token that it has
             WHEN mode = 'strict' THEN 'ROW WHEN ((((new.%I <= old.%1$I) AND (((new.%1$I)::text || '' again''::text) IS DISTINCT FROM %3$s)) OR ((new.%1$I > old.%1$I) AND %2$s)))'
             WHEN y.strictest = 'report' THEN 'ROW WHEN ((new.%I < old.%1$I))' ELSE 'ROW WHEN (((new.%I < old.%1$I) OR %2$s))' END,
                 token_column, c_changed, c_note)) AS for_each, y.strictest
      FROM member m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace,
      LATERAL (SELECT level WHERE m.oid = tbl::oid OR c.relispartition
               UNION ALL  -- a child of several
               SELECT c_levels[greatest(array_position(c_levels, level), max(array_position(c_levels, w.wall_level)))]
                   FROM fencing.walls_above(m.oid) w
                WHERE m.oid <> tbl::oid AND NOT c.relispartition AND w.relid <> tbl HAVING m.oid <> tbl::oid
                    AND NOT c.relispartition) y(strictest), kind k
     WHERE level <> 'off' AND (k.suffix <> 'named' OR mode = 'lease')
       AND (NOT c.relispartition OR m.oid = tbl::oid OR k.suffix = 'truncate')),  -- a partition has copies of the others
  present AS (
    SELECT t.tgrelid AS oid, t.tgname AS name, pg_get_triggerdef(t.oid) AS def, left(p.proname, 22) AS prefix
      FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid,
          LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^wall_[0-9a-f]{16}_')
  SELECT array_agg(CASE
           WHEN w.oid IS NULL THEN format('DROP TRIGGER %I ON %s', p.name, p.oid::regclass)
           ELSE 'CREATE OR REPLACE ' || d.def
         -- a partition's own triggers first: one that has the name of the root's would be made part of that, and not be dropped any more
         END ORDER BY w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid DESC, coalesce(w.oid, p.oid) <> tbl::oid,
             coalesce(w.oid, p.oid), w.oid IS NULL, coalesce(w.name, p.name)),
         array_agg(DISTINCT p.prefix) FILTER (WHERE p.prefix IS NOT NULL),
             coalesce(bool_or(w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid), false) INTO v_all, v_old, v_strays
    FROM wanted w FULL JOIN present p ON p.oid = w.oid AND p.name = w.name JOIN pg_class x ON x.oid = coalesce(w.oid, p.oid),
    LATERAL (SELECT format('TRIGGER %I %s ON %s FOR EACH %s EXECUTE FUNCTION fencing.%I(%L)', w.name, w.event, w.rel, w.for_each, w.func,
        w.strictest)
              WHERE w.oid IS NOT NULL UNION ALL SELECT NULL WHERE w.oid IS NULL) d(def)
   WHERE d.def IS NULL OR p.def IS DISTINCT FROM 'CREATE ' || d.def;
  IF look THEN
    RETURN fencing.lock_needed(tbl, v_all, nullif(v_prefix, ''), 'fencing.wall(regclass, text)'::regprocedure);
  END IF;
  IF v_strays THEN  -- the root before its partitions, as whoever else locks them
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', tbl);
  END IF;
  FOREACH v_sql IN ARRAY coalesce(v_all, '{}') LOOP
    EXECUTE v_sql;
  END LOOP;
  IF level = 'off' THEN
    -- other walled parents take the table and its children back
    FOR v_parent IN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid
        UNION
        SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't'
         WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off'))
      SELECT DISTINCT g.* FROM member m JOIN pg_class c ON c.oid = m.oid, fencing.walls_above(m.oid) g
       WHERE g.relid <> tbl AND (m.oid = tbl::oid OR NOT c.relispartition)
    LOOP
      PERFORM fencing.wall_apply(v_parent.relid, v_parent.wall_level, v_parent.token_column, v_parent.mode, v_parent.resource,
          v_parent.issued_by);
    END LOOP;
  ELSE
    -- ALWAYS, or session_replication_role = replica would pass; also of copies that somebody turned off on a partition
    FOR v_sql IN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't')
      SELECT format('ALTER TABLE %s ', m.oid::regclass) || string_agg(format('ENABLE ALWAYS TRIGGER %I', t.tgname), ', ' ORDER BY t.tgname)
        FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid,
            LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
       WHERE t.tgenabled <> 'A' AND p.pronamespace = 'fencing'::regnamespace AND starts_with(p.proname, v_prefix)
       GROUP BY m.oid ORDER BY m.oid <> tbl::oid, m.oid
    LOOP
      EXECUTE v_sql;
    END LOOP;
  END IF;
  v_old := array_remove(v_old, v_prefix);
  IF cardinality(v_old) > 0 THEN
    PERFORM fencing.wall_sweep(v_old);
  END IF;
  RETURN NULL;
END $$;

-- Whatever changes the row changes the triggers with it: fencing.wall, fencing.register, fencing.unregister or a plain UPDATE. On
-- TRUNCATE they stay. Not on INSERT: a restore writes the rows first.
CREATE FUNCTION fencing.wall_changed() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.wall_level <> 'off' AND (TG_OP = 'DELETE' OR OLD.relid IS DISTINCT FROM NEW.relid OR NEW.wall_level = 'off')
     AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = OLD.relid) THEN
    PERFORM fencing.wall_apply(OLD.relid, 'off', OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by);
  END IF;
  -- a trigger is dropped by the table's owner only; one that stays does nothing
  IF (TG_OP = 'DELETE' OR OLD.relid IS DISTINCT FROM NEW.relid)
     AND EXISTS (SELECT FROM pg_class c WHERE c.oid = OLD.relid AND pg_has_role(c.relowner, 'USAGE')) THEN
    PERFORM fencing.keep_columns(OLD.relid, r, NULL) FROM unnest('{token,key,seal}'::text[]) r;
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.wall_level <> 'off'
     AND (OLD.relid, OLD.wall_level, OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by)
         IS DISTINCT FROM (NEW.relid, NEW.wall_level, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by)
     AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = NEW.relid) THEN
    PERFORM fencing.wall_apply(NEW.relid, NEW.wall_level, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER wall AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.wall_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER wall;

-- Without a level it is enforce, or attested where the wall is at that: who calls it again to mend the wall doesn't lower it.
CREATE FUNCTION fencing.wall(tbl regclass, level text DEFAULT 'at least enforce') RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_table   record;
  v_is_left boolean;
  v_asked   CONSTANT text := level;
  v_lock    text;
  v_detail  text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall()');
  -- What is right already ends with the first look. Before the second one the locks are taken: what is found by that holds until the row is
  -- written.
  FOR v_look IN 1..2 LOOP
    SELECT n.nspname, c.relname, r.relid, r.wall_level, r.token_column, r.mode, r.resource, r.issued_by, r.tombstones,
           EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = r.token_column AND NOT a.attisdropped) AS has_column,
           EXISTS (SELECT 1 FROM fencing.registry x WHERE (x.schema_name, x.table_name) = (n.nspname, c.relname)) AS named INTO v_table
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'fencing: no table given to put a wall on' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
    END IF;
    level := CASE WHEN v_asked <> 'at least enforce' OR v_asked IS NULL THEN v_asked WHEN v_table.wall_level = 'attested' THEN 'attested' ELSE 'enforce' END;
    IF level IS NULL OR level NOT IN ('off', 'report', 'enforce', 'attested') THEN
      RAISE EXCEPTION 'fencing: % for the wall of %.%', CASE WHEN level IS NULL THEN 'no level given'
          ELSE format('unknown level %L', level) END,
                      quote_ident(v_table.nspname), quote_ident(v_table.relname)
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = 'Choose ''off'' (no triggers), ''report'' (they log what they would refuse), ''enforce'' (they refuse) or ''attested'' (they also ask for the setting that fencing.setting_name names).';
    END IF;
    v_is_left := v_table.relid IS NULL;
    IF v_is_left THEN
      IF level <> 'off' OR NOT EXISTS (
        SELECT 1 FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
         WHERE t.tgrelid = tbl AND t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace
             AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_') THEN
        -- there are none left on a partition that was detached, or come with a dump of the table
        PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname, is_named => v_table.named);
      END IF;
    END IF;
    IF level <> 'off' THEN
      IF NOT v_table.has_column THEN
        RAISE EXCEPTION 'fencing: %.% has no column %', quote_ident(v_table.nspname), quote_ident(v_table.relname),
            quote_ident(v_table.token_column)
          USING ERRCODE = 'undefined_column', SCHEMA = v_table.nspname, TABLE = v_table.relname,
                HINT = 'Give the token column its name back, or call fencing.unregister and fencing.register with the new one.';
      END IF;
      PERFORM fencing.check_token_column(tbl, v_table.token_column);
    END IF;
    EXIT WHEN v_look = 2;
    IF v_is_left OR v_table.wall_level <> level THEN
      -- triggers are dropped, or some that are there may be: of a parent's wall, or left over
      v_lock := CASE WHEN level = 'off' OR v_table.wall_level = 'off' AND EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE t.tgrelid = tbl AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_') THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END;
    ELSE
      SELECT CASE WHEN 'ACCESS EXCLUSIVE' IN (x.wall, x.tombs, x.seal) THEN 'ACCESS EXCLUSIVE' ELSE coalesce(x.wall, x.tombs, x.seal) END INTO v_lock
        FROM (SELECT fencing.wall_apply(tbl, level, v_table.token_column, v_table.mode, v_table.resource, v_table.issued_by, look => true),
                CASE WHEN v_table.tombstones OR level = 'off' THEN fencing.tombstone_apply(tbl, level, v_table.token_column, v_table.mode,
                  v_table.resource, v_table.issued_by, look => true) END, fencing.seal_apply(tbl, look => true)) x(wall, tombs, seal);
      IF v_lock IS NULL THEN
        RETURN;
      END IF;
    END IF;
    PERFORM fencing.lock_registry(tbl, v_lock);
  END LOOP;
  IF v_is_left THEN
    PERFORM fencing.wall_apply(tbl, 'off', NULL, NULL, NULL, NULL);
  ELSIF v_table.wall_level <> level THEN
    UPDATE fencing.registry r SET wall_level = level WHERE r.relid = tbl;
  ELSE
    PERFORM fencing.wall_apply(tbl, level, v_table.token_column, v_table.mode, v_table.resource, v_table.issued_by);
  END IF;
  -- a change of level brings and takes the triggers of tombstones and seals by itself, but for those that the row doesn't ask for
  IF level = 'off' THEN
    PERFORM fencing.tombstone_apply(tbl, 'off', NULL, NULL, NULL, NULL);
  ELSIF v_table.wall_level = level THEN
    PERFORM fencing.tombstone_apply(r.relid, r.wall_level, r.token_column, r.mode, r.resource, r.issued_by)
       FROM fencing.registry r WHERE r.relid = tbl AND r.tombstones;
  END IF;
  IF v_is_left OR v_table.wall_level = level THEN
    PERFORM fencing.seal_apply(tbl);
  END IF;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.wall', tbl, v_detail);
END $$;

COMMENT ON FUNCTION fencing.wall(regclass, text) IS
  'Has PostgreSQL itself refuse stale and unguarded writes to a registered table: off, report, enforce or attested; by default enforce, or attested where it is that. Calling it again mends what is missing.';
