-- What the catalog says of the protected tables in $1, a JSON list of {Schema, Name}, as one JSON document.
-- Relations and routines go by their oids. What the routines do, routine.go reads.
WITH RECURSIVE
held AS (
  SELECT (w.ordinality - 1)::pg_catalog.int4 AS i, c.oid
    FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) WITH ORDINALITY w (t, ordinality)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.t->>'Schema'
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t->>'Name' AND c.relkind IN ('r', 'p')),
-- the protected tables with their partitions and children
down AS (
  SELECT oid FROM held
  UNION
  SELECT i.inhrelid FROM down d JOIN pg_catalog.pg_inherits i ON i.inhparent = d.oid),
views AS MATERIALIZED (
  SELECT DISTINCT d.refobjid AS base, r.ev_class AS view
    FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
                               AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> r.ev_class
   WHERE r.rulename = '_RETURN' AND r.oid >= 16384),
-- a write of upper may be one of lower
edges AS MATERIALIZED (
  SELECT base AS lower, view AS upper FROM views
  UNION ALL SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits
  UNION ALL SELECT conrelid, confrelid FROM pg_catalog.pg_constraint WHERE contype = 'f'),
user_rules AS MATERIALIZED (
  SELECT r.oid, r.ev_class AS rel, r.ev_type AS event, r.ev_enabled <> 'D' AS fires, pg_catalog.pg_get_ruledef(r.oid) AS src
    FROM pg_catalog.pg_rewrite r WHERE r.rulename <> '_RETURN' AND r.oid >= 16384),
-- tables with rules among them, since what these write is told later
up AS (
  SELECT oid FROM (SELECT oid FROM down UNION SELECT rel FROM user_rules) s
  UNION
  SELECT e.upper FROM up u JOIN edges e ON e.lower = u.oid),
-- an aggregate stands as the calls of its functions; defaults of arguments stand behind the body
routines AS MATERIALIZED (
  SELECT p.oid, p.proname, n.nspname, l.lanname,
         pg_catalog.concat_ws(E'\n', CASE WHEN a.aggfnoid IS NOT NULL THEN
           (SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I(', fn.nspname, f.proname), ' ')
              FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace fn ON fn.oid = f.pronamespace
             WHERE f.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn))
           WHEN p.prosqlbody IS NOT NULL THEN pg_catalog.pg_get_function_sqlbody(p.oid)
           ELSE p.prosrc END, ';' || pg_catalog.pg_get_expr(p.proargdefaults, 0)) AS src
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
   WHERE p.oid >= 16384 AND n.nspname <> 'fencing'
     AND (l.lanname NOT IN ('c', 'internal') OR a.aggfnoid IS NOT NULL)
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e')),
-- none matter unless one names such a relation, or may by an escape or a trigger's arguments, and may write; then any may, by
-- what it calls
known AS MATERIALIZED (
  SELECT r.* FROM routines r
   WHERE EXISTS (SELECT FROM (SELECT pg_catalog.lower(r.src COLLATE "C") AS src FROM routines r) o
                  WHERE o.src ~ E'\\m(insert|update|delete|merge|truncate|copy|execute|alter|drop|create|refresh)\\M|\\\\'
                    AND o.src ~ (SELECT E'u&["'']|\\me''[^'']*\\\\|' || pg_catalog.string_agg(DISTINCT pg_catalog.regexp_replace(pg_catalog.lower(c.relname::text COLLATE "C"), E'([!-#%-/:-@\\[-^`{-~$])', E'\\\\\\1', 'g'), '|')
                                   FROM up JOIN pg_catalog.pg_class c USING (oid)))
      OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgnargs > 0 AND NOT t.tgisinternal AND t.tgfoid >= 16384)),
-- what an object runs: by pg_depend, and a cast's type, a constraint's domain and a row's type by their columns
needs AS MATERIALIZED (
  SELECT d.classid AS class, d.objid AS oid, d.refclassid AS refclass, d.refobjid AS ref
    FROM pg_catalog.pg_depend d
   WHERE d.objid >= 16384 AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass)
     AND d.classid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass,
                       'pg_catalog.pg_class'::pg_catalog.regclass, 'pg_catalog.pg_constraint'::pg_catalog.regclass, 'pg_catalog.pg_attrdef'::pg_catalog.regclass,
                       'pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_trigger'::pg_catalog.regclass, 'pg_catalog.pg_rewrite'::pg_catalog.regclass)
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, c.casttarget, 'pg_catalog.pg_proc'::pg_catalog.regclass, c.castfunc
    FROM pg_catalog.pg_cast c WHERE c.castfunc >= 16384 AND c.casttarget >= 16384
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, c.contypid, d.refclassid, d.refobjid
    FROM pg_catalog.pg_constraint c
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid
   WHERE c.contypid <> 0
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, c.reltype, 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind IN ('c', 'r', 'p', 'f', 'v', 'm')
   WHERE a.atttypid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped),
-- routines are followed by what calls them elsewhere, and so are none of their own here
runs AS (
  SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid AS class, oid, oid AS fn FROM known
  UNION
  SELECT n.class, n.oid, r.fn FROM runs r JOIN needs n ON n.refclass = r.class AND n.ref = r.oid
   WHERE r.class <> 'pg_catalog.pg_proc'::pg_catalog.regclass OR r.oid = r.fn),
-- a value of a type with a cast to a built-in one runs nothing until it is cast; between two built-in ones the target tells
types AS MATERIALIZED (
  SELECT oid, fn FROM runs WHERE class = 'pg_catalog.pg_type'::pg_catalog.regclass
  UNION
  SELECT t.oid, c.castfunc FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_type t ON CASE WHEN c.castsource >= 16384 THEN c.castsource ELSE c.casttarget END IN (t.oid, t.typelem)
   WHERE c.casttarget < 16384 AND c.castfunc IN (SELECT oid FROM known)),
-- tables whose defaults, checks, policies, index or partition expressions or columns call one
uses AS MATERIALIZED (
  SELECT DISTINCT COALESCE(a.adrelid, c.conrelid, p.polrelid, i.indrelid, k.oid) AS rel, r.fn
    FROM runs r
    LEFT JOIN pg_catalog.pg_attrdef a ON r.class = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND a.oid = r.oid
    LEFT JOIN pg_catalog.pg_constraint c ON r.class = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND c.oid = r.oid AND c.conrelid <> 0
    LEFT JOIN pg_catalog.pg_policy p ON r.class = 'pg_catalog.pg_policy'::pg_catalog.regclass AND p.oid = r.oid
    LEFT JOIN pg_catalog.pg_index i ON r.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.indexrelid = r.oid
    LEFT JOIN pg_catalog.pg_class k ON r.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND k.oid = r.oid AND k.relkind IN ('r', 'p', 'f')
   WHERE COALESCE(a.adrelid, c.conrelid, p.polrelid, i.indrelid, k.oid) IS NOT NULL),
-- conditions of triggers and of rules, and what a view runs when it is read
conditions AS MATERIALIZED (
  SELECT t.tgrelid AS rel, r.fn, t.tgtype AS type, t.tgenabled <> 'D' AS fires
    FROM runs r JOIN pg_catalog.pg_trigger t ON r.class = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND t.oid = r.oid
   WHERE t.tgfoid <> r.fn AND NOT t.tgisinternal),
reads AS MATERIALIZED (
  SELECT DISTINCT w.ev_class AS rel, r.fn, CASE w.rulename WHEN '_RETURN' THEN '' ELSE w.ev_type::text END AS event, w.ev_enabled <> 'D' AS fires
    FROM runs r JOIN pg_catalog.pg_rewrite w ON r.class = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND w.oid = r.oid),
reach AS (
  SELECT oid FROM (SELECT oid FROM up
                   UNION SELECT rel FROM uses UNION SELECT rel FROM conditions UNION SELECT rel FROM reads
                   UNION SELECT t.tgrelid FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal AND t.tgfoid IN (SELECT oid FROM known)) s
  UNION
  SELECT e.upper FROM reach r JOIN edges e ON e.lower = r.oid),
-- materialized views run what the views they read do, when they are refreshed
stored AS MATERIALIZED (
  SELECT DISTINCT d.refobjid AS base, r.ev_class AS view
    FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'm'
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
                               AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> r.ev_class
   WHERE r.oid >= 16384 AND d.refobjid IN (SELECT view FROM views))
SELECT pg_catalog.json_build_object(
  'held', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i, oid) ORDER BY i) FROM held),
  'relations', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname,
                   'columns', CASE c.relkind WHEN 'v' THEN (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) END) ORDER BY c.oid)
                  FROM (SELECT oid FROM reach UNION SELECT view FROM stored) s JOIN pg_catalog.pg_class c USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm')),
  'inherits', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i.inhrelid, i.inhparent) ORDER BY i.inhrelid, i.inhseqno) FROM pg_catalog.pg_inherits i WHERE i.inhrelid IN (SELECT oid FROM reach)),
  'views', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(base, view) ORDER BY base, view) FROM views WHERE base IN (SELECT oid FROM reach)),
  'stored', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(base, view) ORDER BY base, view) FROM stored),
  'keys', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('child', k.conrelid, 'parent', k.confrelid, 'delete', k.confdeltype, 'update', k.confupdtype,
              'from', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
              'to', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))) ORDER BY k.oid)
             FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid IN (SELECT oid FROM reach)),
  'triggers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', t.tgrelid, 'function', t.tgfoid, 'schema', n.nspname, 'name', p.proname,
                 'type', t.tgtype, 'fires', t.tgenabled <> 'D', 'args', pg_catalog.encode(t.tgargs, 'escape')) ORDER BY t.oid)
                 FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT oid FROM reach)),
  'conditions', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'function', fn, 'type', type, 'fires', fires) ORDER BY rel, fn, type) FROM conditions),
  'rules', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'event', event, 'source', src, 'fires', fires) ORDER BY rel, event, src) FROM user_rules),
  'reads', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'function', fn, 'event', event, 'fires', fires) ORDER BY rel, fn, event) FROM reads),
  'calls', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(oid, fn) ORDER BY oid, fn) FROM runs WHERE class = 'pg_catalog.pg_proc'::pg_catalog.regclass AND oid <> fn),
  'eventtriggers', (SELECT pg_catalog.json_agg(evtfoid ORDER BY oid) FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' AND evtevent <> 'login'),
  'uses', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(rel, fn) ORDER BY rel, fn) FROM uses),
  'routines', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', oid, 'schema', nspname, 'name', proname, 'language', lanname, 'source', src) ORDER BY oid) FROM known),
  'operators', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', o.oprname, 'function', r.fn) ORDER BY o.oid, r.fn)
                  FROM runs r JOIN pg_catalog.pg_operator o ON r.class = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = r.oid
                  JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace),
  'types', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', t.typname, 'function', y.fn, 'row', t.typrelid <> 0 AND c.relkind <> 'c') ORDER BY t.oid, y.fn)
              FROM types y JOIN pg_catalog.pg_type t USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid),
  'epoch', EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing' AND c.relname = 'write_epoch')
)::text
