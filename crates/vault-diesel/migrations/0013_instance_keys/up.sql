-- Instance keys that were replaced: they open what is left under them. The active one is named in `instance`.
CREATE TABLE retiring_instance_keys (
    id TEXT NOT NULL PRIMARY KEY,
    root_key_id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    retired_at BIGINT NOT NULL
) WITHOUT ROWID;

-- The instance key that made the code of a row that grants. So far there was one.
ALTER TABLE accounts ADD COLUMN grant_key_id TEXT;
ALTER TABLE decoy_accounts ADD COLUMN grant_key_id TEXT DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE invitations ADD COLUMN digest_key_id TEXT;
ALTER TABLE integrations ADD COLUMN digest_key_id TEXT;

UPDATE accounts SET grant_key_id = (SELECT instance_key_id FROM instance);
UPDATE invitations SET digest_key_id = (SELECT instance_key_id FROM instance);
UPDATE integrations SET digest_key_id = (SELECT instance_key_id FROM instance);
