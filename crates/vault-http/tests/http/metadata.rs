//! Metadata of credentials (labels, description, expiry and vend rule) and filters by it. Matches, checks and uses.

use crate::support::{Response, World, WorldBuilder, assert_problem, assert_standard_headers, s3};
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";
const PATCH: &str = "Content-Type: application/merge-patch+json";
const VAULT: &str = "/v1/organization-vault";

/// Returns the body of a save with these additional fields.
fn body(more: &Value) -> String {
    let mut body: Value = serde_json::from_str(&s3("imports", "b1")).unwrap();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

fn save(world: &World, token: &str, more: &Value) -> Response {
    world.send(&format!("PATCH {VAULT}"), &[token, JSON], body(more))
}

fn saved(world: &World, token: &str, more: &Value) -> String {
    let response = save(world, token, more);
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()["id"].as_str().unwrap().to_owned()
}

fn patch(world: &World, token: &str, id: &str, patch: &Value) -> Response {
    world.send(&format!("PATCH {VAULT}/{id}"), &[token, PATCH], patch.to_string())
}

fn show(world: &World, token: &str, id: &str) -> Value {
    let response = world.send(&format!("GET {VAULT}/{id}"), &[token], "");
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn ids(world: &World, token: &str, query: &str) -> Vec<String> {
    let response = world.send(&format!("GET {VAULT}?{query}"), &[token], "");
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    let items = response.json();
    items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn save_sets_metadata_and_patch_changes_it() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let plain = show(&world, &token, &saved(&world, &token, &json!({})));
    assert_eq!(
        (&plain["labels"], &plain["vend"], &plain["health"]),
        (&json!({}), &json!("any"), &json!({"state": "unchecked"}))
    );
    for absent in ["description", "expires_at", "last_activated_at", "staged_version"] {
        assert_eq!(plain.get(absent), None, "{absent}");
    }
    let metadata = json!({
        "labels": {"team": "data", "env": ""}, "description": "of the \u{fc}bersee job",
        "expires_at": "2030-06-01T12:00:00.9+02:00", "vend": "any",
    });
    let id = saved(&world, &token, &metadata);
    let item = show(&world, &token, &id);
    assert_eq!((&item["labels"], &item["description"]), (&metadata["labels"], &metadata["description"]));
    assert_eq!(item["expires_at"], "2030-06-01T10:00:00Z");

    let patched = patch(&world, &token, &id, &json!({"labels": {"env": null, "tier": "1"}, "description": null}));
    assert_standard_headers(&patched, "patch");
    assert_eq!(patched.header("accept-patch"), Some("application/merge-patch+json, application/json"));
    assert_eq!((patched.status, patched.json()), (200, show(&world, &token, &id)));
    assert_eq!(
        (&patched.json()["labels"], patched.json().get("description")),
        (&json!({"team": "data", "tier": "1"}), None)
    );
    assert_eq!(patched.json()["expires_at"], "2030-06-01T10:00:00Z", "what a patch does not name stays");
    let tag = patched.header("etag").unwrap().to_owned();
    let same = patch(&world, &token, &id, &json!({}));
    assert_eq!((same.status, same.header("etag")), (200, Some(&*tag)), "nothing was changed");
    let gone = patch(&world, &token, &id, &json!({"labels": null, "expires_at": null}));
    assert_eq!((&gone.json()["labels"], gone.json().get("expires_at")), (&json!({}), None));
    assert_ne!(gone.header("etag"), Some(&*tag));
    for if_match in [&*tag, "\"nonsense\""] {
        let header = format!("If-Match: {if_match}");
        let response = world.send(&format!("PATCH {VAULT}/{id}"), &[&token, PATCH, &header], "{}");
        assert_problem(&response, 412, "precondition-failed", if_match);
    }
    let plain_json = world.send(&format!("PATCH {VAULT}/{id}"), &[&token, JSON], "{\"description\":\"x\"}");
    assert_eq!((plain_json.status, &plain_json.json()["description"]), (200, &json!("x")));
}

#[test]
fn metadata_violations_are_reported_together() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let id = saved(&world, &token, &json!({"labels": {"team": "data"}}));
    let before = show(&world, &token, &id);
    let long = "a".repeat(64);
    let many: serde_json::Map<_, _> = (0..17).map(|number| (format!("a{number}"), json!("b"))).collect();
    let cases: Vec<(Value, u16, &[&str])> = vec![
        (json!({"labels": {"Team": "x"}}), 422, &["/labels"]),
        (json!({"labels": {"": "x"}}), 422, &["/labels"]),
        (json!({"labels": {"team": "a b"}}), 422, &["/labels/team"]),
        (json!({"labels": {"team": long}}), 422, &["/labels/team"]),
        (json!({"labels": {"team": 1}}), 400, &["/labels/team"]),
        (json!({"labels": ["team"]}), 400, &["/labels"]),
        (json!({ "labels": many }), 422, &["/labels"]),
        (json!({"description": " "}), 422, &["/description"]),
        (json!({"description": "a\u{202e}b"}), 422, &["/description"]),
        (json!({"description": "d".repeat(501)}), 422, &["/description"]),
        (json!({"description": 1}), 400, &["/description"]),
        (json!({"expires_at": "2030"}), 422, &["/expires_at"]),
        (json!({"vend": "Short"}), 422, &["/vend"]),
        (json!({"vend": null}), 400, &["/vend"]),
        (
            json!({"labels": {"team": "a b"}, "description": "", "expires_at": "x", "vend": "raw", "colour": "mauve"}),
            400,
            &["/colour"],
        ),
    ];
    for (flawed, status, pointers) in &cases {
        let code = if *status == 400 { "malformed-request" } else { "refused-value" };
        for response in [save(&world, &token, flawed), patch(&world, &token, &id, flawed)] {
            let problem = assert_problem(&response, *status, code, &flawed.to_string());
            let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
            found.sort_unstable();
            assert_eq!(found, *pointers, "{flawed}: {}", response.text());
            assert!(!response.text().contains("mauve"), "{}", response.text());
        }
    }
    for null in ["labels", "description", "expires_at"] {
        let response = save(&world, &token, &json!({ null: null }));
        let problem = assert_problem(&response, 400, "malformed-request", null);
        assert_eq!(problem.errors[0].pointer, format!("/{null}"), "a save has nothing to remove");
    }
    // A patch changes nothing else.
    for (name, value) in [
        ("type", json!("gcs")),
        ("namespace", json!("b")),
        ("data", json!({})),
        ("id", json!("x")),
        ("version", json!(7)),
        ("created_at", json!("2030-01-01T00:00:00Z")),
        ("information", json!({})),
        ("health", json!({"state": "healthy"})),
        ("staged_version", json!(1)),
        ("last_activated_at", json!(null)),
    ] {
        let response = patch(&world, &token, &id, &json!({ name: value }));
        let problem = assert_problem(&response, 400, "malformed-request", name);
        assert_eq!((&*problem.errors[0].pointer, &*problem.errors[0].code), (&*format!("/{name}"), "unknown"));
    }
    for media_type in ["application/json-patch+json", "text/plain", "application/merge-patch+json; q=1"] {
        let header = format!("Content-Type: {media_type}");
        let response = world.send(&format!("PATCH {VAULT}/{id}"), &[&token, &header], "{}");
        assert_problem(&response, 415, "unsupported-media-type", media_type);
        assert_eq!(response.header("accept-patch"), Some("application/merge-patch+json, application/json"));
    }
    assert_eq!(show(&world, &token, &id), before);
}

#[test]
fn vend_rule_is_enforced_and_only_admin_lifts_it() {
    let world = World::start();
    let (admin, editor) = (world.token(Role::Admin), world.token(Role::Editor));
    let problem =
        assert_problem(&save(&world, &editor, &json!({"vend": "short"})), 422, "refused-value", "no short form");
    assert_eq!(problem.errors[0].pointer, "/vend");
    let mut with_role: Value = serde_json::from_str(&s3("imports", "b1")).unwrap();
    with_role["data"]["role_arn"] = json!("arn:aws:iam::123456789012:role/importer");
    with_role["data"]["region"] = json!("eu-central-1");
    with_role["vend"] = json!("short");
    let response = world.send(&format!("PATCH {VAULT}"), &[&editor, JSON], with_role.to_string());
    assert_eq!(response.status, 201, "{}", response.text());
    let id = response.json()["id"].as_str().unwrap().to_owned();
    assert_problem(&patch(&world, &editor, &id, &json!({"vend": "any"})), 403, "insufficient-role", "an editor");
    let without = json!({"data": serde_json::from_str::<Value>(&s3("a", "b")).unwrap()["data"]}).to_string();
    let replace = |more: &str| world.send(&format!("POST {VAULT}/{id}/versions"), &[&editor, JSON], more);
    let problem = assert_problem(&replace(&without), 422, "refused-value", "data without a short form");
    assert_eq!(problem.errors[0].pointer, "/vend");
    assert_eq!(show(&world, &editor, &id)["vend"], "short");
    assert_eq!(patch(&world, &admin, &id, &json!({"vend": "any"})).json()["vend"], "any");
    assert_eq!(replace(&without).status, 201);
    assert_problem(&patch(&world, &admin, &id, &json!({"vend": "short"})), 422, "refused-value", "no short form");
    // A rollback restores data that has a short form.
    let promoted = |version: i64| {
        world.send(&format!("POST {VAULT}/{id}/promote"), &[&admin, JSON], json!({"version": version}).to_string())
    };
    assert_eq!(promoted(1).status, 200);
    assert_eq!(patch(&world, &admin, &id, &json!({"vend": "short"})).json()["vend"], "short");
    assert_problem(&promoted(2), 409, "conflict", "a version without a short form");
}

#[test]
fn lists_are_filtered_by_labels_health_and_expiry() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let now = "2030-01-01T00:00:00Z";
    let both = saved(
        &world,
        &token,
        &json!({"labels": {"team": "data", "env": "prod"}, "expires_at": "2030-01-10T00:00:00Z"}),
    );
    let one = saved(&world, &token, &json!({"labels": {"team": "data"}, "expires_at": "2030-01-05T00:00:00Z"}));
    let expired = saved(&world, &token, &json!({"labels": {"team": "web"}, "expires_at": "2029-12-31T00:00:00Z"}));
    let late = saved(&world, &token, &json!({"expires_at": "2030-03-01T00:00:00Z"}));
    let never = saved(&world, &token, &json!({}));
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
        assert_eq!(ids(&world, &token, query).iter().collect::<Vec<_>>(), expected, "{query} at {now}");
    }
    // In pages, following only the links.
    for query in [
        "label=team:data&label=team:data&limit=1",
        "expires_before=2030-02-01T00:00:00.5Z&limit=1",
        "health=expiring&limit=1",
    ] {
        let all = ids(&world, &token, &query.replace("limit=1", "limit=1000"));
        let (mut target, mut found) = (format!("{VAULT}?{query}"), Vec::new());
        loop {
            let page = world.send(&format!("GET {target}"), &[&token], "");
            assert_eq!(page.status, 200, "{target}: {}", page.text());
            found.extend(page.json().as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            let Some(link) = page.header("link") else { break };
            target = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
        }
        assert_eq!(found, all, "{query}");
    }
    // A cursor is valid for one list of one organization.
    let page = world.send(&format!("GET {VAULT}?label=team:data&limit=1"), &[&token], "");
    let link = page.header("link").unwrap();
    let cursor = link.split("cursor=").nth(1).unwrap().split('>').next().unwrap();
    for other in ["", "label=team:web&", "label=team:data&label=env:prod&", "label=team:data&health=expiring&"] {
        let response = world.send(&format!("GET {VAULT}?{other}cursor={cursor}"), &[&token], "");
        assert_problem(&response, 422, "refused-value", other);
    }
    let stranger = world.token_in("Other", Role::Viewer);
    let response = world.send(&format!("GET {VAULT}?label=team:data&limit=1&cursor={cursor}"), &[&stranger], "");
    assert_problem(&response, 422, "refused-value", "the cursor of another organization");
}

#[test]
fn data_comparisons_are_limited_per_hour() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let id = saved(&world, &token, &json!({}));
    let same = json!({"data": serde_json::from_str::<Value>(&s3("a", "b1")).unwrap()["data"]});
    let send = |token: &str, body: &str| world.send(&format!("POST {VAULT}/{id}/match"), &[token, JSON], body);
    let response = send(&token, &same.to_string());
    assert_standard_headers(&response, "match");
    assert_eq!((response.status, response.json()), (200, json!({"same": true})));
    let mut other = same.clone();
    other["data"]["bucket"] = json!("b2");
    assert_eq!(send(&token, &other.to_string()).json(), json!({"same": false}));
    let problem = assert_problem(&send(&token, "{\"data\": {\"bucket\": 7}}"), 400, "malformed-request", "violations");
    assert!(problem.errors.iter().all(|error| error.pointer.starts_with("/data/")));
    assert_problem(&send(&token, "{\"data\": {}, \"version\": 1}"), 400, "malformed-request", "unknown");
    for _ in 0..8 {
        assert_eq!(send(&token, &other.to_string()).status, 200);
    }
    let refused = send(&token, &same.to_string());
    assert_problem(&refused, 429, "too-many-requests", "the eleventh");
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() <= 3_601);
    // The limit is per credential.
    let elsewhere = saved(&world, &token, &json!({}));
    let line = format!("POST {VAULT}/{elsewhere}/match");
    assert_eq!(world.send(&line, &[&token, JSON], same.to_string()).status, 200);
    assert_problem(&send(&world.token(Role::Viewer), &same.to_string()), 403, "insufficient-role", "a viewer");
    let stranger = world.token_in("Other", Role::Admin);
    assert_problem(&send(&stranger, &same.to_string()), 404, "not-found", "a stranger, whatever the limit");
}

#[test]
fn check_request_requires_activation_process() {
    let world = WorldBuilder::default().start();
    let token = world.token(Role::Editor);
    let id = saved(&world, &token, &json!({}));
    let ask = |body: &str| {
        let headers: &[&str] = if body.is_empty() { &[&token] } else { &[&token, JSON] };
        world.send(&format!("POST {VAULT}/{id}/check"), headers, body)
    };
    assert_problem(&ask(""), 409, "no-checker", "no activation side");
    let activations = world.activation_parts().activations;
    let check = || world.runtime().block_on(activations.check_due(None)).unwrap();
    check();
    let accepted = ask("");
    assert_standard_headers(&accepted, "check");
    assert_eq!((accepted.status, accepted.body.len(), accepted.header("content-type")), (202, 0, None));
    assert_eq!(check(), 1);
    let item = show(&world, &token, &id);
    assert_eq!(
        (&item["health"]["state"], &item["health"]["checked_at"]),
        (&json!("healthy"), &json!("2030-01-01T00:00:00Z"))
    );

    world.storage.fail(Some(CheckReason::SignatureMismatch));
    let data = serde_json::from_str::<Value>(&s3("a", "b2")).unwrap()["data"].clone();
    let stage = json!({"data": data, "stage": true}).to_string();
    assert_eq!(world.send(&format!("POST {VAULT}/{id}/versions"), &[&token, JSON], stage).status, 201);
    assert_eq!(ask("{}").status, 202);
    check();
    let versions = world.send(&format!("GET {VAULT}/{id}/versions"), &[&token], "").json();
    let health = |index: usize| &versions[index]["health"];
    assert_eq!((&health(0)["state"], &health(1)["state"]), (&json!("healthy"), &json!("failing")), "{versions}");
    assert_eq!(health(1)["reason"], "signature-mismatch");
    assert_eq!(ask("{\"version\": 1}").status, 202);
    check();
    assert_eq!(show(&world, &token, &id)["health"]["state"], "failing");
    assert_eq!(ids(&world, &token, "health=failing"), [&*id]);
    assert_problem(&ask("{\"version\": 3}"), 404, "not-found", "no such version");
    assert_problem(&ask("{\"version\": \"1\"}"), 400, "malformed-request", "no number");
    assert_problem(&ask("{\"versions\": 1}"), 400, "malformed-request", "unknown");
    let untyped = world.send(&format!("POST {VAULT}/{id}/check"), &[&token], "{}");
    assert_problem(&untyped, 415, "unsupported-media-type", "no type");
}

#[test]
fn uses_of_a_credential_are_listed() {
    let world = World::start();
    let (admin, activation_listener) = (world.token(Role::Admin), world.activation_listener());
    let id = saved(&world, &admin, &json!({}));
    let uses = |query: &str| {
        let response = world.send(&format!("GET {VAULT}/{id}/activations{query}"), &[&admin], "");
        assert_eq!(response.status, 200, "{}", response.text());
        response
    };
    assert_eq!(uses("").text(), "[]");
    let (_, nightly) = world.integration(&admin, "nightly", &["imports"]);
    let (_, weekly) = world.integration(&admin, "weekly", &["imports"]);
    for token in [&nightly, &weekly, &nightly] {
        assert_eq!(activation_listener.activate(token, "imports").status, 201);
        world.clock.advance_seconds(60);
    }
    let all = uses("").json();
    let found: Vec<_> = all.as_array().unwrap().iter().map(|used| used["integration"].as_str().unwrap()).collect();
    assert_eq!(found, ["nightly", "weekly", "nightly"]);
    assert_eq!(
        (&all[0]["form"], &all[0]["at"], all[0].get("purpose")),
        (&json!("raw"), &json!("2030-01-01T00:02:00Z"), None)
    );
    assert_eq!(show(&world, &admin, &id)["last_activated_at"], "2030-01-01T00:02:00Z");
    let first = uses("?limit=2");
    let link = first.header("link").unwrap().trim_start_matches('<').split('>').next().unwrap().to_owned();
    let rest = world.send(&format!("GET {link}"), &[&admin], "").json();
    assert_eq!((first.json().as_array().unwrap().len(), &rest[0]), (2, &all[2]));
    assert_eq!(rest.as_array().unwrap().len(), 1);
    let line = format!("GET {VAULT}/{id}/activations");
    assert_problem(&world.send(&line, &[&world.token(Role::Viewer)], ""), 403, "insufficient-role", "a viewer");
    for query in ["cursor=x", "limit=0"] {
        assert_problem(&world.send(&format!("{line}?{query}"), &[&admin], ""), 422, "refused-value", query);
    }
}

#[test]
fn uses_show_version_expiry_and_end_of_an_activation() {
    let world = World::start();
    let (admin, activation_listener) = (world.token(Role::Admin), world.activation_listener());
    let id = saved(&world, &admin, &json!({}));
    let (_, nightly) = world.integration(&admin, "nightly", &["imports"]);
    let started = activation_listener.activate(&nightly, "imports").json();
    world.clock.advance_seconds(60);
    let path = format!("/v1/activations/{}", started["id"].as_str().unwrap());
    assert_eq!(activation_listener.send_json(&format!("POST {path}/renew"), &nightly, json!({"ttl": 600})).status, 200);
    let uses = || world.send(&format!("GET {VAULT}/{id}/activations"), &[&admin], "").json();
    let renewed = json!([{
        "integration": "nightly", "at": "2030-01-01T00:00:00Z", "expires_at": "2030-01-01T00:11:00Z", "version": 1,
        "form": "raw",
    }]);
    assert_eq!(uses(), renewed);
    assert_eq!(activation_listener.send(&format!("DELETE {path}"), &[&nightly], "").status, 204);
    let mut ended = renewed;
    ended[0]["ended_at"] = json!("2030-01-01T00:01:00Z");
    assert_eq!(uses(), ended);
}
