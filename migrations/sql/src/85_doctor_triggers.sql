-- Triggers and rules of others on protected tables, and foreign keys. What a trigger's function may do is told by its text, without
-- comments and constants: set the token column by name, or NEW as a whole, and who writes in another language is trusted with nothing.
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
    LATERAL (SELECT format('"?new"?[[:space:]]*[.][[:space:]]*"?%s"?', regexp_replace(f.col, '[^[:alnum:]_]', '\\\&', 'g')) AS col,
                    '(^|;|[[:<:]](begin|then|else|loop)[[:>:]]|>>)[[:space:]]*' AS start,  -- of a statement: elsewhere = compares
                    '[[:<:]]into[[:space:]]+(strict[[:space:]]+)?([^[:space:],();]+[[:space:]]*,[[:space:]]*)*' AS into) e,
    LATERAL (SELECT CASE
               WHEN t.tgtype & 20 = 0 THEN NULL
               WHEN l.lanname = 'plpgsql' THEN CASE
                 WHEN b.text ~* (e.start || e.col || '[[:space:]]*:?=') OR b.text ~* (e.into || e.col) THEN 'column'
                 WHEN b.text ~* (e.start || '"?new"?[[:space:]]*:?=')
                     OR b.text ~* (e.into || '"?new"?[[:space:]]*([^.[:alnum:]_$[:space:]]|[[:space:]][^.]|$)') THEN 'row'
                 WHEN EXISTS (SELECT FROM regexp_matches(b.text, '[[:<:]]return[[:>:]]([^;]*)', 'gi') m(r)
                               WHERE lower(regexp_replace(m.r[1], '[[:space:]"]+', '', 'g')) NOT IN ('new', 'old', 'null', '(new)',
                                   'coalesce(new,old)', 'coalesce(old,new)')) THEN 'row' END
               WHEN n.names THEN 'column'
               WHEN l.lanname NOT IN ('internal', 'c') THEN 'row' END AS sets,
             b.text ~* '("?new"?[[:space:]]*:?=|[[:<:]]return[[:>:]][[:space:]]*[^;[:space:]]*[(])[^;]*[[:<:]]old[[:>:]]' AS of_old) z,
    LATERAL (SELECT z.sets, z.sets = 'row' AND z.of_old AND f.wall IN ('enforce', 'attested') AS refused) y,
    -- before the mark that notes the token, and after what EXCLUDED has of an upsert
    LATERAL (SELECT t.tgtype & 16 > 0 AND t.tgname < '!fencing_mark' COLLATE "C" OR t.tgtype & 4 > 0
        AND t.tgname < '!fencing_mark_insert' COLLATE "C" AS early,
                    t.tgtype & 4 > 0 AND t.tgname > '~fencing_insert' COLLATE "C" AS late) o,
    LATERAL (
      SELECT 'warning' AS severity, 'D601 trigger-after-check' AS code, 'it runs after the wall''s own check' AS problem,
          'what it changes in the row has been checked before, and is not again' AS consequence,
             format('ALTER TRIGGER %I ON %s RENAME TO ..., to a name before "~fencing"', t.tgname, f.name) AS remedy
       WHERE f.wall <> 'off' AND (t.tgtype & 16 > 0 AND t.tgname > '~fencing_update' COLLATE "C" OR t.tgtype & 4 > 0
           AND t.tgname > '~fencing_insert' COLLATE "C")
      UNION ALL
      SELECT 'error', 'D606 trigger-sets-token', format('its function %s sets %s', p.oid::regprocedure, CASE y.sets WHEN 'column'
          THEN format('the token column %I', f.col)
               ELSE format('the row as a whole, and with it the token column %I', f.col) END),
             CASE WHEN f.wall NOT IN ('enforce', 'attested')
                 THEN 'it can lower the token of a write, and a stale holder writes the row after that'
                  WHEN o.early THEN 'it can change the token of a write before the wall looks at it, and a stale write passes'
                  WHEN o.late THEN 'it can lower the token that an upsert takes from EXCLUDED after the wall has looked at it'
                  ELSE 'the wall refuses each write whose token it changes' END,
             CASE WHEN y.sets = 'row' AND f.wall NOT IN ('enforce', 'attested')
                  THEN format('have it set the columns that it means to set, or SELECT fencing.wall(%L, ''enforce''), which refuses a write whose token it changes, or DROP TRIGGER %I ON %s',
                      f.name, t.tgname, f.name)
                  -- between the marks and the check the wall refuses what it changes; in mode lease the token is marked there, which D603
                  -- is about
                  WHEN y.sets = 'row' AND (f.mode = 'strict' OR t.tgtype & 16 = 0)
                  THEN format('have it set the columns that it means to set, one by one, or ALTER TRIGGER %I ON %s RENAME TO %I, where the wall refuses a write whose token it changes',
                              t.tgname, f.name, left('!g_' || t.tgname, 60))
                  WHEN y.sets = 'row' THEN
                      format('have it set the columns that it means to set, one by one, or DROP TRIGGER %I ON %s; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                                                  t.tgname, f.name, p.oid)
                  ELSE format('have it leave that column alone, or DROP TRIGGER %I ON %s; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                      t.tgname, f.name, p.oid) END
        -- the wall's marks note the token before it, and compare with it afterwards
       WHERE y.sets = 'column' OR y.sets = 'row' AND (f.wall NOT IN ('enforce', 'attested') OR o.early OR o.late)
      UNION ALL
      SELECT 'warning', 'D602 trigger-token', format('its function %s has the token column %I in its text', p.oid::regprocedure, f.col),
             'it may set the token of the row, or take it away', format('look at it: SELECT pg_catalog.pg_get_functiondef(%s)', p.oid)
       WHERE t.tgtype & 20 > 0 AND n.names AND y.sets IS DISTINCT FROM 'column'
      UNION ALL
      SELECT CASE WHEN y.refused THEN 'error' ELSE 'warning' END, 'D603 trigger-sees-mark',
          format('it runs between the wall''s mark and its check, which keep %I negative for that time', f.col),
             CASE WHEN y.refused THEN format('its function %s makes the row of OLD, without the token of the write: each UPDATE is refused',
                 p.oid::regprocedure)
                  WHEN y.sets IS NULL THEN 'it sees that value, and could set one itself'
                      ELSE 'it sees that value, and each UPDATE whose token it changes is refused' END,
             -- before the mark a function that sets the token has a stale write pass
             CASE WHEN y.sets IS NULL THEN format('ALTER TRIGGER %I ON %s RENAME TO %I', t.tgname, f.name, left('!a_' || t.tgname, 60))
                  ELSE format('leave its name as it is, and have it set the columns that it means to set, one by one, or have it run AFTER; to look at it: SELECT pg_catalog.pg_get_functiondef(%s)',
                              p.oid) END
       WHERE f.wall <> 'off' AND f.mode = 'lease' AND t.tgtype & 16 > 0 AND t.tgname > '!fencing_mark' COLLATE "C"
           AND t.tgname < '~fencing_update' COLLATE "C"
         AND y.sets IS DISTINCT FROM 'column') x;  -- which D606 has

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
         'rows are changed under no token', format('SELECT fencing.wall(%L)', f.root_name)
    FROM jsonb_to_recordset(family) AS f(oid oid, name text, root_name text, wall text, covered boolean, unsettled boolean)
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
END $$;
