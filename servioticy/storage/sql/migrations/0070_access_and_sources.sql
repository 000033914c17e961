-- Whoever was let in is told to go when what let him in is no more: programs listen.

CREATE FUNCTION tell_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'token ' || encode(OLD.digest, 'hex'));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_token
 AFTER UPDATE OR DELETE ON tokens
   FOR EACH ROW EXECUTE FUNCTION tell_token();

CREATE FUNCTION tell_readers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'object ' || NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_readers
 AFTER UPDATE OF version, public, deleted_at ON service_objects
   FOR EACH ROW
 EXECUTE FUNCTION tell_readers();

-- Subscriptions to all streams of a Service Object, and to those that one of its groups reads.

ALTER TABLE subscriptions
    ALTER COLUMN stream_id DROP NOT NULL,
    ADD COLUMN service_object text REFERENCES service_objects ON DELETE CASCADE,
    ADD COLUMN group_name text,
    ADD COLUMN changes bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT subscriptions_have_a_source CHECK (
        num_nonnulls(stream_id, service_object) = 1
        AND (group_name IS NULL OR service_object IS NOT NULL));
COMMENT ON COLUMN subscriptions.service_object IS
    'whose streams it is about, or which has the group; null: it is about one stream';
COMMENT ON COLUMN subscriptions.group_name IS 'the group whose members'' streams it is about';
COMMENT ON COLUMN subscriptions.changes IS
    'counts what may have changed in which streams it is about: delivery looks at them anew';
CREATE INDEX subscriptions_by_source
    ON subscriptions (service_object, tenant_id, created_at, id) WHERE service_object IS NOT NULL;
CREATE INDEX subscriptions_to_groups ON subscriptions (tenant_id) WHERE group_name IS NOT NULL;
CREATE UNIQUE INDEX subscriptions_pubsub_to_many_once
    ON subscriptions (service_object, group_name, destination) NULLS NOT DISTINCT
 WHERE callback = 'pubsub' AND service_object IS NOT NULL;

CREATE VIEW subscribed_streams WITH (security_invoker = true) AS
SELECT id AS subscription_id, tenant_id, stream_id
  FROM subscriptions
 WHERE stream_id IS NOT NULL
 UNION ALL
SELECT subscriptions.id, subscriptions.tenant_id, streams.id
  FROM subscriptions
  JOIN streams ON streams.service_object = subscriptions.service_object AND declared
 WHERE group_name IS NULL
 UNION ALL
SELECT subscriptions.id, subscriptions.tenant_id, graph_edges.stream_id
  FROM subscriptions
  JOIN graph_edges ON reader = subscriptions.service_object
   AND graph_edges.group_name = subscriptions.group_name;
COMMENT ON VIEW subscribed_streams IS
    'which streams subscriptions are about now, whether their tenants may read them or not';

-- Whoever writes, and whosesoever the subscriptions are.
CREATE FUNCTION note_sources() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE subscriptions
       SET changes = changes + 1
     WHERE service_object = NEW.id;
    IF NEW.public <> OLD.public OR NEW.deleted_at IS NOT NULL THEN
        UPDATE subscriptions
           SET changes = changes + 1
          FROM (SELECT DISTINCT reader, group_name
                  FROM streams
                  JOIN graph_edges ON stream_id = streams.id
                 WHERE streams.service_object = NEW.id) AS groups
         WHERE subscriptions.service_object = groups.reader
           AND subscriptions.group_name = groups.group_name;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER note_sources
 AFTER UPDATE OF version, public, deleted_at ON service_objects
   FOR EACH ROW EXECUTE FUNCTION note_sources();

-- What programs may do with it (see 0080, which may come later).

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION note_sources OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
GRANT UPDATE (changes) ON subscriptions TO servioticy_platform;
CREATE POLICY servioticy_platform_update ON subscriptions FOR UPDATE TO servioticy_platform
 USING (true);
GRANT SELECT ON subscribed_streams TO servioticy_api, servioticy_platform, servioticy_delivery;
GRANT SELECT ON graph_edges TO servioticy_delivery;
CREATE POLICY servioticy_delivery_select ON graph_edges FOR SELECT TO servioticy_delivery
 USING (true);
