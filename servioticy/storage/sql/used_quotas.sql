-- known --
-- What operators let each of these tenants have, the seconds that the hour has yet, and what is
-- used in it: a row for each.
SELECT wanted.tenant_id,
       coalesce((SELECT json_object_agg(name, most)
                   FROM quotas
                  WHERE quotas.tenant_id = wanted.tenant_id), '{}'),
       (this_hour() / 1000 + 3600 - extract(epoch FROM now()))::bigint,
       coalesce(computations, 0),
       coalesce(processor_us, 0) / 1000000,
       coalesce(deliveries, 0),
       coalesce(read_us, 0) / 1000000,
       coalesce(bytes, 0)
  FROM unnest(%(tenants)s::bigint[]) AS wanted (tenant_id)
  LEFT JOIN used_amounts ON used_amounts.tenant_id = wanted.tenant_id
   AND hour = this_hour()
  LEFT JOIN stored_amounts ON stored_amounts.tenant_id = wanted.tenant_id;

-- read --
-- What reads of these tenants took, on the account of each hour; of those that are still there.
INSERT INTO usage_hours (tenant_id, hour, service_object, stream, provider_id, read_us)
SELECT tenants.id, this_hour(), '', '', tenants.id, u.read_us
  FROM unnest(%(tenants)s::bigint[], %(read_us)s::bigint[]) AS u (tenant_id, read_us)
  JOIN tenants ON tenants.id = u.tenant_id
 ORDER BY tenants.id
    ON CONFLICT (tenant_id, hour, service_object, stream, provider_id, grant_id) DO UPDATE
   SET read_us = usage_hours.read_us + excluded.read_us;

-- read_in_all --
-- The same, for the quotas of each tenant: in the order in which all note them.
SELECT note_used(tenant, 0, 0, 0, read_us)
  FROM (SELECT *
          FROM unnest(%(tenants)s::bigint[], %(read_us)s::bigint[]) AS u (tenant, read_us)
         ORDER BY tenant) AS summed;

-- hold --
-- Until `let_go`, or until the connection ends: who adds something for this tenant waits here.
SELECT pg_advisory_lock(hashtextextended('quotas', %(tenant)s));

-- let_go --
SELECT pg_advisory_unlock(hashtextextended('quotas', %(tenant)s));

-- documents --
-- With those that its jobs have still to make.
SELECT (SELECT count(*)
          FROM service_objects
         WHERE tenant_id = %(tenant)s
           AND deleted_at IS NULL)
     + (SELECT coalesce(sum(total - done - failed), 0)::bigint
          FROM jobs
         WHERE tenant_id = %(tenant)s
           AND kind = 'creation'
           AND state IN ('waiting', 'running'));

-- streams --
-- With those that its jobs have still to make.
SELECT (SELECT count(*)
          FROM streams
          JOIN service_objects ON service_objects.id = service_object
           AND service_objects.tenant_id = streams.tenant_id
           AND deleted_at IS NULL
         WHERE streams.tenant_id = %(tenant)s
           AND declared)
     + (SELECT coalesce(sum((total - done - failed) * streams_in(content)), 0)::bigint
          FROM jobs
          JOIN template_versions ON template_versions.template = jobs.template
           AND template_versions.version = jobs.version
           AND template_versions.tenant_id = jobs.tenant_id
         WHERE jobs.tenant_id = %(tenant)s
           AND kind = 'creation'
           AND state IN ('waiting', 'running'))
     + (SELECT coalesce(sum(still.objects * greatest(0,
                   streams_in(wanted.content) - streams_in(had.content))), 0)::bigint
          FROM (SELECT jobs.template, jobs.version AS wanted, template_objects.version AS had,
                       count(*) AS objects
                  FROM jobs
                  JOIN template_objects ON template_objects.template = jobs.template
                   AND template_objects.tenant_id = jobs.tenant_id
                   AND template_objects.version <> jobs.version
                   AND template_objects.service_object > jobs.reached
                 WHERE jobs.tenant_id = %(tenant)s
                   AND kind = 'roll-out'
                   AND state IN ('waiting', 'running')
                 GROUP BY jobs.template, jobs.version, template_objects.version) AS still
          JOIN template_versions AS wanted ON wanted.template = still.template
           AND wanted.version = still.wanted
           AND wanted.tenant_id = %(tenant)s
          JOIN template_versions AS had ON had.template = still.template
           AND had.version = still.had
           AND had.tenant_id = %(tenant)s);

-- subscriptions --
SELECT count(*)
  FROM subscriptions
 WHERE tenant_id = %(tenant)s;

-- tokens --
-- Those that `GET /tokens` shows.
SELECT count(*)
  FROM tokens
 WHERE tenant_id = %(tenant)s
   AND is_listed(tokens)
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now());

-- document_bytes --
-- Of all versions that are there, of templates too, and of customFields as they are stored.
SELECT (SELECT coalesce(sum(bytes), 0)
          FROM definitions
         WHERE tenant_id = %(tenant)s)::bigint
     + (SELECT coalesce(sum(pg_column_size(custom_fields)), 0)
          FROM service_objects
         WHERE tenant_id = %(tenant)s)
     + (SELECT coalesce(sum(pg_column_size(content)), 0)
          FROM template_versions
         WHERE tenant_id = %(tenant)s);

-- aspects --
SELECT count(*)
  FROM aspects
 WHERE tenant_id = %(tenant)s;

-- operators --
SELECT count(*)
  FROM operator_versions
 WHERE tenant_id = %(tenant)s;

-- members --
SELECT count(*)
  FROM members
 WHERE tenant_id = %(tenant)s;

-- files_known --
-- Of all workflows that have files as their source.
SELECT coalesce(sum(known), 0)::bigint
  FROM workflow_looks
 WHERE tenant_id = %(tenant)s;
