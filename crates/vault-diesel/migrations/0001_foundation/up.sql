-- Ids are UUIDs as text, times milliseconds since 1970. Every table and index of a tenant begins with its
-- organization, so that rows lie together by organization and can be sharded by it.

CREATE TABLE instance (
    singleton BIGINT NOT NULL PRIMARY KEY CHECK (singleton = 1),
    id TEXT NOT NULL,
    root_key_id TEXT NOT NULL,
    instance_key_id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    canary BLOB NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE instance_keys (
    id TEXT NOT NULL PRIMARY KEY,
    purpose TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;

-- Where an address is found before its organization is known.
CREATE TABLE directory (
    address BLOB NOT NULL PRIMARY KEY,
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE organizations (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    fingerprint_key_id TEXT NOT NULL,
    fingerprint_wrapped BLOB NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE organization_keys (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    uses BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

-- How many credentials an organization has: a row of its own, so that counting disturbs no other row.
CREATE TABLE credential_counts (
    organization_id TEXT NOT NULL PRIMARY KEY REFERENCES organizations (id),
    credentials BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE accounts (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    id TEXT NOT NULL,
    address BLOB NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    grant_digest BLOB NOT NULL,
    version BIGINT NOT NULL,
    password BLOB NOT NULL,
    password_version BIGINT NOT NULL,
    seed_id TEXT NOT NULL,
    seed BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

-- What every login changes of an account: a row of its own, so that a login waits for no save.
CREATE TABLE account_logins (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    last_step BIGINT NOT NULL,
    wrong_passcodes BIGINT NOT NULL,
    last_login_at BIGINT,
    PRIMARY KEY (organization_id, account_id),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

-- Attempts in a row, per class. The class of all networks that are not known has the empty network.
CREATE TABLE attempt_classes (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    network BLOB NOT NULL,
    attempts BIGINT NOT NULL,
    latest BIGINT,
    last_login_at BIGINT,
    PRIMARY KEY (organization_id, account_id, network),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

-- Attempts on addresses that nobody has.
CREATE TABLE unknown_addresses (
    bucket BIGINT NOT NULL PRIMARY KEY,
    attempts BIGINT NOT NULL,
    latest BIGINT
) WITHOUT ROWID;

CREATE TABLE recovery_codes (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    code BLOB NOT NULL,
    PRIMARY KEY (organization_id, account_id, code),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

CREATE TABLE sessions (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    network TEXT NOT NULL,
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

CREATE INDEX sessions_of_account ON sessions (organization_id, account_id);

-- What a list shows. The sealed data lies apart, so that a page of a list is one short range of this table.
CREATE TABLE credentials (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    namespace TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    information BLOB NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

CREATE INDEX credentials_of_namespace ON credentials (organization_id, namespace, id, type);
CREATE INDEX credentials_of_type ON credentials (organization_id, type, id);

CREATE TABLE credential_secrets (
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    data_key BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    credential_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, account_id, key)
) WITHOUT ROWID;

-- Deleted organizations whose credentials, unreadable since then, are still being removed.
CREATE TABLE erasures (
    organization_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    organization_id TEXT,
    actor TEXT NOT NULL,
    account_id TEXT,
    session_id TEXT,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    count BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    code BLOB NOT NULL
) WITHOUT ROWID;
