//! The versions of a credential: replacing, staging, promoting, destroying; and entity tags.

use super::app::{App, assert_same, s3, text};
use super::credentials::{VAULT, save_with};
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::sealed::Blob;
use vault_tests::samples::every_type;
use vault_tests::{Answer, Session};

/// A credential and the editor who changes it.
struct Credential {
    app: App,
    editor: Session,
    id: String,
}

impl Credential {
    fn saved() -> Self {
        Self::saved_in(App::start())
    }

    fn saved_in(app: App) -> Self {
        let editor = app.editor();
        let id = editor.save(&s3("imports/nightly", "b1"));
        Self { app, editor, id }
    }

    /// Sends a request for it, with a JSON body unless that is empty.
    #[track_caller]
    fn send(&self, method: &str, below: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let call = self.editor.call(method, &format!("/v1{VAULT}/{}{below}", self.id));
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        if body.is_empty() { call.send() } else { call.json_text(body).send() }
    }

    #[track_caller]
    fn replace_with(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", "/versions", headers, &body.to_string())
    }

    #[track_caller]
    fn replace(&self, bucket: &str) -> Answer {
        self.editor.replace(&self.id, &s3("", bucket), false)
    }

    #[track_caller]
    fn stage(&self, bucket: &str) -> Answer {
        self.editor.replace(&self.id, &s3("", bucket), true)
    }

    #[track_caller]
    fn promote(&self, version: i64) -> Answer {
        self.editor.promote(&self.id, version)
    }

    #[track_caller]
    fn destroy(&self, version: &str) -> Answer {
        self.send("DELETE", &format!("/versions/{version}"), &[], "")
    }

    #[track_caller]
    fn show(&self) -> Answer {
        self.editor.show(&self.id).expect(200)
    }

    fn tag(&self) -> String {
        self.show().header("etag").unwrap().to_owned()
    }

    /// Asserts number, state and bucket of each version.
    #[track_caller]
    fn has(&self, versions: &[(i64, &str, &str)]) {
        let shown = self.send("GET", "/versions", &[], "").expect(200);
        assert!(!shown.text().contains("wJalrXUtnFEMI"), "{}", shown.text());
        let shown: Vec<vault_api::VersionItem> = serde_json::from_slice(&shown.body).unwrap();
        let shown: Vec<_> = shown
            .into_iter()
            .map(|version| (version.version, version.state, text(&version.information.unwrap()["bucket"]).to_owned()))
            .collect();
        let owned = |(number, state, bucket): &(i64, &str, &str)| (*number, (*state).to_owned(), (*bucket).to_owned());
        assert_eq!(shown, versions.iter().map(owned).collect::<Vec<_>>());
    }
}

/// Jobs notice only that the data is new.
#[test]
fn rotation_has_no_gap() {
    let credential = Credential::saved();
    let listener = credential.app.listener();
    let job = listener.job(&credential.app.admin(), "nightly", &["imports/nightly"]);
    let issued = |version: i64, bucket: &str| {
        let found = job.activate("imports/nightly").expect(201).json()["credentials"].clone();
        let expected = json!([{"id": credential.id, "type": "s3", "version": version, "form": "raw",
            "data": s3("", bucket)["data"]}]);
        assert_eq!(found, expected);
    };
    let first = credential.show().json();
    issued(1, "b1");
    assert_eq!(credential.stage("b2").expect(201).json(), json!({"id": credential.id, "version": 2}));
    let item = credential.show().json();
    assert_eq!((&item["version"], &item["staged_version"]), (&json!(1), &json!(2)));
    assert_eq!(item["information"]["bucket"], "b1", "a staged version is not issued");
    issued(1, "b1");
    credential.has(&[(1, "current", "b1"), (2, "staged", "b2")]);

    // A frozen namespace accepts new versions, and issues none.
    let admin = credential.app.admin();
    let namespace = json!({"namespace": "imports/nightly"});
    admin.post("/namespaces/freeze", &namespace).expect(200);
    let promoted = credential.promote(2).expect(200).json();
    assert_eq!(promoted, credential.show().json());
    assert_eq!((&promoted["version"], promoted.get("staged_version")), (&json!(2), None));
    assert_eq!(promoted["information"]["bucket"], "b2");
    job.activate("imports/nightly").problem("frozen");
    admin.post("/namespaces/thaw", &namespace).expect(200);
    issued(2, "b2");
    credential.has(&[(2, "current", "b2"), (1, "previous", "b1")]);

    credential.promote(1).expect(200); // the way back
    issued(1, "b1");
    credential.has(&[(1, "current", "b1"), (2, "previous", "b2")]);
    assert_eq!(credential.replace("b3").json()["version"], 3, "no number is given twice");
    issued(3, "b3");
    credential.has(&[(3, "current", "b3"), (2, "previous", "b2"), (1, "previous", "b1")]);

    credential.destroy("2").empty(204);
    credential.destroy("2").problem("not-found");
    credential.promote(2).problem("not-found");
    credential.destroy("3").problem("conflict"); // the current one
    credential.has(&[(3, "current", "b3"), (1, "previous", "b1")]);
    let last = credential.show().json();
    assert_eq!((&last["id"], &last["created_at"]), (&first["id"], &first["created_at"]));
    credential.editor.delete(&credential.id).empty(204);
    credential.promote(1).problem("not-found");
    job.activate("imports/nightly").problem("not-found");
}

#[test]
fn credential_is_replaced_only_by_same_type() {
    let app = App::start();
    let editor = app.editor();
    let samples = every_type();
    let ids: Vec<_> = samples.iter().map(|sample| editor.save(&sample.request)).collect();
    for (id, own) in ids.iter().zip(&samples) {
        for other in &samples {
            let answer = editor.replace(id, &other.request, false);
            if own.request["type"] == other.request["type"] {
                assert_eq!(answer.expect(201).json()["version"], 2);
            } else {
                // Members of another type are unknown.
                let answer = answer.problem("malformed-request");
                assert!(answer.refused_fields().iter().all(|(pointer, _)| pointer.starts_with("/data/")));
                assert!(other.secrets.iter().all(|secret| !answer.text().contains(secret)), "{}", answer.text());
            }
        }
    }
}

#[test]
fn version_number_has_one_spelling() {
    let credential = Credential::saved();
    credential.stage("b2");
    let other = ["3", "0", "02", "+2", "-2", "2.0", "abc", "99999999999999999999", "9223372036854775807"];
    assert_same(other.map(|version| credential.destroy(version).problem("not-found")));
    credential
        .app
        .send(&format!("DELETE /v1{VAULT}/{}/versions/%32", credential.id), &[&credential.editor.header()], "")
        .problem("not-found");
    for version in [json!(3), json!(0), json!(-2), json!(u64::MAX)] {
        credential.send("POST", "/promote", &[], &json!({"version": version}).to_string()).problem("not-found");
    }
    credential.has(&[(1, "current", "b1"), (2, "staged", "b2")]);
}

#[test]
fn declared_expiry_applies_to_its_version() {
    let credential = Credential::saved();
    let data = s3("", "b2")["data"].clone();
    let body = json!({"data": data, "expires_at": "2030-06-01T12:00:00.9+02:00", "stage": true});
    credential.replace_with(&[], &body).expect(201);
    assert_eq!(credential.show().json().get("expires_at"), None);
    assert_eq!(credential.promote(2).json()["expires_at"], "2030-06-01T10:00:00Z");
    credential.replace("b3");
    assert_eq!(credential.show().json().get("expires_at"), None);
    assert_eq!(credential.promote(2).json()["expires_at"], "2030-06-01T10:00:00Z");
    assert_eq!(credential.editor.list()[0], credential.show().json());
}

#[test]
fn entity_tag_changes_with_every_client_change() {
    let credential = Credential::saved();
    let mut tags = vec![credential.tag()];
    assert_eq!(credential.tag(), tags[0], "reading changes nothing");
    let mut changed = |what: &str| {
        let now = credential.tag();
        assert!(now.starts_with('"') && now.ends_with('"') && !tags.contains(&now), "{what}: {now} after {tags:?}");
        tags.push(now);
    };
    credential.stage("b2");
    changed("staged");
    let promoted = credential.promote(2);
    changed("promoted");
    assert_eq!(promoted.header("etag"), Some(&*credential.tag()));
    credential.replace("b3");
    changed("replaced");
    credential.destroy("1");
    changed("destroyed");
    let before = credential.tag();
    assert_eq!(credential.promote(3).header("etag"), Some(&*before), "it was the current one");
    let unchanged = credential.send("GET", "", &[("if-none-match", &before)], "").expect(200);
    assert!(!unchanged.body.is_empty(), "there is no 304");
}

#[test]
fn change_with_stale_entity_tag_is_refused() {
    let credential = Credential::saved();
    let old = credential.tag();
    credential.stage("b2");
    let new = credential.tag();
    let replacement = json!({"data": s3("", "b3")["data"]}).to_string();
    let (weak, two, other) = (format!("W/{new}"), format!("{old}, W/{new}"), format!("{old}, \"abc\", \"999\""));
    for (method, below, body) in [
        ("POST", "/versions", &*replacement),
        ("POST", "/promote", "{\"version\": 2}"),
        ("DELETE", "/versions/2", ""),
        ("DELETE", "", ""),
    ] {
        for tags in [&*old, &weak, &two, &other, "\"\"", "\"0\""] {
            credential.send(method, below, &[("if-match", tags)], body).problem("precondition-failed");
        }
        for tags in ["", "1", "*, \"1\"", "\"1", "\"1\"\"2\""] {
            credential.send(method, below, &[("if-match", tags)], body).problem("malformed-request");
        }
    }
    credential.has(&[(1, "current", "b1"), (2, "staged", "b2")]);
    // The current tag, alone or with others, in one header or two.
    let current = credential.tag();
    credential.send("POST", "/versions", &[("if-match", &current)], &replacement).expect(201);
    let several = format!("{old} , {}", credential.tag());
    credential.send("POST", "/promote", &[("if-match", &several)], "{\"version\": 2}").expect(200);
    let second = credential.tag();
    credential.send("DELETE", "/versions/1", &[("if-match", &old), ("if-match", &second)], "").empty(204);
    credential.send("DELETE", "", &[("if-match", &second)], "").problem("precondition-failed");
    credential.send("DELETE", "", &[("if-match", "*")], "").empty(204);
    credential.send("DELETE", "", &[("if-match", &second)], "").problem("not-found");
}

#[test]
fn idempotency_key_identifies_one_replacement() {
    let credential = Credential::saved();
    let (key, data) = (("idempotency-key", "rotation"), s3("", "b2")["data"].clone());
    let (body, tag) = (json!({"data": data}), credential.tag());
    let first = credential.replace_with(&[key, ("if-match", &tag)], &body).expect(201);
    assert_eq!(first.json()["version"], 2);
    let again = credential.replace_with(&[key, ("if-match", &tag)], &body).expect(201);
    assert_eq!(again.text(), first.text(), "though the tag has changed since");
    for other in [
        json!({"data": s3("", "b3")["data"]}),
        json!({"data": data, "stage": true}),
        json!({"data": data, "expires_at": "2031-01-01T00:00:00Z"}),
    ] {
        credential.replace_with(&[key], &other).problem("idempotency-mismatch");
    }
    save_with(&credential.editor, &[key], &s3("a", "b2")).problem("idempotency-mismatch"); // another operation
    for flawed in ["", "a b"] {
        credential.replace_with(&[("idempotency-key", flawed)], &body).problem("malformed-request");
    }
    credential.has(&[(2, "current", "b2"), (1, "previous", "b1")]);
    // The original response is repeated after the deletion.
    credential.editor.delete(&credential.id).empty(204);
    assert_eq!(credential.replace_with(&[key], &body).expect(201).text(), first.text());
    let other = json!({"data": s3("", "b3")["data"]});
    for (key, body) in [(("idempotency-key", "other"), &body), (key, &other)] {
        credential.replace_with(&[key], body).problem("not-found");
    }
}

#[test]
fn replacement_may_be_checked_first() {
    let credential = Credential::saved_in(App::with(|setup| setup.verifying()));
    let body = json!({"data": s3("", "b2")["data"]}).to_string();
    let verify = || credential.send("POST", "/versions?verify=true", &[("idempotency-key", "a")], &body);
    let storage = &credential.app.storage;
    storage.fail(Some(CheckReason::SignatureMismatch));
    let refused = verify().problem("not-usable").json();
    let reasons = |check: &Value| check["reason"] == "signature-mismatch";
    assert!(refused["checks"].as_array().unwrap().iter().any(reasons), "{refused}");
    credential.has(&[(1, "current", "b1")]);
    storage.fail(None);
    verify().expect(201);
    let probed = storage.probed().len();
    verify().expect(201);
    assert_eq!(storage.probed().len(), probed, "a finished request is not checked again");
    let elsewhere = Credential::saved();
    elsewhere.send("POST", "/versions?verify=true", &[], "{").problem("malformed-request"); // not configured
}

#[test]
fn damaged_credential_shows_its_current_version() {
    let credential = Credential::saved();
    credential.stage("b2");
    assert!(credential.app.store.tamper_with_row(credential.id.parse().unwrap(), |row| {
        row.card = Blob::from_bytes(vec![1, 2, 3]);
    }));
    let versions = credential.send("GET", "/versions", &[], "").expect(200).json();
    assert_eq!((&versions[0]["state"], &versions[0]["damaged"]), (&json!("current"), &json!(true)), "{versions}");
    assert_eq!((versions[0].get("information"), versions.get(1)), (None, None), "{versions}");
}
