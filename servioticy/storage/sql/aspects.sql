-- stream --
-- Whether the tenant has this stream.
SELECT 1
  FROM readable_streams
 WHERE tenant_id = %(tenant)s
   AND service_object = %(service_object)s
   AND name = %(stream)s;

-- make --
-- An aspect of a stream; no row where it has one.
INSERT INTO aspects (id, tenant_id, service_object, stream, purpose, created_at)
VALUES (%(id)s, %(tenant)s, %(service_object)s, %(stream)s, %(purpose)s, %(now)s)
    ON CONFLICT (tenant_id, service_object, stream) DO NOTHING
RETURNING id, service_object, stream, purpose, created_at;

-- sweep --
-- What was measured for aspects that have ended meanwhile.
DELETE FROM aspect_minutes
 WHERE tenant_id = %(tenant)s
   AND aspect NOT IN (SELECT id
                        FROM aspects
                       WHERE tenant_id = %(tenant)s);

-- listed --
SELECT aspects.id, aspects.service_object, stream, purpose, created_at
  FROM aspects
  JOIN readable_streams ON readable_streams.tenant_id = aspects.tenant_id
   AND readable_streams.service_object = aspects.service_object
   AND name = stream
 WHERE aspects.tenant_id = %(tenant)s
   AND aspects.id > %(after)s
 ORDER BY aspects.id
 LIMIT %(rows)s;

-- aspect --
SELECT aspects.id, aspects.service_object, stream, purpose, created_at
  FROM aspects
  JOIN readable_streams ON readable_streams.tenant_id = aspects.tenant_id
   AND readable_streams.service_object = aspects.service_object
   AND name = stream
 WHERE aspects.tenant_id = %(tenant)s
   AND aspects.id = %(id)s;

-- end --
-- With what it has measured.
WITH ended AS (
    DELETE FROM aspects
     WHERE id = %(id)s
       AND tenant_id = %(tenant)s
    RETURNING id
), gone AS (
    DELETE FROM aspect_minutes
     WHERE tenant_id = %(tenant)s
       AND aspect = %(id)s
)
SELECT id FROM ended;

-- minutes --
-- What was measured from a minute on until before another, the oldest first.
SELECT minute, stored_rows, stored_bytes, processor_us, computations
  FROM aspect_minutes
 WHERE tenant_id = %(tenant)s
   AND aspect = %(id)s
   AND minute >= greatest(%(since)s, this_minute() - %(kept)s)
   AND minute < %(until)s
 ORDER BY minute;
