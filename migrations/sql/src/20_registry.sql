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

-- Takes the registry's lock and, in lock_mode, those of a table, its partitions and its children, which a change is about to need; without a
-- lock_mode the registry's alone. No lock is waited for while another one of them is held that this call took: a transaction that has
-- changed one of the tables, or called another function of the schema, has some of them and then wants others, in whatever order.
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

-- The statements that give the trigger functions whose names begin with prefix to those who may call a function of the schema, and take them
-- from everybody else: only who may register may put a trigger on them, which takes EXECUTE; firing it takes nothing.
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

-- The mode in which a table has to be locked for the statements that make its triggers right, or, where these are none, for what else there is
-- to do; null, if that is nothing. prefix is what the names of the triggers' functions begin with, and null where it is to have none.
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

-- Says what to do where two transactions have waited for each other all the same.
CREATE FUNCTION fencing.refuse_deadlock(what text, tbl regclass, detail text) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
  RAISE EXCEPTION 'fencing: %(%) and another transaction have waited for each other', what, quote_nullable(tbl::text)
    USING ERRCODE = 'deadlock_detected', DETAIL = detail,
          HINT = 'Run the transaction again. One that changes several tables, or calls functions of schema fencing for several, is to lock them first, in the order of their names: '
                 'LOCK TABLE ..., ... IN ACCESS EXCLUSIVE MODE.';
END $$;

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

-- Refuses a table that is not registered, of the name given. arguments are what fencing.register takes after the table; is_named: another
-- table is registered under the name.
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

-- Whether a column may have nulls: PostgreSQL 18 has NOT NULL constraints that are NOT VALID, with which older rows may have some.
CREATE FUNCTION fencing.doctor_nullable(rel oid, num int2) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum = num)
    OR EXISTS (SELECT FROM pg_constraint u WHERE u.conrelid = rel AND u.contype = 'n' AND u.conkey[1] = num AND NOT u.convalidated);
END $$;

-- the column must be there: of tbl and of every table that inherits from it
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

-- Refuses a table in the place of one that had a wall, if rows of it have no token: where they were copied without it, or the column is another
-- one by now, any holder would write them. former is as in fencing.take_over. Where a trigger of fencing's goes by the column, the rows are
-- those that were there.
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

-- What former asks for and present doesn't, of what protects a table; both are rows of the registry.
-- Of two levels the stricter one counts, and a seal of its own stays.
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

-- Has the row of tbl ask for no less than those rows of the registry did that former has, each with the oid of its table, and takes over
-- the tombstones of these.
-- is_new: the row has been made just now, and what it doesn't say is as they say.
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

-- The rows of the tables that tbl may have been a partition or a child of when it got the triggers that it has: those that have partitions or
-- children, have the same columns, and whose walls, tombstones and seals have the same functions. A detached partition has the trigger for
-- TRUNCATE only. Nothing in the catalog tells which one of several it was.
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
     AND 'wall_' || {{nameDigest `r.token_column, r.mode, r.resource, CASE WHEN q.oid IS NOT NULL THEN format('%I.%I', n.nspname, q.relname) END`}} = ANY (v_has)
     AND (r.tombstones OR NOT EXISTS (SELECT FROM unnest(v_has) h WHERE starts_with(h, 'tomb_')))
     AND (NOT EXISTS (SELECT FROM unnest(v_has) h WHERE starts_with(h, 'seal_'))
          OR 'seal_' || {{nameDigest `r.token_column, r.resource, r.seal_resource, r.seal_column, a.atttypid::regtype::text`}} = ANY (v_has))
     AND NOT EXISTS (SELECT FROM pg_attribute x WHERE x.attrelid = c.oid AND x.attnum > 0 AND NOT x.attisdropped
       AND NOT EXISTS (SELECT FROM pg_attribute y WHERE y.attrelid = tbl AND y.attname = x.attname AND y.atttypid = x.atttypid AND NOT y.attisdropped));
END $$;

-- Gives tbl its present name in the registry, and the tables that are registered under that name theirs. No name that stands for
-- a table falls out by it. A table that comes by the name of another one is protected no less than that one was, and so is the table
-- that has the name which tbl gives up; for tbl itself that is left to the caller.
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

-- Whether a table is registered as fencing.register is to do it, and by no other name; if not, the mode in which the table has to be
-- locked for that, or null where only the registry changes.
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

-- As text the default of issued_by depends on no sequence: DROP SEQUENCE ... CASCADE would take the function with it.
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

COMMENT ON FUNCTION fencing.register(regclass, text, name, text, regclass) IS
  'Protects a table: adds the token column if it is missing, and the registry row. Calling it again changes what differs. A table that has the name of another that was registered takes on its levels, tombstones and seal.';

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

COMMENT ON FUNCTION fencing.unregister(regclass) IS 'Ends the protection of a table. The token column and its values stay.';
