-- Schema fencing: durable tokens, the registry of protected tables, leases, the wall, seals, tombstones, repairs and the doctor.
--
-- Code generated from the files in src by go generate; DO NOT EDIT. The comment at the head of each part says what it is for and
-- what its limits are.

-- +goose Up

-- What follows is resolved in pg_catalog only, whatever search_path the migrating role has; the last statement puts it back,
-- because goose then writes its version table under a bare name.
SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- ---- src/10_tokens.sql

-- Schema fencing and its durable tokens: fencing.write_epoch, fencing.next_token().
--
-- nextval alone is not durable. A sequence logs 32 values ahead, so while one session's nextval waits uncommitted, another's
-- committed "SELECT nextval(...)" may write no WAL at all, and a crash hands the same number out again. next_token() writes a
-- WAL message in the caller's transaction, with synchronous_commit on: its COMMIT then flushes everything before it, and waits
-- for a synchronous standby. A token counts only after that COMMIT.
--
-- Known limits:
--   A storage snapshot put back, and setval on the sequence that is there, keep the timeline, the system identifier and both oids,
--   so tokens given out since are given out again: no function can see that, unless setval goes back to before the last jump. Say so
--   before anybody draws: DELETE FROM fencing.incarnation has the sequence jump far ahead. After PITR, after a dump that was restored
--   with the rows of this schema, wherever it was, and in a copy of the database it does so by itself. A sequence of your own never does.
--   Servers run by others may keep back what tells the timeline or the system identifier. The time at which the server started then
--   stands in for it: tokens also jump at each start of the server, which does no harm, and a promoted standby, which is another
--   server, still has them jump. Where that can't be read either, nothing but the oids is compared. fencing.doctor() says so.
--   A caller that turns synchronous_commit off after the call, in the same transaction, has turned the promise off.
--   setval or ALTER SEQUENCE on fencing.write_epoch breaks it too: grant SELECT on the sequence, never UPDATE or USAGE.

-- +goose StatementBegin
DO $$
DECLARE
  v_owner name := (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n WHERE n.nspname = 'fencing');
BEGIN
  IF v_owner IS NULL THEN
    CREATE SCHEMA fencing;
  ELSIF v_owner <> current_user THEN
    -- whoever owns the schema can drop what is in it and put something else in its place
    RAISE EXCEPTION 'fencing: schema fencing exists and belongs to role %, not to %', quote_ident(v_owner), quote_ident(current_user)
      USING ERRCODE = 'insufficient_privilege', SCHEMA = 'fencing',
            HINT = 'Run the migrations as that role, or give the schema to this one: ALTER SCHEMA fencing OWNER TO ...';
  END IF;
END $$;
-- +goose StatementEnd

CREATE SEQUENCE fencing.write_epoch AS bigint MINVALUE 1 NO CYCLE CACHE 1;

COMMENT ON SEQUENCE fencing.write_epoch IS 'Bounds the tokens that may have been issued. Drawn from by fencing.next_token() only.';

-- A connection of fencerow's driver has 'driver' in the setting fencing.session, which no statement through the driver can change. What
-- is written here decides what the driver refuses, and so none of its connections may write it, whatever role it has and however a
-- statement names it: a function that changes anything begins with this.
-- +goose StatementBegin
CREATE FUNCTION fencing.refuse_driver(what text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('fencing.session', true) = 'driver' THEN
    RAISE EXCEPTION
        'fencing: no connection of the driver may call %, which changes what the driver refuses: use a plain connection, such as psql''s or one of package migrations', what
      USING ERRCODE = 'FN004', SCHEMA = 'fencing', CONSTRAINT = 'refuse_driver';
  END IF;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.refuse_driver(text) IS 'Raises an error in a session of the driver, for what it must not do.';

-- The same for a statement on a table, as its trigger refuse_driver, whose WHEN has looked at the setting. The functions that a session of
-- the driver may call, and triggers, empty the setting while they write.
-- +goose StatementBegin
CREATE FUNCTION fencing.refuse_driver_write() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION
      'fencing: no connection of the driver may run % on fencing.%, which the driver rests on: use a plain connection, such as psql''s or one of package migrations',
    TG_OP, quote_ident(TG_TABLE_NAME) USING ERRCODE = 'FN004', SCHEMA = 'fencing', TABLE = TG_TABLE_NAME, CONSTRAINT = 'refuse_driver';
END $$;
-- +goose StatementEnd

-- What tokens were last drawn from. Another timeline or system identifier means that WAL may have been lost; another database or
-- another sequence, that a dump has been restored or the database copied, with the value that the sequence had then. The same goes for a
-- second row: it came with a dump that was restored into a database which had a row already, and so nothing may keep a second one out.
CREATE TABLE fencing.incarnation (
  tli   bigint NOT NULL,
  sysid bigint NOT NULL,
  dbid  oid    NOT NULL,
  seqid oid    NOT NULL,
  floor bigint NOT NULL DEFAULT 0  -- what tokens have been above since the last jump; below it the sequence was set back
);

-- it has no key, and a publication of all tables must not keep next_token() from writing it
ALTER TABLE fencing.incarnation REPLICA IDENTITY FULL;

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.incarnation
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.incarnation ENABLE ALWAYS TRIGGER refuse_driver;

-- As its owner, so that the doctor reads what next_token() does, whoever asks it.
-- +goose StatementBegin
CREATE FUNCTION fencing.incarnation_now(OUT tli bigint, OUT sysid bigint, OUT dbid oid, OUT seqid oid, OUT unread text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_start bigint := 0;
BEGIN
  unread := '{}';
  BEGIN
    tli := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
  EXCEPTION WHEN undefined_function OR insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
    unread := unread || 'pg_walfile_name(pg_current_wal_lsn())'::text;
  END;
  BEGIN
    sysid := (SELECT s.system_identifier FROM pg_control_system() s);
  EXCEPTION WHEN undefined_function OR insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
    unread := unread || 'pg_control_system()'::text;
  END;
  IF unread <> '{}' THEN
    BEGIN
      v_start := -(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint;  -- below every timeline
    EXCEPTION WHEN undefined_function OR insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
      unread := unread || 'pg_postmaster_start_time()'::text;
    END;
    tli := coalesce(tli, v_start);
    sysid := coalesce(sysid, v_start);
  END IF;
  dbid := (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
  seqid := 'fencing.write_epoch'::regclass;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.incarnation_now() IS
  'What tokens are drawn from now, to be compared with fencing.incarnation, and which functions the server keeps back: its start stands in for them.';

INSERT INTO fencing.incarnation (tli, sysid, dbid, seqid) SELECT n.tli, n.sysid, n.dbid, n.seqid FROM fencing.incarnation_now() n;

-- +goose StatementBegin
CREATE FUNCTION fencing.next_token() RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_token bigint;
  v_now record;
  v_is_same boolean;
  v_floor bigint;
  v_session CONSTANT text := current_setting('fencing.session', true);
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'fencing: a standby gives no tokens'
      USING ERRCODE = 'read_only_sql_transaction', HINT = 'Connect to the primary (target_session_attrs=read-write).';
  END IF;
  v_now := fencing.incarnation_now();
  FOR v_look IN 1..2 LOOP
    SELECT count(*) = 1 AND bool_and(i.tli = v_now.tli AND i.sysid = v_now.sysid AND i.dbid = v_now.dbid AND i.seqid = v_now.seqid), max(i.floor)
      INTO v_is_same, v_floor FROM fencing.incarnation i;
    IF v_is_same THEN
      v_token := nextval('fencing.write_epoch');
      EXIT WHEN v_token > v_floor;
    END IF;
    IF v_look = 1 THEN  -- look again: another session may have had tokens jump meanwhile
      LOCK TABLE fencing.incarnation IN SHARE ROW EXCLUSIVE MODE;
      CONTINUE;
    END IF;
    IF pg_sequence_last_value('fencing.write_epoch'::regclass) >= 9223372032559808512 THEN  -- 2^63 - 2^32
      RAISE EXCEPTION
          'fencing: sequence fencing.write_epoch is too near its end for the jump that a restored, promoted or copied database needs'
        USING ERRCODE = 'sequence_generator_limit_exceeded', HINT = 'It never gets there by itself. Stop all writers, set it back with '
          'setval to a value above every token that was given out, and mend rows with larger ones by fencing.repair.';
    END IF;
    -- far above whatever has been given out and is forgotten: seconds since 2020 in the high half, and past the last jump in any case
    v_floor := greatest((coalesce(pg_sequence_last_value('fencing.write_epoch'::regclass), 0) >> 32) + 1,
      extract(epoch FROM clock_timestamp() - timestamptz '2020-01-01 00:00:00+00')::bigint) << 32;
    PERFORM setval('fencing.write_epoch', v_floor);
    IF v_session = 'driver' THEN
      PERFORM set_config('fencing.session', '', true);
    END IF;
    DELETE FROM fencing.incarnation;
    INSERT INTO fencing.incarnation (tli, sysid, dbid, seqid, floor) VALUES (v_now.tli, v_now.sysid, v_now.dbid, v_now.seqid, v_floor);
    IF v_session = 'driver' THEN
      PERFORM set_config('fencing.session', v_session, true);
    END IF;
    v_token := nextval('fencing.write_epoch');
  END LOOP;
  -- a session with it off handed tokens out again after a crash; remote_apply waits for more than on and may stay
  IF current_setting('synchronous_commit') <> 'remote_apply' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM pg_logical_emit_message(true, 'fencing', v_token::text);
  RETURN v_token;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.next_token() IS 'Draws a fencing token larger than every one before. It counts only after COMMIT.';

-- ---- src/20_registry.sql

-- The registry of protected tables: fencing.registry, fencing.generation.
--
-- A table is kept by its oid and by the name it was registered under, and whoever reads the registry protects the union. So a
-- rename leaves the table protected, and a table dropped and made again is protected under its old name.
--
-- Known limits:
--   A dump taken while a registered table is missing (dropped, not made again) holds its bare oid; after the restore that number
--   may be another table's, which is then protected too. Unregister a table before dropping it for good.
--   DDL other than through fencing.register does not bump the generation.

CREATE TABLE fencing.registry (
  relid          regclass    PRIMARY KEY,
  schema_name    name        NOT NULL,
  table_name     name        NOT NULL,
  token_column   name        NOT NULL CHECK (token_column <> ''),
  mode           text        NOT NULL CHECK (mode IN ('strict', 'lease')),
  resource       text        CHECK (resource <> ''),
  issued_by      regclass    DEFAULT 'fencing.write_epoch',
  registered_at  timestamptz NOT NULL DEFAULT now(),
  driver_level   text        NOT NULL DEFAULT 'enforce' CHECK (driver_level IN ('off', 'report', 'enforce')),
  wall_level     text        NOT NULL DEFAULT 'off' CHECK (wall_level IN ('off', 'report', 'enforce', 'attested')),
  tombstones     boolean     NOT NULL DEFAULT false,
  seal_resource  text        CHECK (length(seal_resource) BETWEEN 1 AND 255),
  seal_column    name        CHECK (seal_column <> ''),
  driver_rewrite boolean     NOT NULL DEFAULT false,
  -- deferrable: names are handed round between rows in one statement
  UNIQUE (schema_name, table_name) DEFERRABLE INITIALLY IMMEDIATE,
  CONSTRAINT registry_seal_check CHECK (num_nonnulls(seal_resource, seal_column) < 2)
);

COMMENT ON TABLE fencing.registry IS
    'Protected tables, each by oid and by registered name. Written by fencing.register() and fencing.unregister().';

COMMENT ON COLUMN fencing.registry.mode IS 'strict: last_token < T, one accepted write per token and row; lease: last_token <= T.';

COMMENT ON COLUMN fencing.registry.resource IS 'The resource whose token the table takes; null: the default token.';

COMMENT ON COLUMN fencing.registry.issued_by IS 'The sequence that bounds tokens; null: tokens come from elsewhere.';

COMMENT ON COLUMN fencing.registry.driver_level IS
  'off: the driver doesn''t look at the table; report: unguarded statements run and are reported; enforce: they are refused. Set by fencing.driver_level().';

COMMENT ON COLUMN fencing.registry.wall_level IS
  'off: no triggers; report: they log what they would refuse; enforce: they refuse; attested: UPDATE and INSERT need the setting too. Set by fencing.wall().';

COMMENT ON COLUMN fencing.registry.tombstones IS
    'Whether deleted keys keep their tokens while the table has a wall. Set by fencing.tombstones().';

COMMENT ON COLUMN fencing.registry.seal_resource IS
    'The lease whose token every write must have, while the table has a wall; null: none. Set by fencing.seal().';

COMMENT ON COLUMN fencing.registry.seal_column IS 'The column that names the lease of each row; null: none. Set by fencing.seal().';

COMMENT ON COLUMN fencing.registry.driver_rewrite IS
  'The driver sends unguarded writes to the table in their guarded form. Set by fencing.driver_rewrite().';

-- A table and not a sequence: a reader sees the new generation only together with the rows it stands for.
CREATE TABLE fencing.generation (
  one   boolean PRIMARY KEY DEFAULT true CHECK (one),
  value bigint  NOT NULL
);

INSERT INTO fencing.generation (value) VALUES (1);

COMMENT ON TABLE fencing.generation IS
    'One row; its value rises with every change of fencing.registry and fencing.allowed_function, which is also notified on channel fencerow_registry.';

-- +goose StatementBegin
CREATE FUNCTION fencing.registry_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_value bigint;
BEGIN
  IF TG_RELID <> 'fencing.registry'::regclass AND TG_RELID IS DISTINCT FROM to_regclass('fencing.allowed_function')::oid THEN  -- by a trigger of somebody's own
    RAISE EXCEPTION 'fencing: fencing.registry_changed() is for fencing.registry and fencing.allowed_function, and not for a trigger on %', TG_RELID::regclass
      USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, HINT = 'Drop the trigger.';
  END IF;
  UPDATE fencing.generation SET value = value + 1 RETURNING value INTO STRICT v_value;
  PERFORM pg_notify('fencerow_registry', v_value::text);
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- for each row, not statement: registering again what is registered changes nothing and bumps nothing
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON fencing.registry
  FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed();

CREATE TRIGGER truncated AFTER TRUNCATE ON fencing.registry
  FOR EACH STATEMENT EXECUTE FUNCTION fencing.registry_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER changed;

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER truncated;

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.registry
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER refuse_driver;

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.generation
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.generation ENABLE ALWAYS TRIGGER refuse_driver;

-- The partitions of a table, at every level. Unlike pg_partition_tree this takes no lock: who holds a lock of a partition and then waits for one
-- of the partitioned table is in a deadlock with ATTACH and DETACH, which lock that first.
-- +goose StatementBegin
CREATE FUNCTION fencing.partitions(tbl regclass) RETURNS SETOF oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  WITH RECURSIVE part AS (
    SELECT i.inhrelid AS oid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition WHERE i.inhparent = tbl
    UNION ALL
    SELECT i.inhrelid FROM part p JOIN pg_inherits i ON i.inhparent = p.oid)
  SELECT p.oid FROM part p;
END $$;
-- +goose StatementEnd

-- Takes the registry's lock and, in lock_mode, those of a table, its partitions and its children, which a change is about to need; without a
-- lock_mode the registry's alone. No lock is waited for while another one of them is held that this call took: a transaction that has
-- changed one of the tables, or called another function of the schema, has some of them and then wants others, in whatever order.
-- +goose StatementBegin
CREATE FUNCTION fencing.lock_registry(tbl regclass, lock_mode text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_registry CONSTANT text := 'TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE';
  v_first  text := c_registry;  -- what is waited for
  v_lock   text;
  v_waits  boolean;
  v_locks  text[];
BEGIN
  PERFORM fencing.refuse_driver('fencing.lock_registry()');
  FOR v_round IN 1..100 LOOP
    v_locks := ARRAY[c_registry];
    -- who may make triggers may have no right to lock the table by itself
    IF lock_mode IS NOT NULL AND has_table_privilege(tbl, 'UPDATE, DELETE, TRUNCATE') THEN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid, 0 AS depth
        UNION
        SELECT i.inhrelid, m.depth + 1 FROM member m JOIN pg_inherits i ON i.inhparent = m.oid
          JOIN pg_class k ON k.oid = i.inhrelid AND k.relkind IN ('r', 'p') AND k.relpersistence <> 't'
         WHERE k.relispartition OR NOT EXISTS (SELECT FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off'))
      SELECT v_locks || array_agg(format('TABLE ONLY %I.%I IN %s MODE', n.nspname, c.relname, lock_mode) ORDER BY m.depth, m.oid) INTO v_locks
        FROM (SELECT x.oid, min(x.depth) AS depth FROM member x GROUP BY x.oid) m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE has_table_privilege(m.oid, 'UPDATE, DELETE, TRUNCATE');
    END IF;
    BEGIN
      v_waits := true;
      v_lock := v_first;
      EXECUTE 'LOCK ' || v_lock;
      v_waits := v_round = 100;  -- others, who lock them one by one, have always been faster
      FOREACH v_lock IN ARRAY v_locks LOOP
        CONTINUE WHEN v_lock = v_first;
        EXECUTE 'LOCK ' || v_lock || CASE WHEN v_waits THEN '' ELSE ' NOWAIT' END;
      END LOOP;
      RETURN;
    EXCEPTION  -- which gives back what has been taken
      WHEN lock_not_available THEN
        IF v_waits THEN  -- lock_timeout
          RAISE;
        END IF;
        v_first := v_lock;
      WHEN undefined_table OR invalid_schema_name THEN  -- dropped or renamed meanwhile
        v_first := c_registry;
    END;
  END LOOP;
  EXECUTE 'LOCK ' || c_registry;
END $$;
-- +goose StatementEnd

-- The statements that give the trigger functions whose names begin with prefix to those who may call a function of the schema, and take them
-- from everybody else: only who may register may put a trigger on them, which takes EXECUTE; firing it takes nothing.
-- +goose StatementBegin
CREATE FUNCTION fencing.function_rights(prefix text, called regprocedure) RETURNS SETOF text LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
  SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC'
      ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
    FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
   WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= prefix::name AND p.proname < (prefix || '~')::name
     AND a.grantee <> p.proowner
     AND NOT EXISTS (SELECT 1 FROM pg_proc w, aclexplode(w.proacl) b WHERE w.oid = called AND b.grantee = a.grantee AND a.grantee <> 0)
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, pg_get_userbyid(a.grantee))
    FROM pg_proc p, pg_proc w, aclexplode(w.proacl) a
   WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= prefix::name AND p.proname < (prefix || '~')::name
     AND NOT EXISTS (SELECT 1 FROM aclexplode(p.proacl) b WHERE b.grantee = a.grantee)
     AND w.oid = called AND a.grantee NOT IN (0, w.proowner);
END $$;
-- +goose StatementEnd

-- The mode in which a table has to be locked for the statements that make its triggers right, or, where these are none, for what else there is
-- to do; null, if that is nothing. prefix is what the names of the triggers' functions begin with, and null where it is to have none.
-- +goose StatementBegin
CREATE FUNCTION fencing.lock_needed(tbl regclass, statements text[], prefix text, called regprocedure) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN CASE
    WHEN EXISTS (SELECT FROM unnest(statements) s WHERE starts_with(s, 'DROP ')) THEN 'ACCESS EXCLUSIVE'
    WHEN statements IS NOT NULL OR EXISTS (SELECT FROM fencing.function_rights(prefix, called))
      OR EXISTS (
        WITH RECURSIVE member AS (
          SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid JOIN pg_class d ON d.oid = i.inhrelid AND d.relpersistence <> 't')
        SELECT FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid AND t.tgenabled <> 'A',
            LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
         WHERE p.pronamespace = 'fencing'::regnamespace AND starts_with(p.proname, prefix)) THEN 'SHARE ROW EXCLUSIVE' END;
END $$;
-- +goose StatementEnd

-- Says what to do where two transactions have waited for each other all the same.
-- +goose StatementBegin
CREATE FUNCTION fencing.refuse_deadlock(what text, tbl regclass, detail text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION 'fencing: %(%) and another transaction have waited for each other', what, quote_nullable(tbl::text)
    USING ERRCODE = 'deadlock_detected', DETAIL = detail,
          HINT = 'Run the transaction again. One that changes several tables, or calls functions of schema fencing for several, is to lock them first, in the order of their names: '
                 'LOCK TABLE ..., ... IN ACCESS EXCLUSIVE MODE.';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fencing.check_table(tbl regclass) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_class record;
  v_what text;
  v_hint text;
BEGIN
  SELECT cl.oid, cl.relkind, cl.relpersistence, cl.relispartition, n.nspname, cl.relname INTO v_class
    FROM pg_class cl JOIN pg_namespace n ON n.oid = cl.relnamespace WHERE cl.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given to register' USING ERRCODE = 'undefined_table', HINT = 'Name an existing table.';
  END IF;
  IF v_class.nspname IN ('pg_catalog', 'information_schema', 'pg_toast') OR v_class.oid::bigint < 16384 THEN  -- FirstNormalObjectId
    v_what := 'a system table';  v_hint := 'Register a table of your own.';
  ELSIF v_class.nspname = 'fencing' THEN
    v_what := 'a table of fencing itself';  v_hint := 'Register a table of your own.';
  ELSIF v_class.relpersistence = 't' THEN
    v_what := 'a temporary table';  v_hint := 'No other session sees it; register a permanent table.';
  ELSIF v_class.relispartition THEN
    v_what := 'a partition';
    v_hint := format('Register the partitioned table: SELECT fencing.register(%L, ...); its partitions are protected with it.',
                     (SELECT format('%I.%I', n.nspname, p.relname) FROM pg_class p JOIN pg_namespace n ON n.oid = p.relnamespace
                       WHERE p.oid = pg_partition_root(tbl)));
  ELSIF v_class.relkind = 'v' THEN
    v_what := 'a view';  v_hint := 'Register the table it reads from; the driver then refuses writes through the view.';
  ELSIF v_class.relkind = 'm' THEN
    v_what := 'a materialized view';  v_hint := 'Nobody writes its rows; register the table it reads from.';
  ELSIF v_class.relkind = 'f' THEN
    v_what := 'a foreign table';
    v_hint := 'Its rows are on another server, which compares nothing here; install fencing there and register the table there.';
  ELSIF v_class.relkind NOT IN ('r', 'p') THEN
    v_what := 'not a table';  v_hint := 'Register an ordinary or a partitioned table.';
  ELSE
    RETURN;
  END IF;
  RAISE EXCEPTION 'fencing: %.% is %, which can''t be protected', quote_ident(v_class.nspname), quote_ident(v_class.relname), v_what
    USING ERRCODE = 'wrong_object_type', HINT = v_hint, SCHEMA = v_class.nspname, TABLE = v_class.relname;
END $$;
-- +goose StatementEnd

-- Refuses a table that is not registered, of the name given. arguments are what fencing.register takes after the table; is_named: another
-- table is registered under the name.
-- +goose StatementBegin
CREATE FUNCTION fencing.refuse_unregistered(tbl regclass, schema_name name, table_name name, arguments text DEFAULT '...',
    is_named boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  PERFORM fencing.check_table(tbl);  -- no hint to register what register refuses
  RAISE EXCEPTION 'fencing: %.% is not registered%', quote_ident(schema_name), quote_ident(table_name),
                  CASE WHEN is_named THEN ' itself, only another table under that name' ELSE '' END
    USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = schema_name, TABLE = table_name,
          HINT = format('Register it first: SELECT fencing.register(%L, %s).', format('%I.%I', schema_name, table_name), arguments);
END $$;
-- +goose StatementEnd

-- Whether a column may have nulls: PostgreSQL 18 has NOT NULL constraints that are NOT VALID, with which older rows may have some.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_nullable(rel oid, num int2) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum = num)
    OR EXISTS (SELECT FROM pg_constraint u WHERE u.conrelid = rel AND u.contype = 'n' AND u.conkey[1] = num AND NOT u.convalidated);
END $$;
-- +goose StatementEnd

-- the column must be there: of tbl and of every table that inherits from it
-- +goose StatementBegin
CREATE FUNCTION fencing.check_token_column(tbl regclass, token_column name) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_column record;
  v_what text;
  v_hint text;
  v_alter text;
BEGIN
  WITH RECURSIVE family AS (
    SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid)
  SELECT n.nspname, c.relname, c.relispartition, c.oid::regclass AS name INTO v_column
    FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'f'
        ORDER BY c.oid LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: % can''t be protected, since its % % is a foreign table', tbl,
        CASE WHEN v_column.relispartition THEN 'partition' ELSE 'child' END, v_column.name
      USING ERRCODE = 'wrong_object_type', SCHEMA = v_column.nspname, TABLE = v_column.relname,
            HINT = format('Its rows are on another server, where no trigger of this one compares a token. Take it out: ALTER TABLE %s, and protect it where its rows are.',
                          CASE WHEN v_column.relispartition THEN format('... DETACH PARTITION %s', v_column.name)
                              ELSE format('%s NO INHERIT ...', v_column.name) END);
  END IF;
  FOR v_column IN
    WITH RECURSIVE family AS (
      SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid)
    SELECT n.nspname, c.relname, t.atttypid, ty.typtype, t.attidentity, t.attgenerated,
           fencing.doctor_nullable(c.oid, t.attnum) AS nullable,
           format_type(t.atttypid, t.atttypmod) AS type,
           -- with the table's oid it would lock that
           CASE t.attgenerated WHEN '' THEN pg_get_expr(d.adbin, 0) END AS def
      FROM family f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = check_token_column.token_column AND t.attnum > 0 AND NOT t.attisdropped
      JOIN pg_type ty ON ty.oid = t.atttypid
      LEFT JOIN pg_attrdef d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
  LOOP
    v_alter := format('ALTER TABLE %I.%I ALTER COLUMN %I ', v_column.nspname, v_column.relname, token_column);
    IF v_column.typtype = 'd' THEN
      v_what := format('of the domain %s, not bigint', v_column.type);
      v_hint := format('A domain may round or compare in its own way. %sTYPE bigint, or name another token column.', v_alter);
    ELSIF v_column.atttypid <> 'int8'::regtype THEN
      v_what := format('%s, not bigint', v_column.type);
      v_hint := format('%sTYPE bigint USING ..., or name another token column.', v_alter);
    ELSIF v_column.attidentity <> '' THEN
      v_what := 'an identity column';
      v_hint := format('A token comes from the lock, never from the table. %sDROP IDENTITY, or name another token column.', v_alter);
    ELSIF v_column.attgenerated <> '' THEN
      v_what := 'a generated column';
      v_hint := format('A token comes from the lock, never from the table. %sDROP EXPRESSION, or name another token column.', v_alter);
    ELSIF v_column.nullable THEN
      v_what := 'nullable';
      v_hint := format('A null is neither older nor newer than a token. Set the nulls to 0, then %sSET NOT NULL.', v_alter);
    ELSIF v_column.def NOT IN ('0', '''0''::bigint', '(0)::bigint') THEN
      v_what := 'filled by a default of its own';
      v_hint := format('A row that was never written under a token has 0. %sSET DEFAULT 0, or name another token column.', v_alter);
    ELSE
      CONTINUE;
    END IF;
    RAISE EXCEPTION 'fencing: token column % of %.% is %', quote_ident(token_column), quote_ident(v_column.nspname),
        quote_ident(v_column.relname), v_what
      USING ERRCODE = 'datatype_mismatch', HINT = v_hint, SCHEMA = v_column.nspname, TABLE = v_column.relname, COLUMN = token_column;
  END LOOP;
END $$;
-- +goose StatementEnd

-- Refuses a table in the place of one that had a wall, if rows of it have no token: where they were copied without it, or the column is another
-- one by now, any holder would write them. former is as in fencing.take_over. Where a trigger of fencing's goes by the column, the rows are
-- those that were there.
-- +goose StatementBegin
CREATE FUNCTION fencing.check_tokens(tbl regclass, token_column name, former jsonb) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_table record;
  v_found boolean;
BEGIN
  IF NOT EXISTS (SELECT FROM jsonb_array_elements(former) e WHERE e ->> 'wall_level' <> 'off') THEN
    RETURN;
  END IF;
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name,
         (SELECT format('pg_catalog.pg_sequence_last_value(%L)', format('%I.%I', m.nspname, q.relname))
            FROM jsonb_array_elements(former) e JOIN pg_class q ON q.oid = to_regclass(e ->> 'issued_by') AND q.relkind = 'S' JOIN pg_namespace m ON m.oid = q.relnamespace LIMIT 1) AS newest
    INTO v_table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s t WHERE t.%I = 0 AND t.tableoid <> ALL ($1))', v_table.name, token_column) INTO v_found
    USING ARRAY(SELECT t.tgrelid FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid
                  JOIN pg_attribute a ON d.refclassid = 'pg_class'::regclass AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                 WHERE a.attrelid = t.tgrelid AND a.attname = check_tokens.token_column AND p.pronamespace = 'fencing'::regnamespace
                   AND (p.proname ~ '^wall_[0-9a-f]{16}_late(_attested)?$' OR t.tgname = '~fencing_kept_token'));
  IF v_found THEN
    RAISE EXCEPTION 'fencing: % takes the place of a table with a wall, and rows of it have no token: nothing tells which ones they have had', v_table.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname, COLUMN = token_column,
            HINT = format('Give them the newest token that was given out, and register the table again: UPDATE %1$s SET %2$I = %3$s WHERE %2$I = 0. '
                          'To start afresh, with rows that any token may write: SELECT fencing.unregister(%4$L), and register it again.',
                     v_table.name, token_column, coalesce(v_table.newest, '...'), v_table.name);
  END IF;
END $$;
-- +goose StatementEnd

-- What former asks for and present doesn't, of what protects a table; both are rows of the registry.
-- Of two levels the stricter one counts, and a seal of its own stays.
-- +goose StatementBegin
CREATE FUNCTION fencing.carry_over(present jsonb, former jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
  v_more   jsonb := '{}';
  v_column text;
BEGIN
  FOREACH v_column IN ARRAY ARRAY['driver_level', 'wall_level'] LOOP
    IF array_position(c_levels, former ->> v_column) > coalesce(array_position(c_levels, present ->> v_column), 0) THEN
      v_more := v_more || jsonb_build_object(v_column, former -> v_column);
    END IF;
  END LOOP;
  FOREACH v_column IN ARRAY ARRAY['driver_rewrite', 'tombstones'] LOOP
    IF (former ->> v_column)::boolean AND NOT coalesce((present ->> v_column)::boolean, false) THEN
      v_more := v_more || jsonb_build_object(v_column, true);
    END IF;
  END LOOP;
  IF coalesce(present ->> 'seal_resource', present ->> 'seal_column') IS NULL
      AND coalesce(former ->> 'seal_resource', former ->> 'seal_column') IS NOT NULL THEN
    v_more := v_more || jsonb_build_object('seal_resource', former -> 'seal_resource', 'seal_column', former -> 'seal_column');
  END IF;
  RETURN v_more;
END $$;
-- +goose StatementEnd

-- Has the row of tbl ask for no less than those rows of the registry did that former has, each with the oid of its table, and takes over
-- the tombstones of these.
-- is_new: the row has been made just now, and what it doesn't say is as they say.
-- +goose StatementBegin
CREATE FUNCTION fencing.take_over(tbl regclass, former jsonb, is_new boolean) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_row  jsonb;
  v_more jsonb := '{}';
  v_list text;
  v_old  jsonb;
BEGIN
  PERFORM fencing.refuse_driver('fencing.take_over()');
  IF coalesce(jsonb_array_length(former), 0) = 0 THEN
    RETURN;
  END IF;
  SELECT to_jsonb(r) INTO v_row FROM fencing.registry r WHERE r.relid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no registered table given to hand a registration to'
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'fencing.register() hands it over: SELECT fencing.register(...).';
  END IF;
  IF is_new THEN
    v_more := (former -> 0) - ARRAY['relid', 'schema_name', 'table_name', 'token_column', 'mode', 'resource', 'issued_by', 'registered_at'];
  END IF;
  FOR v_old IN SELECT e FROM jsonb_array_elements(former) e LOOP
    v_more := v_more || fencing.carry_over(v_row || v_more, v_old);
    PERFORM fencing.tombstone_copy((v_old ->> 'oid')::oid::regclass, tbl);
  END LOOP;
  SELECT string_agg(format('%I', k), ', ') INTO v_list FROM jsonb_object_keys(v_more) k WHERE v_row ? k AND v_row -> k <> v_more -> k;
  IF v_list IS NOT NULL THEN  -- the triggers of the registry put up what the row asks for
    EXECUTE format('UPDATE fencing.registry r SET (%s) = (SELECT %1$s FROM jsonb_populate_record(r, $2)) WHERE r.relid = $1', v_list)
        USING tbl, v_more;
  END IF;
END $$;
-- +goose StatementEnd

-- The rows of the tables that tbl may have been a partition or a child of when it got the triggers that it has: those that have partitions or
-- children, have the same columns, and whose walls, tombstones and seals have the same functions. A detached partition has the trigger for
-- TRUNCATE only. Nothing in the catalog tells which one of several it was.
-- +goose StatementBegin
CREATE FUNCTION fencing.registered_above(tbl regclass) RETURNS SETOF fencing.registry LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  v_has text[];  -- what the names of the functions begin with
BEGIN
  SELECT array_agg(DISTINCT left(p.proname, 21)) INTO v_has FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
   WHERE t.tgrelid = tbl AND t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_';
  IF v_has IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT r.* FROM fencing.registry r JOIN pg_class c ON c.oid = r.relid AND c.relhassubclass
    LEFT JOIN (pg_class q JOIN pg_namespace n ON n.oid = q.relnamespace) ON q.oid = r.issued_by
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = r.seal_column AND a.attnum > 0
   WHERE r.relid <> tbl AND r.wall_level <> 'off'
     AND 'wall_' || left(md5(convert_to(jsonb_build_array(r.token_column, r.mode, r.resource, CASE WHEN q.oid IS NOT NULL THEN format('%I.%I', n.nspname, q.relname) END)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) = ANY (v_has)
     AND (r.tombstones OR NOT EXISTS (SELECT FROM unnest(v_has) h WHERE starts_with(h, 'tomb_')))
     AND (NOT EXISTS (SELECT FROM unnest(v_has) h WHERE starts_with(h, 'seal_'))
          OR 'seal_' || left(md5(convert_to(jsonb_build_array(r.token_column, r.resource, r.seal_resource, r.seal_column, a.atttypid::regtype::text)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) = ANY (v_has))
     AND NOT EXISTS (SELECT FROM pg_attribute x WHERE x.attrelid = c.oid AND x.attnum > 0 AND NOT x.attisdropped
       AND NOT EXISTS (SELECT FROM pg_attribute y WHERE y.attrelid = tbl AND y.attname = x.attname AND y.atttypid = x.atttypid AND NOT y.attisdropped));
END $$;
-- +goose StatementEnd

-- Gives tbl its present name in the registry, and the tables that are registered under that name theirs. No name that stands for
-- a table falls out by it. A table that comes by the name of another one is protected no less than that one was, and so is the table
-- that has the name which tbl gives up; for tbl itself that is left to the caller.
-- +goose StatementBegin
CREATE FUNCTION fencing.claim_name(tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_taken  record;
  v_chain  oid[];
  v_former jsonb;  -- rows of the registry, by the table that has their name now
  v_heir   oid;    -- the table that has the name under which tbl was registered
  v_mine   jsonb;
  v_state  text;
  v_what   text;
  v_hint   text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.claim_name()');
  SELECT n.nspname, c.relname INTO v_taken
    FROM fencing.registry r JOIN pg_namespace n ON n.nspname = r.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = r.table_name
   WHERE r.relid = tbl AND c.oid <> tbl::oid AND c.relkind IN ('r', 'p')
     AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = c.oid OR c.relispartition AND x.relid = pg_partition_root(c.oid));
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: % was registered as %.%, and another table has that name now', tbl, quote_ident(v_taken.nspname),
        quote_ident(v_taken.relname)
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_taken.nspname, TABLE = v_taken.relname,
            HINT = format('Say first what holds for the table that has the name: SELECT fencing.register(%L, ...) or SELECT fencing.unregister(%1$L).',
                          format('%I.%I', v_taken.nspname, v_taken.relname));
  END IF;
  SELECT h.relid, to_jsonb(r) || jsonb_build_object('oid', r.relid::oid) INTO v_heir, v_mine
    FROM fencing.registry r JOIN pg_namespace n ON n.nspname = r.schema_name JOIN pg_class c ON c.relnamespace = n.oid
        AND c.relname = r.table_name
    JOIN fencing.registry h ON h.relid = c.oid OR c.relispartition AND h.relid = pg_partition_root(c.oid)
   WHERE r.relid = tbl AND c.oid <> tbl::oid AND h.relid <> tbl AND c.relkind IN ('r', 'p') ORDER BY h.relid = c.oid LIMIT 1;
  v_chain := ARRAY[tbl::oid];
  IF EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN fencing.registry r ON r.schema_name = n.nspname
      AND r.table_name = c.relname
              WHERE c.oid = tbl AND r.relid <> tbl) THEN
    WITH RECURSIVE chain AS (
      SELECT tbl::oid AS oid
      UNION
      SELECT r.relid::oid FROM chain h JOIN pg_class c ON c.oid = h.oid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN fencing.registry r ON r.schema_name = n.nspname AND r.table_name = c.relname)
    SELECT array_agg(h.oid) INTO v_chain FROM chain h;
    SELECT jsonb_object_agg(c.oid, to_jsonb(f) || jsonb_build_object('oid', f.relid::oid)) INTO v_former
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN fencing.registry r ON r.relid = c.oid
      JOIN fencing.registry f ON f.schema_name = n.nspname AND f.table_name = c.relname AND f.relid <> r.relid
     WHERE c.oid = ANY (v_chain) AND c.oid <> tbl::oid;
  END IF;
  DELETE FROM fencing.registry r WHERE r.relid = ANY (v_chain::regclass[]) AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = r.relid);
  UPDATE fencing.registry r SET schema_name = n.nspname, table_name = c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE r.relid = ANY (v_chain::regclass[]) AND c.oid = r.relid AND (r.schema_name, r.table_name) IS DISTINCT FROM (n.nspname, c.relname);
  PERFORM fencing.take_over(e.key::oid::regclass, jsonb_build_array(e.value), false) FROM jsonb_each(v_former) e;
  IF v_heir IS NOT NULL THEN
    UPDATE fencing.registry r SET schema_name = n.nspname, table_name = c.relname
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE r.relid = v_heir AND c.oid = v_heir AND (r.schema_name, r.table_name) IS DISTINCT FROM (n.nspname, c.relname)
       AND NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.schema_name = n.nspname AND x.table_name = c.relname)
       AND NOT EXISTS (SELECT 1 FROM pg_class x JOIN pg_namespace m ON m.oid = x.relnamespace WHERE m.nspname = r.schema_name
           AND x.relname = r.table_name);
    BEGIN
      PERFORM fencing.take_over(v_heir::regclass, jsonb_build_array(v_mine), false);
    EXCEPTION WHEN object_not_in_prerequisite_state OR undefined_column OR datatype_mismatch OR feature_not_supported THEN
      GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_what = MESSAGE_TEXT, v_hint = PG_EXCEPTION_HINT;
      RAISE EXCEPTION '%', v_what
        USING ERRCODE = v_state,
              HINT = format('%s has the name under which %s was registered, and is to be protected no less than that. ',
                  v_heir::regclass, tbl)
                     || v_hint || format(' To start afresh with it: SELECT fencing.unregister(%L), and register it again.',
                         v_heir::regclass);
    END;
  END IF;
END $$;
-- +goose StatementEnd

-- Whether a table is registered as fencing.register is to do it, and by no other name; if not, the mode in which the table has to be
-- locked for that, or null where only the registry changes.
-- +goose StatementBegin
CREATE FUNCTION fencing.registration(tbl regclass, mode text, token_column name, resource text, issued_by regclass, OUT is_done boolean,
    OUT lock_mode text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  v_has_column CONSTANT boolean := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = registration.tbl AND a.attname = registration.token_column
      AND a.attnum > 0 AND NOT a.attisdropped);
  -- the rows that it would take the place of, and those whose names its partitions have
  v_has_others CONSTANT boolean := EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN fencing.registry r ON r.schema_name = n.nspname AND r.table_name = c.relname AND r.relid <> c.oid WHERE c.oid = registration.tbl)
    OR EXISTS (SELECT FROM fencing.partitions(registration.tbl) p(oid) JOIN fencing.registry r ON r.relid = p.oid)
    OR EXISTS (SELECT FROM fencing.partitions(registration.tbl) p(oid) JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN fencing.registry r ON r.schema_name = n.nspname AND r.table_name = c.relname);
  v_row record;
BEGIN
  SELECT r.wall_level, (r.token_column, r.mode, r.resource, r.issued_by) IS NOT DISTINCT FROM (registration.token_column, registration.mode,
           registration.resource, registration.issued_by) AS is_same,
         EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = registration.tbl
             AND (n.nspname, c.relname) = (r.schema_name, r.table_name)) AS is_named INTO v_row
    FROM fencing.registry r WHERE r.relid = registration.tbl;
  is_done := coalesce(v_has_column AND v_row.is_same AND v_row.is_named AND NOT v_has_others, false);
  lock_mode := CASE
    WHEN is_done OR v_row.wall_level = 'off' AND NOT v_has_others OR v_row.is_same AND NOT v_has_others THEN NULL
    WHEN v_row.wall_level IS NULL AND v_has_column AND NOT v_has_others AND NOT EXISTS (SELECT FROM fencing.registered_above(registration.tbl))
      THEN 'SHARE ROW EXCLUSIVE'  -- for the trigger that keeps the column
    ELSE 'ACCESS EXCLUSIVE' END;  -- to add the column, or for triggers that may have to go
END $$;
-- +goose StatementEnd

-- As text the default of issued_by depends on no sequence: DROP SEQUENCE ... CASCADE would take the function with it.
-- +goose StatementBegin
CREATE FUNCTION fencing.register(tbl regclass, mode text DEFAULT NULL, token_column name DEFAULT 'last_token', resource text DEFAULT NULL,
                                 issued_by regclass DEFAULT 'fencing.write_epoch'::text::regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  v_schema name;
  v_table  name;
  v_former jsonb;    -- the rows that tbl takes the place of
  v_ended  oid[];    -- what is no table of its own any more, of those
  v_is_new boolean;  -- tbl has no row itself
  v_is_detached boolean := false;  -- it was a partition or a child of v_former
  v_newest bigint := 0;  -- the newest token that a row of tbl may have had
  v_token  bigint;
  v_seq    regclass;
  v_rows   boolean;
  o        record;
  v_state  text;
  v_what   text;
  v_hint   text;
  v_is_done boolean;
  v_lock   text;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.register()');
  PERFORM fencing.check_table(tbl);
  SELECT n.nspname, c.relname INTO STRICT v_schema, v_table
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = register.tbl;
  IF register.mode IS NULL OR register.mode NOT IN ('strict', 'lease') THEN
    RAISE EXCEPTION 'fencing: % for %.%', CASE WHEN register.mode IS NULL THEN 'no mode given'
        ELSE format('unknown mode %L', register.mode) END,
                    quote_ident(v_schema), quote_ident(v_table)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_schema, TABLE = v_table,
            HINT = 'Choose ''strict'' (one accepted write per token and row, a token for each write) or ''lease'' (a holder writes as often as it likes under one token).';
  END IF;
  IF coalesce(register.token_column, '') = '' THEN
    RAISE EXCEPTION 'fencing: no token column given for %.%', quote_ident(v_schema), quote_ident(v_table)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_schema, TABLE = v_table, HINT = 'Leave the argument out for last_token.';
  END IF;
  IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = register.tbl AND a.attname = register.token_column AND a.attnum < 0) THEN
    RAISE EXCEPTION 'fencing: token column % of %.% is a system column', quote_ident(register.token_column), quote_ident(v_schema), quote_ident(v_table)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_schema, TABLE = v_table, HINT = 'Name a column of your own, or leave the argument out for last_token.';
  END IF;
  IF register.resource = '' THEN
    RAISE EXCEPTION 'fencing: empty resource name for %.%', quote_ident(v_schema), quote_ident(v_table)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_schema, TABLE = v_table,
          HINT = 'Leave the argument out, or pass NULL, for the default token.';
  END IF;
  IF register.issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = register.issued_by AND c.relkind = 'S') THEN
    RAISE EXCEPTION 'fencing: % is no sequence, so it can''t bound the tokens of %.%', register.issued_by, quote_ident(v_schema),
        quote_ident(v_table)
      USING ERRCODE = 'wrong_object_type', SCHEMA = v_schema, TABLE = v_table,
          HINT = 'Leave the argument out for fencing.write_epoch; pass NULL where tokens come from elsewhere.';
  END IF;
  IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = register.issued_by AND c.relpersistence = 't') THEN
    RAISE EXCEPTION 'fencing: % is a temporary sequence, so it can''t bound the tokens of %.%', register.issued_by, quote_ident(v_schema),
        quote_ident(v_table)
      USING ERRCODE = 'wrong_object_type', SCHEMA = v_schema, TABLE = v_table,
          HINT = 'It goes with its session; name a permanent sequence, or leave the argument out for fencing.write_epoch.';
  END IF;

  PERFORM fencing.refuse_moved(register.tbl, 'token', if_kept => true);
  -- one registration at a time; readers of the registry are not held up, nor is who registers again what is registered
  SELECT x.is_done, x.lock_mode INTO STRICT v_is_done, v_lock
    FROM fencing.registration(register.tbl, register.mode, register.token_column, register.resource, register.issued_by) x;
  IF v_is_done THEN
    PERFORM fencing.check_token_column(register.tbl, register.token_column);
    PERFORM fencing.tombstone_copy(p.oid::regclass, register.tbl) FROM fencing.partitions(register.tbl) p(oid);
    RETURN;
  END IF;
  PERFORM fencing.lock_registry(register.tbl, v_lock);
  -- its name may have become another one while this waited
  SELECT n.nspname, c.relname INTO v_schema, v_table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = register.tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: the table to register was dropped meanwhile' USING ERRCODE = 'undefined_table', HINT = 'Name an existing table.';
  END IF;
  v_is_new := NOT EXISTS (SELECT 1 FROM fencing.registry r WHERE r.relid = register.tbl);
  -- A table that was dropped and made again, restored by itself or put in the place of another by renaming takes on what was registered
  -- under the name; one that has got partitions, what was registered for these.
  SELECT coalesce(jsonb_agg(to_jsonb(f) || jsonb_build_object('oid', f.relid::oid) ORDER BY f.is_ended DESC, f.relid), '[]'),
      array_agg(f.relid::oid) FILTER (WHERE f.is_ended) INTO v_former, v_ended
    FROM (
      SELECT r.*, NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = r.relid AND c.relkind IN ('r', 'p'))
                  OR EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = r.relid AND c.relispartition
                      AND pg_partition_root(c.oid) = register.tbl) AS is_ended
        FROM fencing.registry r WHERE r.schema_name = v_schema AND r.table_name = v_table AND r.relid <> register.tbl
      UNION
      SELECT r.*, true FROM fencing.partitions(register.tbl) p(oid) JOIN fencing.registry r ON r.relid = p.oid
      UNION  -- a partition that has the name of what was registered
      SELECT r.*, NOT EXISTS (SELECT 1 FROM pg_class d WHERE d.oid = r.relid AND d.relkind IN ('r', 'p'))
        FROM fencing.partitions(register.tbl) p(oid) JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN fencing.registry r ON r.schema_name = n.nspname AND r.table_name = c.relname
       WHERE r.relid::oid NOT IN (SELECT q.oid FROM fencing.partitions(register.tbl) q(oid))) f;
  -- A partition that was detached is registered as what it was part of, if the caller says the same: what is stricter of several counts.
  IF v_is_new AND jsonb_array_length(v_former) = 0 THEN
    SELECT coalesce(jsonb_agg(to_jsonb(r) || jsonb_build_object('oid', r.relid::oid) ORDER BY r.relid), '[]') INTO v_former FROM fencing.registered_above(register.tbl) r
     WHERE (r.token_column, r.mode, r.resource, r.issued_by) IS NOT DISTINCT FROM (register.token_column, register.mode, register.resource, register.issued_by);
    v_is_detached := jsonb_array_length(v_former) > 0;
    IF 1 < (SELECT count(DISTINCT e - ARRAY['relid', 'oid', 'schema_name', 'table_name', 'registered_at']) FROM jsonb_array_elements(v_former) e) THEN
      RAISE EXCEPTION 'fencing: %.% has a trigger of a wall from a table that it was part of, and several are registered like that: %', quote_ident(v_schema),
          quote_ident(v_table), (SELECT string_agg(e ->> 'relid', ', ' ORDER BY e ->> 'relid') FROM jsonb_array_elements(v_former) e)
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_schema, TABLE = v_table,
              HINT = format('SELECT fencing.wall(%L, ''off'') takes that trigger. Then register the table, and give it the wall, the tombstones and the seal of the one that it was part of; fencing.tombstone_copy has the keys that were deleted.',
                  format('%I.%I', v_schema, v_table));
    END IF;
  END IF;
  -- What several rows ask for can't all hold where it differs. If the table has only its own name from another one, what the caller says counts.
  SELECT string_agg(k.what, ' and ' ORDER BY k.n) INTO v_what
    FROM (VALUES (1, 'mode'), (2, 'resource'), (3, 'issued_by'), (4, 'seal')) k(n, what)
   WHERE NOT v_is_detached
     AND EXISTS (SELECT 1 FROM jsonb_array_elements(v_former) e WHERE (e ->> 'schema_name', e ->> 'table_name') <> (v_schema::text, v_table::text))
     AND 1 < (SELECT count(DISTINCT CASE k.what WHEN 'seal' THEN jsonb_build_array(e -> 'seal_resource', e -> 'seal_column')
         ELSE jsonb_build_array(e -> k.what) END)
                FROM (SELECT e FROM jsonb_array_elements(v_former) e
                      UNION ALL
                      SELECT to_jsonb(r) || jsonb_build_object('mode', register.mode, 'resource', register.resource, 'issued_by', register.issued_by)
                        FROM fencing.registry r WHERE r.relid = register.tbl) x(e)
               WHERE k.what <> 'seal' OR coalesce(e ->> 'seal_resource', e ->> 'seal_column') IS NOT NULL);
  IF v_what IS NOT NULL THEN
    SELECT string_agg(CASE WHEN c.oid IS NOT NULL THEN format('%I.%I', n.nspname, c.relname)
        ELSE format('%I.%I, which is gone (%s)', e ->> 'schema_name', e ->> 'table_name', e ->> 'oid') END, ', ' ORDER BY e ->> 'oid') INTO v_hint
      FROM jsonb_array_elements(v_former) e LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = (e ->> 'oid')::oid;
    RAISE EXCEPTION 'fencing: what %.% takes the place of was registered with different %', quote_ident(v_schema), quote_ident(v_table), v_what
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_schema, TABLE = v_table,
            HINT = format('Only one can hold for all of them. Of %s, call fencing.unregister for those that are to take on what the others have, or DELETE FROM fencing.registry WHERE relid::oid = ... for one that is gone, and register %I.%I in the same transaction.',
                          v_hint, v_schema, v_table);
  END IF;
  -- A name that another table has by now isn't to fall out with the row of a partition.
  FOR o IN
    SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, (e ->> 'oid')::oid::regclass AS part, e AS row,
        EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = h.oid) AS is_registered, h.oid AS heir
      FROM jsonb_array_elements(v_former) e JOIN pg_namespace n ON n.nspname = e ->> 'schema_name' JOIN pg_class c ON c.relnamespace = n.oid
          AND c.relname = e ->> 'table_name',
      LATERAL (SELECT CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid ELSE c.oid END AS oid) h
     WHERE (e ->> 'oid')::oid = ANY (v_ended) AND c.relkind IN ('r', 'p') AND c.oid <> (e ->> 'oid')::oid AND h.oid <> register.tbl
  LOOP
    IF NOT o.is_registered THEN
      RAISE EXCEPTION 'fencing: % was registered as %, and another table has that name now', o.part, o.name
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_schema, TABLE = v_table,
              HINT = format('Say first what holds for the table that has the name: SELECT fencing.register(%L, ...) or SELECT fencing.unregister(%L).',
                  o.heir::regclass::text, o.name);
    END IF;
    PERFORM fencing.take_over(o.heir::regclass, jsonb_build_array(o.row), false);
  END LOOP;
  SELECT string_agg(x.name, ', ') INTO v_what
    FROM (SELECT register.tbl::text AS name FROM fencing.registry r WHERE r.relid = register.tbl AND r.token_column <> register.token_column
          UNION ALL
          SELECT CASE WHEN f.is_partition THEN f.oid::regclass ELSE register.tbl END::text
            FROM jsonb_array_elements(v_former) e, LATERAL (
              SELECT (e ->> 'oid')::oid AS oid, EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = (e ->> 'oid')::oid
                  AND c.relispartition) AS is_partition) f
           WHERE e ->> 'token_column' <> register.token_column AND (v_is_new OR f.is_partition)) x;
  IF v_what IS NOT NULL THEN
    -- a new column starts at 0: every token that the rows carry would be forgotten, and a stale holder be new again
    RAISE EXCEPTION 'fencing: % is registered with another token column', v_what
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_schema, TABLE = v_table,
            HINT = format('Rename that column, or copy its values into the new one, and call fencing.unregister for %s before registering %I.%I again.',
                v_what, v_schema, v_table);
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = register.tbl AND a.attname = register.token_column AND a.attnum > 0
      AND NOT a.attisdropped) THEN
    IF NOT v_is_new THEN
      -- renamed, most likely: a new column would start at 0, as above
      RAISE EXCEPTION 'fencing: %.% is registered and has no column %', quote_ident(v_schema), quote_ident(v_table),
          quote_ident(register.token_column)
        USING ERRCODE = 'undefined_column', SCHEMA = v_schema, TABLE = v_table,
              HINT = 'Give the token column its name back. If it is gone, and the tokens with it, call fencing.unregister before registering the table again.';
    END IF;
    IF jsonb_array_length(v_former) > 0 THEN
      -- Which tokens its rows have had is forgotten, but none of them is newer than the last one that was given out.
      EXECUTE format('LOCK TABLE %I.%I IN ACCESS EXCLUSIVE MODE', v_schema, v_table);
      FOR v_seq IN SELECT register.issued_by UNION SELECT to_regclass(e ->> 'issued_by') FROM jsonb_array_elements(v_former) e LOOP
        IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = v_seq AND c.relkind = 'S') THEN
          EXECUTE format('SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM %s', v_seq) INTO v_token;
          v_newest := greatest(v_newest, v_token);
        ELSE
          EXECUTE format('SELECT EXISTS (SELECT FROM %I.%I)', v_schema, v_table) INTO v_rows;
          IF v_rows THEN
            RAISE EXCEPTION 'fencing: the rows of %.% have no token column, and nothing tells which tokens they have had',
                quote_ident(v_schema), quote_ident(v_table)
              USING ERRCODE = 'undefined_column', SCHEMA = v_schema, TABLE = v_table,
                    HINT = format('Give them the newest token that was given out: ALTER TABLE %1$I.%2$I ADD COLUMN %3$I bigint NOT NULL DEFAULT ...; ALTER TABLE %1$I.%2$I ALTER COLUMN %3$I SET DEFAULT 0. '
                                  'To start afresh, with rows that any token may write: SELECT fencing.unregister(%4$L), and register it again.',
                                      v_schema, v_table, register.token_column, format('%I.%I', v_schema, v_table));
          END IF;
        END IF;
      END LOOP;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = register.tbl AND c.reloftype <> 0) THEN
      RAISE EXCEPTION 'fencing: %.% is a table of type %, and a column can''t be added to it alone', quote_ident(v_schema), quote_ident(v_table),
          (SELECT c.reloftype::regtype FROM pg_class c WHERE c.oid = register.tbl)
        USING ERRCODE = 'wrong_object_type', SCHEMA = v_schema, TABLE = v_table, COLUMN = register.token_column,
              HINT = format('Add it to the type: ALTER TYPE %s ADD ATTRIBUTE %I bigint CASCADE, give the rows 0, and ALTER TABLE %I.%I ALTER COLUMN %2$I SET DEFAULT 0, ALTER COLUMN %2$I SET NOT NULL. Or ALTER TABLE %3$I.%4$I NOT OF.',
                  (SELECT c.reloftype::regtype FROM pg_class c WHERE c.oid = register.tbl), register.token_column, v_schema, v_table);
    END IF;
    EXECUTE format('ALTER TABLE %I.%I ADD COLUMN IF NOT EXISTS %I pg_catalog.int8 NOT NULL DEFAULT %s', v_schema, v_table,
        register.token_column, v_newest);
    IF v_newest > 0 THEN
      EXECUTE format('ALTER TABLE %I.%I ALTER COLUMN %I SET DEFAULT 0', v_schema, v_table, register.token_column);
    END IF;
  END IF;
  PERFORM fencing.check_token_column(register.tbl, register.token_column);
  PERFORM fencing.refuse_moved((e ->> 'oid')::oid::regclass, 'token', if_kept => NOT v_is_detached) FROM jsonb_array_elements(v_former) e;
  PERFORM fencing.check_tokens(register.tbl, register.token_column, v_former) WHERE v_is_new AND NOT v_is_detached;

  -- with the triggers of a partition that its partitioned table will have copies of
  DELETE FROM fencing.registry r WHERE r.relid = ANY (v_ended::regclass[]);
  PERFORM fencing.claim_name(register.tbl);
  INSERT INTO fencing.registry AS r (relid, schema_name, table_name, token_column, mode, resource, issued_by)
  VALUES (register.tbl, v_schema, v_table, register.token_column, register.mode, register.resource, register.issued_by)
  ON CONFLICT (relid) DO UPDATE
    SET token_column = EXCLUDED.token_column, mode = EXCLUDED.mode, resource = EXCLUDED.resource, issued_by = EXCLUDED.issued_by
  WHERE (r.token_column, r.mode, r.resource, r.issued_by)
        IS DISTINCT FROM (EXCLUDED.token_column, EXCLUDED.mode, EXCLUDED.resource, EXCLUDED.issued_by);
  IF v_is_new THEN
    IF jsonb_array_length(v_former) > 0 THEN  -- restored with what keeps its columns
      PERFORM fencing.refuse_moved(register.tbl, 'token', if_kept => true);
    END IF;
    IF has_table_privilege(register.tbl, 'TRIGGER') THEN
      PERFORM fencing.keep_columns(register.tbl, 'token', ARRAY[register.token_column]);
    END IF;
  END IF;
  -- also of partitions that have no row
  PERFORM fencing.tombstone_copy(p.oid::regclass, register.tbl) FROM fencing.partitions(register.tbl) p(oid);
  IF jsonb_array_length(v_former) = 0 THEN
    RETURN;
  END IF;
  -- The tables whose name a partition of tbl has. What was registered under the name that such a table has itself is handed to it. Whatever
  -- a detached partition was part of keeps its names: this is not the call that is to settle them.
  FOR o IN
    SELECT r.relid AS heir, (SELECT jsonb_agg(to_jsonb(f) || jsonb_build_object('oid', f.relid::oid)) FROM fencing.registry f
        WHERE f.schema_name = n.nspname AND f.table_name = c.relname AND f.relid <> r.relid) AS rows
      FROM jsonb_array_elements(v_former) e JOIN fencing.registry r ON r.relid = (e ->> 'oid')::oid
      JOIN pg_class c ON c.oid = r.relid AND c.relkind IN ('r', 'p') JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE NOT v_is_detached AND (r.schema_name, r.table_name) <> (n.nspname, c.relname)
  LOOP
    PERFORM fencing.claim_name(o.heir);
    PERFORM fencing.take_over(o.heir, o.rows, false);
  END LOOP;
  BEGIN
    PERFORM fencing.take_over(register.tbl, v_former, v_is_new);
  EXCEPTION WHEN object_not_in_prerequisite_state OR undefined_column OR datatype_mismatch OR feature_not_supported THEN
    GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_what = MESSAGE_TEXT, v_hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION '%', v_what
      USING ERRCODE = v_state, SCHEMA = v_schema, TABLE = v_table,
            HINT = format('%s.%s was registered before, as another table, and is to be protected no less than that was. ',
                quote_ident(v_schema), quote_ident(v_table))
                   || v_hint ||
                       format(' To start afresh, without what was registered: SELECT fencing.unregister(%L), and register it again.',
                       format('%I.%I', v_schema, v_table));
  END;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.register', tbl, v_detail);
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.register(regclass, text, name, text, regclass) IS
  'Protects a table: adds the token column if it is missing, and the registry row. Calling it again changes what differs. A table that has the name of another that was registered takes on its levels, tombstones and seal.';

-- +goose StatementBegin
CREATE FUNCTION fencing.unregister(tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_has_triggers CONSTANT boolean := EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
      WHERE t.tgrelid = tbl AND p.pronamespace = 'fencing'::regnamespace);
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.unregister()');
  IF NOT c_has_triggers AND NOT EXISTS (SELECT FROM fencing.registry r WHERE r.relid = tbl)
      AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN fencing.registry r ON r.schema_name = n.nspname
          AND r.table_name = c.relname WHERE c.oid = tbl) THEN
    RETURN;
  END IF;
  PERFORM fencing.lock_registry(tbl, CASE WHEN c_has_triggers THEN 'ACCESS EXCLUSIVE' END);
  PERFORM fencing.claim_name(tbl);
  DELETE FROM fencing.registry r WHERE r.relid = tbl;
  -- triggers that came with the table, from a dump of it alone
  IF EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
              WHERE t.tgrelid = tbl AND t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_') THEN
    PERFORM fencing.wall(tbl, 'off');
  END IF;
  PERFORM fencing.keep_columns(tbl, r, NULL) FROM unnest('{token,key,seal}'::text[]) r
    WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = tbl AND pg_has_role(c.relowner, 'USAGE'));
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.unregister', tbl, v_detail);
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.unregister(regclass) IS 'Ends the protection of a table. The token column and its values stay.';

-- ---- src/22_columns.sql

-- Which columns of a registered table have its tokens, the key that tombstones are found by, and the names of leases:
-- fencing.keep_columns(), fencing.doctor_moved(), fencing.confirm_columns().
--
-- All else knows a column by its name, which another column can get: by an exchange of names, or after the column was dropped. Then rows
-- are compared by what was never a token, and an older holder writes them. The server keeps the columns of a trigger by their numbers. So a
-- registered table has the triggers "~fencing_kept_token", "~fencing_kept_key" with tombstones, and "~fencing_kept_seal" with a column that
-- names the leases: UPDATE OF the columns, with their names as argument, and WHEN (false). Each goes with a column that is dropped.
--
-- fencing.register puts the first one up, fencing.tombstones and fencing.seal the others, and they stay while the table is registered, whatever
-- its wall's level: only fencing.unregister, and fencing.unseal for its own, takes one away. One that is missing is not put up again by what
-- mends a wall: nothing else would tell that tokens were lost.
--
-- Known limits:
--   fencing.register leaves the trigger out where the caller has no right TRIGGER on the table. fencing.wall refuses the table then, until
--   fencing.confirm_columns is called as a role that has it.
--   A column that is kept can't be dropped without CASCADE, nor get another type.
--   A partition or a child has no such triggers: one that comes back with another token column has rows without tokens.
--   While tombstones are off, nothing tells that a column of the key was dropped: fencing.tombstones takes the names for right then.

-- +goose StatementBegin
CREATE FUNCTION fencing.kept_columns() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION 'fencing: fencing.kept_columns() is for triggers that never fire, and not for a trigger on %', TG_RELID::regclass
    USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, HINT = 'Drop the trigger.';
END $$;
-- +goose StatementEnd

-- The columns that the trigger of a role keeps: their names when it was made, and those that they have now. Both are null without one.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_kept(tbl regclass, role text, OUT was name[], OUT now name[]) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_args bytea;
BEGIN
  SELECT t.tgargs, (SELECT array_agg(a.attname ORDER BY k.n) FROM unnest(t.tgattr::int2[]) WITH ORDINALITY k(num, n)
                      JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = k.num) INTO v_args, now
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
   WHERE t.tgrelid = tbl AND t.tgname = '~fencing_kept_' || role AND p.proname = 'kept_columns' AND p.pronamespace = 'fencing'::regnamespace
     AND t.tgnargs = 1 AND cardinality(t.tgattr::int2[]) > 0;
  IF v_args IS NOT NULL THEN
    was := ARRAY(SELECT jsonb_array_elements_text(convert_from(substring(v_args FOR octet_length(v_args) - 1), getdatabaseencoding())::jsonb));
  END IF;
EXCEPTION WHEN invalid_text_representation OR invalid_parameter_value THEN  -- the argument is somebody's own
  was := NULL;
  now := NULL;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_kept(regclass, text) IS
  'The columns of a table that have its tokens (token), its key (key) or the names of its leases (seal): what they were called, and what they are called now.';

-- Has the trigger of a role keep these columns; null: no more. The trigger is left alone where it is right.
-- +goose StatementBegin
CREATE FUNCTION fencing.keep_columns(tbl regclass, role text, columns name[]) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_name CONSTANT text := quote_ident('~fencing_kept_' || role);
  c_tbl  CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl);
BEGIN
  PERFORM fencing.refuse_driver('fencing.keep_columns()');
  IF columns IS NOT NULL THEN
    IF (SELECT (k.was, k.now) IS DISTINCT FROM (columns, columns) FROM fencing.doctor_kept(tbl, role) k) THEN
      EXECUTE format('CREATE OR REPLACE TRIGGER %s BEFORE UPDATE OF %s ON %s FOR EACH STATEMENT WHEN (false) EXECUTE FUNCTION fencing.kept_columns(%L)',
        c_name, (SELECT string_agg(quote_ident(c), ', ' ORDER BY n) FROM unnest(columns) WITH ORDINALITY u(c, n)), c_tbl, to_jsonb(columns));
    END IF;
  ELSIF EXISTS (SELECT FROM fencing.doctor_kept(tbl, role) k WHERE k.was IS NOT NULL) THEN
    EXECUTE format('DROP TRIGGER %s ON %s', c_name, c_tbl);
  END IF;
END $$;
-- +goose StatementEnd

-- The columns of a registered table that are others than at its registration, which nobody has confirmed: token, key or seal, the name that the
-- registry has, and the name that the column has now, null where nothing keeps it any more. A key whose columns have other names is none of
-- them: its tombstones follow, see fencing.tombstone_rekey. code is the doctor's; remedy is what refuse_moved and the doctor print.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_moved(tbl regclass) RETURNS TABLE (role text, was name, now name, code text, problem text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  v_table record;
  v_confirm text;
BEGIN
  SELECT r.token_column, r.seal_column, r.wall_level, r.tombstones, format('%I.%I', n.nspname, c.relname) AS name,
         (SELECT format('%I.%I', m.nspname, q.relname) FROM pg_class q JOIN pg_namespace m ON m.oid = q.relnamespace
           WHERE q.oid = r.issued_by AND q.relkind = 'S') AS seq, r.issued_by IS NOT NULL AS is_bounded,
         EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = r.token_column AND a.attnum > 0 AND NOT a.attisdropped) AS has_tokens,
         (SELECT k.now[1] FROM fencing.doctor_kept(tbl, 'token') k) AS tokens, (SELECT k.now[1] FROM fencing.doctor_kept(tbl, 'seal') k) AS seal,
         (SELECT k.now FROM fencing.doctor_kept(tbl, 'key') k) AS key INTO v_table
    FROM fencing.registry r JOIN pg_class c ON c.oid = r.relid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE r.relid = tbl;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  v_confirm := format('PERFORM fencing.confirm_columns(%L, ''token'')', v_table.name);
  IF v_table.tokens IS DISTINCT FROM v_table.token_column THEN
    role := 'token';
    was := v_table.token_column;
    now := v_table.tokens;
    IF NOT v_table.has_tokens THEN
      code := 'D106';
      problem := format('column %I is missing', was);
      remedy := CASE WHEN now IS NULL
        THEN format('ALTER TABLE %1$s RENAME COLUMN ... TO %2$I; if it was dropped, which forgets the tokens: ALTER TABLE %1$s ADD COLUMN %2$I bigint NOT NULL DEFAULT 0, and then what fencing.doctor() says of the tokens', v_table.name, was)
        ELSE format('ALTER TABLE %s RENAME COLUMN %I TO %I', v_table.name, now, was) END;
    ELSIF now IS NOT NULL THEN
      code := 'D205';
      problem := format('column %I is another one than before: the tokens that the rows had are in %I', was, now);
      remedy := format('put the tokens back: %s; or, to give that column its name back: ALTER TABLE %s RENAME COLUMN %I TO ...; ALTER TABLE %2$s RENAME COLUMN %I TO %3$I; or, if those in %3$I are right, SELECT fencing.confirm_columns(%L, ''token'')',
        fencing.doctor_without_wall(v_table.name, format('UPDATE %1$s SET %2$I = %3$I WHERE %2$I < %3$I OR %2$I IS NULL; ALTER TABLE %1$s ALTER COLUMN %2$I SET NOT NULL; %4$s', v_table.name, was, now, v_confirm)),
        v_table.name, was, now, v_table.name);
    ELSE
      code := 'D202';
      problem := format('it is missing, as after the token column was dropped: the tokens in %I may not be those that the rows had', was);
      remedy := CASE
        WHEN v_table.wall_level = 'off' THEN format('if the rows have the tokens that they were written under, SELECT fencing.confirm_columns(%L, ''token''), or else give each the newest token that was given out before', v_table.name)
        -- of rows whose tokens are gone none is newer than the last one that was given out
        WHEN v_table.seq IS NOT NULL THEN fencing.doctor_without_wall(v_table.name, format(
          'UPDATE %1$s SET %2$I = coalesce(pg_catalog.pg_sequence_last_value(%3$L), 0) WHERE %2$I < pg_catalog.pg_sequence_last_value(%3$L) OR %2$I IS NULL; ALTER TABLE %1$s ALTER COLUMN %2$I SET NOT NULL; %4$s',
          v_table.name, was, v_table.seq, v_confirm))
        ELSE format('take the newest token that was given out, and in one transaction SELECT fencing.wall(%1$L, ''off''); UPDATE %2$s SET %3$I = ... WHERE %3$I < ... OR %3$I IS NULL; SELECT fencing.confirm_columns(%1$L, ''token'')%5$s; SELECT fencing.wall(%1$L, %4$L)',
          v_table.name, v_table.name, was, v_table.wall_level, CASE WHEN v_table.is_bounded THEN '; what D301 says' ELSE '' END) END;
    END IF;
    RETURN NEXT;
  END IF;
  IF v_table.seal_column IS NOT NULL AND v_table.seal IS DISTINCT FROM v_table.seal_column THEN
    role := 'seal';
    was := v_table.seal_column;
    now := v_table.seal;
    code := 'D223';
    problem := format('column %I, by which it is sealed, is another one than before', was)
      || CASE WHEN now IS NULL THEN ', as after it was dropped' ELSE format(': the leases of its rows are in %I', now) END;
    remedy := CASE WHEN now IS NULL THEN '' ELSE format('give that column its name back, or seal the table by its present one, SELECT fencing.seal(%L, by_column => %L); ', v_table.name, now) END
      || format('once each row has the name of its lease in %I, or, if it has, BEGIN; SELECT fencing.unseal(%L); SELECT fencing.seal(%2$L, by_column => %3$L); COMMIT', was, v_table.name, was);
    RETURN NEXT;
  END IF;
  IF v_table.tombstones AND v_table.key IS NULL THEN
    role := 'key';
    was := NULL;
    now := NULL;
    code := 'D202';
    problem := 'it is missing, as after a column of the primary key was dropped: nothing tells which columns the keys of the tombstones are of';
    remedy := format('if the columns of the key have the names that they had when the keys were deleted, SELECT fencing.confirm_columns(%L, ''key''); SELECT fencing.tombstones(%1$L), or else give them these back before', v_table.name);
    RETURN NEXT;
  END IF;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_moved(regclass) IS
  'The columns of a registered table that have the name of its token column, its key or its seal''s column, and are not what has been that.';

-- What has to be mended before a remedy calls fencing.wall for a table, which refuses it until then; besides is the role that the remedy is for.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_mend_first(tbl regclass, besides text DEFAULT '') RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN coalesce((SELECT 'mend what ' || string_agg(CASE WHEN m.code IN ('D202', 'D205') THEN format('%s says of "~fencing_kept_%s"', m.code, m.role)
                     ELSE m.code || ' says' END, ' and what ' ORDER BY m.code, m.role) || ', and then '
                     FROM fencing.doctor_moved(tbl) m WHERE m.role <> besides), '');
END $$;
-- +goose StatementEnd

-- Refuses a table whose column of a role is another one than at its registration. if_kept: unless nothing keeps the column any more.
-- +goose StatementBegin
CREATE FUNCTION fencing.refuse_moved(tbl regclass, role text, if_kept boolean DEFAULT false) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_moved record;
BEGIN
  SELECT m.*, n.nspname, c.relname INTO v_moved
    FROM fencing.doctor_moved(tbl) m, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.oid = tbl AND m.role = refuse_moved.role AND m.code <> 'D106' AND (m.now IS NOT NULL OR NOT if_kept);  -- a missing column is refused as that
  IF FOUND THEN
    RAISE EXCEPTION 'fencing: %.%: %', quote_ident(v_moved.nspname), quote_ident(v_moved.relname), CASE
        WHEN v_moved.code = 'D202' THEN format('trigger "~fencing_kept_%s": ', role) ELSE '' END || v_moved.problem
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_moved.nspname, TABLE = v_moved.relname, COLUMN = coalesce(v_moved.was, ''),
            HINT = upper(left(v_moved.remedy, 1)) || substr(v_moved.remedy, 2) || CASE role WHEN 'token'
              THEN format('. To start afresh, with rows that any token may write: SELECT fencing.unregister(%L), and register it again', format('%I.%I', v_moved.nspname, v_moved.relname)) ELSE '' END
              || format('. The doctor has it as %s.', v_moved.code);
  END IF;
END $$;
-- +goose StatementEnd

-- Says that the column which has the name of the token column has the tokens of the rows (token), or that the columns of the primary key have the
-- names that they had when keys were deleted (key): what nothing tells any more.
-- +goose StatementBegin
CREATE FUNCTION fencing.confirm_columns(tbl regclass, role text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_table  record;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.confirm_columns()');
  SELECT n.nspname, c.relname, r.relid, r.token_column INTO v_table
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given whose columns are right' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
  END IF;
  IF v_table.relid IS NULL THEN
    PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname);
  END IF;
  IF role IS NULL OR role NOT IN ('token', 'key') THEN
    RAISE EXCEPTION 'fencing: % for the columns of %.%', CASE WHEN role IS NULL THEN 'nothing given' ELSE format('unknown role %L', role) END,
        quote_ident(v_table.nspname), quote_ident(v_table.relname)
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = 'Choose ''token'' or ''key''. For the column of a seal, in one transaction: SELECT fencing.unseal(...); SELECT fencing.seal(...).';
  END IF;
  PERFORM fencing.lock_registry(tbl, 'SHARE ROW EXCLUSIVE');
  IF role = 'token' THEN
    IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = tbl AND a.attname = v_table.token_column AND a.attnum > 0 AND NOT a.attisdropped) THEN
      RAISE EXCEPTION 'fencing: %.% has no column %', quote_ident(v_table.nspname), quote_ident(v_table.relname), quote_ident(v_table.token_column)
        USING ERRCODE = 'undefined_column', SCHEMA = v_table.nspname, TABLE = v_table.relname, HINT = 'Give the token column its name back.';
    END IF;
    PERFORM fencing.keep_columns(tbl, role, ARRAY[v_table.token_column]);
  ELSIF NOT EXISTS (SELECT FROM fencing.doctor_kept(tbl, role) k WHERE k.was IS NOT NULL) THEN  -- what is kept says it, and tombstones follow that
    PERFORM fencing.keep_columns(tbl, role, k.cols) FROM fencing.tombstone_key(tbl) k;
  END IF;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.confirm_columns', tbl, v_detail);
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.confirm_columns(regclass, text) IS
  'Says that a table''s token column (token) or the columns of its primary key (key) are the right ones as they are called now, where nothing else tells it.';

-- ---- src/25_driver.sql

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
-- +goose StatementBegin
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
-- +goose StatementEnd

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.driver_level(regclass, text) IS
  'Sets the level at which the driver holds a registered table: off, report or enforce. Setting it again changes nothing.';

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.driver_rewrite(regclass, boolean) IS
  'Chooses whether the driver sends unguarded writes to a registered table in their guarded form. Choosing the same again changes nothing.';

-- ---- src/27_allowed.sql

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
-- +goose StatementBegin
CREATE FUNCTION fencing.function_digest(function oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET datestyle = 'ISO, MDY'
SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex' SET jit = off AS $$
SELECT encode(sha256(convert_to(pg_get_functiondef(p.oid)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 'hex') FROM pg_proc p
 WHERE p.oid = function_digest.function AND p.prokind <> 'a'
$$;
-- +goose StatementEnd

-- As its owner, so that a role that may not read the table learns no more than the driver goes by. In SQL, as what it calls: the driver's
-- sessions needn't load PL/pgSQL for it.
-- +goose StatementBegin
CREATE FUNCTION fencing.allowed_functions() RETURNS SETOF oid LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
SELECT p.oid
  FROM fencing.allowed_function a
  JOIN pg_namespace n ON n.nspname = a.schema_name AND n.nspname NOT IN ('fencing', 'pg_catalog', 'information_schema')
  JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = a.function_name AND oidvectortypes(p.proargtypes) = a.arguments
 WHERE a.digest = fencing.function_digest(p.oid)
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.allowed_functions() IS 'The functions that are allowed now: those of fencing.allowed_function that are as they were then.';

-- Refuses what is no function, or none that can be allowed; doing is what the caller is about to do with it.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.allow_function(regprocedure, text) IS
  'Has the driver let a function through although it may write protected tables, as long as its definition stays. Calling it again allows the present definition.';

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.disallow_function(regprocedure) IS
  'Ends what fencing.allow_function() did. A function that isn''t allowed stays so.';

-- ---- src/30_lease.sql

-- Leases: fencing.lease, fencing.take(), fencing.renew(), fencing.release(). A lock with an end, whose token fences its holders.
--
-- A lease ends by the database's clock, read where it is compared, and its row stays when it is released. The token is drawn after
-- the row has been locked: one drawn before, by a taker that was slow to get there, would be smaller than its predecessor's.
--
-- A lease counts only after COMMIT, as its token does: call take in a transaction of its own, as autocommit does. In a longer one
-- other takers wait for its end; rolled back, nothing has happened but for a gap in the tokens. The functions are plain statements
-- that need no session and hold no lock afterwards, so any pooler does.
--
-- Known limits:
--   A step of the server's clock moves the end of every lease with it. Two may then hold a lease at once, and so they may while one
--   of them is paused past its end: that is what the tokens are compared for.
--   Failing over to a standby that lacks the last transactions forgets the leases taken in them. Tokens go on rising in any case.
--   Deleting a row of fencing.lease ends the lease without its holder's knowledge; its next renewal finds out, and says so.

CREATE TABLE fencing.lease (
  resource   text        PRIMARY KEY CHECK (length(resource) BETWEEN 1 AND 255),
  holder     text,  -- null when it has been released
  token      bigint      NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.lease
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.lease ENABLE ALWAYS TRIGGER refuse_driver;

COMMENT ON TABLE fencing.lease IS
    'Leases, held until expires_at or released (holder is null). Written by fencing.take(), renew() and release() only.';

-- in seconds: a day of an interval has 23 hours when the session's time zone says so
-- +goose StatementBegin
CREATE FUNCTION fencing.lease_ttl(ttl interval) RETURNS interval LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF ttl IS NULL OR ttl <= interval '0' OR ttl > interval '24 hours' THEN  -- infinite ones, of PostgreSQL 17, among them
    RAISE EXCEPTION 'fencing: a lease can''t last %', coalesce(ttl::text, 'for no time given')
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a time to live above 0 and up to 24 hours; for longer, renew the lease.';
  END IF;
  RETURN make_interval(secs => extract(epoch FROM ttl)::float8);
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.lease_ttl(interval) IS 'Checks the time to live of a lease.';

-- +goose StatementBegin
CREATE FUNCTION fencing.lease_wait(resource text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(pg_catalog.hashtextextended(resource, 1717923427));
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.lease_wait(text) IS 'Has fencing.take() wait for the writers under a lease.';

-- +goose StatementBegin
CREATE FUNCTION fencing.take(resource text, ttl interval, holder text)
RETURNS TABLE (token bigint, held_by text, remaining interval) LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_ttl CONSTANT interval := fencing.lease_ttl(take.ttl);
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_former bigint;  -- the newest token that the lease is known to have had
BEGIN
  IF take.resource IS NULL OR length(take.resource) NOT BETWEEN 1 AND 255 OR take.holder IS NULL
     OR length(take.holder) NOT BETWEEN 1 AND 255 THEN
    RAISE EXCEPTION 'fencing: a lease needs a resource and a holder'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give names of 1 to 255 characters.';
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- this write is none of the driver's own: fencing.refuse_driver_write
  END IF;
  -- before a token is drawn: the first draw after a restore locks fencing.incarnation, for which all others wait
  PERFORM 1 FROM fencing.lease x WHERE x.resource = take.resource AND x.expires_at < clock_timestamp() FOR UPDATE;
  IF FOUND THEN
    PERFORM fencing.lease_wait(take.resource);
  END IF;
  -- a sequence that was set back, as by a restore of rows alone, would give out tokens for the second time
  SELECT greatest((SELECT x.token FROM fencing.lease x WHERE x.resource = take.resource),
                  (SELECT max(e.token) FROM fencing.epoch e WHERE e.resource = take.resource)) INTO v_former;
  IF v_former > coalesce(pg_sequence_last_value('fencing.write_epoch'::regclass), 0) THEN
    PERFORM 1 FROM fencing.lease x WHERE x.resource = take.resource FOR UPDATE;  -- the row first, as everybody who waits
    PERFORM fencing.lease_wait(take.resource);
    LOCK TABLE fencing.incarnation IN SHARE ROW EXCLUSIVE MODE;
    IF v_former > coalesce(pg_sequence_last_value('fencing.write_epoch'::regclass), 0) THEN
      DELETE FROM fencing.incarnation;  -- has tokens jump
    END IF;
  END IF;
  -- NOT EXISTS keeps contenders from locking a row that is held, and from drawing tokens for nothing
  INSERT INTO fencing.lease AS l (resource, holder, token, expires_at)
  SELECT take.resource, take.holder, fencing.next_token(), clock_timestamp() + c_ttl
   WHERE NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = take.resource AND x.expires_at >= clock_timestamp())
  ON CONFLICT (resource) DO UPDATE
     -- never EXCLUDED.token: that was drawn before the lock
     SET holder = EXCLUDED.holder, token = fencing.next_token(), expires_at = clock_timestamp() + c_ttl
   WHERE l.expires_at < clock_timestamp()
  RETURNING l.token, l.holder, c_ttl INTO take.token, take.held_by, take.remaining;
  IF FOUND THEN
    IF take.token <= v_former THEN
      RAISE EXCEPTION 'fencing: the lease has had token %, and the one that was drawn is not larger', v_former
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = 'fencing', TABLE = 'lease', CONSTRAINT = 'take',
              HINT = 'Sequence fencing.write_epoch was set back or has a CACHE, or the token was forged. fencing.doctor() has what mends it (D221, D302, D307).';
    END IF;
    -- where taking waits for writers, as for those of a seal, the lease's time begins afterwards
    UPDATE fencing.lease l SET expires_at = clock_timestamp() + c_ttl
     WHERE l.resource = take.resource AND l.expires_at < clock_timestamp() + c_ttl - interval '10 ms';
  ELSE
    -- an end at infinity, by somebody's UPDATE, can't be subtracted from
    SELECT NULL, l.holder, least(l.expires_at, clock_timestamp() + interval '24 hours') - clock_timestamp() INTO take.token, take.held_by,
        take.remaining
      FROM fencing.lease l WHERE l.resource = take.resource AND l.expires_at >= clock_timestamp();
    IF NOT FOUND THEN  -- it has become free in between
      take.remaining := interval '0';
    END IF;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  RETURN NEXT;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.take(text, interval, text) IS
  'Takes a lease, and returns one row: its token, larger than every one before, or a null token with who holds the lease and for how long still. It counts only after COMMIT.';

-- +goose StatementBegin
CREATE FUNCTION fencing.renew(resource text, token bigint, ttl interval) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_ttl CONSTANT interval := fencing.lease_ttl(renew.ttl);
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_held boolean;
BEGIN
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- as in fencing.take
  END IF;
  -- the holder relies on the new end, so a crash must not bring the old one back
  IF current_setting('synchronous_commit') <> 'remote_apply' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  UPDATE fencing.lease l SET expires_at = clock_timestamp() + c_ttl
   WHERE l.resource = renew.resource AND l.token = renew.token AND l.expires_at >= clock_timestamp();
  v_held := FOUND;
  IF NOT v_held AND NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = renew.resource) THEN
    v_held := NULL;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  RETURN v_held;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.renew(text, bigint, interval) IS
  'Has a lease last for ttl from now on. False if it has ended, or the token isn''t its holder''s; null if its row was deleted.';

-- +goose StatementBegin
CREATE FUNCTION fencing.release(resource text, token bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_held boolean;
BEGIN
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- as in fencing.take
  END IF;
  -- the row stays: with it gone, a slow taker that had drawn its token before would insert that one
  UPDATE fencing.lease l SET holder = NULL, expires_at = '-infinity'
   WHERE l.resource = release.resource AND l.token = release.token AND l.expires_at >= clock_timestamp();
  v_held := FOUND;
  IF NOT v_held AND NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = release.resource) THEN
    v_held := NULL;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  IF v_held THEN
    PERFORM pg_notify('fencerow_lease', release.resource);
  END IF;
  RETURN v_held;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.release(text, bigint) IS
  'Ends a lease, and notifies channel fencerow_lease with the resource. False if it had ended before, or the token isn''t its holder''s; null if its row was deleted.';

-- ---- src/40_wall.sql

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
-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.setting_name(text) IS
  'The name of the setting in which the wall looks for the token of a resource; null or empty: of the default token. SET LOCAL it.';

-- The one place that refuses. rel is the table that is written, which may be a partition or a child; the error names the registered
-- one, under which clients know it.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Whether the running transaction has written a row, whose xmin is given. A savepoint has an id of its own, which is newer than the
-- transaction's. Another transaction's id can be in progress, too, but no row that can be changed has such an id. A row that was frozen
-- long ago may have the number of an id that is still to come.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Refuses a sequence that is gone: without it the trigger functions would let every token through.
-- +goose StatementBegin
CREATE FUNCTION fencing.check_sequence(issued_by regclass) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    RAISE EXCEPTION 'fencing: the sequence that bounds the tokens, %, is gone', issued_by::oid
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Restore the sequence, or register the table with the one that its tokens come from now: SELECT fencing.register(...); fencing.doctor() has the statement (D301).';
  END IF;
END $$;
-- +goose StatementEnd

-- The bodies of the wall's trigger functions, as they run but for the names that format() puts in: see fencing.wall_functions. suffix is
-- what the name of the function ends with; mode and is_bounded say for which tables it is, null being all: those of the mode, and
-- those whose tokens a sequence bounds. They come from the templates in src/triggers.
--
-- The check of an UPDATE. In mode lease a negative token is a marked one, if it isn't the row's own; -1 is 0 marked.
-- +goose StatementBegin
CREATE FUNCTION fencing.wall_update_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('update', 'strict', true, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass) THEN
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>) OLD.%1$I OR v_token OPERATOR(pg_catalog.=) OLD.%1$I AND fencing.is_own_write(OLD.xmin))
         AND v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               CASE WHEN v_token OPERATOR(pg_catalog.=) OLD.%1$I THEN v_token::pg_catalog.text OPERATOR(pg_catalog.||) ' again' ELSE v_token::pg_catalog.text END, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
  ('update_attested', 'strict', true, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
     AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>) OLD.%1$I OR v_token OPERATOR(pg_catalog.=) OLD.%1$I AND fencing.is_own_write(OLD.xmin))
         AND v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               CASE WHEN v_token OPERATOR(pg_catalog.=) OLD.%1$I THEN v_token::pg_catalog.text OPERATOR(pg_catalog.||) ' again' ELSE v_token::pg_catalog.text END, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
  END IF;
  RETURN NEW;
END $body$),
  ('update', 'strict', false, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I AND true THEN
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>) OLD.%1$I OR v_token OPERATOR(pg_catalog.=) OLD.%1$I AND fencing.is_own_write(OLD.xmin))
         AND true
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               CASE WHEN v_token OPERATOR(pg_catalog.=) OLD.%1$I THEN v_token::pg_catalog.text OPERATOR(pg_catalog.||) ' again' ELSE v_token::pg_catalog.text END, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
  ('update_attested', 'strict', false, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I AND true
     AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>) OLD.%1$I OR v_token OPERATOR(pg_catalog.=) OLD.%1$I AND fencing.is_own_write(OLD.xmin))
         AND true
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               CASE WHEN v_token OPERATOR(pg_catalog.=) OLD.%1$I THEN v_token::pg_catalog.text OPERATOR(pg_catalog.||) ' again' ELSE v_token::pg_catalog.text END, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
  END IF;
  RETURN NEW;
END $body$),
  ('update', 'lease', true, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.<) -1 AND NEW.%1$I OPERATOR(pg_catalog.<>) OLD.%1$I THEN
    NEW.%1$I := OPERATOR(pg_catalog.~) NEW.%1$I;
    IF NEW.%1$I OPERATOR(pg_catalog.>=) OLD.%1$I AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass) THEN
      RETURN NEW;
    END IF;
    IF NEW.%1$I OPERATOR(pg_catalog.<) OLD.%1$I THEN
      PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
      PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
  ELSIF NEW.%1$I OPERATOR(pg_catalog.=) -1 AND OLD.%1$I OPERATOR(pg_catalog.<>) -1 THEN
    NEW.%1$I := 0;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I)
         AND v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               v_token::pg_catalog.text, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
  ('update_attested', 'lease', true, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.<) -1 AND NEW.%1$I OPERATOR(pg_catalog.<>) OLD.%1$I THEN
    NEW.%1$I := OPERATOR(pg_catalog.~) NEW.%1$I;
    IF NEW.%1$I OPERATOR(pg_catalog.>=) OLD.%1$I AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
       AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
      RETURN NEW;
    END IF;
    IF NEW.%1$I OPERATOR(pg_catalog.<) OLD.%1$I THEN
      PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
      PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
    END IF;
  ELSIF NEW.%1$I OPERATOR(pg_catalog.=) -1 AND OLD.%1$I OPERATOR(pg_catalog.<>) -1 THEN
    NEW.%1$I := 0;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I)
         AND v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               v_token::pg_catalog.text, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
  ('update', 'lease', false, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.<) -1 AND NEW.%1$I OPERATOR(pg_catalog.<>) OLD.%1$I THEN
    NEW.%1$I := OPERATOR(pg_catalog.~) NEW.%1$I;
    IF NEW.%1$I OPERATOR(pg_catalog.>=) OLD.%1$I AND true THEN
      RETURN NEW;
    END IF;
    IF NEW.%1$I OPERATOR(pg_catalog.<) OLD.%1$I THEN
      PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSIF (true) IS NOT TRUE THEN
      PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
  ELSIF NEW.%1$I OPERATOR(pg_catalog.=) -1 AND OLD.%1$I OPERATOR(pg_catalog.<>) -1 THEN
    NEW.%1$I := 0;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I)
         AND true
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               v_token::pg_catalog.text, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
  ('update_attested', 'lease', false, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.<) -1 AND NEW.%1$I OPERATOR(pg_catalog.<>) OLD.%1$I THEN
    NEW.%1$I := OPERATOR(pg_catalog.~) NEW.%1$I;
    IF NEW.%1$I OPERATOR(pg_catalog.>=) OLD.%1$I AND true
       AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
      RETURN NEW;
    END IF;
    IF NEW.%1$I OPERATOR(pg_catalog.<) OLD.%1$I THEN
      PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSIF (true) IS NOT TRUE THEN
      PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
    END IF;
    END IF;
  ELSIF NEW.%1$I OPERATOR(pg_catalog.=) -1 AND OLD.%1$I OPERATOR(pg_catalog.<>) -1 THEN
    NEW.%1$I := 0;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    IF NEW.%1$I OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1 THEN
    DECLARE
      v_given CONSTANT pg_catalog.text := pg_catalog.current_setting(%4$L, true);
      v_token pg_catalog.int8;
    BEGIN
      IF v_given OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_given::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_given::pg_catalog.int8;
    END IF;
  END IF;
      IF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I)
         AND true
         AND pg_catalog.set_config('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text,
               v_token::pg_catalog.text, true) IS NOT NULL THEN
        NEW.%1$I := v_token;
        RETURN NEW;
      END IF;
      IF v_given OPERATOR(pg_catalog.<>) '' THEN
        IF v_token IS NULL THEN
          PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
        ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
          PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        ELSE
          PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
        END IF;
        RETURN NEW;
      END IF;
    END;
  END IF;
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$)
$$;
-- +goose StatementEnd

-- The check of an INSERT. Below attested it looks at the note, too: in an upsert no trigger comes after it that could, and EXCLUDED has
-- what it lets through.
-- +goose StatementBegin
CREATE FUNCTION fencing.wall_insert_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('insert', NULL, true, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) 0 AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
     AND pg_catalog.current_setting('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text, true)
         OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) 0) IS NOT TRUE THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSE
    PERFORM fencing.fail('late', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  END IF;
  RETURN NEW;
END $body$),
  ('insert_attested', NULL, true, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) 0 AND NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)
     AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) 0) IS NOT TRUE THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSIF (NEW.%1$I OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
    END IF;
  END IF;
  RETURN NEW;
END $body$),
  ('insert', NULL, false, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) 0 AND true
     AND pg_catalog.current_setting('fencing.mark' OPERATOR(pg_catalog.||) pg_catalog.pg_trigger_depth()::pg_catalog.text, true)
         OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) 0) IS NOT TRUE THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSE
    PERFORM fencing.fail('late', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  END IF;
  RETURN NEW;
END $body$),
  ('insert_attested', NULL, false, $body$
DECLARE
  v_setting pg_catalog.text;
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF NEW.%1$I OPERATOR(pg_catalog.>) 0 AND true
     AND pg_catalog.current_setting(%4$L, true) OPERATOR(pg_catalog.=) NEW.%1$I::pg_catalog.text THEN
    RETURN NEW;
  END IF;
  IF (NEW.%1$I OPERATOR(pg_catalog.>) 0) IS NOT TRUE THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  ELSE
    v_setting := pg_catalog.current_setting(%4$L, true);
    IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
      PERFORM fencing.fail('unattested', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
    ELSE
      PERFORM fencing.fail('other', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
    END IF;
  END IF;
  RETURN NEW;
END $body$)
$$;
-- +goose StatementEnd

-- The check of a DELETE, whose token is in the setting.
-- +goose StatementBegin
CREATE FUNCTION fencing.wall_delete_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('delete', 'strict', true, $body$
DECLARE
  v_setting pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  v_token   pg_catalog.int8;
BEGIN
  IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN OLD;
  END IF;
  -- short cut: digits that a bigint always has room for, without a 0 before them; what is not let through here is looked at again
  IF (CASE WHEN pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.>) 0 AND pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.<=) 18
                AND pg_catalog.ltrim(v_setting, '0123456789') OPERATOR(pg_catalog.=) ''
                AND pg_catalog.octet_length(pg_catalog.ltrim(v_setting, '0')) OPERATOR(pg_catalog.=) pg_catalog.octet_length(v_setting)
           THEN v_setting::pg_catalog.int8 OPERATOR(pg_catalog.>) OLD.%1$I AND v_setting::pg_catalog.int8 OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass) END) THEN
    RETURN OLD;
  END IF;
  -- end of the short cut
  IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_setting::pg_catalog.int8;
    END IF;
  END IF;
  IF v_token IS NULL THEN
    PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE AND (v_token OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1
                        AND fencing.is_own_write(OLD.xmin)) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$),
  ('delete', 'strict', false, $body$
DECLARE
  v_setting pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  v_token   pg_catalog.int8;
BEGIN
  IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN OLD;
  END IF;
  -- short cut: digits that a bigint always has room for, without a 0 before them; what is not let through here is looked at again
  IF (CASE WHEN pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.>) 0 AND pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.<=) 18
                AND pg_catalog.ltrim(v_setting, '0123456789') OPERATOR(pg_catalog.=) ''
                AND pg_catalog.octet_length(pg_catalog.ltrim(v_setting, '0')) OPERATOR(pg_catalog.=) pg_catalog.octet_length(v_setting)
           THEN v_setting::pg_catalog.int8 OPERATOR(pg_catalog.>) OLD.%1$I AND true END) THEN
    RETURN OLD;
  END IF;
  -- end of the short cut
  IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_setting::pg_catalog.int8;
    END IF;
  END IF;
  IF v_token IS NULL THEN
    PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.>) OLD.%1$I) IS NOT TRUE AND (v_token OPERATOR(pg_catalog.=) OLD.%1$I AND pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 1
                        AND fencing.is_own_write(OLD.xmin)) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$),
  ('delete', 'lease', true, $body$
DECLARE
  v_setting pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  v_token   pg_catalog.int8;
BEGIN
  IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN OLD;
  END IF;
  -- short cut: digits that a bigint always has room for, without a 0 before them; what is not let through here is looked at again
  IF (CASE WHEN pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.>) 0 AND pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.<=) 18
                AND pg_catalog.ltrim(v_setting, '0123456789') OPERATOR(pg_catalog.=) ''
                AND pg_catalog.octet_length(pg_catalog.ltrim(v_setting, '0')) OPERATOR(pg_catalog.=) pg_catalog.octet_length(v_setting)
           THEN v_setting::pg_catalog.int8 OPERATOR(pg_catalog.>=) OLD.%1$I AND v_setting::pg_catalog.int8 OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass) END) THEN
    RETURN OLD;
  END IF;
  -- end of the short cut
  IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_setting::pg_catalog.int8;
    END IF;
  END IF;
  IF v_token IS NULL THEN
    PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$),
  ('delete', 'lease', false, $body$
DECLARE
  v_setting pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  v_token   pg_catalog.int8;
BEGIN
  IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN OLD;
  END IF;
  -- short cut: digits that a bigint always has room for, without a 0 before them; what is not let through here is looked at again
  IF (CASE WHEN pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.>) 0 AND pg_catalog.octet_length(v_setting) OPERATOR(pg_catalog.<=) 18
                AND pg_catalog.ltrim(v_setting, '0123456789') OPERATOR(pg_catalog.=) ''
                AND pg_catalog.octet_length(pg_catalog.ltrim(v_setting, '0')) OPERATOR(pg_catalog.=) pg_catalog.octet_length(v_setting)
           THEN v_setting::pg_catalog.int8 OPERATOR(pg_catalog.>=) OLD.%1$I AND true END) THEN
    RETURN OLD;
  END IF;
  -- end of the short cut
  IF v_setting IS NULL OR v_setting OPERATOR(pg_catalog.=) '' THEN
    PERFORM fencing.fail('missing', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
    IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
      v_token := v_setting::pg_catalog.int8;
    END IF;
  END IF;
  IF v_token IS NULL THEN
    PERFORM fencing.fail('malformed', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, OLD.%1$I);
  ELSIF (v_token OPERATOR(pg_catalog.>=) OLD.%1$I) IS NOT TRUE THEN
    PERFORM fencing.fail('stale', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  ELSIF (true) IS NOT TRUE THEN
    PERFORM fencing.fail('unissued', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, v_token, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$)
$$;
-- +goose StatementEnd

-- The marks come before other triggers and note the token that the statement writes, for ~fencing_late to compare with. The note is for
-- the depth at which the trigger runs, so that a write by a trigger in between leaves it alone. It is taken by the trigger's condition,
-- which costs less than a call and is never true. In mode lease "~fencing_named", the last trigger before the check, says that the statement
-- names the column: only then it runs, and makes the token negative. What can't be a token counts as none.
-- +goose StatementBegin
CREATE FUNCTION fencing.wall_other_bodies() RETURNS TABLE (suffix text, mode text, is_bounded boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('mark', NULL, NULL::boolean, $body$
BEGIN
  RETURN NEW;
END $body$),
  ('named', 'lease', NULL, $body$
BEGIN
  NEW.%1$I := CASE WHEN NEW.%1$I OPERATOR(pg_catalog.<) 0 THEN OLD.%1$I ELSE OPERATOR(pg_catalog.~) NEW.%1$I END;
  RETURN NEW;
END $body$),
  ('truncate', NULL, NULL, $body$
BEGIN
  PERFORM fencing.fail('truncate', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
  RETURN NULL;
END $body$),
  ('late', NULL, NULL, $body$
BEGIN
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
    PERFORM fencing.fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NEW;
  END IF;
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    PERFORM fencing.fail('late', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, OLD.%1$I);
  ELSE
    PERFORM fencing.fail('late', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, NULL);
  END IF;
  RETURN NULL;
END $body$)
$$;
-- +goose StatementEnd

-- Whether the schema has a trigger function as it would be made: of this name and body, and with these settings. Whose it is, is the doctor's matter.
-- +goose StatementBegin
CREATE FUNCTION fencing.has_function(name text, body text, is_definer boolean, settings text[]) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.proname = has_function.name::name AND p.pronargs = 0 AND p.pronamespace = 'fencing'::regnamespace AND l.lanname = 'plpgsql'
      AND p.prosrc = has_function.body AND p.prosecdef = has_function.is_definer AND p.proconfig IS NOT DISTINCT FROM has_function.settings);
END $$;
-- +goose StatementEnd

-- Makes the trigger functions for a table, or makes them right again, and returns what their names begin with. The name says all that is
-- written in them, as long as names are quoted in one way only. It runs as the owner of the schema, who owns them; whoever may register may
-- put triggers on them. look: makes none, and returns null where one is not right.
-- +goose StatementBegin
CREATE FUNCTION fencing.wall_functions(token_column name, mode text, resource text, issued_by regclass, look boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
DECLARE
  v_seq    CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = issued_by);
  v_prefix CONSTANT text := 'wall_' || left(md5(convert_to(jsonb_build_array(token_column, mode, resource, v_seq)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_';
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
-- +goose StatementEnd

-- Drops the trigger functions that no trigger runs any more: those whose names begin with one of the prefixes, or all. They go together
-- with the others of their prefix. What runs a function is found by its dependencies, which have an index.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- The walled tables whose walls a table has that is a partition or a child: those next above it. A child may have several.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Refuses walls of several parents on one child if the child can't have both: it has one trigger of each kind.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Refuses a table on which no trigger can be put, or one of somebody else would be replaced: one whose name matches names.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Makes the triggers of a table, its partitions and its children what the level asks for. What is right already stays as it is, and
-- its table is not locked. A trigger is right if the server writes it as it was written here: it keeps columns by their numbers, and
-- so follows one that is renamed. look: changes nothing, and returns the mode in which the tables have to be locked for what would be
-- changed, or null, if nothing would be.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Whatever changes the row changes the triggers with it: fencing.wall, fencing.register, fencing.unregister or a plain UPDATE. On
-- TRUNCATE they stay. Not on INSERT: a restore writes the rows first.
-- +goose StatementBegin
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
-- +goose StatementEnd

CREATE TRIGGER wall AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.wall_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER wall;

-- Without a level it is enforce, or attested where the wall is at that: who calls it again to mend the wall doesn't lower it.
-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.wall(regclass, text) IS
  'Has PostgreSQL itself refuse stale and unguarded writes to a registered table: off, report, enforce or attested; by default enforce, or attested where it is that. Calling it again mends what is missing.';

-- ---- src/50_seal.sql

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

-- +goose StatementBegin
CREATE FUNCTION fencing.raise_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_token bigint;
BEGIN
  IF TG_RELID <> 'fencing.lease'::regclass THEN  -- by a trigger of somebody's own
    RAISE EXCEPTION 'fencing: fencing.raise_epoch() is for fencing.lease, and not for a trigger on %', TG_RELID::regclass
      USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, HINT = 'Drop the trigger.';
  END IF;
  PERFORM pg_advisory_xact_lock(pg_catalog.hashtextextended(NEW.resource, 1717923427));  -- waits for the writers
  -- a row that is missing must not come back below the others
  SELECT greatest(NEW.token, max(e.token)) INTO v_token FROM fencing.epoch e WHERE e.resource = NEW.resource;
  INSERT INTO fencing.epoch AS e (resource, stripe, token) SELECT NEW.resource, s, v_token FROM generate_series(0, 15) s ORDER BY s
  ON CONFLICT (resource, stripe) DO UPDATE SET token = EXCLUDED.token WHERE e.token < EXCLUDED.token;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- not for renew and release, which leave the token alone
CREATE TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch();

ALTER TABLE fencing.lease ENABLE ALWAYS TRIGGER epoch;

-- The one place that refuses; compare fencing.fail. lease is the name that was looked for, col the column that has it, if one does;
-- its name is printed only where it is fixed. was is the row's own token.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- The body of the trigger function of a sealed table, as it runs but for the names that format() puts in: for one that has a fixed lease,
-- and for one with a column that names the lease of each row. It comes from src/triggers/seal.sql.tmpl.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_bodies() RETURNS TABLE (is_by_column boolean, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  (false, $body$
DECLARE
  v_token     pg_catalog.int8;  -- of the write
  v_row_token pg_catalog.int8;  -- of the row, before the write
  v_epoch     pg_catalog.int8;  -- the lease's newest token
  v_lease     pg_catalog.text := %4$L;
  v_setting   pg_catalog.text;
BEGIN
  -- short cut: most writes need no more than this, in few expressions; what isn't let through is looked at again.
  -- NEW is null in a DELETE.
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype
     AND TG_ARGV[0] OPERATOR(pg_catalog.<>) 'report'
     AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
     AND pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(%4$L, 1717923427)) IS NOT NULL THEN
    SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
     WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
    IF NEW.%1$I OPERATOR(pg_catalog.=) v_epoch THEN
      RETURN NEW;
    END IF;
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' AND v_epoch OPERATOR(pg_catalog.>) 0
       AND pg_catalog.current_setting(%3$L, true) OPERATOR(pg_catalog.=) v_epoch::pg_catalog.text THEN
      RETURN OLD;
    END IF;
  END IF;
  -- end of the short cut
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
      PERFORM fencing.seal_fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
      RETURN OLD;
    END IF;
    v_row_token := OLD.%1$I;
    v_setting := pg_catalog.current_setting(%3$L, true);
    IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
      IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
        v_token := v_setting::pg_catalog.int8;
      END IF;
    END IF;
  ELSE
    IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype THEN
      PERFORM fencing.seal_fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
      RETURN NEW;
    END IF;
    v_token := NEW.%1$I;
    IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
      v_row_token := OLD.%1$I;
    END IF;
  END IF;
  IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'report' THEN
    SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
     WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
  ELSE
    -- as an expression: PERFORM takes longer
    IF pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(v_lease, 1717923427)) IS NULL THEN
      v_lease := NULL;
    END IF;
    -- after the lock a new snapshot, which has what its last owner wrote
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed' THEN
      SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
       WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
    ELSE
      SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
       WHERE x.resource OPERATOR(pg_catalog.=) v_lease
         AND x.stripe OPERATOR(pg_catalog.=) (pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.%%) 16)
         FOR SHARE;
    END IF;
  END IF;
  IF (v_token OPERATOR(pg_catalog.=) v_epoch) IS NOT TRUE THEN
    PERFORM fencing.seal_fail('token', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
  END IF;
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $body$),
  (true, $body$
DECLARE
  v_token     pg_catalog.int8;  -- of the write
  v_row_token pg_catalog.int8;  -- of the row, before the write
  v_epoch     pg_catalog.int8;  -- the lease's newest token
  v_lease     pg_catalog.text := %4$L;
  v_old_lease pg_catalog.text;
  v_setting   pg_catalog.text;
BEGIN
  -- short cut: most writes need no more than this, in few expressions; what isn't let through is looked at again.
  -- NEW is null in a DELETE.
  IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype
     AND pg_catalog.pg_typeof(NEW.%5$I) OPERATOR(pg_catalog.=) %6$L::pg_catalog.regtype
     AND TG_ARGV[0] OPERATOR(pg_catalog.<>) 'report'
     AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed' THEN
    -- a row that moves to another lease has none here; the column's own collation may take two names for one
    v_lease := CASE WHEN TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN OLD.%5$I::pg_catalog.text
                    WHEN TG_OP OPERATOR(pg_catalog.=) 'INSERT' OR OLD.%5$I::pg_catalog.text COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) NEW.%5$I::pg_catalog.text
                    THEN NEW.%5$I::pg_catalog.text END;
  END IF;
  IF pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(v_lease, 1717923427)) IS NOT NULL THEN
    SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
     WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
    IF NEW.%1$I OPERATOR(pg_catalog.=) v_epoch THEN
      RETURN NEW;
    END IF;
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' AND v_epoch OPERATOR(pg_catalog.>) 0
       AND pg_catalog.current_setting(%3$L, true) OPERATOR(pg_catalog.=) v_epoch::pg_catalog.text THEN
      RETURN OLD;
    END IF;
  END IF;
  -- end of the short cut
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    IF pg_catalog.pg_typeof(OLD.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype
       OR pg_catalog.pg_typeof(OLD.%5$I) OPERATOR(pg_catalog.<>) %6$L::pg_catalog.regtype THEN
      PERFORM fencing.seal_fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
      RETURN OLD;
    END IF;
    v_row_token := OLD.%1$I;
    v_lease := OLD.%5$I::pg_catalog.text;
    v_setting := pg_catalog.current_setting(%3$L, true);
    IF v_setting OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,18}$' THEN
      IF v_setting::pg_catalog.numeric OPERATOR(pg_catalog.<=) 9223372036854775807 THEN
        v_token := v_setting::pg_catalog.int8;
      END IF;
    END IF;
  ELSE
    IF pg_catalog.pg_typeof(NEW.%1$I) OPERATOR(pg_catalog.<>) 'pg_catalog.int8'::pg_catalog.regtype
       OR pg_catalog.pg_typeof(NEW.%5$I) OPERATOR(pg_catalog.<>) %6$L::pg_catalog.regtype THEN
      PERFORM fencing.seal_fail('type', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
      RETURN NEW;
    END IF;
    v_token := NEW.%1$I;
    v_lease := NEW.%5$I::pg_catalog.text;
    IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
      v_row_token := OLD.%1$I;
      v_old_lease := OLD.%5$I::pg_catalog.text;
      IF (v_old_lease OPERATOR(pg_catalog.=) v_lease) IS NOT TRUE THEN
        PERFORM fencing.seal_fail('moved', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
      END IF;
    END IF;
  END IF;
  IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'report' THEN
    SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
     WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
  ELSE
    -- as an expression: PERFORM takes longer
    IF pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(v_lease, 1717923427)) IS NULL THEN
      v_lease := NULL;
    END IF;
    -- after the lock a new snapshot, which has what its last owner wrote
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed' THEN
      SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
       WHERE x.resource OPERATOR(pg_catalog.=) v_lease AND x.stripe OPERATOR(pg_catalog.=) 0;
    ELSE
      SELECT x.token INTO v_epoch FROM ONLY fencing.epoch x
       WHERE x.resource OPERATOR(pg_catalog.=) v_lease
         AND x.stripe OPERATOR(pg_catalog.=) (pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.%%) 16)
         FOR SHARE;
    END IF;
  END IF;
  IF (v_token OPERATOR(pg_catalog.=) v_epoch) IS NOT TRUE THEN
    PERFORM fencing.seal_fail('token', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, v_lease, %5$L, v_token, v_epoch, v_row_token);
  END IF;
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $body$)
$$;
-- +goose StatementEnd

-- Makes the trigger function of a sealed table and returns its name; compare fencing.wall_functions, also for what is qualified in it
-- and why. typ is the type of the column that names the lease. look: makes none, and returns null where it is not right.
-- +goose StatementBegin
CREATE FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype, look boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
    SET standard_conforming_strings = on AS $$
DECLARE
  v_name CONSTANT text := 'seal_' || left(md5(convert_to(jsonb_build_array(token_column, resource, seal_resource, seal_column, typ::text)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_check';
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
-- +goose StatementEnd

-- drops the trigger functions that no trigger runs any more: those of the names, or all; compare fencing.wall_sweep
-- +goose StatementBegin
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
-- +goose StatementEnd

-- the column that names the lease: of tbl and of every table that inherits from it
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Makes the trigger of a table, its partitions and its children what the table's row asks for, and takes it off where there is none;
-- compare fencing.wall_apply, also for what look does. Another column that gets the name of the one that names the lease, and one that is put
-- in the place of a dropped one, is refused unless the row has just been given the column (is_new_column).
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Whatever changes the row changes the trigger with it; compare fencing.wall_changed.
-- +goose StatementBegin
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
-- +goose StatementEnd

CREATE TRIGGER seal AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER seal;

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.seal(regclass, text, name) IS
  'Has every write of a walled table compared with the token of a lease: the one named, or the one that a column names. Calling it again mends what is missing.';

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.unseal(regclass) IS 'Takes the seal off a table. The wall stays.';

-- ---- src/60_tombstones.sql

-- Tombstones, for the tables that ask for them: fencing.registry.tombstones, fencing.tombstones(), fencing.prune_tombstones().
--
-- A deleted row takes its token with it, and a stale holder may insert the key again. With tombstones the key keeps the token that
-- deleted it, or that gave the row another key, and an INSERT with an older one is refused like an UPDATE.
--
-- A key is buried before its row is deleted, or gets another one: what the statement calls, as in RETURNING, can insert the key before
-- triggers that run after the statement do. ~fencing_rekey1 does it once more for what later triggers and generated columns change.
--
-- The check runs after the INSERT, which has waited on the primary key for a DELETE in progress. A transaction whose snapshot is older
-- than the tombstone can't see it: at REPEATABLE READ and SERIALIZABLE the check inserts one itself, for the conflict (40001).
--
-- Known limits:
--   One row for each deleted key, until fencing.prune_tombstones; and at REPEATABLE READ and above a dead one for each INSERT.
--   What is deleted while the wall or the tombstones are off, or with the triggers disabled, leaves none.
--   A primary key with a generated column is buried by each UPDATE: one row for each key that is updated.
--   A trigger that sorts after "~fencing_vacate" and changes the key itself lets a statement's own functions insert the old key.
--   At level report a DELETE without a token leaves the row's own.
--   A primary key put in the place of another is buried by the old columns until fencing.tombstones or fencing.wall is called again,
--   which refuse it while there are tombstones that can't be read by the new ones.
--   They stay when a table is unregistered, and stand for its oid; fencing.register gives those of a table that was registered to the
--   one that has its name now.

CREATE TABLE fencing.tombstone (
  relid      regclass    NOT NULL,
  -- sha256 of the key as text in UTF8, and so the same in a database of another encoding: a long key has no room in an index, and its
  -- row could not be deleted
  digest     bytea       NOT NULL,
  key        text[]      COLLATE "C" NOT NULL,
  columns    jsonb       NOT NULL,  -- what the key's values are of: see fencing.tombstone_rekey
  token      bigint      NOT NULL,
  xact       xid8        NOT NULL,  -- in mode strict the transaction that deleted a key may insert it again under its token
  deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (relid, digest)
);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.tombstone
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.tombstone ENABLE ALWAYS TRIGGER refuse_driver;

COMMENT ON TABLE fencing.tombstone IS 'Deleted keys with the tokens that deleted them. Written by the triggers of fencing.tombstones().';

-- The expression that writes a column of the primary key as text, and %1$s for the row.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_key_text(col name, type regtype) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RETURN replace(CASE
    WHEN type = 'numeric'::regtype THEN 'trim_scale(@)::text'
    WHEN type = 'bytea'::regtype THEN 'encode(@, ''hex'')'
    ELSE '@::text' END, '@', format('%%1$s.%s', replace(quote_ident(col), '%', '%%')));
END $$;
-- +goose StatementEnd

-- The columns of the primary key, each with the expression that writes it as text; %1$s is the row. Two keys have to be equal as text
-- if and only if they are equal, whatever the session's settings.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_key(tbl regclass, OUT cols name[], OUT types regtype[], OUT texts text[]) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_table record;
  v_column record;
  v_bad text;
BEGIN
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name,
         format(' Or keep none any more: SELECT fencing.tombstones(%L, false).', format('%I.%I', n.nspname, c.relname)) AS or_none
             INTO v_table
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given whose primary key tombstones are found by'
      USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
  END IF;
  IF EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = tbl AND i.indisprimary AND NOT i.indimmediate) THEN
    -- an INSERT waits for a DELETE in progress only where the key is checked at once
    RAISE EXCEPTION 'fencing: no tombstones for %: its primary key is deferrable, and an INSERT does not wait for a DELETE', v_table.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('Make the key again, NOT DEFERRABLE: ALTER TABLE %s DROP CONSTRAINT ..., ADD PRIMARY KEY (...).',
                v_table.name) || v_table.or_none;
  END IF;
  FOR v_column IN
    SELECT t.attname, t.atttypid::regtype AS type, ty.typtype, l.collisdeterministic AS deterministic
      FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY k(num, ord), pg_attribute t JOIN pg_type ty ON ty.oid = t.atttypid
      LEFT JOIN pg_collation l ON l.oid = t.attcollation
     WHERE i.indrelid = tbl AND i.indisprimary AND t.attrelid = tbl AND t.attnum = k.num AND k.ord <= i.indnkeyatts ORDER BY k.ord
  LOOP
    v_bad := CASE
      WHEN v_column.type::oid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype,
          'varchar'::regtype,
          'bpchar'::regtype,
                          'uuid'::regtype, 'bool'::regtype, 'bytea'::regtype, 'date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
        THEN format('is of type %s, whose equal values may differ as text', v_column.type)
      WHEN NOT v_column.deterministic THEN 'has a collation under which different texts are equal' END;
    IF v_bad IS NOT NULL THEN
      RAISE EXCEPTION 'fencing: no tombstones for %: key column % %', v_table.name, quote_ident(v_column.attname), v_bad
        USING ERRCODE = 'feature_not_supported', SCHEMA = v_table.nspname, TABLE = v_table.relname, COLUMN = v_column.attname,
              HINT = 'Use a primary key of integer, numeric, text, uuid, boolean, bytea, date or timestamp columns, of a deterministic collation.'
                  || v_table.or_none;
    END IF;
    cols := cols || v_column.attname;
    types := types || v_column.type;
    texts := texts || fencing.doctor_key_text(v_column.attname, v_column.type);
  END LOOP;
  IF cols IS NULL THEN
    RAISE EXCEPTION 'fencing: no tombstones for %: it has no primary key', v_table.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('A tombstone is found by the key: ALTER TABLE %s ADD PRIMARY KEY (...).', v_table.name) || v_table.or_none;
  END IF;
END $$;
-- +goose StatementEnd

-- Has the tombstones of a table stand under the columns that its primary key has now, where they can: columns in another order or by
-- another name. columns are pairs of a name and what its values are as text: integers and numeric are numbers, which look alike.
--
-- Which column a name stood for is told by fencing.doctor_kept. Without that none of them is known, unless the table has just begun to keep
-- tombstones (is_new). While names have been exchanged, what is buried is buried by the names: then each tombstone stands for both keys.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_rekey(tbl regclass, columns jsonb, is_new boolean DEFAULT false) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_was   jsonb;
  v_names text[];  -- of the columns in v_was, as they were
  v_now   text[];  -- and as they are
  v_by    text[];
  v_order int[];   -- where each column of the key was
  v_is_read boolean;
  v_kept  CONSTANT record := fencing.doctor_kept(tbl, 'key');
  v_name  CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = tbl);
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstone_rekey()');
  FOR v_was IN SELECT DISTINCT d.columns FROM fencing.tombstone d WHERE d.relid = tbl LOOP
    CONTINUE WHEN jsonb_array_length(v_was) = 0;
    v_names := ARRAY(SELECT e ->> 0 FROM jsonb_array_elements(v_was) WITH ORDINALITY u(e, i) ORDER BY i);
    v_now := CASE WHEN v_kept.was::text[] @> v_names
      THEN ARRAY(SELECT v_kept.now[array_position(v_kept.was::text[], n)]::text FROM unnest(v_names) WITH ORDINALITY u(n, i) ORDER BY i) ELSE v_names END;
    CONTINUE WHEN v_was = tombstone_rekey.columns AND v_now = v_names AND (is_new OR v_kept.was IS NOT NULL);
    v_is_read := false;
    FOREACH v_by SLICE 1 IN ARRAY ARRAY[v_now, v_names] LOOP
      EXIT WHEN v_is_read AND v_now = v_names;
      SELECT array_agg((SELECT w.i::int FROM jsonb_array_elements(v_was) WITH ORDINALITY w(col, i)
                         WHERE v_by[w.i] = n.col ->> 0 AND w.col ->> 1 = n.col ->> 1) ORDER BY n.ord) INTO v_order
        FROM jsonb_array_elements(tombstone_rekey.columns) WITH ORDINALITY n(col, ord);
      EXIT WHEN cardinality(v_order) <> cardinality(v_names) OR array_position(v_order, NULL) IS NOT NULL;
      v_is_read := true;
      -- out of the way first: what a key becomes may be what another one was
      INSERT INTO fencing.tombstone AS x (relid, digest, key, columns, token, xact, deleted_at)
      SELECT 0, sha256(convert_to(k.key::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), k.key, tombstone_rekey.columns, e.token, e.xact, e.deleted_at
        FROM fencing.tombstone e,
             LATERAL (SELECT ARRAY(SELECT e.key[u.at] FROM unnest(v_order) WITH ORDINALITY u(at, i) ORDER BY u.i)) k(key)
       WHERE e.relid = tbl AND e.columns = v_was
      ON CONFLICT (relid, digest) DO UPDATE SET token = greatest(x.token, EXCLUDED.token), xact = EXCLUDED.xact,
          deleted_at = EXCLUDED.deleted_at;
    END LOOP;
    IF NOT v_is_read THEN
      RAISE EXCEPTION 'fencing: % has tombstones of another primary key, (%), which would not be found by (%)', v_name,
                      (SELECT string_agg(format('%I', e ->> 0), ', ' ORDER BY i) FROM jsonb_array_elements(v_was) WITH ORDINALITY u(e, i)),
                      (SELECT string_agg(format('%I', e ->> 0), ', ' ORDER BY i)
                          FROM jsonb_array_elements(tombstone_rekey.columns) WITH ORDINALITY u(e, i))
        USING ERRCODE = 'object_not_in_prerequisite_state',
              HINT = format('Put the key''s columns, their names and their types back. Or, once nobody holds a token from before, remove the tombstones, and call this again: SELECT fencing.prune_tombstones(%L, 9223372036854775807).',
                  v_name);
    END IF;
    IF v_kept.was IS NULL AND NOT is_new THEN
      PERFORM fencing.refuse_moved(tbl, 'key');
    END IF;
    DELETE FROM fencing.tombstone d WHERE d.relid = tbl AND d.columns = v_was;
    INSERT INTO fencing.tombstone AS x (relid, digest, key, columns, token, xact, deleted_at)
    SELECT tbl, d.digest, d.key, d.columns, d.token, d.xact, d.deleted_at FROM fencing.tombstone d WHERE d.relid = 0::regclass
    ON CONFLICT (relid, digest) DO UPDATE SET columns = EXCLUDED.columns, token = greatest(x.token, EXCLUDED.token), xact = EXCLUDED.xact,
        deleted_at = EXCLUDED.deleted_at;
    DELETE FROM fencing.tombstone d WHERE d.relid = 0::regclass;
  END LOOP;
END $$;
-- +goose StatementEnd

-- The bodies of the trigger functions, as they run but for what format() puts in: names, and by the numbers 6 to 10 what depends on the
-- columns of the primary key: the key of OLD and of NEW, the conditions that a column of it is of another type, and fencing.tombstone's
-- columns. They come from the templates in src/triggers.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_bodies() RETURNS TABLE (suffix text, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('bury', $body$
DECLARE
  v_rel     oid := coalesce(pg_partition_root(TG_RELID), TG_RELID);
  v_setting text := current_setting(%4$L, true);
  v_token   bigint;
  v_key     text[];
  v_session CONSTANT text := current_setting('fencing.session', true);
  v_other   boolean;
BEGIN
  BEGIN
    v_other := %8$s;
  EXCEPTION WHEN undefined_column THEN
    v_other := true;
  END;
  IF v_other THEN
    PERFORM fencing.fail('key', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    IF TG_OP = 'DELETE' THEN
      RETURN OLD;
    END IF;
    RETURN NEW;
  END IF;
  IF starts_with(TG_TABLE_SCHEMA, 'pg_temp_') THEN  -- a temporary table is never registered, and its trigger is somebody's own
    IF TG_OP = 'DELETE' THEN
      RETURN OLD;
    END IF;
    RETURN NEW;
  END IF;
  -- as a partition it may be registered by itself still, under a root that isn't
  IF v_rel <> TG_RELID THEN
    v_rel := coalesce((SELECT r.relid FROM pg_partition_ancestors(TG_RELID) WITH ORDINALITY AS a (relid, height) JOIN fencing.registry r ON r.relid = a.relid
                        WHERE r.tombstones ORDER BY a.height LIMIT 1), v_rel);
  END IF;
  v_token := OLD.%1$I;
  IF TG_OP = 'UPDATE' THEN
    v_token := greatest(v_token, NEW.%1$I);
  ELSIF v_setting ~ '^[1-9][0-9]{0,18}$' THEN
    IF v_setting::numeric <= coalesce(pg_sequence_last_value(%5$L::regclass), 9223372036854775807) THEN
      v_token := greatest(v_token, v_setting::bigint);
    END IF;
  END IF;
  v_key := %6$s;
  IF v_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- this write is none of the driver's own: fencing.refuse_driver_write
  END IF;
  INSERT INTO fencing.tombstone AS x (relid, digest, key, columns, token, xact)
  VALUES (v_rel, sha256(convert_to(v_key::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), v_key, %10$L, v_token,
          pg_current_xact_id())
  ON CONFLICT (relid, digest) DO UPDATE
    SET columns = EXCLUDED.columns, token = greatest(x.token, EXCLUDED.token), xact = EXCLUDED.xact, deleted_at = EXCLUDED.deleted_at;
  IF v_session = 'driver' THEN
    PERFORM set_config('fencing.session', v_session, true);
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $body$),
  ('check', $body$
DECLARE
  v_rel       oid := coalesce(pg_partition_root(TG_RELID), TG_RELID);
  v_key       text[];
  v_sha       bytea;
  v_at        tid;
  v_tombstone record;
  v_session   CONSTANT text := current_setting('fencing.session', true);
  v_other     boolean;
BEGIN
  BEGIN
    v_other := %9$s;
  EXCEPTION WHEN undefined_column THEN
    v_other := true;
  END;
  IF v_other THEN
    PERFORM fencing.fail('key', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NULL, NULL);
    RETURN NULL;
  END IF;
  -- as a partition it may be registered by itself still, under a root that isn't
  IF v_rel <> TG_RELID THEN
    v_rel := coalesce((SELECT r.relid FROM pg_partition_ancestors(TG_RELID) WITH ORDINALITY AS a (relid, height) JOIN fencing.registry r ON r.relid = a.relid
                        WHERE r.tombstones ORDER BY a.height LIMIT 1), v_rel);
  END IF;
  v_key := %7$s;
  v_sha := sha256(convert_to(v_key::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END));
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    IF v_session = 'driver' THEN
      PERFORM set_config('fencing.session', '', true);
    END IF;
    INSERT INTO fencing.tombstone (relid, digest, key, columns, token, xact) VALUES (v_rel, v_sha, v_key, %10$L, -1, pg_current_xact_id())
      ON CONFLICT (relid, digest) DO NOTHING RETURNING ctid INTO v_at;
    -- by its place: at SERIALIZABLE a look into the index would conflict with the INSERTs of other keys
    DELETE FROM fencing.tombstone d WHERE d.ctid = v_at;
    IF v_session = 'driver' THEN
      PERFORM set_config('fencing.session', v_session, true);
    END IF;
    IF v_at IS NOT NULL THEN
      RETURN NULL;
    END IF;
  END IF;
  SELECT d.token, d.xact INTO v_tombstone FROM fencing.tombstone d WHERE d.relid = v_rel AND d.digest = v_sha;
  IF FOUND AND (NEW.%1$I < v_tombstone.token
                OR %2$L = 'strict' AND NEW.%1$I = v_tombstone.token AND v_tombstone.xact <> pg_current_xact_id()) THEN
    PERFORM fencing.fail('deleted', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, NEW.%1$I, v_tombstone.token);
  END IF;
  RETURN NULL;
END $body$)
$$;
-- +goose StatementEnd

-- What the values of the columns of a primary key are: see fencing.tombstone_rekey.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_key_columns(cols name[], types regtype[]) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT jsonb_agg(jsonb_build_array(u.col, CASE WHEN u.type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype) THEN 'number'
              WHEN u.type = 'varchar'::regtype THEN 'text' ELSE u.type::text END) ORDER BY u.n)
            FROM unnest(cols, types) WITH ORDINALITY u(col, type, n));
END $$;
-- +goose StatementEnd

-- The bodies of the trigger functions for a table, as they run.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_key_bodies(cols name[], types regtype[], token_column name, mode text, resource text, seq text)
RETURNS TABLE (suffix text, body text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
#variable_conflict use_column
DECLARE
  c_keys  CONSTANT text := 'ARRAY[' || (SELECT string_agg(fencing.doctor_key_text(u.col, u.type), ', ' ORDER BY u.n)
      FROM unnest(tombstone_key_bodies.cols, tombstone_key_bodies.types) WITH ORDINALITY u(col, type, n)) || ']';
  c_types CONSTANT text := (SELECT string_agg(format('pg_typeof(%%1$s.%s) <> %L::regtype', replace(quote_ident(c), '%', '%%'), t), ' OR ' ORDER BY n)
        FROM unnest(tombstone_key_bodies.cols, tombstone_key_bodies.types::text[]) WITH ORDINALITY u(c, t, n))
      || format(' OR pg_typeof(%%1$s.%s) <> ''bigint''::regtype', replace(quote_ident(tombstone_key_bodies.token_column), '%', '%%'));
BEGIN
  RETURN QUERY
  SELECT b.suffix, format(b.body, tombstone_key_bodies.token_column, tombstone_key_bodies.mode, tombstone_key_bodies.resource,
           fencing.setting_name(tombstone_key_bodies.resource), tombstone_key_bodies.seq, format(c_keys, 'OLD'), format(c_keys, 'NEW'), format(c_types, 'OLD'),
           format(c_types, 'NEW'), fencing.doctor_key_columns(tombstone_key_bodies.cols, tombstone_key_bodies.types))
    FROM fencing.tombstone_bodies() b;
END $$;
-- +goose StatementEnd

-- Makes the trigger functions and returns what their names begin with; compare fencing.wall_functions. A type other than the one they
-- were made for isn't looked at, because its cast would run as the owner of the schema. look: makes none, and returns null where one is not
-- right, where tombstones stand under other columns, or where the key's columns have other names than are kept.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_functions(tbl regclass, token_column name, mode text, resource text, issued_by regclass,
    look boolean DEFAULT false, is_new boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
    SET standard_conforming_strings = on AS $$
DECLARE
  c_settings CONSTANT text[] := '{"search_path=pg_catalog, pg_temp",enable_seqscan=off,TimeZone=UTC,"DateStyle=ISO, YMD",IntervalStyle=postgres,bytea_output=hex,extra_float_digits=1}';
  v_key    record;
  v_seq    CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = issued_by);
  v_prefix text;
  v_columns jsonb;
  v_sql    text;
  v_function record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstone_functions()');
  PERFORM fencing.check_sequence(issued_by);
  SELECT * INTO v_key FROM fencing.tombstone_key(tbl);
  v_columns := fencing.doctor_key_columns(v_key.cols, v_key.types);
  IF NOT look THEN
    PERFORM fencing.tombstone_rekey(tbl, v_columns, is_new);
  ELSIF (SELECT (k.was, k.now) IS DISTINCT FROM (v_key.cols, v_key.cols) FROM fencing.doctor_kept(tbl, 'key') k) OR EXISTS (SELECT FROM fencing.tombstone d WHERE d.relid = tbl AND d.columns <> v_columns AND jsonb_array_length(d.columns) > 0) THEN
    RETURN NULL;
  END IF;
  v_prefix := 'tomb_' || left(md5(convert_to(jsonb_build_array(token_column, mode, resource, v_seq, v_key.cols, v_key.types::text[])::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_';
  FOR v_function IN
    SELECT b.suffix, b.body FROM fencing.tombstone_key_bodies(v_key.cols, v_key.types, token_column, mode, resource, v_seq) b
  LOOP
    IF NOT fencing.has_function(v_prefix || v_function.suffix, v_function.body, true, c_settings) THEN
      IF look THEN
        RETURN NULL;
      END IF;
      -- a sequential scan of fencing.tombstone is a read of all keys to SERIALIZABLE, and it is chosen while the table is small
      EXECUTE format('CREATE OR REPLACE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off '
                     'SET TimeZone = ''UTC'' SET DateStyle = ''ISO, YMD'' SET IntervalStyle = ''postgres'' SET bytea_output = ''hex'' SET extra_float_digits = 1 AS %L',
                     v_prefix || v_function.suffix,
                     v_function.body);
    END IF;
  END LOOP;
  IF look THEN
    RETURN v_prefix;
  END IF;
  FOR v_sql IN SELECT r FROM fencing.function_rights(v_prefix, 'fencing.tombstones(regclass, boolean)'::regprocedure) r LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_prefix;
END $$;
-- +goose StatementEnd

-- compare fencing.wall_sweep
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_sweep(prefixes text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_sql text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstone_sweep()');
  IF prefixes IS NULL THEN
    SELECT array_agg(DISTINCT left(p.proname, 22)) INTO prefixes FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^tomb_[0-9a-f]{16}_' AND p.prorettype = 'trigger'::regtype;
  END IF;
  FOR v_sql IN
    WITH func AS (
      SELECT p.oid, x.prefix, EXISTS (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
          AND d.classid = 'pg_trigger'::regclass) AS runs
        FROM unnest(prefixes) x(prefix) JOIN pg_proc p ON p.proname >= x.prefix::name AND p.proname < (x.prefix || '~')::name
       WHERE x.prefix ~ '^tomb_[0-9a-f]{16}_$' AND p.pronamespace = 'fencing'::regnamespace AND p.prorettype = 'trigger'::regtype)
    SELECT format('DROP FUNCTION %s', f.oid::regprocedure) FROM func f
        WHERE NOT EXISTS (SELECT 1 FROM func g WHERE g.prefix = f.prefix AND g.runs)
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

-- Gives a table the tombstones of another one, in whose place it is registered; that one keeps its own for as long as it is there.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_copy(former regclass, tbl regclass) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstone_copy()');
  IF former = tbl OR NOT EXISTS (SELECT 1 FROM fencing.registry r WHERE r.relid = tbl) THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM fencing.doctor_kept(former, 'key') k WHERE k.was <> k.now) THEN  -- by the names alone they would stand for other keys
    PERFORM fencing.tombstone_rekey(former, fencing.doctor_key_columns(k.cols, k.types)) FROM fencing.tombstone_key(former) k;
  END IF;
  INSERT INTO fencing.tombstone AS x (relid, digest, key, columns, token, xact, deleted_at)
  SELECT tbl, d.digest, d.key, d.columns, d.token, d.xact, d.deleted_at FROM fencing.tombstone d WHERE d.relid = former
  ON CONFLICT (relid, digest) DO UPDATE SET columns = EXCLUDED.columns, token = EXCLUDED.token, xact = EXCLUDED.xact,
      deleted_at = EXCLUDED.deleted_at WHERE x.token < EXCLUDED.token;
  -- those of a table that is there stay with it, registered or not: who may call this may not take them away
  IF NOT EXISTS (SELECT 1 FROM fencing.registry r WHERE r.relid = former)
      AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = former) THEN
    DELETE FROM fencing.tombstone d WHERE d.relid = former;
  END IF;
END $$;
-- +goose StatementEnd

-- Makes the triggers of a table what its row asks for. Partitions have copies. Compare fencing.wall_apply for what look does. What keeps the
-- columns of the key stays without tombstones. is_new: the table has just begun to keep them.
-- +goose StatementBegin
CREATE FUNCTION fencing.tombstone_apply(tbl regclass, level text, token_column name, mode text, resource text,
    issued_by regclass, look boolean DEFAULT false, is_new boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
    SET plan_cache_mode = force_generic_plan SET quote_all_identifiers = off AS $$
DECLARE
  v_prefix  text := '';
  v_changed text;
  v_generated boolean;  -- a column of the key is, which has no value yet in a trigger before
  v_tbl     CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = tbl);
  v_all     text[];
  v_old     text[];  -- prefixes of the functions that the triggers ran before
  v_sql     text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstone_apply()');
  IF level <> 'off' THEN
    PERFORM fencing.check_triggers(tbl, '^~fencing_(bury|vacate|tomb|rekey[12])$');
    v_prefix := fencing.tombstone_functions(tbl, token_column, mode, resource, issued_by, look, is_new);
    IF v_prefix IS NULL THEN
      RETURN 'SHARE ROW EXCLUSIVE';
    ELSIF NOT look THEN
      PERFORM fencing.keep_columns(tbl, 'key', k.cols) FROM fencing.tombstone_key(tbl) k;
    END IF;
    -- as the server writes it
    SELECT string_agg(format(CASE u.type WHEN 'varchar'::regtype THEN '((old.%I)::text IS DISTINCT FROM (new.%1$I)::text)'
                                         ELSE '(old.%I IS DISTINCT FROM new.%1$I)' END, u.col), ' OR ' ORDER BY u.n) INTO v_changed
      FROM fencing.tombstone_key(tbl) k, unnest(k.cols, k.types) WITH ORDINALITY u(col, type, n);
    v_generated := EXISTS (SELECT FROM fencing.tombstone_key(tbl) k, pg_attribute a WHERE a.attrelid = tbl AND a.attname = ANY (k.cols)
        AND a.attgenerated <> '');
    IF v_changed LIKE '% OR %' THEN
      v_changed := format('(%s)', v_changed);
    END IF;
  END IF;
  WITH wanted AS (
    SELECT k.name, v_prefix || k.suffix AS func, k.event, k.cond
      FROM (VALUES ('~fencing_bury', 'bury', 'BEFORE DELETE', ''), ('~fencing_tomb', 'check', 'AFTER INSERT', ''),
                   ('~fencing_vacate', 'bury', 'BEFORE UPDATE', CASE WHEN v_generated THEN '' ELSE format('WHEN (%s) ', v_changed) END),
                   ('~fencing_rekey1', 'bury', 'AFTER UPDATE', format('WHEN (%s) ', v_changed)),
                   ('~fencing_rekey2', 'check', 'AFTER UPDATE', format('WHEN (%s) ', v_changed))) k(name, suffix, event, cond)
     WHERE level <> 'off'),
  present AS (
    SELECT t.tgname AS name, pg_get_triggerdef(t.oid) AS def, left(p.proname, 22) AS prefix FROM pg_trigger t,
        LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
     WHERE t.tgrelid = tbl AND t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^tomb_[0-9a-f]{16}_')
  SELECT array_agg(CASE
           WHEN w.name IS NULL THEN format('DROP TRIGGER %I ON %s', p.name, tbl)
           ELSE 'CREATE OR REPLACE ' || d.def
         END ORDER BY w.name IS NULL, coalesce(w.name, p.name)), array_agg(DISTINCT p.prefix) FILTER (WHERE p.prefix IS NOT NULL)
             INTO v_all, v_old
    FROM wanted w FULL JOIN present p ON p.name = w.name,
    LATERAL (SELECT format('TRIGGER %I %s ON %s FOR EACH ROW %sEXECUTE FUNCTION fencing.%I(%L)', w.name, w.event, v_tbl, w.cond,
        w.func, level)
              WHERE w.name IS NOT NULL UNION ALL SELECT NULL WHERE w.name IS NULL) d(def)
   WHERE d.def IS NULL OR p.def IS DISTINCT FROM 'CREATE ' || d.def;
  IF look THEN
    RETURN fencing.lock_needed(tbl, v_all, nullif(v_prefix, ''), 'fencing.tombstones(regclass, boolean)'::regprocedure);
  END IF;
  FOREACH v_sql IN ARRAY coalesce(v_all, '{}') LOOP
    EXECUTE v_sql;
  END LOOP;
  IF level <> 'off' THEN
    FOR v_sql IN
      WITH RECURSIVE member AS (
        SELECT tbl::oid AS oid UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.oid)
      SELECT format('ALTER TABLE %s ', m.oid::regclass) || string_agg(format('ENABLE ALWAYS TRIGGER %I', t.tgname), ', ' ORDER BY t.tgname)
        FROM member m JOIN pg_trigger t ON t.tgrelid = m.oid,
            LATERAL (SELECT q.proname, q.pronamespace FROM pg_proc q WHERE q.oid = t.tgfoid OFFSET 0) p
       WHERE t.tgenabled <> 'A' AND p.pronamespace = 'fencing'::regnamespace AND starts_with(p.proname, v_prefix)
       GROUP BY m.oid ORDER BY m.oid <> tbl::oid, m.oid
    LOOP
      EXECUTE v_sql;
    END LOOP;
  END IF;
  IF level <> 'off' THEN  -- what a partition brings along that was a table of its own
    PERFORM fencing.tombstone_copy(p.oid::regclass, tbl) FROM fencing.partitions(tbl) p(oid);
  END IF;
  v_old := array_remove(v_old, v_prefix);
  IF cardinality(v_old) > 0 THEN
    PERFORM fencing.tombstone_sweep(v_old);
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fencing.tombstones_changed() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_old text := CASE WHEN OLD.tombstones THEN OLD.wall_level ELSE 'off' END;
  v_new text := 'off';
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.tombstones THEN
    v_new := NEW.wall_level;
  END IF;
  IF v_old <> 'off' AND (v_new = 'off' OR OLD.relid IS DISTINCT FROM NEW.relid)
      AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = OLD.relid) THEN
    PERFORM fencing.tombstone_apply(OLD.relid, 'off', OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by);
  END IF;
  IF v_new <> 'off' AND (OLD.relid, v_old, OLD.token_column, OLD.mode, OLD.resource, OLD.issued_by)
                        IS DISTINCT FROM (NEW.relid, v_new, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by)
     AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = NEW.relid) THEN
    PERFORM fencing.tombstone_apply(NEW.relid, v_new, NEW.token_column, NEW.mode, NEW.resource, NEW.issued_by,
      is_new => NOT OLD.tombstones OR OLD.relid IS DISTINCT FROM NEW.relid);
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER tombstones AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.tombstones_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER tombstones;

-- +goose StatementBegin
CREATE FUNCTION fencing.tombstones(tbl regclass, keep boolean DEFAULT true) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_table  record;
  v_lock   text;
  v_detail text;
BEGIN
  PERFORM fencing.refuse_driver('fencing.tombstones()');
  FOR v_look IN 1..2 LOOP  -- as in fencing.wall
    SELECT n.nspname, c.relname, c.relkind, format('%I.%I', n.nspname, c.relname) AS name, r.relid, r.wall_level, r.tombstones,
           r.token_column, r.mode, r.resource, r.issued_by INTO v_table
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'fencing: no table given to keep tombstones of' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
    END IF;
    IF v_table.relid IS NULL THEN
      PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname);
    END IF;
    IF keep IS NULL THEN
      RAISE EXCEPTION 'fencing: neither true nor false given for the tombstones of %', v_table.name
        USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = 'Leave the argument out for true.';
    END IF;
    IF keep THEN
      IF v_table.wall_level = 'off' THEN
        RAISE EXCEPTION 'fencing: no tombstones for %: its wall is off', v_table.name
          USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
                HINT = format('A DELETE has no token to keep without one: SELECT fencing.wall(%L).', v_table.name);
      END IF;
      PERFORM fencing.tombstone_key(tbl);
      IF v_table.relkind = 'r' AND NOT v_table.tombstones AND EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = tbl) THEN
        RAISE EXCEPTION 'fencing: no tombstones for %: it has children, which don''t share its primary key', v_table.name
          USING ERRCODE = 'feature_not_supported', SCHEMA = v_table.nspname, TABLE = v_table.relname, HINT = 'Use a partitioned table.';
      END IF;
    END IF;
    EXIT WHEN v_look = 2;
    v_lock := fencing.tombstone_apply(tbl, CASE WHEN keep THEN v_table.wall_level ELSE 'off' END, v_table.token_column, v_table.mode,
        v_table.resource, v_table.issued_by, look => true);
    IF v_table.tombstones = keep AND v_lock IS NULL THEN
      -- what a partition brings along that was a table of its own
      PERFORM fencing.tombstone_copy(p.oid::regclass, tbl) FROM fencing.partitions(tbl) p(oid) WHERE keep;
      RETURN;
    END IF;
    PERFORM fencing.lock_registry(tbl, v_lock);
  END LOOP;
  IF v_table.tombstones <> keep THEN
    UPDATE fencing.registry r SET tombstones = keep WHERE r.relid = tbl;
  ELSE  -- with false, what came with a dump of the table alone
    PERFORM fencing.tombstone_apply(tbl, CASE WHEN keep THEN v_table.wall_level ELSE 'off' END, v_table.token_column, v_table.mode,
        v_table.resource, v_table.issued_by);
  END IF;
EXCEPTION WHEN deadlock_detected THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  PERFORM fencing.refuse_deadlock('fencing.tombstones', tbl, v_detail);
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.tombstones(regclass, boolean) IS
  'Has deleted keys of a walled table keep their tokens, so that no stale holder inserts them again; false: not any more.';

-- +goose StatementBegin
CREATE FUNCTION fencing.prune_tombstones(tbl regclass, below bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_count bigint;
BEGIN
  PERFORM fencing.refuse_driver('fencing.prune_tombstones()');
  IF NOT pg_has_role(current_user, (SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'fencing'), 'USAGE') THEN
    RAISE EXCEPTION 'fencing: tombstones are removed by the owner of schema fencing only'
      USING ERRCODE = 'insufficient_privilege', HINT = 'Call it as that role.';
  END IF;
  IF tbl IS NULL OR below IS NULL THEN
    RAISE EXCEPTION 'fencing: no table or no token given to remove tombstones by'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give the table and the oldest token that anybody may still hold.';
  END IF;
  DELETE FROM fencing.tombstone d WHERE d.relid = tbl AND d.token < below;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.prune_tombstones(regclass, bigint) IS
  'Removes the tombstones of a table with tokens below the oldest that anybody may still hold, and says how many.';

-- ---- src/70_repair.sql

-- Repair of a row whose token is wrong, most often one far too high, which no holder can reach: fencing.repair(), fencing.repairs.
--
-- The wall lets the one UPDATE through that fencing.repair has written down before it, in the same transaction: table, old and new
-- token. It looks only where it would have refused, so other writes pay nothing.
--
-- Known limits:
--   A user trigger that during the repair writes another row of the table from the same old token to the same new one passes with it.
--   A key is read from JSON as the column's type reads text; bytea as \x and hexadecimal digits.

CREATE TABLE fencing.repairs (
  id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  repaired_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  repaired_by name        NOT NULL DEFAULT session_user,
  relid       regclass    NOT NULL,
  schema_name name        NOT NULL,
  table_name  name        NOT NULL,
  key         jsonb       NOT NULL,
  old_token   bigint      NOT NULL,
  new_token   bigint      NOT NULL CHECK (new_token >= 0),
  reason      text        NOT NULL CHECK (reason ~ '[^[:space:]]'),
  -- the transaction that repairs, while it does
  xact        xid8
);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.repairs
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.repairs ENABLE ALWAYS TRIGGER refuse_driver;

CREATE INDEX repairs_in_progress ON fencing.repairs (xact) WHERE xact IS NOT NULL;

COMMENT ON TABLE fencing.repairs IS
    'Every repair of a row''s token: who, when, which row, from and to what, and why. Written by fencing.repair().';

-- +goose StatementBegin
CREATE FUNCTION fencing.is_repair(rel oid, token bigint, current bigint) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (
    WITH RECURSIVE up AS (
      SELECT rel AS oid UNION SELECT i.inhparent FROM up u JOIN pg_inherits i ON i.inhrelid = u.oid)
    SELECT 1 FROM fencing.repairs r JOIN up u ON u.oid = r.relid
     WHERE r.xact = pg_current_xact_id_if_assigned() AND r.new_token = token AND r.old_token = current);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fencing.repair(tbl regclass, key jsonb, token bigint, reason text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  v_table record;
  v_cols name[];
  v_cond text;
  v_old  bigint[];
  v_id   uuid;
  v_new  bigint;
BEGIN
  PERFORM fencing.refuse_driver('fencing.repair()');
  IF NOT pg_has_role(current_user, (SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'fencing'), 'USAGE') THEN
    RAISE EXCEPTION 'fencing: rows are repaired by the owner of schema fencing only'
      USING ERRCODE = 'insufficient_privilege', HINT = 'Call it as that role.';
  END IF;
  SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name, r.relid, r.token_column, r.issued_by INTO v_table
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN fencing.registry r ON r.relid = c.oid WHERE c.oid = tbl;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fencing: no table given to repair a row of' USING ERRCODE = 'undefined_table', HINT = 'Name a registered table.';
  END IF;
  IF v_table.relid IS NULL THEN
    PERFORM fencing.refuse_unregistered(tbl, v_table.nspname, v_table.relname);
  END IF;
  IF reason IS NULL OR reason !~ '[^[:space:]]' THEN
    RAISE EXCEPTION 'fencing: no reason given for the repair of a row of %', v_table.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
          HINT = 'Say why; it is kept in fencing.repairs.';
  END IF;
  IF token IS NULL OR token < 0 THEN
    RAISE EXCEPTION 'fencing: % for the repair of a row of %', CASE WHEN token IS NULL THEN 'no token given'
        ELSE format('negative token %s', token) END, v_table.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = 'Give the token of the row''s last rightful write, or 0 for a row that any token may write.';
  END IF;
  IF v_table.issued_by IS NOT NULL AND token > coalesce(pg_sequence_last_value(v_table.issued_by), 0) THEN
    RAISE EXCEPTION 'fencing: token % for the repair of a row of % was never issued', token, v_table.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('The last one issued by %s is %s; no holder could write the row.', v_table.issued_by,
                coalesce(pg_sequence_last_value(v_table.issued_by), 0));
  END IF;
  SELECT array_agg(a.attname ORDER BY k.ord), string_agg(format('r.%I = k.%1$I', a.attname), ' AND ' ORDER BY k.ord) INTO v_cols, v_cond
    FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY k(num, ord), pg_attribute a
   WHERE i.indrelid = tbl AND i.indisprimary AND k.ord <= i.indnkeyatts AND a.attrelid = tbl AND a.attnum = k.num;
  IF v_cols IS NULL THEN
    RAISE EXCEPTION 'fencing: no row of % can be named for repair: it has no primary key', v_table.name
      USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('ALTER TABLE %s ADD PRIMARY KEY (...).', v_table.name);
  END IF;
  IF key IS NULL OR jsonb_typeof(key) <> 'object' OR NOT key ?& v_cols::text[]
      OR (SELECT count(*) FROM jsonb_object_keys(key)) <> cardinality(v_cols)
     OR EXISTS (SELECT 1 FROM jsonb_each(key) e WHERE jsonb_typeof(e.value) = 'null') THEN
    RAISE EXCEPTION 'fencing: % is not a key of %', coalesce(key::text, 'null'), v_table.name
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('Give a JSON object with a value for each column of the primary key, and nothing else: %s.',
                array_to_string(v_cols, ', '));
  END IF;
  -- locked and then counted: the old token that is written down is the one that is replaced
  BEGIN
    EXECUTE format('SELECT array_agg(t) FROM (SELECT r.%1$I AS t FROM %2$s r, jsonb_populate_record(NULL::%2$s, $1) k WHERE %3$s FOR UPDATE OF r) x',
                   v_table.token_column, v_table.name, v_cond) INTO v_old USING key;
  EXCEPTION WHEN data_exception OR datatype_mismatch THEN
    RAISE EXCEPTION 'fencing: % is not a key of %: %', key, v_table.name, SQLERRM
      USING ERRCODE = 'invalid_parameter_value', SCHEMA = v_table.nspname, TABLE = v_table.relname,
            HINT = format('Write the values as the types of the columns read text: %s.', array_to_string(v_cols, ', '));
  END;
  IF coalesce(cardinality(v_old), 0) <> 1 THEN
    RAISE EXCEPTION 'fencing: % of % has the key %', CASE WHEN v_old IS NULL THEN 'no row' ELSE 'more than one row' END, v_table.name, key
      USING ERRCODE = CASE WHEN v_old IS NULL THEN 'no_data_found' ELSE 'cardinality_violation' END, SCHEMA = v_table.nspname,
          TABLE = v_table.relname,
            HINT = CASE WHEN v_old IS NULL THEN 'Correct the key; row security may hide the row as well.'
                ELSE 'Children don''t share a primary key; repair the child.' END;
  END IF;
  INSERT INTO fencing.repairs (relid, schema_name, table_name, key, old_token, new_token, reason, xact)
  VALUES (tbl, v_table.nspname, v_table.relname, repair.key, v_old[1], repair.token, repair.reason, pg_current_xact_id()) RETURNING id
      INTO v_id;
  EXECUTE format('UPDATE %1$s r SET %2$I = $2 FROM jsonb_populate_record(NULL::%1$s, $1) k WHERE %3$s RETURNING r.%2$I', v_table.name,
      v_table.token_column, v_cond)
    INTO v_new USING key, token;
  IF v_new IS DISTINCT FROM token THEN
    RAISE EXCEPTION 'fencing: the row of % with the key % was not repaired: it has token %', v_table.name, key,
        coalesce(v_new::text, 'as before')
      USING ERRCODE = 'triggered_data_change_violation', SCHEMA = v_table.nspname, TABLE = v_table.relname,
          HINT = 'A trigger of the table changed the write.';
  END IF;
  UPDATE fencing.repairs p SET xact = NULL WHERE p.id = v_id;
END $$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.repair(regclass, jsonb, bigint, text) IS
  'Sets the token of one row, named by its primary key, past the wall, and keeps a record in fencing.repairs. For the owner of the schema.';

-- ---- src/79_manifest.sql

-- What schema fencing is made of: fencing.doctor_objects(), as the catalog has it, and fencing.doctor_manifest(), as it was when this file
-- was built. fencing.doctor() reports each difference.
--
-- The manifest is made by a server that has run this file: see internal/baseline. It has nothing that differs between the major versions
-- of PostgreSQL, and leaves itself out. Constraints of NOT NULL, which are in the catalog as of version 18 only, count as the columns' own.
--
-- Known limits:
--   Who may write functions of the schema can make the doctor say what they like. migrations.Doctor has a manifest of its own for that, and
--   compares the doctor's functions with it.
--   The trigger functions of walls, tombstones and seals are made later: the findings about triggers compare those.

-- parent is the table that an object is part of, and empty for what is in the schema itself.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_objects() RETURNS TABLE (kind text, parent text, object text, definition text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
WITH rel AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing' AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
SELECT 'table', '', c.relname::text, concat_ws(', ', CASE c.relkind WHEN 'r' THEN 'table' ELSE 'relation of kind ' || c.relkind::text END,
       CASE c.relpersistence WHEN 'p' THEN 'logged' ELSE 'unlogged' END, CASE WHEN c.relrowsecurity THEN 'row security' END,
       CASE WHEN c.relforcerowsecurity THEN 'forced row security' END)
  FROM rel c
UNION ALL
SELECT 'column', c.relname, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attcollation <> t.typcollation THEN 'of another collation' END,
       CASE WHEN a.attidentity <> '' THEN 'identity' END, CASE WHEN a.attgenerated <> '' THEN 'generated' END)
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
UNION ALL
SELECT 'not null', c.relname, a.attname, 'NOT NULL'
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
UNION ALL
SELECT 'default', c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid)
  FROM rel c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = ''
  JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint', c.relname, k.conname, pg_get_constraintdef(k.oid)
  FROM rel c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype NOT IN ('n', 't')
UNION ALL
SELECT 'index', c.relname, x.relname, pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END
  FROM rel c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
 WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = c.oid)
UNION ALL
SELECT 'trigger', c.relname, t.tgname, pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'A' THEN '' ELSE ' not always' END
  FROM rel c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
UNION ALL
SELECT 'rule', c.relname, r.rulename, '' FROM rel c JOIN pg_rewrite r ON r.ev_class = c.oid AND r.rulename <> '_RETURN'
UNION ALL
SELECT 'policy', c.relname, p.polname, '' FROM rel c JOIN pg_policy p ON p.polrelid = c.oid
UNION ALL
SELECT 'sequence', '', c.relname, format('%s, INCREMENT BY %s', format_type(s.seqtypid, NULL), s.seqincrement)
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing'
UNION ALL
SELECT 'function', '', format('%s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)),
       concat_ws(' ', md5(p.prosrc), l.lanname, md5(jsonb_build_array(pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prokind,
       p.prosecdef, p.proleakproof, p.proisstrict, p.provolatile, p.proparallel, p.proconfig)::text))
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
 WHERE n.nspname = 'fencing' AND p.proname <> 'doctor_manifest' AND p.proname !~ '^(wall|tomb|seal)_[0-9a-f]{16}_'
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_objects() IS 'What is in schema fencing, one row for each object and its definition.';

-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_manifest() RETURNS TABLE (kind text, parent text, object text, definition text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('column', 'allowed_function', 'allowed_at', 'timestamp with time zone'),
  ('column', 'allowed_function', 'allowed_by', 'name'),
  ('column', 'allowed_function', 'arguments', 'text'),
  ('column', 'allowed_function', 'digest', 'text'),
  ('column', 'allowed_function', 'function_name', 'name'),
  ('column', 'allowed_function', 'reason', 'text'),
  ('column', 'allowed_function', 'schema_name', 'name'),
  ('column', 'epoch', 'resource', 'text'),
  ('column', 'epoch', 'stripe', 'smallint'),
  ('column', 'epoch', 'token', 'bigint'),
  ('column', 'generation', 'one', 'boolean'),
  ('column', 'generation', 'value', 'bigint'),
  ('column', 'incarnation', 'dbid', 'oid'),
  ('column', 'incarnation', 'floor', 'bigint'),
  ('column', 'incarnation', 'seqid', 'oid'),
  ('column', 'incarnation', 'sysid', 'bigint'),
  ('column', 'incarnation', 'tli', 'bigint'),
  ('column', 'lease', 'expires_at', 'timestamp with time zone'),
  ('column', 'lease', 'holder', 'text'),
  ('column', 'lease', 'resource', 'text'),
  ('column', 'lease', 'token', 'bigint'),
  ('column', 'registry', 'driver_level', 'text'),
  ('column', 'registry', 'driver_rewrite', 'boolean'),
  ('column', 'registry', 'issued_by', 'regclass'),
  ('column', 'registry', 'mode', 'text'),
  ('column', 'registry', 'registered_at', 'timestamp with time zone'),
  ('column', 'registry', 'relid', 'regclass'),
  ('column', 'registry', 'resource', 'text'),
  ('column', 'registry', 'schema_name', 'name'),
  ('column', 'registry', 'seal_column', 'name'),
  ('column', 'registry', 'seal_resource', 'text'),
  ('column', 'registry', 'table_name', 'name'),
  ('column', 'registry', 'token_column', 'name'),
  ('column', 'registry', 'tombstones', 'boolean'),
  ('column', 'registry', 'wall_level', 'text'),
  ('column', 'repairs', 'id', 'uuid'),
  ('column', 'repairs', 'key', 'jsonb'),
  ('column', 'repairs', 'new_token', 'bigint'),
  ('column', 'repairs', 'old_token', 'bigint'),
  ('column', 'repairs', 'reason', 'text'),
  ('column', 'repairs', 'relid', 'regclass'),
  ('column', 'repairs', 'repaired_at', 'timestamp with time zone'),
  ('column', 'repairs', 'repaired_by', 'name'),
  ('column', 'repairs', 'schema_name', 'name'),
  ('column', 'repairs', 'table_name', 'name'),
  ('column', 'repairs', 'xact', 'xid8'),
  ('column', 'tombstone', 'columns', 'jsonb'),
  ('column', 'tombstone', 'deleted_at', 'timestamp with time zone'),
  ('column', 'tombstone', 'digest', 'bytea'),
  ('column', 'tombstone', 'key', 'text[] of another collation'),
  ('column', 'tombstone', 'relid', 'regclass'),
  ('column', 'tombstone', 'token', 'bigint'),
  ('column', 'tombstone', 'xact', 'xid8'),
  ('constraint', 'allowed_function', 'allowed_function_pkey', 'PRIMARY KEY (schema_name, function_name, arguments)'),
  ('constraint', 'allowed_function', 'allowed_function_reason_check', 'CHECK ((reason ~ ''[^[:space:]]''::text))'),
  ('constraint', 'epoch', 'epoch_pkey', 'PRIMARY KEY (resource, stripe)'),
  ('constraint', 'epoch', 'epoch_stripe_check', 'CHECK (((stripe >= 0) AND (stripe <= 15)))'),
  ('constraint', 'generation', 'generation_one_check', 'CHECK (one)'),
  ('constraint', 'generation', 'generation_pkey', 'PRIMARY KEY (one)'),
  ('constraint', 'lease', 'lease_pkey', 'PRIMARY KEY (resource)'),
  ('constraint', 'lease', 'lease_resource_check', 'CHECK (((length(resource) >= 1) AND (length(resource) <= 255)))'),
  ('constraint', 'registry', 'registry_driver_level_check', 'CHECK ((driver_level = ANY (ARRAY[''off''::text, ''report''::text, ''enforce''::text])))'),
  ('constraint', 'registry', 'registry_mode_check', 'CHECK ((mode = ANY (ARRAY[''strict''::text, ''lease''::text])))'),
  ('constraint', 'registry', 'registry_pkey', 'PRIMARY KEY (relid)'),
  ('constraint', 'registry', 'registry_resource_check', 'CHECK ((resource <> ''''::text))'),
  ('constraint', 'registry', 'registry_schema_name_table_name_key', 'UNIQUE (schema_name, table_name) DEFERRABLE'),
  ('constraint', 'registry', 'registry_seal_check', 'CHECK ((num_nonnulls(seal_resource, seal_column) < 2))'),
  ('constraint', 'registry', 'registry_seal_column_check', 'CHECK ((seal_column <> ''''::name))'),
  ('constraint', 'registry', 'registry_seal_resource_check', 'CHECK (((length(seal_resource) >= 1) AND (length(seal_resource) <= 255)))'),
  ('constraint', 'registry', 'registry_token_column_check', 'CHECK ((token_column <> ''''::name))'),
  ('constraint', 'registry', 'registry_wall_level_check', 'CHECK ((wall_level = ANY (ARRAY[''off''::text, ''report''::text, ''enforce''::text, ''attested''::text])))'),
  ('constraint', 'repairs', 'repairs_new_token_check', 'CHECK ((new_token >= 0))'),
  ('constraint', 'repairs', 'repairs_pkey', 'PRIMARY KEY (id)'),
  ('constraint', 'repairs', 'repairs_reason_check', 'CHECK ((reason ~ ''[^[:space:]]''::text))'),
  ('constraint', 'tombstone', 'tombstone_pkey', 'PRIMARY KEY (relid, digest)'),
  ('default', 'allowed_function', 'allowed_at', 'clock_timestamp()'),
  ('default', 'allowed_function', 'allowed_by', 'SESSION_USER'),
  ('default', 'generation', 'one', 'true'),
  ('default', 'incarnation', 'floor', '0'),
  ('default', 'registry', 'driver_level', '''enforce''::text'),
  ('default', 'registry', 'driver_rewrite', 'false'),
  ('default', 'registry', 'issued_by', '''fencing.write_epoch''::regclass'),
  ('default', 'registry', 'registered_at', 'now()'),
  ('default', 'registry', 'tombstones', 'false'),
  ('default', 'registry', 'wall_level', '''off''::text'),
  ('default', 'repairs', 'id', 'gen_random_uuid()'),
  ('default', 'repairs', 'repaired_at', 'clock_timestamp()'),
  ('default', 'repairs', 'repaired_by', 'SESSION_USER'),
  ('default', 'tombstone', 'deleted_at', 'clock_timestamp()'),
  ('function', '', 'allow_function(function regprocedure, reason text)', '26102468a24e960989e61c0d08e57024 plpgsql 9c902473b2688bfcead9eb55a72ee905'),
  ('function', '', 'allowed_functions()', '872898ac39df303266b9fa9348e73435 sql ab7af9b747df66653e9ddf76e2cbb7c4'),
  ('function', '', 'carry_over(present jsonb, former jsonb)', 'f283776660ab1821b6c87c110da48810 plpgsql 3980d666ef8187a8b1c5a436db451abe'),
  ('function', '', 'check_function(function regprocedure, doing text)', '40179931cd4bb1b6fbad9db99e79faa2 plpgsql eb44bff41aa91b5a25907e4b3faf7166'),
  ('function', '', 'check_name(tbl regclass, schema_name name, table_name name)', '9fd5675f97520ffadb8d8abb16ca3cfc plpgsql 11eb7b2de083ec36bf4bbce002302276'),
  ('function', '', 'check_parents(tbl regclass)', '29796c11fef61471667c824c6fdbfc2a plpgsql 8bc3e4cba55885405bdab5c84a401477'),
  ('function', '', 'check_seal_column(tbl regclass, by_column name)', '7945c16fd1d10fa436c027caf5fb4490 plpgsql 46a19168a1ec9716865336db101fc8d5'),
  ('function', '', 'check_sequence(issued_by regclass)', '55425ef77fd7ea6fd01e8b902c8f5b77 plpgsql b3a433ad53c431bac5721e281e9a7be9'),
  ('function', '', 'check_table(tbl regclass)', '4d8b2593d46856381e63f2eb37ec47db plpgsql fb2b1597d0fa2cf27f6770e5e532bb1f'),
  ('function', '', 'check_token_column(tbl regclass, token_column name)', 'ae1cd1470822197338b5049ec6eb113a plpgsql f98d89eec89f6f2d9f88451922f53727'),
  ('function', '', 'check_tokens(tbl regclass, token_column name, former jsonb)', 'f61f8e1d73e773e257ea9109dde5a9a0 plpgsql 600ff458da6ce9764c4d88844dcfb232'),
  ('function', '', 'check_triggers(tbl regclass, names text)', '01a890493d9542c4aa2b98c696b00839 plpgsql 38e9f320638af939d9db6a7cae1af1a0'),
  ('function', '', 'claim_name(tbl regclass)', '7f9f2b492e4e0c89124346d13f0ec82b plpgsql 3b58b62ab355bf7ce35c10d12be8bff4'),
  ('function', '', 'confirm_columns(tbl regclass, role text)', '9456ef88ef9ebb936ae01b0bf40849ef plpgsql e801d19951583d9f44c2f485c27ed862'),
  ('function', '', 'disallow_function(function regprocedure)', 'd7e0f36161a701c72f62bccb01a11e79 plpgsql 57408700b44b53b072ccd1134abbb672'),
  ('function', '', 'doctor(scan boolean, roles name[])', 'e92d356f9ee2232f0485f2a5b17fac51 plpgsql 56004ea3a3218ec1922dcbccc77f57e5'),
  ('function', '', 'doctor_apps(family jsonb, roles name[])', '204c75859925b86d394039478b8ca361 plpgsql ecbeee754c69f70f2de65c35a012f0d8'),
  ('function', '', 'doctor_around(family jsonb)', '625f6c5ef04361798016a7cce595953f plpgsql 8c3e6dd9221e94fa6d5fd17974894462'),
  ('function', '', 'doctor_bounds()', '124effd38c531ec873594d77a9671f14 plpgsql c8950d7b2aceec0cdab606496e65ed54'),
  ('function', '', 'doctor_buried(family jsonb, scan boolean)', '19e04b6f14bbd5e793dc33b90b34fe69 plpgsql 814ea500e84d6c95de447c81bafa1cc4'),
  ('function', '', 'doctor_columns(family jsonb, apps jsonb)', 'f4bd95c2543c400864be28c873eeaf71 plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_differences()', '540494276fdefc7699f89ae7f143d652 plpgsql 8802b6da0a933060c28f6d79802d2f4d'),
  ('function', '', 'doctor_family()', '2f11e1a539eb81dd3cda3098c6e40eed plpgsql df36624d779f6462da19a6724f0ba137'),
  ('function', '', 'doctor_functions()', '39353a1a59229d4e42365a4713743df1 plpgsql 8802b6da0a933060c28f6d79802d2f4d'),
  ('function', '', 'doctor_given(acl aclitem[], grantee oid, grantor oid, owner oid)', '9505e072ec5db5063305d4cfd597a137 plpgsql 095e9845a66d8e368df03bb6f3cbf9b7'),
  ('function', '', 'doctor_kept(tbl regclass, role text, OUT was name[], OUT now name[])', 'd25196ea4b6c7dc3bdee45b4b4c27017 plpgsql 02082e20602fd17430b09598097d8112'),
  ('function', '', 'doctor_key_columns(cols name[], types regtype[])', '5b247e0f5813c4fa438edf62d05e0a22 plpgsql 4d660d8c0a6b1fecfed77b84b359bfcf'),
  ('function', '', 'doctor_key_text(col name, type regtype)', 'c95d707d8a0bfc64ea72bb9d97e31ce5 plpgsql 7235ae20da970a275bbcc7d8703b7144'),
  ('function', '', 'doctor_less()', 'a8b2d3cc2cd5a5ab85640c6833ae2db6 plpgsql ac2ba55746ee191cfdb16a588c2e0afd'),
  ('function', '', 'doctor_mend_first(tbl regclass, besides text)', 'f4f81ca43926d5c2d69e826c37172475 plpgsql 59a404e8b2c182e621ebce545b7c43bc'),
  ('function', '', 'doctor_moved(tbl regclass)', 'd9e5147f0cbd0bcafaff97f5e8d6b15d plpgsql d15b32ffe49b02aab8bc1e601ecba614'),
  ('function', '', 'doctor_nullable(rel oid, num smallint)', 'b7e2e59a4337642518a26dd4887bba57 plpgsql e0552a4b2dc70054ea9da73a35fac80a'),
  ('function', '', 'doctor_objects()', '7f0f4e307fcd161b95d7a2aadf3a1298 sql b040abf047989985e1712773d21bd643'),
  ('function', '', 'doctor_owner()', '8080a132bbcde6fa86a624fdccb5a5e0 plpgsql 901c54a018e24d3768ff7695c8402f4f'),
  ('function', '', 'doctor_owners()', '40354d27e9f50deff2819fe4d1355a2b plpgsql 8802b6da0a933060c28f6d79802d2f4d'),
  ('function', '', 'doctor_register(tbl text, mode text, token_column name, resource text, issued_by regclass)', 'c2b602733d157783fd62827ac72627c8 plpgsql 3e814fd0573b5022590579cbd88d96fe'),
  ('function', '', 'doctor_registered_less(former jsonb, present jsonb)', 'c41440749b0da641c6a0c72955dadb25 plpgsql d03f82d1bbd689948d48d7ae8eb137f4'),
  ('function', '', 'doctor_revoke(privileges text, object text, grantee oid, grantor oid, owner oid)', 'ad86c6b7f1d7e41b5717a759cd22f4f9 plpgsql 34a66fa262db83d5c3ba004b5cb07031'),
  ('function', '', 'doctor_roles(family jsonb, apps jsonb, roles name[])', '564987e3ee981f42040ab4b383b8e9c7 plpgsql 53d872ae380b60c0960287f91f187d47'),
  ('function', '', 'doctor_schema(family jsonb, apps jsonb)', '2f7a8620aa975161d9c800237579deca plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_seal(family jsonb, apps jsonb)', '484c4aef9f0677090087590a6167a0a1 plpgsql 188e5cc2a445cfcc1c9faa0f873399e9'),
  ('function', '', 'doctor_sequences(family jsonb, apps jsonb)', 'fc90c506427b3690ea2dd4ae837bf4e5 plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_sets(source text, language name, token_column name, arguments text)', '315a727e168321c7b12ea9f06352d9e1 plpgsql 4358f4873eaaa8cdb828d25db0a54423'),
  ('function', '', 'doctor_settings(family jsonb, apps jsonb)', '4ae8a48f38331459ecabbe90af2e4f7a plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_subscriptions(family jsonb, apps jsonb)', 'f7367fb580b5217f9570e9690bd3b840 plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_tables()', '6f0c3e8bcc3774dc0c1703ac66caf2bc plpgsql 8802b6da0a933060c28f6d79802d2f4d'),
  ('function', '', 'doctor_tokens(family jsonb, scan boolean)', '006c2e6a235ca34002f173f74cfc5054 plpgsql 5481499bfc4f34119a3fdf71abf90806'),
  ('function', '', 'doctor_tombstones(family jsonb, apps jsonb)', 'b537e588c209cb46932c4a2886472f4c plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_triggers(family jsonb, apps jsonb)', '4fb8b3fad715fdf9035f19657f73d3a9 plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_wall(family jsonb, apps jsonb)', 'ef6200b0d916c9160105f00ee41a6887 plpgsql 8aebe6600bd16ec9cf70eafadf950a28'),
  ('function', '', 'doctor_without_wall(tbl text, sql text)', '97c9c9416bc7e67096ebe8e3a29373cc plpgsql 8c1a5e1950b7aa42bf68eb05de08b846'),
  ('function', '', 'doctor_words(source text, token_column name)', 'b6aaa41f5533c09bb0813514ad5cdc38 plpgsql 56d8652339a9032f7ec376391d514be6'),
  ('function', '', 'driver_level(tbl regclass, level text)', '7d49096be0f3fb7f7bd49e03e9bcb950 plpgsql dac5d67990532fce4617e27cc0743bd5'),
  ('function', '', 'driver_rewrite(tbl regclass, on_off boolean)', '86ce0aea87ef582ae44766624c60236a plpgsql 1c7d3795acebe2bc066f8834048db600'),
  ('function', '', 'fail(reason text, level text, rel oid, op text, trg name, col name, mode text, resource text, token bigint, current bigint)', '0d19242e53c01f7030358f8922bb2f83 plpgsql 66c9c6eed3f1804e65bc4b2e4663fee1'),
  ('function', '', 'function_digest(function oid)', '5a3fa64965c44c83a7f3844009892dc5 sql df73dd39874b5dde9045ecaddc4a4aea'),
  ('function', '', 'function_rights(prefix text, called regprocedure)', 'a33c724982d3d65ca2cd4e4ce16e9e9f plpgsql a0c5cc4ba8dba6d52328400ed28659eb'),
  ('function', '', 'has_function(name text, body text, is_definer boolean, settings text[])', '1790533add470e50c77e51ab9037b444 plpgsql 97acd7b70ce0452e2c271988f3db59cc'),
  ('function', '', 'incarnation_now(OUT tli bigint, OUT sysid bigint, OUT dbid oid, OUT seqid oid, OUT unread text[])', '1dee569ae8f85fc77fa63c3e038815ba plpgsql 22a4d531633f36bede53d9af4360324e'),
  ('function', '', 'is_own_write(row_xmin xid)', '888a16056fad994dd8ca22cb837dcbdf plpgsql 181d34c7370f6f592acb4cb1be53dce8'),
  ('function', '', 'is_repair(rel oid, token bigint, current bigint)', 'f63c01120ec76f8540bf765b2c2d6847 plpgsql eea51175aa4e429085392ea771336945'),
  ('function', '', 'keep_columns(tbl regclass, role text, columns name[])', '59e0a342e4b1e64f37c4340788a881cd plpgsql 129aa3d5a1d724ab73a2ae374ca8dfb6'),
  ('function', '', 'kept_columns()', '1055d73275aea8afa9f0abee2bec364e plpgsql ad37ce6cac87d0b92a0c510438ddfbe0'),
  ('function', '', 'lease_ttl(ttl interval)', '7479ca91ca8b1a7e9db88ba16e628eaa plpgsql 6d2c7afe4e8e4b63d10ab10c03c4062b'),
  ('function', '', 'lease_wait(resource text)', '9b319bce6f47539b8c6dbd0957d78e2b plpgsql 97f1dadd86a6b7dd44a769b0d157d2c4'),
  ('function', '', 'lock_needed(tbl regclass, statements text[], prefix text, called regprocedure)', 'ce75df5f5971fa4eb443feaea4ddae2b plpgsql ecb843d0b7924033cd39800fb608bba7'),
  ('function', '', 'lock_registry(tbl regclass, lock_mode text)', 'eca54df34b44d0fe122837dd1782616a plpgsql 45f7b17a4ebb2f0cb37ee711e041a2de'),
  ('function', '', 'next_token()', '7c63b85c4441d31e9211538f88c788df plpgsql 493797e29a72f3a0ba35d84c09b80b77'),
  ('function', '', 'partitions(tbl regclass)', '7dff48de25ed530d4a49ade81de8b08c plpgsql d08cd428d22d314d963c3ce3c67bd2b6'),
  ('function', '', 'prune_tombstones(tbl regclass, below bigint)', '276a9166fd81e59b113dd8baf85989ae plpgsql 7fd7def5a5c942898fdfef9f5bc61772'),
  ('function', '', 'raise_epoch()', '99be3ab6977372c2bb9cd6680d6a5937 plpgsql 83d06d69d20df2f3b840bb3d13ae5486'),
  ('function', '', 'refuse_deadlock(what text, tbl regclass, detail text)', 'f6a5b763b68e5cb10d96722223268097 plpgsql f67694c88b3aede5ed7d4e6a6555b9b2'),
  ('function', '', 'refuse_driver(what text)', '4072de0ed20071bccb2f3a8b1d0c4879 plpgsql c6ecb953cc6d1c84903dbd0035daaaf7'),
  ('function', '', 'refuse_driver_write()', 'a33f700f4766c4752af661eda5c6189e plpgsql ad37ce6cac87d0b92a0c510438ddfbe0'),
  ('function', '', 'refuse_moved(tbl regclass, role text, if_kept boolean)', 'c8c6c6fed53cfed13a2c4704cb9180eb plpgsql 8f026061b060dad2156250a40e9c2de5'),
  ('function', '', 'refuse_unregistered(tbl regclass, schema_name name, table_name name, arguments text, is_named boolean)', 'b3fd670992617874bb069e58227b5c58 plpgsql 31004a8602710ef0898d0ee1805bf2ca'),
  ('function', '', 'register(tbl regclass, mode text, token_column name, resource text, issued_by regclass)', '592a3e2b6108cd5267787a22b72a7a2a plpgsql c1fd94ce945b430f5d7ce4bccbfa5857'),
  ('function', '', 'registered_above(tbl regclass)', '51c244a9d2b3050cb78087489bfe90f4 plpgsql 642b1a0e64a06536b4ce65001aeb9b8f'),
  ('function', '', 'registration(tbl regclass, mode text, token_column name, resource text, issued_by regclass, OUT is_done boolean, OUT lock_mode text)', 'd795c2e641e5aa8fcbd0215d9b8019df plpgsql e83d29311f96b8e472c5f7ffe84586cc'),
  ('function', '', 'registry_changed()', '4f48ba5430dcf438d0dbd16e39a904df plpgsql 83d06d69d20df2f3b840bb3d13ae5486'),
  ('function', '', 'release(resource text, token bigint)', 'c4485f3a1b47a6c7c3acbd311a8f294b plpgsql d0d9fc5461b488971e6c299a23a95191'),
  ('function', '', 'renew(resource text, token bigint, ttl interval)', '99ff1db91a3c96b5d641e068680ec52e plpgsql 6e74c9b01cb5447304651630290e19fe'),
  ('function', '', 'repair(tbl regclass, key jsonb, token bigint, reason text)', '7698fb36850e3abae679f9e8157559a9 plpgsql 1b324457810d994b8653843a483602c4'),
  ('function', '', 'seal(tbl regclass, resource text, by_column name)', '4710f59772a21d1164cb1465d63a66a8 plpgsql 948154b1725838c7acddae05c1a9f43a'),
  ('function', '', 'seal_apply(tbl regclass, look boolean, is_new_column boolean)', '3b381f4d9c38336b510d7cdc76f31705 plpgsql 1cb7f744464d9554aba7ba81ca38b5fd'),
  ('function', '', 'seal_bodies()', 'ad34cd9d5f9b9e9688a1f7234e685c97 sql 7bfd7a67e71cfc4fafffff35a6f280c3'),
  ('function', '', 'seal_changed()', '14ae762b0885ab32942617767a22381a plpgsql f73df4332a21ee413f9dc8dfcd1ade48'),
  ('function', '', 'seal_fail(reason text, level text, rel oid, op text, trg name, token_column name, resource text, lease text, col name, token bigint, current bigint, was bigint)', '042533978fbbb02b330b9ac29d59cbaa plpgsql a0c86057cd20991ddaa407e60ad987d7'),
  ('function', '', 'seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype, look boolean)', '73f3706b04ec27c61a63afb0ddd474f5 plpgsql d670d8fcae30106160e5f83e7ed75662'),
  ('function', '', 'seal_sweep(names text[])', '943752c29d89fba06ae01371b2080b7d plpgsql 3791b8297b2abd105cfcf5a40debe3ac'),
  ('function', '', 'setting_name(resource text)', '33715c0a0a5cfcd7c4d1e48de8edf70b plpgsql a0401152108b9105e1aef3ca319e60f2'),
  ('function', '', 'take(resource text, ttl interval, holder text)', '610123b39481ea124384bafe7dcf8757 plpgsql 1b364c0b4c9ea500695f712df2eb78ae'),
  ('function', '', 'take_over(tbl regclass, former jsonb, is_new boolean)', '5396862c0a0f06fe862b4d0d671e174f plpgsql a6ef1acf1bade60facfa5af4f7e5ee63'),
  ('function', '', 'tombstone_apply(tbl regclass, level text, token_column name, mode text, resource text, issued_by regclass, look boolean, is_new boolean)', 'ba2ef961aac5193c4cdac68ca74fdabf plpgsql 4ee8803a6a2a74e4afd30ef0e4dc7f0f'),
  ('function', '', 'tombstone_bodies()', '7225f41d63f749da3a8c248fa63d34d8 sql 2225e7bc8acf4e4c09c2b8e3c2fcf62a'),
  ('function', '', 'tombstone_copy(former regclass, tbl regclass)', 'ab1411616ff97d1c8361937ce2a9e21b plpgsql ef1ddfbf0f7f51e140b9d39ff86da796'),
  ('function', '', 'tombstone_functions(tbl regclass, token_column name, mode text, resource text, issued_by regclass, look boolean, is_new boolean)', '3b4e8f3b354657d63b186275edb531e7 plpgsql 1b25b6fb08347c1dd05dbe5982c15e09'),
  ('function', '', 'tombstone_key(tbl regclass, OUT cols name[], OUT types regtype[], OUT texts text[])', '253433d9636137dd4d4ef060de046395 plpgsql 09ed46ba30ee34edbd63ab56b4f56d8f'),
  ('function', '', 'tombstone_key_bodies(cols name[], types regtype[], token_column name, mode text, resource text, seq text)', '1a07b92cc6b2ef7ce6c8d4ea706015ab plpgsql 46badcb6fbb855d2189fe127e8d3ca0b'),
  ('function', '', 'tombstone_rekey(tbl regclass, columns jsonb, is_new boolean)', '951ca6d816499592fe6174074ae7cf9a plpgsql d5b910d2846b5ffdbd9eb938ef1a7d96'),
  ('function', '', 'tombstone_sweep(prefixes text[])', 'abb8bcbc6f50847237487630645a1518 plpgsql b368e9b0ca3ee173eeb08dc789336cf5'),
  ('function', '', 'tombstones(tbl regclass, keep boolean)', 'a5266576c3034f3aa2ecd0b755bbfb10 plpgsql 1d9e62e9ee72ddd1721dcc8931c071b2'),
  ('function', '', 'tombstones_changed()', '09e9d3a72ead87c79fb0f3d3292b4a78 plpgsql f73df4332a21ee413f9dc8dfcd1ade48'),
  ('function', '', 'unregister(tbl regclass)', '8624e305939a63535273c3e38b44b858 plpgsql cc92ce5b3e705ae39709e1836d369583'),
  ('function', '', 'unseal(tbl regclass)', 'f91197b90939dc978c37b709a1300e49 plpgsql cc92ce5b3e705ae39709e1836d369583'),
  ('function', '', 'wall(tbl regclass, level text)', '74664e95ab993262daa11a9fd00ecf9d plpgsql 5a536954570df63e8728f56138a73224'),
  ('function', '', 'wall_apply(tbl regclass, level text, token_column name, mode text, resource text, issued_by regclass, look boolean)', '95434643afb35b82c55c0c838e32f1ee plpgsql 8fd3f4e3754db9b79711f76502681908'),
  ('function', '', 'wall_changed()', 'dc873a36262e56a2ee9858950e9b085d plpgsql f73df4332a21ee413f9dc8dfcd1ade48'),
  ('function', '', 'wall_delete_bodies()', 'aa688d4d66567c65ed21cf965a6c8194 sql f3dc027e5815f0fac52554b12e4319ff'),
  ('function', '', 'wall_functions(token_column name, mode text, resource text, issued_by regclass, look boolean)', '4dca5dd2f729ff49d9086f3c863d149c plpgsql 5028d74c07e8668caa3dfa5852532532'),
  ('function', '', 'wall_insert_bodies()', 'a1d6a5755db0e5f888a3cd945de38e62 sql f3dc027e5815f0fac52554b12e4319ff'),
  ('function', '', 'wall_other_bodies()', '7ddd4f009cd8719279e2030eca28c6fc sql f3dc027e5815f0fac52554b12e4319ff'),
  ('function', '', 'wall_sweep(prefixes text[])', '6e0fb0f94fba73d834e002207dcb9ed0 plpgsql b368e9b0ca3ee173eeb08dc789336cf5'),
  ('function', '', 'wall_update_bodies()', 'c6d1c1768a66d63f27972f6c2eabaeb2 sql f3dc027e5815f0fac52554b12e4319ff'),
  ('function', '', 'walls_above(rel oid)', 'ae5e81a4279665bc89576eff1efd23ef plpgsql 2200a9c23d5678134bef8f392f18963b'),
  ('index', 'repairs', 'repairs_in_progress', 'CREATE INDEX repairs_in_progress ON fencing.repairs USING btree (xact) WHERE (xact IS NOT NULL)'),
  ('not null', 'allowed_function', 'allowed_at', 'NOT NULL'),
  ('not null', 'allowed_function', 'allowed_by', 'NOT NULL'),
  ('not null', 'allowed_function', 'arguments', 'NOT NULL'),
  ('not null', 'allowed_function', 'digest', 'NOT NULL'),
  ('not null', 'allowed_function', 'function_name', 'NOT NULL'),
  ('not null', 'allowed_function', 'reason', 'NOT NULL'),
  ('not null', 'allowed_function', 'schema_name', 'NOT NULL'),
  ('not null', 'epoch', 'resource', 'NOT NULL'),
  ('not null', 'epoch', 'stripe', 'NOT NULL'),
  ('not null', 'epoch', 'token', 'NOT NULL'),
  ('not null', 'generation', 'one', 'NOT NULL'),
  ('not null', 'generation', 'value', 'NOT NULL'),
  ('not null', 'incarnation', 'dbid', 'NOT NULL'),
  ('not null', 'incarnation', 'floor', 'NOT NULL'),
  ('not null', 'incarnation', 'seqid', 'NOT NULL'),
  ('not null', 'incarnation', 'sysid', 'NOT NULL'),
  ('not null', 'incarnation', 'tli', 'NOT NULL'),
  ('not null', 'lease', 'expires_at', 'NOT NULL'),
  ('not null', 'lease', 'resource', 'NOT NULL'),
  ('not null', 'lease', 'token', 'NOT NULL'),
  ('not null', 'registry', 'driver_level', 'NOT NULL'),
  ('not null', 'registry', 'driver_rewrite', 'NOT NULL'),
  ('not null', 'registry', 'mode', 'NOT NULL'),
  ('not null', 'registry', 'registered_at', 'NOT NULL'),
  ('not null', 'registry', 'relid', 'NOT NULL'),
  ('not null', 'registry', 'schema_name', 'NOT NULL'),
  ('not null', 'registry', 'table_name', 'NOT NULL'),
  ('not null', 'registry', 'token_column', 'NOT NULL'),
  ('not null', 'registry', 'tombstones', 'NOT NULL'),
  ('not null', 'registry', 'wall_level', 'NOT NULL'),
  ('not null', 'repairs', 'id', 'NOT NULL'),
  ('not null', 'repairs', 'key', 'NOT NULL'),
  ('not null', 'repairs', 'new_token', 'NOT NULL'),
  ('not null', 'repairs', 'old_token', 'NOT NULL'),
  ('not null', 'repairs', 'reason', 'NOT NULL'),
  ('not null', 'repairs', 'relid', 'NOT NULL'),
  ('not null', 'repairs', 'repaired_at', 'NOT NULL'),
  ('not null', 'repairs', 'repaired_by', 'NOT NULL'),
  ('not null', 'repairs', 'schema_name', 'NOT NULL'),
  ('not null', 'repairs', 'table_name', 'NOT NULL'),
  ('not null', 'tombstone', 'columns', 'NOT NULL'),
  ('not null', 'tombstone', 'deleted_at', 'NOT NULL'),
  ('not null', 'tombstone', 'digest', 'NOT NULL'),
  ('not null', 'tombstone', 'key', 'NOT NULL'),
  ('not null', 'tombstone', 'relid', 'NOT NULL'),
  ('not null', 'tombstone', 'token', 'NOT NULL'),
  ('not null', 'tombstone', 'xact', 'NOT NULL'),
  ('sequence', '', 'write_epoch', 'bigint, INCREMENT BY 1'),
  ('table', '', 'allowed_function', 'table, logged'),
  ('table', '', 'epoch', 'table, logged'),
  ('table', '', 'generation', 'table, logged'),
  ('table', '', 'incarnation', 'table, logged'),
  ('table', '', 'lease', 'table, logged'),
  ('table', '', 'registry', 'table, logged'),
  ('table', '', 'repairs', 'table, logged'),
  ('table', '', 'tombstone', 'table, logged'),
  ('trigger', 'allowed_function', 'changed', 'CREATE TRIGGER changed AFTER INSERT OR DELETE OR UPDATE ON fencing.allowed_function FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed()'),
  ('trigger', 'allowed_function', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.allowed_function FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'allowed_function', 'truncated', 'CREATE TRIGGER truncated AFTER TRUNCATE ON fencing.allowed_function FOR EACH STATEMENT EXECUTE FUNCTION fencing.registry_changed()'),
  ('trigger', 'epoch', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.epoch FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'generation', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.generation FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'incarnation', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.incarnation FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'lease', 'epoch', 'CREATE TRIGGER epoch AFTER INSERT OR UPDATE OF token ON fencing.lease FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch()'),
  ('trigger', 'lease', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.lease FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'registry', 'changed', 'CREATE TRIGGER changed AFTER INSERT OR DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed()'),
  ('trigger', 'registry', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.registry FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'registry', 'seal', 'CREATE TRIGGER seal AFTER DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.seal_changed()'),
  ('trigger', 'registry', 'tombstones', 'CREATE TRIGGER tombstones AFTER DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.tombstones_changed()'),
  ('trigger', 'registry', 'truncated', 'CREATE TRIGGER truncated AFTER TRUNCATE ON fencing.registry FOR EACH STATEMENT EXECUTE FUNCTION fencing.registry_changed()'),
  ('trigger', 'registry', 'wall', 'CREATE TRIGGER wall AFTER DELETE OR UPDATE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.wall_changed()'),
  ('trigger', 'repairs', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.repairs FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()'),
  ('trigger', 'tombstone', 'refuse_driver', 'CREATE TRIGGER refuse_driver BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON fencing.tombstone FOR EACH STATEMENT WHEN ((current_setting(''fencing.session''::text, true) = ''driver''::text)) EXECUTE FUNCTION fencing.refuse_driver_write()')
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_manifest() IS 'What is in schema fencing as fencing made it; compare fencing.doctor_objects().';

-- The differences. What has a code of its own is left out: the triggers of the schema's tables, a missing table, which stops the doctor, and
-- the sequence.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_differences()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_epoch CONSTANT boolean := to_regclass('fencing.write_epoch') IS NOT NULL;
BEGIN
  RETURN QUERY
  WITH difference AS (
    SELECT coalesce(m.kind, o.kind) AS kind, coalesce(m.parent, o.parent) AS parent, coalesce(m.object, o.object) AS object,
           m.definition AS wanted, o.definition AS present
      FROM fencing.doctor_manifest() m FULL JOIN fencing.doctor_objects() o ON o.kind = m.kind AND o.parent = m.parent AND o.object = m.object
     WHERE m.definition IS DISTINCT FROM o.definition)
  SELECT CASE WHEN d.wanted IS NULL AND d.kind IN ('column', 'index') THEN 'warning' ELSE 'error' END,
         CASE WHEN d.present IS NULL THEN 'D001 schema-broken' ELSE 'D004 schema-changed' END,
         CASE d.kind WHEN 'function' THEN format('function fencing.%s', d.object) WHEN 'sequence' THEN format('sequence fencing.%I', d.object)
              WHEN 'table' THEN format('fencing.%I', d.object) ELSE format('%s %I of fencing.%I', d.kind, d.object, d.parent) END,
         CASE WHEN d.present IS NULL THEN 'it is missing' WHEN d.wanted IS NULL AND d.kind = 'function' THEN 'it has the name of a function of fencing, and is none'
              WHEN d.wanted IS NULL THEN 'fencing made none such' WHEN d.kind = 'function' THEN 'it is not as fencing made it'
              ELSE format('it is %s, and not %s', d.present, d.wanted) END,
         CASE WHEN d.present IS NULL AND d.kind = 'function' THEN 'what calls it fails; rights on it have to be granted again'
              WHEN d.kind = 'function' THEN 'what it checks, if anything, is for its author to say'
              WHEN d.kind IN ('trigger', 'rule', 'policy') THEN 'it can change or leave out what is written there'
              WHEN d.kind = 'table' AND d.present LIKE '%unlogged%' THEN 'a crash empties it'
              WHEN d.kind = 'table' THEN 'rows that a role doesn''t see don''t count for it'
              WHEN d.kind = 'sequence' THEN 'tokens are given out in another order, or run out'
              ELSE 'what the table is trusted to hold may be wrong, or its writes fail' END,
         CASE d.kind
           WHEN 'function' THEN CASE WHEN d.wanted IS NULL THEN format('DROP FUNCTION fencing.%s', d.object)
             ELSE 'run migrations.Up(ctx, dsn), which makes it again' END
           WHEN 'table' THEN format('ALTER TABLE fencing.%I %s', d.object, concat_ws(', ', CASE WHEN d.present LIKE '%unlogged%' THEN 'SET LOGGED' END,
             CASE WHEN d.present LIKE '%row security%' THEN 'DISABLE ROW LEVEL SECURITY' END, CASE WHEN d.present LIKE '%forced%' THEN 'NO FORCE ROW LEVEL SECURITY' END))
           WHEN 'sequence' THEN format('ALTER SEQUENCE fencing.%I AS bigint INCREMENT BY 1', d.object)
           WHEN 'column' THEN CASE WHEN d.present IS NULL THEN format('restore it: ALTER TABLE fencing.%I RENAME COLUMN ... TO %I, or take the table from a backup', d.parent, d.object)
             WHEN d.wanted IS NULL THEN format('if nothing of yours needs it, ALTER TABLE fencing.%I DROP COLUMN %I, or leave it, if every write may do without it', d.parent, d.object)
             ELSE format('ALTER TABLE fencing.%I ALTER COLUMN %I TYPE %s', d.parent, d.object, d.wanted) END
           WHEN 'not null' THEN format('ALTER TABLE fencing.%I ALTER COLUMN %I %s NOT NULL', d.parent, d.object, CASE WHEN d.wanted IS NULL THEN 'DROP' ELSE 'SET' END)
           WHEN 'default' THEN format('ALTER TABLE fencing.%I ALTER COLUMN %I ', d.parent, d.object) || coalesce('SET DEFAULT ' || d.wanted, 'DROP DEFAULT')
           WHEN 'constraint' THEN format('ALTER TABLE fencing.%I ', d.parent) || concat_ws(', ', CASE WHEN d.present IS NOT NULL THEN format('DROP CONSTRAINT %I', d.object) END,
             CASE WHEN d.wanted IS NOT NULL THEN format('ADD CONSTRAINT %I %s', d.object, d.wanted) END)
           WHEN 'index' THEN concat_ws('; ', CASE WHEN d.present IS NOT NULL THEN format('DROP INDEX fencing.%I', d.object) END, d.wanted)
           WHEN 'trigger' THEN format('DROP TRIGGER %I ON fencing.%I', d.object, d.parent)
           WHEN 'rule' THEN format('DROP RULE %I ON fencing.%I', d.object, d.parent)
           ELSE format('DROP POLICY %I ON fencing.%I', d.object, d.parent) END
    FROM difference d
   WHERE (d.wanted IS NOT NULL AND (d.kind <> 'trigger' AND (d.kind NOT IN ('table', 'sequence') OR d.present IS NOT NULL))
          OR d.wanted IS NULL AND CASE d.kind
            -- what else is in the schema is for others to answer for; but not what is taken for a function of fencing's
            WHEN 'function' THEN EXISTS (SELECT FROM fencing.doctor_manifest() f WHERE f.kind = 'function' AND split_part(f.object, '(', 1) = split_part(d.object, '(', 1))
            WHEN 'index' THEN d.present ~ '^CREATE UNIQUE |[(].*[(]| WHERE '
            ELSE true END AND (d.parent = '' AND d.kind = 'function' OR EXISTS (SELECT FROM fencing.doctor_manifest() t WHERE t.kind = 'table' AND t.object = d.parent)))
     -- of a missing column all else is missing, too, and of an added one all else is new
     AND NOT (d.kind IN ('not null', 'default') AND EXISTS (SELECT FROM difference c WHERE c.kind = 'column' AND c.parent = d.parent AND c.object = d.object
         AND (c.wanted IS NULL OR c.present IS NULL)))
     AND NOT (d.kind IN ('constraint', 'index') AND EXISTS (SELECT FROM difference c WHERE c.kind = 'column' AND c.parent = d.parent AND c.present IS NULL))
     AND (c_epoch OR d.wanted IS DISTINCT FROM '''fencing.write_epoch''::regclass')  -- D301 has it
   ORDER BY d.kind = 'constraint' AND d.wanted LIKE 'FOREIGN%', d.kind, d.parent, d.object;
END $$;
-- +goose StatementEnd

-- ---- src/80_doctor.sql

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
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_owner() RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
BEGIN
  RETURN (SELECT o.owner
            FROM (SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'fencing'
                  UNION ALL SELECT c.relowner FROM pg_class c WHERE c.relnamespace = 'fencing'::regnamespace AND c.relkind IN ('r', 'S')
                  UNION ALL SELECT p.proowner FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace) o(owner)
           GROUP BY o.owner ORDER BY count(*) DESC, o.owner LIMIT 1);
END $$;
-- +goose StatementEnd

-- What of the schema belongs to another role than the rest of it.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- +goose StatementBegin
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor(boolean, name[]) IS
  'Finds what takes the protection away, and what mends it. scan: also read whole tables for their highest token; roles: the application''s.';

-- ---- src/81_doctor_tables.sql

-- The statement that registers a table so. Of a sequence that is gone the functions of the table's wall have the name. Without one, or where
-- no sequence has the name now, somebody has to say where tokens come from: by another one forged tokens would pass, or no token.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_register(tbl text, mode text, token_column name, resource text, issued_by regclass) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  v_seq text := issued_by::text;
BEGIN
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    SELECT replace(m.names[1], '''''', '''') INTO v_seq
      FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid, LATERAL regexp_match(p.prosrc, 'pg_sequence_last_value[(]''((?:[^'']|'''')+)''::') m(names)
     -- by the catalog: to_regclass is an error for a role without USAGE on the schema
     WHERE t.tgrelid IN (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE format('%I.%I', n.nspname, c.relname) = tbl)
       AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^wall_[0-9a-f]{16}_' AND m.names IS NOT NULL LIMIT 1;
    IF v_seq = 'fencing.write_epoch' THEN  -- D301 makes it again
      RETURN format('SELECT fencing.register(%L, %L, %L, %L)', tbl, mode, token_column, resource);
    END IF;
    IF v_seq IS NULL OR NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                                     WHERE format('%I.%I', n.nspname, c.relname) = v_seq AND c.relkind = 'S') THEN
      RETURN format('SELECT fencing.register(%L, %L, %L, %L, ...) with the sequence that its tokens come from, which is above all that were given out', tbl, mode, token_column, resource)
        || CASE WHEN v_seq IS NULL THEN '' ELSE format(', and was called %s', v_seq) END;
    END IF;
  END IF;
  RETURN format('SELECT fencing.register(%L, %L, %L, %L, %L)', tbl, mode, token_column, resource, v_seq);
END $$;
-- +goose StatementEnd

-- The statement that does something, if anything, while the wall of a table is off. It puts the wall up at the level that the registry has when
-- it is run.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_without_wall(tbl text, sql text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RETURN format('DO $fencing$ DECLARE v_level text := (SELECT r.wall_level FROM fencing.registry r WHERE r.relid = %1$L::regclass); '
                'BEGIN PERFORM fencing.wall(%1$L, ''off''); %2$sPERFORM fencing.wall(%1$L, v_level); END $fencing$', tbl, coalesce(sql || '; ', ''));
END $$;
-- +goose StatementEnd

-- Whether a table is registered for less than another one was, or for other tokens, so that somebody has to say which it is to be; both are
-- rows of the registry. Levels are for fencing.carry_over to compare.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_registered_less(former jsonb, present jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN former ->> 'token_column' <> present ->> 'token_column' OR former ->> 'resource' IS DISTINCT FROM present ->> 'resource'
      OR former ->> 'mode' = 'strict' AND present ->> 'mode' = 'lease' OR former ->> 'issued_by' IS NOT NULL AND present ->> 'issued_by' IS NULL
      OR present ->> 'mode' = 'strict' AND coalesce(former ->> 'seal_resource', former ->> 'seal_column') IS NOT NULL;
END $$;
-- +goose StatementEnd

-- The registered tables that have a name which another table has now, and ask for more protection than that one has; compare
-- fencing.carry_over.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_less() RETURNS oid[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
  v_less   oid[];
BEGIN
  SELECT coalesce(array_agg(g.relid::oid), '{}') INTO v_less
    FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
    LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
   WHERE array_position(c_levels, g.wall_level) > coalesce(array_position(c_levels, o.wall_level), 1)
      OR o.relid IS NOT NULL AND (array_position(c_levels, g.driver_level) > array_position(c_levels, o.driver_level)
                                  OR g.driver_rewrite AND NOT o.driver_rewrite
                                  OR fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o)))
      OR g.tombstones AND o.tombstones IS NOT TRUE
      OR coalesce(g.seal_resource, g.seal_column) IS NOT NULL
         AND coalesce(o.seal_resource, o.seal_column) IS NULL;
  IF has_table_privilege('fencing.tombstone', 'SELECT') THEN
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less
      FROM fencing.registry g JOIN pg_namespace n ON n.nspname = g.schema_name
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = g.table_name AND c.relkind IN ('r', 'p') AND c.oid <> g.relid
     WHERE g.tombstones AND EXISTS (
       SELECT FROM fencing.tombstone d WHERE d.relid = g.relid
          AND NOT EXISTS (SELECT FROM fencing.tombstone e WHERE e.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid)
              ELSE c.oid END AND e.digest = d.digest AND e.token >= d.token));
  ELSE  -- which of them the other table has can't be seen
    SELECT v_less || coalesce(array_agg(g.relid::oid), '{}') INTO v_less FROM fencing.registry g WHERE g.tombstones;
  END IF;
  RETURN v_less;
END $$;
-- +goose StatementEnd

-- The registered tables, their partitions and their children, as the parts of the doctor take them: an array of objects, one for each
-- table and registered table above it. A child with a wall of its own keeps that, and doesn't belong to its parent's.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_family() RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
  c_less   CONSTANT oid[] := fencing.doctor_less();  -- these have a name that another table has now, which is protected less
  c_levels CONSTANT text[] := ARRAY['off', 'report', 'enforce', 'attested'];
BEGIN
  RETURN (
  WITH RECURSIVE family AS (
    SELECT g.relid::oid AS root, g.relid::oid AS oid FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid
        WHERE c.relkind IN ('r', 'p')
    UNION
    SELECT f.root, i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.oid
      -- no session sees the rows of another one's temporary child; D214 has foreign tables
      JOIN pg_class k ON k.oid = i.inhrelid AND k.relpersistence <> 't' AND k.relkind <> 'f'
     WHERE NOT EXISTS (SELECT 1 FROM fencing.registry x WHERE x.relid = i.inhrelid AND x.wall_level <> 'off')),
  present AS (
    SELECT f.root, f.oid, format('%I.%I', n.nspname, c.relname) AS name, format('%I.%I', rn.nspname, rc.relname) AS root_name,
        g.token_column, g.mode, g.resource,
           g.issued_by, g.wall_level, g.tombstones, c.relispartition,
           -- of the walls of several parents, as fencing.wall_apply has it
           CASE WHEN g.wall_level = 'off' OR f.oid = f.root OR c.relispartition THEN g.wall_level
                ELSE c_levels[max(array_position(c_levels, g.wall_level)) OVER (PARTITION BY f.oid)] END AS level,
           -- by the wall of a parent, as its own would be
           g.wall_level = 'off' AND bool_or(g.wall_level <> 'off') OVER (PARTITION BY f.oid, g.token_column, g.mode,
               g.resource) AS is_covered,
           -- a child of several walled parents, whose walls can't be one
           f.oid <> f.root AND NOT c.relispartition AND g.wall_level <> 'off'
               AND (min(k.wall) OVER walls <> max(k.wall) OVER walls OR min(k.seal) OVER walls IS DISTINCT
               FROM max(k.seal) OVER walls) AS is_torn,
           -- where the triggers are to leave what a subscription's worker writes alone: D701
           bool_or(EXISTS (SELECT 1 FROM pg_subscription_rel l WHERE l.srrelid = f.oid)) OVER (PARTITION BY f.root) AS is_subscribed,
           -- what stands in the way of fencing.wall
           max(CASE WHEN f.oid = f.root THEN fencing.doctor_mend_first(f.root::regclass) END) OVER (PARTITION BY f.root) AS first,
           -- D102, D103 and D105 have it as an error, and registering it changes what else there is to say; of a wall of its own all is
           -- said
           g.wall_level = 'off' AND x.relid IS NOT NULL
               AND (x.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = x.relid AND y.relkind IN ('r', 'p')))
           OR g.wall_level = 'off' AND f.root IN (  -- a partition has the name, and its root takes it over
             SELECT pg_partition_root(z.oid) FROM fencing.registry h JOIN pg_namespace zn ON zn.nspname = h.schema_name
               JOIN pg_class z ON z.relnamespace = zn.oid AND z.relname = h.table_name AND z.relispartition
              WHERE h.relid <> z.oid AND (h.relid::oid = ANY (c_less) OR NOT EXISTS (SELECT FROM pg_class y WHERE y.oid = h.relid)))
           OR rc.relispartition OR f.root IN (
             SELECT pg_partition_root(y.oid) FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid
                 WHERE y.relispartition) AS is_unsettled
      FROM family f JOIN fencing.registry g ON g.relid = f.root
      JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_class rc ON rc.oid = f.root JOIN pg_namespace rn ON rn.oid = rc.relnamespace
      LEFT JOIN fencing.registry x ON x.schema_name = rn.nspname AND x.table_name = rc.relname AND x.relid <> rc.oid,
      LATERAL (SELECT jsonb_build_array(g.token_column, g.mode, g.resource, g.issued_by)::text AS wall,
                      CASE WHEN coalesce(g.seal_resource, g.seal_column) IS NOT NULL
                           THEN jsonb_build_array(g.seal_resource, g.seal_column)::text END AS seal) k
    WINDOW walls AS (PARTITION BY f.oid, g.wall_level <> 'off'))
  SELECT coalesce(jsonb_agg(jsonb_build_object(
           'root', p.root, 'oid', p.oid, 'name', p.name, 'root_name', p.root_name, 'col', p.token_column, 'mode', p.mode, 'resource',
               p.resource,
           'issued', p.issued_by::oid, 'wall', p.level, 'root_wall', p.wall_level, 'tombs', p.tombstones, 'part', p.relispartition,
               'first', p.first, 'covered', p.is_covered, 'torn', p.is_torn, 'unsettled', p.is_unsettled,
           'subscribed', p.is_subscribed)), '[]')
    FROM present p);
END $$;
-- +goose StatementEnd

-- Tables: what the registry says, against the catalog. Registering what has the name now is the remedy: fencing.register takes over
-- what the row asks for. No row is to be deleted before somebody has decided that the table won't come back.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_tables()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_less   CONSTANT oid[] := fencing.doctor_less();  -- these have a name that another table has now, which is protected less
BEGIN
  RETURN QUERY
  SELECT CASE WHEN x.now IS NULL AND x.instead IS NULL THEN 'warning' ELSE 'error' END,
         CASE WHEN x.now IS NULL THEN 'D101 table-gone' ELSE 'D102 table-replaced' END, x.name,
         CASE WHEN x.now IS NULL THEN 'the registered table is gone' || coalesce(', and a ' || x.instead || ' has its name now', '')
              WHEN x.root IS NOT NULL THEN format('the registered table was dropped, and a partition of %s has its name now', x.root)
                  WHEN x.relid IS NULL THEN 'the registered table was dropped and made again'
              ELSE 'the registered table was dropped, and another registered one has its name now' END,
         CASE WHEN x.instead IS NOT NULL THEN 'nothing in the database checks what is written by that name'
              WHEN x.now IS NULL THEN 'the driver goes on protecting the name, and after a restore the row may stand for another table'
              WHEN x.relid IS NULL THEN
                  'nothing keeps a wall on the new one: it has the triggers that came with it, as from a dump of the table alone, or none'
              ELSE 'what protected the old one doesn''t protect the other' END,
         CASE WHEN x.instead IS NOT NULL
             THEN format('name what is to be protected in its place: SELECT fencing.register(..., %L, %L, %L, %L) and SELECT fencing.wall(..., ...), and then DELETE FROM fencing.registry WHERE relid::oid = %s',
                                                     x.mode, x.token_column, x.resource, x.issued_by, x.dead)
              WHEN x.now IS NULL THEN
                  format('make or restore the table, and then %s, or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                         fencing.doctor_register(x.name, x.mode, x.token_column, x.resource, x.issued_by), x.dead)
              WHEN x.is_other THEN format('if it is to be protected as what was dropped, %s, or, if it is right as it is registered, %s',
                         -- mode strict has no use for a seal
                         CASE WHEN x.g_mode = 'strict' AND x.is_sealed THEN format('BEGIN; SELECT fencing.unseal(%L); %s; COMMIT', coalesce(x.root, x.name), a.register) ELSE a.register END,
                         CASE WHEN x.is_apart THEN format('BEGIN; DELETE FROM fencing.registry WHERE relid::oid = %s; %s; COMMIT', x.dead, b.register) ELSE b.register END)
              ELSE fencing.doctor_register(coalesce(x.root, x.name), x.mode, x.token_column, x.resource, x.issued_by) END
    FROM (SELECT CASE WHEN c.relispartition
        THEN (SELECT format('%I.%I', m.nspname, p.relname) FROM pg_class p JOIN pg_namespace m ON m.oid = p.relnamespace
        WHERE p.oid = pg_partition_root(c.oid)) END AS root,
                 (SELECT CASE v.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END FROM pg_class v
                     JOIN pg_namespace m ON m.oid = v.relnamespace
                   WHERE m.nspname = g.schema_name AND v.relname = g.table_name AND v.relkind IN ('v', 'm', 'f')) AS instead,
                 format('%I.%I', g.schema_name, g.table_name) AS name, g.relid::oid AS dead, c.oid AS now, o.relid,
                     coalesce(o.mode, g.mode) AS mode,
                 coalesce(o.token_column, g.token_column) AS token_column, CASE WHEN o.relid IS NULL THEN g.resource
                     ELSE o.resource END AS resource,
                 CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END AS issued_by,
                 g.mode AS g_mode, g.token_column AS g_column, g.resource AS g_resource, g.issued_by AS g_issued,
                 o.relid IS NOT NULL AND fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o)) AS is_other,
                 coalesce(o.seal_resource, o.seal_column) IS NOT NULL AS is_sealed,
                 -- the one can't take on what the other is registered for; compare fencing.register
                 c.relispartition AND (g.mode, g.resource, g.issued_by) IS DISTINCT FROM (o.mode, o.resource, o.issued_by)
                   OR o.mode = 'strict' AND coalesce(g.seal_resource, g.seal_column) IS NOT NULL AS is_apart
            FROM fencing.registry g
            LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND c.relkind IN ('r', 'p')) ON n.nspname = g.schema_name
                AND c.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END
           WHERE NOT EXISTS (SELECT 1 FROM pg_class d WHERE d.oid = g.relid)) x,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.name), x.g_mode, x.g_column, x.g_resource, x.g_issued) AS register) a,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.name), x.mode, x.token_column, x.resource, x.issued_by) AS register) b;

  RETURN QUERY
  SELECT CASE WHEN x.is_less THEN 'error' ELSE 'warning' END, CASE WHEN x.other IS NULL THEN 'D104 table-renamed'
      ELSE 'D105 name-taken' END, x.now,
         CASE WHEN x.other IS NULL THEN format('it was registered as %s and has been renamed since', x.was)
              ELSE format('it was registered as %s, and another table has that name now', x.was) END,
         CASE WHEN x.other IS NULL THEN 'both names are protected, and so is any table that gets the old one'
              WHEN x.o_relid IS NULL THEN
                  'the driver holds the other table for a protected one, and nothing keeps a wall on that: it has the triggers that came with it, or none'
              ELSE 'the other table is registered, too, and what protects this one doesn''t protect that' END,
         CASE WHEN x.other IS NULL THEN fencing.doctor_mend_first(x.relid) || fencing.doctor_register(x.now, x.mode, x.token_column, x.resource, x.issued_by)
              WHEN x.o_relid IS NULL THEN fencing.doctor_register(coalesce(x.root, x.was), x.mode, x.token_column, x.resource, x.issued_by)
              WHEN x.is_other THEN format('if %s is to be protected as this one is, %s, or, if it is right as it is registered, %s', coalesce(x.root, x.was),
                         CASE WHEN x.mode = 'strict' AND x.is_sealed THEN format('BEGIN; SELECT fencing.unseal(%L); %s; COMMIT', coalesce(x.root, x.was), a.register) ELSE a.register END,
                         CASE WHEN x.o_mode = 'strict' AND x.seal IS NOT NULL THEN format('BEGIN; SELECT fencing.unseal(%L); %s; %s; COMMIT', x.now, b.register, x.seal) ELSE b.register END)
              ELSE fencing.doctor_register(coalesce(x.root, x.was), x.o_mode, x.o_column, x.o_resource, x.o_issued) END
    FROM (SELECT g.*, format('%I.%I', n.nspname, c.relname) AS now, format('%I.%I', g.schema_name, g.table_name) AS was, t.oid AS other,
                 CASE WHEN t.relispartition THEN (SELECT format('%I.%I', pn.nspname, p.relname) FROM pg_class p
                     JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE p.oid = pg_partition_root(t.oid)) END AS root,
                 o.relid AS o_relid, o.mode AS o_mode, o.token_column AS o_column, o.resource AS o_resource, o.issued_by AS o_issued,
                 coalesce(o.seal_resource, o.seal_column) IS NOT NULL AS is_sealed,
                 CASE WHEN coalesce(g.seal_resource, g.seal_column) IS NOT NULL THEN format('SELECT fencing.seal(%L, %L, %L)', format('%I.%I', n.nspname, c.relname), g.seal_resource, g.seal_column) END AS seal,
                 g.relid::oid = ANY (c_less) AS is_less, o.relid IS NOT NULL AND (fencing.doctor_registered_less(to_jsonb(g), to_jsonb(o))
                   -- the two have exchanged their names
                   OR (n.nspname, c.relname) = (o.schema_name, o.table_name) AND fencing.doctor_registered_less(to_jsonb(o), to_jsonb(g))) AS is_other
            FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid AND c.relkind IN ('r', 'p')
                JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN (pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace AND t.relkind IN ('r', 'p')) ON m.nspname = g.schema_name
                AND t.relname = g.table_name
            LEFT JOIN fencing.registry o ON o.relid = CASE WHEN t.relispartition THEN pg_partition_root(t.oid) ELSE t.oid END
           WHERE (n.nspname, c.relname) <> (g.schema_name, g.table_name)
             -- what has the name of another row is that row's matter: to register it here would settle that without a word
             AND (t.oid IS NOT NULL OR NOT EXISTS (SELECT FROM fencing.registry y WHERE y.relid <> g.relid AND (y.schema_name, y.table_name) = (n.nspname, c.relname)))) x,
    LATERAL (SELECT fencing.doctor_register(coalesce(x.root, x.was), x.mode, x.token_column, x.resource, x.issued_by) AS register) a,
    LATERAL (SELECT fencing.doctor_register(x.now, x.mode, x.token_column, x.resource, x.issued_by) AS register) b;

  RETURN QUERY
  WITH member AS MATERIALIZED (
    SELECT h.*, CASE WHEN y.relispartition THEN pg_partition_root(y.oid)::oid ELSE y.oid END AS whole
      FROM fencing.registry h JOIN pg_class y ON y.oid = h.relid),
  whole AS MATERIALIZED (  -- compare fencing.register
    SELECT m.whole AS oid, nullif(concat_ws(' and ', CASE WHEN count(DISTINCT m.token_column) > 1 THEN 'token_column' END,
             CASE WHEN count(DISTINCT m.mode) > 1 THEN 'mode' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.resource)) > 1 THEN 'resource' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.issued_by)) > 1 THEN 'issued_by' END,
             CASE WHEN count(DISTINCT jsonb_build_array(m.seal_resource, m.seal_column))
               FILTER (WHERE coalesce(m.seal_resource, m.seal_column) IS NOT NULL) > 1 THEN 'seal' END), '') AS what
      FROM member m GROUP BY m.whole)
  SELECT 'error', 'D103 not-a-table', format('%I.%I', n.nspname, c.relname),
         CASE WHEN c.relispartition THEN 'a partition is registered by itself' ELSE 'what is registered is not a table' END,
         CASE WHEN c.relispartition THEN 'a write through the partitioned table is not seen as one to it'
              ELSE 'nothing can protect it; a restore may have given the oid of a dropped table to something else' END,
         CASE WHEN z.what IS NOT NULL THEN
             format('what partitions of %1$s are registered for differs in %2$s: BEGIN; SELECT fencing.unregister(...) for those that are to take on what the others have; SELECT fencing.register(%1$L, ...); COMMIT',
                pg_partition_root(c.oid)::text, z.what)
              WHEN c.relispartition THEN fencing.doctor_register(pg_partition_root(c.oid)::regclass::text, coalesce(o.mode, g.mode),
                coalesce(o.token_column, g.token_column), CASE WHEN o.relid IS NULL THEN g.resource ELSE o.resource END,
                CASE WHEN o.relid IS NULL THEN g.issued_by ELSE o.issued_by END)
              WHEN EXISTS (SELECT 1 FROM pg_class t JOIN pg_namespace m ON m.oid = t.relnamespace WHERE m.nspname = g.schema_name
                  AND t.relname = g.table_name AND t.relkind IN ('r', 'p'))
              THEN fencing.doctor_register(format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column, g.resource, g.issued_by)
              ELSE format('make or restore table %I.%I, and then %s, or, if it was dropped for good, DELETE FROM fencing.registry WHERE relid::oid = %s',
                          g.schema_name, g.table_name, fencing.doctor_register(format('%I.%I', g.schema_name, g.table_name), g.mode, g.token_column,
                              g.resource, g.issued_by), c.oid) END
    FROM fencing.registry g JOIN pg_class c ON c.oid = g.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN fencing.registry o ON c.relispartition AND o.relid = pg_partition_root(c.oid)
    LEFT JOIN whole z ON c.relispartition AND z.oid = pg_partition_root(c.oid)
   WHERE c.relkind NOT IN ('r', 'p') OR c.relispartition;
END $$;
-- +goose StatementEnd

-- The token columns, unlogged tables, and the generation.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_columns(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'error', x.code, x.name, format('the token column %I %s', x.col, x.what), x.so,
         CASE WHEN x.code LIKE 'D106%' THEN
             coalesce((SELECT m.remedy FROM fencing.doctor_moved(x.root::regclass) m WHERE m.code = 'D106' AND m.now IS NOT NULL),
               format('ALTER TABLE %1$s RENAME COLUMN ... TO %2$I; if it was dropped, which forgets the tokens: ALTER TABLE %1$s ADD COLUMN %2$I bigint NOT NULL DEFAULT ..., with the newest token that was given out%3$s, and then ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0',
               x.root_name, x.col, (SELECT format(' (SELECT last_value FROM %I.%I)', n.nspname, q.relname) FROM pg_class q
                   JOIN pg_namespace n ON n.oid = q.relnamespace WHERE q.oid = x.issued)))
              WHEN x.code LIKE 'D107%' THEN CASE x.root_wall WHEN 'off' THEN '' ELSE x.first END || y.fix
              WHEN x.code LIKE 'D108%' THEN
                format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %2$I TYPE bigint USING %2$I::bigint, ALTER COLUMN %2$I SET DEFAULT 0',
                  CASE WHEN x.is_inherited THEN x.root_name ELSE x.name END, x.col)
              ELSE format('ALTER TABLE %s ALTER COLUMN %I %s', x.name, x.col, x.fix) END
    FROM (SELECT f.*, a.attinhcount > 0 AS is_inherited, CASE WHEN a.attname IS NULL THEN 'D106 column-missing' WHEN a.atttypid <> 'int8'::regtype THEN 'D108 column-type'
                           WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'D109 column-generated'
                           WHEN v.nullable THEN 'D107 column-nullable' ELSE 'D110 column-default' END AS code,
                 CASE WHEN a.attname IS NULL THEN 'is missing' WHEN a.atttypid <> 'int8'::regtype
                     THEN format('is %s, not bigint', format_type(a.atttypid,
                     a.atttypmod))
                      WHEN a.attidentity <> '' THEN 'is an identity column' WHEN a.attgenerated <> '' THEN 'is a generated column'
                      WHEN v.nullable THEN 'may be null'
                          ELSE format('has the default %s', pg_get_expr(d.adbin, d.adrelid)) END AS what,
                 CASE WHEN a.attname IS NULL THEN 'every guarded write fails' WHEN a.atttypid <> 'int8'::regtype
                     THEN 'tokens are not compared exactly'
                      WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'the table sets the token, not the write'
                      WHEN v.nullable THEN 'a null is neither older nor newer than a token'
                          ELSE 'a row that was written without a token has one' END AS so,
                 CASE WHEN a.atttypid <> 'int8'::regtype THEN 'TYPE bigint' WHEN a.attidentity <> '' THEN 'DROP IDENTITY'
                     WHEN a.attgenerated <> '' THEN 'DROP EXPRESSION'
                      WHEN v.nullable THEN 'SET NOT NULL' ELSE 'SET DEFAULT 0' END AS fix
            FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, root_name text, root_wall text, col name, issued oid,
                first text, unsettled boolean)
            LEFT JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            CROSS JOIN LATERAL (SELECT fencing.doctor_nullable(f.oid, a.attnum)) v(nullable)
           WHERE a.attname IS NULL OR a.atttypid <> 'int8'::regtype OR a.attidentity <> '' OR a.attgenerated <> '' OR v.nullable
               AND NOT f.unsettled
              OR pg_get_expr(d.adbin, d.adrelid) NOT IN ('0', '''0''::bigint', '(0)::bigint')) x,
    -- the wall refuses the UPDATE, and to be put up while any of the tables may have nulls
    LATERAL (SELECT CASE x.root_wall WHEN 'off' THEN u.sql ELSE fencing.doctor_without_wall(x.root_name, u.sql) END
               FROM (SELECT string_agg(format('UPDATE ONLY %s SET %I = 0 WHERE %2$I IS NULL', f.name, f.col), '; ')
                           || '; ' || string_agg(format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', f.name, f.col), '; ') AS sql
               FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name)
               JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.attnum > 0 AND NOT a.attisdropped AND fencing.doctor_nullable(f.oid, a.attnum)
              WHERE x.code LIKE 'D107%' AND f.root = x.root) u) y(fix);

  RETURN QUERY
  SELECT 'warning', 'D111 unlogged', f.name, 'the table is unlogged', 'a crash empties it, and with the rows their tokens are gone',
         format('ALTER TABLE %s SET LOGGED', f.name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text) JOIN pg_class c ON c.oid = f.oid WHERE c.relpersistence = 'u';

  RETURN QUERY
  SELECT 'error', 'D214 foreign-child', i.inhrelid::regclass::text, format('it is a foreign table, and a %s of %s', CASE WHEN c.relispartition THEN 'partition'
           ELSE 'child' END, f.name),
         'its rows are on another server, where nothing of this one compares their tokens',
         format('ALTER TABLE %s, or protect it where its rows are, and take it out of this table ...', CASE WHEN c.relispartition
             THEN format('%s DETACH PARTITION %s', i.inhparent::regclass, i.inhrelid::regclass) ELSE format('%s NO INHERIT %s', i.inhrelid::regclass, i.inhparent::regclass) END)
    FROM (SELECT DISTINCT f.oid, f.name FROM jsonb_to_recordset(family) AS f(oid oid, name text)) f JOIN pg_inherits i ON i.inhparent = f.oid
    JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind = 'f';

  RETURN QUERY
  SELECT CASE WHEN f.wall IN ('off', 'report') AND NOT f.covered THEN 'warning' ELSE 'info' END, 'D215 driver-level', f.name,
         CASE g.driver_level WHEN 'off' THEN 'the driver doesn''t look at the table' ELSE 'the driver only reports unguarded statements' END,
         CASE WHEN f.wall IN ('off', 'report') AND NOT f.covered THEN 'nothing refuses a stale write' ELSE 'the wall alone refuses stale writes' END,
         format('SELECT fencing.driver_level(%L, ''enforce'')', f.name)
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, wall text, covered boolean) JOIN fencing.registry g ON g.relid = f.root
   WHERE f.root = f.oid AND g.driver_level <> 'enforce';

  IF has_table_privilege('fencing.generation', 'SELECT') THEN
    RETURN QUERY
    SELECT 'error', 'D112 generation-missing', 'fencing.generation', 'its row is missing',
        'the driver finds nothing registered, and nothing can be registered',
           -- above whatever drivers have seen
           format('INSERT INTO fencing.generation (value) VALUES (%s)', extract(epoch FROM now())::bigint)
     WHERE NOT EXISTS (SELECT 1 FROM fencing.generation);
  END IF;
END $$;
-- +goose StatementEnd

-- Functions that were allowed, against the catalog. To forget that one was is all that a remedy may say: whether the present definition is to
-- be let through is for somebody to decide who has read it.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_functions()
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
BEGIN
  IF has_table_privilege('fencing.allowed_function', 'SELECT') AND has_function_privilege('fencing.allowed_functions()', 'EXECUTE') THEN
    RETURN QUERY
    SELECT 'warning', 'D114 allowed-function', format('function %s', x.name),
           CASE WHEN x.oid IS NULL THEN 'it was allowed, and is gone: dropped, renamed or moved to another schema'
                ELSE 'its definition is not the one that was allowed'
                     || CASE WHEN (SELECT p.prosqlbody IS NOT NULL FROM pg_proc p WHERE p.oid = x.oid) THEN ', or a restore has written its parsed body anew' ELSE '' END END,
           CASE WHEN x.oid IS NULL THEN 'one that is made again as it was is allowed at once; what it is called now is not'
                ELSE 'the driver takes it for one that is not allowed, until somebody has read it and called fencing.allow_function again' END,
           CASE WHEN x.oid IS NULL
             THEN format('DELETE FROM fencing.allowed_function WHERE (schema_name, function_name, arguments) = (%L, %L, %L)', x.schema_name, x.function_name, x.arguments)
                ELSE format('SELECT fencing.disallow_function(%L)', x.name) END
      FROM (SELECT a.*, format('%I.%I(%s)', a.schema_name, a.function_name, a.arguments) AS name, p.oid
              FROM fencing.allowed_function a
              LEFT JOIN (pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace)
                ON n.nspname = a.schema_name AND p.proname = a.function_name AND oidvectortypes(p.proargtypes) = a.arguments
             WHERE p.oid IS NULL OR p.oid NOT IN (SELECT f FROM fencing.allowed_functions() f)) x
     ORDER BY x.name;
  END IF;
END $$;
-- +goose StatementEnd

-- ---- src/82_doctor_wall.sql

-- The wall: the triggers that the level asks for, and no others.
-- +goose StatementBegin
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
           CASE WHEN k.tomb THEN 'tomb_' || left(md5(convert_to(jsonb_build_array(f.col, f.mode, f.resource, q.seq, y.cols, y.types)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_' || k.suffix
                ELSE 'wall_' || left(md5(convert_to(jsonb_build_array(f.col, f.mode, f.resource, q.seq)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_' || k.suffix
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
-- +goose StatementEnd

-- Tombstones, but for their triggers, which doctor_wall has.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Rows whose key was deleted under a newer token than they have: put back by a restore, or with a partition that was attached. It reads
-- the whole tables. The settings are those under which keys are written as text, see fencing.tombstone_functions.
-- +goose StatementBegin
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
    v_from := format($q$FROM %s x JOIN fencing.tombstone d ON d.relid = %L::regclass AND d.digest = sha256(convert_to(%s::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)) AND d.token > x.%I$q$,
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
-- +goose StatementEnd

-- What guards the schema itself: the triggers of its tables, and tables that inherit from them.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- ---- src/83_doctor_sequences.sql

-- The sequences that bound tokens.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_bounds() RETURNS oid[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT array_agg(DISTINCT s.oid)
      FROM (SELECT to_regclass('fencing.write_epoch')::oid AS oid WHERE to_regclass('fencing.write_epoch') IS NOT NULL
            UNION SELECT g.issued_by::oid FROM fencing.registry g WHERE g.issued_by IS NOT NULL) s);
END $$;
-- +goose StatementEnd

-- Whom the owner gave what a role has from another one: to take it from that role takes it from all who have it from there.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_given(acl aclitem[], grantee oid, grantor oid, owner oid) RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  FOR v_step IN 1..cardinality(acl) LOOP
    EXIT WHEN grantor = owner OR grantor IS NULL;
    grantee := grantor;
    grantor := (SELECT a.grantor FROM aclexplode(acl) a WHERE a.grantee = doctor_given.grantee AND a.is_grantable ORDER BY a.grantor <> owner, a.grantor LIMIT 1);
  END LOOP;
  RETURN grantee;
END $$;
-- +goose StatementEnd

-- Sequences, each that bounds tokens, and what tokens are drawn from.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_sequences(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := fencing.doctor_owner();
  c_epoch  CONSTANT oid := to_regclass('fencing.write_epoch');
  c_seqs   CONSTANT oid[] := fencing.doctor_bounds();
  c_instead CONSTANT text := 'the start of the server stands in for what it tells: tokens jump far ahead at each start, too';
  c_nothing CONSTANT text := 'a promotion or a restore may go unnoticed, and tokens be given out again';
  v_now    record;
BEGIN
  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', 'sequence fencing.write_epoch', 'it is gone',
      'no token can be drawn, and writes to tables with a wall fail',
         -- the first draw from another sequence jumps above all that was given out
         format('BEGIN; CREATE SEQUENCE fencing.write_epoch AS bigint MINVALUE 1 NO CYCLE CACHE 1; ALTER SEQUENCE fencing.write_epoch OWNER TO %I; '
                'ALTER TABLE fencing.registry ALTER COLUMN issued_by SET DEFAULT ''fencing.write_epoch''; SELECT fencing.next_token(); COMMIT',
                    pg_get_userbyid(c_owner))
         -- who reads the registry read the sequence, too
         || coalesce((SELECT format('; GRANT SELECT ON SEQUENCE fencing.write_epoch TO %s',
             string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, ', '))
                        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass('fencing.registry')
                            AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner HAVING count(*) > 0), '')
   WHERE c_epoch IS NULL;

  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', format('%I.%I', n.nspname, t.relname),
         format('the sequence that bounds its tokens, %s, is gone', g.issued_by::oid),
         CASE g.wall_level WHEN 'off' THEN 'the wall can''t be put on' ELSE 'every write is refused' END,
         CASE WHEN c_epoch IS NULL THEN 'run what mends sequence fencing.write_epoch, and then ' ELSE '' END
         || CASE g.wall_level WHEN 'off' THEN '' ELSE fencing.doctor_mend_first(g.relid) END
         || fencing.doctor_register(format('%I.%I', n.nspname, t.relname), g.mode, g.token_column, g.resource, g.issued_by)
    -- D101, D102 and D103 have what is no table any more
    FROM fencing.registry g JOIN pg_class t ON t.oid = g.relid AND t.relkind IN ('r', 'p') AND NOT t.relispartition
    JOIN pg_namespace n ON n.oid = t.relnamespace WHERE g.issued_by IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = g.issued_by AND c.relkind = 'S');

  RETURN QUERY
  SELECT x.severity, x.code, format('sequence %I.%I', n.nspname, c.relname), x.problem, x.consequence,
      replace(x.remedy, '%s', format('%I.%I', n.nspname, c.relname))
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT 'error', 'D302 sequence-cache', format('it has CACHE %s', s.seqcache),
          'sessions keep tokens back and use them later, when larger ones have been given out',
             'ALTER SEQUENCE %s CACHE 1' WHERE s.seqcache > 1
      UNION ALL SELECT 'error', 'D303 sequence-cycle', 'it starts again at its end', 'tokens are given out a second time',
          'ALTER SEQUENCE %s NO CYCLE'
          WHERE s.seqcycle
      UNION ALL SELECT 'warning', 'D304 sequence-owned', format('it belongs to a column of %s', d.refobjid::regclass),
          'it is dropped with that column',
             CASE d.deptype WHEN 'a' THEN 'ALTER SEQUENCE %s OWNED BY NONE'
               ELSE 'take another sequence, since an identity column keeps its own: CREATE SEQUENCE ... with a START above the last value of %s, and register the tables with that' END
        FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass
            AND d.refobjsubid > 0
            AND d.deptype IN ('a', 'i')
      UNION ALL SELECT 'error', 'D306 sequence-direction', format('it counts by %s from %s on', s.seqincrement, s.seqmin),
          'tokens must be positive and rise',
             -- one that counted down has given out what it started from: the next one is above that
             CASE WHEN s.seqincrement < 1 THEN format('ALTER SEQUENCE %%s INCREMENT BY 1 MINVALUE 1 NO MAXVALUE START 1 RESTART %s', greatest(1, s.seqstart + 1, v.last + 1))
               ELSE 'ALTER SEQUENCE %s MINVALUE 1' || CASE WHEN s.seqstart < 1 THEN ' START 1' ELSE '' END || CASE WHEN v.last < 1 THEN ' RESTART 1' ELSE '' END END
        FROM (SELECT CASE WHEN has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN coalesce(pg_sequence_last_value(c.oid), s.seqstart - 1) END) v(last)
       WHERE s.seqincrement < 1 OR s.seqmin < 1
      UNION ALL SELECT 'warning', 'D308 sequence-small', format('it ends at %s', s.seqmax),
          'no token can be drawn after that, and nothing written',
             'ALTER SEQUENCE %s AS bigint NO MAXVALUE' WHERE s.seqmax < 9223372036854775807 AND s.seqincrement > 0  -- D306 has the others
      UNION ALL SELECT 'error', 'D309 sequence-unlogged', 'it is unlogged',
          'a crash starts it again, and tokens are given out a second time',
          'ALTER SEQUENCE %s SET LOGGED'
       WHERE c.relpersistence = 'u'
      UNION ALL SELECT 'warning', 'D314 sequence-near-end', format('it is at %s', pg_sequence_last_value(c.oid)),
             'there is no room for the jump of tokens after a restore, a promotion or a copy of the database: none can be drawn then',
             'stop all writers; SELECT pg_catalog.setval(''%s'', ...), to a value above every token that was given out; fencing.repair for rows with a larger one'
       WHERE CASE WHEN c.oid = c_epoch AND has_sequence_privilege(c.oid, 'SELECT, USAGE')
           THEN pg_sequence_last_value(c.oid) >= 9223372032559808512 END
      UNION ALL SELECT 'error', 'D310 sequence-unreadable',
          format('role %I, which owns the wall''s functions, can''t read it', pg_get_userbyid(c_owner)),
             'every write to a table with a wall is refused', format('GRANT SELECT ON SEQUENCE %%s TO %I', pg_get_userbyid(c_owner))
       WHERE NOT has_sequence_privilege(c_owner, c.oid, 'SELECT')
    ) x(severity, code, problem, consequence, remedy)
   WHERE s.seqrelid = ANY (c_seqs);

  -- a lock service draws from a sequence of its own with nextval
  RETURN QUERY
  SELECT CASE WHEN bool_or(a.privilege_type = 'UPDATE') OR c.oid = c_epoch THEN 'error' ELSE 'warning' END, 'D305 sequence-rights',
      format('sequence %I.%I',
      n.nspname, c.relname),
         format('role %s has %s on it', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
             string_agg(DISTINCT a.privilege_type, ' and ')),
         CASE WHEN bool_or(a.privilege_type = 'UPDATE') THEN 'setval issues any token, or gives old ones out again'
             ELSE 'nextval issues tokens that a crash gives out again' END,
         fencing.doctor_revoke('USAGE, UPDATE', format('SEQUENCE %I.%I', n.nspname, c.relname), fencing.doctor_given(c.relacl, a.grantee, a.grantor, c.relowner),
             c.relowner, c.relowner)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
   WHERE c.oid = ANY (c_seqs) AND a.grantee <> c.relowner AND a.privilege_type IN ('USAGE', 'UPDATE')
   GROUP BY c.oid, n.nspname, c.relname, c.relowner, c.relacl, a.grantee, a.grantor;

  -- servers run by others may keep them back
  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', 'function fencing.next_token()',
      format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner),
      f.oid::regprocedure),
         'no token can be drawn', format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['fencing.incarnation_now()',  -- and PostgreSQL 17's has a fourth argument
           'pg_logical_emit_message(boolean, text, text)', 'pg_logical_emit_message(boolean, text, text, boolean)']) u(name),
         LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.next_token()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', format('function %s', p.oid::regprocedure),
      format('role %I, which owns it, may not use schema fencing', pg_get_userbyid(p.proowner)),
         'it fails whoever calls it', format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, pg_get_userbyid(c_owner))
    FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proname IN ('next_token', 'incarnation_now', 'take', 'renew', 'release')
     AND p.proowner <> c_owner AND NOT has_schema_privilege(p.proowner, c_schema, 'USAGE');

  -- what incarnation_now() may not run, then what it may run and doesn't work here
  RETURN QUERY
  SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()',
      format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner), f.oid::regprocedure),
         CASE WHEN has_function_privilege(p.proowner, to_regprocedure('pg_postmaster_start_time()')::oid, 'EXECUTE') THEN c_instead
             ELSE c_nothing END,
         format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']) u(name),
        LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  -- it runs as its owner: without rights there, or without the sequence, which are other findings, it fails
  IF c_epoch IS NOT NULL AND NOT pg_is_in_recovery()
     AND EXISTS (SELECT FROM pg_proc p WHERE p.oid = to_regprocedure('fencing.incarnation_now()')
         AND has_function_privilege(p.oid, 'EXECUTE')
                    AND has_schema_privilege(p.proowner, c_schema, 'USAGE')) THEN
    v_now := fencing.incarnation_now();
    RETURN QUERY
    SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()', format('%s gives an error on this server', u.name),
           CASE WHEN 'pg_postmaster_start_time()' = ANY (v_now.unread) THEN c_nothing
               ELSE c_instead END, format('look at the error of SELECT %s', u.name)
      FROM pg_proc p, unnest(v_now.unread) u(name)
     WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND u.name <> 'pg_postmaster_start_time()'
       AND NOT EXISTS (SELECT 1 FROM regexp_matches(u.name, 'pg_[a-z_]+', 'g') m(names), pg_proc f
                        WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.proname = m.names[1]
                            AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE'));
    IF has_table_privilege('fencing.incarnation', 'SELECT') THEN
      RETURN QUERY
      SELECT 'info', 'D312 incarnation-other', 'sequence fencing.write_epoch',
          'since tokens were last drawn the server, the database or the sequence has become another, as by a restore',
             'the next token is far above all before', 'SELECT fencing.next_token()'
       WHERE (SELECT count(*) = 1 AND bool_and(i.tli = v_now.tli AND i.sysid = v_now.sysid AND i.dbid = v_now.dbid AND i.seqid = v_now.seqid
           AND CASE WHEN has_sequence_privilege(c_epoch, 'SELECT, USAGE') THEN coalesce(pg_sequence_last_value(c_epoch), 0) >= i.floor ELSE true END)
                FROM fencing.incarnation i) IS NOT TRUE;
    END IF;
  END IF;
END $$;
-- +goose StatementEnd

-- The tokens in the tables, compared with their sequences: where an index gives them at once, and, if scan says so, elsewhere, too.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_tokens(family jsonb, scan boolean)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  v_last   bigint;
  v_max    bigint;
  v_min    bigint;
  c_epoch  CONSTANT regclass := to_regclass('fencing.write_epoch');
  r        record;
BEGIN
  -- what fencing itself knows to have been given out
  IF c_epoch IS NOT NULL AND has_sequence_privilege(c_epoch, 'SELECT, USAGE') THEN
    FOR r IN SELECT u.name, u.sql FROM (VALUES
        ('fencing.lease', 'SELECT max(x.token) FROM fencing.lease x'),
        ('fencing.epoch', 'SELECT max(x.token) FROM fencing.epoch x'),
        ('fencing.tombstone', 'SELECT max(x.token) FROM fencing.tombstone x JOIN fencing.registry g ON g.relid = x.relid AND g.issued_by = ''fencing.write_epoch''::regclass')) u(name, sql)
      WHERE has_table_privilege(u.name, 'SELECT')
    LOOP
      EXECUTE r.sql INTO v_max;
      v_last := coalesce(pg_sequence_last_value(c_epoch), 0);
      IF v_max > v_last THEN
        RETURN QUERY SELECT 'error', 'D307 sequence-behind', 'sequence fencing.write_epoch', format('it is at %s, and %s has token %s', v_last, r.name, v_max),
          'tokens are given out a second time: the sequence was put back, or the token forged',
          CASE WHEN v_max < 9223372032559808512
            THEN format('SELECT pg_catalog.setval(s, %s) FROM pg_catalog.to_regclass(''fencing.write_epoch'') s WHERE coalesce(pg_catalog.pg_sequence_last_value(s), 0) < %1$s', v_max)
            ELSE format('look at where it comes from, since none so large is ever drawn, and correct its row: UPDATE %s SET token = ... WHERE token = %s', r.name, v_max) END;
      END IF;
    END LOOP;
  END IF;
  FOR r IN
    SELECT f.*, CASE WHEN c.oid IS NOT NULL THEN format('%I.%I', n.nspname, c.relname) END AS seq
      FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name, wall text, issued oid, first text, unsettled boolean)
      JOIN fencing.registry g ON g.relid = f.root  -- whoever calls it, no other relation is read
      LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = f.issued AND c.relkind = 'S'
      JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.atttypid = 'int8'::regtype AND NOT a.attisdropped
     WHERE f.root = f.oid AND has_column_privilege(f.oid, a.attnum, 'SELECT') AND has_schema_privilege((SELECT relnamespace FROM pg_class t
         WHERE t.oid = f.oid), 'USAGE')
       AND (f.issued IS NULL OR c.oid IS NOT NULL AND has_sequence_privilege(c.oid, 'SELECT, USAGE'))
       AND (scan OR EXISTS (SELECT 1 FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am m ON m.oid = ic.relam
                             WHERE i.indrelid = f.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
                                 AND m.amname = 'btree')
                AND NOT EXISTS (SELECT 1 FROM pg_inherits h JOIN pg_class hc ON hc.oid = h.inhrelid WHERE h.inhparent = f.oid
                    AND NOT hc.relispartition))
  LOOP
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I DESC NULLS LAST LIMIT 1', r.col, r.oid::regclass) INTO v_max;
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I NULLS LAST LIMIT 1', r.col, r.oid::regclass) INTO v_min;
    IF v_min < 0 AND NOT r.unsettled THEN
      RETURN QUERY SELECT 'warning', 'D113 token-negative', r.name, format('a row has token %s, which none ever is', v_min),
        'it was written before the table was registered, or past the wall; the row is held for one in the middle of a write',
        CASE r.wall WHEN 'off' THEN x.fix ELSE r.first || fencing.doctor_without_wall(r.name, x.fix) END
        FROM (SELECT format('UPDATE %s SET %I = 0 WHERE %2$I < 0', r.name, r.col)) x(fix);
    END IF;
    CONTINUE WHEN r.seq IS NULL;
    v_last := coalesce(pg_sequence_last_value(r.issued), 0);  -- after the rows: it only rises
    IF v_max > v_last THEN
      RETURN QUERY SELECT 'error', 'D307 sequence-behind', r.name,
          format('a row has token %s, and sequence %s is at %s', v_max, r.seq, v_last),
        'nobody can write that row: it was written past the wall, or the sequence was put back',
        format('SELECT fencing.repair(%L, ''{"key column": ...}'', 0, ''why'') if the token was forged, else SELECT pg_catalog.setval(%L, %s)',
            r.name, r.seq,
            v_max);
    END IF;
  END LOOP;
END $$;
-- +goose StatementEnd

-- ---- src/84_doctor_roles.sql

-- The statement that takes rights which a role has been given by another one. What that role was given with the option to grant it to others is
-- that role's to take, and goes from whom these have given it to in turn.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_revoke(privileges text, object text, grantee oid, grantor oid, owner oid) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
  c_revoke CONSTANT text := format('REVOKE %s ON %s FROM %s CASCADE', privileges, object, CASE grantee WHEN 0 THEN 'PUBLIC'
      ELSE quote_ident(pg_get_userbyid(grantee)) END);
BEGIN
  RETURN CASE WHEN grantor = owner THEN c_revoke ELSE format('SET ROLE %I; %s; RESET ROLE', pg_get_userbyid(grantor), c_revoke) END;
END $$;
-- +goose StatementEnd

-- What the tables and sequences are in, and its owners: whoever owns a schema can drop what is in it. pg_database_owner stands for the
-- owner of the database.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- The roles that are judged: those named by the caller, or that can log in, or be taken by one that can, and write a protected table.
-- One that owns what is protected may be there to deploy, which is only for the caller to rule out.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- What the judged roles own and may do.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Settings of the database, of the judged roles, and of all roles.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- ---- src/85_doctor_triggers.sql

-- Triggers and rules of others on protected tables, and foreign keys.
--
-- What a trigger's function does is told by its words. It counts as one that sets the token unless its words show that it doesn't: where
-- the wall doesn't compare the token afterwards, a way that is not known here would have a stale write pass.

-- The words of a body in PL/pgSQL as the server tells them apart, in lower case and with a space between two: '' for a constant, # for the
-- token column. Null where that is not certain: with a dollar quote, a comment within a comment, a Unicode escape in a name, or a
-- backslash that, by standard_conforming_strings, may or may not continue a constant.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_words(source text, token_column name) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  c_word CONSTANT text := '"(?:[^"]|"")*"|[^\x01-\x40\x5b-\x5e\x60\x7b-\x7f][^\x01-\x23\x25-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]*';
  -- of several that match the longest counts, as in the server
  c_lexeme CONSTANT text := '(--[^\n\r]*|/[*](?:[^*]|[*]+[^*/])*[*]+/|[eE]''(?:[^''\\]|\\.|'''')*''|''[^'']*''|[uU]&"|[$](?:' || c_word || ')?[$]|'
      || c_word || '|:=|::|=>|<<|>>|[^[:space:]])';
BEGIN
  -- the words that fencing.doctor_sets looks for
  IF lower(token_column) = ANY ('{new,old,into,strict,for,foreach,diagnostics,call,return,alias,declare,begin,then,else,loop}') THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT CASE WHEN coalesce(bool_or(x.word IN ('''', '"') OR x.word ~ '^(?:[uU]&"|[$].*[$]$|/[*].*/[*])' OR x.word ~ '^''.*\\''$'), false)
                THEN NULL
                ELSE coalesce(string_agg(CASE
                  WHEN x.word ~ '^[eE]?''' THEN ''''''
                  WHEN y.name IN ('new', 'old') THEN y.name
                  WHEN y.name = lower(token_column) THEN '#'
                  WHEN starts_with(x.word, '"') THEN 'x'
                  ELSE y.name END, ' ' ORDER BY x.i) FILTER (WHERE x.word !~ '^(?:--|/[*])'), '') END
      FROM (SELECT m[1] AS word, i FROM regexp_matches(source, c_lexeme, 'g') WITH ORDINALITY m(m, i)) x,
      LATERAL (SELECT lower(CASE WHEN starts_with(x.word, '"') THEN replace(substr(x.word, 2, greatest(length(x.word) - 2, 0)), '""', '"')
          ELSE x.word END) AS name) y);
END $$;
-- +goose StatementEnd

-- What the function of a trigger may set of a row: 'column', the token column; 'row', the row as a whole or what is not known; or null,
-- certainly neither. In another language than PL/pgSQL that is not known, but for functions of the server and its extensions.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_sets(source text, language name, token_column name, arguments text) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
  c_path   CONSTANT text := '[^ ,;()]+(?: [.] [^ ,;()]+)*(?: \[ [^]]* \])*';
  c_target CONSTANT text := format(' (?:into(?: strict)?|for|foreach) (?:%s , )*(?:[^ ,;()]+ [.] )*', c_path);
  c_start  CONSTANT text := ' (?:;|begin|then|else|loop|>>) (?:[^ ,;()]+ [.] )*';  -- of a statement: elsewhere = compares
  v_words  text;
  v_copy   text;
BEGIN
  IF language IN ('internal', 'c') THEN
    RETURN CASE WHEN position(lower(token_column) IN lower(arguments)) > 0 THEN 'column' END;
  ELSIF language <> 'plpgsql' THEN
    RETURN 'row';
  END IF;
  v_words := fencing.doctor_words(source, token_column);
  IF v_words IS NULL THEN
    RETURN 'row';
  END IF;
  v_words := ' ; ' || v_words || ' ';
  -- a record that is returned, and whose name is nothing else's, counts as NEW, from which it is copied
  FOR v_copy IN
    SELECT min(m.r[1]) FROM regexp_matches(v_words, ' (?:;|declare) ([a-z_][a-z0-9_]*)(?= record ;)', 'g') m(r) GROUP BY m.r[1] HAVING count(*) = 1
  LOOP
    CONTINUE WHEN v_copy IN ('x', 'new', 'old', 'tg_op') OR position(' . ' || v_copy || ' ' IN v_words) > 0 OR position(' return ' || v_copy || ' ;' IN v_words) = 0;
    v_words := replace(v_words, ' ' || v_copy || ' record ;', '');
    v_words := regexp_replace(v_words, '( (?:;|begin|then|else|loop)) ' || v_copy || ' :?= new ;', '\1', 'g');
    v_words := replace(v_words, ' ' || v_copy || ' ', ' new ');
  END LOOP;
  IF v_words ~ (' new [.] # := |' || c_start || 'new [.] # = |' || c_target || 'new [.] # | (?:diagnostics|call) [^;]*new [.] # ') THEN
    RETURN 'column';
  END IF;
  -- a name of its own for the row, a variable that is called new, an assignment
  IF v_words ~ (' alias | (?:;|declare|begin) new [^ .:=;]+ | new := |' || c_start || 'new = |' || c_target || 'new (?![.] )| call [^;]*new (?![.] )') THEN
    RETURN 'row';
  END IF;
  IF EXISTS (SELECT FROM regexp_matches(v_words, ' return ([^;]*) ;', 'g') m(r)
              WHERE m.r[1] !~ '^(?:(?:new|old|null|case|when|then|else|end|coalesce|tg_op|is|not|distinct|from|and|or|''''|[(),=<>!])(?: |$))*$') THEN
    RETURN 'row';
  END IF;
  -- a changed OLD that is returned
  IF v_words ~ ' return [^;]*old ' AND v_words ~ (' (?:;|declare|begin) old [^ .:=;]+ | old (?:[.] ' || c_path || ' )?:= |' || c_start
      || 'old (?:[.] ' || c_path || ' )?= |' || c_target || 'old | (?:diagnostics|call) [^;]*old ') THEN
    RETURN 'row';
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_triggers(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
BEGIN
  RETURN QUERY
  SELECT x.severity, x.code, format('trigger %I on %s', t.tgname, f.name), x.problem, x.consequence, x.remedy
    FROM jsonb_to_recordset(family) AS f(oid oid, name text, col name, mode text, wall text)
    -- BEFORE, FOR EACH ROW
    JOIN pg_trigger t ON t.tgrelid = f.oid AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'D' AND t.tgtype & 3 = 3
    JOIN pg_proc p ON p.oid = t.tgfoid AND p.pronamespace <> c_schema JOIN pg_language l ON l.oid = p.prolang,
    LATERAL (SELECT regexp_replace(regexp_replace(p.prosrc, '--[^' || chr(10) || ']*', ' ', 'g'), '/[*]([^*]|[*]+[^*/])*[*]+/', ' ',
        'g') AS text) b,
    LATERAL (SELECT CASE WHEN f.col ~ '^[[:alnum:]_]+$' THEN b.text ~* ('[[:<:]]' || f.col || '[[:>:]]')
        ELSE position(lower(f.col) IN lower(b.text)) > 0 END
                    OR position(lower(f.col) IN lower(encode(t.tgargs, 'escape'))) > 0 AS names) n,
    LATERAL (SELECT CASE WHEN t.tgtype & 20 > 0 THEN fencing.doctor_sets(p.prosrc, l.lanname, f.col, encode(t.tgargs, 'escape')) END
        AS sets) y,
    -- before the mark that notes the token, and after what EXCLUDED has of an upsert
    LATERAL (SELECT t.tgtype & 16 > 0 AND t.tgname < '!fencing_mark' COLLATE "C" OR t.tgtype & 4 > 0
        AND t.tgname < '!fencing_mark_insert' COLLATE "C" AS early,
                    t.tgtype & 4 > 0 AND t.tgname > '~fencing_insert' COLLATE "C" AS late,
                    f.wall IN ('enforce', 'attested') AS walled) o,
    LATERAL (
      SELECT 'warning' AS severity, 'D601 trigger-after-check' AS code, 'it runs after the wall''s own check' AS problem,
          'what it changes in the row has been checked before, and is not again' AS consequence,
             format('ALTER TRIGGER %I ON %s RENAME TO ..., to a name before "~fencing"', t.tgname, f.name) AS remedy
       WHERE f.wall <> 'off' AND (t.tgtype & 16 > 0 AND t.tgname > '~fencing_update' COLLATE "C" OR t.tgtype & 4 > 0
           AND t.tgname > '~fencing_insert' COLLATE "C")
      UNION ALL
      SELECT 'error', 'D606 trigger-sets-token', format('its function %s %s', p.oid::regprocedure, CASE y.sets WHEN 'column'
          THEN format('sets the token column %I', f.col)
               ELSE format('may set the row as a whole, and with it the token column %I', f.col) END),
             CASE WHEN NOT o.walled THEN 'it can lower the token of a write, and a stale holder writes the row after that'
                  WHEN o.early THEN 'it can change the token of a write before the wall looks at it, and a stale write passes'
                  WHEN o.late THEN 'it can lower the token that an upsert takes from EXCLUDED after the wall has looked at it'
                  ELSE 'the wall refuses each write whose token it changes' END,
             CASE WHEN y.sets = 'row' AND NOT o.walled
                  THEN format('have it set the columns that it means to set, or SELECT fencing.wall(%L, ''enforce''), which refuses a write whose token it changes, or DROP TRIGGER %I ON %s',
                      f.name, t.tgname, f.name)
                  -- between the marks and the check the wall refuses what it changes
                  WHEN y.sets = 'row'
                  THEN format('have it set the columns that it means to set, one by one, or ALTER TRIGGER %I ON %s RENAME TO %I, where the wall refuses a write whose token it changes',
                              t.tgname, f.name, left('!g_' || t.tgname, 60))
                  ELSE format('have it leave that column alone, or DROP TRIGGER %I ON %s; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                      t.tgname, f.name, p.oid) END
        -- the wall's marks note the token before it, and compare with it afterwards
       WHERE y.sets = 'column' OR y.sets = 'row' AND (NOT o.walled OR o.early OR o.late)
      UNION ALL
      SELECT 'warning', 'D602 trigger-token', format('its function %s has the token column %I in its text', p.oid::regprocedure, f.col),
             'it may set the token of the row, or take it away', format('look at it: SELECT pg_catalog.pg_get_functiondef(%s)', p.oid)
       WHERE t.tgtype & 20 > 0 AND n.names AND y.sets IS DISTINCT FROM 'column'
      UNION ALL
      SELECT 'warning', 'D603 trigger-sees-mark', format('it runs between "~fencing_named" and the check, for which %I is negative', f.col),
             'it sees that value, and a write whose token it changes is refused',
             -- before "~fencing_named", and after the mark
             format('ALTER TRIGGER %I ON %s RENAME TO %I', t.tgname, f.name, left('!g_' || t.tgname, 60))
       WHERE f.wall <> 'off' AND f.mode = 'lease' AND t.tgtype & 16 > 0 AND t.tgname > '~fencing_named' COLLATE "C"
           AND t.tgname < '~fencing_update' COLLATE "C") x;

  RETURN QUERY
  SELECT 'error', 'D604 rule', format('rule %I on %s', w.rulename, f.name), 'the table has a rule',
      'it makes something else of a checked statement',
      format('DROP RULE %I ON %s', w.rulename, f.name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text) JOIN pg_rewrite w ON w.ev_class = f.oid AND w.rulename <> '_RETURN'
        AND w.ev_enabled <> 'D';

  RETURN QUERY
  SELECT 'warning', 'D605 cascade', format('constraint %I on %s', k.conname, f.name),
      format('changes of %s cascade into the table, which has no wall',
      k.confrelid::regclass),
         'rows are changed under no token', f.first || format('SELECT fencing.wall(%L)', f.root_name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text, root_name text, wall text, first text, covered boolean, unsettled boolean)
        JOIN pg_constraint k ON k.conrelid = f.oid AND k.contype = 'f'
        AND k.conparentid = 0
   WHERE f.wall = 'off' AND NOT f.covered AND NOT f.unsettled AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'));
END $$;
-- +goose StatementEnd

-- Subscriptions that write protected tables.
-- +goose StatementBegin
CREATE FUNCTION fencing.doctor_subscriptions(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
BEGIN
  RETURN QUERY
  SELECT CASE WHEN f.wall = 'off' THEN 'warning' WHEN w.alter IS NULL THEN 'info' ELSE 'error' END, 'D701 subscription', f.name,
      format('subscription %I writes the table', s.subname),
         CASE WHEN f.wall = 'off' THEN 'its writes are not checked'
              WHEN w.alter IS NULL THEN
                  'the wall''s triggers don''t fire for its worker, whose writes the publisher''s wall has checked, nor with session_replication_role = replica'
              ELSE 'the wall''s triggers stop its worker at a DELETE, and at tokens that were never issued here' END,
         CASE WHEN w.alter IS NULL THEN
             format('have one of the two write it: ALTER SUBSCRIPTION %I DISABLE, or take the table out of the publication', s.subname)
              ELSE format('run %s, so that its worker gets in, or have this database alone write the table: ALTER SUBSCRIPTION %I DISABLE, or take the table out of the publication',
                  w.alter, s.subname) END
    FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, wall text) JOIN pg_subscription_rel l ON l.srrelid = f.oid
        JOIN pg_subscription s ON s.oid = l.srsubid,
    LATERAL (SELECT string_agg(format('ALTER TABLE %s ENABLE TRIGGER %I', m.name, t.tgname), '; ' ORDER BY m.oid <> f.root, m.name,
        t.tgname) AS alter
               FROM jsonb_to_recordset(family) AS m(root oid, oid oid, name text) JOIN pg_trigger t ON t.tgrelid = m.oid
                   JOIN pg_proc p ON p.oid = t.tgfoid
              WHERE m.root = f.root AND f.wall <> 'off' AND t.tgenabled = 'A' AND p.pronamespace = c_schema
                  AND p.proname ~ '^(wall|tomb|seal)_[0-9a-f]{16}_') w;

  -- a publication of all tables has the publisher's
  RETURN QUERY
  SELECT 'error', 'D702 subscription-schema', format('fencing.%I', c.relname), format('subscription %I writes the table', s.subname),
         'what is registered, walled or leased in another database takes protection away here, or stops the subscription''s worker',
         format('name tables in the publication instead of all, without those of schema fencing, and then ALTER SUBSCRIPTION %I REFRESH PUBLICATION', s.subname)
    FROM pg_subscription_rel l JOIN pg_subscription s ON s.oid = l.srsubid JOIN pg_class c ON c.oid = l.srrelid
   WHERE c.relnamespace = c_schema;
END $$;
-- +goose StatementEnd

-- ---- src/86_doctor_seal.sql

-- What the doctor finds about seals. family are the registered tables, apps the roles that are judged, as fencing.doctor has them.
-- +goose StatementBegin
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
      LATERAL (SELECT 'seal_' || left(md5(convert_to(jsonb_build_array(f.col, f.resource, f.lease, f.by, f.typ::regtype::text)::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)), 16) || '_check' AS func) y
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
      JOIN fencing.lease l ON k.objsubid = 1 AND pg_catalog.hashtextextended(l.resource, 1717923427) = (k.classid::bigint << 32) | k.objid::bigint
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
-- +goose StatementEnd

COMMENT ON FUNCTION fencing.doctor_seal(jsonb, jsonb) IS 'The part of fencing.doctor() that is about seals.';

-- ---- src/90_grants.sql

-- Nobody but the owner starts with any right: neither PUBLIC nor whom ALTER DEFAULT PRIVILEGES names.
-- +goose StatementBegin
DO $$
DECLARE
  v_revoke text;
BEGIN
  FOR v_revoke IN
    SELECT format('REVOKE ALL ON %s %s FROM %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_class c, aclexplode(c.relacl) a
     WHERE c.relnamespace = 'fencing'::regnamespace AND a.grantee <> c.relowner
    UNION
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND a.grantee <> p.proowner
    UNION
    SELECT format('REVOKE CREATE ON SCHEMA fencing FROM %s',
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_namespace n, aclexplode(n.nspacl) a
     WHERE n.nspname = 'fencing' AND a.grantee <> n.nspowner AND a.privilege_type = 'CREATE'
  LOOP
    EXECUTE v_revoke;
  END LOOP;
END $$;
-- +goose StatementEnd

-- The parts of the doctor only read, as who calls them. Who may run fencing.doctor() may run them with it, but for the part about seals. They
-- compare trigger functions with the bodies of which these are made. The driver asks which functions are allowed as whatever role it has.
-- +goose StatementBegin
DO $$
DECLARE
  v_part regprocedure;
BEGIN
  FOR v_part IN
    SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace
        AND (starts_with(p.proname, 'doctor_') AND p.proname <> 'doctor_seal' OR p.proname IN ('registered_above', 'setting_name', 'allowed_functions', 'kept_columns') OR p.proname ~ '_bodies$')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', v_part);
  END LOOP;
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);

-- +goose Down

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- ---- src/99_down.sql

-- All walls come off, and seals and tombstones with them: a change like any other for whoever follows the generation.
UPDATE fencing.registry SET wall_level = 'off' WHERE wall_level <> 'off';

-- The triggers that keep columns, and those that are left on tables which nothing in the registry stands for any more.
-- +goose StatementBegin
DO $$
DECLARE
  v_sql text;
BEGIN
  FOR v_sql IN
    SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^((wall|tomb|seal)_[0-9a-f]{16}_|kept_columns$)'
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;
-- +goose StatementEnd

SELECT fencing.wall_sweep(), fencing.seal_sweep(), fencing.tombstone_sweep();

DROP FUNCTION fencing.doctor_seal(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_subscriptions(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_triggers(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_sets(source text, language name, token_column name, arguments text);
DROP FUNCTION fencing.doctor_words(source text, token_column name);
DROP FUNCTION fencing.doctor_settings(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_roles(family jsonb, apps jsonb, roles name[]);
DROP FUNCTION fencing.doctor_apps(family jsonb, roles name[]);
DROP FUNCTION fencing.doctor_around(family jsonb);
DROP FUNCTION fencing.doctor_revoke(privileges text, object text, grantee oid, grantor oid, owner oid);
DROP FUNCTION fencing.doctor_tokens(family jsonb, scan boolean);
DROP FUNCTION fencing.doctor_sequences(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_given(acl aclitem[], grantee oid, grantor oid, owner oid);
DROP FUNCTION fencing.doctor_bounds();
DROP FUNCTION fencing.doctor_schema(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_buried(family jsonb, scan boolean);
DROP FUNCTION fencing.doctor_tombstones(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_wall(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_functions();
DROP FUNCTION fencing.doctor_columns(family jsonb, apps jsonb);
DROP FUNCTION fencing.doctor_tables();
DROP FUNCTION fencing.doctor_family();
DROP FUNCTION fencing.doctor_less();
DROP FUNCTION fencing.doctor_registered_less(former jsonb, present jsonb);
DROP FUNCTION fencing.doctor_without_wall(tbl text, sql text);
DROP FUNCTION fencing.doctor_register(tbl text, mode text, token_column name, resource text, issued_by regclass);
DROP FUNCTION fencing.doctor(scan boolean, roles name[]);
DROP FUNCTION fencing.doctor_owners();
DROP FUNCTION fencing.doctor_owner();
DROP FUNCTION fencing.doctor_differences();
DROP FUNCTION fencing.doctor_manifest();
DROP FUNCTION fencing.doctor_objects();
DROP FUNCTION fencing.repair(tbl regclass, key jsonb, token bigint, reason text);
DROP FUNCTION fencing.is_repair(rel oid, token bigint, current bigint);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.repairs;
DROP TABLE fencing.repairs;
DROP FUNCTION fencing.prune_tombstones(tbl regclass, below bigint);
DROP FUNCTION fencing.tombstones(tbl regclass, keep boolean);
DROP TRIGGER IF EXISTS tombstones ON fencing.registry;
DROP FUNCTION fencing.tombstones_changed();
DROP FUNCTION fencing.tombstone_apply(tbl regclass, level text, token_column name, mode text, resource text, issued_by regclass, look boolean, is_new boolean);
DROP FUNCTION fencing.tombstone_copy(former regclass, tbl regclass);
DROP FUNCTION fencing.tombstone_sweep(prefixes text[]);
DROP FUNCTION fencing.tombstone_functions(tbl regclass, token_column name, mode text, resource text, issued_by regclass, look boolean, is_new boolean);
DROP FUNCTION fencing.tombstone_key_bodies(cols name[], types regtype[], token_column name, mode text, resource text, seq text);
DROP FUNCTION fencing.doctor_key_columns(cols name[], types regtype[]);
DROP FUNCTION fencing.tombstone_bodies();
DROP FUNCTION fencing.tombstone_rekey(tbl regclass, columns jsonb, is_new boolean);
DROP FUNCTION fencing.tombstone_key(tbl regclass, OUT cols name[], OUT types regtype[], OUT texts text[]);
DROP FUNCTION fencing.doctor_key_text(col name, type regtype);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.tombstone;
DROP TABLE fencing.tombstone;
DROP FUNCTION fencing.unseal(tbl regclass);
DROP FUNCTION fencing.seal(tbl regclass, resource text, by_column name);
DROP TRIGGER IF EXISTS seal ON fencing.registry;
DROP FUNCTION fencing.seal_changed();
DROP FUNCTION fencing.seal_apply(tbl regclass, look boolean, is_new_column boolean);
DROP FUNCTION fencing.check_seal_column(tbl regclass, by_column name);
DROP FUNCTION fencing.seal_sweep(names text[]);
DROP FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype, look boolean);
DROP FUNCTION fencing.seal_bodies();
DROP FUNCTION fencing.seal_fail(reason text, level text, rel oid, op text, trg name, token_column name, resource text, lease text, col name, token bigint, current bigint, was bigint);
DROP TRIGGER IF EXISTS epoch ON fencing.lease;
DROP FUNCTION fencing.raise_epoch();
DROP TRIGGER IF EXISTS refuse_driver ON fencing.epoch;
DROP TABLE fencing.epoch;
DROP FUNCTION fencing.wall(tbl regclass, level text);
DROP TRIGGER IF EXISTS wall ON fencing.registry;
DROP FUNCTION fencing.wall_changed();
DROP FUNCTION fencing.wall_apply(tbl regclass, level text, token_column name, mode text, resource text, issued_by regclass, look boolean);
DROP FUNCTION fencing.check_triggers(tbl regclass, names text);
DROP FUNCTION fencing.check_parents(tbl regclass);
DROP FUNCTION fencing.walls_above(rel oid);
DROP FUNCTION fencing.wall_sweep(prefixes text[]);
DROP FUNCTION fencing.wall_functions(token_column name, mode text, resource text, issued_by regclass, look boolean);
DROP FUNCTION fencing.has_function(name text, body text, is_definer boolean, settings text[]);
DROP FUNCTION fencing.wall_other_bodies();
DROP FUNCTION fencing.wall_delete_bodies();
DROP FUNCTION fencing.wall_insert_bodies();
DROP FUNCTION fencing.wall_update_bodies();
DROP FUNCTION fencing.check_sequence(issued_by regclass);
DROP FUNCTION fencing.is_own_write(row_xmin xid);
DROP FUNCTION fencing.fail(reason text, level text, rel oid, op text, trg name, col name, mode text, resource text, token bigint, current bigint);
DROP FUNCTION fencing.setting_name(resource text);
DROP FUNCTION fencing.release(resource text, token bigint);
DROP FUNCTION fencing.renew(resource text, token bigint, ttl interval);
DROP FUNCTION fencing.take(resource text, ttl interval, holder text);
DROP FUNCTION fencing.lease_wait(resource text);
DROP FUNCTION fencing.lease_ttl(ttl interval);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.lease;
DROP TABLE fencing.lease;
DROP FUNCTION fencing.disallow_function(function regprocedure);
DROP FUNCTION fencing.allow_function(function regprocedure, reason text);
DROP FUNCTION fencing.check_function(function regprocedure, doing text);
DROP FUNCTION fencing.allowed_functions();
DROP FUNCTION fencing.function_digest(function oid);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.allowed_function;
DROP TRIGGER IF EXISTS truncated ON fencing.allowed_function;
DROP TRIGGER IF EXISTS changed ON fencing.allowed_function;
DROP TABLE fencing.allowed_function;
DROP FUNCTION fencing.driver_rewrite(tbl regclass, on_off boolean);
DROP FUNCTION fencing.driver_level(tbl regclass, level text);
DROP FUNCTION fencing.check_name(tbl regclass, schema_name name, table_name name);
DROP FUNCTION fencing.confirm_columns(tbl regclass, role text);
DROP FUNCTION fencing.refuse_moved(tbl regclass, role text, if_kept boolean);
DROP FUNCTION fencing.doctor_mend_first(tbl regclass, besides text);
DROP FUNCTION fencing.doctor_moved(tbl regclass);
DROP FUNCTION fencing.keep_columns(tbl regclass, role text, columns name[]);
DROP FUNCTION fencing.doctor_kept(tbl regclass, role text, OUT was name[], OUT now name[]);
DROP FUNCTION fencing.kept_columns();
DROP FUNCTION fencing.unregister(tbl regclass);
DROP FUNCTION fencing.register(tbl regclass, mode text, token_column name, resource text, issued_by regclass);
DROP FUNCTION fencing.registration(tbl regclass, mode text, token_column name, resource text, issued_by regclass, OUT is_done boolean, OUT lock_mode text);
DROP FUNCTION fencing.claim_name(tbl regclass);
DROP FUNCTION fencing.registered_above(tbl regclass);
DROP FUNCTION fencing.take_over(tbl regclass, former jsonb, is_new boolean);
DROP FUNCTION fencing.carry_over(present jsonb, former jsonb);
DROP FUNCTION fencing.check_tokens(tbl regclass, token_column name, former jsonb);
DROP FUNCTION fencing.check_token_column(tbl regclass, token_column name);
DROP FUNCTION fencing.doctor_nullable(rel oid, num int2);
DROP FUNCTION fencing.refuse_unregistered(tbl regclass, schema_name name, table_name name, arguments text, is_named boolean);
DROP FUNCTION fencing.check_table(tbl regclass);
DROP FUNCTION fencing.refuse_deadlock(what text, tbl regclass, detail text);
DROP FUNCTION fencing.lock_needed(tbl regclass, statements text[], prefix text, called regprocedure);
DROP FUNCTION fencing.function_rights(prefix text, called regprocedure);
DROP FUNCTION fencing.lock_registry(tbl regclass, lock_mode text);
DROP FUNCTION fencing.partitions(tbl regclass);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.generation;
DROP TRIGGER IF EXISTS refuse_driver ON fencing.registry;
DROP TRIGGER IF EXISTS truncated ON fencing.registry;
DROP TRIGGER IF EXISTS changed ON fencing.registry;
DROP FUNCTION fencing.registry_changed();
DROP TABLE fencing.generation;
DROP TABLE fencing.registry;
DROP FUNCTION fencing.next_token();
DROP FUNCTION fencing.incarnation_now(OUT tli bigint, OUT sysid bigint, OUT dbid oid, OUT seqid oid, OUT unread text[]);
DROP TRIGGER IF EXISTS refuse_driver ON fencing.incarnation;
DROP TABLE fencing.incarnation;
DROP FUNCTION fencing.refuse_driver_write();
DROP FUNCTION fencing.refuse_driver(what text);
DROP SEQUENCE fencing.write_epoch;

-- migrations.Up keeps its version table in the schema; migrations.Down drops the two together
-- +goose StatementBegin
DO $$
BEGIN
  DROP SCHEMA fencing;
EXCEPTION WHEN dependent_objects_still_exist THEN
  NULL;
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);
