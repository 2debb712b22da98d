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

CREATE FUNCTION fencing.is_repair(rel oid, token bigint, current bigint) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (
    WITH RECURSIVE up AS (
      SELECT rel AS oid UNION SELECT i.inhparent FROM up u JOIN pg_inherits i ON i.inhrelid = u.oid)
    SELECT 1 FROM fencing.repairs r JOIN up u ON u.oid = r.relid
     WHERE r.xact = pg_current_xact_id_if_assigned() AND r.new_token = token AND r.old_token = current);
END $$;

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

COMMENT ON FUNCTION fencing.repair(regclass, jsonb, bigint, text) IS
  'Sets the token of one row, named by its primary key, past the wall, and keeps a record in fencing.repairs. For the owner of the schema.';
