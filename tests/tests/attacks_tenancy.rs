//! Attacks on authorization and on the isolation of organizations.

use serde_json::{Value, json};
use vault_tests::samples::{every_type, s3, small};
use vault_tests::sql::Sql;
use vault_tests::wire::{Wire, request};
use vault_tests::{Database, Session, Vault};

/// Returns what must not change: the rows if they are accessible, else the owner's view.
fn state(vault: &Vault, owner: &Session) -> (Vec<Value>, Vec<Vec<String>>) {
    let rows = match vault.database() {
        Database::Sqlite => Vec::new(),
        Database::Postgres => {
            let sql = Sql::of(vault);
            let mut rows = sql.run("SELECT t::text FROM credentials t ORDER BY 1");
            rows.extend(sql.run("SELECT t::text FROM credential_secrets t ORDER BY 1"));
            rows
        }
    };
    (owner.list(), rows)
}

#[test]
fn a51_foreign_id_is_like_unknown_one() {
    let vault = Vault::start(Database::Postgres);
    let client = vault.client();
    let [acme, globex] = ["Acme", "Globex"].map(|name| vault.account(name, "admin").log_in(&client));
    let theirs: Vec<String> = every_type().iter().map(|sample| globex.save(&sample.request)).collect();
    let own = acme.save(&small("a", 1));

    // An ID that differs only in its last digits and does not exist.
    let unknown = format!("{}{}", &theirs[0][..30], if theirs[0].ends_with("000000") { "111111" } else { "000000" });
    let methods = ["GET", "HEAD", "DELETE", "PATCH", "PUT", "POST"];
    let ask = |method: &str, id: &str| {
        let mut call = acme.call(method, &format!("/v1/organization-vault/{id}"));
        match method {
            "PATCH" => call = call.json(&json!({"labels": {"team": "data"}, "vend": "any"})),
            "PUT" | "POST" => call = call.json(&small("a", 2)),
            _ => {}
        }
        let (status, mut headers, body) = call.send().indistinct();
        headers.sort();
        (status, headers, body)
    };
    for method in methods {
        let expected = ask(method, &unknown);
        assert!(matches!(expected.0, 404 | 405), "{method}: {}", expected.0);
        for id in &theirs {
            assert_eq!(ask(method, id), expected, "{method}");
        }
    }
    // Requests about versions do not reveal the credential either, whatever else is valid or invalid in the request.
    let of_type = |index: usize| every_type()[index].request["data"].clone();
    for (index, id) in theirs.iter().enumerate() {
        globex.replace(id, &every_type()[index].request, true).expect(201);
        let before = state(&vault, &globex);
        let tag = globex.show(id).expect(200).header("etag").unwrap().to_owned();
        for if_match in [None, Some(&*tag), Some("\"999\""), Some("\"998\", \"999\"")] {
            for (method, below, body) in [
                ("GET", "/versions", None),
                ("POST", "/versions", Some(json!({"data": of_type(index)}))),
                ("POST", "/versions", Some(json!({"data": {"colour": "mauve"}, "stage": 1}))),
                ("POST", "/promote", Some(json!({"version": 2}))),
                ("POST", "/promote", Some(json!({"version": 99}))),
                ("DELETE", "/versions/1", None),
                ("DELETE", "/versions/2", None),
                ("DELETE", "/versions/99999999999999999999", None),
                ("DELETE", "/versions/abc", None),
            ] {
                let ask = |id: &str| {
                    let call = acme.call(method, &format!("/v1/organization-vault/{id}{below}"));
                    let call = if_match.into_iter().fold(call, |call, tag| call.header("if-match", tag));
                    let answer = match &body {
                        Some(body) => call.json(body).send(),
                        None => call.send(),
                    };
                    answer.problem("not-found").indistinct()
                };
                assert_eq!(ask(id), ask(&unknown), "{method} {below} {if_match:?}");
            }
        }
        assert_eq!(state(&vault, &globex), before);
    }
    let before = state(&vault, &globex);
    assert_eq!(acme.ids(), [&*own]);
    assert_eq!(state(&vault, &globex), before);
    // A cursor of another organization is invalid.
    let link = globex.call("GET", "/v1/organization-vault?limit=1").send();
    let path = link.header("link").unwrap().trim_start_matches('<').split('>').next().unwrap().to_owned();
    acme.call("GET", &path).send().problem("refused-value");
    // After the owner has deleted the credential, responses to other organizations stay the same.
    let expected = ask("GET", &unknown);
    globex.delete(&theirs[0]).expect(204);
    assert_eq!(ask("GET", &theirs[0]), expected);
}

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
    let before = state(&vault, &session);
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
    assert_eq!(state(&vault, &session), before, "no row was touched");
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

#[test]
fn a57_only_public_routes_work_without_token() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let id = vault.admin_session().save(&s3().request);
    let id_path = format!("/v1/organization-vault/{id}");
    let mut paths: Vec<&str> = vec![
        "/",
        "/console/app.js",
        "/console/none.js",
        "/v1",
        "/v1/",
        "/v1/login",
        "/v1/logout",
        "/v1/organization-vault",
        &id_path,
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/metrics",
        "/v1/livez",
        "/v1/accounts",
        "/v1/account",
        "/v1/account/sessions",
        "/v1/account/password",
        "/v1/account/passcode",
        "/v1/account/passcode/confirm",
        "/v1/account/recovery-codes",
        "/v1/enrol",
        "/v1/enrol/invitation",
        "/v1/enrol/confirm",
        "/v1/integrations",
        "/v1/activations",
        "/v1/activations/check",
        "/openapi.json",
        "/docs",
        "/health",
        "/healthz",
        "/status",
        "/version",
        "/debug",
        "/debug/pprof",
        "/admin",
        "/init",
        "/setup",
        "/.env",
        "/robots.txt",
        "/favicon.ico",
        "/v2/login",
        "/login",
        "/organization-vault",
    ];
    let no_body = ["/livez", "/readyz", "/", "/console/app.js"].map(|path| [("GET", path), ("HEAD", path)]).concat();
    let later = ["/openapi.json", "/docs"]; // public by design, once they exist
    paths.retain(|path| !later.contains(path));
    for path in paths {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let answer = client.request(method, path).json_text("{}").send();
            let public = match (method, path) {
                ("POST", "/v1/login") => answer.status == 400,
                ("POST", "/v1/enrol" | "/v1/enrol/invitation" | "/v1/enrol/confirm") => answer.status == 400,
                public if no_body.contains(&public) => answer.status == 200,
                _ => matches!(answer.status, 401 | 404 | 405),
            };
            assert!(public, "{method} {path} without a token: {}", answer.status);
        }
    }
}

#[test]
fn roles_permit_exactly_documented_operations() {
    let vault = Vault::start(Database::Postgres);
    let client = vault.client();
    let admin = vault.account("Acme", "admin").log_in(&client);
    for (role, writes) in [("admin", true), ("editor", true), ("viewer", false)] {
        let session = vault.account("Acme", role).log_in(&client);
        let id = admin.save(&small(role, 1));
        let count = admin.list().len();
        assert_eq!(session.list().len(), count, "{role}");
        session.show(&id).expect(200);
        assert_eq!(session.versions(&id).len(), 1);
        let changes = |id: &str| {
            let staged = session.replace(id, &small(role, 3), true);
            [staged, session.promote(id, 2), session.destroy_version(id, 1)]
        };
        for (change, of_unknown) in changes(&id).into_iter().zip(changes("00000000-0000-7000-8000-000000000000")) {
            if writes {
                assert!(matches!(change.status, 200 | 201 | 204), "{}", change.text());
                of_unknown.problem("not-found");
            } else {
                let of_unknown = of_unknown.problem("insufficient-role").indistinct();
                assert_eq!(change.problem("insufficient-role").indistinct(), of_unknown);
            }
        }
        let (saved, deleted) = (session.try_save(&small(role, 2)), session.delete(&id));
        // A role without permission to delete learns nothing about IDs.
        let unknown = session.delete("00000000-0000-7000-8000-000000000000");
        if writes {
            saved.expect(201);
            deleted.expect(204);
            unknown.problem("not-found");
        } else {
            saved.problem("insufficient-role");
            assert_eq!(
                deleted.problem("insufficient-role").indistinct(),
                unknown.problem("insufficient-role").indistinct()
            );
        }
        assert_eq!(admin.list().len(), count);
        session.log_out().expect(204);
    }
}
