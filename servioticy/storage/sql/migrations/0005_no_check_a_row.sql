-- The rows a batch stores name streams that the pipeline has just looked up; to look each
-- one up again cost a quarter of the statement's time. Who removes streams removes these
-- rows with them (partition.sql, delete_updates and its neighbours).

ALTER TABLE updates DROP CONSTRAINT updates_stream_id_fkey;
ALTER TABLE last_updates DROP CONSTRAINT last_updates_stream_id_fkey;
ALTER TABLE verdicts DROP CONSTRAINT verdicts_stream_id_fkey;
