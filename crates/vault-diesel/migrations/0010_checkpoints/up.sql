-- Checkpoints of the audit: which entries there are, each checkpoint chained to the one before it.

CREATE TABLE audit_checkpoints (
    number BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    entries BLOB NOT NULL,
    hash BLOB NOT NULL,
    key_id TEXT NOT NULL,
    code BLOB NOT NULL
) WITHOUT ROWID;

-- The checkpoint that holds an entry, and the request that the entry was written by.
ALTER TABLE audit ADD COLUMN checkpoint BIGINT;
ALTER TABLE audit ADD COLUMN request_id TEXT;

-- What is written adds to the first index alone, which holds the entries of the last second. The sealer moves them to the
-- second one, by which an organization's entries are listed.
CREATE INDEX audit_unsealed ON audit (id) WHERE checkpoint IS NULL;
CREATE INDEX audit_by_organization ON audit (organization_id, id) WHERE checkpoint IS NOT NULL;
