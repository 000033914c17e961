-- Composites with `staleness: "input"` remember what they were last made from.

ALTER TABLE last_updates ADD COLUMN uses json;
COMMENT ON COLUMN last_updates.uses IS
    'of a composite with staleness "input": source stream -> newest timestamp of it in an output';
