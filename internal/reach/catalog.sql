-- What the catalog says of the protected tables in $1, a JSON list of {Schema, Name}, as one JSON document.
-- Relations and routines go by their oids. What the routines do, routine.go reads.
--
-- Everything is looked up from the protected tables by indexes, one relation after the other, so that the cost grows with what
-- is found and not with the database. The planner can't know how little that is: its guesses, multiplied by each step of a
-- recursion, would bring in the JIT compiler. So each set is handed on as an array, between bounds that every oid is
-- within: the planner takes that for a row or two, and goes by the indexes.
WITH RECURSIVE
given AS MATERIALIZED (
  SELECT (w.ordinality - 1)::pg_catalog.int4 AS i, (w.t->>'Schema')::pg_catalog.name AS schema, (w.t->>'Name')::pg_catalog.name AS name
    FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) WITH ORDINALITY w (t, ordinality)),
held AS MATERIALIZED (
  SELECT g.i, c.oid
    FROM given g
    JOIN pg_catalog.pg_namespace n ON n.nspname = g.schema
    JOIN pg_catalog.pg_class c ON c.relname = g.name AND c.relnamespace = n.oid AND c.relkind IN ('r', 'p')),
-- the protected tables with their partitions and children
down AS (
  SELECT h.oid FROM pg_catalog.unnest(ARRAY(SELECT oid FROM held)) h (oid) WHERE h.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.oid
    FROM down d
   CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = d.oid)) e (oid)
   WHERE e.oid BETWEEN '1' AND '4294967295'),
-- and their ancestors
family AS (
  SELECT s.oid FROM pg_catalog.unnest(ARRAY(SELECT oid FROM down)) s (oid) WHERE s.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.oid
    FROM family f
   CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = f.oid)) e (oid)
   WHERE e.oid BETWEEN '1' AND '4294967295'),
user_rules AS MATERIALIZED (
  SELECT r.oid, r.rulename AS name, r.ev_class AS rel, r.ev_type AS event, r.ev_enabled <> 'D' AS fires, r.is_instead AS instead, pg_catalog.pg_get_ruledef(r.oid) AS src
    FROM pg_catalog.pg_rewrite r WHERE r.rulename <> '_RETURN' AND r.oid >= 16384),
-- the names in a foreign table's options, and its own: by one of them it may lead back here, over whatever server
foreign_names AS MATERIALIZED (
  SELECT DISTINCT t.ftrelid AS rel, s.name::pg_catalog.name AS name
    FROM pg_catalog.pg_foreign_table t
    JOIN pg_catalog.pg_class c ON c.oid = t.ftrelid
   CROSS JOIN LATERAL (
     SELECT c.relname::text WHERE NOT COALESCE(t.ftoptions::text ~* 'table(_?name)?=', false)
     UNION ALL
     SELECT w.name
       FROM pg_catalog.unnest(t.ftoptions) o (text)
      CROSS JOIN LATERAL (SELECT pg_catalog.substr(o.text, pg_catalog.strpos(o.text, '=') + 1) AS value) v
      CROSS JOIN LATERAL (SELECT v.value UNION ALL SELECT w FROM pg_catalog.regexp_split_to_table(v.value || ' ' || pg_catalog.lower(v.value), E'[^[:alnum:]_$]+') w) w (name)) s (name)
   WHERE s.name <> ''),
foreign_tables AS MATERIALIZED (
  SELECT DISTINCT c.oid AS base, f.rel
    FROM foreign_names f
    JOIN pg_catalog.pg_class c ON c.relname = f.name AND c.oid <> f.rel AND c.relkind IN ('r', 'p', 'v', 'f', 'm')),
-- what a write of which may be one of these; tables with rules among them, since what these write is told later
up AS (
  SELECT s.oid FROM pg_catalog.unnest(ARRAY(SELECT oid FROM down UNION SELECT rel FROM user_rules)) s (oid) WHERE s.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.oid
    FROM up u
   CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(
     SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = u.oid
     UNION ALL SELECT k.confrelid FROM pg_catalog.pg_constraint k WHERE k.conrelid = u.oid AND k.contype = 'f'
     UNION ALL SELECT f.rel FROM foreign_tables f WHERE f.base = u.oid
     UNION ALL SELECT r.ev_class
       FROM pg_catalog.pg_depend d
       JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.rulename = '_RETURN' AND r.ev_class <> u.oid
       JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
      WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass)) e (oid)
   WHERE e.oid BETWEEN '1' AND '4294967295'),
-- Functions that run the SQL which they are given, or set the sequence which they are given: the server's, and those of extensions
-- and others in C. Any may have been made once more under another name, and so may set_config, which texts and bodies are searched
-- for by its own. The language is looked at first, as it is a column: a source may have to be decompressed.
builtin_runners AS MATERIALIZED (
  SELECT p.oid, p.prosrc, p.proname = 'setval' AND EXISTS (SELECT FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) w WHERE w->>'Sequence' <> '') AS is_alone, p.proname = 'set_config' AS is_setting FROM pg_catalog.pg_proc p
   WHERE p.oid < 16384 AND (p.proname = ANY ('{sql_functions}'::pg_catalog.name[]) OR p.proname = 'set_config') AND NOT (p.proname = 'ts_rewrite' AND p.pronargs = 3)),
runners AS MATERIALIZED (
  SELECT oid, false AS renamed, is_alone FROM builtin_runners WHERE NOT is_setting
  UNION ALL
  SELECT p.oid, NOT f.is_known AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'),
         p.proname ~ '^dblink' OR p.prosrc ~ '^dblink' OR p.prosrc IN (SELECT prosrc FROM builtin_runners WHERE is_alone)
    FROM pg_catalog.pg_proc p
   CROSS JOIN LATERAL (SELECT p.proname = ANY ('{sql_functions}'::pg_catalog.name[]) OR p.proname ~ '^dblink' AS is_known) f
   WHERE p.oid >= 16384 AND p.prolang = ANY (ARRAY(SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname IN ('c', 'internal')))
     AND (f.is_known OR p.prosrc ~ '^(dblink|crosstab|connectby|xpath_table)' OR p.prosrc IN (SELECT prosrc FROM builtin_runners))),
-- an aggregate stands as the calls of its functions
aggregates AS MATERIALIZED (
  SELECT a.aggfnoid::pg_catalog.oid AS oid, pg_catalog.bool_or(p.oid IN (SELECT oid FROM runners)) AS is_given, pg_catalog.string_agg(pg_catalog.format('%I.%I(', n.nspname, p.proname), ' ') AS calls
    FROM pg_catalog.pg_aggregate a
   CROSS JOIN LATERAL (VALUES (a.aggtransfn), (a.aggfinalfn), (a.aggcombinefn), (a.aggserialfn), (a.aggdeserialfn), (a.aggmtransfn), (a.aggminvtransfn), (a.aggmfinalfn)) f (oid)
    JOIN pg_catalog.pg_proc p ON p.oid = f.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
   WHERE a.aggfnoid::pg_catalog.oid >= 16384
   GROUP BY a.aggfnoid),
-- The functions of schema fencing that aren't its own, and those of its own that are called where a trigger of theirs isn't fired:
-- those that an application calls may be.
others_within AS MATERIALIZED (
  SELECT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
   WHERE p.oid >= 16384 AND n.nspname = 'fencing' AND p.proname !~ '^(wall|tomb|seal)_[0-9a-f]{16}_'
   GROUP BY p.proname HAVING pg_catalog.count(*) > 1 OR p.proname <> ALL ('{fencing_functions}'::pg_catalog.name[])),
own_functions AS MATERIALIZED (
  SELECT p.oid, p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
   WHERE p.oid >= 16384 AND n.nspname = 'fencing' AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
     AND p.proname <> ALL ('{fencing_calls}'::pg_catalog.name[]) AND p.proname NOT IN (SELECT proname FROM others_within)),
routines AS MATERIALIZED (
  SELECT p.oid, p.proname, n.nspname,
         CASE WHEN a.oid IS NULL AND l.lanname IN ('c', 'internal') OR a.is_given THEN 'given' ELSE l.lanname END AS lanname,
         CASE WHEN a.oid IS NOT NULL THEN a.calls WHEN p.prosqlbody IS NOT NULL THEN pg_catalog.pg_get_function_sqlbody(p.oid) ELSE p.prosrc END AS src,
         p.proargnames, p.proconfig, pg_catalog.pg_get_expr(p.proargdefaults, 0) AS defaults
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    LEFT JOIN aggregates a ON a.oid = p.oid
   WHERE p.oid >= 16384 AND (n.nspname <> 'fencing' OR p.proname IN (SELECT proname FROM others_within))
     AND (l.lanname NOT IN ('c', 'internal') OR a.oid IS NOT NULL OR p.oid IN (SELECT oid FROM runners WHERE renamed))
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e')),
-- What runs them, by pg_depend, and the partitions of a table, whose keys these check. Routines are followed by what calls them
-- elsewhere, and so are none of their own here.
runs AS (
  SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid AS class, k.oid, k.oid AS fn
    FROM pg_catalog.unnest(ARRAY(SELECT oid FROM routines UNION ALL SELECT oid FROM own_functions)) k (oid) WHERE k.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.class, e.oid, r.fn
    FROM runs r
   CROSS JOIN LATERAL (
     SELECT d.classid, d.objid
       FROM pg_catalog.pg_depend d
      WHERE r.class = 'pg_catalog.pg_proc'::pg_catalog.regclass AND r.oid = r.fn AND d.refclassid = r.class AND d.refobjid = r.oid AND d.objid >= 16384
     UNION ALL
     SELECT r.class, i.oid
       FROM pg_catalog.unnest(ARRAY(
         SELECT i.inhrelid FROM pg_catalog.pg_inherits i
          WHERE r.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.inhparent = r.oid
            AND EXISTS (SELECT FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = r.oid))) i (oid)) e (class, oid)
   WHERE e.oid BETWEEN '1' AND '4294967295'),
-- What belongs to no relation runs them where no statement shows it, or where a statement has many ways to say so: whatever
-- sorts, groups or joins values may go by an operator class, and values are converted by casts, types and domains.
unseen AS MATERIALIZED (
  SELECT DISTINCT r.class, r.oid, r.fn
    FROM runs r
    LEFT JOIN pg_catalog.pg_constraint c ON r.class = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND c.oid = r.oid
   WHERE c.contypid <> 0
      OR r.class NOT IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_class'::pg_catalog.regclass, 'pg_catalog.pg_constraint'::pg_catalog.regclass,
                         'pg_catalog.pg_attrdef'::pg_catalog.regclass, 'pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_trigger'::pg_catalog.regclass,
                         'pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, 'pg_catalog.pg_event_trigger'::pg_catalog.regclass)),
-- The expressions that call a function which runs what it is given. Those of the server have no dependencies, so they are looked
-- for in the trees, if there is something that they could reach. Those that write by themselves need nothing else.
calling AS MATERIALIZED (
  SELECT ':funcid (' || pg_catalog.string_agg(r.oid::text, '|') || ') ' AS pattern
    FROM runners r WHERE r.is_alone OR EXISTS (SELECT FROM routines) OR EXISTS (SELECT FROM own_functions)),
-- rules that call one, and views over system catalogs, on most of which there are no dependencies: in one pass over the trees
telling AS MATERIALIZED (
  SELECT w.oid, w.ev_class, w.rulename, w.ev_action::text ~ s.catalogs AS is_system, w.ev_action::text || ' ' || w.ev_qual::text ~ s.pattern AS is_calling
    FROM (SELECT c.pattern, c.catalogs, '(' || pg_catalog.concat_ws('|', c.catalogs, c.pattern) || ')' AS either
            FROM (SELECT (SELECT pattern FROM calling), E':relid ([1-9]\\d{0,3}|1[0-5]\\d{3}|16[0-2]\\d\\d|163[0-7]\\d|1638[0-3]) ') c (pattern, catalogs)) s
    JOIN pg_catalog.pg_rewrite w ON w.oid >= 16384 AND (w.ev_action::text ~ s.either OR w.ev_qual::text ~ s.pattern)),
expressions AS MATERIALIZED (
  SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AS class, a.oid, a.adrelid AS rel, pg_catalog.pg_get_expr(a.adbin, a.adrelid) AS src
    FROM calling s JOIN pg_catalog.pg_attrdef a ON a.adbin::text ~ s.pattern
  UNION ALL
  SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, c.oid, c.conrelid, pg_catalog.pg_get_expr(c.conbin, c.conrelid)
    FROM calling s JOIN pg_catalog.pg_constraint c ON c.oid >= 16384 AND c.conbin::text ~ s.pattern
  UNION ALL
  SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, t.tgrelid, pg_catalog.pg_get_triggerdef(t.oid)
    FROM calling s JOIN pg_catalog.pg_trigger t ON t.tgqual::text ~ s.pattern
  UNION ALL
  SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, p.polrelid, pg_catalog.concat_ws(';', pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
    FROM calling s JOIN pg_catalog.pg_policy p ON p.polqual::text ~ s.pattern OR p.polwithcheck::text ~ s.pattern
  UNION ALL
  SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid, w.ev_class, pg_catalog.pg_get_ruledef(w.oid)
    FROM telling w WHERE w.is_calling
  UNION ALL
  SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, 0, pg_catalog.pg_get_expr(t.typdefaultbin, 0)
    FROM calling s JOIN pg_catalog.pg_type t ON t.oid >= 16384 AND t.typdefaultbin::text ~ s.pattern
  UNION ALL
  SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, 0, NULL
    FROM pg_catalog.pg_operator o WHERE o.oid >= 16384 AND o.oprcode::pg_catalog.oid IN (SELECT oid FROM runners)
  UNION ALL
  SELECT 'pg_catalog.pg_cast'::pg_catalog.regclass, c.oid, 0, NULL
    FROM pg_catalog.pg_cast c WHERE c.oid >= 16384 AND c.castfunc IN (SELECT oid FROM runners)),
-- tables whose defaults, checks, policies, index or partition expressions or statistics call one. Defaults do for rows that are
-- written; the others may also when the table is read or planned for. One join each: of outer joins in a row the planner tries
-- every order, and most of what reading the catalog of a small database costs is planning.
uses AS MATERIALIZED (
  SELECT a.adrelid AS rel, r.fn, '' AS event FROM runs r JOIN pg_catalog.pg_attrdef a ON r.class = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND a.oid = r.oid
  UNION
  SELECT c.conrelid, r.fn, 'READ' FROM runs r JOIN pg_catalog.pg_constraint c ON r.class = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND c.oid = r.oid AND c.conrelid <> 0
  UNION
  SELECT p.polrelid, r.fn, CASE p.polcmd WHEN 'a' THEN '' WHEN 'd' THEN 'DELETE' ELSE 'READ' END
    FROM runs r JOIN pg_catalog.pg_policy p ON r.class = 'pg_catalog.pg_policy'::pg_catalog.regclass AND p.oid = r.oid
  UNION
  SELECT i.indrelid, r.fn, 'READ' FROM runs r JOIN pg_catalog.pg_index i ON r.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.indexrelid = r.oid
  UNION
  SELECT s.stxrelid, r.fn, 'READ' FROM runs r JOIN pg_catalog.pg_statistic_ext s ON r.class = 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass AND s.oid = r.oid
  UNION
  SELECT k.oid, r.fn, 'READ' FROM runs r JOIN pg_catalog.pg_class k ON r.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND k.oid = r.oid
   AND k.relkind IN ('r', 'p', 'f')),
-- triggers and the conditions of triggers, and what rules run, a view's when it is read
fired AS MATERIALIZED (
  SELECT t.tgrelid AS rel, r.fn, t.tgtype AS type, t.tgenabled <> 'D' AS fires, t.tgfoid <> r.fn AS condition
    FROM runs r JOIN pg_catalog.pg_trigger t ON r.class = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND t.oid = r.oid
   WHERE NOT t.tgisinternal),
reads AS MATERIALIZED (
  SELECT DISTINCT w.ev_class AS rel, r.fn, CASE w.rulename WHEN '_RETURN' THEN '' ELSE w.ev_type::text END AS event, w.ev_enabled <> 'D' AS fires
    FROM runs r JOIN pg_catalog.pg_rewrite w ON r.class = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND w.oid = r.oid),
-- up, from these as well
reach AS (
  SELECT s.oid FROM pg_catalog.unnest(ARRAY(SELECT oid FROM up UNION SELECT rel FROM uses UNION SELECT rel FROM fired UNION SELECT rel FROM reads UNION SELECT rel FROM expressions WHERE rel <> 0)) s (oid) WHERE s.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.oid
    FROM reach u
   CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(
     SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = u.oid
     UNION ALL SELECT k.confrelid FROM pg_catalog.pg_constraint k WHERE k.conrelid = u.oid AND k.contype = 'f'
     UNION ALL SELECT f.rel FROM foreign_tables f WHERE f.base = u.oid
     UNION ALL SELECT r.ev_class
       FROM pg_catalog.pg_depend d
       JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.rulename = '_RETURN' AND r.ev_class <> u.oid
       JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
      WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass)) e (oid)
   WHERE e.oid BETWEEN '1' AND '4294967295'),
reached AS MATERIALIZED (
  SELECT u.oid FROM pg_catalog.unnest(ARRAY(SELECT oid FROM reach)) u (oid) WHERE u.oid BETWEEN '1' AND '4294967295'),
-- views over these, materialized ones too: they run what reading these runs, when they are refreshed
views AS MATERIALIZED (
  SELECT DISTINCT u.oid AS base, v.oid AS view, v.relkind AS kind
    FROM reached u
    JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
    JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.rulename = '_RETURN' AND r.ev_class <> u.oid
    JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind IN ('v', 'm')),
keys AS MATERIALIZED (
  SELECT k.* FROM reached u JOIN pg_catalog.pg_constraint k ON k.conrelid = u.oid AND k.contype = 'f'),
triggers AS MATERIALIZED (
  SELECT t.oid, t.tgrelid, t.tgname, t.tgfoid, t.tgtype, t.tgenabled <> 'D' AS fires, t.tgargs, p.proname, n.nspname,
         (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)) AS columns
    FROM reached u
    JOIN pg_catalog.pg_trigger t ON t.tgrelid = u.oid AND NOT t.tgisinternal
    JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace),
-- Views over system catalogs and over schema fencing; foreign tables whose options
-- name such a schema; and what shares rows with a table of schema fencing, is referenced by one, or is there and isn't its own.
system_views AS (
  SELECT s.oid
    FROM pg_catalog.unnest(ARRAY(
      SELECT w.ev_class FROM telling w WHERE w.rulename = '_RETURN' AND w.is_system
      UNION SELECT e.oid
        FROM pg_catalog.unnest(ARRAY(SELECT d.objid FROM pg_catalog.pg_namespace n
                                       JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid = n.oid AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                                      WHERE n.nspname = 'fencing')) o (oid)
       CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(
         SELECT r.ev_class
           FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.rulename = '_RETURN' AND r.ev_class <> o.oid
          WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = o.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
         UNION ALL SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = o.oid AND c.relname <> ALL ('{fencing_relations}'::pg_catalog.name[]) AND c.relname !~ '^goose_'
         UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = o.oid
         UNION ALL SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = o.oid
         UNION ALL SELECT k.confrelid FROM pg_catalog.pg_constraint k WHERE k.conrelid = o.oid AND k.contype = 'f')) e (oid)
       WHERE o.oid BETWEEN '1' AND '4294967295' AND e.oid BETWEEN '1' AND '4294967295'
      UNION SELECT f.rel FROM foreign_names f WHERE f.name IN ('fencing', 'pg_catalog', 'information_schema'))) s (oid)
   WHERE s.oid BETWEEN '1' AND '4294967295'
  UNION
  SELECT e.oid
    FROM system_views u
   CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(
     SELECT f.rel FROM foreign_tables f WHERE f.base = u.oid
     UNION ALL SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = u.oid
     UNION ALL SELECT k.confrelid FROM pg_catalog.pg_constraint k WHERE k.conrelid = u.oid AND k.contype = 'f'
     UNION ALL SELECT r.ev_class
       FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.rulename = '_RETURN' AND r.ev_class <> u.oid
      WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass)) e (oid)
   WHERE e.oid BETWEEN '1' AND '4294967295')
SELECT pg_catalog.json_build_object(
  'held', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i, oid) ORDER BY i) FROM held),
  'relations', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname,
                   'isPartitioned', c.relkind = 'p',
                   'columns', CASE WHEN c.relkind IN ('v', 'f') THEN (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) END) ORDER BY c.oid)
                  FROM pg_catalog.unnest(ARRAY(SELECT oid FROM reached UNION SELECT view FROM views)) s (oid)
                  JOIN pg_catalog.pg_class c USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm') AND s.oid BETWEEN '1' AND '4294967295'),
  'inherits', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(i.inhrelid, i.inhparent) ORDER BY i.inhrelid, i.inhseqno) FROM reached u JOIN pg_catalog.pg_inherits i ON i.inhrelid = u.oid),
  'views', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(base, view) ORDER BY base, view) FROM views WHERE kind = 'v'),
  'stored', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(base, view) ORDER BY base, view) FROM views WHERE kind = 'm'),
  'foreign', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(f.base, f.rel) ORDER BY f.base, f.rel) FROM foreign_tables f WHERE f.base IN (SELECT oid FROM reached)),
  'keys', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('child', k.conrelid, 'parent', k.confrelid, 'delete', k.confdeltype, 'update', k.confupdtype, 'isInherited', k.conparentid <> 0,
              'from', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
              'to', (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))) ORDER BY k.oid)
             FROM keys k),
  -- a column by whose change a generated one changes: the dependency is the column's or its expression's, by the version
  'generated', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_object('relation', g.attrelid, 'column', g.attname, 'from', b.attname))
                  FROM pg_catalog.unnest(ARRAY(SELECT DISTINCT confrelid FROM keys WHERE confupdtype IN ('c', 'n', 'd'))) k (oid)
                  JOIN pg_catalog.pg_attribute g ON g.attrelid = k.oid AND g.attnum > 0 AND g.attgenerated <> ''
                  JOIN pg_catalog.pg_attrdef x ON x.adrelid = g.attrelid AND x.adnum = g.attnum
                 CROSS JOIN LATERAL (
                   SELECT d.refobjsubid FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid = x.oid
                      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = g.attrelid
                   UNION ALL
                   SELECT d.refobjsubid FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = g.attrelid AND d.objsubid = g.attnum
                      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = g.attrelid) e
                  JOIN pg_catalog.pg_attribute b ON b.attrelid = g.attrelid AND b.attnum = e.refobjsubid AND b.attnum > 0 AND b.attnum <> g.attnum),
  'triggers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', t.tgrelid, 'trigger', t.tgname, 'function', t.tgfoid, 'schema', t.nspname, 'name', t.proname,
                 'type', t.tgtype, 'fires', t.fires, 'columns', t.columns, 'args', pg_catalog.encode(t.tgargs, 'escape')) ORDER BY t.oid)
                 FROM triggers t),
  -- what the functions of row triggers do before a row is written
  'changers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', p.oid, 'name', p.proname, 'language', l.lanname, 'source', p.prosrc) ORDER BY p.oid)
                 FROM pg_catalog.unnest(ARRAY(SELECT DISTINCT tgfoid FROM triggers WHERE tgtype & 3 = 3 AND tgtype & 20 <> 0 AND nspname <> 'fencing')) f (oid)
                 JOIN pg_catalog.pg_proc p USING (oid) JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE f.oid BETWEEN '1' AND '4294967295'),
  'conditions', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'function', fn, 'type', type, 'fires', fires) ORDER BY rel, fn, type) FROM fired WHERE condition),
  'rules', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'name', name, 'event', event, 'source', src, 'fires', fires, 'instead', instead) ORDER BY rel, event, src) FROM user_rules),
  'reads', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'function', fn, 'event', event, 'fires', fires) ORDER BY rel, fn, event) FROM reads),
  'calls', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(oid, fn) ORDER BY oid, fn) FROM runs WHERE class = 'pg_catalog.pg_proc'::pg_catalog.regclass AND oid <> fn),
  'eventtriggers', (SELECT pg_catalog.json_agg(evtfoid ORDER BY oid) FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' AND evtevent <> 'login'),
  'uses', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', rel, 'function', fn, 'event', event) ORDER BY rel, fn, event) FROM uses),
  'unseen', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('kind', i.type, 'name', i.identity, 'function', h.fn) ORDER BY h.class, h.oid, h.fn)
               FROM unseen h CROSS JOIN LATERAL pg_catalog.pg_identify_object(h.class, h.oid, 0) i),
  'routines', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', oid, 'schema', nspname, 'name', proname, 'language', lanname, 'source', src, 'defaults', defaults,
                  'signature', oid::pg_catalog.regprocedure::text, 'argnames', proargnames, 'settings', proconfig) ORDER BY oid) FROM routines),
  'own', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', oid, 'schema', 'fencing', 'name', proname) ORDER BY oid) FROM own_functions WHERE oid IN (SELECT fn FROM runs WHERE oid <> fn)),
  'expressions', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('relation', e.rel, 'kind', i.type, 'name', i.identity, 'source', e.src) ORDER BY e.class, e.oid)
                    FROM expressions e CROSS JOIN LATERAL pg_catalog.pg_identify_object(e.class, e.oid, 0) i),
  -- relations of the name of a protected table, or of one by which it is reached; which of them these are, the closure tells
  'namesakes', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname, 'istable', c.relkind IN ('r', 'p')) ORDER BY c.oid)
                  FROM pg_catalog.unnest(ARRAY(SELECT name FROM given UNION SELECT c.relname FROM family f JOIN pg_catalog.pg_class c USING (oid)
                                               UNION SELECT c.relname FROM pg_catalog.unnest(ARRAY(SELECT oid FROM reach)) r (oid) JOIN pg_catalog.pg_class c USING (oid))) s (name)
                  JOIN pg_catalog.pg_class c ON c.relname = s.name AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND c.relpersistence <> 't'
                  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname NOT IN ('pg_catalog', 'information_schema')),
  'systemviews', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname) ORDER BY c.oid)
                    FROM pg_catalog.unnest(ARRAY(SELECT oid FROM system_views)) s (oid)
                    JOIN pg_catalog.pg_class c ON c.oid = s.oid AND c.relkind IN ('r', 'p', 'v', 'f') AND c.oid >= 16384
                    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND (n.nspname <> 'fencing' OR c.relname <> ALL ('{fencing_relations}'::pg_catalog.name[])) WHERE s.oid BETWEEN '1' AND '4294967295'),
  -- which a search_path with pg_catalog behind could put in the place of the built-in ones: those of the same types
  'comparisons', EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oprname IN ('<', '<=', '>', '>=') AND o.oprnamespace <> 'pg_catalog'::pg_catalog.regnamespace
                            AND o.oprleft IN (20, 21, 23) AND o.oprright IN (20, 21, 23)),
  -- the columns that sequences of tokens belong to, and what takes such a column along when it is dropped: an ancestor of its table,
  -- a relation whose row type a column is of
  'owners', (WITH RECURSIVE owned AS (
               SELECT s.schema, s.name, d.refclassid AS class, d.refobjid AS oid, a.attname AS owning
                 FROM (SELECT 'fencing' AS schema, 'write_epoch' AS name UNION SELECT w->>'SequenceSchema', w->>'Sequence' FROM pg_catalog.json_array_elements($1::text::pg_catalog.json) w) s
                 JOIN pg_catalog.pg_namespace n ON n.nspname = s.schema::pg_catalog.name
                 JOIN pg_catalog.pg_class c ON c.relname = s.name::pg_catalog.name AND c.relnamespace = n.oid AND c.relkind = 'S'
                 JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.refclassid = d.classid AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
               UNION
               SELECT o.schema, o.name, e.class, e.oid, o.owning
                 FROM owned o
                CROSS JOIN LATERAL (SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d WHERE d.classid = o.class AND d.objid = o.oid AND d.refobjid >= 16384) e (class, oid))
             SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'column', o.owning, 'sequence', pg_catalog.json_build_object('schema', o.schema, 'name', o.name)) ORDER BY o.schema, o.name, c.oid)
               FROM owned o
               JOIN pg_catalog.pg_class c ON o.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.oid = o.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace),
  -- by which two rows could be told apart otherwise than by all of their values
  'equals', EXISTS (SELECT FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_type t ON t.oid = o.oprleft
                     WHERE o.oid >= 16384 AND o.oprname = '=' AND (t.typtype IN ('c', 'p') OR t.oid IN (20, 21, 23))),
  -- functions that the registry allows as they are now
  'allowed', (SELECT pg_catalog.json_agg(a.oid) FROM ({allowed}) a (oid)),
  -- the types of users that the columns of the protected tables are of, and what these are made of
  'types', (WITH RECURSIVE used AS (
              SELECT a.atttypid AS oid
                FROM pg_catalog.unnest(ARRAY(SELECT oid FROM down)) d (oid)
                JOIN pg_catalog.pg_attribute a ON a.attrelid = d.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
               WHERE d.oid BETWEEN '1' AND '4294967295'
              UNION
              SELECT e.oid
                FROM used u
                JOIN pg_catalog.pg_type t ON t.oid = u.oid
               CROSS JOIN LATERAL pg_catalog.unnest(ARRAY(
                 SELECT t.typelem UNION ALL SELECT t.typbasetype
                 UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
                 UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid OR r.rngmultitypid = t.oid)) e (oid)
               WHERE e.oid >= 16384)
            SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', n.nspname, 'name', t.typname) ORDER BY t.oid)
              FROM used u JOIN pg_catalog.pg_type t USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace),
  'epoch', EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fencing' AND c.relname = 'write_epoch')
)::text
