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
up AS (
  SELECT oid FROM down
  UNION
  SELECT e.upper FROM up u JOIN edges e ON e.lower = u.oid),
user_rules AS MATERIALIZED (
  SELECT r.ev_class AS rel, r.ev_type AS event, pg_catalog.lower(pg_catalog.pg_get_ruledef(r.oid) COLLATE "C") AS src
    FROM pg_catalog.pg_rewrite r WHERE r.rulename <> '_RETURN' AND r.oid >= 16384 AND r.ev_enabled <> 'D'),
-- an aggregate stands as the calls of its functions
routines AS MATERIALIZED (
  SELECT p.oid, p.proname, n.nspname, l.lanname,
         pg_catalog.lower(CASE WHEN a.aggfnoid IS NOT NULL THEN
           (SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I(', fn.nspname, f.proname), ' ')
              FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace fn ON fn.oid = f.pronamespace
             WHERE f.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn))
           WHEN p.prosqlbody IS NOT NULL THEN pg_catalog.pg_get_function_sqlbody(p.oid)
           ELSE p.prosrc END COLLATE "C") AS src
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
   WHERE p.oid >= 16384 AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'fencing')
     AND (l.lanname NOT IN ('c', 'internal') OR a.aggfnoid IS NOT NULL)
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e')),
-- none matter unless one names such a relation and may write; then any may, by what it calls
known AS MATERIALIZED (
  SELECT r.* FROM routines r
   WHERE EXISTS (SELECT FROM routines o
                  WHERE o.src ~ E'\\m(insert|update|delete|merge|truncate|copy|execute|alter|drop|create)\\M'
                    AND o.src ~ (SELECT pg_catalog.string_agg(DISTINCT pg_catalog.regexp_replace(pg_catalog.lower(c.relname::text COLLATE "C"), E'([!-#%-/:-@\\[-^`{-~$])', E'\\\\\\1', 'g'), '|')
                                   FROM up JOIN pg_catalog.pg_class c USING (oid)))),
-- types whose conversion or constraint calls one, and those made of them
types AS (
  SELECT c.contypid AS oid, d.refobjid AS fn
    FROM pg_catalog.pg_constraint c
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid
                               AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid IN (SELECT oid FROM known)
   WHERE c.contypid <> 0
  UNION
  SELECT CASE WHEN c.casttarget >= 16384 THEN c.casttarget ELSE c.castsource END, c.castfunc FROM pg_catalog.pg_cast c WHERE c.castfunc IN (SELECT oid FROM known)
  UNION
  SELECT t.oid, f.fn FROM pg_catalog.pg_type t, LATERAL (VALUES (t.typinput::pg_catalog.oid), (t.typoutput), (t.typreceive), (t.typsend), (t.typmodin)) f (fn)
   WHERE t.oid >= 16384 AND f.fn IN (SELECT oid FROM known)
  UNION
  SELECT t.oid, s.fn FROM types s JOIN pg_catalog.pg_type t ON s.oid IN (t.typbasetype, t.typelem)),
-- tables whose defaults, checks, policies, index expressions or columns call one
uses AS (
  SELECT COALESCE(a.adrelid, c.conrelid, p.polrelid, i.indrelid) AS rel, d.refobjid AS fn
    FROM pg_catalog.pg_depend d
    LEFT JOIN pg_catalog.pg_attrdef a ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND a.oid = d.objid
    LEFT JOIN pg_catalog.pg_constraint c ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND c.oid = d.objid AND c.conrelid <> 0
    LEFT JOIN pg_catalog.pg_policy p ON d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND p.oid = d.objid
    LEFT JOIN pg_catalog.pg_index i ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.indexrelid = d.objid
   WHERE d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid IN (SELECT oid FROM known)
     AND COALESCE(a.adrelid, c.conrelid, p.polrelid, i.indrelid) IS NOT NULL
  UNION
  SELECT a.attrelid, t.fn FROM types t JOIN pg_catalog.pg_attribute a ON a.atttypid = t.oid AND NOT a.attisdropped
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'f')),
reach AS (
  SELECT oid FROM (SELECT oid FROM up
                   UNION SELECT rel FROM uses UNION SELECT rel FROM user_rules
                   UNION SELECT t.tgrelid FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal AND t.tgfoid IN (SELECT oid FROM known)) s
  UNION
  SELECT e.upper FROM reach r JOIN edges e ON e.lower = r.oid)
SELECT pg_catalog.json_build_object(
  'held', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i, oid) ORDER BY i) FROM held),
  'relations', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname,
                   'columns', CASE c.relkind WHEN 'v' THEN (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) END) ORDER BY c.oid)
                  FROM reach JOIN pg_catalog.pg_class c USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'f')),
  'inherits', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i.inhrelid, i.inhparent) ORDER BY i.inhrelid, i.inhseqno) FROM pg_catalog.pg_inherits i WHERE i.inhrelid IN (SELECT oid FROM reach)),
  'views', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(base, view) ORDER BY base, view) FROM views WHERE base IN (SELECT oid FROM reach)),
  'keys', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('child', k.conrelid, 'parent', k.confrelid, 'delete', k.confdeltype, 'update', k.confupdtype,
              'from', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
              'to', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))) ORDER BY k.oid)
             FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid IN (SELECT oid FROM reach)),
  'triggers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', t.tgrelid, 'function', t.tgfoid, 'schema', n.nspname, 'name', p.proname,
                 'type', t.tgtype, 'fires', t.tgenabled <> 'D') ORDER BY t.oid)
                 FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT oid FROM reach)),
  'rules', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'event', event, 'source', src) ORDER BY rel, event, src) FROM user_rules),
  'uses', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(rel, fn) ORDER BY rel, fn) FROM uses),
  'routines', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', oid, 'schema', nspname, 'name', proname, 'language', lanname, 'source', src) ORDER BY oid) FROM known),
  'operators', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', o.oprname, 'function', o.oprcode::pg_catalog.oid) ORDER BY o.oid)
                  FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace WHERE o.oprcode IN (SELECT oid FROM known)),
  'types', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', t.typname, 'function', y.fn) ORDER BY t.oid, y.fn)
              FROM types y JOIN pg_catalog.pg_type t USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace),
  'epoch', EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing' AND c.relname = 'write_epoch')
)::text
