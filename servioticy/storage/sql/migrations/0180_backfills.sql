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
