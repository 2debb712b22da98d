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

CREATE FUNCTION fencing.kept_columns() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION 'fencing: fencing.kept_columns() is for triggers that never fire, and not for a trigger on %', TG_RELID::regclass
    USING ERRCODE = 'insufficient_privilege', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, HINT = 'Drop the trigger.';
END $$;

-- The columns that the trigger of a role keeps: their names when it was made, and those that they have now. Both are null without one.
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

COMMENT ON FUNCTION fencing.doctor_kept(regclass, text) IS
  'The columns of a table that have its tokens (token), its key (key) or the names of its leases (seal): what they were called, and what they are called now.';

-- Has the trigger of a role keep these columns; null: no more. The trigger is left alone where it is right.
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

-- The columns of a registered table that are others than at its registration, which nobody has confirmed: token, key or seal, the name that the
-- registry has, and the name that the column has now, null where nothing keeps it any more. A key whose columns have other names is none of
-- them: its tombstones follow, see fencing.tombstone_rekey. code is the doctor's; remedy is what refuse_moved and the doctor print.
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

COMMENT ON FUNCTION fencing.doctor_moved(regclass) IS
  'The columns of a registered table that have the name of its token column, its key or its seal''s column, and are not what has been that.';

-- What has to be mended before a remedy calls fencing.wall for a table, which refuses it until then; besides is the role that the remedy is for.
CREATE FUNCTION fencing.doctor_mend_first(tbl regclass, besides text DEFAULT '') RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN coalesce((SELECT 'mend what ' || string_agg(CASE WHEN m.code IN ('D202', 'D205') THEN format('%s says of "~fencing_kept_%s"', m.code, m.role)
                     ELSE m.code || ' says' END, ' and what ' ORDER BY m.code, m.role) || ', and then '
                     FROM fencing.doctor_moved(tbl) m WHERE m.role <> besides), '');
END $$;

-- Refuses a table whose column of a role is another one than at its registration. if_kept: unless nothing keeps the column any more.
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

-- Says that the column which has the name of the token column has the tokens of the rows (token), or that the columns of the primary key have the
-- names that they had when keys were deleted (key): what nothing tells any more.
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

COMMENT ON FUNCTION fencing.confirm_columns(regclass, text) IS
  'Says that a table''s token column (token) or the columns of its primary key (key) are the right ones as they are called now, where nothing else tells it.';
