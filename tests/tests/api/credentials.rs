//! Saving, listing, showing and deleting credentials.

use super::app::{App, JSON, NOW, UNKNOWN, assert_same, pages, s3, texts};
use serde_json::{Value, json};
use vault_core::organization::OrganizationState;
use vault_tests::samples::{every_type, small};
use vault_tests::wire::Wire;
use vault_tests::{Answer, Session};

/// Where credentials are.
pub(crate) const VAULT: &str = "/organization-vault";

/// Sends a save with header fields.
pub(crate) fn save_with(session: &Session, headers: &[(&str, &str)], body: &Value) -> Answer {
    let call = session.call("PATCH", "/v1/organization-vault");
    headers.iter().fold(call, |call, (name, value)| call.header(name, value)).json(body).send()
}

#[test]
fn credential_is_saved_shown_and_deleted() {
    let app = App::start();
    let editor = app.editor();
    let saved = editor.try_save(&s3("imports/nightly", "b1")).expect(201);
    let id = saved.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(saved.text(), format!("{{\"id\":\"{id}\"}}"));
    assert_eq!(saved.header("location"), Some(&*format!("/v1{VAULT}/{id}")));
    let item = editor.show(&id).expect(200);
    assert_eq!([item.json()], *editor.list());
    let shown: vault_api::CredentialItem = serde_json::from_slice(&item.body).unwrap();
    assert_eq!((&*shown.id, &*shown.kind, &*shown.namespace, shown.version), (&*id, "s3", "imports/nightly", 1));
    assert_eq!((&*shown.created_at, &*shown.updated_at), (NOW, NOW));
    assert_eq!(shown.information.unwrap()["bucket"], "b1");
    assert!(!item.text().contains("wJalrXUtnFEMI"));
    editor.delete(&id).empty(204);
    editor.delete(&id).problem("not-found");
    assert_eq!(editor.try_list().text(), "[]");
}

#[test]
fn information_of_every_type_is_shown_without_secrets() {
    let app = App::start();
    let editor = app.editor();
    for sample in every_type() {
        let id = editor.save(&sample.request);
        let shown = editor.show(&id).expect(200);
        let mut information = shown.json()["information"].clone();
        information.as_object_mut().unwrap().remove("fingerprint");
        assert_eq!(information, sample.information);
        assert!(sample.secrets.iter().all(|secret| !shown.text().contains(secret)), "{}", shown.text());
    }
}

#[test]
fn text_of_another_program_is_read_and_not_saved() {
    let app = App::start();
    let editor = app.editor();
    let read = |text: &str| editor.post(&format!("{VAULT}/read"), &json!({"text": text})).expect(200).json();
    let text = "[daily]\ntype = s3\nprovider = Minio\naccess_key_id = k\nsecret_access_key = s\nendpoint = minio.example\n\
        [lake]\ntype = google cloud storage\nservice_account_file = ~/key.json\n";
    let data = json!({"access_key_id": "k", "secret_access_key": "s", "endpoint": "https://minio.example",
        "path_style_access": true});
    let reason = "cannot read the key file on your computer. Run `orgvault import` there, or paste the key file itself";
    let refused = json!({"line": 9, "field": "service_account_file", "reason": reason});
    assert_eq!(
        read(text),
        json!([{"name": "daily", "type": "s3", "data": data}, {"name": "lake", "refused": refused}])
    );
    assert_eq!(
        read("\u{feff}{\n\"a\": b}"),
        json!([{"name": "", "refused": {"line": 2, "reason": "expected a JSON object (column 6)"}}])
    );
    assert_eq!(read("Please find the key in the vault."), json!([]));
    assert!(editor.list().is_empty());
}

#[test]
fn unknown_and_foreign_ids_get_same_not_found() {
    let app = App::start();
    let (admin, theirs) = (app.admin(), app.stranger().save(&s3("a", "b")));
    let mine = admin.save(&s3("a", "b"));
    let texts = "00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff x % _ * .. . %2e%2e%2f \
        ..%2f..%2fetc%2fpasswd %252e ; ;id=1 %00 %c0%ae %ff {} [] '-- null undefined 0 -1 1%20OR%201=1 \
        %27%3b%20DROP%20TABLE%20credentials;-- $ne + [$ne] %0d%0aX-Injected:%20yes %e2%80%a8 %20";
    let mut ids: Vec<String> = texts.split(' ').chain([UNKNOWN, &theirs]).map(str::to_owned).collect();
    ids.extend([
        "a".repeat(5_000),
        mine.to_uppercase(),
        mine.replace('-', ""),
        format!("%{:02x}{}", mine.as_bytes()[0], &mine[1..]),
        mine[..35].to_owned(),
    ]);
    let forms = "%7B@%7D urn:uuid:@ %20@ @%20 @%00 @. @.json @,@ @;v=1 @0".split(' ');
    ids.extend(forms.map(|form| form.replace('@', &mine)));
    let replace = json!({"data": s3("a", "c")["data"]}).to_string();
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
        let answers = ids.iter().map(|id| {
            // Other violations do not disclose whether the ID exists.
            let headers = [&*admin.header(), JSON, "If-Match: \"7\", \"8\""];
            let mut answer = app.send(&format!("{method} /v1{VAULT}/{id}{below}"), &headers, body).problem("not-found");
            assert!(id.len() < 8 || !answer.text().contains(id.as_str()), "{id} was repeated");
            answer.headers.retain(|(name, _)| name != "connection"); // of a path with an escape, no body is read
            answer
        });
        assert_same(answers.collect::<Vec<_>>());
    }
    // Bytes that are no address at all.
    for raw in ["\u{e4}", "\u{0}", "\t", "\u{7f}"] {
        let line = format!("GET /v1{VAULT}/{raw}");
        if let Some(answer) = Wire::once(app.address, vault_tests::wire::request(&line, &[&admin.header()], "")) {
            assert!(matches!(answer.status, 400 | 404), "{raw:?}: {}", answer.status);
        }
    }
    assert_eq!(admin.ids(), [&*mine]);
    admin.log_out().expect(204);
    for id in ["x", UNKNOWN, &mine] {
        admin.show(id).problem("invalid-token");
    }
}

#[test]
fn a52_request_cannot_choose_organization() {
    let app = App::start();
    let (editor, stranger) = (app.editor(), app.stranger());
    let theirs = stranger.save(&s3("theirs", "b"));
    let other = stranger.own_account()["organization_id"].as_str().unwrap().to_owned();
    for name in ["organization_id", "organization", "org", "owner", "role", "id", "version", "information", "__proto__"]
    {
        for place in ["", "/data"] {
            let mut body = s3("a", "b");
            body.pointer_mut(place).unwrap()[name] = json!(other);
            editor.try_save(&body).refuses(400, &[&format!("{place}/{name}")]);
        }
        editor.get(&format!("{VAULT}?{name}={other}")).refuses(400, &[&format!("/{name}")]);
        editor.patch(&format!("{VAULT}?{name}={other}"), &s3("a", "b")).refuses(400, &[&format!("/{name}")]);
    }
    for name in ["x-org-id", "x-organization-id", "x-tenant", "x-user-id", "x-role", "x-forwarded-user", "organization"]
    {
        let call = |path: &str| editor.call("GET", &format!("/v1{VAULT}{path}")).header(name, &other).send();
        assert_eq!(call("").expect(200).text(), "[]", "{name}");
        call(&format!("/{theirs}")).problem("not-found");
    }
    assert_eq!(stranger.ids(), [theirs]);
}

#[test]
fn save_headers_are_validated() {
    let app = App::start();
    let editor = app.editor();
    let save = |headers: &[(&str, &str)]| save_with(&editor, headers, &s3("a", "b"));
    for tag in ["*", "\"1\"", "W/\"1\"", "nonsense"] {
        save(&[("if-match", tag)]).problem("precondition-failed"); // a save only creates
    }
    let long = "k".repeat(256);
    for key in ["", " ", "a b", &long] {
        save(&[("idempotency-key", key)]).problem("malformed-request");
    }
    let raw = [&*editor.header(), JSON, "Idempotency-Key: \u{e9}"];
    app.send(&format!("PATCH /v1{VAULT}"), &raw, s3("a", "b").to_string()).problem("malformed-request");
    save(&[("idempotency-key", "a"), ("idempotency-key", "a")]).problem("malformed-request");
    for query in ["verify=true", "verify", "verify=1", "org=x", "a"] {
        editor.patch(&format!("{VAULT}?{query}"), &s3("a", "b")).problem("malformed-request");
    }
    assert!(editor.list().is_empty());
}

#[test]
fn a93_idempotency_key_identifies_one_request() {
    let app = App::start();
    let account = app.account("editor");
    let editor = account.log_in(&app.client());
    let key = "k".repeat(255);
    let with = |session: &Session, key: &str, body: &Value| save_with(session, &[("idempotency-key", key)], body);
    let body = s3("imports/nightly", "b");
    let first = with(&editor, &key, &body).expect(201);
    for session in [&editor, &account.log_in(&app.client())] {
        let again = with(session, &key, &body).expect(201);
        assert_eq!((again.text(), again.header("location")), (first.text(), first.header("location")));
    }
    // The same request in another spelling: member order, white space and escapes.
    let spelled = format!("{{ \"data\": {},\n\"namespace\": \"imports\\/nightly\", \"type\": \"s3\" }}", body["data"]);
    let again = editor.call("PATCH", &format!("/v1{VAULT}")).header("idempotency-key", &key).json_text(spelled);
    assert_eq!(again.send().expect(201).text(), first.text());
    for pointer in ["/namespace", "/data/bucket", "/data/secret_access_key"] {
        let mut other = body.clone();
        *other.pointer_mut(pointer).unwrap() = json!("an0therText");
        with(&editor, &key, &other).problem("idempotency-mismatch");
    }
    assert_eq!(editor.list().len(), 1, "one effect");
    // Keys are compared exactly, and are separate for each account.
    for (session, key) in [(&editor, &*"K".repeat(255)), (&app.editor(), &key), (&app.stranger(), &key)] {
        assert_ne!(with(session, key, &body).expect(201).text(), first.text());
    }
    // A rejected save does not use its key.
    with(&editor, "key-3", &s3("imports", "")).refuses(422, &["/data/bucket"]);
    with(&editor, "key-3", &body).expect(201);
}

#[test]
fn list_pages_are_consecutive() {
    let app = App::start();
    let editor = app.editor();
    let mut saved: Vec<_> = (0..5).map(|index| editor.save(&s3("a/b", &format!("b{index}")))).collect();
    editor.save(&s3("elsewhere", "b"));
    saved.reverse();
    let path = format!("{VAULT}?namespace=a%2Fb&type=s3&limit=2");
    let found = pages(&editor, &path);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(texts(&found.concat(), "id"), saved);
    let first = editor.get(&path);
    let link = first.header("link").unwrap();
    assert!(link.starts_with(&format!("</v1{VAULT}?namespace=a/b&type=s3&limit=2&cursor=")), "{link}");
    // A cursor is valid for its own list, and with every character of it.
    let cursor = link.split("cursor=").nth(1).unwrap().split('>').next().unwrap();
    let ask = |query: &str, cursor: &str| editor.get(&format!("{VAULT}?{query}cursor={cursor}"));
    for query in ["", "namespace=a%2Fb&", "type=s3&"] {
        ask(query, cursor).refuses(422, &["/cursor"]);
    }
    for at in [0, 1, cursor.len() / 2, cursor.len() - 1] {
        let (before, after) = (&cursor[..at], &cursor[at + 1..]);
        let other = if &cursor[at..=at] == "A" { "B" } else { "A" };
        ask("namespace=a%2Fb&type=s3&", &format!("{before}{other}{after}")).refuses(422, &["/cursor"]);
    }
    for forged in [&cursor[1..], &format!("{cursor}A"), &cursor.repeat(2), UNKNOWN, "%27%20or%201=1"] {
        ask("namespace=a%2Fb&type=s3&", forged).refuses(422, &["/cursor"]);
    }
    assert_eq!(editor.list().len(), 6);
    assert_eq!(editor.get(&format!("{VAULT}?namespace=nowhere")).expect(200).text(), "[]");
}

#[test]
fn organization_has_credential_limit() {
    let app = App::with(|setup| setup.limit(2));
    let editor = app.editor();
    let id = editor.save(&small("a", 1));
    editor.save(&small("a", 2));
    editor.try_save(&small("a", 3)).problem("limit-reached");
    editor.delete(&id).empty(204);
    editor.save(&small("a", 3));
    editor.try_save(&small("a", 4)).problem("limit-reached");
    app.set_organization_state("Acme", OrganizationState::Disabled);
    assert!(!editor.is_live());
}
