-- What a key seals is found by its key: a rotation reads it in slices, and a key is destroyed only when nothing is left.
CREATE INDEX credentials_by_key ON credentials (organization_id, key_id, id);
CREATE INDEX credentials_by_metadata_key ON credentials (organization_id, metadata_key_id, id) WHERE metadata_key_id IS NOT NULL;
CREATE INDEX credential_versions_by_key ON credential_versions (organization_id, key_id, id, version);
