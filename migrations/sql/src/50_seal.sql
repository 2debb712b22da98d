-- The seal, for tables that are bound to a lease: fencing.epoch, fencing.seal(), fencing.unseal().
--
-- The wall compares a write with the row's token, so a row that the new holder hasn't written yet still takes the old one's. The
-- seal compares with the token of the lease itself, its epoch: from the moment of take-over the old holder is shut out of every row,
-- and of INSERT. Equal, not newer: a larger token is another lease's.
--
-- Locks. A write shares an advisory lock of its lease until its transaction ends, and then reads the epoch; who takes the lease has
-- that lock alone while it raises the epoch. A lock of the lock manager and not of a row, because its queue is in order: those that
-- share a row's lock let in more of them past one who waits to update it, and many busy writers kept a take-over waiting for seconds.
-- At REPEATABLE READ and above a write also locks a row of the epoch FOR SHARE, which ends one with an older snapshot (40001); these
-- are 16 for each lease, one for each sixteenth of the backends, since many sharers of one row cost more. Renewing and releasing touch
-- fencing.lease only, and wait for no writer. fencing.seal takes the locks of fencing.wall.
--
-- Known limits:
--   A take-over waits for the open transactions that have written under the lease, those that are paused too, and writes that come
--   meanwhile wait behind it. idle_in_transaction_session_timeout, or transaction_timeout, bounds that; see docs/seal.md.
--   A transaction that writes, and then takes, renews or releases the same lease, can deadlock (40P01) with one that takes it.
--   Where writers wait for each other's rows while a take-over waits for one of them, deadlock_timeout passes before they go on.
--   The lock's key is a hash of the lease's name, of 64 bits, as 32 are the same for some pairs of many thousands; whoever may connect
--   can take advisory locks, and with this one hold up its writers.
--   A transaction that began before a take-over is over at REPEATABLE READ and above, the new holder's too.
--   The column that names the lease can't be dropped without CASCADE, nor get another type, until fencing.unseal.
--   A trigger that sorts after "~fencing_zseal" can change the column that names the lease; the doctor finds it (D601).
--   Below level attested SET last_token = last_token passes for rows that the present holder has written, as at the wall.
--   fencing.epoch has 16 rows for each lease that was ever taken, which take writes. They stay when the row of fencing.lease is
--   deleted, so that an epoch never falls. Deleted themselves, they refuse all writes until the lease is taken again.

CREATE TABLE fencing.epoch (
  resource text     NOT NULL,
  stripe   smallint NOT NULL CHECK (stripe BETWEEN 0 AND 15),
  token    bigint   NOT NULL,
  PRIMARY KEY (resource, stripe)
) WITH (fillfactor = 50);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.epoch
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.epoch ENABLE ALWAYS TRIGGER refuse_driver;

COMMENT ON TABLE fencing.epoch IS
    'The newest token of each lease, sixteen times over, for sealed tables to compare with. Written by the trigger of fencing.lease.';

CREATE FUNCTION fencing.raise_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_token bigint;
BEGIN
  IF TG_RELID <> 'fencing.lease'::regclass THEN  -- by a trigger of somebody's own
    RAISE EXCEPTION 'fencing: fencing.raise_epoch() is for fencing.lease, and not for a trigger on %', TG_RELID::regclass
      USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, HINT = 'Drop the trigger.';
  END IF;
  PERFORM pg_advisory_xact_lock({{leaseLockKey "NEW.resource"}});  -- waits for the writers
  -- a row that is missing must not come back below the others
  SELECT greatest(NEW.token, max(e.token)) INTO v_token FROM fencing.epoch e WHERE e.resource = NEW.resource;
  INSERT INTO fencing.epoch AS e (resource, stripe, token) SELECT NEW.resource, s, v_token FROM generate_series(0, 15) s ORDER BY s
  ON CONFLICT (resource, stripe) DO UPDATE SET token = EXCLUDED.token WHERE e.token < EXCLUDED.token;
  RETURN NULL;
END $$;

-- not for renew and release, which leave the token alone
CREATE TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch();

ALTER TABLE fencing.lease ENABLE ALWAYS TRIGGER epoch;

-- The one place that refuses; compare fencing.fail. lease is the name that was looked for, col the column that has it, if one does;
-- its name is printed only where it is fixed. was is the row's own token.
CREATE FUNCTION fencing.seal_fail(reason text, level text, rel oid, op text, trg name, token_column name, resource text, lease text,
    col name,
                                  token bigint, current bigint, was bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_schema name;
  v_table  name;
  v_name   text;
  v_other  text;  -- what was written, where it is not the registered table
  v_lease  CONSTANT text := CASE WHEN col IS NULL THEN format('lease %L', lease) ELSE format('the lease that %I names', col) END;
  v_state  text := 'FN004';
  v_what   text;
BEGIN
  IF fencing.is_repair(rel, token, was) THEN
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
      HINT = 'fencing.seal_fail() is for the triggers of sealed tables.';
  END IF;
  v_name := format('%I.%I', v_schema, v_table);
  IF reason = 'token' AND current IS NULL AND level <> 'report'
      AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    BEGIN
      -- it has an epoch that is newer than the snapshot, or none: only a conflict tells, and what follows takes the row back
      PERFORM set_config('fencing.session', '', true);  -- and this, without which fencing.refuse_driver_write would stop the write
      INSERT INTO fencing.epoch (resource, stripe, token) VALUES (seal_fail.lease, 0, 0) ON CONFLICT DO NOTHING;
    EXCEPTION WHEN serialization_failure THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure', SCHEMA = v_schema, TABLE = v_table, COLUMN = token_column, CONSTRAINT = trg,
        MESSAGE = format('fencing: %s has been taken since the snapshot of this transaction on %s: run it again', v_lease, v_name);
    WHEN not_null_violation THEN
      NULL;  -- no lease is named
    END;
  END IF;
  CASE
    WHEN reason = 'type' THEN
      v_what := format('column %I or %I of %s has another type than when it was sealed: put the type back, then call fencing.seal again',
          token_column,
                       coalesce(col, token_column), v_name);
    WHEN reason = 'moved' THEN
      v_what :=
          format('%s of %s moves a row to another lease: leave %I as it is, or delete the row under the one lease and insert it under the other',
          op, v_name, col);
    WHEN token IS NULL OR token <= 0 THEN
      v_state := 'FN002';
      v_what := CASE op
        WHEN 'DELETE' THEN format('%s from %s without a token: put that of %s into the setting %L of the transaction first', op, v_name,
            v_lease, fencing.setting_name(resource))
        ELSE format('%s on %s without a token: set %I to that of %s', op, v_name, token_column, v_lease) END;
    WHEN lease IS NULL OR length(lease) NOT BETWEEN 1 AND 255 THEN
      v_state := 'FN002';
      v_what := format('%I on %s of %s names no lease: give it the name of one, of 1 to 255 characters', col, op, v_name);
    WHEN current IS NULL THEN
      v_state := 'FN002';
      v_what := format('token %s on %s of %s is none of %s, which was never taken: take it, and write under its token', token, op, v_name,
          v_lease);
    WHEN token < current THEN
      v_state := 'FN001';
      v_what := format('stale token %s on %s of %s, for which %s was taken under %s: stop working on it, another has taken the lock', token,
          op, v_name, v_lease, current);
    ELSE
      v_what := format('token %s on %s of %s is not the one of %s, which is %s: write under the token that the lease gave', token, op,
          v_name, v_lease, current);
  END CASE;
  IF level = 'report' THEN
    RAISE LOG USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table,
        COLUMN = coalesce(col, token_column), CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', 'lease', 'resource', resource, 'operation', op)
               || CASE WHEN col IS NULL THEN jsonb_build_object('lease', lease) ELSE '{}' END || CASE WHEN v_other IS NULL THEN '{}'
                   ELSE jsonb_build_object('relation', v_other) END;
  ELSE
    RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table,
        COLUMN = coalesce(col, token_column), CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', 'lease', 'resource', resource, 'operation', op)
               || CASE WHEN col IS NULL THEN jsonb_build_object('lease', lease) ELSE '{}' END || CASE WHEN v_other IS NULL THEN '{}'
                   ELSE jsonb_build_object('relation', v_other) END;
  END IF;
END $$;

-- The body of the trigger function of a sealed table, as it runs but for the names that format() puts in: for one that has a fixed lease,
-- and for one with a column that names the lease of each row. It comes from src/triggers/seal.sql.tmpl.
CREATE FUNCTION fencing.seal_bodies() RETURNS TABLE (is_by_column boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  (false, $body${{body "seal"}}$body$),
  (true, $body${{body "seal" "by column"}}$body$)
$$;

-- Makes the trigger function of a sealed table and returns its name; compare fencing.wall_functions, also for what is qualified in it
-- and why. typ is the type of the column that names the lease. look: makes none, and returns null where it is not right.
CREATE FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype, look boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
    SET standard_conforming_strings = on AS $$
DECLARE
  v_name CONSTANT text := 'seal_' || {{nameDigest `token_column, resource, seal_resource, seal_column, typ::text`}} || '_check';
  v_sql  text;
  v_body text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_function()');
  v_body := format((SELECT b.body FROM fencing.seal_bodies() b WHERE b.is_by_column = (seal_column IS NOT NULL)),
                   token_column, resource, fencing.setting_name(resource), seal_resource, seal_column,
                   (SELECT 'pg_catalog.' || y.typname FROM pg_type y WHERE y.oid = typ));
  IF NOT fencing.has_function(v_name, v_body, true, NULL) THEN
    IF look THEN
      RETURN NULL;
    END IF;
    EXECUTE format('CREATE OR REPLACE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS %L', v_name, v_body);
  END IF;
  IF look THEN
    RETURN v_name;
  END IF;
  FOR v_sql IN SELECT r FROM fencing.function_rights(left(v_name, 22), 'fencing.seal(regclass, text, name)'::regprocedure) r LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_name;
END $$;

-- drops the trigger functions that no trigger runs any more: those of the names, or all; compare fencing.wall_sweep
CREATE FUNCTION fencing.seal_sweep(names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_sql text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_sweep()');
  IF names IS NULL THEN
    SELECT array_agg(p.proname) INTO names FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace
        AND p.proname ~ '^seal_[0-9a-f]{16}_';
  END IF;
  FOR v_sql IN
    SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
     WHERE p.proname = ANY (names::name[]) AND p.proname ~ '^seal_[0-9a-f]{16}_' AND p.pronamespace = 'fencing'::regnamespace
         AND p.prorettype = 'trigger'::regtype
       AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
           AND d.classid = 'pg_trigger'::regclass)
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;

-- the column that names the lease: of tbl and of every table that inherits from it
CREATE FUNCTION fencing.check_seal_column(tbl regclass, by_column name) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_column record;
  v_what text;
  v_hint text;
  v_or   CONSTANT text := format(' To do without: SELECT fencing.unseal(%L).', tbl::text);
BEGIN
  FOR v_column IN
    WITH RECURSIVE family AS (
      SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid)
    SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, t.attname, t.atttypid, t.attgenerated,
        format_type(t.atttypid, t.atttypmod) AS type,
        EXISTS (SELECT FROM pg_collation l WHERE l.oid = t.attcollation AND NOT l.collisdeterministic) AS is_vague,
           fencing.doctor_nullable(c.oid, t.attnum) AS nullable
      FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = check_seal_column.by_column AND t.attnum > 0 AND NOT t.attisdropped
     ORDER BY c.oid <> tbl::oid, c.oid
  LOOP
    IF v_column.attname IS NULL THEN
      RAISE EXCEPTION 'fencing: % has no column %', v_column.name, quote_ident(by_column)
        USING ERRCODE = 'undefined_column', SCHEMA = v_column.nspname, TABLE = v_column.relname,
              HINT = 'Name the column that has the name of each row''s lease: SELECT fencing.seal(..., by_column => ...).' || v_or;
    ELSIF v_column.atttypid NOT IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype,
        'int8'::regtype) THEN
      v_what := format('is of type %s', v_column.type);
      v_hint := 'Use a column of type text, varchar, uuid or an integer, whose text is the name of the lease.';
    ELSIF v_column.attgenerated <> '' THEN
      v_what := 'is a generated column';
      v_hint := 'It is computed after the check. Name a column that is written.';
    ELSIF v_column.is_vague THEN
      v_what := 'has a collation under which different texts are equal';
      v_hint := format('Two leases would have one name. ALTER TABLE %s ALTER COLUMN %I TYPE %s COLLATE "C".', v_column.name, by_column, v_column.type);
    ELSIF v_column.nullable THEN
      v_what := 'is nullable';
      v_hint := format('A row without a lease could be written by nobody. ALTER TABLE %s ALTER COLUMN %I SET NOT NULL.', v_column.name,
          by_column);
    ELSE
      CONTINUE;
    END IF;
    RAISE EXCEPTION 'fencing: column % of %, which is to name the lease, %', quote_ident(by_column), v_column.name, v_what
      USING ERRCODE = 'datatype_mismatch', HINT = v_hint || v_or, SCHEMA = v_column.nspname, TABLE = v_column.relname, COLUMN = by_column;
  END LOOP;
END $$;

-- Makes the trigger of a table, its partitions and its children what the table's row asks for, and takes it off where there is none;
-- compare fencing.wall_apply, also for what look does. Another column that gets the name of the one that names the lease, and one that is put
-- in the place of a dropped one, is refused unless the row has just been given the column (is_new_column).
CREATE FUNCTION fencing.seal_apply(tbl regclass, look boolean DEFAULT false, is_new_column boolean DEFAULT false) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
    SET quote_all_identifiers = off AS $$
DECLARE
  v_row  record;
  c_levels CONSTANT text[] := ARRAY['report', 'enforce', 'attested'];
  v_func text;    -- null: no seal
  v_all  text[];
  v_old  text[];  -- the functions that the triggers ran before
  v_strays boolean; -- partitions have triggers of their own, as in fencing.wall_apply
  v_sql  text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_apply()');
  SELECT r.*, a.atttypid::regtype AS typ INTO v_row
    FROM fencing.registry r LEFT JOIN pg_attribute a ON a.attrelid = r.relid AND a.attname = r.seal_column AND a.attnum > 0
        AND NOT a.attisdropped
   WHERE r.relid = tbl;
  IF v_row.wall_level <> 'off' AND num_nonnulls(v_row.seal_resource, v_row.seal_column) = 1 THEN
    IF v_row.mode <> 'lease' THEN
      RAISE EXCEPTION 'fencing: %.% is sealed, which mode % has no use for', quote_ident(v_row.schema_name), quote_ident(v_row.table_name),
          v_row.mode
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_row.schema_name, TABLE = v_row.table_name,
              HINT = format('Keep mode lease, or take the seal off first: SELECT fencing.unseal(%L).',
                  format('%I.%I', v_row.schema_name, v_row.table_name));
    END IF;
    IF v_row.issued_by <> 'fencing.write_epoch'::regclass THEN  -- null bounds nothing
      RAISE EXCEPTION 'fencing: %.% is sealed, and takes tokens of sequence %, which are no lease''s', quote_ident(v_row.schema_name),
          quote_ident(v_row.table_name), v_row.issued_by
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_row.schema_name, TABLE = v_row.table_name,
              HINT = format('Leases draw from fencing.write_epoch: SELECT fencing.register(%L, ''lease'', issued_by => ''fencing.write_epoch''), or take the seal off: SELECT fencing.unseal(%1$L).',
                            format('%I.%I', v_row.schema_name, v_row.table_name));
    END IF;
    IF v_row.seal_column IS NOT NULL THEN
      PERFORM fencing.check_seal_column(tbl, v_row.seal_column);
    END IF;
    PERFORM fencing.check_parents(tbl);
    PERFORM fencing.check_triggers(tbl, '^~fencing_zseal$');
    IF NOT is_new_column THEN
      PERFORM fencing.refuse_moved(tbl, 'seal');
    END IF;
    v_func := fencing.seal_function(v_row.token_column, v_row.resource, v_row.seal_resource, v_row.seal_column, v_row.typ, look);
    IF v_func IS NULL THEN
      RETURN 'ACCESS EXCLUSIVE';
    END IF;
  ELSIF NOT is_new_column AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = tbl)
        AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = tbl)
        AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = tbl AND t.tgname IN ('~fencing_zseal', '~fencing_kept_seal')) THEN
    RETURN NULL;  -- as most tables
  END IF;
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid
    UNION
    SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't'  -- a child with a wall of its own keeps that
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  wanted AS (
    SELECT m.oid, '~fencing_zseal' AS name, format('TRIGGER "~fencing_zseal" BEFORE INSERT OR DELETE OR UPDATE ON %I.%I FOR EACH ROW EXECUTE FUNCTION fencing.%I(%L)',
                         -- a child of several
                         n.nspname, c.relname, v_func, CASE WHEN m.oid = tbl::oid OR c.relispartition THEN v_row.wall_level ELSE (
                           SELECT c_levels[greatest(array_position(c_levels, v_row.wall_level),
                               max(array_position(c_levels, w.wall_level)))]
                             FROM fencing.walls_above(m.oid) w) END) AS def
      FROM member m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE v_func IS NOT NULL AND (NOT c.relispartition OR m.oid = tbl::oid)),  -- a partition has a copy
  present AS (
    SELECT t.tgrelid AS oid, t.tgname AS name, pg_get_triggerdef(t.oid) AS def, p.proname::text AS func
      FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid,
          LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^seal_[0-9a-f]{16}_')
  SELECT array_agg(CASE WHEN w.oid IS NULL THEN format('DROP TRIGGER %I ON %s', p.name, p.oid::regclass)
      ELSE 'CREATE OR REPLACE ' || w.def END
                   -- as in fencing.wall_apply
                   ORDER BY w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid DESC, coalesce(w.oid, p.oid) <> tbl::oid,
                       coalesce(w.oid, p.oid), w.oid IS NULL, p.name),
         array_agg(DISTINCT p.func) FILTER (WHERE p.func IS NOT NULL),
             coalesce(bool_or(w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid), false) INTO v_all, v_old, v_strays
    FROM wanted w FULL JOIN present p ON p.oid = w.oid AND p.name = w.name JOIN pg_class x ON x.oid = coalesce(w.oid, p.oid)
   WHERE w.def IS NULL OR p.def IS DISTINCT FROM 'CREATE ' || w.def;
  IF look THEN
    RETURN fencing.lock_needed(tbl, v_all, left(v_func, 22), 'fencing.seal(regclass, text, name)'::regprocedure);
  END IF;
  IF v_strays THEN
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', tbl);
  END IF;
  IF v_func IS NOT NULL OR v_row.seal_column IS NULL OR is_new_column AND v_row.typ IS NOT NULL THEN  -- while the wall is off it stays as it is
    PERFORM fencing.keep_columns(tbl, 'seal', CASE WHEN v_row.seal_column IS NOT NULL THEN ARRAY[v_row.seal_column] END);
  END IF;
  FOREACH v_sql IN ARRAY coalesce(v_all, '{}') LOOP
    EXECUTE v_sql;
  END LOOP;
  IF v_func IS NOT NULL THEN
    FOR v_sql IN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't')
      SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.tgrelid::regclass, t.tgname)
        FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid,
            LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
       WHERE t.tgenabled <> 'A' AND p.pronamespace = 'fencing'::regnamespace AND p.proname = v_func
       ORDER BY m.oid <> tbl::oid, m.oid
    LOOP
      EXECUTE v_sql;
    END LOOP;
  ELSE
    -- other sealed parents take the table and its children back
    PERFORM fencing.seal_apply(g.relid) FROM (
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid
        UNION
        SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't'
         WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off'))
      SELECT DISTINCT r.relid FROM member m JOIN pg_class c ON c.oid = m.oid, fencing.walls_above(m.oid) r
       WHERE r.relid <> tbl AND num_nonnulls(r.seal_resource, r.seal_column) = 1
         AND CASE WHEN m.oid = tbl::oid THEN coalesce(v_row.wall_level, 'off') = 'off' ELSE NOT c.relispartition END) g;
  END IF;
  v_old := array_remove(v_old, v_func);
  IF cardinality(v_old) > 0 THEN
    PERFORM fencing.seal_sweep(v_old);
  END IF;
  RETURN NULL;
END $$;

-- Whatever changes the row changes the trigger with it; compare fencing.wall_changed.
CREATE FUNCTION fencing.seal_changed() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (OLD.relid, OLD.wall_level, OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by, OLD.seal_resource, OLD.seal_column)
       IS NOT DISTINCT FROM (NEW.relid, NEW.wall_level, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by, NEW.seal_resource,
           NEW.seal_column) THEN
      RETURN NULL;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = NEW.relid) THEN
      PERFORM fencing.seal_apply(NEW.relid, is_new_column => OLD.relid IS DISTINCT FROM NEW.relid OR OLD.seal_column IS DISTINCT FROM NEW.seal_column);
    END IF;
    IF OLD.relid IS NOT DISTINCT FROM NEW.relid THEN
      RETURN NULL;
    END IF;
  END IF;
  IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = OLD.relid) THEN
    PERFORM fencing.seal_apply(OLD.relid);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER seal AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER seal;

CREATE FUNCTION fencing.seal(tbl regclass, resource text DEFAULT NULL, by_column name DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_table  record;
  v_lock   text;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal()');
  FOR v_look IN 1..2 LOOP  -- as in fencing.wall
    SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, r.relid, r.mode, r.wall_level, r.token_column,
        r.seal_resource, r.seal_column INTO v_table
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'fencing: no table given to seal' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
    END IF;
    IF v_table.relid IS NULL THEN
      PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname, '''lease''');
    END IF;
    IF num_nonnulls(seal.resource, by_column) <> 1 OR length(seal.resource) NOT BETWEEN 1 AND 255 OR by_column = '' THEN
      RAISE EXCEPTION 'fencing: % to seal % by', CASE num_nonnulls(seal.resource, by_column) WHEN 0 THEN 'nothing given' WHEN 2
          THEN 'a lease and a column given'
                      ELSE 'no name of a lease or of a column given' END, v_table.name
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = 'Give the name of the lease (resource => ..., 1 to 255 characters), or the column that has it for each row (by_column => ...).';
    END IF;
    IF v_table.mode <> 'lease' THEN
      RAISE EXCEPTION 'fencing: % is of mode %, which has no lease to compare with', v_table.name, v_table.mode
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = format('Tokens that are drawn for each write are never a lease''s. Register it for leases: SELECT fencing.register(%L, ''lease'', ...).',
                  v_table.name);
    END IF;
    IF v_table.wall_level = 'off' THEN
      RAISE EXCEPTION 'fencing: % has no wall, without which a seal doesn''t hold', v_table.name
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
              HINT = format('Put the wall up first: SELECT fencing.wall(%L).', v_table.name);
    END IF;
    IF by_column = v_table.token_column THEN
      RAISE EXCEPTION 'fencing: column % of % has the tokens, and names no lease', quote_ident(by_column), v_table.name
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname, COLUMN = by_column,
              HINT = 'Name the column that has the name of each row''s lease.';
    END IF;
    EXIT WHEN v_look = 2;
    v_lock := 'SHARE ROW EXCLUSIVE';
    IF (v_table.seal_resource, v_table.seal_column) IS NOT DISTINCT FROM (seal.resource, by_column) THEN
      v_lock := fencing.seal_apply(tbl, look => true);
      IF v_lock IS NULL THEN
        RETURN;
      END IF;
    END IF;
    PERFORM fencing.lock_registry(tbl, v_lock);
  END LOOP;
  IF (v_table.seal_resource, v_table.seal_column) IS DISTINCT FROM (seal.resource, by_column) THEN
    UPDATE fencing.registry r SET seal_resource = seal.resource, seal_column = by_column WHERE r.relid = tbl;
  ELSE
    PERFORM fencing.seal_apply(tbl);
  END IF;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.seal', tbl, v_detail);
END $$;

COMMENT ON FUNCTION fencing.seal(regclass, text, name) IS
  'Has every write of a walled table compared with the token of a lease: the one named, or the one that a column names. Calling it again mends what is missing.';

CREATE FUNCTION fencing.unseal(tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_table  record;
  v_lock   text;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.unseal()');
  SELECT n.nspname, c.relname INTO v_table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given to take the seal off' USING ERRCODE = 'undefined_table', HINT = 'Name a sealed table.';
  END IF;
  IF NOT EXISTS (SELECT FROM fencing.registry r WHERE r.relid = tbl)
      AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = tbl AND t.tgname = '~fencing_zseal') THEN
    PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname,
      is_named => EXISTS (SELECT FROM fencing.registry r WHERE (r.schema_name, r.table_name) = (v_table.nspname, v_table.relname)));
  END IF;
  IF EXISTS (SELECT FROM fencing.registry r WHERE r.relid = tbl AND num_nonnulls(r.seal_resource, r.seal_column) > 0) THEN
    v_lock := 'ACCESS EXCLUSIVE';
  ELSE
    v_lock := fencing.seal_apply(tbl, look => true);
    IF v_lock IS NULL THEN
      RETURN;
    END IF;
  END IF;
  PERFORM fencing.lock_registry(tbl, v_lock);
  UPDATE fencing.registry r SET seal_resource = NULL, seal_column = NULL WHERE r.relid = tbl
      AND num_nonnulls(r.seal_resource, r.seal_column) > 0;
  IF NOT FOUND THEN
    PERFORM fencing.seal_apply(tbl);  -- what is left on a child that is none any more
  END IF;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.unseal', tbl, v_detail);
END $$;

COMMENT ON FUNCTION fencing.unseal(regclass) IS 'Takes the seal off a table. The wall stays.';
