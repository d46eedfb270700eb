-- Login attempts that decide nothing, invitations of several organizations for one address, and when sessions were used.

DROP TABLE unknown_addresses;

-- Rows that take the writes of attempts that decide nothing. Part 0 stands for a class, 1 for an account's logins, 2 for
-- an audit entry, and 3 and 4 for an organization and an account that are held. All are made here: whoever attempts
-- finds them, so that no attempt costs more than another.
CREATE TABLE decoys (
    part BIGINT NOT NULL,
    decoy BIGINT NOT NULL,
    writes BIGINT NOT NULL,
    latest BIGINT,
    PRIMARY KEY (part, decoy)
) WITHOUT ROWID;

INSERT INTO decoys (part, decoy, writes)
WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 20479)
SELECT number / 4096, number % 4096, 0 FROM numbers;

-- When the latest wrong passcode was counted, and when the latest attempt was refused.
ALTER TABLE account_logins ADD COLUMN wrong_at BIGINT;
ALTER TABLE account_logins ADD COLUMN refused_at BIGINT;

-- Networks from which any account logged in. They are asked for before an account is looked up.
CREATE TABLE known_networks (
    network BLOB NOT NULL PRIMARY KEY,
    last_login_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE INDEX known_networks_by_login ON known_networks (last_login_at);

INSERT INTO known_networks (network, last_login_at)
SELECT network, MAX(last_login_at) FROM attempt_classes WHERE last_login_at IS NOT NULL GROUP BY network;

-- Where invitations are found by their address. Those of one address may belong to several organizations, one to each;
-- the directory leads to accounts alone.
CREATE TABLE invited_addresses (
    address BLOB NOT NULL,
    organization_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    PRIMARY KEY (address, organization_id)
) WITHOUT ROWID;

INSERT INTO invited_addresses (address, organization_id, account_id)
SELECT address, organization_id, account_id FROM invitations;

DELETE FROM directory WHERE address IN (SELECT address FROM invitations);

-- How many invitations of an organization met an address in use since the first of them.
CREATE TABLE address_conflicts (
    organization_id TEXT NOT NULL PRIMARY KEY REFERENCES organizations (id),
    conflicts BIGINT NOT NULL,
    since BIGINT NOT NULL
) WITHOUT ROWID;

ALTER TABLE sessions ADD COLUMN client TEXT;
ALTER TABLE sessions ADD COLUMN last_used_at BIGINT;
