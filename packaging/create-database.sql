-- Creates the database of OrgVault and its role, when the PostgreSQL image starts for the first time. The password is the one of the
-- secret `database-password`. The service is not a superuser: only the owner of the database. The superuser has no password, so it
-- can only be used inside the container.
\set ON_ERROR_STOP on
\set password `cat "$POSTGRES_PASSWORD_FILE"`
CREATE ROLE orgvault LOGIN PASSWORD :'password';
ALTER ROLE CURRENT_USER PASSWORD NULL;
CREATE DATABASE orgvault OWNER orgvault;
REVOKE ALL ON DATABASE orgvault FROM PUBLIC;
\connect orgvault
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO orgvault;
