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
