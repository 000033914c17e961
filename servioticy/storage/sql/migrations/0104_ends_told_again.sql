-- What was deleted or revoked, and is not carried out yet: an end whose record the log has lost.

CREATE INDEX grants_revoked ON grants (revoked_at)
 WHERE revoked_at IS NOT NULL;
CREATE INDEX service_objects_to_delete ON service_objects (deleted_at)
 WHERE deleted_at IS NOT NULL
   AND active_change < 9223372036854775807;
