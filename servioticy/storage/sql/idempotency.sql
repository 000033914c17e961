-- begin --
-- Take the key, where it is free, forgotten, or left by an attempt that has not ended in time.
-- No row: somebody else has it.
INSERT INTO idempotency (tenant_id, key, digest, attempt, began_at)
VALUES (%(tenant)s, %(key)s, %(digest)s, %(attempt)s, %(now)s)
ON CONFLICT (tenant_id, key) DO UPDATE
   SET digest = excluded.digest, attempt = excluded.attempt, began_at = excluded.began_at,
       status = NULL, headers = NULL, body = NULL
 WHERE idempotency.began_at < %(forgotten)s
    OR (idempotency.status IS NULL AND idempotency.began_at < %(abandoned)s)
RETURNING attempt;

-- answered --
SELECT digest, attempt, status, headers::text, body
  FROM idempotency
 WHERE tenant_id = %(tenant)s
   AND key = %(key)s;

-- answer --
UPDATE idempotency
   SET status = %(status)s, headers = %(headers)s, body = %(body)s
 WHERE tenant_id = %(tenant)s
   AND key = %(key)s
   AND attempt = %(attempt)s;

-- give_up --
DELETE FROM idempotency
 WHERE tenant_id = %(tenant)s
   AND key = %(key)s
   AND attempt = %(attempt)s;

-- forget --
-- A few of the oldest: each request that comes with a key removes more than it adds.
DELETE FROM idempotency
 WHERE tenant_id = %(tenant)s
   AND key IN (SELECT key
                 FROM idempotency
                WHERE tenant_id = %(tenant)s
                  AND began_at < %(forgotten)s
                ORDER BY began_at
                LIMIT 10);

-- held --
SELECT count(*), coalesce(sum(octet_length(body)), 0)
  FROM idempotency
 WHERE tenant_id = %(tenant)s;
