-- Signing keys of federation tokens. Only the keyring makes a key valid. The MAC covers all columns except the private key, which
-- is sealed, and the two of the last publication check, which grant nothing.
CREATE TABLE federation_keys (
    id UUID NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    state TEXT NOT NULL,
    jwk TEXT NOT NULL,
    private_key BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    published_at BIGINT,
    active_at BIGINT,
    retired_at BIGINT,
    version BIGINT NOT NULL,
    mac BLOB NOT NULL,
    mac_key_id UUID NOT NULL,
    checked_at BIGINT,
    failure TEXT
) WITHOUT ROWID;
