-- A number that changes with whatever catalog.sql reads: each row of the catalogs that a user's object has, by its oid and
-- the transaction that wrote it. Relations go by their names, since much else about them changes all the time, and columns by
-- their types, names and order. Temporary relations count where one has what runs code or shares rows with others. A seed, because the hash of one number would be that of many pairs added up.
SELECT pg_catalog.concat_ws('-',
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_proc WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_trigger WHERE oid >= 16384 AND NOT tgisinternal),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_rewrite WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_constraint WHERE oid >= 16384 AND contype <> 'n'),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_operator WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_cast WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_attrdef WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_policy WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_type WHERE oid >= 16384 AND (typtype IN ('d', 'e', 'r', 'm') OR typtype = 'b' AND typinput <> 'pg_catalog.array_in'::pg_catalog.regproc)),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_event_trigger WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_amproc WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_amop WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_statistic_ext WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_foreign_data_wrapper WHERE oid >= 16384),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, ftrelid::pg_catalog.int8)) FROM pg_catalog.pg_foreign_table),
  (SELECT pg_catalog.sum(pg_catalog.hashtextextended(a.attname::text, ((a.attrelid::pg_catalog.int8 << 32) + a.atttypid::pg_catalog.int8 * 2 + a.attnotnull::pg_catalog.int4) # (a.attnum::pg_catalog.int8 << 40)))
     FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    WHERE c.oid >= 16384 AND a.attrelid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND (c.relpersistence <> 't' OR c.relhasrules OR c.relhastriggers)),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(inhrelid::pg_catalog.int8, inhparent::pg_catalog.int8)) FROM pg_catalog.pg_inherits),
  (SELECT pg_catalog.sum(pg_catalog.hashtextextended(relname::text, (relnamespace::pg_catalog.int8 << 32) + oid::pg_catalog.int8)) FROM pg_catalog.pg_class
    WHERE oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'i', 'I', 'S', 'c')
      AND (relpersistence <> 't' OR relchecks > 0 OR relhasrules OR relhastriggers OR relrowsecurity
           OR EXISTS (SELECT FROM pg_catalog.pg_attrdef a WHERE a.adrelid = pg_class.oid)
           OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = pg_class.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
           OR EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = pg_class.oid)
           OR EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = pg_class.oid))),
  -- OWNED BY writes a sequence's row anew
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, seqrelid::pg_catalog.int8)) FROM pg_catalog.pg_sequence),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(objid::pg_catalog.int8, refobjid::pg_catalog.int8)) FROM pg_catalog.pg_depend
    WHERE classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND deptype = 'e'),
  (SELECT pg_catalog.sum(pg_catalog.hashint8extended(xmin::text::pg_catalog.int8, oid::pg_catalog.int8)) FROM pg_catalog.pg_language),
  (SELECT pg_catalog.sum(pg_catalog.hashtextextended(nspname::text, oid::pg_catalog.int8)) FROM pg_catalog.pg_namespace WHERE oid >= 16384 AND nspname NOT LIKE 'pg\_t%'))
