//! An attacker with SQL write access and a token for one namespace cannot get credentials of another namespace.

use serde_json::json;
use vault_tests::samples::{direct_link, s3, small};
use vault_tests::sql::Sql;
use vault_tests::{ActivationListener, Answer, Client, Database, Integration, Vault};

/// A vault whose rows an attacker can modify, with a credential in `secret` and one in `imports`.
struct Stage {
    vault: Vault,
    client: Client,
    secret: String,
    own: String,
    narrow: Integration,
}

impl Stage {
    fn set() -> Self {
        let (vault, activation_listener) = ActivationListener::open_with(Database::Postgres, &["--activation-rate=0"]);
        let session = vault.admin_session();
        let (secret, own) = (session.save(&small("secret", 1)), session.save(&small("imports", 2)));
        let narrow = Integration::make(&vault, "narrow", &["imports", "mine/*"]);
        Self { client: activation_listener.client(), vault, secret, own, narrow }
    }

    fn sql(&self, statement: &str) {
        Sql::of(&self.vault).run(statement);
    }

    /// Asserts that the activation fails and that the response contains no secret.
    #[track_caller]
    fn refused(&self, namespace: &str) -> Answer {
        let answer = self.narrow.activate(&self.client, namespace);
        assert_ne!(answer.status, 201, "{}", answer.text());
        assert!(!answer.text().contains("7sGh"), "{}", answer.text());
        answer
    }

    #[track_caller]
    fn works(&self) {
        self.narrow.activate(&self.client, "imports").expect(201);
    }
}

#[test]
fn credential_moved_to_another_namespace_by_sql_is_not_activated() {
    let stage = Stage::set();
    let failures = stage.vault.metric("orgvault_integrity_failures_total");
    stage.sql(&format!("UPDATE credentials SET namespace = 'mine/now' WHERE id = '{}'", stage.secret));
    stage.refused("mine/now").problem("internal-error");
    stage.narrow.check(&stage.client, "mine/now", &[]).problem("internal-error");
    assert!(stage.vault.metric("orgvault_integrity_failures_total") > failures);
    let failed = "SELECT count(*) FROM audit WHERE action = 'activation.failed' AND namespace = 'mine/now'";
    assert_eq!(Sql::of(&stage.vault).value(failed), "2");
    assert_eq!(stage.narrow.live(&stage.client).len(), 0);

    // If a moved credential is in the namespace, the legitimate one is not issued either.
    stage.sql(&format!("UPDATE credentials SET namespace = 'imports' WHERE id = '{}'", stage.secret));
    stage.refused("imports").problem("internal-error");
    stage.sql(&format!("UPDATE credentials SET namespace = 'secret' WHERE id = '{}'", stage.secret));
    stage.works();
    let rightful = Integration::make(&stage.vault, "rightful", &["secret"]);
    rightful.activate(&stage.client, "secret").expect(201);
}

#[test]
fn vend_rule_lifted_by_sql_is_not_resigned() {
    let stage = Stage::set();
    let session = stage.vault.admin_session();
    let mut request = s3().request;
    request["namespace"] = json!("mine/short");
    request["vend"] = json!("short");
    let id = session.save(&request);
    stage.sql(&format!("UPDATE credentials SET vend = 'any' WHERE id = '{id}'"));
    session.replace(&id, &request, false).problem("internal-error");
    session.describe(&id, &json!({"description": "x"})).problem("internal-error");
    stage.refused("mine/short").problem("internal-error");
    let nullable =
        "SELECT is_nullable FROM information_schema.columns WHERE table_name = 'credentials' AND column_name = 'card'";
    assert_eq!(Sql::of(&stage.vault).value(nullable), "NO");
}

#[test]
fn replaced_secret_made_current_by_sql_is_not_activated() {
    let stage = Stage::set();
    let own = &stage.own;
    let session = stage.vault.admin_session();
    session.replace(own, &small("imports", 3), false).expect(201);
    stage.works();
    stage.sql(&format!("UPDATE credentials SET version = 1 WHERE id = '{own}'"));
    stage.refused("imports").problem("internal-error");
    stage.sql(&format!(
        "UPDATE credentials SET version = 2 WHERE id = '{own}'; \
         UPDATE credential_secrets t SET data = o.data, data_key = o.data_key FROM credential_secrets o \
         WHERE t.id = '{own}' AND t.version = 2 AND o.id = t.id AND o.version = 1"
    ));
    stage.refused("imports").problem("internal-error");
}

#[test]
fn sealed_data_opens_only_in_its_row() {
    let stage = Stage::set();
    let (secret, own) = (&stage.secret, &stage.own);
    stage.sql("CREATE TABLE kept_c AS TABLE credentials; CREATE TABLE kept_s AS TABLE credential_secrets");
    let restore = || {
        stage.sql(
            "DELETE FROM credential_secrets; DELETE FROM credentials; \
             INSERT INTO credentials SELECT * FROM kept_c; INSERT INTO credential_secrets SELECT * FROM kept_s",
        );
        stage.works();
    };
    for (table, columns) in [
        ("credential_secrets", "data = f.data"),
        ("credential_secrets", "data_key = f.data_key"),
        ("credential_secrets", "data = f.data, data_key = f.data_key"),
    ] {
        stage.sql(&format!("UPDATE {table} o SET {columns} FROM {table} f WHERE o.id = '{own}' AND f.id = '{secret}'"));
        stage.refused("imports").problem("internal-error");
        restore();
    }
    for change in [
        "version = version + 1".to_owned(),
        "type = 'direct-link'".to_owned(),
        "type = 'no such type'".to_owned(),
        "revision = revision + 1".to_owned(),
        format!("card = (SELECT card FROM credentials WHERE id = '{}')", stage.secret),
    ] {
        stage.sql(&format!("UPDATE credentials SET {change} WHERE id = '{own}'"));
        stage.refused("imports");
        restore();
    }
    // A row without its data is reported as damage, rather than as one credential less.
    stage.sql(&format!("DELETE FROM credential_secrets WHERE id = '{own}'"));
    stage.refused("imports").problem("internal-error");
    restore();
}

#[test]
fn credential_of_another_organization_does_not_open() {
    let stage = Stage::set();
    let other = stage.vault.account("Globex", "admin").log_in(&stage.vault.client());
    let theirs = other.save(&direct_link().request);
    let organization = "(SELECT organization_id FROM lookups WHERE name = 'integration_name' AND value = 'narrow')";
    // Move the complete credential, with all related rows, to the attacker's organization.
    for table in ["credential_secrets", "credentials"] {
        stage.sql(&format!(
            "ALTER TABLE {table} DISABLE TRIGGER ALL; \
             UPDATE {table} SET organization_id = {organization} WHERE id = '{theirs}'"
        ));
    }
    stage.sql(&format!("UPDATE credentials SET namespace = 'mine/theirs' WHERE id = '{theirs}'"));
    stage.refused("mine/theirs").problem("internal-error");
    // Also under a key of the attacker's organization.
    let key = format!("(SELECT key_id FROM credentials WHERE id = '{}')", stage.own);
    stage.sql(&format!("UPDATE credentials SET key_id = {key} WHERE id = '{theirs}'"));
    stage.refused("mine/theirs").problem("internal-error");
    stage.works();
}

#[test]
fn document_of_integration_is_bound_to_every_column() {
    let stage = Stage::set();
    let id = &stage.narrow.id;
    stage.vault.organization("Globex");
    stage.sql("CREATE TABLE kept AS TABLE entities");
    for change in [
        "sealed = set_byte(sealed, length(sealed) - 1, get_byte(sealed, length(sealed) - 1) # 1)",
        "sealed = substr(sealed, 1, length(sealed) - 1)",
        "sealed = ''",
        "version = version + 1",
        "due_at = 4102444800000",
        "due_at = 0",
        "kind = 'namespace'",
        "kind = 'other'",
        "organization_id = (SELECT id FROM global_lookups WHERE name = 'organization_name' AND value = 'globex')",
        "id = '00000000-0000-7000-8000-000000000000'",
    ] {
        stage.sql(&format!("UPDATE entities SET {change} WHERE id = '{id}'"));
        for namespace in ["imports", "secret"] {
            stage.refused(namespace);
        }
        stage.sql("DELETE FROM entities; INSERT INTO entities SELECT * FROM kept");
        stage.works();
    }
}

#[test]
fn token_is_limited_to_signed_rights_of_integration() {
    let stage = Stage::set();
    let wide = Integration::make(&stage.vault, "wide", &["secret"]);
    let narrow = &stage.narrow;
    // The narrow token leads to the wide integration, which does not list it.
    stage.sql("CREATE TABLE kept AS TABLE global_lookups");
    stage.sql(&format!("UPDATE global_lookups SET id = '{}' WHERE id = '{}'", wide.id, narrow.id));
    stage.refused("secret").problem("invalid-token");
    stage.sql("DELETE FROM global_lookups; INSERT INTO global_lookups SELECT * FROM kept");
    stage.works();

    // A forged or modified activation decrypts nothing.
    let activation = stage.narrow.activate(&stage.client, "imports").expect(201).json();
    stage.sql("UPDATE activations SET namespace = 'secret', expires_at = 4102444800000");
    assert_eq!(stage.narrow.live(&stage.client).iter().filter(|item| item.get("data").is_some()).count(), 0);
    stage.refused("secret").problem("namespace-not-allowed");
    let path = format!("/v1/activations/{}", activation["id"].as_str().unwrap());
    stage.client.request("DELETE", &path).bearer(&stage.narrow.token).send().expect(204);
    stage.sql("UPDATE activations SET vend = 'no such form', credentials = -1");
    let listed = stage.client.get("/v1/activations").bearer(&stage.narrow.token).send();
    assert_eq!(listed.status, 500, "damage is reported, not omitted");
}
