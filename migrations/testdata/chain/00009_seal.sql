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
--   A trigger that sorts after "~fencing_zseal" can change the column that names the lease; the doctor finds it (D601).
--   Below level attested SET last_token = last_token passes for rows that the present holder has written, as at the wall.
--   fencing.epoch has 16 rows for each lease that was ever taken, which take writes. They stay when the row of fencing.lease is
--   deleted, so that an epoch never falls. Deleted themselves, they refuse all writes until the lease is taken again.

-- +goose Up

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

ALTER TABLE fencing.registry
  ADD COLUMN seal_resource text CHECK (length(seal_resource) BETWEEN 1 AND 255),
  ADD COLUMN seal_column   name CHECK (seal_column <> ''),
  ADD CONSTRAINT registry_seal_check CHECK (num_nonnulls(seal_resource, seal_column) < 2);

COMMENT ON COLUMN fencing.registry.seal_resource IS 'The lease whose token every write must have, while the table has a wall; null: none. Set by fencing.seal().';
COMMENT ON COLUMN fencing.registry.seal_column IS 'The column that names the lease of each row; null: none. Set by fencing.seal().';

CREATE TABLE fencing.epoch (
  resource text     NOT NULL,
  stripe   smallint NOT NULL CHECK (stripe BETWEEN 0 AND 15),
  token    bigint   NOT NULL,
  PRIMARY KEY (resource, stripe)
) WITH (fillfactor = 50);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.epoch
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();
ALTER TABLE fencing.epoch ENABLE ALWAYS TRIGGER refuse_driver;

COMMENT ON TABLE fencing.epoch IS 'The newest token of each lease, sixteen times over, for sealed tables to compare with. Written by the trigger of fencing.lease.';

-- +goose StatementBegin
CREATE FUNCTION fencing.raise_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(NEW.resource, 1717923427));  -- waits for the writers; the key is that of fencing.seal_function
  INSERT INTO fencing.epoch AS e (resource, stripe, token) SELECT NEW.resource, s, NEW.token FROM generate_series(0, 15) s ORDER BY s
  ON CONFLICT (resource, stripe) DO UPDATE SET token = EXCLUDED.token WHERE e.token < EXCLUDED.token;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.lease_wait(resource text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(resource, 1717923427));  -- that of fencing.raise_epoch
END $$;
-- +goose StatementEnd

-- not for renew and release, which leave the token alone
CREATE TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch();
ALTER TABLE fencing.lease ENABLE ALWAYS TRIGGER epoch;

-- leases from before; whoever takes one meanwhile waits for the trigger
INSERT INTO fencing.epoch (resource, stripe, token) SELECT l.resource, s, l.token FROM fencing.lease l, generate_series(0, 15) s;

-- The one place that refuses; compare fencing.fail. lease is the name that was looked for, col the column that has it, if one does;
-- its name is printed only where it is fixed. was is the row's own token.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_fail(reason text, level text, rel oid, op text, trg name, token_column name, resource text, lease text, col name,
                                  token bigint, current bigint, was bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
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
           SELECT format('%I.%I', wn.nspname, w.relname) FROM pg_class w JOIN pg_namespace wn ON wn.oid = w.relnamespace WHERE w.oid = rel) END
    INTO v_schema, v_table, v_other
    FROM up u LEFT JOIN fencing.registry r ON r.relid = u.oid
    JOIN pg_class c ON c.oid = u.oid JOIN pg_namespace n ON n.oid = c.relnamespace
   ORDER BY r.relid IS NULL, r.wall_level = 'off', u.depth LIMIT 1;
  v_name := format('%I.%I', v_schema, v_table);
  IF reason = 'token' AND current IS NULL AND level <> 'report' AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
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
      v_what := format('column %I or %I of %s has another type than when it was sealed: put the type back, then call fencing.seal again', token_column,
                       coalesce(col, token_column), v_name);
    WHEN reason = 'moved' THEN
      v_what := format('%s of %s moves a row to another lease: leave %I as it is, or delete the row under the one lease and insert it under the other', op, v_name, col);
    WHEN token IS NULL OR token <= 0 THEN
      v_state := 'FN002';
      v_what := CASE op
        WHEN 'DELETE' THEN format('%s from %s without a token: put that of %s into the setting %L of the transaction first', op, v_name, v_lease, fencing.setting_name(resource))
        ELSE format('%s on %s without a token: set %I to that of %s', op, v_name, token_column, v_lease) END;
    WHEN lease IS NULL OR length(lease) NOT BETWEEN 1 AND 255 THEN
      v_state := 'FN002';
      v_what := format('%I on %s of %s names no lease: give it the name of one, of 1 to 255 characters', col, op, v_name);
    WHEN current IS NULL THEN
      v_state := 'FN002';
      v_what := format('token %s on %s of %s is none of %s, which was never taken: take it, and write under its token', token, op, v_name, v_lease);
    WHEN token < current THEN
      v_state := 'FN001';
      v_what := format('stale token %s on %s of %s, for which %s was taken under %s: stop working on it, another has taken the lock', token, op, v_name, v_lease, current);
    ELSE
      v_what := format('token %s on %s of %s is not the one of %s, which is %s: write under the token that the lease gave', token, op, v_name, v_lease, current);
  END CASE;
  IF level = 'report' THEN
    RAISE LOG USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table, COLUMN = coalesce(col, token_column), CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', 'lease', 'resource', resource, 'operation', op)
               || CASE WHEN col IS NULL THEN jsonb_build_object('lease', lease) ELSE '{}' END || CASE WHEN v_other IS NULL THEN '{}' ELSE jsonb_build_object('relation', v_other) END;
  ELSE
    RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = 'fencing: ' || v_what, SCHEMA = v_schema, TABLE = v_table, COLUMN = coalesce(col, token_column), CONSTRAINT = trg,
      DETAIL = jsonb_build_object('token', token::text, 'current', current::text, 'mode', 'lease', 'resource', resource, 'operation', op)
               || CASE WHEN col IS NULL THEN jsonb_build_object('lease', lease) ELSE '{}' END || CASE WHEN v_other IS NULL THEN '{}' ELSE jsonb_build_object('relation', v_other) END;
  END IF;
END $$;
-- +goose StatementEnd

-- Makes the trigger function of a sealed table and returns its name; compare fencing.wall_functions, also for what is qualified in it
-- and why. typ is the type of the column that names the lease.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
DECLARE
  v_name CONSTANT text := 'seal_' || left(md5(jsonb_build_array(token_column, resource, seal_resource, seal_column, typ::text)::text), 16) || '_check';
  v_body text := $body$
DECLARE
  t pg_catalog.int8;  -- the write's token, the row's own before it, and the lease's
  w pg_catalog.int8;
  e pg_catalog.int8;
  l pg_catalog.text := %4$L;
  o pg_catalog.text;
BEGIN
  IF TG_OP [=] 'DELETE' THEN
    {typed OLD}
    w := OLD.%1$I;
    {named l := OLD.%5$I::pg_catalog.text;}
    o := pg_catalog.current_setting(%3$L, true);
    IF o [~] '^[1-9][0-9]{0,18}$' THEN
      IF o::pg_catalog.numeric [<=] 9223372036854775807 THEN t := o::pg_catalog.int8; END IF;
    END IF;
  ELSE
    {typed NEW}
    t := NEW.%1$I;
    {named l := NEW.%5$I::pg_catalog.text;}
    IF TG_OP [=] 'UPDATE' THEN
      w := OLD.%1$I;
      {named o := OLD.%5$I::pg_catalog.text;}
      {named IF (o [=] l) IS NOT TRUE THEN fail('moved'); END IF;}
    END IF;
  END IF;
  IF TG_ARGV[0] [=] 'report' THEN
    SELECT x.token INTO e FROM ONLY fencing.epoch x WHERE x.resource [=] l AND x.stripe [=] 0;
  ELSE
    -- as an expression: PERFORM takes longer
    IF pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(l, 1717923427)) IS NULL THEN l := NULL; END IF;
    -- after the lock a new snapshot, which has what its last owner wrote
    IF pg_catalog.current_setting('transaction_isolation') [=] 'read committed' THEN
      SELECT x.token INTO e FROM ONLY fencing.epoch x WHERE x.resource [=] l AND x.stripe [=] 0;
    ELSE
      SELECT x.token INTO e FROM ONLY fencing.epoch x WHERE x.resource [=] l AND x.stripe [=] (pg_catalog.pg_backend_pid() [%%] 16) FOR SHARE;
    END IF;
  END IF;
  IF (t [=] e) IS NOT TRUE THEN fail('token'); END IF;
  IF TG_OP [=] 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $body$;
  v_sql  text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_function()');
  IF to_regprocedure(format('fencing.%I()', v_name)) IS NULL THEN
    v_body := regexp_replace(v_body, CASE WHEN seal_column IS NULL THEN '\n *\{named [^\n]*\}(?=\n)' ELSE '\{named ([^\n]*)\}(?=\n)' END,
                             CASE WHEN seal_column IS NULL THEN '' ELSE '\1' END, 'g');
    v_body := regexp_replace(v_body, '\{typed (\w+)\}', $body$IF pg_catalog.pg_typeof(\1.%1$I) [<>] 'pg_catalog.int8'::pg_catalog.regtype$body$
      || CASE WHEN seal_column IS NULL THEN '' ELSE ' OR pg_catalog.pg_typeof(\1.%5$I) [<>] %6$L::pg_catalog.regtype' END
      || E' THEN\n      fail(''type'');\n      RETURN \\1;\n    END IF;', 'g');
    v_body := regexp_replace(v_body, '\[([<>=~%]+)\]', 'OPERATOR(pg_catalog.\1)', 'g');
    v_body := regexp_replace(v_body, 'fail\((''\w+'')\)', 'PERFORM fencing.seal_fail(\1, TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, l, %5$L, t, e, w)', 'g');
    EXECUTE format('CREATE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS %L', v_name,
                   format(v_body, token_column, resource, fencing.setting_name(resource), seal_resource, seal_column,
                          (SELECT 'pg_catalog.' || y.typname FROM pg_type y WHERE y.oid = typ)));
  END IF;
  -- only who may seal may put a trigger on it, which takes EXECUTE; firing it takes nothing
  FOR v_sql IN
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname = v_name AND a.grantee <> p.proowner
    UNION ALL
    SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, pg_get_userbyid(a.grantee))
      FROM pg_proc p, pg_proc w, aclexplode(w.proacl) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname = v_name
       AND w.oid = 'fencing.seal(regclass, text, name)'::regprocedure AND a.grantee NOT IN (0, w.proowner)
  LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_name;
END $$;
-- +goose StatementEnd

-- drops the trigger functions that no trigger runs any more: those of the names, or all; compare fencing.wall_sweep
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_sweep(names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_sql text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_sweep()');
  IF names IS NULL THEN
    SELECT array_agg(p.proname) INTO names FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^seal_[0-9a-f]{16}_';
  END IF;
  FOR v_sql IN
    SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
     WHERE p.proname = ANY (names::name[]) AND p.proname ~ '^seal_[0-9a-f]{16}_' AND p.pronamespace = 'fencing'::regnamespace AND p.prorettype = 'trigger'::regtype
       AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid AND d.classid = 'pg_trigger'::regclass)
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

-- the column that names the lease: of tbl and of every table that inherits from it
-- +goose StatementBegin
CREATE FUNCTION fencing.check_seal_column(tbl regclass, by_column name) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a      record;
  v_what text;
  v_hint text;
  v_or   CONSTANT text := format(' To do without: SELECT fencing.unseal(%L).', tbl::text);
BEGIN
  FOR a IN
    WITH RECURSIVE family AS (
      SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid)
    SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, t.attname, t.atttypid, t.attgenerated, format_type(t.atttypid, t.atttypmod) AS type,
           NOT t.attnotnull OR EXISTS (  -- NOT VALID, as PostgreSQL 18 can: older rows may have nulls
             SELECT FROM pg_constraint u WHERE u.conrelid = c.oid AND u.contype = 'n' AND u.conkey[1] = t.attnum AND NOT u.convalidated) AS nullable
      FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = check_seal_column.by_column AND t.attnum > 0 AND NOT t.attisdropped
     ORDER BY c.oid <> tbl::oid, c.oid
  LOOP
    IF a.attname IS NULL THEN
      RAISE EXCEPTION 'fencing: % has no column %', a.name, quote_ident(by_column)
        USING ERRCODE = 'undefined_column', SCHEMA = a.nspname, TABLE = a.relname,
              HINT = 'Name the column that has the name of each row''s lease: SELECT fencing.seal(..., by_column => ...).' || v_or;
    ELSIF a.atttypid NOT IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
      v_what := format('is of type %s', a.type);
      v_hint := 'Use a column of type text, varchar, uuid or an integer, whose text is the name of the lease.';
    ELSIF a.attgenerated <> '' THEN
      v_what := 'is a generated column';
      v_hint := 'It is computed after the check. Name a column that is written.';
    ELSIF a.nullable THEN
      v_what := 'is nullable';
      v_hint := format('A row without a lease could be written by nobody. ALTER TABLE %s ALTER COLUMN %I SET NOT NULL.', a.name, by_column);
    ELSE
      CONTINUE;
    END IF;
    RAISE EXCEPTION 'fencing: column % of %, which is to name the lease, %', quote_ident(by_column), a.name, v_what
      USING ERRCODE = 'datatype_mismatch', HINT = v_hint || v_or, SCHEMA = a.nspname, TABLE = a.relname, COLUMN = by_column;
  END LOOP;
END $$;
-- +goose StatementEnd

-- Makes the trigger of a table, its partitions and its children what the table's row asks for, and takes it off where there is none;
-- compare fencing.wall_apply.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_apply(tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET quote_all_identifiers = off AS $$
DECLARE
  o      record;
  c_levels CONSTANT text[] := ARRAY['report', 'enforce', 'attested'];
  v_func text;    -- null: no seal
  v_all  text[];
  v_old  text[];  -- the functions that the triggers ran before
  v_strays boolean; -- partitions have triggers of their own, as in fencing.wall_apply
  v_sql  text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal_apply()');
  SELECT r.*, a.atttypid::regtype AS typ INTO o
    FROM fencing.registry r LEFT JOIN pg_attribute a ON a.attrelid = r.relid AND a.attname = r.seal_column AND a.attnum > 0 AND NOT a.attisdropped
   WHERE r.relid = tbl;
  IF o.wall_level <> 'off' AND num_nonnulls(o.seal_resource, o.seal_column) = 1 THEN
    IF o.mode <> 'lease' THEN
      RAISE EXCEPTION 'fencing: %.% is sealed, which mode % has no use for', quote_ident(o.schema_name), quote_ident(o.table_name), o.mode
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.schema_name, TABLE = o.table_name,
              HINT = format('Keep mode lease, or take the seal off first: SELECT fencing.unseal(%L).', format('%I.%I', o.schema_name, o.table_name));
    END IF;
    IF o.issued_by <> 'fencing.write_epoch'::regclass THEN  -- null bounds nothing
      RAISE EXCEPTION 'fencing: %.% is sealed, and takes tokens of sequence %, which are no lease''s', quote_ident(o.schema_name), quote_ident(o.table_name), o.issued_by
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.schema_name, TABLE = o.table_name,
              HINT = format('Leases draw from fencing.write_epoch: SELECT fencing.register(%L, ''lease'', issued_by => ''fencing.write_epoch''), or take the seal off: SELECT fencing.unseal(%1$L).',
                            format('%I.%I', o.schema_name, o.table_name));
    END IF;
    IF o.seal_column IS NOT NULL THEN
      PERFORM fencing.check_seal_column(tbl, o.seal_column);
    END IF;
    PERFORM fencing.check_parents(tbl);
    v_func := fencing.seal_function(o.token_column, o.resource, o.seal_resource, o.seal_column, o.typ);
  ELSIF NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = tbl)
        AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = tbl)
        AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = tbl AND t.tgname = '~fencing_zseal') THEN
    RETURN;  -- as most tables
  END IF;
  WITH RECURSIVE member AS (
    SELECT tbl::oid AS oid
    UNION
    SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid  -- a child with a wall of its own keeps that
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  wanted AS (
    SELECT m.oid, format('TRIGGER "~fencing_zseal" BEFORE INSERT OR DELETE OR UPDATE ON %I.%I FOR EACH ROW EXECUTE FUNCTION fencing.%I(%L)',
                         n.nspname, c.relname, v_func, CASE WHEN m.oid = tbl::oid OR c.relispartition THEN o.wall_level ELSE (  -- a child of several
                           SELECT c_levels[greatest(array_position(c_levels, o.wall_level), max(array_position(c_levels, w.wall_level)))]
                             FROM fencing.walls_above(m.oid) w) END) AS def
      FROM member m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE v_func IS NOT NULL AND (NOT c.relispartition OR m.oid = tbl::oid)),  -- a partition has a copy
  present AS (
    SELECT t.tgrelid AS oid, t.tgname AS name, pg_get_triggerdef(t.oid) AS def, p.proname::text AS func
      FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid, LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^seal_[0-9a-f]{16}_')
  SELECT array_agg(CASE WHEN w.oid IS NULL THEN format('DROP TRIGGER %I ON %s', p.name, p.oid::regclass) ELSE 'CREATE OR REPLACE ' || w.def END
                   -- as in fencing.wall_apply
                   ORDER BY w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid DESC, coalesce(w.oid, p.oid) <> tbl::oid, coalesce(w.oid, p.oid), w.oid IS NULL, p.name),
         array_agg(DISTINCT p.func) FILTER (WHERE p.func IS NOT NULL), coalesce(bool_or(w.oid IS NULL AND x.relispartition AND p.oid <> tbl::oid), false) INTO v_all, v_old, v_strays
    FROM wanted w FULL JOIN present p ON p.oid = w.oid AND p.name = '~fencing_zseal' JOIN pg_class x ON x.oid = coalesce(w.oid, p.oid)
   WHERE w.def IS NULL OR p.def IS DISTINCT FROM 'CREATE ' || w.def;
  IF v_strays THEN
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', tbl);
  END IF;
  FOREACH v_sql IN ARRAY coalesce(v_all, '{}') LOOP
    EXECUTE v_sql;
  END LOOP;
  IF v_func IS NOT NULL THEN
    FOR v_sql IN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid)
      SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.tgrelid::regclass, t.tgname)
        FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid, LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
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
        SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid
         WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off'))
      SELECT DISTINCT r.relid FROM member m JOIN pg_class c ON c.oid = m.oid, fencing.walls_above(m.oid) r
       WHERE r.relid <> tbl AND num_nonnulls(r.seal_resource, r.seal_column) = 1
         AND CASE WHEN m.oid = tbl::oid THEN coalesce(o.wall_level, 'off') = 'off' ELSE NOT c.relispartition END) g;
  END IF;
  v_old := array_remove(v_old, v_func);
  IF cardinality(v_old) > 0 THEN
    PERFORM fencing.seal_sweep(v_old);
  END IF;
END $$;
-- +goose StatementEnd

-- Whatever changes the row changes the trigger with it; compare fencing.wall_changed.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_changed() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (OLD.relid, OLD.wall_level, OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by, OLD.seal_resource, OLD.seal_column)
       IS NOT DISTINCT FROM (NEW.relid, NEW.wall_level, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by, NEW.seal_resource, NEW.seal_column) THEN
      RETURN NULL;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = NEW.relid) THEN
      PERFORM fencing.seal_apply(NEW.relid);
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
-- +goose StatementEnd

CREATE TRIGGER seal AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed();
ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER seal;

-- +goose StatementBegin
CREATE FUNCTION fencing.seal(tbl regclass, resource text DEFAULT NULL, by_column name DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  o record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.seal()');
  -- the lock of fencing.register: what is found here holds until the row is written
  LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, r.relid, r.mode, r.wall_level, r.token_column, r.seal_resource, r.seal_column INTO o
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given to seal' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
  END IF;
  IF o.relid IS NULL THEN
    PERFORM fencing.check_table(tbl);  -- no hint to register what register refuses
    RAISE EXCEPTION 'fencing: % is not registered', o.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = format('Register it first: SELECT fencing.register(%L, ''lease'').', o.name);
  END IF;
  IF num_nonnulls(seal.resource, by_column) <> 1 OR length(seal.resource) NOT BETWEEN 1 AND 255 OR by_column = '' THEN
    RAISE EXCEPTION 'fencing: % to seal % by', CASE num_nonnulls(seal.resource, by_column) WHEN 0 THEN 'nothing given' WHEN 2 THEN 'a lease and a column given'
                    ELSE 'no name of a lease or of a column given' END, o.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = 'Give the name of the lease (resource => ..., 1 to 255 characters), or the column that has it for each row (by_column => ...).';
  END IF;
  IF o.mode <> 'lease' THEN
    RAISE EXCEPTION 'fencing: % is of mode %, which has no lease to compare with', o.name, o.mode
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = format('Tokens that are drawn for each write are never a lease''s. Register it for leases: SELECT fencing.register(%L, ''lease'', ...).', o.name);
  END IF;
  IF o.wall_level = 'off' THEN
    RAISE EXCEPTION 'fencing: % has no wall, without which a seal doesn''t hold', o.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = o.nspname, TABLE = o.relname,
            HINT = format('Put the wall up first: SELECT fencing.wall(%L).', o.name);
  END IF;
  IF by_column = o.token_column THEN
    RAISE EXCEPTION 'fencing: column % of % has the tokens, and names no lease', quote_ident(by_column), o.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = o.nspname, TABLE = o.relname, COLUMN = by_column,
            HINT = 'Name the column that has the name of each row''s lease.';
  END IF;
  IF (o.seal_resource, o.seal_column) IS DISTINCT FROM (seal.resource, by_column) THEN
    UPDATE fencing.registry r SET seal_resource = seal.resource, seal_column = by_column WHERE r.relid = tbl;
  ELSE
    PERFORM fencing.seal_apply(tbl);
  END IF;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.seal(regclass, text, name) IS
  'Has every write of a walled table compared with the token of a lease: the one named, or the one that a column names. Calling it again mends what is missing.';

-- +goose StatementBegin
CREATE FUNCTION fencing.unseal(tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM fencing.refuse_driver('fencing.unseal()');
  LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = tbl) THEN
    RAISE EXCEPTION 'fencing: no table given to take the seal off' USING ERRCODE = 'undefined_table', HINT = 'Name a sealed table.';
  END IF;
  UPDATE fencing.registry r SET seal_resource = NULL, seal_column = NULL WHERE r.relid = tbl AND num_nonnulls(r.seal_resource, r.seal_column) > 0;
  IF NOT FOUND THEN
    PERFORM fencing.seal_apply(tbl);  -- what is left on a child that is none any more
  END IF;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.unseal(regclass) IS 'Takes the seal off a table. The wall stays.';

-- What the doctor finds about seals. family are the registered tables, apps the roles that are judged, as fencing.doctor has them.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_seal(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := (SELECT CASE WHEN has_schema_privilege(c.relowner, n.oid, 'USAGE') THEN n.nspowner ELSE coalesce(c.relowner, n.nspowner) END  -- as in fencing.doctor
                              FROM pg_namespace n LEFT JOIN pg_class c ON c.oid = to_regclass('fencing.registry') WHERE n.oid = c_schema);
  v_sealed jsonb;  -- those of the family with a seal
BEGIN
  SELECT coalesce(jsonb_agg(to_jsonb(f) || jsonb_build_object('lease', g.seal_resource, 'by', g.seal_column, 'typ', a.atttypid,
           'again', format(CASE WHEN g.seal_column IS NULL THEN 'SELECT fencing.seal(%L, resource => %L)' ELSE 'SELECT fencing.seal(%L, by_column => %3$L)' END,
                           f.root_name, g.seal_resource, g.seal_column))), '[]') INTO v_sealed
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, col name, resource text, wall text, part boolean, torn boolean, unsettled boolean, subscribed boolean)
    JOIN fencing.registry g ON g.relid = f.root AND num_nonnulls(g.seal_resource, g.seal_column) = 1
    LEFT JOIN pg_attribute a ON a.attrelid = f.root AND a.attname = g.seal_column AND a.attnum > 0 AND NOT a.attisdropped;

  RETURN QUERY
  SELECT 'warning', 'D224 seal-without-wall', f.name, 'it is sealed and the wall is off', 'nothing compares its writes with the lease',
         format('SELECT fencing.wall(%L, ''enforce'')', f.name)
    FROM jsonb_to_recordset(v_sealed) AS f(root oid, oid oid, name text, wall text, unsettled boolean) WHERE f.root = f.oid AND f.wall = 'off' AND NOT f.unsettled;

  RETURN QUERY
  SELECT 'error', 'D223 seal-column', f.name, format('the column %I, which names the lease of a row, %s', f.by, x.what), x.so, x.fix
    FROM jsonb_to_recordset(v_sealed) AS f(oid oid, name text, root_name text, "by" name, again text)
    LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.by AND a.attnum > 0 AND NOT a.attisdropped,
    LATERAL (
      SELECT 'is missing' AS what, 'every write fails' AS so,
             format('SELECT fencing.seal(%L, by_column => ...), with the name that it has now', f.root_name) AS fix WHERE a.attname IS NULL
      UNION ALL SELECT format('is %s now', format_type(a.atttypid, a.atttypmod)), 'every write is refused',
             format('ALTER TABLE %s ALTER COLUMN %I TYPE text; %s', f.root_name, f.by, f.again)
       WHERE a.atttypid NOT IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype)
      UNION ALL SELECT 'may be null', 'a row with a null can be written by nobody', format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.by) WHERE NOT a.attnotnull) x
   WHERE f.by IS NOT NULL;

  -- the trigger, as fencing.seal_apply makes it; the codes are those of the wall's own
  RETURN QUERY
  WITH seen AS (
    SELECT f.*, t.tgenabled, t.tgfoid, p.proowner, p.proname = y.func AS named, y.func, CASE
             WHEN t.oid IS NULL THEN 'D202 trigger-missing'
             WHEN p.pronamespace <> c_schema OR p.proname <> y.func OR p.proowner <> c_owner OR l.lanname <> 'plpgsql' OR p.proconfig IS NOT NULL OR NOT p.prosecdef
                  OR position('PERFORM fencing.seal_fail(' IN p.prosrc) = 0 THEN 'D204 trigger-function'
             WHEN t.tgenabled <> 'A' AND NOT (f.subscribed AND t.tgenabled = 'O') THEN 'D203 trigger-disabled'
             WHEN pg_get_triggerdef(t.oid) <> format('CREATE TRIGGER "~fencing_zseal" BEFORE INSERT OR DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION fencing.%I(%L)',
                                                     f.name, y.func, f.wall) THEN 'D205 trigger-changed' END AS code
      FROM jsonb_to_recordset(v_sealed) AS f(oid oid, name text, root_name text, col name, resource text, lease text, "by" name, typ oid, wall text, again text, torn boolean, unsettled boolean, subscribed boolean)
      LEFT JOIN pg_trigger t ON t.tgrelid = f.oid AND t.tgname = '~fencing_zseal' LEFT JOIN pg_proc p ON p.oid = t.tgfoid LEFT JOIN pg_language l ON l.oid = p.prolang,
      LATERAL (SELECT 'seal_' || left(md5(jsonb_build_array(f.col, f.resource, f.lease, f.by, f.typ::regtype::text)::text), 16) || '_check' AS func) y
     WHERE f.wall <> 'off' AND NOT f.torn AND NOT f.unsettled  -- D213, and D102, D103 and D105
       AND (f.by IS NULL OR f.typ IN ('text'::regtype, 'varchar'::regtype, 'uuid'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype)))  -- D223 has the others
  SELECT 'error', s.code, format('trigger "~fencing_zseal" on %s', s.name),
         CASE left(s.code, 4) WHEN 'D202' THEN 'the seal''s trigger is missing' WHEN 'D203' THEN 'the seal''s trigger is not ENABLE ALWAYS'
              WHEN 'D204' THEN format('the seal''s trigger runs %s, which is not what fencing made for the table as it is', s.tgfoid::regprocedure)
              ELSE 'the seal''s trigger is not as fencing made it' END,
         CASE left(s.code, 4) WHEN 'D203' THEN CASE s.tgenabled WHEN 'O' THEN 'session_replication_role = replica passes it' ELSE 'nothing is compared with the lease' END
              ELSE 'an older holder writes rows that the new one has not written yet' END,
         coalesce(CASE left(s.code, 4) WHEN 'D202' THEN s.again WHEN 'D203' THEN format(CASE WHEN s.subscribed THEN 'ALTER TABLE %s ENABLE TRIGGER "~fencing_zseal"' ELSE 'ALTER TABLE %s ENABLE ALWAYS TRIGGER "~fencing_zseal"' END, s.name)
                WHEN 'D204' THEN CASE WHEN s.named AND s.proowner <> c_owner THEN format('ALTER FUNCTION %s OWNER TO %I', s.tgfoid::regprocedure, pg_get_userbyid(c_owner)) END END,
              -- a function of the right name is taken for the right one, and tables share the functions
              format('BEGIN; SELECT fencing.unseal(%L); DROP TRIGGER IF EXISTS "~fencing_zseal" ON %s; DROP FUNCTION IF EXISTS fencing.%I() CASCADE; '
                          '%s; SELECT fencing.seal(relid, seal_resource, seal_column) FROM fencing.registry '
                          'WHERE wall_level <> ''off'' AND num_nonnulls(seal_resource, seal_column) = 1; COMMIT',
                          s.root_name, s.root_name, s.func, s.again))
    FROM seen s WHERE s.code IS NOT NULL;

  -- compare fencing.doctor
  RETURN QUERY
  SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM fencing.registry g WHERE g.relid = c.oid) OR c.relispartition OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) THEN 'error' ELSE 'warning' END, 'D209 wall-left-over',
         c.oid::regclass::text, format('trigger %I of a seal is on a table that has none', t.tgname), 'writes are refused that nothing protects',
         format('if it is to be sealed, SELECT fencing.seal(%L, ...) once it has a wall, or, if not, SELECT fencing.unseal(%1$L)', c.oid::regclass::text)
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE p.pronamespace = c_schema AND p.proname ~ '^seal_[0-9a-f]{16}_' AND t.tgparentid = 0
     AND c.oid NOT IN (SELECT f.oid FROM jsonb_to_recordset(v_sealed) AS f(oid oid, wall text) WHERE f.wall <> 'off')
     AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.schema_name = n.nspname AND x.table_name = c.relname AND x.relid <> c.oid);

  RETURN QUERY
  SELECT 'error', k.code, format('trigger %I on fencing.%I', k.name, k.tbl),
         CASE WHEN t.oid IS NULL THEN 'it is missing' WHEN t.tgenabled <> 'A' THEN 'it is not ENABLE ALWAYS' ELSE 'it is not as fencing made it' END, k.so,
         CASE WHEN pg_get_triggerdef(t.oid) = 'CREATE ' || k.def THEN '' ELSE 'CREATE OR REPLACE ' || k.def || '; ' END
         || format('ALTER TABLE fencing.%I ENABLE ALWAYS TRIGGER %I', k.tbl, k.name)
    FROM (VALUES ('D210 registry-trigger', 'registry', 'seal', 'TRIGGER seal AFTER DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed()',
                  'the seal doesn''t follow the registry'),
                 ('D222 seal-epoch-trigger', 'lease', 'epoch', 'TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch()',
                  'a lease that is taken shuts its old holder out of nothing, and its new one out of sealed tables')) k(code, tbl, name, def, so)
    LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(format('fencing.%I', k.tbl)) AND t.tgname = k.name
   WHERE t.oid IS NULL OR t.tgenabled <> 'A' OR pg_get_triggerdef(t.oid) <> 'CREATE ' || k.def;

  IF has_table_privilege('fencing.lease', 'SELECT') AND has_table_privilege('fencing.epoch', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D221 seal-behind', format('lease %L', l.resource), format('its token is %s, and its epoch %s', l.token, coalesce(min(e.token)::text, 'is missing')),
           'its holder is refused by sealed tables, and an older one may not be', format('UPDATE fencing.lease SET token = token WHERE resource = %L', l.resource)
      FROM fencing.lease l LEFT JOIN fencing.epoch e ON e.resource = l.resource
     GROUP BY l.resource, l.token HAVING count(e.token) < 16 OR min(e.token) < l.token OR min(e.token) < max(e.token);
    RETURN QUERY
    SELECT 'info', 'D227 seal-never-taken', f.name, format('it is sealed to lease %L, which was never taken', f.lease), 'every write is refused until it is taken',
           format('take the lease by this name, or name the right one: SELECT fencing.seal(%L, resource => ...)', f.root_name)
      FROM jsonb_to_recordset(v_sealed) AS f(root oid, oid oid, name text, root_name text, wall text, lease text)
     WHERE f.root = f.oid AND f.wall IN ('enforce', 'attested') AND f.lease IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM fencing.lease l WHERE l.resource = f.lease) AND NOT EXISTS (SELECT 1 FROM fencing.epoch e WHERE e.resource = f.lease);
  END IF;

  -- a setting of the role in this database counts, else of the role, of the database, of all, of the server
  RETURN QUERY
  SELECT 'info', 'D225 seal-no-timeout', format('role %I', a.name), 'it writes sealed tables, and no timeout ends a transaction that it leaves open',
         'a writer that is paused within a transaction holds up who takes its lease',
         format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''10s'', or set it in each transaction', a.name)
    FROM jsonb_to_recordset(apps) AS a(oid oid, name name)
   WHERE EXISTS (SELECT 1 FROM jsonb_to_recordset(v_sealed) AS f(oid oid, wall text)
                  WHERE f.wall IN ('enforce', 'attested') AND (has_table_privilege(a.oid, f.oid, 'INSERT, UPDATE, DELETE') OR has_any_column_privilege(a.oid, f.oid, 'INSERT, UPDATE')))
     AND NOT EXISTS (
       SELECT 1 FROM (VALUES ('idle_in_transaction_session_timeout'), ('transaction_timeout')) n(name), LATERAL (
         SELECT x.value FROM (
           SELECT substr(e, position('=' IN e) + 1) AS value, s.setrole = a.oid AS own, s.setdatabase <> 0 AS here, true AS set
             FROM pg_db_role_setting s, unnest(s.setconfig) e
            WHERE s.setrole IN (0, a.oid) AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
              AND lower(split_part(e, '=', 1)) = n.name
           UNION ALL SELECT g.reset_val, false, false, false FROM pg_settings g WHERE g.name = n.name AND g.source IN ('configuration file', 'command line', 'global')) x
          ORDER BY x.own DESC, x.here DESC, x.set DESC LIMIT 1) v
        WHERE v.value !~ '^0+ ?(us|ms|s|min|h|d)?$');
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_seal(jsonb, jsonb) IS 'The part of fencing.doctor() that is about seals.';

-- The objects belong to the owner of fencing.register, and who may run that may run these; nobody else starts with any right.
-- fencing.doctor_seal is for those who may run fencing.doctor.
-- +goose StatementBegin
DO $$
DECLARE
  v_register CONSTANT regprocedure := 'fencing.register(regclass, text, name, text, regclass)';
  v_doctor   CONSTANT regprocedure := 'fencing.doctor_seal(jsonb, jsonb)';
  v_new      CONSTANT regprocedure[] := ARRAY['fencing.raise_epoch()',
    'fencing.seal_fail(text, text, oid, text, name, name, text, text, name, bigint, bigint, bigint)', 'fencing.seal_function(name, text, text, name, regtype)',
    'fencing.seal_sweep(text[])', 'fencing.check_seal_column(regclass, name)', 'fencing.seal_apply(regclass)', 'fencing.seal_changed()',
    'fencing.seal(regclass, text, name)', 'fencing.unseal(regclass)', v_doctor];
  v_sql      text;
BEGIN
  FOR v_sql IN
    SELECT format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, pg_get_userbyid(r.proowner))
      FROM pg_proc r, pg_proc p WHERE r.oid = v_register AND p.oid = ANY (v_new) AND r.proowner <> p.proowner
    UNION ALL
    SELECT format('ALTER TABLE %s OWNER TO %I', c.oid::regclass, pg_get_userbyid(r.proowner))
      FROM pg_proc r, pg_class c WHERE r.oid = v_register AND c.oid = 'fencing.epoch'::regclass AND r.proowner <> c.relowner
  LOOP
    EXECUTE v_sql;
  END LOOP;
  FOR v_sql IN
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.oid = ANY (v_new) AND a.grantee <> p.proowner
    UNION
    SELECT format('REVOKE ALL ON TABLE %s FROM %s', c.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'fencing.epoch'::regclass AND a.grantee <> c.relowner
  LOOP
    EXECUTE v_sql;
  END LOOP;
  FOR v_sql IN
    SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', n.oid::regprocedure, pg_get_userbyid(a.grantee)) || CASE WHEN bool_or(a.is_grantable) THEN ' WITH GRANT OPTION' ELSE '' END
      FROM pg_proc n, pg_proc p, aclexplode(p.proacl) a
     WHERE n.oid = ANY (v_new) AND n.proname <> 'raise_epoch' AND a.grantee NOT IN (0, p.proowner)
       AND p.oid = CASE WHEN n.oid = v_doctor THEN 'fencing.doctor(boolean, name[])'::regprocedure ELSE v_register END
     GROUP BY n.oid, a.grantee
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);

-- +goose Down

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

UPDATE fencing.registry SET seal_resource = NULL, seal_column = NULL WHERE num_nonnulls(seal_resource, seal_column) > 0;

-- what is left where nothing is registered
-- +goose StatementBegin
DO $$
DECLARE
  v_sql text;
BEGIN
  FOR v_sql IN
    SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^seal_[0-9a-f]{16}_'
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

SELECT fencing.seal_sweep();

DROP TRIGGER epoch ON fencing.lease;
DROP TRIGGER seal ON fencing.registry;
DROP FUNCTION fencing.doctor_seal(jsonb, jsonb);
DROP FUNCTION fencing.unseal(regclass);
DROP FUNCTION fencing.seal(regclass, text, name);
DROP FUNCTION fencing.seal_changed();
DROP FUNCTION fencing.seal_apply(regclass);
DROP FUNCTION fencing.check_seal_column(regclass, name);
DROP FUNCTION fencing.seal_sweep(text[]);
DROP FUNCTION fencing.seal_function(name, text, text, name, regtype);
DROP FUNCTION fencing.seal_fail(text, text, oid, text, name, name, text, text, name, bigint, bigint, bigint);
DROP FUNCTION fencing.raise_epoch();
DROP TABLE fencing.epoch;

-- as 00008 has it
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.lease_wait(resource text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
END $$;
-- +goose StatementEnd

ALTER TABLE fencing.registry DROP COLUMN seal_resource, DROP COLUMN seal_column;

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);
