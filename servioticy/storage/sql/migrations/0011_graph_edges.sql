-- What documents' groups read and what applications wish to get were two things in one table.
-- The first are edges of the stream graph and get a table of their own.

CREATE TABLE graph_edges (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    group_name text NOT NULL,
    stream_id bigint NOT NULL REFERENCES streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL REFERENCES tenants,
    PRIMARY KEY (reader, group_name, stream_id)
);
COMMENT ON TABLE graph_edges IS
    'which streams the groups of the version in force for the API read';
COMMENT ON COLUMN graph_edges.reader IS 'the Service Object whose group it is';
COMMENT ON COLUMN graph_edges.tenant_id IS 'of the reader; the stream may be another tenant''s';
CREATE INDEX graph_edges_by_stream ON graph_edges (stream_id);

INSERT INTO graph_edges (reader, group_name, stream_id, tenant_id)
SELECT DISTINCT service_objects.id,
       coalesce(document -> 'customFields' ->> 'groupId', ''), stream_id, subscriptions.tenant_id
  FROM subscriptions
  JOIN service_objects ON service_objects.id = destination
 WHERE callback = 'internal';

DELETE FROM subscriptions
 WHERE callback = 'internal';

DROP INDEX subscriptions_by_destination;

-- A program of an earlier release that still runs fails aloud, instead of hiding edges here.
ALTER TABLE subscriptions
    ADD CONSTRAINT subscriptions_of_applications CHECK (callback <> 'internal');
COMMENT ON TABLE subscriptions IS 'applications'' wishes to get the updates of a stream';
