//! The versions of a credential: replacing, staging, promoting, destroying; and entity tags.

use crate::support::{Response, World, WorldBuilder, assert_problem, assert_standard_headers, s3};
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::role::Role;
use vault_core::sealed::Blob;

const JSON: &str = "Content-Type: application/json";
const VAULT: &str = "/v1/organization-vault";

/// The `data` of an S3-style credential.
fn data(bucket: &str) -> Value {
    serde_json::from_str::<Value>(&s3("a", bucket)).unwrap()["data"].clone()
}

/// A credential and the account that changes it.
struct Credential {
    world: World,
    token: String,
    id: String,
}

impl Credential {
    fn saved() -> Self {
        Self::saved_in(World::start())
    }

    fn saved_in(world: World) -> Self {
        let token = world.token(Role::Editor);
        let id = world.save(&token, "imports/nightly", "b1");
        Self { world, token, id }
    }

    /// Sends a request for it, with a JSON body unless that is empty.
    fn send(&self, method: &str, below: &str, headers: &[&str], body: &str) -> Response {
        let mut all = vec![&*self.token];
        all.extend((!body.is_empty()).then_some(JSON));
        all.extend_from_slice(headers);
        self.world.send(&format!("{method} {VAULT}/{}{below}", self.id), &all, body)
    }

    fn replace_with(&self, headers: &[&str], body: &Value) -> Response {
        self.send("POST", "/versions", headers, &body.to_string())
    }

    fn replace(&self, bucket: &str) -> Response {
        self.replace_with(&[], &json!({ "data": data(bucket) }))
    }

    fn stage(&self, bucket: &str) -> Response {
        self.replace_with(&[], &json!({ "data": data(bucket), "stage": true }))
    }

    fn promote(&self, version: &Value) -> Response {
        self.send("POST", "/promote", &[], &json!({ "version": version }).to_string())
    }

    fn destroy(&self, version: &str) -> Response {
        self.send("DELETE", &format!("/versions/{version}"), &[], "")
    }

    fn show(&self) -> Response {
        let response = self.send("GET", "", &[], "");
        assert_eq!(response.status, 200, "{}", response.text());
        response
    }

    /// Returns number, state and bucket of each version.
    fn versions(&self) -> Vec<(i64, String, String)> {
        let response = self.send("GET", "/versions", &[], "");
        assert_eq!(response.status, 200, "{}", response.text());
        let versions: Vec<vault_api::VersionItem> = serde_json::from_slice(&response.body).unwrap();
        let shown = versions.into_iter().map(|version| {
            let information = version.information.unwrap();
            (version.version, version.state, information["bucket"].as_str().unwrap().to_owned())
        });
        shown.collect()
    }
}

fn listed(versions: &[(i64, &str, &str)]) -> Vec<(i64, String, String)> {
    versions.iter().map(|(number, state, bucket)| (*number, (*state).to_owned(), (*bucket).to_owned())).collect()
}

#[test]
fn credential_is_rotated_and_rolled_back() {
    let credential = Credential::saved();
    let first = credential.show();
    let staged = credential.stage("b2");
    assert_standard_headers(&staged, "stage");
    assert_eq!((staged.status, staged.header("content-type")), (201, Some("application/json")));
    assert_eq!(staged.json(), json!({"id": credential.id, "version": 2}));
    let item = credential.show().json();
    assert_eq!((&item["version"], &item["staged_version"]), (&json!(1), &json!(2)));
    assert_eq!(item["information"]["bucket"], "b1", "a staged version is not issued");
    assert_eq!(credential.versions(), listed(&[(1, "current", "b1"), (2, "staged", "b2")]));

    let promoted = credential.promote(&json!(2));
    assert_standard_headers(&promoted, "promote");
    assert_eq!((promoted.status, promoted.json()), (200, credential.show().json()));
    assert_eq!(promoted.json()["version"], 2);
    assert_eq!(
        (promoted.json()["information"]["bucket"].as_str(), promoted.json().get("staged_version")),
        (Some("b2"), None)
    );
    assert_eq!(credential.versions(), listed(&[(2, "current", "b2"), (1, "previous", "b1")]));

    assert_eq!(credential.promote(&json!(1)).status, 200, "the way back");
    assert_eq!(credential.versions(), listed(&[(1, "current", "b1"), (2, "previous", "b2")]));
    assert_eq!(credential.replace("b3").json()["version"], 3, "no number is given twice");
    assert_eq!(credential.versions(), listed(&[(3, "current", "b3"), (2, "previous", "b2"), (1, "previous", "b1")]));

    let destroyed = credential.destroy("2");
    assert_standard_headers(&destroyed, "destroy");
    assert_eq!((destroyed.status, destroyed.body.len()), (204, 0));
    assert_problem(&credential.destroy("2"), 404, "not-found", "destroyed before");
    assert_problem(&credential.promote(&json!(2)), 404, "not-found", "destroyed");
    assert_problem(&credential.destroy("3"), 409, "conflict", "the current one");
    assert_eq!(credential.versions(), listed(&[(3, "current", "b3"), (1, "previous", "b1")]));
    let last = credential.show().json();
    assert_eq!((&last["id"], &last["created_at"]), (&first.json()["id"], &first.json()["created_at"]));
    for text in [credential.send("GET", "/versions", &[], "").text(), credential.show().text()] {
        assert!(!text.contains("wJalrXUtnFEMI"), "{text}");
    }
}

#[test]
fn version_number_has_one_spelling() {
    let credential = Credential::saved();
    credential.stage("b2");
    let answers: Vec<_> = ["3", "0", "02", "+2", "-2", "2.0", "abc", "99999999999999999999", "9223372036854775807"]
        .iter()
        .map(|version| {
            let response = credential.destroy(version);
            assert_problem(&response, 404, "not-found", version);
            (response.stable_headers(), response.text_without_id())
        })
        .collect();
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    assert_problem(&credential.destroy("%32"), 404, "not-found", "an escape");
    for version in [json!(3), json!(0), json!(-2), json!(u64::MAX)] {
        assert_problem(&credential.promote(&version), 404, "not-found", &version.to_string());
    }
    for version in [json!("2"), json!(2.5), Value::Null, json!([2])] {
        let problem = assert_problem(&credential.promote(&version), 400, "malformed-request", &version.to_string());
        assert_eq!(problem.errors[0].pointer, "/version");
    }
    assert_eq!(credential.versions().len(), 2);
}

#[test]
fn replacement_lists_all_violations() {
    let credential = Credential::saved();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = json!({ "data": data("b2") });
        change(&mut body);
        body.to_string()
    };
    let cases: Vec<(String, u16, &[&str])> = vec![
        ("{}".into(), 400, &["/data"]),
        ("[]".into(), 400, &[""]),
        (with(&|body| body["data"] = Value::Null), 400, &["/data"]),
        (with(&|body| body["type"] = json!("s3")), 400, &["/type"]),
        (with(&|body| body["namespace"] = json!("elsewhere")), 400, &["/namespace"]),
        (with(&|body| body["expires_at"] = json!("tomorrow")), 422, &["/expires_at"]),
        (with(&|body| body["expires_at"] = Value::Null), 400, &["/expires_at"]),
        (with(&|body| body["stage"] = json!("true")), 400, &["/stage"]),
        (
            with(&|body| {
                body["data"]["secret_access_key"] = json!("***");
                body["data"]["colour"] = json!("mauve");
                body["data"].as_object_mut().unwrap().remove("bucket");
                body["expires_at"] = json!(1);
                body["stage"] = Value::Null;
                body["version"] = json!(7);
            }),
            400,
            &["/expires_at"],
        ),
        (
            with(&|body| body["data"] = json!({"url": "https://a.example/x"})),
            400,
            &["/data/access_key_id", "/data/bucket", "/data/secret_access_key", "/data/url"],
        ),
    ];
    for (body, status, pointers) in cases {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let response = credential.send("POST", "/versions", &[], &body);
        let problem = assert_problem(&response, status, code, &body);
        let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}: {}", response.text());
        assert!(!response.text().contains("mauve") && !response.text().contains("AKIA"), "{}", response.text());
    }
    let promote = |body: &str| credential.send("POST", "/promote", &[], body);
    assert_problem(&promote("{\"version\": 1, \"stage\": true}"), 400, "malformed-request", "an unknown member");
    assert_problem(&promote("{\"version\": 1, \"version\": 1}"), 400, "malformed-request", "twice");
    assert_problem(&promote("{"), 400, "malformed-request", "no document");
    assert_eq!(credential.versions().len(), 1);
    for (method, below) in
        [("POST", "/versions"), ("POST", "/promote"), ("GET", "/versions"), ("DELETE", "/versions/1")]
    {
        let response = credential.send(method, &format!("{below}?force=true"), &[], "{}");
        assert_problem(&response, 400, "malformed-request", "a query");
        let path = format!("{method} {VAULT}/{}{below}", credential.id);
        if method == "POST" {
            let response = credential.world.send(&path, &[&credential.token], "{}");
            assert_problem(&response, 415, "unsupported-media-type", &path);
        }
    }
}

#[test]
fn declared_expiry_applies_to_its_version() {
    let credential = Credential::saved();
    let body = json!({"data": data("b2"), "expires_at": "2030-06-01T12:00:00.9+02:00", "stage": true});
    assert_eq!(credential.replace_with(&[], &body).status, 201);
    assert_eq!(credential.show().json().get("expires_at"), None);
    assert_eq!(credential.promote(&json!(2)).json()["expires_at"], "2030-06-01T10:00:00Z");
    credential.replace("b3");
    assert_eq!(credential.show().json().get("expires_at"), None);
    assert_eq!(credential.promote(&json!(2)).json()["expires_at"], "2030-06-01T10:00:00Z");
    let list = credential.world.send(&format!("GET {VAULT}"), &[&credential.token], "");
    assert_eq!(list.json()[0], credential.show().json());
}

#[test]
fn entity_tag_changes_with_every_client_change() {
    let credential = Credential::saved();
    let tag = || credential.show().header("etag").unwrap().to_owned();
    let mut tags = vec![tag()];
    assert_eq!(tag(), tags[0], "reading changes nothing");
    let mut changed = |what: &str| {
        let now = tag();
        assert!(now.starts_with('"') && now.ends_with('"') && !tags.contains(&now), "{what}: {now} after {tags:?}");
        tags.push(now);
    };
    credential.stage("b2");
    changed("staged");
    let promoted = credential.promote(&json!(2));
    changed("promoted");
    assert_eq!(promoted.header("etag"), Some(&*tag()));
    credential.replace("b3");
    changed("replaced");
    credential.destroy("1");
    changed("destroyed");
    let before = tag();
    assert_eq!(credential.promote(&json!(3)).header("etag"), Some(&*before), "it was the current one");
    let response = credential.send("GET", "", &[&format!("If-None-Match: {before}")], "");
    assert_eq!((response.status, response.body.is_empty()), (200, false), "there is no 304");
}

#[test]
fn change_with_stale_entity_tag_is_refused() {
    let credential = Credential::saved();
    let old = credential.show().header("etag").unwrap().to_owned();
    credential.stage("b2");
    let new = credential.show().header("etag").unwrap().to_owned();
    let replacement = json!({ "data": data("b3") }).to_string();
    let requests = [
        ("POST", "/versions", &*replacement),
        ("POST", "/promote", "{\"version\": 2}"),
        ("DELETE", "/versions/2", ""),
        ("DELETE", "", ""),
    ];
    let (weak, two, other) = (format!("W/{new}"), format!("{old}, W/{new}"), format!("{old}, \"abc\", \"999\""));
    for (method, below, body) in requests {
        for tags in [&*old, &weak, &two, &other, "\"\"", "\"0\""] {
            let response = credential.send(method, below, &[&format!("If-Match: {tags}")], body);
            assert_problem(&response, 412, "precondition-failed", &format!("{method} {below} {tags}"));
        }
        for tags in ["", "1", "*, \"1\"", "\"1", "\"1\"\"2\""] {
            let response = credential.send(method, below, &[&format!("If-Match: {tags}")], body);
            assert_problem(&response, 400, "malformed-request", &format!("{method} {below} {tags}"));
        }
    }
    assert_eq!(credential.versions(), listed(&[(1, "current", "b1"), (2, "staged", "b2")]));
    // The current tag, alone or with others, in one header or two.
    let send = |method, below, headers: &[&str], body| credential.send(method, below, headers, body).status;
    let tag = || credential.show().header("etag").unwrap().to_owned();
    let current = tag();
    assert_eq!(send("POST", "/versions", &[&format!("If-Match: {current}")], &replacement), 201);
    let several = format!("If-Match: {old} , {}", tag());
    assert_eq!(send("POST", "/promote", &[&several], "{\"version\": 2}"), 200);
    let second = format!("If-Match: {}", tag());
    assert_eq!(send("DELETE", "/versions/1", &[&format!("If-Match: {old}"), &second], ""), 204);
    assert_eq!(send("DELETE", "", &["If-Match: *"], ""), 204);
}

#[test]
fn idempotency_key_identifies_one_replacement() {
    let credential = Credential::saved();
    let key = "Idempotency-Key: rotation";
    let body = json!({ "data": data("b2") });
    let tag = format!("If-Match: {}", credential.show().header("etag").unwrap());
    let first = credential.replace_with(&[key, &tag], &body);
    assert_eq!((first.status, &first.json()["version"]), (201, &json!(2)));
    let again = credential.replace_with(&[key, &tag], &body);
    assert_eq!((again.status, again.text()), (201, first.text()), "though the tag has changed since");
    assert_eq!(credential.versions().len(), 2);
    for other in [
        json!({ "data": data("b3") }),
        json!({ "data": data("b2"), "stage": true }),
        json!({ "data": data("b2"), "expires_at": "2031-01-01T00:00:00Z" }),
    ] {
        assert_problem(&credential.replace_with(&[key], &other), 422, "idempotency-mismatch", &other.to_string());
    }
    let save = credential.world.send(&format!("PATCH {VAULT}"), &[&credential.token, JSON, key], s3("a", "b2"));
    assert_problem(&save, 422, "idempotency-mismatch", "another operation");
    for header in ["Idempotency-Key:", "Idempotency-Key: a b"] {
        assert_problem(&credential.replace_with(&[header], &body), 400, "malformed-request", header);
    }
}

#[test]
fn repeated_replacement_gets_original_response_after_deletion() {
    let credential = Credential::saved();
    let (key, body) = ("Idempotency-Key: rotation", json!({ "data": data("b2") }));
    let first = credential.replace_with(&[key], &body);
    assert_eq!(first.status, 201);
    assert_eq!(credential.send("DELETE", "", &[], "").status, 204);
    let again = credential.replace_with(&[key], &body);
    assert_eq!((again.status, again.text()), (201, first.text()));
    for (key, body) in [("Idempotency-Key: other", body), (key, json!({ "data": data("b3") }))] {
        assert_problem(&credential.replace_with(&[key], &body), 404, "not-found", key);
    }
}

#[test]
fn replacement_may_be_checked_first() {
    let credential = Credential::saved_in(WorldBuilder::default().verifying().start());
    let verify = |key: &str| {
        let body = json!({ "data": data("b2") }).to_string();
        credential.send("POST", "/versions?verify=true", &[&format!("Idempotency-Key: {key}")], &body)
    };
    credential.world.storage.fail(Some(CheckReason::SignatureMismatch));
    let problem = assert_problem(&verify("a"), 422, "not-usable", "a wrong secret");
    assert!(problem.checks.iter().any(|check| check.reason.as_deref() == Some("signature-mismatch")));
    assert_eq!(credential.versions().len(), 1);
    credential.world.storage.fail(None);
    assert_eq!(verify("a").status, 201);
    let probed = credential.world.storage.probed().len();
    assert_eq!(verify("a").status, 201);
    assert_eq!(credential.world.storage.probed().len(), probed, "a finished request is not checked again");

    let elsewhere = Credential::saved();
    let response = elsewhere.send("POST", "/versions?verify=true", &[], "{");
    assert_problem(&response, 400, "malformed-request", "not configured");
}

#[test]
fn damaged_version_is_distinguished_from_others() {
    let credential = Credential::saved();
    credential.stage("b2");
    assert!(credential.world.store.tamper_with_credential(credential.id.parse().unwrap(), |sealed| {
        sealed.information = Blob::from_bytes(vec![1, 2, 3]);
    }));
    let response = credential.send("GET", "/versions", &[], "");
    assert_eq!(response.status, 200);
    let versions = response.json();
    assert_eq!((&versions[0]["state"], &versions[0]["damaged"]), (&json!("current"), &json!(true)), "{versions}");
    assert_eq!((versions[0].get("information"), versions[1].get("damaged")), (None, None), "{versions}");
}
