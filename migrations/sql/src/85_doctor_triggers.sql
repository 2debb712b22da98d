-- Triggers and rules of others on protected tables, and foreign keys.
--
-- What a trigger's function does is told by its words. It counts as one that sets the token unless its words show that it doesn't: where
-- the wall doesn't compare the token afterwards, a way that is not known here would have a stale write pass.

-- The words of a body in PL/pgSQL as the server tells them apart, in lower case and with a space between two: '' for a constant, # for the
-- token column. Null where that is not certain: with a dollar quote, a comment within a comment, a Unicode escape in a name, or a
-- backslash that, by standard_conforming_strings, may or may not continue a constant.
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

-- What the function of a trigger may set of a row: 'column', the token column; 'row', the row as a whole or what is not known; or null,
-- certainly neither. In another language than PL/pgSQL that is not known, but for functions of the server and its extensions.
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

-- Subscriptions that write protected tables.
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
