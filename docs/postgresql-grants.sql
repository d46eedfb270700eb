-- What the service's role may do, table by table, and nothing else. Run it as the owner of the tables after each `init`,
-- `migrate` and `migrate-to`:
--   psql -v ON_ERROR_STOP=1 -v role=orgvault -f postgresql-grants.sql postgres://OWNER@HOST/DATABASE
-- With `serve --keep-audit`, add `-v keep_audit=1`: the service may then remove audit entries. Without it, it cannot.
-- FOR SHARE and FOR UPDATE, which keep rows from changing until a decision stands, need UPDATE too.

-- The extension Citus knows no rights on single columns. Where tables are spread by it, the role may change these tables as a whole.
SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS spread \gset
\if :spread
\set of_singleton ''
\set of_checkpoint ''
\set of_start ''
\else
\set of_singleton '(singleton)'
\set of_checkpoint '(checkpoint)'
\set of_start '(entries, key_id, code)'
\endif

BEGIN;
-- Nobody but the owner creates objects that could take the place of the service's.
REVOKE CREATE ON SCHEMA public FROM PUBLIC, :"role";
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM :"role";
GRANT USAGE ON SCHEMA public TO :"role";

GRANT SELECT ON schema_versions TO :"role";
-- To hold the row, not to change it: keys of the deployment are replaced by the owner of the tables.
GRANT SELECT, UPDATE :of_singleton ON instance TO :"role";
GRANT SELECT, INSERT, UPDATE :of_checkpoint ON audit TO :"role";
GRANT SELECT, INSERT ON audit_checkpoints TO :"role";
\if :{?keep_audit}
GRANT DELETE ON audit TO :"role";
GRANT UPDATE :of_start, DELETE ON audit_checkpoints TO :"role";
\endif

GRANT SELECT, INSERT, UPDATE ON audit_delivery, check_rounds, event_position TO :"role";

GRANT SELECT, INSERT, DELETE ON
    account_notices, credential_labels, erasures, global_lookups, idempotency_keys
    TO :"role";

GRANT SELECT, INSERT, UPDATE, DELETE ON
    account_logins, activations, attempt_classes, check_requests, credential_secrets, credential_uses, credentials,
    entities, event_deliveries, hourly_counts, known_networks, lookups, organizations, receiver_status,
    recovery_codes, sessions
    TO :"role";
COMMIT;
