-- code --
-- Between tenants: before it is known who asks there is no tenant to name.
SELECT claim_codes.id, claim_codes.tenant_id, template IS NOT NULL AS makes,
       coalesce(template, service_object) AS bound_to, parameters::text, allowed, device_as,
       pattern, listed, used < uses AS is_left,
       expires_at <= now() OR service_objects.deleted_at IS NOT NULL AS has_ended
  FROM claim_codes
  JOIN tenants ON tenants.id = claim_codes.tenant_id
   AND tenants.deleted_at IS NULL
  LEFT JOIN service_objects ON service_objects.id = service_object
   AND service_objects.tenant_id = claim_codes.tenant_id
 WHERE digest = %(digest)s;

-- claim --
-- Of a device: whether it has claimed by the code, and with which key.
SELECT key_digest, salt, service_object, claimed_at
  FROM claims
 WHERE code = %(code)s
   AND device = %(device)s
   AND tenant_id = %(tenant)s;

-- is_good --
SELECT 1
  FROM tokens
 WHERE digest = %(token)s
   AND tenant_id = %(tenant)s
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());

-- hold_template --
-- At this version, until the end of the transaction. No row: it has another one by now, which a
-- roll-out may be bringing to all others just now.
SELECT version
  FROM templates
 WHERE id = %(template)s
   AND tenant_id = %(tenant)s
   AND version = %(version)s
   AND deleted_at IS NULL
   FOR SHARE;

-- hold_code --
-- Before anything is stored that the audit log tells of: whoever revokes it comes there last, too.
SELECT id
  FROM claim_codes
 WHERE id = %(code)s
   AND tenant_id = %(tenant)s
   FOR UPDATE;

-- hold_object --
-- Until the end of the transaction: claims for it count its tokens one after the other.
SELECT id
  FROM service_objects
 WHERE id = %(service_object)s
   AND tenant_id = %(tenant)s
   AND deleted_at IS NULL
   FOR NO KEY UPDATE;

-- tokens_of --
-- Those good now that a Service Object was born with or devices have claimed: they have no name.
SELECT count(*)
  FROM tokens
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s
   AND name = ''
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());

-- take --
-- A use of the code, what is to be known when the device asks again, and its token: all or
-- nothing. No row where that cannot be any more.
WITH able AS (
    SELECT claim_codes.id AS code, service_objects.id AS service_object, tokens_end
      FROM claim_codes
      JOIN service_objects ON service_objects.id = %(service_object)s
       AND service_objects.tenant_id = claim_codes.tenant_id
       AND deleted_at IS NULL
     WHERE claim_codes.id = %(code)s
       AND claim_codes.tenant_id = %(tenant)s
       AND used < uses
       AND expires_at > now()
       AND (NOT listed OR EXISTS (
               SELECT FROM claims
                WHERE code = claim_codes.id
                  AND device = %(device)s
                  AND claims.tenant_id = %(tenant)s))
       FOR UPDATE OF claim_codes
       FOR SHARE OF service_objects
), claimed AS (
    INSERT INTO claims (code, device, tenant_id, key_digest, salt, service_object, token_id,
                        claimed_at)
    SELECT code, %(device)s, %(tenant)s, %(key)s, %(salt)s, service_object, %(token_id)s, %(now)s
      FROM able
        ON CONFLICT (code, device) DO UPDATE
       SET key_digest = excluded.key_digest, salt = excluded.salt,
           service_object = excluded.service_object, token_id = excluded.token_id,
           claimed_at = excluded.claimed_at
     WHERE claims.claimed_at IS NULL
    RETURNING code, service_object
), counted AS (
    UPDATE claim_codes
       SET used = used + 1
      FROM claimed
     WHERE id = claimed.code
       AND tenant_id = %(tenant)s
)
INSERT INTO tokens (id, digest, tenant_id, service_object, expires_at)
SELECT %(token_id)s, %(token)s, %(tenant)s, claimed.service_object, tokens_end
  FROM claimed
  JOIN able USING (code)
RETURNING 1;
