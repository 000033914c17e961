-- newest_stream --
-- Between tenants: whosever it is: a number only, from which on streams come to be later than now.
SELECT coalesce(max(id), 0)
  FROM streams;

-- streams_of --
-- Between tenants: what is granted is others' to read, as `stream_readers` says.
-- What a Service Object or a group has, of what a tenant may read.
SELECT streams.service_object, streams.name, streams.tenant_id, streams.id,
       CASE WHEN NOT service_objects.public AND streams.tenant_id <> %(tenant)s
            THEN granted_for(streams.service_object, streams.name, %(tenant)s) END AS holds_for
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object AND deleted_at IS NULL
  JOIN stream_readers ON stream_readers.stream_id = streams.id
   AND stream_readers.tenant_id = %(tenant)s
 WHERE CASE WHEN %(group)s::text IS NULL
            THEN streams.service_object = %(service_object)s AND declared
            ELSE streams.id IN (
                 SELECT stream_id
                   FROM graph_edges
                  WHERE reader = %(service_object)s
                    AND group_name = %(group)s
                    AND graph_edges.tenant_id = %(tenant)s) END
 LIMIT %(most)s;
