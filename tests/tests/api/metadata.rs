//! Metadata of credentials (labels, description, expiry and vend rule) and filters by it. Matches, checks and uses.

use super::app::{App, NOW, pages, s3, s3_with_role, text, texts};
use super::credentials::VAULT;
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_tests::Session;

/// Returns the body of a save with these additional fields.
fn body(more: &Value) -> Value {
    let mut body = s3("imports", "b1");
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[track_caller]
fn show(session: &Session, id: &str) -> Value {
    session.show(id).expect(200).json()
}

#[track_caller]
fn ids(session: &Session, query: &str) -> Vec<String> {
    texts(session.get(&format!("{VAULT}?{query}")).expect(200).json().as_array().unwrap(), "id")
}

#[test]
fn save_sets_metadata_and_patch_changes_it() {
    let app = App::start();
    let editor = app.editor();
    let plain = show(&editor, &editor.save(&body(&json!({}))));
    let defaults = (&plain["labels"], &plain["vend"], &plain["health"]);
    assert_eq!(defaults, (&json!({}), &json!("any"), &json!({"state": "unchecked"})));
    for absent in ["description", "expires_at", "last_activated_at", "staged_version"] {
        assert_eq!(plain.get(absent), None, "{absent}");
    }
    let metadata = json!({
        "labels": {"team": "data", "env": ""}, "description": "of the \u{fc}bersee job",
        "expires_at": "2030-06-01T12:00:00.9+02:00", "vend": "any",
    });
    let id = editor.save(&body(&metadata));
    let item = show(&editor, &id);
    assert_eq!((&item["labels"], &item["description"]), (&metadata["labels"], &metadata["description"]));
    assert_eq!(item["expires_at"], "2030-06-01T10:00:00Z");

    let path = format!("/v1{VAULT}/{id}");
    let patch = |media_type: &str, tag: Option<&str>, body: &Value| {
        let call = editor.call("PATCH", &path).header("content-type", media_type).body(body.to_string());
        match tag {
            Some(tag) => call.header("if-match", tag).send(),
            None => call.send(),
        }
    };
    let merge = "application/merge-patch+json";
    let patched = patch(merge, None, &json!({"labels": {"env": null, "tier": "1"}, "description": null})).expect(200);
    assert_eq!(patched.header("accept-patch"), Some("application/merge-patch+json, application/json"));
    assert_eq!(patched.json(), show(&editor, &id));
    let expected = (&json!({"team": "data", "tier": "1"}), None);
    assert_eq!((&patched.json()["labels"], patched.json().get("description")), expected);
    assert_eq!(patched.json()["expires_at"], "2030-06-01T10:00:00Z", "what a patch does not name stays");
    let tag = patched.header("etag").unwrap();
    let same = patch(merge, None, &json!({})).expect(200);
    assert_eq!(same.header("etag"), Some(tag), "nothing was changed");
    let gone = patch(merge, None, &json!({"labels": null, "expires_at": null}));
    assert_eq!((&gone.json()["labels"], gone.json().get("expires_at")), (&json!({}), None));
    assert_ne!(gone.header("etag"), Some(tag));
    for stale in [tag, "\"nonsense\""] {
        patch(merge, Some(stale), &json!({})).problem("precondition-failed");
    }
    let plain = patch("application/json", None, &json!({"description": "x"})).expect(200);
    assert_eq!(plain.json()["description"], "x");
    for media_type in ["application/json-patch+json", "text/plain", "application/merge-patch+json; q=1"] {
        let refused = patch(media_type, None, &json!({})).problem("unsupported-media-type");
        assert_eq!(refused.header("accept-patch"), Some("application/merge-patch+json, application/json"));
    }
}

#[test]
fn vend_rule_is_enforced_and_only_admin_lifts_it() {
    let app = App::start();
    let (admin, editor) = (app.admin(), app.editor());
    editor.try_save(&body(&json!({"vend": "short"}))).refuses(422, &["/vend"]); // no short form
    let mut with_role = s3_with_role("imports", "b1");
    with_role["vend"] = json!("short");
    let id = editor.save(&with_role);
    let any = json!({"vend": "any"});
    editor.describe(&id, &any).problem("insufficient-role");
    editor.replace(&id, &s3("", "b"), false).refuses(422, &["/vend"]);
    assert_eq!(show(&editor, &id)["vend"], "short");
    assert_eq!(admin.describe(&id, &any).json()["vend"], "any");
    editor.replace(&id, &s3("", "b"), false).expect(201);
    let short = json!({"vend": "short"});
    admin.describe(&id, &short).refuses(422, &["/vend"]);
    // A rollback restores data that has a short form.
    admin.promote(&id, 1).expect(200);
    assert_eq!(admin.describe(&id, &short).json()["vend"], "short");
    admin.promote(&id, 2).problem("conflict");
    let job = app.listener().job(&admin, "nightly", &["imports"]);
    for vend in ["raw", "prefer-short", "short"] {
        let issued = job.activate_with(&json!({"namespace": "imports", "vend": vend}));
        assert!(!issued.text().contains("wJalrXUtnFEMI"), "{vend}: {}", issued.text());
    }
}

#[test]
fn lists_are_filtered_by_labels_health_and_expiry() {
    let app = App::start();
    let (editor, stranger) = (app.editor(), app.stranger());
    let saved = |more: Value| editor.save(&body(&more));
    let both = saved(json!({"labels": {"team": "data", "env": "prod"}, "expires_at": "2030-01-10T00:00:00Z"}));
    let one = saved(json!({"labels": {"team": "data"}, "expires_at": "2030-01-05T00:00:00Z"}));
    let expired = saved(json!({"labels": {"team": "web"}, "expires_at": "2029-12-31T00:00:00Z"}));
    let late = saved(json!({"expires_at": "2030-03-01T00:00:00Z"}));
    let never = saved(json!({}));
    let theirs = stranger.save(&body(&json!({"labels": {"team": "data"}})));
    for (query, expected) in [
        ("label=team:data", vec![&one, &both]),
        ("label=team:data&label=env:prod", vec![&both]),
        ("label=env:prod&label=team:data", vec![&both]),
        ("label=team:data&label=team:web", vec![]),
        ("label=team:dat", vec![]),
        ("label=team:", vec![]),
        ("health=expired", vec![&expired]),
        ("health=expiring", vec![&one, &both]),
        ("health=unchecked", vec![&never, &late]),
        ("health=healthy", vec![]),
        ("expires_before=2030-02-01T00:00:00Z", vec![&expired, &one, &both]),
        ("expires_before=2030-02-01T00:00:00Z&label=team:data", vec![&one, &both]),
        ("expires_before=1970-01-01T00:00:00Z", vec![]),
        ("label=team:data&namespace=imports&type=s3", vec![&one, &both]),
    ] {
        assert_eq!(ids(&editor, query).iter().collect::<Vec<_>>(), expected, "{query}");
    }
    assert_eq!(ids(&stranger, "label=team:data"), [theirs]);
    for query in ["label=team:data&label=team:data", "expires_before=2030-02-01T00:00:00.5Z", "health=expiring"] {
        let paged = pages(&editor, &format!("{VAULT}?{query}&limit=1")).concat();
        assert_eq!(texts(&paged, "id"), ids(&editor, query), "{query}");
    }
    // A cursor is valid for one list of one organization.
    let page = editor.get(&format!("{VAULT}?label=team:data&limit=1"));
    let cursor = page.header("link").unwrap().split("cursor=").nth(1).unwrap().split('>').next().unwrap();
    for other in ["", "label=team:web&", "label=team:data&label=env:prod&", "label=team:data&health=expiring&"] {
        editor.get(&format!("{VAULT}?{other}cursor={cursor}")).refuses(422, &["/cursor"]);
    }
    stranger.get(&format!("{VAULT}?label=team:data&limit=1&cursor={cursor}")).refuses(422, &["/cursor"]);
    // Changed and deleted credentials are found by their present labels.
    editor.describe(&both, &json!({"labels": {"team": null}})).expect(200);
    editor.delete(&one).empty(204);
    assert_eq!((ids(&editor, "label=team:data"), ids(&editor, "label=env:prod")), (vec![], vec![both]));
}

#[test]
fn data_comparisons_are_limited_per_hour() {
    let app = App::start();
    let sessions = [app.editor(), app.admin()];
    let editor = &sessions[0];
    let [id, elsewhere] = [0; 2].map(|_| editor.save(&body(&json!({}))));
    let (same, other) = (s3("", "b1"), s3("", "b2"));
    assert_eq!(editor.matches(&id, &same).expect(200).json(), json!({"same": true}));
    assert_eq!(editor.matches(&id, &other).json(), json!({"same": false}));
    let flawed = editor.matches(&id, &json!({"data": {"bucket": 7}})).problem("malformed-request");
    assert!(flawed.refused_fields().iter().all(|(pointer, _)| pointer.starts_with("/data/")));
    for round in 0..8 {
        sessions[round % 2].matches(&id, &other).expect(200);
    }
    for session in &sessions {
        let refused = session.matches(&id, &same).problem("too-many-requests");
        assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() <= 3_601);
    }
    editor.matches(&elsewhere, &same).expect(200); // the limit is per credential
    app.viewer().matches(&id, &same).problem("insufficient-role");
    app.stranger().matches(&id, &same).problem("not-found"); // whatever the limit
}

#[test]
fn check_request_requires_activation_process() {
    let app = App::start();
    let editor = app.editor();
    let id = editor.save(&body(&json!({})));
    let ask = |body: &Value| editor.post(&format!("{VAULT}/{id}/check"), body);
    ask(&Value::Null).problem("no-checker");
    let activations = app.activation_parts().activations;
    let check = || app.runtime().block_on(activations.check_due(None)).unwrap();
    check();
    ask(&Value::Null).empty(202);
    assert_eq!(check(), 1);
    let health = &show(&editor, &id)["health"];
    assert_eq!((&health["state"], &health["checked_at"]), (&json!("healthy"), &json!(NOW)));

    app.storage.fail(Some(CheckReason::SignatureMismatch));
    editor.replace(&id, &s3("", "b2"), true).expect(201);
    ask(&json!({})).empty(202);
    check();
    let versions = editor.get(&format!("{VAULT}/{id}/versions")).json();
    let health = |index: usize| &versions[index]["health"];
    assert_eq!((&health(0)["state"], &health(1)["state"]), (&json!("healthy"), &json!("failing")), "{versions}");
    assert_eq!(health(1)["reason"], "signature-mismatch");
    ask(&json!({"version": 1})).empty(202);
    check();
    assert_eq!(show(&editor, &id)["health"]["state"], "failing");
    assert_eq!(ids(&editor, "health=failing"), [&*id]);
    ask(&json!({"version": 3})).problem("not-found");
}

#[test]
fn uses_of_a_credential_are_listed() {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    let id = admin.save(&body(&json!({})));
    let path = format!("{VAULT}/{id}/activations");
    let uses = || admin.get(&path).expect(200).json();
    assert_eq!(uses(), json!([]));
    let [nightly, weekly] = ["nightly", "weekly"].map(|name| listener.job(&admin, name, &["imports"]));
    let purpose = json!({"namespace": "imports", "purpose": "the import of 2 o'clock"});
    nightly.activate_with(&purpose).expect(201);
    for job in [&weekly, &nightly] {
        app.clock.advance_seconds(60);
        job.activate("imports").expect(201);
    }
    let all = uses();
    assert_eq!(texts(all.as_array().unwrap(), "integration"), ["nightly", "weekly", "nightly"]);
    assert_eq!((&all[0]["form"], &all[0]["at"]), (&json!("raw"), &json!("2030-01-01T00:02:00Z")));
    assert_eq!((all[0].get("purpose"), &all[2]["purpose"]), (None, &purpose["purpose"]));
    assert_eq!(show(&admin, &id)["last_activated_at"], "2030-01-01T00:02:00Z");
    let paged = pages(&admin, &format!("{path}?limit=2"));
    assert_eq!((paged.len(), json!(paged.concat())), (2, all));
    admin.remove(&format!("/integrations/{}", nightly.id)).empty(204);
    assert_eq!(uses()[0]["integration"], nightly.id, "a deleted one is named by its id");
}

#[test]
fn uses_show_version_expiry_and_end_of_an_activation() {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    let id = admin.save(&body(&json!({})));
    let job = listener.job(&admin, "nightly", &["imports"]);
    let started = job.activate("imports").json();
    app.clock.advance_seconds(60);
    job.renew(text(&started["id"]), &json!({"ttl": 600})).expect(200);
    let uses = || admin.get(&format!("{VAULT}/{id}/activations")).expect(200).json();
    let renewed = json!([{
        "integration": "nightly", "at": NOW, "expires_at": "2030-01-01T00:11:00Z", "version": 1, "form": "raw",
    }]);
    assert_eq!(uses(), renewed);
    job.end(text(&started["id"])).empty(204);
    let mut ended = renewed;
    ended[0]["ended_at"] = json!("2030-01-01T00:01:00Z");
    assert_eq!(uses(), ended);
}
