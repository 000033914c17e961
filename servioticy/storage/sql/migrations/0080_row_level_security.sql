-- Row level security, forced. The roles are made before (servioticy/storage/roles.py); none of
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

-- COPY does not go into a table with row level security. So rows of updates stand in a partition
-- that nobody may touch but the pipeline, which may do nothing with it but add rows; everything
-- else goes through the table above it, by its policies.

ALTER TABLE updates RENAME TO stored_updates;
ALTER INDEX updates_pkey RENAME TO stored_updates_pkey;
ALTER INDEX updates_by_log RENAME TO stored_updates_by_log;

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

-- Views show what their reader may see.

ALTER VIEW readers SET (security_invoker = true);
ALTER VIEW readable_streams SET (security_invoker = true);

-- Triggers keep in step what may be another tenant's, or is nobody's to write.

GRANT CREATE ON SCHEMA public TO servioticy_platform;
ALTER FUNCTION list_service_object SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION mark_membership SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION leave_template SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION keep_activated SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION list_service_object OWNER TO servioticy_platform;
ALTER FUNCTION mark_membership OWNER TO servioticy_platform;
ALTER FUNCTION leave_template OWNER TO servioticy_platform;
ALTER FUNCTION keep_activated OWNER TO servioticy_platform;
REVOKE CREATE ON SCHEMA public FROM servioticy_platform;

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
END $$;

COMMENT ON FUNCTION force_row_level_security IS
    'every migration that makes a table of tenants calls it, and grants what programs need';

SELECT force_row_level_security(named)
  FROM unnest('{tokens, service_objects, definitions, streams, graph_edges, pending_changes,
                subscriptions, updates, superseded, states, verdicts, usage, purge, actuations,
                searched_streams, search_blocks, search_columns, put_off, listings, idempotency,
                cursors, dead_deliveries, templates, template_versions, template_objects,
                dynamic_groups, membership_marks, jobs, job_items, callback_tests, acting_streams,
                actuation_callbacks}'::text[]) AS named;
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

-- Between tenants: of each table what the statements need that say so in their files.

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

SELECT for_all_tenants('servioticy_platform', 'SELECT',
    '{tenants, tokens, service_objects, definitions, streams, graph_edges, pending_changes,
      subscriptions, cursors, listings, template_objects, dynamic_groups, membership_marks,
      jobs}');
SELECT for_all_tenants('servioticy_platform', 'INSERT',
    '{tenants, graph_edges, listings, dynamic_groups, membership_marks}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE',
    '{service_objects, definitions, listings, membership_marks, jobs}');
SELECT for_all_tenants('servioticy_platform', 'DELETE',
    '{pending_changes, template_objects, dynamic_groups}');
GRANT SELECT
   ON tenants, tokens, service_objects, definitions, streams, graph_edges, pending_changes,
      subscriptions, cursors, listings, template_objects, dynamic_groups, membership_marks, jobs,
      readers, readable_streams
   TO servioticy_platform;
GRANT INSERT ON tenants, graph_edges, listings, dynamic_groups, membership_marks
   TO servioticy_platform;
GRANT UPDATE (component, route_partition) ON service_objects TO servioticy_platform;
GRANT UPDATE (automatic) ON definitions TO servioticy_platform;
GRANT UPDATE ON listings, membership_marks TO servioticy_platform;
GRANT UPDATE (turn, state, total) ON jobs TO servioticy_platform;
GRANT DELETE ON pending_changes, template_objects, dynamic_groups TO servioticy_platform;
GRANT USAGE ON SEQUENCE job_turns TO servioticy_platform;

-- The pipeline.

SELECT for_all_tenants('servioticy_pipeline', 'SELECT',
    '{tenants, service_objects, definitions, streams, graph_edges, subscriptions, updates,
      superseded, states, verdicts, usage, purge, searched_streams, search_blocks, put_off}');
SELECT for_all_tenants('servioticy_pipeline', 'INSERT',
    '{updates, superseded, states, verdicts, usage, purge, put_off}');
SELECT for_all_tenants('servioticy_pipeline', 'UPDATE',
    '{service_objects, streams, updates, superseded, states, verdicts, usage, purge,
      searched_streams, put_off}');
SELECT for_all_tenants('servioticy_pipeline', 'DELETE',
    '{definitions, streams, graph_edges, subscriptions, updates, superseded, states, verdicts,
      usage, purge, searched_streams, search_blocks, put_off}');
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

-- Delivery.

SELECT for_all_tenants('servioticy_delivery', 'SELECT',
    '{tenants, tokens, service_objects, streams, subscriptions, cursors, dead_deliveries,
      callback_tests, actuations, actuation_callbacks, acting_streams}');
SELECT for_all_tenants('servioticy_delivery', 'UPDATE',
    '{cursors, callback_tests, acting_streams}');
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

GRANT SELECT ON readers, readable_streams TO servioticy_api, servioticy_pipeline,
                                             servioticy_delivery;
