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

CREATE SEQUENCE fencing.write_epoch AS bigint MINVALUE 1 NO CYCLE CACHE 1;

COMMENT ON SEQUENCE fencing.write_epoch IS 'Bounds the tokens that may have been issued. Drawn from by fencing.next_token() only.';

-- A connection of fencerow's driver has 'driver' in the setting fencing.session, which no statement through the driver can change. What
-- is written here decides what the driver refuses, and so none of its connections may write it, whatever role it has and however a
-- statement names it: a function that changes anything begins with this.
CREATE FUNCTION fencing.refuse_driver(what text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('fencing.session', true) = 'driver' THEN
    RAISE EXCEPTION
        'fencing: no connection of the driver may call %, which changes what the driver refuses: use a plain connection, such as psql''s or one of package migrations', what
      USING ERRCODE = 'FN004', SCHEMA = 'fencing', CONSTRAINT = 'refuse_driver';
  END IF;
END $$;

COMMENT ON FUNCTION fencing.refuse_driver(text) IS 'Raises an error in a session of the driver, for what it must not do.';

-- The same for a statement on a table, as its trigger refuse_driver, whose WHEN has looked at the setting. The functions that a session of
-- the driver may call, and triggers, empty the setting while they write.
CREATE FUNCTION fencing.refuse_driver_write() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION
      'fencing: no connection of the driver may run % on fencing.%, which the driver rests on: use a plain connection, such as psql''s or one of package migrations',
    TG_OP, quote_ident(TG_TABLE_NAME) USING ERRCODE = 'FN004', SCHEMA = 'fencing', TABLE = TG_TABLE_NAME, CONSTRAINT = 'refuse_driver';
END $$;

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

COMMENT ON FUNCTION fencing.incarnation_now() IS
  'What tokens are drawn from now, to be compared with fencing.incarnation, and which functions the server keeps back: its start stands in for them.';

INSERT INTO fencing.incarnation (tli, sysid, dbid, seqid) SELECT n.tli, n.sysid, n.dbid, n.seqid FROM fencing.incarnation_now() n;

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

COMMENT ON FUNCTION fencing.next_token() IS 'Draws a fencing token larger than every one before. It counts only after COMMIT.';
