-- When an integration's current token was last used; what a hand-out's audit entry names.

ALTER TABLE integrations RENAME COLUMN earlier_token TO previous_token;
ALTER TABLE integrations RENAME COLUMN earlier_until TO previous_until;
ALTER TABLE integrations ADD COLUMN last_used_at BIGINT;

ALTER TABLE audit ADD COLUMN network TEXT;
ALTER TABLE audit ADD COLUMN credentials TEXT;
