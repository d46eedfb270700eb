-- How far the audit was delivered outside, and which process may deliver it.
CREATE TABLE audit_delivery (
    singleton BIGINT NOT NULL PRIMARY KEY,
    checkpoint BIGINT NOT NULL,
    holder TEXT,
    until BIGINT
) WITHOUT ROWID;
