-- The sequences that bound tokens.
CREATE FUNCTION fencing.doctor_bounds() RETURNS oid[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT array_agg(DISTINCT s.oid)
      FROM (SELECT to_regclass('fencing.write_epoch')::oid AS oid WHERE to_regclass('fencing.write_epoch') IS NOT NULL
            UNION SELECT g.issued_by::oid FROM fencing.registry g WHERE g.issued_by IS NOT NULL) s);
END $$;

-- Whom the owner gave what a role has from another one: to take it from that role takes it from all who have it from there.
CREATE FUNCTION fencing.doctor_given(acl aclitem[], grantee oid, grantor oid, owner oid) RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  FOR v_step IN 1..cardinality(acl) LOOP
    EXIT WHEN grantor = owner OR grantor IS NULL;
    grantee := grantor;
    grantor := (SELECT a.grantor FROM aclexplode(acl) a WHERE a.grantee = doctor_given.grantee AND a.is_grantable ORDER BY a.grantor <> owner, a.grantor LIMIT 1);
  END LOOP;
  RETURN grantee;
END $$;

-- Sequences, each that bounds tokens, and what tokens are drawn from.
CREATE FUNCTION fencing.doctor_sequences(family jsonb, apps jsonb)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  c_schema CONSTANT oid := 'fencing'::regnamespace;
  c_owner  CONSTANT oid := fencing.doctor_owner();
  c_epoch  CONSTANT oid := to_regclass('fencing.write_epoch');
  c_seqs   CONSTANT oid[] := fencing.doctor_bounds();
  c_instead CONSTANT text := 'the start of the server stands in for what it tells: tokens jump far ahead at each start, too';
  c_nothing CONSTANT text := 'a promotion or a restore may go unnoticed, and tokens be given out again';
  v_now    record;
BEGIN
  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', 'sequence fencing.write_epoch', 'it is gone',
      'no token can be drawn, and writes to tables with a wall fail',
         -- the first draw from another sequence jumps above all that was given out
         format('BEGIN; CREATE SEQUENCE fencing.write_epoch AS bigint MINVALUE 1 NO CYCLE CACHE 1; ALTER SEQUENCE fencing.write_epoch OWNER TO %I; '
                'ALTER TABLE fencing.registry ALTER COLUMN issued_by SET DEFAULT ''fencing.write_epoch''; SELECT fencing.next_token(); COMMIT',
                    pg_get_userbyid(c_owner))
         -- who reads the registry read the sequence, too
         || coalesce((SELECT format('; GRANT SELECT ON SEQUENCE fencing.write_epoch TO %s',
             string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, ', '))
                        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass('fencing.registry')
                            AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner HAVING count(*) > 0), '')
   WHERE c_epoch IS NULL;

  RETURN QUERY
  SELECT 'error', 'D301 sequence-missing', format('%I.%I', n.nspname, t.relname),
         format('the sequence that bounds its tokens, %s, is gone', g.issued_by::oid),
         CASE g.wall_level WHEN 'off' THEN 'the wall can''t be put on' ELSE 'every write is refused' END,
         CASE WHEN c_epoch IS NULL THEN 'run what mends sequence fencing.write_epoch, and then ' ELSE '' END
         || CASE g.wall_level WHEN 'off' THEN '' ELSE fencing.doctor_mend_first(g.relid) END
         || fencing.doctor_register(format('%I.%I', n.nspname, t.relname), g.mode, g.token_column, g.resource, g.issued_by)
    -- D101, D102 and D103 have what is no table any more
    FROM fencing.registry g JOIN pg_class t ON t.oid = g.relid AND t.relkind IN ('r', 'p') AND NOT t.relispartition
    JOIN pg_namespace n ON n.oid = t.relnamespace WHERE g.issued_by IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = g.issued_by AND c.relkind = 'S');

  RETURN QUERY
  SELECT x.severity, x.code, format('sequence %I.%I', n.nspname, c.relname), x.problem, x.consequence,
      replace(x.remedy, '%s', format('%I.%I', n.nspname, c.relname))
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT 'error', 'D302 sequence-cache', format('it has CACHE %s', s.seqcache),
          'sessions keep tokens back and use them later, when larger ones have been given out',
             'ALTER SEQUENCE %s CACHE 1' WHERE s.seqcache > 1
      UNION ALL SELECT 'error', 'D303 sequence-cycle', 'it starts again at its end', 'tokens are given out a second time',
          'ALTER SEQUENCE %s NO CYCLE'
          WHERE s.seqcycle
      UNION ALL SELECT 'warning', 'D304 sequence-owned', format('it belongs to a column of %s', d.refobjid::regclass),
          'it is dropped with that column',
             CASE d.deptype WHEN 'a' THEN 'ALTER SEQUENCE %s OWNED BY NONE'
               ELSE 'take another sequence, since an identity column keeps its own: CREATE SEQUENCE ... with a START above the last value of %s, and register the tables with that' END
        FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass
            AND d.refobjsubid > 0
            AND d.deptype IN ('a', 'i')
      UNION ALL SELECT 'error', 'D306 sequence-direction', format('it counts by %s from %s on', s.seqincrement, s.seqmin),
          'tokens must be positive and rise',
             -- one that counted down has given out what it started from: the next one is above that
             CASE WHEN s.seqincrement < 1 THEN format('ALTER SEQUENCE %%s INCREMENT BY 1 MINVALUE 1 NO MAXVALUE START 1 RESTART %s', greatest(1, s.seqstart + 1, v.last + 1))
               ELSE 'ALTER SEQUENCE %s MINVALUE 1' || CASE WHEN s.seqstart < 1 THEN ' START 1' ELSE '' END || CASE WHEN v.last < 1 THEN ' RESTART 1' ELSE '' END END
        FROM (SELECT CASE WHEN has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN coalesce(pg_sequence_last_value(c.oid), s.seqstart - 1) END) v(last)
       WHERE s.seqincrement < 1 OR s.seqmin < 1
      UNION ALL SELECT 'warning', 'D308 sequence-small', format('it ends at %s', s.seqmax),
          'no token can be drawn after that, and nothing written',
             'ALTER SEQUENCE %s AS bigint NO MAXVALUE' WHERE s.seqmax < 9223372036854775807 AND s.seqincrement > 0  -- D306 has the others
      UNION ALL SELECT 'error', 'D309 sequence-unlogged', 'it is unlogged',
          'a crash starts it again, and tokens are given out a second time',
          'ALTER SEQUENCE %s SET LOGGED'
       WHERE c.relpersistence = 'u'
      UNION ALL SELECT 'warning', 'D314 sequence-near-end', format('it is at %s', pg_sequence_last_value(c.oid)),
             'there is no room for the jump of tokens after a restore, a promotion or a copy of the database: none can be drawn then',
             'stop all writers; SELECT pg_catalog.setval(''%s'', ...), to a value above every token that was given out; fencing.repair for rows with a larger one'
       WHERE CASE WHEN c.oid = c_epoch AND has_sequence_privilege(c.oid, 'SELECT, USAGE')
           THEN pg_sequence_last_value(c.oid) >= 9223372032559808512 END
      UNION ALL SELECT 'error', 'D310 sequence-unreadable',
          format('role %I, which owns the wall''s functions, can''t read it', pg_get_userbyid(c_owner)),
             'every write to a table with a wall is refused', format('GRANT SELECT ON SEQUENCE %%s TO %I', pg_get_userbyid(c_owner))
       WHERE NOT has_sequence_privilege(c_owner, c.oid, 'SELECT')
    ) x(severity, code, problem, consequence, remedy)
   WHERE s.seqrelid = ANY (c_seqs);

  -- a lock service draws from a sequence of its own with nextval
  RETURN QUERY
  SELECT CASE WHEN bool_or(a.privilege_type = 'UPDATE') OR c.oid = c_epoch THEN 'error' ELSE 'warning' END, 'D305 sequence-rights',
      format('sequence %I.%I',
      n.nspname, c.relname),
         format('role %s has %s on it', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
             string_agg(DISTINCT a.privilege_type, ' and ')),
         CASE WHEN bool_or(a.privilege_type = 'UPDATE') THEN 'setval issues any token, or gives old ones out again'
             ELSE 'nextval issues tokens that a crash gives out again' END,
         fencing.doctor_revoke('USAGE, UPDATE', format('SEQUENCE %I.%I', n.nspname, c.relname), fencing.doctor_given(c.relacl, a.grantee, a.grantor, c.relowner),
             c.relowner, c.relowner)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
   WHERE c.oid = ANY (c_seqs) AND a.grantee <> c.relowner AND a.privilege_type IN ('USAGE', 'UPDATE')
   GROUP BY c.oid, n.nspname, c.relname, c.relowner, c.relacl, a.grantee, a.grantor;

  -- servers run by others may keep them back
  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', 'function fencing.next_token()',
      format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner),
      f.oid::regprocedure),
         'no token can be drawn', format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['fencing.incarnation_now()',  -- and PostgreSQL 17's has a fourth argument
           'pg_logical_emit_message(boolean, text, text)', 'pg_logical_emit_message(boolean, text, text, boolean)']) u(name),
         LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.next_token()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  RETURN QUERY
  SELECT 'error', 'D311 tokens-not-drawn', format('function %s', p.oid::regprocedure),
      format('role %I, which owns it, may not use schema fencing', pg_get_userbyid(p.proowner)),
         'it fails whoever calls it', format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, pg_get_userbyid(c_owner))
    FROM pg_proc p WHERE p.pronamespace = c_schema AND p.proname IN ('next_token', 'incarnation_now', 'take', 'renew', 'release')
     AND p.proowner <> c_owner AND NOT has_schema_privilege(p.proowner, c_schema, 'USAGE');

  -- what incarnation_now() may not run, then what it may run and doesn't work here
  RETURN QUERY
  SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()',
      format('role %I, which owns it, may not run %s', pg_get_userbyid(p.proowner), f.oid::regprocedure),
         CASE WHEN has_function_privilege(p.proowner, to_regprocedure('pg_postmaster_start_time()')::oid, 'EXECUTE') THEN c_instead
             ELSE c_nothing END,
         format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, pg_get_userbyid(p.proowner))
    FROM pg_proc p, unnest(ARRAY['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']) u(name),
        LATERAL (SELECT to_regprocedure(u.name)::oid) f(oid)
   WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE');

  -- it runs as its owner: without rights there, or without the sequence, which are other findings, it fails
  IF c_epoch IS NOT NULL AND NOT pg_is_in_recovery()
     AND EXISTS (SELECT FROM pg_proc p WHERE p.oid = to_regprocedure('fencing.incarnation_now()')
         AND has_function_privilege(p.oid, 'EXECUTE')
                    AND has_schema_privilege(p.proowner, c_schema, 'USAGE')) THEN
    v_now := fencing.incarnation_now();
    RETURN QUERY
    SELECT 'warning', 'D313 incarnation-unread', 'function fencing.incarnation_now()', format('%s gives an error on this server', u.name),
           CASE WHEN 'pg_postmaster_start_time()' = ANY (v_now.unread) THEN c_nothing
               ELSE c_instead END, format('look at the error of SELECT %s', u.name)
      FROM pg_proc p, unnest(v_now.unread) u(name)
     WHERE p.oid = to_regprocedure('fencing.incarnation_now()') AND u.name <> 'pg_postmaster_start_time()'
       AND NOT EXISTS (SELECT 1 FROM regexp_matches(u.name, 'pg_[a-z_]+', 'g') m(names), pg_proc f
                        WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.proname = m.names[1]
                            AND NOT has_function_privilege(p.proowner, f.oid, 'EXECUTE'));
    IF has_table_privilege('fencing.incarnation', 'SELECT') THEN
      RETURN QUERY
      SELECT 'info', 'D312 incarnation-other', 'sequence fencing.write_epoch',
          'since tokens were last drawn the server, the database or the sequence has become another, as by a restore',
             'the next token is far above all before', 'SELECT fencing.next_token()'
       WHERE (SELECT count(*) = 1 AND bool_and(i.tli = v_now.tli AND i.sysid = v_now.sysid AND i.dbid = v_now.dbid AND i.seqid = v_now.seqid
           AND CASE WHEN has_sequence_privilege(c_epoch, 'SELECT, USAGE') THEN coalesce(pg_sequence_last_value(c_epoch), 0) >= i.floor ELSE true END)
                FROM fencing.incarnation i) IS NOT TRUE;
    END IF;
  END IF;
END $$;

-- The tokens in the tables, compared with their sequences: where an index gives them at once, and, if scan says so, elsewhere, too.
CREATE FUNCTION fencing.doctor_tokens(family jsonb, scan boolean)
RETURNS TABLE (severity text, code text, object text, problem text, consequence text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on SET jit = off
SET max_parallel_workers_per_gather = 0 AS $$
#variable_conflict use_column
DECLARE
  v_last   bigint;
  v_max    bigint;
  v_min    bigint;
  c_epoch  CONSTANT regclass := to_regclass('fencing.write_epoch');
  r        record;
BEGIN
  -- what fencing itself knows to have been given out
  IF c_epoch IS NOT NULL AND has_sequence_privilege(c_epoch, 'SELECT, USAGE') THEN
    FOR r IN SELECT u.name, u.sql FROM (VALUES
        ('fencing.lease', 'SELECT max(x.token) FROM fencing.lease x'),
        ('fencing.epoch', 'SELECT max(x.token) FROM fencing.epoch x'),
        ('fencing.tombstone', 'SELECT max(x.token) FROM fencing.tombstone x JOIN fencing.registry g ON g.relid = x.relid AND g.issued_by = ''fencing.write_epoch''::regclass')) u(name, sql)
      WHERE has_table_privilege(u.name, 'SELECT')
    LOOP
      EXECUTE r.sql INTO v_max;
      v_last := coalesce(pg_sequence_last_value(c_epoch), 0);
      IF v_max > v_last THEN
        RETURN QUERY SELECT 'error', 'D307 sequence-behind', 'sequence fencing.write_epoch', format('it is at %s, and %s has token %s', v_last, r.name, v_max),
          'tokens are given out a second time: the sequence was put back, or the token forged',
          CASE WHEN v_max < 9223372032559808512
            THEN format('SELECT pg_catalog.setval(s, %s) FROM pg_catalog.to_regclass(''fencing.write_epoch'') s WHERE coalesce(pg_catalog.pg_sequence_last_value(s), 0) < %1$s', v_max)
            ELSE format('look at where it comes from, since none so large is ever drawn, and correct its row: UPDATE %s SET token = ... WHERE token = %s', r.name, v_max) END;
      END IF;
    END LOOP;
  END IF;
  FOR r IN
    SELECT f.*, CASE WHEN c.oid IS NOT NULL THEN format('%I.%I', n.nspname, c.relname) END AS seq
      FROM jsonb_to_recordset(family) AS f(root oid, oid oid, name text, col name, wall text, issued oid, first text, unsettled boolean)
      JOIN fencing.registry g ON g.relid = f.root  -- whoever calls it, no other relation is read
      LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = f.issued AND c.relkind = 'S'
      JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = f.col AND a.atttypid = 'int8'::regtype AND NOT a.attisdropped
     WHERE f.root = f.oid AND has_column_privilege(f.oid, a.attnum, 'SELECT') AND has_schema_privilege((SELECT relnamespace FROM pg_class t
         WHERE t.oid = f.oid), 'USAGE')
       AND (f.issued IS NULL OR c.oid IS NOT NULL AND has_sequence_privilege(c.oid, 'SELECT, USAGE'))
       AND (scan OR EXISTS (SELECT 1 FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am m ON m.oid = ic.relam
                             WHERE i.indrelid = f.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
                                 AND m.amname = 'btree')
                AND NOT EXISTS (SELECT 1 FROM pg_inherits h JOIN pg_class hc ON hc.oid = h.inhrelid WHERE h.inhparent = f.oid
                    AND NOT hc.relispartition))
  LOOP
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I DESC NULLS LAST LIMIT 1', r.col, r.oid::regclass) INTO v_max;
    EXECUTE format('SELECT %1$I FROM %2$s ORDER BY %1$I NULLS LAST LIMIT 1', r.col, r.oid::regclass) INTO v_min;
    IF v_min < 0 AND NOT r.unsettled THEN
      RETURN QUERY SELECT 'warning', 'D113 token-negative', r.name, format('a row has token %s, which none ever is', v_min),
        'it was written before the table was registered, or past the wall; the row is held for one in the middle of a write',
        CASE r.wall WHEN 'off' THEN x.fix ELSE r.first || fencing.doctor_without_wall(r.name, x.fix) END
        FROM (SELECT format('UPDATE %s SET %I = 0 WHERE %2$I < 0', r.name, r.col)) x(fix);
    END IF;
    CONTINUE WHEN r.seq IS NULL;
    v_last := coalesce(pg_sequence_last_value(r.issued), 0);  -- after the rows: it only rises
    IF v_max > v_last THEN
      RETURN QUERY SELECT 'error', 'D307 sequence-behind', r.name,
          format('a row has token %s, and sequence %s is at %s', v_max, r.seq, v_last),
        'nobody can write that row: it was written past the wall, or the sequence was put back',
        format('SELECT fencing.repair(%L, ''{"key column": ...}'', 0, ''why'') if the token was forged, else SELECT pg_catalog.setval(%L, %s)',
            r.name, r.seq,
            v_max);
    END IF;
  END LOOP;
END $$;
