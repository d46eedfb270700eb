-- Versions of a credential. The current one stays where it was, in credentials and credential_secrets.

ALTER TABLE credentials ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
ALTER TABLE credentials ADD COLUMN highest_version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE credentials ADD COLUMN staged_version BIGINT;
-- NULL: the current version is the first, made with the credential.
ALTER TABLE credentials ADD COLUMN version_created_at BIGINT;

-- The version that the request under the key made.
ALTER TABLE idempotency_keys ADD COLUMN version BIGINT NOT NULL DEFAULT 1;

-- The staged and the previous versions. Those without superseded_at and destroy_at are staged.
CREATE TABLE credential_versions (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    superseded_at BIGINT,
    destroy_at BIGINT,
    key_id TEXT NOT NULL,
    information BLOB NOT NULL,
    data_key BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (organization_id, id, version)
) WITHOUT ROWID;

CREATE INDEX credential_versions_by_end ON credential_versions (destroy_at, organization_id, id, version);
