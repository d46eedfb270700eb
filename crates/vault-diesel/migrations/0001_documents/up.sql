-- An id of type UUID has 16 bytes, on SQLite as a blob. Times are milliseconds since 1970. Every key of a tenant's table has the organization in it, so that rows
-- lie together by organization and can be spread by it. What must be found before the organization is known lies in tables with
-- keys of their own.

-- The instance and its keys.

CREATE TABLE instance (
    singleton BIGINT NOT NULL PRIMARY KEY CHECK (singleton = 1),
    id UUID NOT NULL,
    root_key_id UUID NOT NULL,
    instance_key_id UUID NOT NULL,
    wrapped BLOB NOT NULL,
    -- Names all valid keys, sealed under the instance key.
    keyring BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    -- Raised by each restore, so that access tokens from before it no longer work.
    restore_epoch BIGINT NOT NULL
) WITHOUT ROWID;

-- Organizations.

-- What operations of an organization lock and count. Its name, state and keys are in `entities`.
CREATE TABLE organizations (
    id UUID NOT NULL PRIMARY KEY,
    credentials BIGINT NOT NULL,
    -- How often its active key has sealed, as far as the servers have added it.
    key_uses BIGINT NOT NULL
) WITHOUT ROWID;

-- What may be done only so often within an hour, and how often it was since its first time.
CREATE TABLE hourly_counts (
    organization_id UUID NOT NULL,
    subject TEXT NOT NULL,
    count BIGINT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, subject)
) WITHOUT ROWID;

CREATE INDEX hourly_counts_by_age ON hourly_counts (since);

-- Deleted organizations whose credentials, unreadable since then, are still being removed.
CREATE TABLE erasures (
    organization_id UUID NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Accounts. Their rights and secrets are in `entities`.

-- What every login changes of an account. `wrong_at`: when the latest wrong
-- passcode was counted; `refused_at`: when the latest attempt was refused.
CREATE TABLE account_logins (
    organization_id UUID NOT NULL,
    account_id UUID NOT NULL,
    last_step BIGINT NOT NULL,
    wrong_passcodes BIGINT NOT NULL,
    last_login_at BIGINT,
    wrong_at BIGINT,
    refused_at BIGINT,
    PRIMARY KEY (organization_id, account_id)
) WITHOUT ROWID;

-- Attempts in a row, per class. The class of all networks that are not known has the empty network.
CREATE TABLE attempt_classes (
    organization_id UUID NOT NULL,
    account_id UUID NOT NULL,
    network BLOB NOT NULL,
    attempts BIGINT NOT NULL,
    latest BIGINT,
    last_login_at BIGINT,
    PRIMARY KEY (organization_id, account_id, network)
) WITHOUT ROWID;

CREATE INDEX attempt_classes_age ON attempt_classes (last_login_at);

-- Networks from which any account logged in. They are asked for before an account is looked up.
CREATE TABLE known_networks (
    network BLOB NOT NULL PRIMARY KEY,
    last_login_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE INDEX known_networks_by_login ON known_networks (last_login_at);

CREATE TABLE recovery_codes (
    organization_id UUID NOT NULL,
    account_id UUID NOT NULL,
    code BLOB NOT NULL,
    PRIMARY KEY (organization_id, account_id, code)
) WITHOUT ROWID;

CREATE TABLE sessions (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    account_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    network TEXT NOT NULL,
    client TEXT,
    last_used_at BIGINT,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

CREATE INDEX sessions_of_account ON sessions (organization_id, account_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE account_notices (
    organization_id UUID NOT NULL,
    account_id UUID NOT NULL,
    at BIGINT NOT NULL,
    code TEXT NOT NULL,
    PRIMARY KEY (organization_id, account_id, at, code)
) WITHOUT ROWID;

CREATE INDEX account_notices_age ON account_notices (at);

-- The rows of the decoy account, on which attempts at unknown addresses are evaluated.
INSERT INTO account_logins (organization_id, account_id, last_step, wrong_passcodes) VALUES (zeroblob(16), zeroblob(16), 0, 0);
INSERT INTO attempt_classes (organization_id, account_id, network, attempts)
VALUES (zeroblob(16), zeroblob(16), CAST('' AS BLOB), 0);

-- Credentials.

-- What a list shows, of the current version. The sealed data lies apart, so that a page of a list is one short range of this table.
CREATE TABLE credentials (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    -- Copies of values in the card, for indexes. A card that differs from them is damaged.
    type TEXT NOT NULL,
    namespace TEXT NOT NULL,
    version BIGINT NOT NULL,
    vend TEXT NOT NULL,
    -- 9223372036854775807: it does not expire, as far as is known.
    expires_at BIGINT NOT NULL,
    -- The revision to which the card is sealed.
    revision BIGINT NOT NULL,
    card BLOB NOT NULL,
    -- The oldest organization key that may seal a part of the credential.
    key_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The last check of the current version: when, since when checks find the same, why it failed.
    checked_at BIGINT,
    check_since BIGINT,
    check_failed TEXT,
    last_activated_at BIGINT,
    PRIMARY KEY (organization_id, id),
    CHECK ((checked_at IS NULL) = (check_since IS NULL))
) WITHOUT ROWID;

CREATE INDEX credentials_of_namespace ON credentials (organization_id, namespace, id, type);
CREATE INDEX credentials_of_type ON credentials (organization_id, type, id);
CREATE INDEX credentials_by_expiry ON credentials (organization_id, expires_at, id) WHERE expires_at < 9223372036854775807;

-- The data of all versions. It is never listed; ids rise with time, so that new rows of all organizations lie together.
CREATE TABLE credential_secrets (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    version BIGINT NOT NULL,
    data_key BLOB NOT NULL,
    data BLOB NOT NULL,
    -- When the version is destroyed. NULL if it is current or staged.
    destroy_at BIGINT,
    checked_at BIGINT,
    check_since BIGINT,
    check_failed TEXT,
    PRIMARY KEY (id, organization_id, version),
    CHECK ((checked_at IS NULL) = (check_since IS NULL))
) WITHOUT ROWID;

CREATE INDEX credential_secrets_by_end ON credential_secrets (destroy_at, organization_id, id, version) WHERE destroy_at IS NOT NULL;

-- A keyed digest of each label.
CREATE TABLE credential_labels (
    organization_id UUID NOT NULL,
    label BLOB NOT NULL,
    id UUID NOT NULL,
    PRIMARY KEY (organization_id, label, id)
) WITHOUT ROWID;

CREATE INDEX labels_of_credential ON credential_labels (organization_id, id);

-- One row for each credential of an activation, which renewals update. `at`: the start of the activation. `ended_at`: when its
-- integration ended it before it expired.
CREATE TABLE credential_uses (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    at BIGINT NOT NULL,
    activation_id UUID NOT NULL,
    integration_id UUID NOT NULL,
    version BIGINT NOT NULL,
    form TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT,
    purpose TEXT,
    workload TEXT,
    PRIMARY KEY (organization_id, id, at, activation_id)
) WITHOUT ROWID;

CREATE INDEX credential_uses_by_age ON credential_uses (expires_at);

-- Checks that members requested and no activation side has made yet.
CREATE TABLE check_requests (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
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
    organization_id UUID,
    credential_id UUID
) WITHOUT ROWID;

-- Requests that may be repeated, and the version that each made.
CREATE TABLE idempotency_keys (
    organization_id UUID NOT NULL,
    account_id UUID NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    credential_id UUID NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, account_id, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Objects that grant rights or restrict them: one sealed document each, bound to all other columns. `kind` names its form.
CREATE TABLE entities (
    organization_id UUID NOT NULL,
    kind TEXT NOT NULL,
    id UUID NOT NULL,
    version BIGINT NOT NULL,
    -- When something is due for it, as in the document.
    due_at BIGINT,
    -- When it was last used, which the document does not contain.
    last_used_at BIGINT,
    sealed BLOB NOT NULL,
    PRIMARY KEY (organization_id, kind, id)
) WITHOUT ROWID;

CREATE INDEX entities_due ON entities (organization_id, kind, due_at) WHERE due_at IS NOT NULL;

-- The values by which entities of an organization are found, each in the index `name`.
CREATE TABLE lookups (
    organization_id UUID NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    id UUID NOT NULL,
    PRIMARY KEY (organization_id, name, value)
) WITHOUT ROWID;

CREATE INDEX lookups_of_entity ON lookups (organization_id, id);

-- The values by which entities are found before their organization is known.
CREATE TABLE global_lookups (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    PRIMARY KEY (name, value)
) WITHOUT ROWID;

CREATE INDEX global_lookups_of_entity ON global_lookups (organization_id, id);

-- That something was activated, never what that opened. As many as of credentials, so without references too.
CREATE TABLE activations (
    organization_id UUID NOT NULL,
    id UUID NOT NULL,
    integration_id UUID NOT NULL,
    namespace TEXT NOT NULL,
    vend TEXT NOT NULL,
    credentials BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITHOUT ROWID;

CREATE INDEX activations_of_integration ON activations (organization_id, integration_id, expires_at);
CREATE INDEX activations_expiry ON activations (expires_at);

-- The audit.

-- `purpose`: what an integration said that an activation was for. `changed_rows`: what an act left of the rows that it changed, a
-- line for each; the newest entry about a row tells whether it was put back. `checkpoint`: the one that holds the entry. Entries
-- of the instance have the nil organization. Ids rise with time, so that new entries of all organizations lie together.
CREATE TABLE audit (
    id UUID NOT NULL,
    at BIGINT NOT NULL,
    organization_id UUID NOT NULL,
    actor TEXT NOT NULL,
    account_id UUID,
    session_id UUID,
    integration_id UUID,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    count BIGINT NOT NULL,
    namespace TEXT,
    purpose TEXT,
    network TEXT,
    request_id TEXT,
    credentials TEXT,
    changed_rows TEXT,
    changes TEXT,
    key_id UUID NOT NULL,
    code BLOB NOT NULL,
    checkpoint BIGINT,
    PRIMARY KEY (id, organization_id)
) WITHOUT ROWID;

-- What is written adds to the first index alone, which holds the entries of the last second. The sealer moves them to the
-- second one, by which an organization's entries are listed.
CREATE INDEX audit_unsealed ON audit (id) WHERE checkpoint IS NULL;
CREATE INDEX audit_by_organization ON audit (organization_id, id) WHERE checkpoint IS NOT NULL;
CREATE INDEX audit_by_changed_row ON audit (subject, id) WHERE changed_rows IS NOT NULL;

-- Which entries there are, each checkpoint chained to the one before it.
CREATE TABLE audit_checkpoints (
    number BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    entries BLOB NOT NULL,
    hash BLOB NOT NULL,
    key_id UUID NOT NULL,
    code BLOB NOT NULL
) WITHOUT ROWID;

-- How far the audit was delivered outside, and which process may deliver it.
CREATE TABLE audit_delivery (
    singleton BIGINT NOT NULL PRIMARY KEY,
    checkpoint BIGINT NOT NULL,
    key_id UUID NOT NULL,
    code BLOB NOT NULL,
    holder TEXT,
    until BIGINT
) WITHOUT ROWID;

-- Receivers of events.

-- How telling a receiver goes. Those of the instance have the nil organization. Not protected.
CREATE TABLE receiver_status (
    organization_id UUID NOT NULL,
    receiver_id UUID NOT NULL,
    last_delivered_at BIGINT,
    failing_since BIGINT,
    last_failure TEXT,
    not_before BIGINT NOT NULL,
    PRIMARY KEY (organization_id, receiver_id)
) WITHOUT ROWID;

-- Events on their way to a receiver, and those that ended lately. `position`: in which order they are delivered.
CREATE TABLE event_deliveries (
    organization_id UUID NOT NULL,
    receiver_id UUID NOT NULL,
    id UUID NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    code BLOB NOT NULL,
    -- How far it is. Not under the code.
    state TEXT NOT NULL,
    since BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    attempted_at BIGINT,
    next_at BIGINT NOT NULL,
    failure TEXT,
    PRIMARY KEY (organization_id, receiver_id, id)
) WITHOUT ROWID;

CREATE INDEX deliveries_of_receiver ON event_deliveries (organization_id, receiver_id, position);
CREATE INDEX deliveries_waiting ON event_deliveries (organization_id, receiver_id, position) WHERE state = 'waiting';
CREATE INDEX deliveries_ended ON event_deliveries (attempted_at) WHERE state <> 'waiting';

-- How far events were read: the last checkpoint of the audit, the time of expiries and notices; and which process may read.
CREATE TABLE event_position (
    singleton BIGINT NOT NULL PRIMARY KEY,
    checkpoint BIGINT NOT NULL,
    scanned BIGINT NOT NULL,
    newest BIGINT NOT NULL,
    code BLOB NOT NULL,
    holder TEXT,
    until BIGINT
) WITHOUT ROWID;

-- Statements on these tables name an organization and more, and several indexes of each begin with the organization. PostgreSQL is told that
-- an organization may be the whole table. Else it takes one that its statistics do not have yet, or one among thousands of small ones,
-- to have hardly any rows, and reads all of them through whichever of the indexes is the smallest.
-- PostgreSQL: ALTER TABLE credentials ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE credential_labels ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE credential_secrets ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE credential_uses ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE check_requests ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE idempotency_keys ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE activations ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE sessions ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL: ALTER TABLE entities ALTER COLUMN organization_id SET (n_distinct = 1);
-- PostgreSQL plans before values are known. A value that a statement filters by may be a rare one beside one that nearly all rows have:
-- PostgreSQL is told that few rows have any one value, so that it uses the index of the column, which also has the order asked for.
-- PostgreSQL: ALTER TABLE credentials ALTER COLUMN namespace SET (n_distinct = -0.1);
-- PostgreSQL: ALTER TABLE credentials ALTER COLUMN type SET (n_distinct = -0.1);
-- PostgreSQL: ALTER TABLE credentials ALTER COLUMN key_id SET (n_distinct = -0.1);
-- PostgreSQL: ALTER TABLE credential_labels ALTER COLUMN label SET (n_distinct = -0.1);
-- PostgreSQL: ALTER TABLE activations ALTER COLUMN integration_id SET (n_distinct = -0.1);
-- PostgreSQL: ALTER TABLE sessions ALTER COLUMN account_id SET (n_distinct = -0.1);
