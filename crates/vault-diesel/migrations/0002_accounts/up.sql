-- Invitations, and what the owner of an account sees and changes.

-- Since when the passcode seed is in use; absent: since the account was made.
ALTER TABLE accounts ADD COLUMN passcode_enrolled_at BIGINT;

-- Accounts to be. They lie apart from accounts, so that nothing that logs in can meet one; their addresses
-- stand in the directory all the same.
CREATE TABLE invitations (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    account_id TEXT NOT NULL,
    address BLOB NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    code BLOB NOT NULL,
    digest BLOB NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, account_id)
) WITHOUT ROWID;

-- Where an enrolment code is found before its organization is known.
CREATE TABLE enrolment_codes (
    code BLOB NOT NULL PRIMARY KEY,
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL
) WITHOUT ROWID;

-- What an invited person has chosen and was given. The digests of the recovery codes stand one after the other.
CREATE TABLE enrolment_drafts (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    password BLOB NOT NULL,
    seed_id TEXT NOT NULL,
    seed BLOB NOT NULL,
    recovery_codes BLOB NOT NULL,
    PRIMARY KEY (organization_id, account_id),
    FOREIGN KEY (organization_id, account_id) REFERENCES invitations (organization_id, account_id)
) WITHOUT ROWID;

CREATE TABLE account_notices (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    code TEXT NOT NULL,
    PRIMARY KEY (organization_id, account_id, at, code),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

-- New seeds that wait to be confirmed by their owners.
CREATE TABLE pending_seeds (
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    seed_id TEXT NOT NULL,
    seed BLOB NOT NULL,
    expires_at BIGINT NOT NULL,
    tried BIGINT NOT NULL,
    PRIMARY KEY (organization_id, account_id),
    FOREIGN KEY (organization_id, account_id) REFERENCES accounts (organization_id, id)
) WITHOUT ROWID;

-- How many attempts were refused after the hash: what a refusal writes where there is no account to record it of.
ALTER TABLE unknown_addresses ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;
