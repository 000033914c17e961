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
