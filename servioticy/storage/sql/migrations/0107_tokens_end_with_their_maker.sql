-- What somebody gives devices whose own token ends is good for no longer than that.

ALTER TABLE tokens ADD COLUMN replaced boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN tokens.replaced IS 'another one is there in its place: it is good for a while yet';

ALTER TABLE claim_codes ADD COLUMN tokens_end timestamptz;
COMMENT ON COLUMN claim_codes.tokens_end IS
    'when the tokens end that devices get for it, as that of its maker does; null: they do not';
