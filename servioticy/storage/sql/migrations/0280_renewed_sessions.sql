-- Sessions of persons who have signed in at an issuer: their tokens are renewed in time.

ALTER TABLE console_sessions
  ADD COLUMN renewal bytea,
  ADD COLUMN renew_at timestamptz,
  ADD COLUMN token_ends_at timestamptz;
COMMENT ON COLUMN console_sessions.renewal IS
    'for which the issuer gives another token, sealed as the token is; null: nothing';
COMMENT ON COLUMN console_sessions.renew_at IS 'from when on whoever asks next renews the token';

SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{console_sessions}');
GRANT UPDATE (token, renewal, renew_at, token_ends_at) ON console_sessions TO servioticy_platform;
