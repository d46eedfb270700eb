-- What has expired is found across all organizations, so these indexes begin with the time.
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX attempt_classes_age ON attempt_classes (last_login_at);
CREATE INDEX invitations_expiry ON invitations (expires_at);
CREATE INDEX account_notices_age ON account_notices (at);
CREATE INDEX pending_seeds_expiry ON pending_seeds (expires_at);
CREATE INDEX activations_expiry ON activations (expires_at);
