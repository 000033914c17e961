-- The schema as the migrations up to 0280 together make it, to be read. Programs apply the
-- migrations; a test holds this file equal to them. A later one that only adds a table tells it
-- well enough by itself; with the next change of what stands here, or a release, it moves in.
--
-- Every table of a tenant's carries the tenant, and every query names it or stands in the list
-- of exceptions in tests/unit/test_queries_name_the_tenant.py.

-- Tenants

CREATE TABLE tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    public_id text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
        CONSTRAINT tenants_public_id UNIQUE
);
COMMENT ON COLUMN tenants.deleted_at IS
    'when an operator deleted it; the row goes when nothing of the tenant is left';
-- By `public_id` others know a tenant, where it has told them: names can be guessed.

CREATE TABLE tokens (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    service_object text,
    id text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    name text NOT NULL DEFAULT '',
    stream text,
    rights text[],
    expires_at timestamptz,
    replaced boolean NOT NULL DEFAULT false,
    CONSTRAINT tokens_of_a_stream CHECK (stream IS NULL OR service_object IS NOT NULL)
);
COMMENT ON COLUMN tokens.digest IS 'SHA-256 of the token; the token itself is nowhere';
COMMENT ON COLUMN tokens.service_object IS
    'the only Service Object that its holder may act on; null: all of the tenant''s';
COMMENT ON COLUMN tokens.stream IS
    'the only stream of its Service Object that its holder may act on; null: all of them';
COMMENT ON COLUMN tokens.rights IS 'what its holder may do; null: whatever such a token may';
COMMENT ON COLUMN tokens.replaced IS 'another one is there in its place: it is good for a while yet';
CREATE INDEX tokens_by_service_object ON tokens (service_object)
 WHERE service_object IS NOT NULL;
CREATE UNIQUE INDEX tokens_by_id ON tokens (id);
CREATE INDEX tokens_by_tenant ON tokens (tenant_id, id);
CREATE INDEX tokens_ended ON tokens (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tokens_by_end ON tokens (expires_at)
 WHERE expires_at IS NOT NULL;

-- Those that `GET /tokens` shows: not what Service Objects were born with, or devices have claimed.
CREATE FUNCTION is_listed(token tokens) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
SELECT token.name <> '' OR token.service_object IS NULL
$$;

-- Members: persons of an issuer of tokens who act for a tenant, each with a role. What a role may
-- do stands in servioticy/domain/access.py.

CREATE TABLE members (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    person bytea NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    name text NOT NULL DEFAULT '',
    email text NOT NULL DEFAULT '',
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'developer', 'admin')),
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN members.person IS 'the SHA-256 that stands for issuer and subject';
COMMENT ON COLUMN members.subject IS 'how the issuer calls the person: `sub` of its tokens';
COMMENT ON COLUMN members.name IS 'for people who look at the list; nothing is decided by it';
CREATE UNIQUE INDEX members_by_person ON members (tenant_id, person);
CREATE INDEX members_by_tenant ON members (tenant_id, id);

-- Sessions of the console: whoever has shown a token once goes on with a cookie.

CREATE TABLE console_sessions (
    digest bytea PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    token bytea NOT NULL,
    known_by bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    renewal bytea,
    renew_at timestamptz,
    token_ends_at timestamptz
);
COMMENT ON COLUMN console_sessions.renewal IS
    'for which the issuer gives another token, sealed as the token is; null: nothing';
COMMENT ON COLUMN console_sessions.renew_at IS 'from when on whoever asks next renews the token';
COMMENT ON TABLE console_sessions IS 'the newest of a tenant, servioticy.identity.console_sessions.MOST of them';
COMMENT ON COLUMN console_sessions.digest IS 'the SHA-256 of what the cookie holds';
COMMENT ON COLUMN console_sessions.token IS
    'what was shown, sealed with what the cookie holds: nobody reads it here';
COMMENT ON COLUMN console_sessions.known_by IS 'the SHA-256 by which delivery knows who was let in';
CREATE INDEX console_sessions_by_tenant ON console_sessions (tenant_id, created_at);

-- Sockets that were opened with a session end with it.
CREATE FUNCTION tell_console_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'token ' || encode(OLD.known_by, 'hex'));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_console_session
 AFTER DELETE ON console_sessions
   FOR EACH ROW EXECUTE FUNCTION tell_console_session();

-- Service Objects and their streams

CREATE TABLE service_objects (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    public boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version integer NOT NULL,
    component text NOT NULL,
    route_partition integer NOT NULL,
    owner_partition integer NOT NULL,
    active_version integer,
    newest_version integer NOT NULL DEFAULT 1,
    revision integer NOT NULL DEFAULT 1,
    custom_fields json,
    deleted_at bigint,
    active_change bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN service_objects.version IS 'version in force for the API';
COMMENT ON COLUMN service_objects.component IS
    'connected component of the stream graph, named by its first Service Object';
COMMENT ON COLUMN service_objects.route_partition IS 'where the API appends its updates (written by the API)';
COMMENT ON COLUMN service_objects.owner_partition IS 'which task computes it (written by the pipeline after the insert)';
COMMENT ON COLUMN service_objects.active_version IS
    'version in force at the owner''s stored progress (written by the pipeline)';
COMMENT ON COLUMN service_objects.newest_version IS 'largest version number ever given';
COMMENT ON COLUMN service_objects.revision IS 'counts changes of any kind: the second part of the ETag';
COMMENT ON COLUMN service_objects.custom_fields IS 'customFields: of the object, not of a version';
COMMENT ON COLUMN service_objects.deleted_at IS
    'when the API deleted it; the row stays until no record of the log can name it any more';
COMMENT ON COLUMN service_objects.active_change IS
    'number of the change that put active_version in force (written by the pipeline)';
ALTER TABLE tokens ADD FOREIGN KEY (service_object) REFERENCES service_objects;
CREATE INDEX service_objects_by_component ON service_objects (component);
CREATE INDEX service_objects_by_tenant ON service_objects (tenant_id, sequence);
-- Deleted, and not carried out yet: an end whose record the log may have lost.
CREATE INDEX service_objects_gone ON service_objects (deleted_at)
 WHERE active_change = 9223372036854775807;
CREATE INDEX service_objects_to_delete ON service_objects (deleted_at)
 WHERE deleted_at IS NOT NULL
   AND active_change < 9223372036854775807;

CREATE TABLE definitions (
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL REFERENCES tenants,
    document json NOT NULL,
    created_at bigint NOT NULL,
    automatic boolean NOT NULL DEFAULT false,
    bytes bigint NOT NULL DEFAULT 0,
    named_by bigint NOT NULL DEFAULT 9223372036854775807,
    operator_owners json,
    PRIMARY KEY (service_object, version)
);
COMMENT ON COLUMN definitions.operator_owners IS
    'numbers of the tenants that it meant by OWNER/NAME when it was accepted, by their names; null: '
    'it names programs of its own tenant alone, or none';
COMMENT ON COLUMN definitions.automatic IS
    'made by the follower of dynamic groups: old ones go';
COMMENT ON COLUMN definitions.document IS 'json, not jsonb: the order of keys is the order of computing';
COMMENT ON COLUMN definitions.bytes IS 'of its document, for the quota';
COMMENT ON COLUMN definitions.named_by IS
    'number of the last change that puts it in force: it stays until the log has passed that';
CREATE INDEX definitions_by_tenant ON definitions (tenant_id) INCLUDE (bytes);

CREATE TABLE streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    declared boolean NOT NULL DEFAULT true,
    erased_by bigint NOT NULL DEFAULT 0,
    after_erasure bigint,
    stored_as bigint GENERATED ALWAYS AS (coalesce(after_erasure, id)) STORED UNIQUE,
    UNIQUE (service_object, name)
);
COMMENT ON COLUMN streams.declared IS 'whether the version in force for the API has it';
COMMENT ON COLUMN streams.erased_by IS 'number of the last change that erased it (written by the pipeline)';
COMMENT ON COLUMN streams.after_erasure IS
    'taken from the same numbers as id when the stream was last erased; null: it never was';
COMMENT ON COLUMN streams.stored_as IS
    'stream_id of its updates, state, verdicts and usage; subscriptions have its id';

CREATE VIEW readable_streams WITH (security_invoker = true) AS
SELECT streams.id, streams.tenant_id, service_object, name, stored_as
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
 WHERE active_change < 9223372036854775807;
COMMENT ON VIEW readable_streams IS
    'without those of deleted Service Objects (partition.sql, delete), whose rows are still going';

-- Grants: what a tenant lets others do with its streams. The views are the rule of
-- servioticy/domain/access.py for SQL.

CREATE TABLE grants (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    stream text,
    grantee bigint REFERENCES tenants ON DELETE CASCADE,
    derived_only boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    active boolean NOT NULL DEFAULT false,
    first_used bigint,
    last_used bigint
);
COMMENT ON COLUMN grants.stream IS 'null: each stream of the Service Object, and its document';
COMMENT ON COLUMN grants.grantee IS 'null: every tenant';
COMMENT ON COLUMN grants.derived_only IS 'composites may read it; nobody gets its updates';
COMMENT ON COLUMN grants.revoked_at IS
    'when the API revoked it; the row goes where the log says so';
COMMENT ON COLUMN grants.active IS
    'whether composites read by it at the owner''s stored progress (written by the pipeline)';
COMMENT ON COLUMN grants.last_used IS 'in milliseconds since 1970: to the minute, and some seconds late';
CREATE INDEX grants_by_service_object ON grants (service_object, grantee);
CREATE INDEX grants_by_tenant ON grants (tenant_id, id);
CREATE INDEX grants_by_grantee ON grants (grantee, id) WHERE grantee IS NOT NULL;
CREATE INDEX grants_by_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX grants_revoked ON grants (revoked_at)
 WHERE revoked_at IS NOT NULL;

-- Of a stream, or of a whole Service Object where the stream is null.
CREATE FUNCTION is_granted(object text, stream_name text, tenant bigint, deriving boolean)
RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT EXISTS (
       SELECT FROM grants
        WHERE grants.service_object = object
          AND (grants.stream IS NULL OR grants.stream = stream_name)
          AND (grantee IS NULL OR grantee = tenant)
          AND (deriving OR NOT derived_only)
          AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000))
$$;

-- How long what `is_granted` tells of reading holds, in seconds. Null: it is not granted, or the
-- grant has no end.
CREATE FUNCTION granted_for(object text, stream_name text, tenant bigint) RETURNS numeric
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT CASE WHEN bool_and(expires_at IS NOT NULL)
            THEN max(expires_at) / 1000.0 - extract(epoch FROM now()) END
  FROM grants
 WHERE grants.service_object = object
   AND (grants.stream IS NULL OR grants.stream = stream_name)
   AND (grantee IS NULL OR grantee = tenant)
   AND NOT derived_only
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)
$$;

-- Service Objects that the tenant is granted as a whole, as `readers` says: for who looks
-- through many.
CREATE FUNCTION granted_objects(tenant bigint) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT service_object
  FROM grants
 WHERE stream IS NULL
   AND (grantee IS NULL OR grantee = tenant)
   AND NOT derived_only
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > extract(epoch FROM now()) * 1000)
$$;

CREATE VIEW readers WITH (security_invoker = true) AS
SELECT service_objects.id AS service_object, tenants.id AS tenant_id
  FROM service_objects
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, NULL, tenants.id, false)
 WHERE active_change < 9223372036854775807;
COMMENT ON VIEW readers IS 'which tenants may read which Service Object';

CREATE VIEW stream_readers WITH (security_invoker = true) AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, false);
COMMENT ON VIEW stream_readers IS 'which tenants may read which stream';

CREATE VIEW stream_derivers WITH (security_invoker = true) AS
SELECT streams.id AS stream_id, tenants.id AS tenant_id
  FROM streams
  JOIN service_objects ON service_objects.id = streams.service_object
  JOIN tenants ON service_objects.public OR tenants.id = service_objects.tenant_id
    OR is_granted(service_objects.id, streams.name, tenants.id, true);
COMMENT ON VIEW stream_derivers IS 'which tenants'' composites may read which stream';

-- Grants that have ended, and what grants are used for: both sides find it, hour by hour with the
-- usage, and once a day in their audit logs.

CREATE TABLE ended_grants (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    service_object text NOT NULL,
    stream text,
    grantee bigint,
    derived_only boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    first_used bigint,
    last_used bigint,
    ended_at bigint NOT NULL
);
COMMENT ON TABLE ended_grants IS
    'grants that composites read by no more: of a tenant the last 1,000, for as long as usage_hours';
COMMENT ON COLUMN ended_grants.ended_at IS 'where the log said so, in milliseconds since 1970';
CREATE INDEX ended_grants_by_service_object ON ended_grants (service_object, ended_at);
CREATE INDEX ended_grants_by_tenant ON ended_grants (tenant_id, ended_at);
CREATE INDEX ended_grants_by_age ON ended_grants (ended_at);

CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) * 1000)::bigint
$$;

-- Grants that end together cost as much as there are of them: a Service Object has a thousand, and
-- what deletes it is the pipeline, where all others of the partition wait for it.
-- Of tenants that are still there: others' grants go with them. What another transaction is just
-- removing, or noting the use of, is not waited for: who is next removes it.
CREATE FUNCTION keep_ended_grants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO ended_grants (id, tenant_id, service_object, stream, grantee, derived_only,
                              created_at, expires_at, first_used, last_used, ended_at)
    SELECT gone.id, tenant_id, service_object, stream, grantee, derived_only, gone.created_at,
           expires_at, first_used, last_used, now_ms()
      FROM gone
      JOIN tenants ON tenants.id = tenant_id;
    DELETE FROM ended_grants
     WHERE id IN (
           SELECT id
             FROM ended_grants
            WHERE id IN (
                  SELECT oldest.id
                    FROM (SELECT DISTINCT tenant_id FROM gone) AS givers
                   CROSS JOIN LATERAL (
                         SELECT id
                           FROM ended_grants
                          WHERE ended_grants.tenant_id = givers.tenant_id
                          ORDER BY ended_at DESC, id
                         OFFSET 1000) AS oldest)
              FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END $$;

CREATE TRIGGER keep_ended_grants
 AFTER DELETE ON grants REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION keep_ended_grants();

-- By which grant a tenant reads a stream of another, or derives from it. Of several the one that
-- says most exactly who and what. No row: there is none, as where the stream is public. What was
-- used until a grant ended comes to the accounts within the minute. Others' grants are not looked
-- at.
CREATE FUNCTION grant_used(object text, stream_name text, tenant bigint, deriving boolean)
RETURNS TABLE (grant_id text, to_note boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT id, last_used IS NULL OR last_used < now_ms() - 60000
  FROM (SELECT id, stream, grantee, derived_only, created_at, last_used, false AS ended
          FROM grants
         WHERE grants.service_object = object
           AND grantee = tenant
           AND (active OR NOT deriving)
         UNION ALL
        SELECT id, stream, grantee, derived_only, created_at, last_used, false AS ended
          FROM grants
         WHERE grants.service_object = object
           AND grantee IS NULL
           AND (active OR NOT deriving)
         UNION ALL
        SELECT id, stream, grantee, derived_only, created_at, last_used, true AS ended
          FROM ended_grants
         WHERE ended_grants.service_object = object
           AND (grantee IS NULL OR grantee = tenant)
           AND ended_at > now_ms() - 60000) AS given
 WHERE (stream IS NULL OR stream = stream_name)
   AND (deriving OR NOT derived_only)
 ORDER BY ended, grantee IS NULL, stream IS NULL, created_at, id
 LIMIT 1
$$;

CREATE FUNCTION note_grant_used(used text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE grants
       SET first_used = coalesce(first_used, now_ms()), last_used = now_ms()
     WHERE id = used
       AND (last_used IS NULL OR last_used < now_ms() - 60000);
    UPDATE ended_grants
       SET first_used = coalesce(first_used, now_ms()), last_used = now_ms()
     WHERE id = used
       AND (last_used IS NULL OR last_used < now_ms() - 60000);
END $$;

-- Who reads whom

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

CREATE TABLE pending_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    change json NOT NULL
);
COMMENT ON TABLE pending_changes IS
    'definition changes committed here but perhaps not yet in the log; finished by whoever changes next';

CREATE TABLE subscriptions (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    stream_id bigint REFERENCES streams ON DELETE CASCADE,
    callback text NOT NULL,
    destination text NOT NULL,
    document json NOT NULL,
    created_at bigint NOT NULL,
    service_object text REFERENCES service_objects ON DELETE CASCADE,
    group_name text,
    changes bigint NOT NULL DEFAULT 0,
    CONSTRAINT subscriptions_of_applications CHECK (callback <> 'internal'),
    CONSTRAINT subscriptions_have_a_source CHECK (
        num_nonnulls(stream_id, service_object) = 1
        AND (group_name IS NULL OR service_object IS NOT NULL))
);
COMMENT ON TABLE subscriptions IS 'applications'' wishes to get the updates of a stream';
COMMENT ON COLUMN subscriptions.service_object IS
    'whose streams it is about, or which has the group; null: it is about one stream';
COMMENT ON COLUMN subscriptions.group_name IS 'the group whose members'' streams it is about';
COMMENT ON COLUMN subscriptions.changes IS
    'counts what may have changed in which streams it is about: delivery looks at them anew';
CREATE INDEX subscriptions_by_stream ON subscriptions (stream_id);
CREATE INDEX subscriptions_by_tenant ON subscriptions (stream_id, tenant_id, created_at, id);
CREATE UNIQUE INDEX subscriptions_pubsub_once
    ON subscriptions (stream_id, tenant_id, destination) WHERE callback = 'pubsub';
CREATE INDEX subscriptions_by_source
    ON subscriptions (service_object, tenant_id, created_at, id) WHERE service_object IS NOT NULL;
CREATE INDEX subscriptions_to_groups ON subscriptions (tenant_id) WHERE group_name IS NOT NULL;
CREATE UNIQUE INDEX subscriptions_pubsub_to_many_once
    ON subscriptions (service_object, group_name, tenant_id, destination) NULLS NOT DISTINCT
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

-- What the pipeline stores of streams. No foreign keys: a check a row costs too much. Who
-- removes streams removes these rows with them (partition.sql, purge_updates and its
-- neighbours).

CREATE TABLE stored_updates (
    tenant_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    PRIMARY KEY (stream_id, "timestamp")
);
COMMENT ON COLUMN stored_updates.log_offset IS 'the source update in the log whose execution tree made this row';
COMMENT ON COLUMN stored_updates.log_position IS 'its place in that tree, breadth first; 0 is the source update';
-- Rows come in that order: block ranges do, at a fraction of the cost of every insert.
CREATE INDEX stored_updates_by_log ON stored_updates USING brin (log_partition, log_offset)
    WITH (pages_per_range = 16, autosummarize = on);

-- COPY does not go into a table with row level security. So rows of updates stand in a partition
-- that nobody may touch but the pipeline, which may do nothing with it but add rows; everything
-- else goes through the table above it, by its policies.

CREATE TABLE updates (
    tenant_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    PRIMARY KEY (stream_id, "timestamp")
) PARTITION BY RANGE (stream_id);
ALTER TABLE updates ATTACH PARTITION stored_updates DEFAULT;
COMMENT ON TABLE stored_updates IS 'all rows of updates: where the pipeline copies them to';

-- What a later update of the same stream, timestamp and batch displaced, until subscribers have it
CREATE TABLE superseded (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    stream_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    tree bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (log_partition, log_offset, tree, log_position)
);

CREATE TABLE states (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    state bytea NOT NULL
);
COMMENT ON TABLE states IS
    'what composite streams keep from one computation to the next, such as what they last used';

CREATE TABLE verdicts (
    stream_id bigint NOT NULL,
    verdict text NOT NULL,
    tenant_id bigint NOT NULL,
    count bigint NOT NULL,
    last json NOT NULL,
    PRIMARY KEY (stream_id, verdict)
) WITH (fillfactor = 50);
COMMENT ON COLUMN verdicts.last IS 'the last computation that ended so: trigger, timestamp, version, message';

-- What each composite stream's code has used
CREATE TABLE usage (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants (id),
    processor_us bigint NOT NULL
);

-- What is deleted or erased and still to be removed
CREATE TABLE purge (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text UNIQUE,
    stored_as bigint UNIQUE,
    reached bigint NOT NULL DEFAULT -9223372036854775808,
    CHECK (num_nonnulls(service_object, stored_as) = 1)
);
COMMENT ON TABLE purge IS
    'what nobody can read any more and is still to be removed: a deleted Service Object, or what '
    'is stored under the number of a stream that was erased or deleted';
COMMENT ON COLUMN purge.log_partition IS 'whose task removes it';
COMMENT ON COLUMN purge.reached IS
    'updates up to this timestamp are removed: what follows is found without passing them again';
CREATE INDEX purge_by_partition ON purge (log_partition, stored_as, id);

-- What Web Objects are asked to do, and how it goes

CREATE TABLE actuations (
    id text PRIMARY KEY,
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    parameters text NOT NULL,
    status text NOT NULL,
    reports jsonb NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    state text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'sent', 'delivered', 'done', 'failed')),
    times jsonb NOT NULL DEFAULT '{}',
    expires_at bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::bigint + 86400000,
    description text NOT NULL DEFAULT '{}',
    made_in xid8 NOT NULL DEFAULT pg_current_xact_id()
);
COMMENT ON TABLE actuations IS 'the newest of each Service Object (actuations.sql, submit)';
COMMENT ON COLUMN actuations.name IS 'of the action, as the document in force spelt it';
COMMENT ON COLUMN actuations.status IS 'what was said of it last';
COMMENT ON COLUMN actuations.reports IS 'what was said of it, and when, oldest first';
CREATE INDEX actuations_by_service_object ON actuations (service_object, sequence);
COMMENT ON COLUMN actuations.state IS
    'how far it has come; once expires_at is over, what is not done or failed is expired';
COMMENT ON COLUMN actuations.times IS 'when it came to which state, in milliseconds since 1970';
COMMENT ON COLUMN actuations.description IS 'the action, as the document then in force had it';
COMMENT ON COLUMN actuations.made_in IS
    'its transaction: delivery asks for those that it cannot have seen yet';
CREATE INDEX actuations_waiting ON actuations (service_object, sequence)
    WHERE state IN ('queued', 'sent');
CREATE INDEX actuations_waiting_of_tenant ON actuations (tenant_id, expires_at)
    WHERE state IN ('queued', 'sent');
CREATE INDEX actuations_made_in ON actuations (made_in) WHERE state = 'queued';

CREATE TABLE acting_streams (
    stream_id bigint PRIMARY KEY REFERENCES streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    created_at bigint NOT NULL,
    cursor json NOT NULL DEFAULT '{"offsets":{},"history":[],"since":{}}'
);
COMMENT ON TABLE acting_streams IS
    'composite streams of which a version asks for actions when it emits';
COMMENT ON COLUMN acting_streams.cursor IS 'as that of a durable subscription: cursors';

CREATE TABLE actuation_callbacks (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    callback json NOT NULL,
    secrets json NOT NULL
);
COMMENT ON TABLE actuation_callbacks IS
    'whom to call with actuations, as the document in force of the Service Object says';
COMMENT ON COLUMN actuation_callbacks.secrets IS 'as those of a subscription, the newest first';

-- Streams that somebody has searched, and columns of their updates: made where they are searched,
-- by who searches. The pipeline knows nothing of them until an update comes that is late.

CREATE TABLE searched_streams (
    stream_id bigint PRIMARY KEY,
    tenant_id bigint NOT NULL,
    changes bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN searched_streams.stream_id IS 'stored_as of the stream';
COMMENT ON COLUMN searched_streams.changes IS
    'grows with each block and each late update: what was read before may not be stored after';

CREATE TABLE search_blocks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id bigint NOT NULL REFERENCES searched_streams ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    after bigint NOT NULL,
    upto bigint NOT NULL,
    timestamps bytea NOT NULL,
    UNIQUE (stream_id, upto)
);
COMMENT ON TABLE search_blocks IS
    'all updates with timestamps larger than after, up to upto; no two of a stream overlap';
COMMENT ON COLUMN search_blocks.timestamps IS 'of these updates, 8 bytes each';
ALTER TABLE search_blocks ALTER COLUMN timestamps SET STORAGE EXTERNAL;

CREATE TABLE search_columns (
    block_id bigint NOT NULL REFERENCES search_blocks ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    subject text NOT NULL,
    bounds double precision[] NOT NULL,
    codes bytea NOT NULL,
    PRIMARY KEY (block_id, subject)
);
COMMENT ON TABLE search_columns IS 'of the updates of a block what searches of one kind go by';
COMMENT ON COLUMN search_columns.subject IS 'the kind of condition and the channel: number:x';
COMMENT ON COLUMN search_columns.codes IS 'api/search/columns.py';
ALTER TABLE search_columns ALTER COLUMN codes SET STORAGE EXTERNAL;

-- How far the log is stored

CREATE TABLE progress (
    log_partition integer PRIMARY KEY,
    next_offset bigint NOT NULL,
    emitted_offset bigint NOT NULL,
    next_tree bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN progress.next_offset IS 'everything in the log before it is stored';
COMMENT ON COLUMN progress.next_tree IS
    'trees of the record at next_offset with smaller numbers are stored, too';
COMMENT ON COLUMN progress.emitted_offset IS 'everything made from the log before it is emitted and acknowledged';

CREATE TABLE forwarded (
    to_partition integer NOT NULL,
    from_partition integer NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (to_partition, from_partition)
);
COMMENT ON TABLE forwarded IS 'records forwarded from a partition are taken once, in order';

-- Records of the log that are computed later than at their place
CREATE TABLE put_off (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL,
    record bytea NOT NULL,
    taken_up boolean NOT NULL DEFAULT false,
    tree bigint NOT NULL DEFAULT 0,
    held boolean NOT NULL DEFAULT false,
    was_held boolean NOT NULL DEFAULT false,
    PRIMARY KEY (log_partition, log_offset, tree)
);
COMMENT ON COLUMN put_off.record IS
    'as it stands in the log; of what crosses a border what concerns this tree';
COMMENT ON COLUMN put_off.tree IS
    'for which tenant, where the record grows a tree for each; 0: it grows one';
COMMENT ON COLUMN put_off.held IS
    'it waits until all has come that another partition sends on to the tenant, not for its turn';
COMMENT ON COLUMN put_off.was_held IS
    'it has, and waits for its turn since: it is ahead of what came later, but not of its place';
COMMENT ON COLUMN put_off.taken_up IS
    'computed and stored; the row stays until all that came of it is emitted';
CREATE INDEX put_off_waiting ON put_off (log_partition, tenant_id, log_offset, tree)
 WHERE NOT taken_up AND NOT held;
CREATE INDEX put_off_held ON put_off (log_partition, tenant_id) WHERE held;
-- By how they are written: `kind` comes first.
CREATE INDEX put_off_begins ON put_off (log_partition, log_offset)
 WHERE NOT taken_up AND NOT held AND substr(record, 1, 15) = '{"kind":"begin"';
-- It is read once and goes: to compress it would cost more than it saves.
ALTER TABLE put_off ALTER COLUMN record SET STORAGE EXTERNAL;

-- Which log that is

CREATE TABLE log_identity (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    topic text NOT NULL,
    topic_id text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN log_identity.topic_id IS 'given by Kafka: a topic made anew has another one';

CREATE TABLE log_losses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_partition integer NOT NULL,
    topic_id text NOT NULL,
    stored_offset bigint NOT NULL,
    log_first bigint NOT NULL,
    log_end bigint NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE log_losses IS
    'where stored progress and the log did not belong together, and an operator accepted it';

-- What Service Objects are listed and searched by, out of their documents: to look into these for
-- each question would take a second for ten thousand of them. A trigger keeps it in step, whoever
-- writes; what a document says there in an odd way is not found, and refuses nothing.

CREATE TABLE listings (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    name text,
    fields text[] NOT NULL,
    channel_types text[] NOT NULL,
    latitude double precision,
    longitude double precision,
    revision integer
);
COMMENT ON COLUMN listings.revision IS
    'of the Service Object, where whoever changed it has listed it already; else null';
COMMENT ON COLUMN listings.fields IS
    'customFields, each as path=value: a.b=5; of an array each element';
COMMENT ON COLUMN listings.latitude IS 'of customFields.location, as is longitude';
CREATE INDEX listings_by_tenant ON listings (tenant_id, service_object);
CREATE INDEX listings_by_field ON listings USING gin (fields);
CREATE INDEX listings_by_latitude ON listings (tenant_id, latitude) WHERE latitude IS NOT NULL;

CREATE FUNCTION object_or_empty(value json) RETURNS json IMMUTABLE LANGUAGE sql AS
$$ SELECT CASE WHEN json_typeof(value) = 'object' THEN value ELSE '{}' END $$;

CREATE FUNCTION array_or_empty(value json) RETURNS json IMMUTABLE LANGUAGE sql AS
$$ SELECT CASE WHEN json_typeof(value) = 'array' THEN value ELSE '[]' END $$;

-- The first 1,000, down to the fifth level, none longer than 300 characters.
CREATE FUNCTION listed_fields(custom_fields json) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        WITH RECURSIVE parts (path, value, depth) AS (
            SELECT key, value, 1
              FROM json_each(object_or_empty(custom_fields))
             UNION ALL
            SELECT parts.path || below.step, below.value, depth + 1
              FROM parts
             CROSS JOIN LATERAL (
                   SELECT '.' || key AS step, value
                     FROM json_each(object_or_empty(parts.value))
                    UNION ALL
                   SELECT '', value
                     FROM json_array_elements(array_or_empty(parts.value))) AS below
             WHERE depth < 5
        ), found AS (
            SELECT path || '=' || (value #>> '{}') AS field
              FROM parts
             WHERE json_typeof(value) IN ('string', 'number', 'boolean')
               AND octet_length(value::text) <= 300
             LIMIT 1000
        )
        SELECT coalesce(array_agg(DISTINCT field), '{}')
          FROM found
         WHERE length(field) <= 300);
EXCEPTION WHEN data_exception THEN  -- a NUL, which text cannot hold
    RETURN '{}';
END $$;

CREATE FUNCTION listed_channel_types(document json) RETURNS text[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(DISTINCT lower(regexp_replace(type, '\s', '', 'g'))), '{}')
          FROM json_each(object_or_empty(document -> 'streams')) AS stream
         CROSS JOIN LATERAL json_each(object_or_empty(
               object_or_empty(stream.value) -> 'channels')) AS channel
         CROSS JOIN LATERAL (SELECT object_or_empty(channel.value) ->> 'type' AS type) AS declared
         WHERE length(type) <= 100);
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END $$;

CREATE FUNCTION listed_name(document json) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN json_typeof(document -> 'name') = 'string'
                THEN left(document ->> 'name', 200) END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- Latitude and longitude of "lat,lon" or [lon, lat], or null.
CREATE FUNCTION listed_place(custom_fields json) RETURNS double precision[]
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
    place json;
    found double precision[];
BEGIN
    place := object_or_empty(custom_fields) -> 'location';
    found := CASE json_typeof(place)
        WHEN 'string' THEN string_to_array(place #>> '{}', ',')::double precision[]
        WHEN 'array' THEN ARRAY[place ->> 1, place ->> 0]::double precision[]
    END;
    IF cardinality(found) = 2 AND found[1] BETWEEN -90 AND 90 AND found[2] BETWEEN -180 AND 180 THEN
        RETURN found;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- What is longer than 64 KiB is not searched: whoever changes something waits for what is derived
-- of it here.
CREATE FUNCTION list_service_object() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    searched json := CASE WHEN octet_length(NEW.custom_fields::text) <= 65536
                          THEN NEW.custom_fields END;
BEGIN
    IF NEW.deleted_at IS NOT NULL THEN
        DELETE FROM listings
         WHERE service_object = NEW.id
           AND tenant_id = NEW.tenant_id;
        RETURN NULL;
    END IF;
    PERFORM 1
       FROM listings
      WHERE service_object = NEW.id
        AND tenant_id = NEW.tenant_id
        AND revision = NEW.revision;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO listings (service_object, tenant_id, name, fields, channel_types, latitude,
                          longitude)
    SELECT id, service_objects.tenant_id, listed_name(document), listed_fields(searched),
           listed_channel_types(document), place[1], place[2]
      FROM service_objects
      JOIN definitions ON service_object = id AND definitions.version = service_objects.version
     CROSS JOIN LATERAL listed_place(searched) AS place
     WHERE id = NEW.id
    ON CONFLICT (service_object) DO UPDATE
       SET name = excluded.name, fields = excluded.fields,
           channel_types = excluded.channel_types, latitude = excluded.latitude,
           longitude = excluded.longitude, revision = NULL;
    RETURN NULL;
END $$;

-- Deferred: the document is written after the row that says it is in force.
CREATE CONSTRAINT TRIGGER list_service_object
 AFTER INSERT OR UPDATE OF version, custom_fields ON service_objects
 DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION list_service_object();

-- What was answered to requests that carried an Idempotency-Key, for a day.
CREATE TABLE idempotency (
    tenant_id bigint NOT NULL REFERENCES tenants,
    key text NOT NULL,
    digest bytea NOT NULL,
    attempt text NOT NULL,
    began_at bigint NOT NULL,
    status integer,
    headers json,
    body bytea,
    PRIMARY KEY (tenant_id, key)
);
COMMENT ON COLUMN idempotency.digest IS 'of the request and its token: the same key may not come with another';
COMMENT ON COLUMN idempotency.attempt IS 'who works on it; who takes over has another one';
COMMENT ON COLUMN idempotency.body IS
    'the answer, readable only with the token that asked: it may tell another token';
COMMENT ON COLUMN idempotency.status IS 'null: not answered yet';
CREATE INDEX idempotency_by_age ON idempotency (tenant_id, began_at);
CREATE INDEX idempotency_by_beginning ON idempotency (began_at);

-- Subscriptions that are delivered to, however long their receiver is away.

CREATE SEQUENCE cursor_changes;

CREATE TABLE cursors (
    subscription_id text PRIMARY KEY REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    change bigint NOT NULL DEFAULT nextval('cursor_changes'),
    active boolean NOT NULL DEFAULT true,
    cursor json NOT NULL,
    trouble json,
    expires_at bigint
);
COMMENT ON TABLE cursors IS 'how far each durable subscription has been acknowledged';
COMMENT ON COLUMN cursors.change IS 'another number whenever delivery has to look at it again';
COMMENT ON COLUMN cursors.trouble IS 'why its receiver does not take what comes; NULL: it does';
COMMENT ON COLUMN cursors.active IS 'whether it is delivered to; else its cursor stays where it is';
COMMENT ON COLUMN cursors.expires_at IS 'delivered to until then, in milliseconds since 1970; NULL: for ever';

CREATE TABLE dead_deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id text NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    delivery_id text NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    "timestamp" bigint NOT NULL,
    document json NOT NULL,
    reason text NOT NULL,
    died_at bigint NOT NULL,
    redrive boolean NOT NULL DEFAULT false,
    UNIQUE (subscription_id, delivery_id),
    bytes bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE dead_deliveries IS 'updates that a receiver has refused for good';
COMMENT ON COLUMN dead_deliveries.redrive IS 'whether it is to be delivered once more';
COMMENT ON COLUMN dead_deliveries.bytes IS 'of its document';
CREATE INDEX dead_deliveries_by_age ON dead_deliveries (died_at);
CREATE INDEX dead_deliveries_by_tenant ON dead_deliveries (tenant_id, id DESC) INCLUDE (bytes);

-- Fleets: documents with parameters, and the Service Objects that are made from them.

CREATE TABLE templates (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    version integer NOT NULL DEFAULT 1,
    newest_version integer NOT NULL DEFAULT 1,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint
);
COMMENT ON COLUMN templates.version IS 'the version in force, which its objects follow';
COMMENT ON COLUMN templates.deleted_at IS
    'the row goes later: a job that was accepted in the same moment still finds it';
CREATE INDEX templates_by_tenant ON templates (tenant_id, id);
CREATE INDEX templates_deleted ON templates (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE template_versions (
    template text NOT NULL REFERENCES templates ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL,
    content json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (template, version)
);

CREATE TABLE template_objects (
    service_object text PRIMARY KEY REFERENCES service_objects ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    template text NOT NULL REFERENCES templates,
    version integer NOT NULL,
    parameters json NOT NULL
);
COMMENT ON COLUMN template_objects.version IS
    'of the template, that the document in force of the Service Object was made from';
CREATE INDEX template_objects_by_template ON template_objects (template, service_object);

CREATE FUNCTION leave_template() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM template_objects
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id;
    RETURN NULL;
END $$;

CREATE TRIGGER leave_template
 AFTER UPDATE OF deleted_at ON service_objects
   FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION leave_template();

-- Claim codes: a device that has no token gets a Service Object and a token for one.

CREATE TABLE claim_codes (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    digest bytea NOT NULL UNIQUE,
    template text REFERENCES templates ON DELETE CASCADE,
    service_object text REFERENCES service_objects ON DELETE CASCADE,
    parameters json NOT NULL,
    allowed text[] NOT NULL,
    device_as text,
    pattern text,
    listed boolean NOT NULL,
    uses integer NOT NULL,
    used integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    tokens_end timestamptz,
    CONSTRAINT claim_codes_of_one CHECK ((template IS NULL) <> (service_object IS NULL)),
    CONSTRAINT claim_codes_uses CHECK (used <= uses)
);
COMMENT ON COLUMN claim_codes.digest IS 'SHA-256 of its letters; the code itself is nowhere';
COMMENT ON COLUMN claim_codes.parameters IS 'values of parameters that the tenant has given';
COMMENT ON COLUMN claim_codes.allowed IS 'parameters that a device may give';
COMMENT ON COLUMN claim_codes.device_as IS 'the parameter that is the name of the device';
COMMENT ON COLUMN claim_codes.pattern IS 'names of devices that it is for; null: all';
COMMENT ON COLUMN claim_codes.listed IS 'whether it is for those devices only that have a row';
COMMENT ON COLUMN claim_codes.tokens_end IS
    'when the tokens end that devices get for it, as that of its maker does; null: they do not';
CREATE INDEX claim_codes_by_tenant ON claim_codes (tenant_id, id);
CREATE INDEX claim_codes_by_end ON claim_codes (expires_at);
CREATE INDEX claim_codes_by_template ON claim_codes (template) WHERE template IS NOT NULL;
CREATE INDEX claim_codes_by_service_object ON claim_codes (service_object)
 WHERE service_object IS NOT NULL;

CREATE TABLE claims (
    code text NOT NULL REFERENCES claim_codes ON DELETE CASCADE,
    device text NOT NULL,
    tenant_id bigint NOT NULL,
    key_digest bytea,
    salt bytea,
    service_object text,
    token_id text,
    claimed_at bigint,
    PRIMARY KEY (code, device)
);
COMMENT ON TABLE claims IS
    'devices that have claimed by a code; and those it is for, which have not yet';
COMMENT ON COLUMN claims.key_digest IS 'SHA-256 of the secret that the device has made up';
COMMENT ON COLUMN claims.salt IS 'with what the device has sent it makes its token, once more';
CREATE INDEX claims_by_tenant ON claims (tenant_id);

-- How many streams a Service Object has that is made from this content of a template.
CREATE FUNCTION streams_in(content json) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT CASE json_typeof(content #> '{document,streams}')
       WHEN 'object' THEN (SELECT count(*) FROM json_object_keys(content #> '{document,streams}'))
       ELSE 0 END
$$;

-- Groups whose members are found by conditions. Triggers keep in step which there are and whose
-- may be concerned by a change, whoever writes; who belongs is found out by the follower.

CREATE TABLE dynamic_groups (
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    name text NOT NULL,
    tenant_id bigint NOT NULL,
    others boolean NOT NULL,
    PRIMARY KEY (service_object, name)
);
COMMENT ON COLUMN dynamic_groups.others IS
    'whether public Service Objects of other tenants may belong, too';
CREATE INDEX dynamic_groups_by_tenant ON dynamic_groups (tenant_id, service_object);
CREATE INDEX dynamic_groups_with_others ON dynamic_groups (others) WHERE others;

CREATE TABLE membership_marks (
    tenant_id bigint PRIMARY KEY,
    changes bigint NOT NULL DEFAULT 1
);
COMMENT ON TABLE membership_marks IS
    'whose Service Objects have changed since the follower looked at dynamic groups';
COMMENT ON COLUMN membership_marks.changes IS
    'counted, so that a mark which is just taken away is waited for and made anew';

-- Looks at them go on where they stopped, tenants in turn.
CREATE TABLE group_looks (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    after text NOT NULL DEFAULT '',
    again boolean NOT NULL DEFAULT false,
    looked_at timestamptz NOT NULL DEFAULT '-infinity'
);
COMMENT ON TABLE group_looks IS 'whose dynamic groups are still to be looked at by the follower';
COMMENT ON COLUMN group_looks.after IS 'the last Service Object whose groups it has looked at';
COMMENT ON COLUMN group_looks.again IS 'something has changed since it began: it begins once more';
COMMENT ON COLUMN group_looks.looked_at IS 'its last turn: the next one is that of another tenant';

CREATE FUNCTION mark_membership() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM dynamic_groups
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id;
    INSERT INTO dynamic_groups (service_object, name, tenant_id, others)
    SELECT NEW.id, name, NEW.tenant_id, coalesce(conditions ->> 'public' = 'true', false)
      FROM definitions
           -- Wherever there is a NUL in it, Postgres would look into none of it.
     CROSS JOIN LATERAL (
           SELECT replace(document::text, '\u0000', '\u0001')::json -> 'groups' AS groups) AS read
     CROSS JOIN LATERAL json_each(object_or_empty(groups)) AS named (name, content)
     CROSS JOIN LATERAL (
           SELECT object_or_empty(named.content) -> 'where' AS conditions) AS query
     WHERE service_object = NEW.id
       AND definitions.tenant_id = NEW.tenant_id
       AND version = NEW.version
       AND json_typeof(conditions) = 'object'
       AND NEW.deleted_at IS NULL
        ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM dynamic_groups WHERE tenant_id = NEW.tenant_id OR others) THEN
        INSERT INTO membership_marks (tenant_id)
        VALUES (NEW.tenant_id)
            ON CONFLICT (tenant_id) DO UPDATE
           SET changes = membership_marks.changes + 1;
    END IF;
    RETURN NULL;
END $$;

-- Deferred, as what is looked at is written after the row.
CREATE CONSTRAINT TRIGGER mark_membership
 AFTER INSERT OR UPDATE OF version, custom_fields, public, deleted_at ON service_objects
 DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION mark_membership();

CREATE FUNCTION keep_activated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE definitions
       SET automatic = false
     WHERE service_object = NEW.id
       AND tenant_id = NEW.tenant_id
       AND version = NEW.version;
    RETURN NULL;
END $$;

-- A version that somebody went back to is not pruned any more: the log names it again.
CREATE TRIGGER keep_activated
 AFTER UPDATE OF version ON service_objects
   FOR EACH ROW WHEN (NEW.version < NEW.newest_version) EXECUTE FUNCTION keep_activated();

-- Work that goes on after its request was answered, and after any crash.

CREATE SEQUENCE job_turns;

CREATE TABLE jobs (
    id text PRIMARY KEY,
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    kind text NOT NULL CHECK (kind IN ('creation', 'roll-out')),
    template text NOT NULL REFERENCES templates ON DELETE CASCADE,
    version integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'running', 'done', 'superseded')),
    total integer,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    failures json NOT NULL DEFAULT '[]',
    reached text NOT NULL DEFAULT '',
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    turn bigint NOT NULL DEFAULT nextval('job_turns')
);
COMMENT ON COLUMN jobs.version IS 'of the template, that the Service Objects are made from';
COMMENT ON COLUMN jobs.total IS 'of a roll-out known when it begins';
COMMENT ON COLUMN jobs.failures IS 'which failed and why, the first ones';
COMMENT ON COLUMN jobs.reached IS
    'of a roll-out: Service Objects up to this id have been changed, or have failed';
COMMENT ON COLUMN jobs.turn IS 'jobs take turns, a batch each: the smallest number is next';
CREATE INDEX jobs_by_tenant ON jobs (tenant_id, sequence);
CREATE INDEX jobs_unfinished ON jobs (turn) WHERE state IN ('waiting', 'running');

CREATE TABLE job_items (
    job text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number integer NOT NULL,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL,
    parameters json NOT NULL,
    PRIMARY KEY (job, number)
);
COMMENT ON TABLE job_items IS 'what a creation has still to make; done ones are gone';
COMMENT ON COLUMN job_items.service_object IS
    'its id, given beforehand: what was made before a crash is not made again';

CREATE TABLE callback_tests (
    subscription_id text PRIMARY KEY REFERENCES subscriptions ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    id text NOT NULL,
    document json NOT NULL,
    asked_at bigint NOT NULL,
    sent_at bigint,
    status integer,
    reason text,
    milliseconds integer
);
COMMENT ON TABLE callback_tests IS 'one attempt, outside of the order, at the press of a button';
COMMENT ON COLUMN callback_tests.document IS 'the update that was made up for it';
COMMENT ON COLUMN callback_tests.sent_at IS 'when delivery took it, which it does once';
COMMENT ON COLUMN callback_tests.status IS 'what the receiver answered; 0: nothing; NULL: not known';
CREATE INDEX callback_tests_waiting ON callback_tests (tenant_id, asked_at) WHERE status IS NULL;
CREATE INDEX callback_tests_to_send ON callback_tests (asked_at) WHERE sent_at IS NULL;

-- Who is told of changes: delivery listens.

CREATE FUNCTION tell_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'token ' || encode(OLD.digest, 'hex'));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_token
 AFTER UPDATE OR DELETE ON tokens
   FOR EACH ROW EXECUTE FUNCTION tell_token();

-- Whoever was let in as a member is looked up anew when the membership is another one, or none.
CREATE FUNCTION tell_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.role <> OLD.role THEN
        PERFORM pg_notify('servioticy_access', 'person ' || encode(OLD.person, 'hex'));
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER tell_member
 AFTER UPDATE OR DELETE ON members
   FOR EACH ROW EXECUTE FUNCTION tell_member();

CREATE FUNCTION tell_readers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'object ' || NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_readers
 AFTER UPDATE OF version, public, deleted_at ON service_objects
   FOR EACH ROW
 EXECUTE FUNCTION tell_readers();

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

-- Who belongs to dynamic groups goes by what their readers are granted, too.
CREATE FUNCTION mark_granted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM dynamic_groups WHERE others) THEN
        INSERT INTO membership_marks (tenant_id)
        VALUES (NEW.tenant_id)
            ON CONFLICT (tenant_id) DO UPDATE
           SET changes = membership_marks.changes + 1;
    END IF;
    -- Delivery looks anew at who may stay, and at what subscriptions to several streams are about.
    PERFORM pg_notify('servioticy_access', 'object ' || NEW.service_object);
    UPDATE subscriptions
       SET changes = changes + 1
     WHERE service_object = NEW.service_object;
    UPDATE subscriptions
       SET changes = changes + 1
      FROM (SELECT DISTINCT reader, group_name
              FROM streams
              JOIN graph_edges ON stream_id = streams.id
             WHERE streams.service_object = NEW.service_object) AS groups
     WHERE subscriptions.service_object = groups.reader
       AND subscriptions.group_name = groups.group_name;
    RETURN NULL;
END $$;

CREATE TRIGGER mark_granted
 AFTER INSERT OR UPDATE OF revoked_at ON grants
   FOR EACH ROW EXECUTE FUNCTION mark_granted();

-- What each tenant has used, hour by hour, of each stream. Named by words and not by numbers: what
-- was used is to be paid when the stream is gone.

CREATE TABLE usage_hours (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    hour bigint NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    provider_id bigint NOT NULL,
    updates_in bigint NOT NULL DEFAULT 0,
    computations jsonb NOT NULL DEFAULT '{}',
    processor_us bigint NOT NULL DEFAULT 0,
    stored_rows bigint NOT NULL DEFAULT 0,
    stored_bytes bigint NOT NULL DEFAULT 0,
    deliveries bigint NOT NULL DEFAULT 0,
    grant_id text NOT NULL DEFAULT '',
    read_us bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, hour, service_object, stream, provider_id, grant_id)
);
COMMENT ON COLUMN usage_hours.tenant_id IS 'who pays: who sends, computes, or has it delivered';
COMMENT ON COLUMN usage_hours.hour IS 'when it began, in milliseconds since 1970';
COMMENT ON COLUMN usage_hours.provider_id IS
    'whose stream woke the computations, or was delivered; the tenant itself, who granted it, or 0: one that has gone';
COMMENT ON COLUMN usage_hours.computations IS 'how many ended with which verdict';
COMMENT ON COLUMN usage_hours.grant_id IS
    'by which the provider''s stream was read; empty: it is the tenant''s own, or public';
COMMENT ON COLUMN usage_hours.read_us IS
    'processor time of the API for reads; they stand under an empty name of a stream';
CREATE INDEX usage_hours_by_provider ON usage_hours (provider_id, hour)
 WHERE provider_id <> tenant_id;
CREATE INDEX usage_hours_by_hour ON usage_hours (hour);

CREATE FUNCTION this_hour() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) / 3600)::bigint * 3600000
$$;

CREATE FUNCTION counts_added(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
SELECT coalesce(jsonb_object_agg(name, times), '{}')
  FROM (SELECT name, sum(times::bigint) AS times
          FROM (SELECT * FROM jsonb_each_text(a)
                 UNION ALL
                SELECT * FROM jsonb_each_text(b)) AS counted (name, times)
         GROUP BY name) AS added
$$;

CREATE AGGREGATE counts_summed(jsonb) (SFUNC = counts_added, STYPE = jsonb, INITCOND = '{}');

-- What a tenant has used of its quotas of an hour, in one row: it is asked every few seconds, and
-- `usage_hours` has a row for each stream.

CREATE TABLE used_amounts (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    hour bigint NOT NULL,
    computations bigint NOT NULL,
    processor_us bigint NOT NULL,
    deliveries bigint NOT NULL,
    read_us bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE used_amounts IS 'what a tenant has used in the latest hour: some seconds late';
COMMENT ON COLUMN used_amounts.hour IS 'as in usage_hours: when it began';
CREATE INDEX used_amounts_by_hour ON used_amounts (hour);

-- Of a tenant that is still there. What ends in the next hour counts in that.
CREATE FUNCTION note_used(
    tenant bigint, computations bigint, processor_us bigint, deliveries bigint,
    read_us bigint DEFAULT 0)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO used_amounts AS used (tenant_id, hour, computations, processor_us, deliveries,
                                      read_us)
    SELECT id, this_hour(), note_used.computations, note_used.processor_us, note_used.deliveries,
           note_used.read_us
      FROM tenants
     WHERE id = tenant
        ON CONFLICT (tenant_id) DO UPDATE
       SET hour = greatest(used.hour, excluded.hour),
           computations = excluded.computations
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.computations END,
           processor_us = excluded.processor_us
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.processor_us END,
           deliveries = excluded.deliveries
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.deliveries END,
           read_us = excluded.read_us
               + CASE WHEN used.hour < excluded.hour THEN 0 ELSE used.read_us END;
END $$;

-- What an operator lets a tenant have that is not what every tenant may have, and how much is
-- stored of each.

CREATE TABLE quotas (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    most bigint NOT NULL CHECK (most >= 0),
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON COLUMN quotas.name IS 'as in servioticy/domain/quotas.py';

CREATE TABLE stored_amounts (
    tenant_id bigint PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    bytes bigint NOT NULL
);
COMMENT ON TABLE stored_amounts IS
    'how many bytes of updates are stored of a tenant: some seconds late, and about';

-- Who has defined, allowed and revoked what. Triggers write it, in the transaction of what it
-- tells, whoever writes there; no document and no secret is in it.

CREATE TABLE audit (
    tenant_id bigint NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    actor_tenant bigint,
    actor_token text,
    action text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    causer bigint NOT NULL,
    place bigint NOT NULL,
    PRIMARY KEY (tenant_id, number)
);
COMMENT ON COLUMN audit.tenant_id IS 'whose it is, what is told about';
COMMENT ON COLUMN audit.number IS 'counted for each tenant, without a gap';
COMMENT ON COLUMN audit.actor_tenant IS 'null: the platform by itself, or its operator';
COMMENT ON COLUMN audit.actor_token IS 'the id of the token; `member/` and the id of the member';
COMMENT ON COLUMN audit.subject IS 'the id of what it was done to';
COMMENT ON COLUMN audit.place IS 'counted for each tenant, kind and causer';
CREATE INDEX audit_by_age ON audit (at);
CREATE INDEX audit_by_part ON audit (tenant_id, kind, causer, place);

CREATE TABLE audit_counts (
    tenant_id bigint PRIMARY KEY,
    number bigint NOT NULL
);
COMMENT ON TABLE audit_counts IS 'the number of each tenant''s last entry';

-- What one kind of entry, or one stranger, fills of a tenant's audit log is not another's.

CREATE TABLE audit_parts (
    tenant_id bigint NOT NULL,
    kind text NOT NULL,
    causer bigint NOT NULL,
    places bigint NOT NULL,
    newest bigint NOT NULL,
    PRIMARY KEY (tenant_id, kind, causer)
);
COMMENT ON TABLE audit_parts IS
    'the parts of a tenant''s audit log that are bounded apart: by kind, and by who caused it';
COMMENT ON COLUMN audit_parts.causer IS
    'the tenant itself, another one, or 0: the platform by itself, or its operator';
COMMENT ON COLUMN audit_parts.places IS 'how many entries there have been in this part';
COMMENT ON COLUMN audit_parts.newest IS 'the number of the newest of them';

-- Of each part the newest stay: 20,000 of what the tenant itself did, and of the platform; 500 of
-- another tenant, and of others those 40 that came last. There are ten kinds. Where the platform
-- does what has to do with something of another tenant, that one has caused it.
-- Entries in the order of the subjects. One by one they would change the same count each time,
-- and Postgres would look through all its versions of the transaction for each.
CREATE FUNCTION note_all_in_audit(
    tenant bigint, action text, kind text, subjects text[], because_of bigint DEFAULT 0)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    actor text[] := string_to_array(
        nullif(current_setting('servioticy.actor', true), ''), ' ');
    cause bigint := coalesce(actor[1]::bigint, because_of);
    is_stranger boolean := cause NOT IN (0, tenant);
    times bigint := cardinality(subjects);
    last_entry bigint;
    last_place bigint;
BEGIN
    INSERT INTO audit_counts (tenant_id, number)
    VALUES (tenant, times)
        ON CONFLICT (tenant_id) DO UPDATE
       SET number = audit_counts.number + excluded.number
    RETURNING number INTO last_entry;
    INSERT INTO audit_parts (tenant_id, kind, causer, places, newest)
    VALUES (tenant, note_all_in_audit.kind, cause, times, last_entry)
        ON CONFLICT ON CONSTRAINT audit_parts_pkey DO UPDATE
       SET places = audit_parts.places + excluded.places, newest = excluded.newest
    RETURNING places INTO last_place;
    INSERT INTO audit (tenant_id, number, actor_tenant, actor_token, action, kind, subject,
                       causer, place)
    SELECT tenant, last_entry - times + told.place, actor[1]::bigint, actor[2], action,
           note_all_in_audit.kind, subject, cause, last_place - times + told.place
      FROM unnest(subjects) WITH ORDINALITY AS told (subject, place);
    DELETE FROM audit
     WHERE audit.tenant_id = tenant
       AND audit.kind = note_all_in_audit.kind
       AND audit.causer = cause
       AND audit.place <= last_place - CASE WHEN is_stranger THEN 500 ELSE 20000 END;
    IF is_stranger AND last_place = times THEN
        WITH gone AS (
            DELETE FROM audit_parts
             WHERE audit_parts.tenant_id = tenant
               AND audit_parts.kind = note_all_in_audit.kind
               AND audit_parts.causer IN (
                   SELECT strangers.causer
                     FROM audit_parts AS strangers
                    WHERE strangers.tenant_id = tenant
                      AND strangers.kind = note_all_in_audit.kind
                      AND strangers.causer NOT IN (0, tenant)
                    ORDER BY strangers.newest DESC
                   OFFSET 40)
            RETURNING audit_parts.causer
        )
        DELETE FROM audit
         USING gone
         WHERE audit.tenant_id = tenant
           AND audit.kind = note_all_in_audit.kind
           AND audit.causer = gone.causer;
    END IF;
END $$;

CREATE FUNCTION note_in_audit(tenant bigint, action text, kind text, subject text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(tenant, action, kind, ARRAY[subject]);
END $$;

CREATE FUNCTION audit_service_object() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'service object', NEW.id);
    ELSIF NEW.deleted_at IS NOT NULL THEN
        IF OLD.deleted_at IS NULL THEN
            PERFORM note_in_audit(NEW.tenant_id, 'deleted', 'service object', NEW.id);
        END IF;
    ELSIF NEW.newest_version <> OLD.newest_version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'service object', NEW.id);
    ELSIF NEW.version <> OLD.version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'activated', 'service object', NEW.id);
    ELSIF NEW.revision <> OLD.revision THEN
        PERFORM note_in_audit(NEW.tenant_id, 'customised', 'service object', NEW.id);
    END IF;
    IF NEW.public AND (TG_OP = 'INSERT' OR NOT OLD.public) THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made public', 'service object', NEW.id);
    ELSIF TG_OP = 'UPDATE' AND OLD.public AND NOT NEW.public THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made private', 'service object', NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_erasure() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'erased', 'stream',
                          (NEW.change ->> 'service_object') || '/' || (NEW.change ->> 'stream'));
    RETURN NULL;
END $$;

-- Tenants in order, so that of two statements one waits for the other and not both. What has ended
-- goes without an entry: nobody has revoked that.
CREATE FUNCTION audit_tokens() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(tenant_id, TG_ARGV[0], 'token', ids)
       FROM (SELECT tenant_id, array_agg(id ORDER BY id) AS ids
               FROM changed
              WHERE TG_OP <> 'DELETE' OR expires_at IS NULL OR expires_at > now()
              GROUP BY tenant_id
              ORDER BY tenant_id) AS of_tenants;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_member() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'added', 'member', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'changed', 'member', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'removed', 'member', OLD.id);
    END IF;
    RETURN NULL;
END $$;

-- What is too old goes without an entry: nobody has done that.
CREATE FUNCTION audit_claim_code() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'made', 'claim code', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'used', 'claim code', NEW.id);
    ELSIF OLD.expires_at > now() THEN
        PERFORM note_in_audit(OLD.tenant_id, 'revoked', 'claim code', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_subscription() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'subscription', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'changed', 'subscription', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'subscription', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_template() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'template', NEW.id);
    ELSIF NEW.deleted_at IS NOT NULL THEN
        PERFORM note_in_audit(NEW.tenant_id, 'deleted', 'template', NEW.id);
    ELSIF NEW.newest_version <> OLD.newest_version THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'template', NEW.id);
    ELSE
        PERFORM note_in_audit(NEW.tenant_id, 'activated', 'template', NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_job() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'begun', 'job', NEW.id);
    RETURN NULL;
END $$;

CREATE FUNCTION audit_actuation_secret() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_in_audit(NEW.tenant_id, 'rotated', 'actuation secret', NEW.service_object);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_service_object
 AFTER INSERT OR UPDATE OF version, custom_fields, public, deleted_at ON service_objects
   FOR EACH ROW EXECUTE FUNCTION audit_service_object();
CREATE TRIGGER audit_erasure
 AFTER INSERT ON pending_changes
   FOR EACH ROW WHEN (NEW.change ->> 'kind' = 'erasure') EXECUTE FUNCTION audit_erasure();
CREATE TRIGGER audit_made_tokens
 AFTER INSERT ON tokens REFERENCING NEW TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('made');
CREATE TRIGGER audit_rotated_tokens
 AFTER UPDATE ON tokens REFERENCING NEW TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('rotated');
CREATE TRIGGER audit_revoked_tokens
 AFTER DELETE ON tokens REFERENCING OLD TABLE AS changed
   FOR EACH STATEMENT EXECUTE FUNCTION audit_tokens('revoked');
CREATE TRIGGER audit_member
 AFTER INSERT OR UPDATE OR DELETE ON members
   FOR EACH ROW EXECUTE FUNCTION audit_member();
CREATE TRIGGER audit_claim_code
 AFTER INSERT OR UPDATE OF used OR DELETE ON claim_codes
   FOR EACH ROW EXECUTE FUNCTION audit_claim_code();
CREATE TRIGGER audit_subscription
 AFTER INSERT OR UPDATE OF document OR DELETE ON subscriptions
   FOR EACH ROW EXECUTE FUNCTION audit_subscription();
CREATE TRIGGER audit_template
 AFTER INSERT OR UPDATE OF version, deleted_at ON templates
   FOR EACH ROW EXECUTE FUNCTION audit_template();
CREATE TRIGGER audit_actuation_secret
 AFTER UPDATE OF secrets ON actuation_callbacks
   FOR EACH ROW EXECUTE FUNCTION audit_actuation_secret();
CREATE TRIGGER audit_job
 AFTER INSERT ON jobs
   FOR EACH ROW EXECUTE FUNCTION audit_job();

-- Both sides, as far as they are still there; in their order, so that of two that tell both sides
-- one waits for the other. To the receiver whatever becomes of it is the giver's doing: else grants
-- that expire would fill the part of the platform.
CREATE FUNCTION note_grant_in_audit(giver bigint, receiver bigint, action text, subject text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    side bigint;
BEGIN
    FOR side IN SELECT id FROM tenants WHERE id IN (giver, receiver) ORDER BY id LOOP
        PERFORM note_all_in_audit(side, action, 'grant', ARRAY[subject],
                                  CASE side WHEN giver THEN 0 ELSE giver END);
    END LOOP;
END $$;

CREATE FUNCTION audit_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_grant_in_audit(NEW.tenant_id, NEW.grantee,
                                CASE TG_OP WHEN 'INSERT' THEN 'made' ELSE 'revoked' END, NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_grant
 AFTER INSERT OR UPDATE OF revoked_at ON grants
   FOR EACH ROW EXECUTE FUNCTION audit_grant();

-- Once a day, at its first use in it.
CREATE FUNCTION audit_use_of_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_grant_in_audit(NEW.tenant_id, NEW.grantee, 'used', NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER audit_use_of_grant
 AFTER UPDATE OF last_used ON grants
   FOR EACH ROW
  WHEN (OLD.last_used IS NULL OR OLD.last_used / 86400000 < NEW.last_used / 86400000)
EXECUTE FUNCTION audit_use_of_grant();
CREATE TRIGGER audit_use_of_grant
 AFTER UPDATE OF last_used ON ended_grants
   FOR EACH ROW
  WHEN (OLD.last_used IS NULL OR OLD.last_used / 86400000 < NEW.last_used / 86400000)
EXECUTE FUNCTION audit_use_of_grant();

-- A grant that goes with its Service Object, or with the tenant that it was for, is told of as one
-- that was revoked is: both sides, as `note_grant_in_audit` tells them of one, and in the same
-- order.
CREATE FUNCTION audit_ended_grants() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM note_all_in_audit(side, 'ended', 'grant', ids, because_of)
       FROM (SELECT side, because_of, array_agg(told.id ORDER BY told.id) AS ids
               FROM (SELECT tenant_id AS side, 0 AS because_of, id
                       FROM gone
                      WHERE revoked_at IS NULL
                      UNION ALL
                     SELECT grantee, tenant_id, id
                       FROM gone
                      WHERE revoked_at IS NULL
                        AND grantee <> tenant_id) AS told
               JOIN tenants ON tenants.id = side
              GROUP BY side, because_of
              ORDER BY side, because_of) AS of_sides;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_ended_grants
 AFTER DELETE ON grants REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION audit_ended_grants();

-- Who may see and do what: row level security, forced. The roles are made before (servioticy/storage/roles.py); none of
-- them owns anything but functions of triggers, and none may pass a policy.
--
-- servioticy_api       sees and changes rows of the tenants in the setting servioticy.tenants
-- servioticy_platform  what the API does between tenants: who asks, the stream graph, fleets
-- servioticy_pipeline  computes and stores for all tenants; sees no token
-- servioticy_delivery  delivers for all tenants; of updates those of the tenants in the setting
--
-- A migration that reads or changes rows has to say ALTER TABLE ... NO FORCE ROW LEVEL SECURITY
-- first, and FORCE afterwards: where it forgets, it fails.

GRANT USAGE ON SCHEMA public
   TO servioticy_api, servioticy_platform, servioticy_pipeline, servioticy_delivery;

-- Triggers keep in step what may be another tenant's, or is nobody's to write.

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION list_service_object OWNER TO servioticy_platform;
ALTER FUNCTION mark_membership OWNER TO servioticy_platform;
ALTER FUNCTION leave_template OWNER TO servioticy_platform;
ALTER FUNCTION keep_activated OWNER TO servioticy_platform;
ALTER FUNCTION note_sources OWNER TO servioticy_platform;
ALTER FUNCTION note_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_service_object OWNER TO servioticy_platform;
ALTER FUNCTION audit_erasure OWNER TO servioticy_platform;
ALTER FUNCTION note_all_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_tokens OWNER TO servioticy_platform;
ALTER FUNCTION audit_member OWNER TO servioticy_platform;
ALTER FUNCTION audit_claim_code OWNER TO servioticy_platform;
ALTER FUNCTION audit_subscription OWNER TO servioticy_platform;
ALTER FUNCTION audit_template OWNER TO servioticy_platform;
ALTER FUNCTION audit_job OWNER TO servioticy_platform;
ALTER FUNCTION audit_actuation_secret OWNER TO servioticy_platform;
ALTER FUNCTION is_granted OWNER TO servioticy_platform;
ALTER FUNCTION granted_for OWNER TO servioticy_platform;
ALTER FUNCTION granted_objects OWNER TO servioticy_platform;
ALTER FUNCTION grant_used OWNER TO servioticy_platform;
ALTER FUNCTION note_grant_used OWNER TO servioticy_platform;
ALTER FUNCTION keep_ended_grants OWNER TO servioticy_platform;
ALTER FUNCTION mark_granted OWNER TO servioticy_platform;
ALTER FUNCTION audit_grant OWNER TO servioticy_platform;
ALTER FUNCTION note_grant_in_audit OWNER TO servioticy_platform;
ALTER FUNCTION audit_use_of_grant OWNER TO servioticy_platform;
ALTER FUNCTION audit_ended_grants OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;
REVOKE EXECUTE ON FUNCTION note_in_audit, note_all_in_audit, note_grant_in_audit FROM PUBLIC;

-- They tell of any tenant. Whoever reads a view that calls one needs the right to it, too.
REVOKE EXECUTE ON FUNCTION is_granted, granted_for, granted_objects, grant_used, note_grant_used
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_granted
   TO servioticy_api, servioticy_platform, servioticy_pipeline, servioticy_delivery;
GRANT EXECUTE ON FUNCTION granted_for TO servioticy_platform, servioticy_delivery;
GRANT EXECUTE ON FUNCTION granted_objects TO servioticy_platform;
GRANT EXECUTE ON FUNCTION grant_used, note_grant_used
   TO servioticy_pipeline, servioticy_delivery;

CREATE FUNCTION for_all_tenants(role text, command text, tables text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    named text;
    checked text := CASE command WHEN 'INSERT' THEN 'WITH CHECK' ELSE 'USING' END;
BEGIN
    FOREACH named IN ARRAY tables LOOP
        EXECUTE format('CREATE POLICY %I ON %I FOR %s TO %I %s (true)',
                       role || '_' || lower(command), named, command, role, checked);
    END LOOP;
END $$;

COMMENT ON FUNCTION for_all_tenants IS
    'lets a role do it to all rows of these tables; it has to be granted, too';

-- Of a tenant: each table has its tenant in each row.

CREATE FUNCTION force_row_level_security(named text, column_name text DEFAULT 'tenant_id')
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    own text := format(
        '%I = ANY ((SELECT nullif(current_setting(''servioticy.tenants'', true), ''''))::bigint[])',
        column_name);
BEGIN
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', named);
    EXECUTE format(
        'CREATE POLICY of_the_tenant ON %I TO servioticy_api, servioticy_delivery
          USING (%s) WITH CHECK (%s)', named, own, own);
    PERFORM for_all_tenants('servioticy_backup', 'SELECT', ARRAY[named]);
END $$;

COMMENT ON FUNCTION force_row_level_security IS
    'every migration that makes a table of tenants calls it, and grants what programs need';

SELECT force_row_level_security(named)
  FROM unnest('{tokens, service_objects, definitions, streams, graph_edges, pending_changes,
                subscriptions, updates, superseded, states, verdicts, usage, purge, actuations,
                searched_streams, search_blocks, search_columns, put_off, listings, idempotency,
                cursors, dead_deliveries, templates, template_versions, template_objects,
                dynamic_groups, membership_marks, jobs, job_items, callback_tests, acting_streams,
                actuation_callbacks, audit, audit_counts, audit_parts, grants, ended_grants,
                usage_hours, used_amounts, quotas, stored_amounts, members, claim_codes, claims,
                group_looks, console_sessions}'::text[]) AS named;
SELECT force_row_level_security('tenants', 'id');

GRANT SELECT ON tenants, listings, dynamic_groups, updates, verdicts, usage, put_off, progress
   TO servioticy_api;
GRANT INSERT ON pending_changes TO servioticy_api;
GRANT SELECT, DELETE ON membership_marks TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE
   ON tokens, service_objects, definitions, streams, graph_edges, subscriptions, actuations,
      searched_streams, search_blocks, search_columns, idempotency, cursors, dead_deliveries,
      templates, template_versions, template_objects, jobs, job_items, callback_tests,
      actuation_callbacks
   TO servioticy_api;
GRANT SELECT, INSERT ON acting_streams TO servioticy_api;
GRANT USAGE ON SEQUENCE cursor_changes, job_turns TO servioticy_api;

GRANT SELECT ON audit, usage_hours, used_amounts, quotas, stored_amounts, purge, superseded,
                pending_changes
   TO servioticy_api;
GRANT INSERT, UPDATE ON usage_hours, used_amounts TO servioticy_api;
GRANT SELECT, INSERT ON grants TO servioticy_api;
GRANT UPDATE (revoked_at) ON grants TO servioticy_api;
GRANT SELECT, INSERT, DELETE ON members, claim_codes, console_sessions TO servioticy_api;
GRANT UPDATE (name, email, role) ON members TO servioticy_api;
GRANT UPDATE (used) ON claim_codes TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON claims TO servioticy_api;
GRANT SELECT, UPDATE, DELETE ON group_looks TO servioticy_api;
GRANT SELECT ON stream_readers, subscribed_streams TO servioticy_api, servioticy_delivery;

-- Between tenants: of each table what the statements need that say so in their files.

SELECT for_all_tenants('servioticy_platform', 'SELECT',
    '{tenants, tokens, service_objects, definitions, streams, graph_edges, pending_changes,
      subscriptions, cursors, listings, template_objects, dynamic_groups, membership_marks,
      jobs, audit, audit_counts, audit_parts, grants, ended_grants, usage_hours, quotas, members,
      claim_codes, group_looks, console_sessions}');
SELECT for_all_tenants('servioticy_platform', 'INSERT',
    '{tenants, graph_edges, listings, dynamic_groups, membership_marks, group_looks, audit,
      audit_counts, audit_parts, ended_grants, usage_hours, quotas}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE',
    '{service_objects, definitions, listings, membership_marks, group_looks, jobs, tenants,
      subscriptions, audit_counts, audit_parts, grants, ended_grants, usage_hours, quotas}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
    '{pending_changes, template_objects, dynamic_groups, tenants, tokens, audit, audit_counts,
      audit_parts, membership_marks, grants, ended_grants, usage_hours, quotas,
      console_sessions}');
GRANT SELECT
   ON tenants, tokens, service_objects, definitions, streams, graph_edges, pending_changes,
      subscriptions, cursors, listings, template_objects, dynamic_groups, membership_marks, jobs,
      members, claim_codes, readers, readable_streams
   TO servioticy_platform;
GRANT INSERT ON tenants, graph_edges, listings, dynamic_groups, membership_marks
   TO servioticy_platform;
GRANT UPDATE (component, route_partition) ON service_objects TO servioticy_platform;
GRANT UPDATE (automatic) ON definitions TO servioticy_platform;
GRANT UPDATE ON listings, membership_marks TO servioticy_platform;
GRANT UPDATE (turn, state, total) ON jobs TO servioticy_platform;
GRANT SELECT, INSERT, UPDATE ON group_looks TO servioticy_platform;
GRANT DELETE ON pending_changes, template_objects, dynamic_groups, tokens TO servioticy_platform;
-- Before it is known who asks, all tenants' sessions are looked through.
GRANT SELECT, DELETE ON console_sessions TO servioticy_platform;
GRANT USAGE ON SEQUENCE job_turns TO servioticy_platform;

-- What goes in time, whosesoever it is.
GRANT DELETE ON listings TO servioticy_platform;
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{listings}');
SELECT for_all_tenants('servioticy_platform', 'SELECT',
                       '{idempotency, templates, dead_deliveries}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
                       '{service_objects, idempotency, claim_codes, templates, dead_deliveries}');
GRANT SELECT (tenant_id, key, began_at) ON idempotency TO servioticy_platform;
GRANT SELECT (id, tenant_id, deleted_at) ON templates TO servioticy_platform;
GRANT INSERT, UPDATE ON listings TO servioticy_api;
GRANT SELECT (id, tenant_id, died_at) ON dead_deliveries TO servioticy_platform;
GRANT DELETE ON service_objects, idempotency, claim_codes, templates, dead_deliveries
   TO servioticy_platform;

GRANT SELECT ON grants, stream_readers, stream_derivers, subscribed_streams TO servioticy_platform;
GRANT UPDATE (changes) ON subscriptions TO servioticy_platform;
GRANT UPDATE (deleted_at), DELETE ON tenants TO servioticy_platform;
GRANT DELETE ON membership_marks TO servioticy_platform;
GRANT SELECT, INSERT, DELETE ON audit TO servioticy_platform;
GRANT SELECT, INSERT, UPDATE, DELETE ON audit_counts, audit_parts, ended_grants, usage_hours, quotas
   TO servioticy_platform;
GRANT UPDATE (first_used, last_used), DELETE ON grants TO servioticy_platform;

-- The pipeline.

SELECT for_all_tenants('servioticy_pipeline', 'SELECT',
    '{tenants, service_objects, definitions, streams, graph_edges, subscriptions, updates,
      superseded, states, verdicts, usage, purge, searched_streams, search_blocks, put_off, grants,
      usage_hours, used_amounts, quotas, stored_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT',
    '{updates, superseded, states, verdicts, usage, purge, put_off, usage_hours, used_amounts,
      stored_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE',
    '{service_objects, streams, updates, superseded, states, verdicts, usage, purge,
      searched_streams, put_off, grants, usage_hours, used_amounts, stored_amounts}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE',
    '{definitions, streams, graph_edges, subscriptions, updates, superseded, states, verdicts,
      usage, purge, searched_streams, search_blocks, put_off, grants}');
GRANT INSERT ON stored_updates TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE, DELETE
   ON updates, superseded, states, verdicts, usage, purge, put_off, progress, forwarded,
      log_identity, log_losses
   TO servioticy_pipeline;
GRANT SELECT, UPDATE, DELETE ON searched_streams TO servioticy_pipeline;
GRANT SELECT, DELETE ON search_blocks, definitions, graph_edges, subscriptions, streams
   TO servioticy_pipeline;
GRANT SELECT ON tenants, service_objects TO servioticy_pipeline;
GRANT UPDATE (active_version, active_change, owner_partition, component) ON service_objects
   TO servioticy_pipeline;
GRANT UPDATE (erased_by, after_erasure) ON streams TO servioticy_pipeline;
GRANT USAGE ON SEQUENCE streams_id_seq TO servioticy_pipeline;

GRANT SELECT, DELETE ON grants TO servioticy_pipeline;
GRANT UPDATE (active) ON grants TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE ON usage_hours, used_amounts, stored_amounts TO servioticy_pipeline;
GRANT SELECT ON quotas TO servioticy_pipeline;

-- Delivery.

SELECT for_all_tenants('servioticy_delivery', 'SELECT',
    '{tenants, tokens, service_objects, streams, subscriptions, cursors, dead_deliveries,
      callback_tests, actuations, actuation_callbacks, acting_streams, graph_edges, grants,
      usage_hours, used_amounts, quotas, members, console_sessions}');
SELECT for_all_tenants('servioticy_delivery', 'INSERT', '{usage_hours, used_amounts}');
SELECT for_all_tenants('servioticy_delivery', 'UPDATE',
    '{cursors, callback_tests, acting_streams, usage_hours, used_amounts}');
GRANT SELECT
   ON tenants, tokens, service_objects, definitions, streams, subscriptions, updates, progress,
      actuation_callbacks
   TO servioticy_delivery;
-- Of its tenant's alone, and only to hold them while an actuation is made (FOR SHARE).
GRANT UPDATE (updated_at) ON service_objects TO servioticy_delivery;
GRANT SELECT, UPDATE ON acting_streams TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE, DELETE ON actuations TO servioticy_delivery;
GRANT SELECT, UPDATE ON cursors, callback_tests TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE, DELETE ON dead_deliveries TO servioticy_delivery;

GRANT SELECT ON graph_edges, grants, quotas, members, console_sessions TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE ON usage_hours, used_amounts TO servioticy_delivery;
GRANT SELECT ON stored_amounts, put_off TO servioticy_delivery;

GRANT SELECT ON readers, readable_streams TO servioticy_api, servioticy_pipeline,
                                             servioticy_delivery;

-- Back-ups: who makes one sees all rows of all tables, and changes none (servioticy/storage/roles.py).

GRANT USAGE ON SCHEMA public TO servioticy_backup;
-- What is there, and what is made from now on: the owner's, in a database that others use, too.
DO $$
DECLARE
    named text;
BEGIN
    FOR named IN SELECT relname
                   FROM pg_class
                  WHERE relnamespace = 'public'::regnamespace
                    AND relkind IN ('r', 'p', 'v', 'S')
                    AND pg_has_role(relowner, 'USAGE') LOOP
        EXECUTE format('GRANT SELECT ON %I TO servioticy_backup', named);
    END LOOP;
END $$;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO servioticy_backup;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON SEQUENCES TO servioticy_backup;

-- What crosses from tenant to tenant goes through the log (decision 0046). Components are of one
-- tenant; a record of the log may grow a tree for each of several tenants.

-- What a Service Object reads of other tenants, as it is known where that is computed. A place is a
-- partition of the provider's and an offset there.
CREATE TABLE inputs_from_outside (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    source text NOT NULL,
    stream text NOT NULL,
    tenant_id bigint NOT NULL,
    provider_id bigint NOT NULL,
    kept boolean NOT NULL,
    is_open boolean NOT NULL DEFAULT true,
    fed_in integer,
    left_in integer,
    told_in integer,
    told_at bigint,
    left_told_in integer,
    left_told_at bigint,
    awaits_in integer,
    awaits_at bigint,
    arrived_in integer,
    arrived_at bigint,
    since timestamptz NOT NULL DEFAULT now(),
    named_by bigint NOT NULL DEFAULT 0,
    "timestamp" bigint,
    document json,
    PRIMARY KEY (reader, source, stream)
);
COMMENT ON TABLE inputs_from_outside IS
    'streams of other tenants that the groups of the version in force name: what the reader may '
    'read of them, what it knows, and where updates of them come to it';
COMMENT ON COLUMN inputs_from_outside.source IS 'the Service Object that has the stream';
COMMENT ON COLUMN inputs_from_outside.tenant_id IS 'the reader''s';
COMMENT ON COLUMN inputs_from_outside.kept IS
    'whether its last update is known here: something is computed by it that another input triggers';
COMMENT ON COLUMN inputs_from_outside.is_open IS 'whether it may be read';
COMMENT ON COLUMN inputs_from_outside.fed_in IS 'the partition where updates of it are for the reader';
COMMENT ON COLUMN inputs_from_outside.left_in IS
    'the partition where they were, and which sends on what still comes there';
COMMENT ON COLUMN inputs_from_outside.told_at IS
    'place of the last begin or end that was heeded: what is not later changes nothing';
COMMENT ON COLUMN inputs_from_outside.left_told_at IS 'the same of what is sent on';
COMMENT ON COLUMN inputs_from_outside.awaits_at IS
    'place of the move of which not all has come yet; null: of none';
COMMENT ON COLUMN inputs_from_outside.arrived_at IS 'place of the last move of which all has come';
COMMENT ON COLUMN inputs_from_outside.since IS
    'when it was first fed with what it may read, or that ended; before, when it was named';
COMMENT ON COLUMN inputs_from_outside.named_by IS
    'number of the change by which it was named: what is told by an earlier one is not of this';
CREATE INDEX inputs_by_stream ON inputs_from_outside (source, stream);
CREATE INDEX inputs_awaiting ON inputs_from_outside (tenant_id, fed_in)
 WHERE awaits_at IS NOT NULL;

-- The same edges as the partitions of the streams know them.
CREATE TABLE outside_readers (
    reader text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    source text NOT NULL,
    stream text NOT NULL,
    tenant_id bigint NOT NULL,
    provider_id bigint NOT NULL,
    log_partition integer NOT NULL,
    change bigint NOT NULL,
    is_open boolean NOT NULL,
    PRIMARY KEY (reader, source, stream)
);
COMMENT ON TABLE outside_readers IS 'who reads streams of other tenants, and where to send them';
COMMENT ON COLUMN outside_readers.tenant_id IS 'the reader''s';
COMMENT ON COLUMN outside_readers.log_partition IS 'where the reader is computed';
COMMENT ON COLUMN outside_readers.change IS 'number of the change by which it reads that';
COMMENT ON COLUMN outside_readers.is_open IS 'whether it may: nothing is sent to others';
CREATE INDEX outside_readers_by_source
    ON outside_readers (source, is_open, stream, log_partition);

CREATE TABLE marks (
    log_partition integer NOT NULL,
    source text NOT NULL,
    stream text NOT NULL,
    from_partition integer NOT NULL,
    tenant_id bigint NOT NULL,
    log_offset bigint NOT NULL,
    part integer NOT NULL,
    PRIMARY KEY (log_partition, source, stream, from_partition)
);
COMMENT ON TABLE marks IS
    'updates of streams of other tenants are taken once, in order, as long as somebody reads them';
COMMENT ON COLUMN marks.tenant_id IS 'whose stream it is';
COMMENT ON COLUMN marks.log_offset IS 'of from_partition: where the last one that came was made';

CREATE TABLE crossings (
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    tree bigint NOT NULL,
    number integer NOT NULL,
    partitions integer[] NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (log_partition, log_offset, tree, number)
);
COMMENT ON TABLE crossings IS
    'records for other partitions of the log, until they are certain to be there';
-- It is read when a worker begins, and goes: to compress it would cost more than it saves.
ALTER TABLE crossings ALTER COLUMN record SET STORAGE EXTERNAL;

SELECT force_row_level_security(named)
  FROM unnest('{inputs_from_outside, outside_readers, marks}'::text[]) AS named;
GRANT SELECT ON inputs_from_outside, outside_readers TO servioticy_api;
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{inputs_from_outside, marks}');
SELECT for_all_tenants('servioticy_platform', 'DELETE', '{marks}');
GRANT SELECT ON inputs_from_outside TO servioticy_platform;
GRANT SELECT, DELETE ON marks TO servioticy_platform;
SELECT for_all_tenants('servioticy_pipeline', command,
                       '{inputs_from_outside, outside_readers, marks}')
  FROM unnest('{SELECT, INSERT, UPDATE, DELETE}'::text[]) AS command;
GRANT SELECT, INSERT, UPDATE, DELETE ON inputs_from_outside, outside_readers, marks, crossings
   TO servioticy_pipeline;

-- What composites that an operator computes keep under keys from one computation to the next: a
-- batch writes those entries that are other ones than before. An entry may be due at a time of the
-- log, at which whoever computes the stream has it told (TickRecord).

CREATE TABLE kept_entries (
    stream_id bigint NOT NULL,
    tenant_id bigint NOT NULL,
    log_partition integer NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    due bigint,
    PRIMARY KEY (stream_id, key)
);
COMMENT ON TABLE kept_entries IS
    'what operators keep of composite streams, and when they are to be woken';

COMMENT ON COLUMN kept_entries.log_partition IS 'where the stream is computed, as far as it is due';

CREATE INDEX kept_entries_due ON kept_entries (log_partition, tenant_id, due)
 WHERE due IS NOT NULL;

-- One after the other in the index, however many entries each of them has.
CREATE FUNCTION tenants_with_times(of_partition integer) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE waiting (tenant_id) AS (
        (SELECT tenant_id
           FROM kept_entries
          WHERE log_partition = of_partition
            AND due IS NOT NULL
          ORDER BY tenant_id
          LIMIT 1)
         UNION ALL
        SELECT (SELECT kept_entries.tenant_id
                  FROM kept_entries
                 WHERE log_partition = of_partition
                   AND due IS NOT NULL
                   AND kept_entries.tenant_id > waiting.tenant_id
                 ORDER BY kept_entries.tenant_id
                 LIMIT 1)
          FROM waiting
         WHERE waiting.tenant_id IS NOT NULL
    )
    SELECT tenant_id
      FROM waiting
     WHERE tenant_id IS NOT NULL
$$;
COMMENT ON FUNCTION tenants_with_times IS
    'the tenants of whom an operator has set itself a time in a partition';

SELECT force_row_level_security('kept_entries');

SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{kept_entries}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{kept_entries}');
GRANT SELECT, INSERT, UPDATE, DELETE ON kept_entries TO servioticy_pipeline;

-- A tenant lists all its subscriptions, whatever they are to.

CREATE INDEX subscriptions_of_tenant ON subscriptions (tenant_id, id);

-- How long updates are kept. What documents have said before is not acted upon until they are put
-- again: nobody loses by a new release what was promised to stay.

CREATE TABLE retention (
    is_it boolean PRIMARY KEY DEFAULT true CHECK (is_it),
    seconds bigint CHECK (seconds > 0)
);
COMMENT ON TABLE retention IS
    'how long updates are kept of streams whose documents say nothing; no row or null: for ever';

ALTER TABLE streams ADD COLUMN kept_seconds bigint;
COMMENT ON COLUMN streams.kept_seconds IS
    'how long its updates are kept; -1: for ever; null: its document says nothing';
CREATE INDEX streams_by_tenant ON streams (tenant_id, id);
CREATE INDEX streams_that_forget ON streams (tenant_id) WHERE kept_seconds > 0;

-- The rule of servioticy/domain/retention.py: in the unit of the newest update, if that tells time.
CREATE FUNCTION kept_from(newest bigint, seconds bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN seconds < 0 THEN (-9223372036854775808)::bigint
                WHEN newest >= 100000000000
                THEN (extract(epoch FROM now()) * 1000)::bigint - seconds * 1000
                WHEN newest >= 100000000
                THEN extract(epoch FROM now())::bigint - seconds
                ELSE (-9223372036854775808)::bigint END
$$;
COMMENT ON FUNCTION kept_from IS 'the timestamp at which the history of a stream begins';

CREATE VIEW kept_histories WITH (security_invoker = true) AS
SELECT streams.id, streams.tenant_id,
       CASE WHEN coalesce(kept_seconds, seconds, -1) < 0 THEN (-9223372036854775808)::bigint
            ELSE kept_from((SELECT max("timestamp")
                              FROM updates
                             WHERE stream_id = stored_as
                               AND updates.tenant_id = streams.tenant_id),
                           coalesce(kept_seconds, seconds)) END AS kept_from
  FROM streams
  LEFT JOIN retention ON true;
COMMENT ON VIEW kept_histories IS
    'from which timestamp on readers see the history of a stream: what is before it goes in time';

GRANT SELECT ON retention, kept_histories
   TO servioticy_api, servioticy_pipeline, servioticy_delivery;
GRANT INSERT, UPDATE (seconds) ON retention TO servioticy_pipeline;

-- What windows are open, and what holds them back, is told by the API.

GRANT SELECT ON kept_entries TO servioticy_api;

-- Backfills: what a composite, and what is derived from it, makes of history. It is computed into
-- rows beside, which take the place of those of the same span at one place of the log.

ALTER TABLE jobs
    ALTER COLUMN template DROP NOT NULL,
    ALTER COLUMN version DROP NOT NULL,
    DROP CONSTRAINT jobs_kind_check,
    DROP CONSTRAINT jobs_state_check,
    ADD CONSTRAINT jobs_kind_check CHECK (kind IN ('creation', 'roll-out', 'backfill')),
    ADD CONSTRAINT jobs_state_check CHECK (
        state IN ('waiting', 'running', 'swapping', 'done', 'superseded', 'failed')),
    ADD CONSTRAINT jobs_of_templates CHECK (
        kind = 'backfill' OR num_nonnulls(template, version) = 2);

DROP INDEX jobs_unfinished;
CREATE INDEX jobs_unfinished ON jobs (turn) WHERE state IN ('waiting', 'running', 'swapping');

CREATE TABLE backfills (
    job text PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL,
    stream text NOT NULL,
    since bigint NOT NULL,
    until bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    began_at bigint,
    made integer NOT NULL DEFAULT 0,
    plan json
);
COMMENT ON TABLE backfills IS 'what jobs fill with what composites make of history';
COMMENT ON COLUMN backfills.until IS 'the first timestamp that is not filled any more';
COMMENT ON COLUMN backfills.attempt IS 'whoever computes an earlier one stores nothing any more';
COMMENT ON COLUMN backfills.made IS 'rows that are stored beside: after a restore they are not there';
COMMENT ON COLUMN backfills.plan IS
    'what it is computed by: by what changes its Service Objects are in force, under which numbers '
    'streams are stored, and how far the log was stored before history was read';

CREATE TABLE backfilled (
    job text NOT NULL REFERENCES backfills ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    "timestamp" bigint NOT NULL,
    version integer NOT NULL,
    log_partition integer NOT NULL,
    log_offset bigint NOT NULL,
    log_position integer NOT NULL,
    document json NOT NULL,
    PRIMARY KEY (job, stream_id, "timestamp")
);
COMMENT ON TABLE backfilled IS 'rows of updates that are computed, and that nobody sees yet';

SELECT force_row_level_security(named) FROM unnest('{backfills, backfilled}'::text[]) AS named;

GRANT SELECT, INSERT, UPDATE, DELETE ON backfills, backfilled TO servioticy_api;
SELECT for_all_tenants('servioticy_platform', 'SELECT', '{backfills}');
GRANT SELECT ON backfills TO servioticy_platform;
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{jobs, backfills, backfilled}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{jobs}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{backfilled}');
GRANT SELECT ON jobs, backfills TO servioticy_pipeline;
GRANT UPDATE (state, failures, updated_at) ON jobs TO servioticy_pipeline;
GRANT SELECT, DELETE ON backfilled TO servioticy_pipeline;

-- Operators: programs of tenants' own, in versions, whom they may be used by, and how they run.

CREATE TABLE operators (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    last_version integer NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
COMMENT ON TABLE operators IS 'names of programs that tenants have pushed, once and for all';
COMMENT ON COLUMN operators.last_version IS 'no number is given twice, though versions are removed';

CREATE TABLE operator_versions (
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    manifest json NOT NULL,
    digest text NOT NULL,
    archive bytea NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    FOREIGN KEY (tenant_id, name) REFERENCES operators ON DELETE CASCADE
);
ALTER TABLE operator_versions ALTER COLUMN archive SET STORAGE EXTERNAL;
COMMENT ON TABLE operator_versions IS 'programs as they were pushed';
COMMENT ON COLUMN operator_versions.digest IS 'of the files in the archive (operators/archives.py)';

CREATE TABLE operator_grants (
    tenant_id bigint NOT NULL,
    name text NOT NULL,
    grantee bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name, grantee),
    FOREIGN KEY (tenant_id, name) REFERENCES operators ON DELETE CASCADE
);
COMMENT ON TABLE operator_grants IS 'which other tenants may compute by a program, in any version';
CREATE INDEX operator_grants_by_grantee ON operator_grants (grantee);

CREATE TABLE operator_runs (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    version integer NOT NULL,
    node text NOT NULL,
    state text NOT NULL,
    restarts integer NOT NULL,
    problem text NOT NULL,
    printed text NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name, version, node)
);
COMMENT ON TABLE operator_runs IS
    'how programs are on each node, for whom they run; the last word of it, for an hour';
COMMENT ON COLUMN operator_runs.name IS 'of another tenant''s OWNER/NAME';

SELECT force_row_level_security(named)
  FROM unnest('{operators, operator_versions, operator_grants, operator_runs}'::text[]) AS named;

GRANT SELECT, INSERT, UPDATE, DELETE ON operators, operator_versions, operator_grants
   TO servioticy_api;
GRANT SELECT, DELETE ON operator_runs TO servioticy_api;
SELECT for_all_tenants('servioticy_platform', 'SELECT',
    '{operators, operator_versions, operator_grants}');
GRANT SELECT ON operators, operator_versions, operator_grants TO servioticy_platform;
SELECT for_all_tenants('servioticy_pipeline', 'SELECT',
    '{operator_versions, operator_grants, operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{operator_runs}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{operator_runs}');
GRANT SELECT ON operator_versions, operator_grants TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE, DELETE ON operator_runs TO servioticy_pipeline;

-- The audit log tells of versions that were pushed and removed, and to whom they are granted.

CREATE FUNCTION audit_operator() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'pushed', 'operator', NEW.name || '@' || NEW.version);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'removed', 'operator', OLD.name || '@' || OLD.version);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_operator
 AFTER INSERT OR DELETE ON operator_versions
   FOR EACH ROW EXECUTE FUNCTION audit_operator();

CREATE FUNCTION audit_operator_grant() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM note_in_audit(OLD.tenant_id, 'revoked', 'operator', OLD.name);
    ELSE
        PERFORM note_in_audit(NEW.tenant_id, 'granted', 'operator', NEW.name);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_operator_grant
 AFTER INSERT OR UPDATE OR DELETE ON operator_grants
   FOR EACH ROW EXECUTE FUNCTION audit_operator_grant();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_operator OWNER TO servioticy_platform;
ALTER FUNCTION audit_operator_grant OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- What is measured of the platform's own steps by weaving: the last so many rows.

CREATE TABLE measurements (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    published_at timestamptz NOT NULL DEFAULT now(),
    kind text NOT NULL,
    purpose text NOT NULL,
    sequence text NOT NULL,
    measured json NOT NULL
);
COMMENT ON TABLE measurements IS
    'measurements of woven steps, if the file of aspects says that they are published here';
COMMENT ON COLUMN measurements.id IS 'the order; the oldest rows go while others come';
COMMENT ON COLUMN measurements.sequence IS 'what connects steps, a trace as a rule; empty: none';
COMMENT ON COLUMN measurements.measured IS 'as a line of the files of measurements';
CREATE INDEX measurements_by_sequence ON measurements (sequence) WHERE sequence <> '';

GRANT SELECT, INSERT, DELETE ON measurements
   TO servioticy_api, servioticy_pipeline, servioticy_delivery;

-- What tenants have measured of their own streams: an aspect for each, and what came of it by minute.

CREATE TABLE aspects (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL,
    service_object text NOT NULL REFERENCES service_objects ON DELETE CASCADE,
    stream text NOT NULL,
    purpose text NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE aspects IS 'streams of which their tenant has computations measured';
COMMENT ON COLUMN aspects.purpose IS 'what the tenant groups them by; empty: the name of the stream';
CREATE UNIQUE INDEX aspects_by_stream ON aspects (tenant_id, service_object, stream);
CREATE INDEX aspects_by_object ON aspects (service_object);

CREATE TABLE aspect_minutes (
    tenant_id bigint NOT NULL,
    aspect text NOT NULL,
    minute bigint NOT NULL,
    stored_rows bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    processor_us bigint NOT NULL,
    computations jsonb NOT NULL,
    PRIMARY KEY (tenant_id, aspect, minute)
);
COMMENT ON TABLE aspect_minutes IS
    'what aspects have measured; it refers to none, so that whoever measures waits for nobody who '
    'ends one, and rows of one that has ended meanwhile go with the next that is made';
COMMENT ON COLUMN aspect_minutes.minute IS 'its beginning, in ms since 1970';

CREATE FUNCTION this_minute() RETURNS bigint LANGUAGE sql STABLE AS $$
SELECT floor(extract(epoch FROM now()) / 60)::bigint * 60000
$$;

SELECT force_row_level_security(named) FROM unnest('{aspects, aspect_minutes}'::text[]) AS named;

GRANT SELECT, INSERT, DELETE ON aspects TO servioticy_api;
GRANT SELECT, DELETE ON aspect_minutes TO servioticy_api;
SELECT for_all_tenants('servioticy_pipeline', 'SELECT', '{aspects, aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT', '{aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE', '{aspect_minutes}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE', '{aspect_minutes}');
GRANT SELECT ON aspects TO servioticy_pipeline;
GRANT SELECT, INSERT, UPDATE, DELETE ON aspect_minutes TO servioticy_pipeline;

CREATE FUNCTION audit_aspect() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'aspect', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'aspect', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_aspect
 AFTER INSERT OR DELETE ON aspects
   FOR EACH ROW EXECUTE FUNCTION audit_aspect();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_aspect OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- Workflows: documents, the queues between their procedures, and what is told of them.

CREATE TABLE workflows (
    id text PRIMARY KEY,
    tenant_id bigint NOT NULL REFERENCES tenants,
    version integer NOT NULL DEFAULT 1,
    subscription text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
COMMENT ON COLUMN workflows.subscription IS
    'that brings the updates of the stream that is its source; null: its atoms come by HTTP';
CREATE INDEX workflows_by_tenant ON workflows (tenant_id, id);

CREATE TABLE workflow_versions (
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    version integer NOT NULL,
    tenant_id bigint NOT NULL,
    content json NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (workflow, version)
);

CREATE TABLE atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    visible_at bigint NOT NULL,
    entered_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    taken_by bigint,
    body text NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE atoms IS
    'the queues: atoms that wait for a step of the version by which they came in';
COMMENT ON COLUMN atoms.step IS
    'a procedure by its number in the order of the document; behind the last one the sink';
COMMENT ON COLUMN atoms.visible_at IS
    'when it may be taken, in milliseconds since 1970: who takes it puts that off';
COMMENT ON COLUMN atoms.entered_at IS 'when the atom that it was made of came into the workflow';
COMMENT ON COLUMN atoms.taken_by IS 'the instance that took it last; it alone may finish it';
CREATE INDEX atoms_waiting ON atoms (tenant_id, workflow, version, step, visible_at, id);

-- How much waits, without counting it: instances that store at once add to shards of their own.
CREATE TABLE atom_counts (
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    shard integer NOT NULL,
    atoms bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (tenant_id, workflow, version, step, shard)
) WITH (fillfactor = 50);
COMMENT ON TABLE atom_counts IS 'how many atoms, and bytes of them, are in each queue: their sum';

CREATE FUNCTION count_atoms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO atom_counts AS counted (tenant_id, workflow, version, step, shard, atoms, bytes)
    SELECT tenant_id, workflow, version, step, pg_backend_pid() % 8,
           CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END,
           CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * sum(octet_length(body))
      FROM changed
     GROUP BY tenant_id, workflow, version, step
     ORDER BY tenant_id, workflow, version, step
        ON CONFLICT (tenant_id, workflow, version, step, shard) DO UPDATE
       SET atoms = counted.atoms + excluded.atoms,
           bytes = counted.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER count_atoms_that_come AFTER INSERT ON atoms
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_atoms();
CREATE TRIGGER count_atoms_that_go AFTER DELETE ON atoms
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_atoms();

CREATE TABLE dead_atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    version integer NOT NULL,
    step integer NOT NULL,
    entered_at bigint NOT NULL,
    died_at bigint NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    body text NOT NULL
);
COMMENT ON TABLE dead_atoms IS 'atoms that a procedure or the sink has failed on for good';
CREATE INDEX dead_atoms_by_workflow ON dead_atoms (workflow, id);
CREATE INDEX dead_atoms_by_age ON dead_atoms (died_at);

CREATE TABLE collected_atoms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    entered_at bigint NOT NULL,
    collected_at bigint NOT NULL,
    body text NOT NULL
);
COMMENT ON TABLE collected_atoms IS 'the newest that came to a sink that collects';
CREATE INDEX collected_atoms_by_workflow ON collected_atoms (workflow, id);
CREATE INDEX collected_atoms_by_age ON collected_atoms (collected_at);

CREATE TABLE workflow_instances (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id bigint NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    step integer NOT NULL,
    began_at bigint NOT NULL,
    ends_at bigint NOT NULL
);
COMMENT ON TABLE workflow_instances IS 'who takes atoms now; one that was killed until its end';
COMMENT ON COLUMN workflow_instances.ends_at IS
    'then it gives back what it holds: before that what it has taken is shown to nobody else';
CREATE INDEX workflow_instances_by_workflow ON workflow_instances (tenant_id, workflow);

CREATE TABLE workflow_hours (
    tenant_id bigint NOT NULL,
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    step text NOT NULL,
    hour bigint NOT NULL,
    atoms bigint NOT NULL DEFAULT 0,
    made bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    processor_us bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workflow, step, hour)
);
CREATE INDEX workflow_hours_by_age ON workflow_hours (hour);
COMMENT ON TABLE workflow_hours IS 'what each step has done in an hour; some seconds late';

SELECT force_row_level_security(named)
  FROM unnest('{workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms,
                workflow_instances, workflow_hours}'::text[]) AS named;

GRANT SELECT, INSERT, UPDATE, DELETE
   ON workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms, workflow_hours
   TO servioticy_api;
GRANT SELECT, DELETE ON workflow_instances TO servioticy_api;

-- Between tenants: what is old goes.
SELECT for_all_tenants('servioticy_platform', command,
                       '{dead_atoms, collected_atoms, workflow_hours}')
  FROM unnest('{SELECT, DELETE}'::text[]) AS command;
GRANT SELECT, DELETE ON dead_atoms, collected_atoms, workflow_hours TO servioticy_platform;

-- Delivery brings the updates of streams; the program `functions` has its role, too.
SELECT for_all_tenants('servioticy_delivery', command,
    '{workflows, workflow_versions, atoms, atom_counts, dead_atoms, collected_atoms,
      workflow_instances, workflow_hours}')
  FROM unnest('{SELECT, INSERT, UPDATE, DELETE}'::text[]) AS command;
GRANT SELECT ON workflows, workflow_versions TO servioticy_delivery;
GRANT SELECT, INSERT, UPDATE, DELETE
   ON atoms, atom_counts, dead_atoms, collected_atoms, workflow_instances, workflow_hours
   TO servioticy_delivery;

-- The audit log tells of what defines a workflow, not of what is worked on.
CREATE FUNCTION audit_workflow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'created', 'workflow', NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        PERFORM note_in_audit(NEW.tenant_id, 'replaced', 'workflow', NEW.id);
    ELSE
        PERFORM note_in_audit(OLD.tenant_id, 'deleted', 'workflow', OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_workflow
 AFTER INSERT OR UPDATE OF version OR DELETE ON workflows
   FOR EACH ROW EXECUTE FUNCTION audit_workflow();

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION audit_workflow OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

-- Files that are the source of workflows: which of them have come, and how stores stand.

CREATE TABLE workflow_files (
    workflow text NOT NULL REFERENCES workflows ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    etag text NOT NULL,
    PRIMARY KEY (workflow, key)
);
COMMENT ON TABLE workflow_files IS
    'files that have come into a workflow, as long as their store has them: each comes once';
COMMENT ON COLUMN workflow_files.key IS 'its name, in the order in which stores list them: by bytes';
COMMENT ON COLUMN workflow_files.etag IS 'which content it had: with another one it comes again';

CREATE TABLE workflow_looks (
    workflow text PRIMARY KEY REFERENCES workflows ON DELETE CASCADE,
    tenant_id bigint NOT NULL,
    looked_at bigint NOT NULL,
    trouble text NOT NULL,
    is_full boolean NOT NULL
);
COMMENT ON TABLE workflow_looks IS 'how the last look at the store of a workflow''s files ended';
COMMENT ON COLUMN workflow_looks.trouble IS 'why it could not be looked at; empty: it could';
COMMENT ON COLUMN workflow_looks.is_full IS 'whether there were more files than are kept in mind';

SELECT force_row_level_security(named)
  FROM unnest('{workflow_files, workflow_looks}'::text[]) AS named;
GRANT SELECT, DELETE ON workflow_files, workflow_looks TO servioticy_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON workflow_files, workflow_looks TO servioticy_delivery;

-- Persons' sessions are renewed.
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{console_sessions}');
GRANT UPDATE (token, renewal, renew_at, token_ends_at) ON console_sessions TO servioticy_platform;
