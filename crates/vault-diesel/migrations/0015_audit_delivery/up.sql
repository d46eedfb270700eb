-- How far the audit was delivered outside, with a code, and which process may deliver it.
CREATE TABLE audit_delivery (
    singleton BIGINT NOT NULL PRIMARY KEY,
    checkpoint BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    code BLOB NOT NULL,
    holder TEXT,
    until BIGINT
) WITHOUT ROWID;
