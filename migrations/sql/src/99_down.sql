-- All walls come off, and seals and tombstones with them: a change like any other for whoever follows the generation.
UPDATE fencing.registry SET wall_level = 'off' WHERE wall_level <> 'off';

-- The triggers that keep columns, and those that are left on tables which nothing in the registry stands for any more.
DO $$
DECLARE
  v_sql text;
BEGIN
  FOR v_sql IN
    SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgparentid = 0 AND p.pronamespace = 'fencing'::regnamespace AND p.proname ~ '^((wall|tomb|seal)_[0-9a-f]{16}_|kept_columns$)'
  LOOP
    EXECUTE v_sql;
  END LOOP;
END $$;

SELECT fencing.wall_sweep(), fencing.seal_sweep(), fencing.tombstone_sweep();
