//! Attacks on authorization and on the isolation of organizations.

use serde_json::json;
use vault_tests::samples::{s3, small};
use vault_tests::wire::{Wire, request};
use vault_tests::{Database, Vault};

#[test]
fn a52_request_cannot_choose_organization() {
    let vault = Vault::start(Database::Postgres);
    let client = vault.client();
    let [acme, globex] = ["Acme", "Globex"].map(|name| vault.account(name, "editor").log_in(&client));
    let theirs = globex.save(&small("theirs", 1));
    let organizations = vault.json(&["org", "list"]);
    let other = organizations.as_array().unwrap().iter().find(|organization| organization["name"] == "Globex").unwrap();
    let other = other["id"].as_str().unwrap();

    for name in [
        "organization_id",
        "organization",
        "org",
        "owner",
        "role",
        "id",
        "version",
        "created_at",
        "updated_at",
        "information",
        "__proto__",
    ] {
        for place in ["", "/data"] {
            let mut body = small("a", 2);
            body.pointer_mut(place).unwrap()[name] = json!(other);
            let answer = acme.try_save(&body).problem("malformed-request");
            assert_eq!(answer.refused_fields(), [(format!("{place}/{name}"), "unknown".to_owned())]);
        }
        let answer =
            acme.call("GET", &format!("/v1/organization-vault?{name}={other}")).send().problem("malformed-request");
        assert_eq!(answer.refused_fields(), [(format!("/{name}"), "unknown".to_owned())]);
        let saved = acme.call("PATCH", &format!("/v1/organization-vault?{name}={other}")).json(&small("a", 3)).send();
        saved.problem("malformed-request");
    }
    for header in
        ["x-org-id", "x-organization-id", "x-tenant", "x-user-id", "x-role", "x-forwarded-user", "organization"]
    {
        let answer = acme.call("GET", "/v1/organization-vault").header(header, other).send().expect(200);
        assert_eq!(answer.text(), "[]", "{header}");
        acme.call("GET", &format!("/v1/organization-vault/{theirs}")).header(header, other).send().problem("not-found");
    }
    assert_eq!(globex.ids(), [theirs]);
}

#[test]
fn a55_id_is_a_uuid_in_one_spelling() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&s3().request);
    let before = session.list();
    let braced = format!("{{{id}}}");
    let mut ids: Vec<String> = [
        "%",
        "_",
        "*",
        "?",
        ".",
        "..",
        "%2e%2e",
        "%2e%2e%2f",
        "..%2f..%2fetc%2fpasswd",
        "%252e",
        "%252e%252e%252f",
        ";",
        ";id=1",
        "%00",
        "%c0%ae%c0%ae",
        "%e0%80%ae",
        "%ff",
        "{}",
        "%7b%7d",
        "[]",
        "null",
        "undefined",
        "0",
        "-1",
        "1%20OR%201=1",
        "'%20OR%20'1'='1",
        "%27%3b%20DROP%20TABLE%20credentials;--",
        "$ne",
        "[$ne]",
        "%0d%0aX-Injected:%20yes",
        "%e2%80%a8",
        "+",
        "%20",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ]
    .map(str::to_owned)
    .into();
    ids.extend([
        id.to_uppercase(),
        id.replace('-', ""),
        braced,
        format!("urn:uuid:{id}"),
        format!("%20{id}"),
        format!("{id}%20"),
        format!("{id}%00"),
        format!("{id}%0a"),
        format!("{id}."),
        format!("{id}.json"),
        format!("{id},{id}"),
        format!("{id};v=1"),
        format!("%{:02x}{}", id.as_bytes()[0], &id[1..]),
        format!("{id}/"),
        format!("{id}/data"),
        format!("/{id}"),
        format!("./{id}"),
        format!("../organization-vault/{id}"),
        "a".repeat(5 * 1024),
        id[..35].to_owned(),
        format!("{id}0"),
    ]);
    for flawed in &ids {
        for method in ["GET", "DELETE"] {
            // As raw bytes, because an ordinary client would normalize some of these.
            let authorization = format!("Authorization: Bearer {}", session.token);
            let target = format!("/v1/organization-vault/{flawed}");
            let answer = Wire::exchange(vault.address(), request(method, &target, &[&authorization], b"")).unwrap();
            assert!(matches!(answer.status, 400 | 404 | 405), "{method} {flawed}: {}", answer.status);
            if !answer.body.is_empty() {
                answer.check_common();
                assert!(flawed.len() < 8 || !answer.text().contains(flawed.as_str()), "{flawed} was repeated");
            }
        }
    }
    for raw in ["\u{e4}", "\u{0}", "\t", "\u{7f}"] {
        let target = format!("/v1/organization-vault/{raw}");
        if let Some(answer) = Wire::exchange(vault.address(), request("GET", &target, &[], b"")) {
            assert!(matches!(answer.status, 400 | 401 | 404), "{raw:?}: {}", answer.status);
        }
    }
    assert_eq!(session.list(), before, "nothing was touched");
}

#[test]
fn a56_role_has_one_spelling() {
    let vault = Vault::init(Database::Sqlite);
    let account = vault.admin();
    for role in [
        " admin",
        "admin ",
        "Admin",
        "ADMIN",
        "\u{ff41}dmin",
        "adm\u{131}n",
        "[\"admin\"]",
        "1",
        "",
        "root",
        "owner",
        "admin,viewer",
    ] {
        let create = ["account", "create", "--org", "Acme", "--email", "x@example.com", "--role", role];
        vault.run(&create).misused();
        vault.run(&["account", "set-role", "--email", &account.email, "--role", role]).misused();
    }
    let accounts = vault.json(&["account", "list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 1);
    assert_eq!(accounts[0]["role"], "admin");
}
