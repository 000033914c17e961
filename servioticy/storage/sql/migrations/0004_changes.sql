-- Documents change without a stop: versions, deletion, erasure.

ALTER TABLE service_objects
    ADD COLUMN newest_version integer NOT NULL DEFAULT 1,
    ADD COLUMN revision integer NOT NULL DEFAULT 1,
    ADD COLUMN custom_fields json,
    ADD COLUMN deleted_at bigint,
    ADD COLUMN active_change bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN service_objects.version IS 'version in force for the API';
COMMENT ON COLUMN service_objects.newest_version IS 'largest version number ever given';
COMMENT ON COLUMN service_objects.revision IS 'counts changes of any kind: the second part of the ETag';
COMMENT ON COLUMN service_objects.custom_fields IS 'customFields: of the object, not of a version';
COMMENT ON COLUMN service_objects.deleted_at IS
    'when the API deleted it; the row stays for ever, so that no id is used twice';
COMMENT ON COLUMN service_objects.active_change IS
    'number of the change that put active_version in force (written by the pipeline)';

UPDATE service_objects
   SET custom_fields = document -> 'customFields'
  FROM definitions
 WHERE service_object = id
   AND definitions.version = service_objects.version;

ALTER TABLE streams
    ADD COLUMN declared boolean NOT NULL DEFAULT true,
    ADD COLUMN erased_by bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN streams.declared IS 'whether the version in force for the API has it';
COMMENT ON COLUMN streams.erased_by IS 'number of the last change that erased it (written by the pipeline)';

CREATE INDEX subscriptions_by_destination ON subscriptions (destination) WHERE callback = 'internal';
