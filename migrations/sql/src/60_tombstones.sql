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
CREATE FUNCTION fencing.doctor_key_text(col name, type regtype) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RETURN replace(CASE
    WHEN type = 'numeric'::regtype THEN 'trim_scale(@)::text'
    WHEN type = 'bytea'::regtype THEN 'encode(@, ''hex'')'
    ELSE '@::text' END, '@', format('%%1$s.%s', replace(quote_ident(col), '%', '%%')));
END $$;

-- The columns of the primary key, each with the expression that writes it as text; %1$s is the row. Two keys have to be equal as text
-- if and only if they are equal, whatever the session's settings.
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

-- Has the tombstones of a table stand under the columns that its primary key has now, where they can: columns in another order or by
-- another name. columns are pairs of a name and what its values are as text: integers and numeric are numbers, which look alike.
--
-- Which column a name stood for is told by fencing.doctor_kept. Without that none of them is known, unless the table has just begun to keep
-- tombstones (is_new). While names have been exchanged, what is buried is buried by the names: then each tombstone stands for both keys.
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
      SELECT 0, {{keyDigest "k.key"}}, k.key, tombstone_rekey.columns, e.token, e.xact, e.deleted_at
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

-- The bodies of the trigger functions, as they run but for what format() puts in: names, and by the numbers 6 to 10 what depends on the
-- columns of the primary key: the key of OLD and of NEW, the conditions that a column of it is of another type, and fencing.tombstone's
-- columns. They come from the templates in src/triggers.
CREATE FUNCTION fencing.tombstone_bodies() RETURNS TABLE (suffix text, body text) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
VALUES
  ('bury', $body${{body "bury"}}$body$),
  ('check', $body${{body "tomb_check"}}$body$)
$$;

-- What the values of the columns of a primary key are: see fencing.tombstone_rekey.
CREATE FUNCTION fencing.doctor_key_columns(cols name[], types regtype[]) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT jsonb_agg(jsonb_build_array(u.col, CASE WHEN u.type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype) THEN 'number'
              WHEN u.type = 'varchar'::regtype THEN 'text' ELSE u.type::text END) ORDER BY u.n)
            FROM unnest(cols, types) WITH ORDINALITY u(col, type, n));
END $$;

-- The bodies of the trigger functions for a table, as they run.
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

-- Makes the trigger functions and returns what their names begin with; compare fencing.wall_functions. A type other than the one they
-- were made for isn't looked at, because its cast would run as the owner of the schema. look: makes none, and returns null where one is not
-- right, where tombstones stand under other columns, or where the key's columns have other names than are kept.
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
  v_prefix := 'tomb_' || {{nameDigest `token_column, mode, resource, v_seq, v_key.cols, v_key.types::text[]`}} || '_';
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

-- compare fencing.wall_sweep
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

-- Gives a table the tombstones of another one, in whose place it is registered; that one keeps its own for as long as it is there.
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

-- Makes the triggers of a table what its row asks for. Partitions have copies. Compare fencing.wall_apply for what look does. What keeps the
-- columns of the key stays without tombstones. is_new: the table has just begun to keep them.
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

CREATE TRIGGER tombstones AFTER UPDATE OR DELETE ON fencing.registry FOR EACH ROW EXECUTE FUNCTION fencing.tombstones_changed();

ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER tombstones;

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

COMMENT ON FUNCTION fencing.tombstones(regclass, boolean) IS
  'Has deleted keys of a walled table keep their tokens, so that no stale holder inserts them again; false: not any more.';

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

COMMENT ON FUNCTION fencing.prune_tombstones(regclass, bigint) IS
  'Removes the tombstones of a table with tokens below the oldest that anybody may still hold, and says how many.';
