//! The main workflow: log in, save credentials of every type, list them without secrets, delete them, log out.

use serde_json::{Value, json};
use vault_tests::samples::{every_type, s3, small};
use vault_tests::{Database, Session, Vault, on_both_databases};

on_both_databases! {
    main_job_succeeds,
    equal_data_is_recognizable_only_within_organization,
    restart_loses_no_data,
    killed_server_loses_no_data,
}

fn main_job_succeeds(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    assert_eq!(session.try_list().expect(200).text(), "[]");

    let samples = every_type();
    let ids: Vec<String> = samples.iter().map(|sample| save(&session, &sample.request)).collect();

    let list = session.try_list().expect(200);
    for secret in samples.iter().flat_map(|sample| &sample.secrets) {
        assert!(!list.text().contains(secret), "{secret} in a list");
    }
    for (sample, id) in samples.iter().zip(&ids) {
        let items = session.list();
        let item = items.iter().find(|item| item["id"] == **id).unwrap();
        check_item(item, &sample.request, &sample.information);
        let shown = session.show(id).expect(200);
        assert_eq!(shown.json(), *item, "showing one gives the item of the list");
        assert_eq!(shown.header("content-type"), Some("application/json"));
    }

    for (left, id) in (0..ids.len()).rev().zip(&ids) {
        let deleted = session.delete(id).expect(204);
        assert_eq!((deleted.body.len(), deleted.header("content-type")), (0, None));
        session.show(id).problem("not-found");
        session.delete(id).problem("not-found");
        assert_eq!(session.list().len(), left);
    }

    assert_eq!(session.log_out().expect(204).body.len(), 0);
    session.try_list().problem("invalid-token");
    session.try_save(&samples[0].request).problem("invalid-token");
    session.show(&ids[0]).problem("invalid-token");
    session.delete(&ids[0]).problem("invalid-token");
    session.log_out().problem("invalid-token");
}

/// Saves a credential and checks the whole response.
fn save(session: &Session, request: &Value) -> String {
    let answer = session.try_save(request).expect(201);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.json(), json!({"id": id}));
    assert_eq!(answer.header("location"), Some(&*format!("/v1/organization-vault/{id}")));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let is_hyphen = |position| [8, 13, 18, 23].contains(&position);
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    assert!(
        id.len() == 36 && id.char_indices().all(|(at, c)| if is_hyphen(at) { c == '-' } else { is_digit(c) }),
        "{id}"
    );
    assert_eq!(&id[14..15], "7", "the version of a UUID in {id}");
    id
}

fn check_item(item: &Value, request: &Value, information: &Value) {
    // A link may contain its expiry time.
    let members: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
    let members: Vec<&str> = members.into_iter().filter(|name| *name != "expires_at").collect();
    let always =
        ["created_at", "health", "id", "information", "labels", "namespace", "type", "updated_at", "vend", "version"];
    assert_eq!(members, always);
    assert_eq!((&item["labels"], &item["vend"]), (&json!({}), &json!("any")));
    assert_eq!(
        (&item["type"], &item["namespace"], &item["version"]),
        (&request["type"], &request["namespace"], &json!(1))
    );
    assert_eq!(item["created_at"], item["updated_at"]);
    check_time(item["created_at"].as_str().unwrap());
    let mut shown = item["information"].clone();
    let fingerprint = shown.as_object_mut().unwrap().remove("fingerprint").unwrap();
    let fingerprint = fingerprint.as_str().unwrap();
    assert!(fingerprint.len() == 12 && fingerprint.chars().all(|c| c.is_ascii_hexdigit()), "{fingerprint}");
    assert_eq!(shown, *information);
}

/// Asserts the format RFC 3339 in UTC and seconds.
fn check_time(text: &str) {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_eq!(form, "9999-99-99T99:99:99Z", "{text}");
}

fn equal_data_is_recognizable_only_within_organization(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    let [acme, globex] = ["Acme", "Globex"].map(|name| vault.account(name, "editor").log_in(&client));
    let fingerprint = |session: &Session, request: &Value| {
        let shown = session.show(&session.save(request)).json();
        shown["information"]["fingerprint"].as_str().unwrap().to_owned()
    };
    let request = s3().request;
    let mut elsewhere = request.clone();
    elsewhere["namespace"] = json!("elsewhere");
    let mut changed = request.clone();
    changed["data"]["key_prefix"] = json!("nightly/2027/");
    let first = fingerprint(&acme, &request);
    assert_eq!(first, fingerprint(&acme, &request), "equal data");
    assert_eq!(first, fingerprint(&acme, &elsewhere), "equal data in another namespace");
    assert_ne!(first, fingerprint(&acme, &changed), "other data");
    assert_ne!(first, fingerprint(&globex, &request), "another organization");
}

fn restart_loses_no_data(database: Database) {
    survives(database, Vault::restart);
}

fn killed_server_loses_no_data(database: Database) {
    survives(database, Vault::kill_and_restart);
}

fn survives(database: Database, mut end: impl FnMut(&mut Vault)) {
    let mut vault = Vault::start(database);
    let admin = vault.admin();
    let (kept, ended) = (admin.log_in(&vault.client()), admin.log_in(&vault.client()));
    let ids: Vec<String> = every_type().iter().map(|sample| kept.save(&sample.request)).collect();
    kept.delete(&ids[0]).expect(204);
    ended.log_out().expect(204);
    let before = kept.list();
    let spent = admin.recovery_code();
    vault.client().log_in(&admin.login(&spent)).expect(200);

    end(&mut vault);

    let client = vault.client();
    assert_eq!(kept.on(&client).list(), before);
    kept.on(&client).show(&ids[0]).problem("not-found");
    assert!(!ended.on(&client).is_live(), "a token that was logged out stays dead");
    client.log_in(&admin.login(&spent)).problem("invalid-login");
    let again = admin.log_in(&client);
    again.save(&small("later", 1));
    assert_eq!(kept.on(&client).list().len(), before.len() + 1);
}

/// Two servers on one PostgreSQL database behave like one.
#[test]
fn two_replicas_serve_one_vault() {
    let vault = Vault::start(Database::Postgres);
    let second = vault.replica();
    let (here, there) = (vault.client(), second.client());
    let admin = vault.admin();

    let session = admin.log_in(&here);
    let id = session.save(&s3().request);
    assert_eq!(session.on(&there).ids(), [&*id], "saved here, listed there");
    session.on(&there).delete(&id).expect(204);
    session.show(&id).problem("not-found");
    let code = admin.recovery_code();
    here.log_in(&admin.login(&code)).expect(200);
    there.log_in(&admin.login(&code)).problem("invalid-login");
    session.on(&there).log_out().expect(204);
    assert!(!session.is_live(), "logged out there, dead here");
}
