-- next_purge --
-- Updates before all else: a Service Object has no streams any more when it is the last to go.
SELECT id, tenant_id, service_object, stored_as, reached
  FROM purge
 WHERE log_partition = %(partition)s
 ORDER BY stored_as, id
 LIMIT 1
   FOR UPDATE;

-- purge_updates --
-- The oldest, up to a number and a size; the first whatever its size. No row: there are none.
-- The size is that on the disk, which is known without opening the document.
WITH piece AS (
    SELECT "timestamp", size
      FROM (SELECT "timestamp", size,
                   sum(size) OVER (ORDER BY "timestamp") - size AS before
              FROM (SELECT "timestamp", pg_column_size(document) AS size
                      FROM updates
                     WHERE stream_id = %(stored_as)s
                       AND tenant_id = %(tenant)s
                       AND "timestamp" > %(reached)s
                     ORDER BY "timestamp"
                     LIMIT %(most)s) AS oldest) AS summed
     WHERE before < %(most_bytes)s
), gone AS (
    DELETE FROM updates
     WHERE stream_id = %(stored_as)s
       AND tenant_id = %(tenant)s
       AND "timestamp" = ANY(ARRAY(SELECT "timestamp" FROM piece))
    RETURNING octet_length(document::text) AS bytes
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - (SELECT sum(bytes) FROM gone))
     WHERE tenant_id = %(tenant)s
       AND EXISTS (SELECT FROM gone)
)
UPDATE purge
   SET reached = (SELECT max("timestamp") FROM piece)
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s
   AND EXISTS (SELECT FROM piece)
RETURNING id;

-- purge_kept --
WITH gone AS (
    DELETE FROM kept_entries
     WHERE tenant_id = %(tenant)s
       AND stream_id = %(stored_as)s
       AND key = ANY(ARRAY(
           SELECT key
             FROM (SELECT key, sum(size) OVER (ORDER BY key) - size AS before
                     FROM (SELECT key, pg_column_size(value) AS size
                             FROM kept_entries
                            WHERE stream_id = %(stored_as)s
                              AND tenant_id = %(tenant)s
                            ORDER BY key
                            LIMIT %(most)s) AS first) AS summed
            WHERE before < %(most_bytes)s))
    RETURNING octet_length(key) + octet_length(value) AS bytes
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - (SELECT sum(bytes) FROM gone))
     WHERE tenant_id = %(tenant)s
       AND EXISTS (SELECT FROM gone)
)
SELECT bytes FROM gone LIMIT 1;

-- purge_rest_of_stream --
-- Once its updates are gone.
WITH state AS (
    DELETE FROM states
     WHERE stream_id = %(stored_as)s
       AND tenant_id = %(tenant)s
    RETURNING octet_length(taken_back::text) AS bytes
), less AS (
    UPDATE stored_amounts
       SET bytes = greatest(0, stored_amounts.bytes - (SELECT sum(bytes) FROM state))
     WHERE tenant_id = %(tenant)s
       AND EXISTS (SELECT FROM state WHERE bytes > 0)
), counted AS (
    DELETE FROM verdicts WHERE stream_id = %(stored_as)s AND tenant_id = %(tenant)s
), used AS (
    DELETE FROM usage WHERE stream_id = %(stored_as)s AND tenant_id = %(tenant)s
), searched AS (
    DELETE FROM searched_streams WHERE stream_id = %(stored_as)s AND tenant_id = %(tenant)s
)
DELETE FROM superseded WHERE stream_id = %(stored_as)s AND tenant_id = %(tenant)s;

-- stream_to_purge --
SELECT id
  FROM streams
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s
 ORDER BY name
 LIMIT 1;

-- purge_stream --
-- Once the subscriptions to it and the edges from it are gone. What is stored of it comes next.
WITH gone AS (
    DELETE FROM streams
     WHERE id = %(stream)s
       AND tenant_id = %(tenant)s
    RETURNING tenant_id, stored_as
)
INSERT INTO purge (log_partition, tenant_id, stored_as)
SELECT %(partition)s, tenant_id, stored_as
  FROM gone;

-- purge_subscriptions_to --
DELETE FROM subscriptions
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
                 FROM (SELECT id, pg_column_size(document) AS size
                         FROM subscriptions
                        WHERE stream_id = %(stream)s
                        LIMIT %(most)s) AS these) AS summed
        WHERE before < %(most_bytes)s))
RETURNING id;

-- purge_subscriptions_of --
-- Those to all of it, and to its groups.
DELETE FROM subscriptions
 WHERE id = ANY(ARRAY(
       SELECT id
         FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
                 FROM (SELECT id, pg_column_size(document) AS size
                         FROM subscriptions
                        WHERE service_object = %(service_object)s
                        LIMIT %(most)s) AS these) AS summed
        WHERE before < %(most_bytes)s))
RETURNING id;

-- purge_readings --
-- What it read of other tenants.
DELETE FROM outside_readers
 WHERE tenant_id = %(tenant)s
   AND (reader, source, stream) IN (
       SELECT reader, source, stream
         FROM outside_readers
        WHERE reader = %(service_object)s
          AND tenant_id = %(tenant)s
        LIMIT %(most)s)
RETURNING reader;

-- purge_edges_from --
-- What groups of others read of it.
DELETE FROM graph_edges
 WHERE (reader, group_name, stream_id) IN (
       SELECT reader, group_name, stream_id
         FROM graph_edges
        WHERE stream_id = %(stream)s
        LIMIT %(most)s)
RETURNING stream_id;

-- purge_edges_to --
-- What its groups read.
DELETE FROM graph_edges
 WHERE tenant_id = %(tenant)s
   AND (reader, group_name, stream_id) IN (
       SELECT reader, group_name, stream_id
         FROM graph_edges
        WHERE reader = %(service_object)s
          AND tenant_id = %(tenant)s
        LIMIT %(most)s)
RETURNING stream_id;

-- purge_definitions --
DELETE FROM definitions
 WHERE service_object = %(service_object)s
   AND tenant_id = %(tenant)s
   AND version = ANY(ARRAY(
       SELECT version
         FROM (SELECT version, sum(size) OVER (ORDER BY version) - size AS before
                 FROM (SELECT version, pg_column_size(document) AS size
                         FROM definitions
                        WHERE service_object = %(service_object)s
                          AND tenant_id = %(tenant)s
                        ORDER BY version
                        LIMIT %(most)s) AS oldest) AS summed
        WHERE before < %(most_bytes)s))
RETURNING version;

-- purged --
DELETE FROM purge
 WHERE id = %(id)s
   AND tenant_id = %(tenant)s;
