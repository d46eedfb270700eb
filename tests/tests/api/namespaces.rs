//! `{base_url}/namespaces`

use super::app::{App, pages, s3, text, texts};
use serde_json::{Value, json};

#[test]
fn namespaces_are_listed_frozen_and_thawed() {
    let app = App::start();
    let admin = app.admin();
    for namespace in ["imports", "exports", "imports", "archive"] {
        admin.save(&s3(namespace, "b"));
    }
    let job = app.listener().job(&admin, "nightly", &["imports", "in/*"]);
    let freeze =
        |namespace: &str| admin.post("/namespaces/freeze", &json!({"namespace": namespace})).expect(200).json();
    assert_eq!(freeze("imports"), json!({"credentials": 2, "integrations": 1, "changed": true}));
    assert_eq!(freeze("imports"), json!({"credentials": 2, "integrations": 1, "changed": false}), "again");
    assert_eq!(freeze("in/nothing"), json!({"credentials": 0, "integrations": 1, "changed": true}));
    job.activate("imports").problem("frozen");

    let mut shown = admin.get("/namespaces").expect(200).json();
    for session in [app.editor(), app.viewer()] {
        assert_eq!(session.get("/namespaces").expect(200).json(), shown);
    }
    for item in shown.as_array_mut().unwrap() {
        let frozen_at = item.as_object_mut().unwrap().remove("frozen_at");
        assert_eq!(Some(frozen_at.is_some()), item["frozen"].as_bool(), "{item}");
    }
    let item = |namespace: &str, credentials: i64, frozen: bool| json!({"namespace": namespace, "credentials": credentials, "frozen": frozen});
    let expected =
        [item("archive", 1, false), item("exports", 1, false), item("imports", 2, true), item("in/nothing", 0, true)];
    assert_eq!(shown, json!(expected));
    let paged = pages(&admin, "/namespaces?limit=2");
    let names: Vec<_> = paged.iter().map(|page| texts(page, "namespace")).collect();
    assert_eq!(names, [["archive", "exports"], ["imports", "in/nothing"]]);

    let thawed = admin.post("/namespaces/thaw", &json!({"namespace": "imports"})).expect(200).json();
    assert_eq!(thawed["changed"], true);
    job.activate("imports").expect(201);
}

#[test]
fn namespace_usage_is_counted_by_hour_and_namespace() {
    let app = App::start();
    let admin = app.admin();
    admin.save(&s3("imports", "b"));
    let listener = app.listener();
    let nightly = listener.job(&admin, "nightly", &["imports"]);
    for _ in 0..5 {
        nightly.activate("imports").expect(201);
        app.clock.advance_seconds(86_400);
    }
    for _ in 0..2 {
        nightly.activate("elsewhere").expect(403);
    }
    app.seal_audit();
    let usage = |query: &str| app.admin().get(&format!("/namespaces/usage{query}")).expect(200).json();
    let since = "?since=2030-01-01T00:00:00Z";
    let counted = usage(since);
    assert_eq!(text(&counted["since"]), "2030-01-01T00:00:00Z");
    let hours = |name: &str| -> Vec<(usize, i64)> {
        let hours = counted[name].as_array().unwrap().iter().map(|count| count.as_i64().unwrap()).enumerate();
        hours.filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(counted["activations"].as_array().unwrap().len(), 5 * 24 + 1, "up to the current hour");
    assert_eq!(hours("activations"), (0..5).map(|day| (day * 24, 1)).collect::<Vec<_>>());
    assert_eq!(hours("denied"), [(5 * 24, 2)]);
    let used = |silent: bool| {
        json!([{
            "integration": nightly.id, "namespace": "imports", "activations": 5,
            "last_activated_at": "2030-01-05T00:00:00Z", "every_days": 1, "usual_time": "00:00", "silent": silent,
        }])
    };
    assert_eq!(counted["uses"], used(false));
    let denial = json!([{
        "integration": nightly.id, "namespace": "elsewhere", "action": "activation.refused-outside", "denied": 2,
        "last_denied_at": "2030-01-06T00:00:00Z",
    }]);
    assert_eq!(counted["denials"], denial);
    let one = |id: &str| usage(&format!("{since}&integration={id}"));
    assert_eq!(one(&nightly.id), counted);
    let none = one("01960000-0000-7000-8000-000000000000");
    assert_eq!((&none["uses"], &none["denials"]), (&json!([]), &json!([])));
    assert!(none["activations"].as_array().unwrap().iter().all(|count| count == 0));
    app.clock.advance_seconds(2 * 86_400);
    assert_eq!((&usage(since)["uses"], &usage("")["uses"]), (&used(true), &used(true)));
    app.clock.advance_seconds(31 * 86_400);
    let later = usage(since);
    let shown: [&Value; 3] = [&later["since"], &later["uses"], &later["denials"]];
    assert_eq!(shown, [&json!("2030-01-09T00:00:00Z"), &json!([]), &json!([])]);
}
