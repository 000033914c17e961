-- A result that is taken back is no row of history any more. Where it was its stream's last one,
-- what is computed next goes on from it, as whoever has computed it does: until a newer one comes.

ALTER TABLE states
  ALTER COLUMN state DROP NOT NULL,
  ADD COLUMN taken_back_at bigint,
  ADD COLUMN taken_back json;
COMMENT ON COLUMN states.state IS 'null: its evaluator keeps none';
COMMENT ON COLUMN states.taken_back_at IS
    'timestamp of the last result that was taken back, where none was newer then';
COMMENT ON COLUMN states.taken_back IS 'that result: the last update, where none is as new by now';
