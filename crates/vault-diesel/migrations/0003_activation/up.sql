-- Integrations, what they activate, and what nobody activates for now.

CREATE TABLE integrations (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    patterns TEXT NOT NULL,
    expires_at BIGINT,
    state TEXT NOT NULL,
    token BLOB NOT NULL,
    earlier_token BLOB,
    earlier_until BIGINT,
    digest BLOB NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, name_key)
) WITHOUT ROWID;

-- Where a token, or the one before it, is found before its organization is known.
CREATE TABLE integration_tokens (
    token BLOB NOT NULL PRIMARY KEY,
    organization_id TEXT NOT NULL,
    integration_id TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX tokens_of_integration ON integration_tokens (organization_id, integration_id);

CREATE TABLE frozen_namespaces (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    namespace TEXT NOT NULL,
    frozen_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, namespace)
) WITHOUT ROWID;

-- That something was activated, never what that opened. As many as of credentials, so without references too.
CREATE TABLE activations (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    integration_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    vend TEXT NOT NULL,
    credentials BIGINT NOT NULL,
    begun_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

CREATE INDEX activations_of_integration ON activations (organization_id, integration_id, expires_at);

-- Which integration acted, on which namespace, and what it said that this was for.
ALTER TABLE audit ADD COLUMN integration_id TEXT;
ALTER TABLE audit ADD COLUMN namespace TEXT;
ALTER TABLE audit ADD COLUMN purpose TEXT;
