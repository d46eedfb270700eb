use super::document::{Datum, read};
use super::export::export;
use super::plan::{Change, Present, plan};
use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use vault_client::{AccountItem, CredentialItem, IssuerItem, ReceiverItem};
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

fn parse(text: &str) -> Result<document::Manifest, Vec<String>> {
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
    assert_eq!((&*manifest.set, &*manifest.people[0].email), ("etl", "ada@acme.example"));
    let integration = &manifest.integrations[0];
    assert_eq!((integration.at.line, integration.namespaces.len(), integration.token), (6, 2, false));
    assert_eq!((&integration.trusts[0].claims["/count"], integration.trusts[0].max_lifetime), (&json!(7), 3_600));
    let credential = &manifest.credentials[0];
    assert_eq!((credential.data_version, &*credential.vend), (2, "short"));
    assert_eq!(credential.data["secret_access_key"], (21, Datum::File("secrets/nightly".to_owned())));
    assert_eq!(credential.data["path_style_access"].1, Datum::Plain(json!(true)));
}

#[test]
fn violations_name_file_line_and_field() {
    let message = refused(
        "set: etl\nunknown: 1\npeople:\n  - {email: a@b.example}\nintegrations:\n  - name: n\ncredentials:\n  - namespace: a\n    name: n\n    \
         type: s3\n    labels: {name: x, team: 7}\n    data:\n      secret_access_key: hunter2\n      colour: red\n      bucket: {path: x}\n",
    );
    assert_eq!(
        message,
        [
            "etl.yaml:2: unknown: is unknown here; expected set, people, integrations, receivers, credentials",
            "etl.yaml:4: role: is required",
            "etl.yaml:6: namespaces: is required",
            "etl.yaml:11: name: is a label that this command sets itself",
            "etl.yaml:11: team: must be text: put it in quotation marks",
            "etl.yaml:13: secret_access_key: is a secret, which a document must not contain: use `file: PATH` or `env: NAME`",
            "etl.yaml:14: colour: is no field of s3",
            "etl.yaml:15: bucket: is shown to every user, so its value must be in the document",
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
    assert_eq!(validate(&parse(DOCUMENT).expect("a document")), []);
    let message = |from: &str, to: &str| {
        let manifest = parse(&DOCUMENT.replace(from, to)).expect("a document");
        validate(&manifest).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    for (from, to, reason) in [
        ("role: admin", "role: root", "etl.yaml:4: role: must be admin, editor or viewer"),
        ("Ada@acme.example", "unknown", "etl.yaml:4: email: "),
        ("imports/*", "*", "etl.yaml:6: namespaces/0: "),
        ("2027-01-01T00:00:00Z", "tomorrow", "etl.yaml:6: expires_at: must be a time"),
        ("repo:acme/etl:*", "repo:*", "etl.yaml:10: trusts/claims/"),
        ("namespace: imports/nightly", "namespace: /imports", "etl.yaml:13: namespace: "),
        ("    name: nightly\n    type", "    name: a b\n    type", "etl.yaml:13: name: must be 1 to 63"),
        ("team: data", "team: a b", "etl.yaml:13: labels/team: "),
        ("vend: short", "vend: shrt", "etl.yaml:13: vend: must be any or short"),
    ] {
        assert!(message(from, to).contains(reason), "{to}: {}", message(from, to));
    }
    assert!(refused("set: a b\n")[0].contains("etl.yaml:1: set: must be 1 to 63"));
    for (receiver, reason) in [
        ("{webhook: \"https://a.example/…\"}", "url: is required: `file: PATH`"),
        ("{webhook: \"https://a.example/…\", url: https://a.example/x}", "url: must be `file: PATH` or `env: NAME`"),
        ("{email: a@b.example, url: {env: HOOK}}", "receivers: must have webhook and url, or email"),
        ("{email: a@b.example, event: []}", "event: is unknown here"),
    ] {
        let message = refused(&format!("set: a\nreceivers:\n  - {receiver}\n"));
        assert!(message[0].contains(reason), "{message:?}");
    }
    let text = "set: a\nreceivers:\n  - {email: unknown}\n  - {webhook: \"https://a.example/x\", url: {env: HOOK}, events: [backup.failed]}\n";
    let message: Vec<_> = validate(&parse(text).expect("a document")).iter().map(ToString::to_string).collect();
    assert!(message[0].contains("etl.yaml:3: email: ") && message[1].contains("events/0"), "{message:?}");
    assert!(message[2].contains("webhook: must be the URL as it is shown"), "{message:?}");
}

fn issuer() -> IssuerItem {
    let item = json!({"name": "github", "issuer": "https://x", "required_claims": [], "fetched_at": ""});
    serde_json::from_value(item).expect("an issuer")
}

/// Returns the objects that a server would return after `changes`, as far as plans read them.
fn applied(present: &Present, set: &str, changes: &[Change]) -> Present {
    let mut after = present.clone();
    for change in changes {
        match change {
            Change::Invite { email, role } => after.people.push(person(email, role, "invited")),
            Change::Withdraw { id, .. } => after.people.retain(|one| one.id != *id),
            Change::UpdatePerson { id, role, disabled, .. } => {
                let person = after.people.iter_mut().find(|one| one.id == *id).expect("it is there");
                person.role = role.clone().unwrap_or_else(|| person.role.clone());
                if let Some(disabled) = disabled {
                    person.state = if *disabled { "disabled" } else { "active" }.to_owned();
                }
            }
            Change::CreateIntegration(wanted) => {
                let trusts: Vec<_> = wanted.trusts.iter().map(trust).collect();
                after.integrations.push(
                    serde_json::from_value(json!({
                        "id": wanted.name, "name": wanted.name, "namespaces": wanted.namespaces, "state": "active",
                        "created_at": "", "expires_at": wanted.expires_at, "trusts": trusts, "managed_by": set,
                    }))
                    .expect("an integration"),
                );
                // The integration is created active, and a second change disables it.
                if wanted.disabled {
                    after.integrations.last_mut().expect("one").state = "disabled".to_owned();
                }
            }
            Change::UpdateIntegration { id, change, .. } => {
                let one = after.integrations.iter_mut().find(|one| one.id == *id).expect("it is there");
                one.state = change.state.clone().unwrap_or_else(|| one.state.clone());
                one.namespaces = change.namespaces.clone().unwrap_or_else(|| one.namespaces.clone());
                one.expires_at = change.expires_at.clone().unwrap_or_else(|| one.expires_at.clone());
                one.managed_by = change.managed_by.clone().unwrap_or_else(|| one.managed_by.clone());
            }
            Change::DeleteIntegration { id, .. } => after.integrations.retain(|one| one.id != *id),
            Change::Trust { id, trust: wanted, .. } => {
                let one = after.integrations.iter_mut().find(|one| one.id == *id).expect("it is there");
                one.trusts.push(serde_json::from_value(trust(wanted)).expect("a trust"));
            }
            Change::Distrust { id, trust, .. } => {
                let one = after.integrations.iter_mut().find(|one| one.id == *id).expect("it is there");
                one.trusts.retain(|other| other != trust);
            }
            Change::AddReceiver(wanted) => after.receivers.push(receiver(wanted)),
            Change::UpdateReceiver { id, change, .. } => {
                let one = after.receivers.iter_mut().find(|one| one.id == *id).expect("it is there");
                one.state = change.state.clone().unwrap_or_else(|| one.state.clone());
                one.events = change.events.clone().map_or_else(|| one.events.clone(), all_if_none);
            }
            Change::Save(wanted) => after.credentials.push(saved(set, wanted)),
            Change::Replace { id, credential, .. } => {
                let one = after.credentials.iter_mut().find(|one| one.id == *id).expect("it is there");
                one.information = saved(set, credential).information;
            }
            Change::Describe { id, request, .. } => {
                let one = after.credentials.iter_mut().find(|one| one.id == *id).expect("it is there");
                for (name, value) in request.labels.iter().flatten() {
                    let labels = one.labels.get_or_insert_default();
                    match value {
                        Some(value) => drop(labels.insert(name.clone(), value.clone())),
                        None => drop(labels.remove(name)),
                    }
                }
                one.vend = request.vend.clone().unwrap_or_else(|| one.vend.clone());
                one.description = request.description.clone().unwrap_or_else(|| one.description.clone());
                one.expires_at = request.expires_at.clone().unwrap_or_else(|| one.expires_at.clone());
            }
            Change::Delete { id, .. } => after.credentials.retain(|one| one.id != *id),
        }
    }
    after
}

fn person(email: &str, role: &str, state: &str) -> AccountItem {
    serde_json::from_value(json!({"id": email, "email": email, "role": role, "state": state, "created_at": ""}))
        .expect("an account")
}

fn all_if_none(events: Vec<String>) -> Vec<String> {
    let all = || EventKinds::all(true).iter().map(|kind| kind.to_string()).collect();
    if events.is_empty() { all() } else { events }
}

fn receiver(wanted: &document::Receiver) -> ReceiverItem {
    let (kind, member) = if wanted.url.is_some() { ("webhook", "url") } else { ("email", "to") };
    let state = if wanted.disabled { "disabled" } else { "active" };
    serde_json::from_value(json!({
        "id": wanted.address, "kind": kind, member: wanted.address, "events": all_if_none(wanted.events.clone()),
        "state": state, "created_at": "",
    }))
    .expect("a receiver")
}

fn trust(trust: &document::Trust) -> serde_json::Value {
    let id = format!("{}{:?}{}", trust.issuer, trust.claims, trust.max_lifetime);
    json!({"id": id, "issuer": trust.issuer, "claims": trust.claims, "max_lifetime": trust.max_lifetime})
}

fn saved(set: &str, wanted: &document::Credential) -> CredentialItem {
    let mut information = serde_json::Map::new();
    let mut secrets = Vec::new();
    for (name, (_, datum)) in &wanted.data {
        match datum {
            Datum::Plain(value) => drop(information.insert(name.clone(), value.clone())),
            _ if name == "access_key_id" => drop(information.insert(name.clone(), json!("…0001"))),
            _ => secrets.push(name.clone()),
        }
    }
    information.insert("secrets".to_owned(), json!(secrets));
    serde_json::from_value(json!({
        "id": format!("{} {}", wanted.namespace, wanted.name), "type": wanted.kind.as_str(), "namespace": wanted.namespace,
        "information": information, "version": 1, "created_at": "", "updated_at": "", "labels": plan::labels(set, wanted),
        "vend": wanted.vend, "health": {"state": "unchecked"}, "description": wanted.description, "expires_at": wanted.expires_at,
    }))
    .expect("a credential")
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,6}", "[ -~]{1,12}", "(true|null|7|~|- a|a: b|#x|'|\")", "\\PC{1,6}"]
}

/// Generates the content of a document.
fn manifests() -> impl Strategy<Value = document::Manifest> {
    let at = || At { file: "x".into(), line: 1 };
    let people =
        proptest::collection::btree_map("[a-z]{1,4}@b\\.example", ("(admin|editor|viewer)", any::<bool>()), 0..4)
            .prop_map(move |all| {
                all.into_iter()
                    .map(|(email, (role, disabled))| document::Person { at: at(), email, role, disabled })
                    .collect()
            });
    let trusts = proptest::collection::btree_map(texts(), (texts(), 1..86_400_i64), 0..3).prop_map(move |all| {
        let trust = |(sub, (environment, max_lifetime)): (String, (String, i64))| document::Trust {
            at: at(),
            issuer: "github".to_owned(),
            claims: [("/sub".to_owned(), json!(sub)), ("/environment".to_owned(), json!(environment))].into(),
            max_lifetime,
        };
        all.into_iter().map(trust).collect::<Vec<_>>()
    });
    let one = (
        proptest::collection::btree_set("[a-z/]{1,6}", 1..3),
        any::<bool>(),
        proptest::option::of("20[0-9]{2}-01-01T00:00:00Z"),
        trusts,
    );
    let integrations = proptest::collection::btree_map(texts(), one, 0..4).prop_map(move |all| {
        all.into_iter()
            .map(|(name, (namespaces, disabled, expires_at, trusts))| document::Integration {
                at: at(),
                name,
                namespaces: namespaces.into_iter().collect(),
                expires_at,
                disabled,
                token: false,
                trusts,
            })
            .collect()
    });
    let labels = proptest::collection::btree_map("[a-m]{1,4}", texts(), 0..3);
    let one =
        (labels, proptest::option::of(texts()), "(any|short)", 1..9_i64, texts(), proptest::option::of(any::<bool>()));
    let credentials = proptest::collection::btree_map(("[a-z]{1,3}", "[a-z]{1,3}"), one, 0..4).prop_map(move |all| {
        all.into_iter()
            .map(|((namespace, name), (labels, description, vend, data_version, bucket, path_style))| {
                let reference = |field: &str| (1, Datum::File(format!("data/{namespace}/{name}/{field}")));
                let mut data: std::collections::BTreeMap<_, _> =
                    ["access_key_id", "secret_access_key"].map(|field| (field.to_owned(), reference(field))).into();
                data.insert("bucket".to_owned(), (1, Datum::Plain(json!(bucket))));
                data.extend(path_style.map(|flag| ("path_style_access".to_owned(), (1, Datum::Plain(json!(flag))))));
                let kind = vault_core::credential::CredentialType::S3;
                document::Credential {
                    at: at(),
                    namespace,
                    name,
                    kind,
                    labels,
                    description,
                    vend,
                    expires_at: None,
                    data_version,
                    data,
                }
            })
            .collect()
    });
    let events = proptest::collection::btree_set("(credential.expiring|namespace.frozen|account.locked)", 0..3);
    let receivers = proptest::collection::btree_map("[a-z]{1,4}", (any::<bool>(), events, any::<bool>()), 0..4);
    let receivers = receivers.prop_map(move |all| {
        let receiver =
            |(host, (mail, events, disabled)): (String, (bool, std::collections::BTreeSet<String>, bool))| {
                let reference = || (1, Datum::File(format!("receivers/{host}.example")));
                let address = if mail { format!("{host}@b.example") } else { format!("https://{host}.example/…") };
                let events = events.into_iter().collect();
                document::Receiver { at: at(), address, url: (!mail).then(reference), events, disabled }
            };
        let mut receivers: Vec<_> = all.into_iter().map(receiver).collect();
        receivers.sort_by(|one, other| one.address.cmp(&other.address));
        receivers
    });
    let parts = (people, integrations, receivers, credentials);
    parts.prop_map(|(people, integrations, receivers, credentials)| document::Manifest {
        set: "etl".to_owned(),
        people,
        integrations,
        receivers,
        credentials,
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
        let item = |host| {
            let url = (1, Datum::File(String::new()));
            let address = format!("https://{host}.example/…");
            receiver(&document::Receiver {
                at: At::default(),
                address,
                url: Some(url),
                events: Vec::new(),
                disabled: false,
            })
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

/// Removes the positions, because the parsed document has others than the written one.
fn bare(mut manifest: document::Manifest) -> document::Manifest {
    manifest.people.iter_mut().for_each(|one| one.at = At::default());
    manifest.integrations.iter_mut().for_each(|one| {
        one.at = At::default();
        one.trusts.iter_mut().for_each(|trust| trust.at = At::default());
        one.trusts.sort_by_key(|trust| format!("{trust:?}"));
    });
    manifest.receivers.iter_mut().for_each(|one| {
        one.at = At::default();
        one.url.iter_mut().for_each(|(line, _)| *line = 0);
    });
    manifest.credentials.iter_mut().for_each(|one| {
        one.at = At::default();
        one.data.values_mut().for_each(|(line, _)| *line = 0);
    });
    manifest
}

fn settled(present: Present) -> Present {
    // Users who were invited have enrolled and are active.
    Present {
        people: present
            .people
            .into_iter()
            .map(|mut one| {
                if one.state == "invited" {
                    one.state = "active".to_owned();
                }
                one
            })
            .collect(),
        ..present
    }
}

proptest! {
    /// Exporting, applying to an empty vault and exporting again results in identical bytes.
    #[test]
    fn applied_export_is_exported_identically(manifest in manifests()) {
        let empty = Present { issuers: vec![issuer()], ..Present::default() };
        let all = |from: &Present| plan(&manifest, from, false).expect("a plan");
        let mut first = settled(applied(&empty, "etl", &all(&empty)));
        first = applied(&first, "etl", &all(&first));
        let (text, omitted) = export(&first);
        prop_assert_eq!(omitted, Vec::<String>::new());
        let read_back = read(&[("x".into(), text.clone())]).expect("a document");
        // Disabled people who have no account are not created.
        let mut active = manifest.clone();
        active.people.retain(|person| !person.disabled);
        active.set = "main".to_owned(); // an export names its own set
        prop_assert_eq!(bare(read_back.clone()), bare(active));
        let again = |from: &Present| plan(&read_back, from, false).expect("a plan");
        let mut second = settled(applied(&empty, "main", &again(&empty)));
        second = applied(&second, "main", &again(&second));
        prop_assert_eq!(export(&second).0, text);
    }

    /// Whatever the organization contains, its export can be applied: each object is described or listed with the reason.
    #[test]
    fn every_export_applies_again_or_lists_the_objects_it_leaves_out(present in organizations()) {
        let (text, omitted) = export(&present);
        let manifest = read(&[("x".into(), text.clone())]).map_err(|violations| TestCaseError::fail(format!("{violations:?}\n{text}")))?;
        prop_assert_eq!(validate(&manifest), []);
        let described = manifest.credentials.len() + manifest.receivers.len();
        prop_assert_eq!(described + omitted.len(), present.credentials.len() + present.receivers.len());
        let mut files = BTreeSet::new();
        for (_, datum) in manifest.credentials.iter().flat_map(|one| one.data.values()) {
            if let Datum::File(file) = datum {
                prop_assert!(!file.contains("..") && files.insert(PathBuf::from(file)), "{}", file);
            }
        }
        prop_assert!(files.iter().all(|file| file.ancestors().skip(1).all(|above| !files.contains(above))));
        plan(&manifest, &Present::default(), false).map_err(|violations| TestCaseError::fail(format!("{violations:?}")))?;
        plan(&manifest, &present, false).map_err(|violations| TestCaseError::fail(format!("{violations:?}")))?;
    }

    /// After a plan is applied, the next plan is empty, and other objects are unchanged.
    #[test]
    fn plan_is_empty_after_apply(before in manifests(), mut after in manifests(), prune: bool) {
        let empty = Present { issuers: vec![issuer()], ..Present::default() };
        let mut present = settled(applied(&empty, "etl", &plan(&before, &empty, false).expect("a plan")));
        // A lower version, or a changed location without a higher one, would be rejected.
        for credential in &mut after.credentials {
            let same = before.credentials.iter().find(|one| (&one.namespace, &one.name) == (&credential.namespace, &credential.name));
            credential.data_version = same.map_or(1, |one| one.data_version + 1);
        }
        for _ in 0..2 {
            let changes = plan(&after, &present, prune).expect("a plan");
            present = settled(applied(&present, "etl", &changes));
        }
        prop_assert_eq!(plan(&after, &present, prune).expect("a plan"), []);
        for one in &before.integrations {
            let described = after.integrations.iter().any(|other| other.name == one.name);
            let there = present.integrations.iter().any(|other| other.name == one.name);
            prop_assert_eq!(there, described || !prune);
        }
        for one in &before.credentials {
            let described = after.credentials.iter().any(|other| (&other.namespace, &other.name) == (&one.namespace, &one.name));
            let there = present.credentials.iter().any(|item| item.namespace == one.namespace && plan::label(item, NAME) == Some(&one.name));
            prop_assert_eq!(there, described || !prune);
        }
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
        message(&Present::default())[0].contains("etl.yaml:10: issuer: github is no issuer here"),
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
    assert!(message(&present)[0].contains("bucket: differs from the stored value: increase data_version"));
    item.labels.get_or_insert_default().insert(MANAGED_BY.to_owned(), "other".to_owned());
    present.credentials = vec![item.clone()];
    assert!(message(&present)[0].contains("the set other describes it, too"));
    present.credentials = vec![item.clone(), item];
    assert!(message(&present)[0].contains("several credentials"));
    let made = Change::CreateIntegration(manifest.integrations[0].clone());
    let foreign = applied(&Present { issuers: vec![issuer()], ..Present::default() }, "other", &[made]);
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
