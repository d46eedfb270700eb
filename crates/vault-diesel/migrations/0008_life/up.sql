-- The life of a credential: versions, what is said of it, whether it works, where it is used.

-- The current version stays where it was, in credentials and credential_secrets.

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
    checked_at BIGINT,
    check_since BIGINT,
    check_failed TEXT,
    PRIMARY KEY (organization_id, id, version)
) WITHOUT ROWID;

CREATE INDEX credential_versions_by_end ON credential_versions (destroy_at, organization_id, id, version);

-- NULL: nobody has read it from the information yet; 9223372036854775807: it does not expire, as far as is known.
ALTER TABLE credentials ADD COLUMN expires_at BIGINT;
ALTER TABLE credentials ADD COLUMN vend TEXT NOT NULL DEFAULT 'any';
-- NULL: saved before rules could be set.
ALTER TABLE credentials ADD COLUMN vend_code BLOB;
-- Labels, description and declared expiries, sealed; NULL: there are none.
ALTER TABLE credentials ADD COLUMN metadata BLOB;
ALTER TABLE credentials ADD COLUMN metadata_key_id TEXT;
ALTER TABLE credentials ADD COLUMN metadata_revision BIGINT;
-- The last check of the current version: when, since when checks find the same, why it failed.
ALTER TABLE credentials ADD COLUMN checked_at BIGINT;
ALTER TABLE credentials ADD COLUMN check_since BIGINT;
ALTER TABLE credentials ADD COLUMN check_failed TEXT;
ALTER TABLE credentials ADD COLUMN last_activated_at BIGINT;

CREATE INDEX credentials_by_expiry ON credentials (organization_id, expires_at, id) WHERE expires_at < 9223372036854775807;
CREATE INDEX credentials_with_unread_expiry ON credentials (organization_id, id) WHERE expires_at IS NULL;

-- A keyed digest of each label.
CREATE TABLE credential_labels (
    organization_id TEXT NOT NULL,
    label BLOB NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (organization_id, label, id)
) WITHOUT ROWID;

CREATE INDEX labels_of_credential ON credential_labels (organization_id, id);

CREATE TABLE credential_uses (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    activation_id TEXT NOT NULL,
    integration_id TEXT NOT NULL,
    form TEXT NOT NULL,
    purpose TEXT,
    PRIMARY KEY (organization_id, id, at, activation_id)
) WITHOUT ROWID;

CREATE INDEX credential_uses_by_age ON credential_uses (at);

-- Checks that members requested and no activation side has made yet.
CREATE TABLE check_requests (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    version BIGINT NOT NULL,
    requested_at BIGINT NOT NULL,
    taken_at BIGINT,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

-- One row: when an activation side last took checks, and how far the round over all credentials has come.
CREATE TABLE check_rounds (
    singleton BIGINT NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    began_at BIGINT,
    organization_id TEXT,
    credential_id TEXT
) WITHOUT ROWID;

-- What may be done only so often within an hour, and how often it was since its first time.
CREATE TABLE hourly_counts (
    organization_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    count BIGINT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, subject)
) WITHOUT ROWID;

CREATE INDEX hourly_counts_by_age ON hourly_counts (since);

DROP TABLE address_conflicts;
