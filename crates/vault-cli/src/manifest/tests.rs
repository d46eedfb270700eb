use super::document::{Datum, Manifest, datum, read};
use super::export::export;
use super::plan::{Present, plan};
use super::*;
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use vault_client::{AccountItem, CredentialItem, IssuerItem, ReceiverItem};
use vault_core::integration::IntegrationName;
use vault_core::receiver::EventKinds;

const DOCUMENT: &str = r#"
set: etl
people:
  - {email: Ada@acme.example, role: admin}
integrations:
  - name: nightly
    namespaces: ["imports/*", exports/daily]
    expires_at: "2027-01-01T00:00:00Z"
    trusts:
      - issuer: github
        claims: {"/sub": "repo:acme/etl:*", "/count": 7}
credentials:
  - namespace: imports/nightly
    name: nightly
    type: s3
    labels: {team: data}
    vend: short
    data_version: 2
    data:
      access_key_id: {env: KEY_ID}
      secret_access_key: {file: secrets/nightly}
      bucket: nightly
      path_style_access: true
"#;

fn parse(text: &str) -> Result<Manifest, Vec<String>> {
    let violations = |violations: Vec<Violation>| violations.iter().map(ToString::to_string).collect();
    read(&[("etl.yaml".into(), text.to_owned())]).map_err(violations)
}

#[track_caller]
fn refused(text: &str) -> Vec<String> {
    parse(text).expect_err("it is wrong")
}

#[test]
fn document_fields_are_parsed() {
    let manifest = parse(DOCUMENT).expect("a document");
    assert_eq!((&*manifest.set, &*manifest.people[0].request.email), ("etl", "ada@acme.example"));
    let integration = &manifest.integrations[0];
    assert_eq!(
        (integration.at.lines[""], integration.request.namespaces.len(), integration.request.token),
        (6, 2, None)
    );
    let trust = &integration.request.trusts.as_ref().expect("trusts")[0];
    assert_eq!((&trust.claims["/count"], &trust.max_lifetime), (&json!(7), &None));
    let credential = &manifest.credentials[0];
    assert_eq!((credential.own.data_version, credential.request.vend.as_deref()), (2, Some("short")));
    assert_eq!(datum(&credential.request.data["secret_access_key"]), Some(Datum::File("secrets/nightly")));
    assert_eq!(credential.at.lines["data/secret_access_key"], 21);
    assert_eq!(datum(&credential.request.data["path_style_access"]), Some(Datum::Plain(&json!(true))));
}

#[test]
fn violations_name_file_line_and_field() {
    let message = refused(
        "set: etl\nunknown: 1\npeople:\n  - {email: a@b.example}\nintegrations:\n  - name: n\ncredentials:\n  - {colour: x, labels: {name: x}, description: [hunter2], namespace: a, name: m, type: s3, data: {}}\n  - namespace: a\n    name: n\n    \
         type: s3\n    labels: {name: x, team: 7}\n    data:\n      secret_access_key: hunter2\n      colour: red\n      bucket: {path: x}\n  - hunter2\n",
    );
    assert_eq!(
        message,
        [
            "etl.yaml:2: unknown: unknown field; expected one of set, people, integrations, receivers, credentials",
            "etl.yaml:4: role: is required",
            "etl.yaml:6: namespaces: is required",
            "etl.yaml:8: colour: unknown field; expected one of type, namespace, data, labels, description, expires_at, vend, name, data_version",
            "etl.yaml:8: description: must be a string",
            "etl.yaml:8: labels/name: is a label that this command sets itself",
            "etl.yaml:12: labels/team: must be a string",
            "etl.yaml:14: data/secret_access_key: is a secret, which a document must not contain: use `file: PATH` or `env: NAME`",
            "etl.yaml:15: data/colour: is no field of s3",
            "etl.yaml:16: data/bucket: is shown to every user, so its value must be in the document",
            "etl.yaml:17: must be names with values",
        ]
    );
    for (text, reason) in [
        ("set: &a etl\n", "etl.yaml:1: anchors are not supported"),
        ("set: etl\npeople: *a\n", "etl.yaml:2: "),
        ("set: !x etl\n", "etl.yaml:1: tags are not supported"),
        ("set: etl\npeople:\n  - {<<: 1}\n", "etl.yaml:3: merge keys are not supported"),
        ("set: a\nset: b\n", "etl.yaml:2: set is defined twice"),
        ("set: [", "etl.yaml:"),
        ("set: a\n---\nset: b\n", "set: is b, and another document's is a"),
        ("people: []\n", "set: is required"),
        (
            "set: a\npeople:\n  - {email: a@b.example, role: admin}\n  - {email: A@b.example, role: admin}\n",
            "etl.yaml:4: people: a@b.example is described twice",
        ),
    ] {
        assert!(refused(text)[0].contains(reason), "{text}: {:?}", refused(text));
    }
}

#[test]
fn values_that_server_would_refuse_are_reported_with_line() {
    let message = |from: &str, to: &str| refused(&DOCUMENT.replace(from, to)).join("; ");
    for (from, to, reason) in [
        ("role: admin", "role: root", "etl.yaml:4: role: must be admin, editor or viewer"),
        ("Ada@acme.example", "unknown", "etl.yaml:4: email: "),
        ("imports/*", "*", "etl.yaml:7: namespaces/0: "),
        ("2027-01-01T00:00:00Z", "tomorrow", "etl.yaml:8: expires_at: must be a time"),
        ("repo:acme/etl:*", "repo:*", "etl.yaml:11: trusts/0/claims/"),
        ("namespace: imports/nightly", "namespace: /imports", "etl.yaml:13: namespace: "),
        ("    name: nightly\n    type", "    name: a b\n    type", "etl.yaml:14: name: must be 1 to 63"),
        ("team: data", "team: a b", "etl.yaml:16: labels/team: "),
        ("vend: short", "vend: shrt", "etl.yaml:17: vend: must be any or short"),
    ] {
        assert!(message(from, to).contains(reason), "{to}: {}", message(from, to));
    }
    assert!(refused("set: a b\n")[0].contains("etl.yaml:1: set: must be 1 to 63"));
    for (receiver, reason) in [
        ("{webhook: \"https://a.example/…\"}", "url: is required: `file: PATH`"),
        ("{webhook: \"https://a.example/…\", url: https://a.example/x}", "url: must be `file: PATH` or `env: NAME`"),
        ("{email: a@b.example, url: {env: HOOK}}", "etl.yaml:3: must have webhook and url, or email"),
        (
            "{email: a@b.example, event: []}",
            "event: unknown field; expected one of webhook, email, url, events, disabled",
        ),
    ] {
        let message = refused(&format!("set: a\nreceivers:\n  - {receiver}\n"));
        assert!(message[0].contains(reason), "{message:?}");
    }
    let text = "set: a\nreceivers:\n  - {email: unknown}\n  - {webhook: \"https://a.example/x\", url: {env: HOOK}, events: [backup.failed]}\n";
    let message = refused(text);
    assert!(message[0].contains("etl.yaml:3: email: ") && message[1].contains("events/0"), "{message:?}");
    assert!(message[2].contains("webhook: must be the URL as it is shown"), "{message:?}");
}

fn issuer() -> IssuerItem {
    let item = json!({"name": "github", "issuer": "https://x", "required_claims": [], "fetched_at": ""});
    serde_json::from_value(item).expect("an issuer")
}

fn person(email: &str, role: &str, state: &str) -> AccountItem {
    serde_json::from_value(json!({"id": email, "email": email, "role": role, "state": state, "created_at": ""}))
        .expect("an account")
}

fn all_if_none(events: Vec<String>) -> Vec<String> {
    let all = || EventKinds::all(true).iter().map(|kind| kind.to_string()).collect();
    if events.is_empty() { all() } else { events }
}

fn saved(set: &str, wanted: &document::Credential) -> CredentialItem {
    let mut information = serde_json::Map::new();
    let mut secrets = Vec::new();
    let request = &wanted.request;
    for (name, value) in &request.data {
        match datum(value) {
            Some(Datum::Plain(value)) => drop(information.insert(name.clone(), value.clone())),
            _ if name == "access_key_id" => drop(information.insert(name.clone(), json!("…0001"))),
            _ => secrets.push(name.clone()),
        }
    }
    information.insert("secrets".to_owned(), json!(secrets));
    serde_json::from_value(json!({
        "id": format!("{} {}", request.namespace, wanted.own.name), "type": request.kind, "namespace": request.namespace,
        "information": information, "version": 1, "created_at": "", "updated_at": "", "labels": plan::labels(set, wanted),
        "vend": request.vend.as_deref().unwrap_or("any"), "health": {"state": "unchecked"},
        "description": request.description, "expires_at": request.expires_at,
    }))
    .expect("a credential")
}

fn texts() -> impl Strategy<Value = String> {
    let texts = prop_oneof!["[a-z]{1,6}", "[ -~]{1,12}", "(true|null|7|~|- a|a: b|#x|'|\")", "\\PC{1,6}"];
    texts
        .prop_map(|text| text.trim().replace('*', "+"))
        .prop_filter("a name", |text| IntegrationName::parse(text, "").is_ok())
}

/// Generates the content of a document.
fn manifests() -> impl Strategy<Value = Manifest> {
    let people = btree_map("[a-z]{1,4}@b\\.example", ("(admin|editor|viewer)", any::<bool>()), 0..4).prop_map(|all| {
        let person = |(email, (role, disabled))| json!({"email": email, "role": role, "disabled": disabled});
        all.into_iter().map(person).collect::<Vec<_>>()
    });
    let trusts = btree_map(texts(), (texts(), 60..86_400_i64), 0..3).prop_map(|all| {
        let trust = |(sub, (environment, max_lifetime))| {
            let claims = json!({"/sub": sub, "/environment": environment});
            json!({"issuer": "github", "claims": claims, "max_lifetime": max_lifetime})
        };
        all.into_iter().map(trust).collect::<Vec<_>>()
    });
    let namespace = "[a-z]{1,3}(/[a-z]{1,3})?";
    let one = (btree_set(namespace, 1..3), any::<bool>(), option::of("20[0-9]{2}-01-01T00:00:00Z"), trusts);
    let integrations = btree_map(texts(), one, 0..4).prop_map(|all| {
        let mut integrations = Vec::new();
        for (name, (namespaces, disabled, expires_at, trusts)) in all {
            let trusts = (!trusts.is_empty()).then_some(trusts);
            integrations.push(json!({
                "name": name, "namespaces": namespaces, "disabled": disabled, "expires_at": expires_at, "trusts": trusts,
            }));
        }
        integrations
    });
    let labels = btree_map("[a-m]{1,4}", "[a-z0-9.-]{0,3}[a-z]", 0..3);
    let one = (labels, option::of(texts()), "(any|short)", 1..9_i64, texts(), option::of(any::<bool>()));
    let credentials = btree_map(("[a-z]{1,3}", "[a-z]{1,3}"), one, 0..4).prop_map(|all| {
        let mut credentials = Vec::new();
        for ((namespace, name), (labels, description, vend, data_version, bucket, path_style)) in all {
            let file = |field: &str| json!({"file": format!("data/{namespace}/{name}/{field}")});
            let mut data = json!({"bucket": bucket});
            for field in ["access_key_id", "secret_access_key"] {
                data[field] = file(field);
            }
            if let Some(flag) = path_style {
                data["path_style_access"] = json!(flag);
            }
            credentials.push(json!({
                "namespace": namespace, "name": name, "type": "s3", "labels": (!labels.is_empty()).then_some(labels),
                "description": description, "vend": Some(vend).filter(|vend| vend != "any"), "data_version": data_version,
                "data": data,
            }));
        }
        credentials
    });
    let events = btree_set("(credential\\.expiring|namespace\\.frozen|account\\.locked)", 0..3);
    let receivers = btree_map("[a-z]{1,4}", (any::<bool>(), events, any::<bool>()), 0..4).prop_map(|all| {
        let receiver = |(host, (mail, events, disabled)): (String, (bool, BTreeSet<String>, bool))| match mail {
            true => json!({"email": format!("{host}@b.example"), "events": events, "disabled": disabled}),
            false => json!({
                "webhook": format!("https://{host}.example/…"), "url": {"file": format!("receivers/{host}.example")},
                "events": events, "disabled": disabled,
            }),
        };
        all.into_iter().map(receiver).collect::<Vec<_>>()
    });
    (people, integrations, receivers, credentials).prop_map(|(people, integrations, receivers, credentials)| {
        let document = json!({
            "set": "etl", "people": people, "integrations": integrations, "receivers": receivers,
            "credentials": credentials,
        });
        parse(&document.to_string()).expect("a document")
    })
}

/// Objects that a server can contain and whose names, labels or addresses meet.
fn organizations() -> impl Strategy<Value = Present> {
    let labels = proptest::collection::btree_map("(data-version|[a-z]{2})", "[a-z0-9]{0,3}", 0..16);
    let namespace = "(a|a/b|a//b|a/\\./b|a/\\.\\./b|a/|b)";
    let name = "(|\\.|\\.\\.|b|secret_access_key)";
    let one = (namespace, name, labels, prop_oneof![9 => Just("s3"), 1 => Just("unknown")]);
    let credentials = proptest::collection::vec(one, 0..5).prop_map(|all| {
        type Parts = (String, String, BTreeMap<String, String>, &'static str);
        let item = |(number, (namespace, name, mut labels, kind)): (usize, Parts)| {
            while labels.len() > 15 {
                labels.pop_first();
            }
            labels.insert(NAME.to_owned(), name);
            let information = json!({"bucket": "bucket", "access_key_id": "…0001", "secrets": ["secret_access_key"]});
            serde_json::from_value(json!({
                "id": number.to_string(), "type": kind, "namespace": namespace, "information": information, "version": 1,
                "created_at": "", "updated_at": "", "labels": labels, "vend": "any", "health": {"state": "unchecked"},
            }))
            .expect("a credential")
        };
        all.into_iter().enumerate().map(item).collect::<Vec<CredentialItem>>()
    });
    let people = proptest::collection::vec(("(ada|bob)@b\\.example", "(active|disabled|invited)"), 0..4)
        .prop_map(|all| all.iter().map(|(email, state)| person(email, "viewer", state)).collect::<Vec<_>>());
    let receivers = proptest::collection::vec("(a|b)", 0..4).prop_map(|hosts| {
        let item = |host| -> ReceiverItem {
            let address = format!("https://{host}.example/…");
            let item = json!({"id": address, "kind": "webhook", "url": address, "events": all_if_none(Vec::new()),
                "state": "active", "created_at": ""});
            serde_json::from_value(item).expect("a receiver")
        };
        hosts.iter().map(item).collect::<Vec<_>>()
    });
    (credentials, people, receivers).prop_map(|(credentials, people, receivers)| Present {
        credentials,
        people,
        receivers,
        ..Present::default()
    })
}

#[test]
fn people_described_as_disabled_are_never_active() {
    let manifest =
        parse("set: a\npeople:\n  - {email: ada@b.example, role: admin, disabled: true}\n").expect("a document");
    let present = |people: Vec<AccountItem>| Present { people, ..Present::default() };
    let changes = |present: &Present| {
        let changes = plan(&manifest, present, false).expect("a plan");
        (changes.iter().map(ToString::to_string).collect::<Vec<_>>(), plan::uninvited(&manifest, present).len())
    };
    // Without an account there is nothing to disable, and an invitation would create an active one.
    assert_eq!(changes(&present(Vec::new())), (Vec::new(), 1));
    let open = present(vec![person("ada@b.example", "admin", "invited"), person("Ada@b.example", "viewer", "invited")]);
    assert_eq!(changes(&open).0, ["- invitation of ada@b.example", "- invitation of Ada@b.example"]);
    let both = present(vec![person("ada@b.example", "admin", "active")]);
    assert_eq!(changes(&both), (vec!["~ person ada@b.example: is disabled".to_owned()], 0));
    assert_eq!(changes(&present(vec![person("ada@b.example", "admin", "disabled")])), (Vec::new(), 0));
}

proptest! {
    /// A document that was written is read without a difference.
    #[test]
    fn written_document_is_read_unchanged(manifest in manifests()) {
        let read_back = parse(&export::text_of(&manifest)).map_err(|violations| TestCaseError::fail(format!("{violations:?}")))?;
        prop_assert_eq!(json!(read_back), json!(manifest));
    }

    /// Whatever the organization contains, its export can be applied: each object is described or listed with the reason.
    #[test]
    fn every_export_applies_again_or_lists_the_objects_it_leaves_out(present in organizations()) {
        let (text, omitted) = export(&present);
        let manifest = read(&[("x".into(), text.clone())]).map_err(|violations| TestCaseError::fail(format!("{violations:?}\n{text}")))?;
        let described = manifest.credentials.len() + manifest.receivers.len();
        prop_assert_eq!(described + omitted.len(), present.credentials.len() + present.receivers.len());
        let mut files = BTreeSet::new();
        for value in manifest.credentials.iter().flat_map(|one| one.request.data.values()) {
            if let Some(Datum::File(file)) = datum(value) {
                prop_assert!(!file.contains("..") && files.insert(PathBuf::from(file)), "{}", file);
            }
        }
        prop_assert!(files.iter().all(|file| file.ancestors().skip(1).all(|above| !files.contains(above))));
        plan(&manifest, &Present::default(), false).map_err(|violations| TestCaseError::fail(format!("{violations:?}")))?;
        plan(&manifest, &present, false).map_err(|violations| TestCaseError::fail(format!("{violations:?}")))?;
    }

    #[test]
    fn parser_accepts_or_rejects_any_text(text in "(set: [a-z]{0,3}\n|people:\n|  - [a-z]{0,4}: ?[a-z\\[{*&!]{0,4}\n|\\PC{0,8}\n){0,8}") {
        let _ = parse(&text);
    }
}

#[test]
fn references_fill_only_secrets_and_ids() {
    for kind in vault_core::credential::CredentialType::ALL {
        for field in kind.fields() {
            for reference in ["{env: HOME}", "{file: secrets/one}"] {
                let data = format!("{}: {reference}", field.name);
                let text = format!(
                    "set: a\ncredentials:\n  - {{namespace: a, name: n, type: {}, data: {{{data}}}}}\n",
                    kind.as_str()
                );
                let is_shown = field.class == vault_core::credential::FieldClass::Location;
                let message = parse(&text).err().unwrap_or_default();
                assert_eq!(
                    message.iter().any(|line| line.contains("is shown to every user")),
                    is_shown,
                    "{text}: {message:?}"
                );
            }
        }
    }
}

#[test]
fn unplannable_changes_have_a_reason() {
    let manifest = parse(DOCUMENT).expect("a document");
    let message = |present: &Present| {
        plan(&manifest, present, false).expect_err("refused").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(
        message(&Present::default())[0].contains("etl.yaml:10: trusts/0/issuer: github does not exist on this server"),
        "{:?}",
        message(&Present::default())
    );
    let mut present = Present { issuers: vec![issuer()], ..Present::default() };
    let mut item = saved("etl", &manifest.credentials[0]);
    item.labels.get_or_insert_default().insert(DATA_VERSION.to_owned(), "3".to_owned());
    present.credentials = vec![item.clone()];
    assert!(message(&present)[0].contains("data_version: is 2, and 3 was sent already"));
    item.labels.get_or_insert_default().insert(DATA_VERSION.to_owned(), "2".to_owned());
    item.information.get_or_insert_default().insert("bucket".to_owned(), json!("other"));
    present.credentials = vec![item.clone()];
    assert!(
        message(&present)[0].contains("etl.yaml:22: data/bucket: differs from the stored value: increase data_version")
    );
    item.labels.get_or_insert_default().insert(MANAGED_BY.to_owned(), "other".to_owned());
    present.credentials = vec![item.clone()];
    assert!(message(&present)[0].contains("the set other describes it, too"));
    present.credentials = vec![item.clone(), item];
    assert!(message(&present)[0].contains("several credentials"));
    let foreign = json!({"id": "i", "name": "nightly", "namespaces": [], "state": "active", "created_at": "", "managed_by": "other"});
    let integrations = vec![serde_json::from_value(foreign).expect("an integration")];
    let foreign = Present { integrations, issuers: vec![issuer()], ..Present::default() };
    assert!(
        message(&foreign)[0].contains("etl.yaml:6: name: the set other describes it, too"),
        "{:?}",
        message(&foreign)
    );
}

#[test]
fn document_on_page_is_valid() {
    let page = include_str!("../../../../docs/operate/documents.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let manifest = parse(example).expect("a document");
    assert_eq!((manifest.people.len(), manifest.integrations.len(), manifest.credentials.len()), (1, 1, 1));
}
