//! Saving, listing, showing and deleting credentials.

use crate::support::{World, WorldBuilder, assert_problem, assert_standard_headers, s3};
use serde_json::{Value, json};
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";
const VAULT: &str = "/v1/organization-vault";
const UNKNOWN: &str = "0193aaaa-0000-7000-8000-000000000000";

#[test]
fn credential_is_saved_shown_and_deleted() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let response = world.send(&format!("PATCH {VAULT}"), &[&token, JSON], s3("imports/nightly", "b1"));
    assert_standard_headers(&response, "save");
    assert_eq!((response.status, response.header("content-type")), (201, Some("application/json")));
    let id = response.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(response.text(), format!("{{\"id\":\"{id}\"}}"));
    assert_eq!(response.header("location"), Some(&*format!("{VAULT}/{id}")));

    let list = world.send(&format!("GET {VAULT}"), &[&token], "");
    assert_eq!((list.status, list.header("link")), (200, None));
    let item = world.send(&format!("GET {VAULT}/{id}"), &[&token], "");
    assert_standard_headers(&item, "show");
    assert_eq!((item.status, json!([item.json()])), (200, list.json()));
    let shown: vault_api::CredentialItem = serde_json::from_slice(&item.body).unwrap();
    assert_eq!((&*shown.id, &*shown.kind, &*shown.namespace, shown.version), (&*id, "s3", "imports/nightly", 1));
    assert_eq!((&*shown.created_at, &*shown.updated_at), ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"));
    assert_eq!(shown.information.unwrap()["bucket"], "b1");
    assert!(!item.text().contains("wJalrXUtnFEMI"));

    let response = world.send(&format!("DELETE {VAULT}/{id}"), &[&token], "");
    assert_standard_headers(&response, "delete");
    assert_eq!((response.status, response.body.len(), response.header("content-type")), (204, 0, None));
    assert_problem(&world.send(&format!("DELETE {VAULT}/{id}"), &[&token], ""), 404, "not-found", "deleted");
    assert_eq!(world.send(&format!("GET {VAULT}"), &[&token], "").text(), "[]");
}

#[test]
fn unknown_and_foreign_ids_get_same_not_found() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let theirs = world.save(&world.token_in("Other", Role::Admin), "a", "b");
    let mine = world.save(&token, "a", "b");
    let upper = mine.to_uppercase();
    let long = "a".repeat(5_000);
    let braces = format!("%7B{mine}%7D");
    let bare = mine.replace('-', "");
    let encoded = format!("%{:02x}{}", mine.as_bytes()[0], &mine[1..]);
    let nil = "00000000-0000-0000-0000-000000000000";
    let ids = [
        UNKNOWN,
        &theirs,
        nil,
        "x",
        "%",
        "_",
        "*",
        "..",
        ".",
        "%2e%2e%2f",
        "%252e",
        ";",
        "%00",
        "%c0%ae",
        "{}",
        "%ff",
        "'--",
        &long,
        &upper,
        &braces,
        &bare,
        &encoded,
    ];
    let data = serde_json::from_str::<Value>(&s3("a", "c")).unwrap()["data"].clone();
    let replace = json!({ "data": data }).to_string();
    for (method, below, body) in [
        ("GET", "", ""),
        ("DELETE", "", ""),
        ("GET", "/versions", ""),
        ("POST", "/versions", &*replace),
        ("DELETE", "/versions/1", ""),
        ("POST", "/promote", "{\"version\": 1}"),
        ("PATCH", "", "{\"labels\": {\"team\": \"data\"}}"),
        ("POST", "/match", &*replace),
        ("GET", "/activations", ""),
    ] {
        let answers: Vec<_> = ids
            .iter()
            .map(|id| {
                // What else is wrong is no news of an id that is not there.
                let headers = [&*token, JSON, "If-Match: \"7\", \"8\""];
                let response = world.send(&format!("{method} {VAULT}/{id}{below}"), &headers, body);
                assert_problem(&response, 404, "not-found", id);
                (response.stable_headers(), response.text_without_id())
            })
            .collect();
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    }
    assert_eq!(world.send(&format!("GET {VAULT}/{mine}"), &[&token], "").status, 200);
    world.send("POST /v1/logout", &[&token], "");
    for id in ["x", UNKNOWN, &mine] {
        let response = world.send(&format!("GET {VAULT}/{id}"), &[&token], "");
        assert_problem(&response, 401, "invalid-token", "after the logout");
    }
}

#[test]
fn save_lists_all_violations() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let sound: Value = serde_json::from_str(&s3("a", "b")).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = sound.clone();
        change(&mut body);
        body.to_string()
    };
    let cases: Vec<(String, u16, &[&str])> = vec![
        ("{}".into(), 400, &["/data", "/namespace", "/type"]),
        ("[]".into(), 400, &[""]),
        (with(&|body| body["type"] = json!("S3")), 422, &["/type"]),
        (with(&|body| body["type"] = json!(1)), 400, &["/type"]),
        (with(&|body| body["namespace"] = json!("..")), 422, &["/namespace"]),
        (with(&|body| body["data"] = json!("x")), 400, &["/data"]),
        (with(&|body| body["data"] = Value::Null), 400, &["/data"]),
        (
            with(&|body| {
                body["type"] = json!("ftp");
                body["data"] = json!([])
            }),
            400,
            &["/data", "/type"],
        ),
        (
            with(&|body| {
                body["type"] = json!("ftp");
                body["data"] = json!({"any": 1})
            }),
            422,
            &["/type"],
        ),
        (
            with(&|body| {
                body["data"]["secret_access_key"] = json!("***");
            }),
            422,
            &["/data/secret_access_key"],
        ),
        (
            with(&|body| {
                body["data"].as_object_mut().unwrap().remove("bucket");
                body["data"]["secret_access_key"] = json!(" ");
                body["data"]["colour"] = json!("mauve");
                body["namespace"] = json!("");
            }),
            400,
            &["/data/bucket", "/data/colour", "/data/secret_access_key", "/namespace"],
        ),
        (with(&|body| body["organization_id"] = json!("x")), 400, &["/organization_id"]),
        (s3("a", "b").replacen('{', "{\"type\":\"s3\",", 1), 400, &["/type"]),
    ];
    for (body, status, pointers) in cases {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let response = world.send(&format!("PATCH {VAULT}"), &[&token, JSON], &body);
        let problem = assert_problem(&response, status, code, &body);
        let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}: {}", response.text());
        assert!(!response.text().contains("mauve") && !response.text().contains("AKIA"), "{}", response.text());
    }
    assert_eq!(world.send(&format!("GET {VAULT}"), &[&token], "").text(), "[]");
}

#[test]
fn save_headers_are_validated() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let save = |headers: &[&str], line: &str| {
        let mut all = vec![&*token, JSON];
        all.extend_from_slice(headers);
        world.send(line, &all, s3("a", "b"))
    };
    let line = format!("PATCH {VAULT}");
    assert_problem(&save(&["If-Match: *"], &line), 412, "precondition-failed", "If-Match");
    assert_problem(&save(&["If-Match: \"1\""], &line), 412, "precondition-failed", "If-Match");
    let long = format!("Idempotency-Key: {}", "k".repeat(256));
    for header in ["Idempotency-Key:", "Idempotency-Key: a b", "Idempotency-Key: \u{e9}", &long] {
        assert_problem(&save(&[header], &line), 400, "malformed-request", header);
    }
    assert_problem(&save(&["Idempotency-Key: a", "Idempotency-Key: a"], &line), 400, "malformed-request", "two keys");
    for query in ["verify=true", "verify", "verify=1", "org=x", "a"] {
        assert_problem(&save(&[], &format!("PATCH {VAULT}?{query}")), 400, "malformed-request", query);
    }
    assert_eq!(world.send(&format!("GET {VAULT}"), &[&token], "").text(), "[]");
}

#[test]
fn idempotency_key_identifies_one_request() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let key = format!("Idempotency-Key: {}", "k".repeat(255));
    let save = |token: &str, bucket: &str| world.send(&format!("PATCH {VAULT}"), &[token, JSON, &key], s3("a", bucket));
    let first = save(&token, "b");
    let again = save(&token, "b");
    assert_eq!((first.status, first.text(), first.header("location")), (201, again.text(), again.header("location")));
    assert_problem(&save(&token, "c"), 422, "idempotency-mismatch", "another body");
    assert_eq!(save(&world.token(Role::Editor), "c").status, 201, "of another account");
    assert_eq!(world.send(&format!("GET {VAULT}"), &[&token], "").json().as_array().unwrap().len(), 2);
}

#[test]
fn list_pages_are_consecutive() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let mut saved: Vec<_> = (0..5).map(|index| world.save(&token, "a/b", &format!("b{index}"))).collect();
    world.save(&token, "elsewhere", "b");
    saved.reverse();
    let mut target = format!("{VAULT}?namespace=a%2Fb&type=s3&limit=2");
    let mut found = Vec::new();
    loop {
        let response = world.send(&format!("GET {target}"), &[&token], "");
        assert_eq!(response.status, 200, "{}", response.text());
        found.extend(response.json().as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(link) = response.header("link") else { break };
        let next = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).expect("a link");
        assert!(next.starts_with("/v1/organization-vault?namespace=a/b&type=s3&limit=2&cursor="), "{next}");
        target = next.to_owned();
    }
    assert_eq!(found, saved);
    let all = world.send(&format!("GET {VAULT}"), &[&token], "");
    assert_eq!((all.json().as_array().unwrap().len(), all.header("link")), (6, None));
    let none = world.send(&format!("GET {VAULT}?namespace=nowhere"), &[&token], "");
    assert_eq!((none.status, none.text()), (200, "[]".to_owned()));
}

#[test]
fn list_parameters_are_validated() {
    let world = World::start();
    let token = world.token(Role::Viewer);
    for (query, status, pointer) in [
        ("limit=0", 422, "/limit"),
        ("limit=1001", 422, "/limit"),
        ("limit=x", 400, "/limit"),
        ("type=nfs", 422, "/type"),
        ("namespace=%00", 422, "/namespace"),
        ("cursor=forged", 422, "/cursor"),
        ("cursor=", 422, "/cursor"),
        ("cursor=%27%20or%201=1", 422, "/cursor"),
        ("sort=created_at", 400, "/sort"),
        ("limit=1&limit=1", 400, "/limit"),
    ] {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&world.send(&format!("GET {VAULT}?{query}"), &[&token], ""), status, code, query);
        assert_eq!(problem.errors.iter().map(|error| &*error.pointer).collect::<Vec<_>>(), [pointer], "{query}");
    }
    assert_problem(&world.send(&format!("GET {VAULT}/{UNKNOWN}?a"), &[&token], ""), 400, "malformed-request", "show");
}

#[test]
fn organization_has_credential_limit() {
    let world = WorldBuilder::default().limit(1).start();
    let token = world.token(Role::Editor);
    world.save(&token, "a", "b");
    let response = world.send(&format!("PATCH {VAULT}"), &[&token, JSON], s3("a", "c"));
    assert_problem(&response, 422, "limit-reached", "one too many");
}
