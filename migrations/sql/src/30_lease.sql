-- Leases: fencing.lease, fencing.take(), fencing.renew(), fencing.release(). A lock with an end, whose token fences its holders.
--
-- A lease ends by the database's clock, read where it is compared, and its row stays when it is released. The token is drawn after
-- the row has been locked: one drawn before, by a taker that was slow to get there, would be smaller than its predecessor's.
--
-- A lease counts only after COMMIT, as its token does: call take in a transaction of its own, as autocommit does. In a longer one
-- other takers wait for its end; rolled back, nothing has happened but for a gap in the tokens. The functions are plain statements
-- that need no session and hold no lock afterwards, so any pooler does.
--
-- Known limits:
--   A step of the server's clock moves the end of every lease with it. Two may then hold a lease at once, and so they may while one
--   of them is paused past its end: that is what the tokens are compared for.
--   Failing over to a standby that lacks the last transactions forgets the leases taken in them. Tokens go on rising in any case.
--   Deleting a row of fencing.lease ends the lease without its holder's knowledge; its next renewal finds out, and says so.

CREATE TABLE fencing.lease (
  resource   text        PRIMARY KEY CHECK (length(resource) BETWEEN 1 AND 255),
  holder     text,  -- null when it has been released
  token      bigint      NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE TRIGGER refuse_driver BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON fencing.lease
  FOR EACH STATEMENT WHEN (current_setting('fencing.session', true) = 'driver') EXECUTE FUNCTION fencing.refuse_driver_write();

ALTER TABLE fencing.lease ENABLE ALWAYS TRIGGER refuse_driver;

COMMENT ON TABLE fencing.lease IS
    'Leases, held until expires_at or released (holder is null). Written by fencing.take(), renew() and release() only.';

-- in seconds: a day of an interval has 23 hours when the session's time zone says so
CREATE FUNCTION fencing.lease_ttl(ttl interval) RETURNS interval LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF ttl IS NULL OR ttl <= interval '0' OR ttl > interval '24 hours' THEN  -- infinite ones, of PostgreSQL 17, among them
    RAISE EXCEPTION 'fencing: a lease can''t last %', coalesce(ttl::text, 'for no time given')
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a time to live above 0 and up to 24 hours; for longer, renew the lease.';
  END IF;
  RETURN make_interval(secs => extract(epoch FROM ttl)::float8);
END $$;

COMMENT ON FUNCTION fencing.lease_ttl(interval) IS 'Checks the time to live of a lease.';

CREATE FUNCTION fencing.lease_wait(resource text) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock({{leaseLockKey "resource"}});
END $$;

COMMENT ON FUNCTION fencing.lease_wait(text) IS 'Has fencing.take() wait for the writers under a lease.';

CREATE FUNCTION fencing.take(resource text, ttl interval, holder text)
RETURNS TABLE (token bigint, held_by text, remaining interval) LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_ttl CONSTANT interval := fencing.lease_ttl(take.ttl);
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_former bigint;  -- the newest token that the lease is known to have had
BEGIN
  IF take.resource IS NULL OR length(take.resource) NOT BETWEEN 1 AND 255 OR take.holder IS NULL
     OR length(take.holder) NOT BETWEEN 1 AND 255 THEN
    RAISE EXCEPTION 'fencing: a lease needs a resource and a holder'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give names of 1 to 255 characters.';
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- this write is none of the driver's own: fencing.refuse_driver_write
  END IF;
  -- before a token is drawn: the first draw after a restore locks fencing.incarnation, for which all others wait
  PERFORM 1 FROM fencing.lease x WHERE x.resource = take.resource AND x.expires_at < clock_timestamp() FOR UPDATE;
  IF FOUND THEN
    PERFORM fencing.lease_wait(take.resource);
  END IF;
  -- a sequence that was set back, as by a restore of rows alone, would give out tokens for the second time
  SELECT greatest((SELECT x.token FROM fencing.lease x WHERE x.resource = take.resource),
                  (SELECT max(e.token) FROM fencing.epoch e WHERE e.resource = take.resource)) INTO v_former;
  IF v_former > coalesce(pg_sequence_last_value('fencing.write_epoch'::regclass), 0) THEN
    PERFORM 1 FROM fencing.lease x WHERE x.resource = take.resource FOR UPDATE;  -- the row first, as everybody who waits
    PERFORM fencing.lease_wait(take.resource);
    LOCK TABLE fencing.incarnation IN SHARE ROW EXCLUSIVE MODE;
    IF v_former > coalesce(pg_sequence_last_value('fencing.write_epoch'::regclass), 0) THEN
      DELETE FROM fencing.incarnation;  -- has tokens jump
    END IF;
  END IF;
  -- NOT EXISTS keeps contenders from locking a row that is held, and from drawing tokens for nothing
  INSERT INTO fencing.lease AS l (resource, holder, token, expires_at)
  SELECT take.resource, take.holder, fencing.next_token(), clock_timestamp() + c_ttl
   WHERE NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = take.resource AND x.expires_at >= clock_timestamp())
  ON CONFLICT (resource) DO UPDATE
     -- never EXCLUDED.token: that was drawn before the lock
     SET holder = EXCLUDED.holder, token = fencing.next_token(), expires_at = clock_timestamp() + c_ttl
   WHERE l.expires_at < clock_timestamp()
  RETURNING l.token, l.holder, c_ttl INTO take.token, take.held_by, take.remaining;
  IF FOUND THEN
    IF take.token <= v_former THEN
      RAISE EXCEPTION 'fencing: the lease has had token %, and the one that was drawn is not larger', v_former
        USING ERRCODE = 'object_not_in_prerequisite_state', SCHEMA = 'fencing', TABLE = 'lease', CONSTRAINT = 'take',
              HINT = 'Sequence fencing.write_epoch was set back or has a CACHE, or the token was forged. fencing.doctor() has what mends it (D221, D302, D307).';
    END IF;
    -- where taking waits for writers, as for those of a seal, the lease's time begins afterwards
    UPDATE fencing.lease l SET expires_at = clock_timestamp() + c_ttl
     WHERE l.resource = take.resource AND l.expires_at < clock_timestamp() + c_ttl - interval '10 ms';
  ELSE
    -- an end at infinity, by somebody's UPDATE, can't be subtracted from
    SELECT NULL, l.holder, least(l.expires_at, clock_timestamp() + interval '24 hours') - clock_timestamp() INTO take.token, take.held_by,
        take.remaining
      FROM fencing.lease l WHERE l.resource = take.resource AND l.expires_at >= clock_timestamp();
    IF NOT FOUND THEN  -- it has become free in between
      take.remaining := interval '0';
    END IF;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  RETURN NEXT;
END $$;

COMMENT ON FUNCTION fencing.take(text, interval, text) IS
  'Takes a lease, and returns one row: its token, larger than every one before, or a null token with who holds the lease and for how long still. It counts only after COMMIT.';

CREATE FUNCTION fencing.renew(resource text, token bigint, ttl interval) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_ttl CONSTANT interval := fencing.lease_ttl(renew.ttl);
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_held boolean;
BEGIN
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- as in fencing.take
  END IF;
  -- the holder relies on the new end, so a crash must not bring the old one back
  IF current_setting('synchronous_commit') <> 'remote_apply' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  UPDATE fencing.lease l SET expires_at = clock_timestamp() + c_ttl
   WHERE l.resource = renew.resource AND l.token = renew.token AND l.expires_at >= clock_timestamp();
  v_held := FOUND;
  IF NOT v_held AND NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = renew.resource) THEN
    v_held := NULL;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  RETURN v_held;
END $$;

COMMENT ON FUNCTION fencing.renew(text, bigint, interval) IS
  'Has a lease last for ttl from now on. False if it has ended, or the token isn''t its holder''s; null if its row was deleted.';

CREATE FUNCTION fencing.release(resource text, token bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  c_session CONSTANT text := current_setting('fencing.session', true);
  v_held boolean;
BEGIN
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', '', true);  -- as in fencing.take
  END IF;
  -- the row stays: with it gone, a slow taker that had drawn its token before would insert that one
  UPDATE fencing.lease l SET holder = NULL, expires_at = '-infinity'
   WHERE l.resource = release.resource AND l.token = release.token AND l.expires_at >= clock_timestamp();
  v_held := FOUND;
  IF NOT v_held AND NOT EXISTS (SELECT 1 FROM fencing.lease x WHERE x.resource = release.resource) THEN
    v_held := NULL;
  END IF;
  IF c_session = 'driver' THEN
    PERFORM set_config('fencing.session', c_session, true);
  END IF;
  IF v_held THEN
    PERFORM pg_notify('fencerow_lease', release.resource);
  END IF;
  RETURN v_held;
END $$;

COMMENT ON FUNCTION fencing.release(text, bigint) IS
  'Ends a lease, and notifies channel fencerow_lease with the resource. False if it had ended before, or the token isn''t its holder''s; null if its row was deleted.';
