-- Cheaper trigger functions for DELETE and for sealed tables. They refuse what those of before refuse, with the same errors: what the
-- new lines don't let through at once goes the old way.
--
-- For a transaction of one row most of the cost is PostgreSQL's own: locking the row before a BEFORE trigger, entering PL/pgSQL for
-- the first time, preparing the WHEN of ~fencing_late. Then an expression in PL/pgSQL takes up to a microsecond, as it is prepared anew
-- in each transaction; over many rows a regular expression and numeric take the most. See docs/wall.md.
--
-- The seal still reads the epoch for each row. That it has been read in this transaction can't be kept anywhere: a setting is
-- anybody's, and what outlives a rolled back savepoint outlives the lock that was taken in it.
--
-- Known limits:
--   Trigger functions of another owner stay as they are; the doctor finds those (D204).

-- +goose Up

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- as fencing.wall does: no function is made meanwhile
LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.wall_functions(token_column name, mode text, resource text, issued_by regclass) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
DECLARE
  v_seq    CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = issued_by);
  v_prefix CONSTANT text := 'wall_' || left(md5(jsonb_build_array(token_column, mode, resource, v_seq)::text), 16) || '_';
  v_body   text;
  v_sql    text;
  f        record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall_functions()');
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    -- without it the functions would let every token through
    RAISE EXCEPTION 'fencing: the sequence that bounds the tokens, %, is gone', issued_by::oid
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Restore the sequence, or register the table with the one that its tokens come from now: SELECT fencing.register(...); fencing.doctor() has the statement (D301).';
  END IF;
  IF issued_by IS NOT NULL AND NOT has_sequence_privilege(current_user, issued_by, 'SELECT, USAGE') THEN
    RAISE EXCEPTION 'fencing: role % owns the functions of the wall and can''t read sequence %', quote_ident(current_user), issued_by
      USING ERRCODE = 'insufficient_privilege', HINT = format('GRANT SELECT ON SEQUENCE %s TO %I', issued_by, current_user);
  END IF;
  FOR f IN
    -- [<] stands for OPERATOR(pg_catalog.<), fail() for the whole call, {...} for what follows below; all is put in before the names are
    SELECT k.suffix, k.definer, k.body FROM (VALUES
      -- The marks come before other triggers and note the token that the statement writes, for ~fencing_late to compare with. The note
      -- is for the depth at which the trigger runs, so that a write by a trigger in between leaves it alone.
      -- This one runs only if the statement names the column. A token that can't be one counts as none.
      ('mark', 'lease', false, $body$
BEGIN
  NEW.%1$I := CASE WHEN {noted} IS NULL OR NEW.%1$I [<] 0 THEN OLD.%1$I ELSE [~] NEW.%1$I END;
  RETURN NEW;
END $body$),
      ('mark', 'strict', false, $body$
BEGIN
  IF {noted} IS NULL THEN RETURN NULL; END IF;  -- as an expression: PERFORM takes longer
  RETURN NEW;
END $body$),
      ('mark_insert', NULL, false, $body$
BEGIN
  IF {noted} IS NULL THEN RETURN NULL; END IF;
  RETURN NEW;
END $body$),
      ('update', 'strict', true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [>] OLD.%1$I AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
  IF (NEW.%1$I [>] OLD.%1$I) IS NOT TRUE THEN fail('stale', NEW.%1$I, OLD.%1$I);
  ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, OLD.%1$I);
  {unattested OLD.%1$I}END IF;
  RETURN NEW;
END $body$),
      -- A negative token is a marked one, if it isn't the row's own; -1 is 0 marked.
      ('update', 'lease', true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [<] -1 AND NEW.%1$I [<>] OLD.%1$I THEN
    NEW.%1$I := [~] NEW.%1$I;
    IF NEW.%1$I [>=] OLD.%1$I AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
    IF NEW.%1$I [<] OLD.%1$I THEN fail('stale', NEW.%1$I, OLD.%1$I);
    ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, OLD.%1$I);
    {unattested OLD.%1$I}END IF;
  ELSIF NEW.%1$I [=] -1 AND OLD.%1$I [<>] -1 THEN
    NEW.%1$I := 0;
    fail('missing', NEW.%1$I, OLD.%1$I);
  ELSE
    fail('missing', NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
      -- Below attested it looks at the note, too: in an upsert no trigger comes after it that could, and EXCLUDED has what it lets through.
      ('insert', NULL, true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [>] 0 AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
  IF (NEW.%1$I [>] 0) IS NOT TRUE THEN fail('missing', NEW.%1$I, NULL);
  ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, NULL);
  {unattested NULL}{changed}END IF;
  RETURN NEW;
END $body$),
      ('delete', NULL, true, $body$
DECLARE
  s pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  t pg_catalog.int8;
BEGIN
  {typed OLD}
  -- digits that a bigint always has room for, without a 0 before them; what isn't let through here is looked at again
  IF (CASE WHEN pg_catalog.octet_length(s) [>] 0 AND pg_catalog.octet_length(s) [<=] 18 AND pg_catalog.ltrim(s, '0123456789') [=] ''
                AND pg_catalog.octet_length(pg_catalog.ltrim(s, '0')) [=] pg_catalog.octet_length(s)
      THEN s::pg_catalog.int8 {newer} OLD.%1$I AND {issued s::pg_catalog.int8} END) THEN RETURN OLD; END IF;
  IF s IS NULL OR s [=] '' THEN
    fail('missing', NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF s [~] '^[1-9][0-9]{0,18}$' THEN
    IF s::pg_catalog.numeric [<=] 9223372036854775807 THEN t := s::pg_catalog.int8; END IF;
  END IF;
  IF t IS NULL THEN fail('malformed', NULL, OLD.%1$I);
  ELSIF (t {newer} OLD.%1$I) IS NOT TRUE THEN fail('stale', t, OLD.%1$I);
  ELSIF ({issued t}) IS NOT TRUE THEN fail('unissued', t, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$),
      ('truncate', NULL, true, $body$
BEGIN
  fail('truncate', NULL, NULL);
  RETURN NULL;
END $body$),
      ('late', NULL, true, $body$
BEGIN
  {typed NEW}
  IF TG_OP [=] 'UPDATE' THEN fail('late', NEW.%1$I, OLD.%1$I); ELSE fail('late', NEW.%1$I, NULL); END IF;
  RETURN NULL;
END $body$)) b(kind, mode, definer, body),
      LATERAL (
        SELECT b.kind AS suffix, b.definer, replace(replace(replace(replace(b.body, '{setting}', ''), '{attested}', CASE b.kind
                 WHEN 'insert' THEN $body$ AND pg_catalog.current_setting('fencing.mark' [||] pg_catalog.pg_trigger_depth()::pg_catalog.text, true) [=] NEW.%1$I::pg_catalog.text$body$ ELSE '' END),
               '{unattested', '{none'), '{changed}', $body$ELSE fail('late', NEW.%1$I, NULL);
  $body$) AS body
        UNION ALL
        SELECT b.kind || '_attested', b.definer, replace(replace(replace(b.body, '{changed}', ''), '{setting}', E'DECLARE\n  s pg_catalog.text;\n'),
               '{attested}', ' AND pg_catalog.current_setting(%4$L, true) [=] NEW.%1$I::pg_catalog.text')
         WHERE b.body LIKE '%{attested}%') k
     WHERE b.mode IS NULL OR b.mode = wall_functions.mode
  LOOP
    CONTINUE WHEN to_regprocedure(format('fencing.%I()', v_prefix || f.suffix)) IS NOT NULL;
    v_body := regexp_replace(f.body, '\{none [^}]*\}', '', 'g');
    v_body := regexp_replace(v_body, '\{unattested ([^}]*)\}', $body$ELSE
    s := pg_catalog.current_setting(%4$L, true);
    IF s IS NULL OR s [=] '' THEN fail('unattested', NEW.%1$I, \1); ELSE fail('other', NEW.%1$I, \1); END IF;
  $body$, 'g');
    v_body := regexp_replace(v_body, '\{typed (\w+)\}', $body$IF pg_catalog.pg_typeof(\1.%1$I) [<>] 'pg_catalog.int8'::pg_catalog.regtype THEN
    fail('type', NULL, NULL);
    RETURN \1;
  END IF;$body$, 'g');
    v_body := regexp_replace(v_body, '\{issued ([^}]*)\}', CASE WHEN v_seq IS NULL THEN 'true'
              ELSE '\1 [<=] pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)' END, 'g');
    v_body := replace(v_body, '{noted}', $body$pg_catalog.set_config('fencing.mark' [||] pg_catalog.pg_trigger_depth()::pg_catalog.text, NEW.%1$I::pg_catalog.text, true)$body$);
    v_body := replace(v_body, '{newer}', CASE wall_functions.mode WHEN 'strict' THEN '[>]' ELSE '[>=]' END);
    v_body := regexp_replace(v_body, '\[([<>=~|]+)\]', 'OPERATOR(pg_catalog.\1)', 'g');
    v_body := regexp_replace(v_body, 'fail\((''\w+''), ', 'PERFORM fencing.fail(\1, TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, ', 'g');
    EXECUTE format('CREATE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql %s AS %L', v_prefix || f.suffix,
                   CASE WHEN f.definer THEN 'SECURITY DEFINER' ELSE '' END,
                   format(v_body, token_column, wall_functions.mode, resource, fencing.setting_name(resource), v_seq));
  END LOOP;
  -- only who may register may put a trigger on them, which takes EXECUTE; firing it takes nothing
  FOR v_sql IN
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= v_prefix::name AND p.proname < (v_prefix || '~')::name AND a.grantee <> p.proowner
       AND NOT EXISTS (SELECT 1 FROM pg_proc w, aclexplode(w.proacl) b WHERE w.oid = 'fencing.wall(regclass, text)'::regprocedure AND b.grantee = a.grantee AND a.grantee <> 0)
    UNION ALL
    SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, pg_get_userbyid(a.grantee))
      FROM pg_proc p, pg_proc w, aclexplode(w.proacl) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= v_prefix::name AND p.proname < (v_prefix || '~')::name
       AND NOT EXISTS (SELECT 1 FROM aclexplode(p.proacl) b WHERE b.grantee = a.grantee)
       AND w.oid = 'fencing.wall(regclass, text)'::regprocedure AND a.grantee NOT IN (0, w.proowner)
  LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_prefix;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype) RETURNS text
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
  -- Most writes need no more than this, in few expressions. What isn't let through is looked at again. NEW is null in a DELETE.
  IF {types NEW} AND TG_ARGV[0] [<>] 'report' AND pg_catalog.current_setting('transaction_isolation') [=] 'read committed'{lock} THEN
    SELECT x.token INTO e FROM ONLY fencing.epoch x WHERE x.resource [=] l AND x.stripe [=] 0;
    IF NEW.%1$I [=] e THEN RETURN NEW; END IF;
    IF TG_OP [=] 'DELETE' AND e [>] 0 AND pg_catalog.current_setting(%3$L, true) [=] e::pg_catalog.text THEN RETURN OLD; END IF;
  END IF;
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
    v_body := replace(v_body, '{types NEW}', $body$pg_catalog.pg_typeof(NEW.%1$I) [=] 'pg_catalog.int8'::pg_catalog.regtype$body$
      || CASE WHEN seal_column IS NULL THEN '' ELSE ' AND pg_catalog.pg_typeof(NEW.%5$I) [=] %6$L::pg_catalog.regtype' END);
    -- the lock before the SELECT, whose snapshot is then newer; a row that moves to another lease has none here
    v_body := replace(v_body, '{lock}', CASE WHEN seal_column IS NULL THEN
        E'\n     AND pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(%4$L, 1717923427)) IS NOT NULL'
      ELSE $body$ THEN
    l := CASE WHEN TG_OP [=] 'DELETE' THEN OLD.%5$I::pg_catalog.text WHEN TG_OP [=] 'INSERT' OR OLD.%5$I::pg_catalog.text [=] NEW.%5$I::pg_catalog.text THEN NEW.%5$I::pg_catalog.text END;
  END IF;
  IF pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(l, 1717923427)) IS NOT NULL$body$ END);
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

-- Functions that triggers run get the body that is made now, and keep their names, owners and rights: no table is locked. Those that
-- were made for something that is in the registry no more keep theirs.
-- +goose StatementBegin
DO $$
DECLARE
  c_owner CONSTANT oid := (SELECT p.proowner FROM pg_proc p WHERE p.oid = 'fencing.wall_functions(name, text, text, regclass)'::regprocedure);
  f       record;
  v_new   text;
BEGIN
  FOR f IN
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall|seal)_[0-9a-f]{16}_' AND p.pronargs = 0 AND p.proowner = c_owner
  LOOP
    EXECUTE format('ALTER FUNCTION fencing.%I() RENAME TO %I', f.proname, 'was_' || f.proname);
  END LOOP;
  PERFORM fencing.wall_functions(r.token_column, r.mode, r.resource, r.issued_by) FROM fencing.registry r
   WHERE r.wall_level <> 'off'
     AND (r.issued_by IS NULL OR (SELECT has_sequence_privilege(c_owner, c.oid, 'SELECT, USAGE') FROM pg_class c WHERE c.oid = r.issued_by AND c.relkind = 'S'));
  PERFORM fencing.seal_function(r.token_column, r.resource, r.seal_resource, r.seal_column, a.atttypid::regtype)
    FROM fencing.registry r LEFT JOIN pg_attribute a ON a.attrelid = r.relid AND a.attname = r.seal_column AND a.attnum > 0 AND NOT a.attisdropped
   WHERE r.wall_level <> 'off' AND (r.seal_resource IS NOT NULL OR a.attname IS NOT NULL);
  FOR f IN
    SELECT p.prosecdef, substr(p.proname, 5) AS name FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^was_(wall|seal)_[0-9a-f]{16}_' AND p.pronargs = 0 AND p.proowner = c_owner
  LOOP
    SELECT p.prosrc INTO v_new FROM pg_proc p WHERE p.oid = to_regprocedure(format('fencing.%I()', f.name));
    IF FOUND THEN
      EXECUTE format('DROP FUNCTION fencing.%I()', f.name);
    END IF;
    EXECUTE format('ALTER FUNCTION fencing.%I() RENAME TO %I', 'was_' || f.name, f.name);
    IF v_new IS NOT NULL THEN
      EXECUTE format('CREATE OR REPLACE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql %s AS %L', f.name,
                     CASE WHEN f.prosecdef THEN 'SECURITY DEFINER' ELSE '' END, v_new);
    END IF;
  END LOOP;
  PERFORM fencing.wall_sweep(), fencing.seal_sweep();
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);

-- +goose Down

SELECT pg_catalog.set_config('fencing.saved_search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

-- as fencing.wall does: no function is made meanwhile
LOCK TABLE fencing.registry IN SHARE ROW EXCLUSIVE MODE;

-- as 00004 has it
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.wall_functions(token_column name, mode text, resource text, issued_by regclass) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
DECLARE
  v_seq    CONSTANT text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = issued_by);
  v_prefix CONSTANT text := 'wall_' || left(md5(jsonb_build_array(token_column, mode, resource, v_seq)::text), 16) || '_';
  v_body   text;
  v_sql    text;
  f        record;
BEGIN
  PERFORM fencing.refuse_driver('fencing.wall_functions()');
  IF issued_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = issued_by AND c.relkind = 'S') THEN
    -- without it the functions would let every token through
    RAISE EXCEPTION 'fencing: the sequence that bounds the tokens, %, is gone', issued_by::oid
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Restore the sequence, or register the table with the one that its tokens come from now: SELECT fencing.register(...); fencing.doctor() has the statement (D301).';
  END IF;
  IF issued_by IS NOT NULL AND NOT has_sequence_privilege(current_user, issued_by, 'SELECT, USAGE') THEN
    RAISE EXCEPTION 'fencing: role % owns the functions of the wall and can''t read sequence %', quote_ident(current_user), issued_by
      USING ERRCODE = 'insufficient_privilege', HINT = format('GRANT SELECT ON SEQUENCE %s TO %I', issued_by, current_user);
  END IF;
  FOR f IN
    -- [<] stands for OPERATOR(pg_catalog.<), fail() for the whole call, {...} for what follows below; all is put in before the names are
    SELECT k.suffix, k.definer, k.body FROM (VALUES
      -- The marks come before other triggers and note the token that the statement writes, for ~fencing_late to compare with. The note
      -- is for the depth at which the trigger runs, so that a write by a trigger in between leaves it alone.
      -- This one runs only if the statement names the column. A token that can't be one counts as none.
      ('mark', 'lease', false, $body$
BEGIN
  NEW.%1$I := CASE WHEN {noted} IS NULL OR NEW.%1$I [<] 0 THEN OLD.%1$I ELSE [~] NEW.%1$I END;
  RETURN NEW;
END $body$),
      ('mark', 'strict', false, $body$
BEGIN
  IF {noted} IS NULL THEN RETURN NULL; END IF;  -- as an expression: PERFORM takes longer
  RETURN NEW;
END $body$),
      ('mark_insert', NULL, false, $body$
BEGIN
  IF {noted} IS NULL THEN RETURN NULL; END IF;
  RETURN NEW;
END $body$),
      ('update', 'strict', true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [>] OLD.%1$I AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
  IF (NEW.%1$I [>] OLD.%1$I) IS NOT TRUE THEN fail('stale', NEW.%1$I, OLD.%1$I);
  ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, OLD.%1$I);
  {unattested OLD.%1$I}END IF;
  RETURN NEW;
END $body$),
      -- A negative token is a marked one, if it isn't the row's own; -1 is 0 marked.
      ('update', 'lease', true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [<] -1 AND NEW.%1$I [<>] OLD.%1$I THEN
    NEW.%1$I := [~] NEW.%1$I;
    IF NEW.%1$I [>=] OLD.%1$I AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
    IF NEW.%1$I [<] OLD.%1$I THEN fail('stale', NEW.%1$I, OLD.%1$I);
    ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, OLD.%1$I);
    {unattested OLD.%1$I}END IF;
  ELSIF NEW.%1$I [=] -1 AND OLD.%1$I [<>] -1 THEN
    NEW.%1$I := 0;
    fail('missing', NEW.%1$I, OLD.%1$I);
  ELSE
    fail('missing', NULL, OLD.%1$I);
  END IF;
  RETURN NEW;
END $body$),
      -- Below attested it looks at the note, too: in an upsert no trigger comes after it that could, and EXCLUDED has what it lets through.
      ('insert', NULL, true, $body$
{setting}BEGIN
  {typed NEW}
  IF NEW.%1$I [>] 0 AND {issued NEW.%1$I}{attested} THEN RETURN NEW; END IF;
  IF (NEW.%1$I [>] 0) IS NOT TRUE THEN fail('missing', NEW.%1$I, NULL);
  ELSIF ({issued NEW.%1$I}) IS NOT TRUE THEN fail('unissued', NEW.%1$I, NULL);
  {unattested NULL}{changed}END IF;
  RETURN NEW;
END $body$),
      ('delete', NULL, true, $body$
DECLARE
  s pg_catalog.text := pg_catalog.current_setting(%4$L, true);
  t pg_catalog.int8;
BEGIN
  {typed OLD}
  IF s IS NULL OR s [=] '' THEN
    fail('missing', NULL, OLD.%1$I);
    RETURN OLD;
  END IF;
  IF s [~] '^[1-9][0-9]{0,18}$' THEN
    IF s::pg_catalog.numeric [<=] 9223372036854775807 THEN t := s::pg_catalog.int8; END IF;
  END IF;
  IF t IS NULL THEN fail('malformed', NULL, OLD.%1$I);
  ELSIF (t {newer} OLD.%1$I) IS NOT TRUE THEN fail('stale', t, OLD.%1$I);
  ELSIF ({issued t}) IS NOT TRUE THEN fail('unissued', t, OLD.%1$I);
  END IF;
  RETURN OLD;
END $body$),
      ('truncate', NULL, true, $body$
BEGIN
  fail('truncate', NULL, NULL);
  RETURN NULL;
END $body$),
      ('late', NULL, true, $body$
BEGIN
  {typed NEW}
  IF TG_OP [=] 'UPDATE' THEN fail('late', NEW.%1$I, OLD.%1$I); ELSE fail('late', NEW.%1$I, NULL); END IF;
  RETURN NULL;
END $body$)) b(kind, mode, definer, body),
      LATERAL (
        SELECT b.kind AS suffix, b.definer, replace(replace(replace(replace(b.body, '{setting}', ''), '{attested}', CASE b.kind
                 WHEN 'insert' THEN $body$ AND pg_catalog.current_setting('fencing.mark' [||] pg_catalog.pg_trigger_depth()::pg_catalog.text, true) [=] NEW.%1$I::pg_catalog.text$body$ ELSE '' END),
               '{unattested', '{none'), '{changed}', $body$ELSE fail('late', NEW.%1$I, NULL);
  $body$) AS body
        UNION ALL
        SELECT b.kind || '_attested', b.definer, replace(replace(replace(b.body, '{changed}', ''), '{setting}', E'DECLARE\n  s pg_catalog.text;\n'),
               '{attested}', ' AND pg_catalog.current_setting(%4$L, true) [=] NEW.%1$I::pg_catalog.text')
         WHERE b.body LIKE '%{attested}%') k
     WHERE b.mode IS NULL OR b.mode = wall_functions.mode
  LOOP
    CONTINUE WHEN to_regprocedure(format('fencing.%I()', v_prefix || f.suffix)) IS NOT NULL;
    v_body := regexp_replace(f.body, '\{none [^}]*\}', '', 'g');
    v_body := regexp_replace(v_body, '\{unattested ([^}]*)\}', $body$ELSE
    s := pg_catalog.current_setting(%4$L, true);
    IF s IS NULL OR s [=] '' THEN fail('unattested', NEW.%1$I, \1); ELSE fail('other', NEW.%1$I, \1); END IF;
  $body$, 'g');
    v_body := regexp_replace(v_body, '\{typed (\w+)\}', $body$IF pg_catalog.pg_typeof(\1.%1$I) [<>] 'pg_catalog.int8'::pg_catalog.regtype THEN
    fail('type', NULL, NULL);
    RETURN \1;
  END IF;$body$, 'g');
    v_body := regexp_replace(v_body, '\{issued ([^}]*)\}', CASE WHEN v_seq IS NULL THEN 'true'
              ELSE '\1 [<=] pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)' END, 'g');
    v_body := replace(v_body, '{noted}', $body$pg_catalog.set_config('fencing.mark' [||] pg_catalog.pg_trigger_depth()::pg_catalog.text, NEW.%1$I::pg_catalog.text, true)$body$);
    v_body := replace(v_body, '{newer}', CASE wall_functions.mode WHEN 'strict' THEN '[>]' ELSE '[>=]' END);
    v_body := regexp_replace(v_body, '\[([<>=~|]+)\]', 'OPERATOR(pg_catalog.\1)', 'g');
    v_body := regexp_replace(v_body, 'fail\((''\w+''), ', 'PERFORM fencing.fail(\1, TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %1$L, %2$L, %3$L, ', 'g');
    EXECUTE format('CREATE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql %s AS %L', v_prefix || f.suffix,
                   CASE WHEN f.definer THEN 'SECURITY DEFINER' ELSE '' END,
                   format(v_body, token_column, wall_functions.mode, resource, fencing.setting_name(resource), v_seq));
  END LOOP;
  -- only who may register may put a trigger on them, which takes EXECUTE; firing it takes nothing
  FOR v_sql IN
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= v_prefix::name AND p.proname < (v_prefix || '~')::name AND a.grantee <> p.proowner
       AND NOT EXISTS (SELECT 1 FROM pg_proc w, aclexplode(w.proacl) b WHERE w.oid = 'fencing.wall(regclass, text)'::regprocedure AND b.grantee = a.grantee AND a.grantee <> 0)
    UNION ALL
    SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, pg_get_userbyid(a.grantee))
      FROM pg_proc p, pg_proc w, aclexplode(w.proacl) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname >= v_prefix::name AND p.proname < (v_prefix || '~')::name
       AND NOT EXISTS (SELECT 1 FROM aclexplode(p.proacl) b WHERE b.grantee = a.grantee)
       AND w.oid = 'fencing.wall(regclass, text)'::regprocedure AND a.grantee NOT IN (0, w.proowner)
  LOOP
    EXECUTE v_sql;
  END LOOP;
  RETURN v_prefix;
END $$;
-- +goose StatementEnd

-- as 00009 has it
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fencing.seal_function(token_column name, resource text, seal_resource text, seal_column name, typ regtype) RETURNS text
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

-- the functions that triggers run, as above
-- +goose StatementBegin
DO $$
DECLARE
  c_owner CONSTANT oid := (SELECT p.proowner FROM pg_proc p WHERE p.oid = 'fencing.wall_functions(name, text, text, regclass)'::regprocedure);
  f       record;
  v_new   text;
BEGIN
  FOR f IN
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^(wall|seal)_[0-9a-f]{16}_' AND p.pronargs = 0 AND p.proowner = c_owner
  LOOP
    EXECUTE format('ALTER FUNCTION fencing.%I() RENAME TO %I', f.proname, 'was_' || f.proname);
  END LOOP;
  PERFORM fencing.wall_functions(r.token_column, r.mode, r.resource, r.issued_by) FROM fencing.registry r
   WHERE r.wall_level <> 'off'
     AND (r.issued_by IS NULL OR (SELECT has_sequence_privilege(c_owner, c.oid, 'SELECT, USAGE') FROM pg_class c WHERE c.oid = r.issued_by AND c.relkind = 'S'));
  PERFORM fencing.seal_function(r.token_column, r.resource, r.seal_resource, r.seal_column, a.atttypid::regtype)
    FROM fencing.registry r LEFT JOIN pg_attribute a ON a.attrelid = r.relid AND a.attname = r.seal_column AND a.attnum > 0 AND NOT a.attisdropped
   WHERE r.wall_level <> 'off' AND (r.seal_resource IS NOT NULL OR a.attname IS NOT NULL);
  FOR f IN
    SELECT p.prosecdef, substr(p.proname, 5) AS name FROM pg_proc p
     WHERE p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^was_(wall|seal)_[0-9a-f]{16}_' AND p.pronargs = 0 AND p.proowner = c_owner
  LOOP
    SELECT p.prosrc INTO v_new FROM pg_proc p WHERE p.oid = to_regprocedure(format('fencing.%I()', f.name));
    IF FOUND THEN
      EXECUTE format('DROP FUNCTION fencing.%I()', f.name);
    END IF;
    EXECUTE format('ALTER FUNCTION fencing.%I() RENAME TO %I', 'was_' || f.name, f.name);
    IF v_new IS NOT NULL THEN
      EXECUTE format('CREATE OR REPLACE FUNCTION fencing.%I() RETURNS trigger LANGUAGE plpgsql %s AS %L', f.name,
                     CASE WHEN f.prosecdef THEN 'SECURITY DEFINER' ELSE '' END, v_new);
    END IF;
  END LOOP;
  PERFORM fencing.wall_sweep(), fencing.seal_sweep();
END $$;
-- +goose StatementEnd

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('fencing.saved_search_path'), true);
