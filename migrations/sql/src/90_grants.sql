-- Nobody but the owner starts with any right: neither PUBLIC nor whom ALTER DEFAULT PRIVILEGES names.
DO $$
DECLARE
  v_revoke text;
BEGIN
  FOR v_revoke IN
    SELECT format('REVOKE ALL ON %s %s FROM %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_class c, aclexplode(c.relacl) a
     WHERE c.relnamespace = 'fencing'::regnamespace AND a.grantee <> c.relowner
    UNION
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     WHERE p.pronamespace = 'fencing'::regnamespace AND a.grantee <> p.proowner
    UNION
    SELECT format('REVOKE CREATE ON SCHEMA fencing FROM %s',
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
      FROM pg_namespace n, aclexplode(n.nspacl) a
     WHERE n.nspname = 'fencing' AND a.grantee <> n.nspowner AND a.privilege_type = 'CREATE'
  LOOP
    EXECUTE v_revoke;
  END LOOP;
END $$;

-- The parts of the doctor only read, as who calls them. Who may run fencing.doctor() may run them with it, but for the part about seals. They
-- compare trigger functions with the bodies of which these are made. The driver asks which functions are allowed as whatever role it has.
DO $$
DECLARE
  v_part regprocedure;
BEGIN
  FOR v_part IN
    SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace
        AND (starts_with(p.proname, 'doctor_') AND p.proname <> 'doctor_seal' OR p.proname IN ('registered_above', 'setting_name', 'allowed_functions', 'kept_columns') OR p.proname ~ '_bodies$')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', v_part);
  END LOOP;
END $$;
