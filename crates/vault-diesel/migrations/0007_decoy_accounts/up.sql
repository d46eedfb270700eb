-- What an attempt at an address that nobody has reads in place of an account: rows as long as those of accounts, in a
-- table that nothing else reads. None of them can log in: password and seed are placeholders and never opened.
CREATE TABLE decoy_accounts (
    decoy BIGINT NOT NULL PRIMARY KEY,
    organization_state TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    password_version BIGINT NOT NULL,
    seed_id TEXT NOT NULL,
    grant_digest BLOB NOT NULL,
    password BLOB NOT NULL,
    seed BLOB NOT NULL
) WITHOUT ROWID;

INSERT INTO decoy_accounts (decoy, organization_state, organization_id, id, email, role, state, version,
    password_version, seed_id, grant_digest, password, seed)
SELECT decoy, 'active', '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000',
    'nobody@decoy.invalid', 'viewer', 'active', 1, 1, '00000000-0000-0000-0000-000000000000',
    CAST('................................' AS BLOB),
    CAST('...............................................................................................................................................' AS BLOB),
    CAST('..................................................................' AS BLOB)
FROM decoys WHERE part = 4;

-- They replace the rows that stood for an account.
DELETE FROM decoys WHERE part = 4;

-- What a decoy of an audit entry takes: as many bytes as the entry of a refusal.
ALTER TABLE decoys ADD COLUMN content BLOB;
