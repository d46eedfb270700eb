//! Workload identity: jobs authenticate with identity tokens of an issuer instead of an integration token.

use serde_json::{Value, json};
use std::fs;
use vault_tests::answer::Answer;
use vault_tests::binary::{self, Run};
use vault_tests::issuer::{ForeignIssuers, SigningKey, TestIssuer, audience, encode, now};
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{ActivationListener, Client, Database, Vault, on_both_databases};

on_both_databases! {
    workload_activates_without_a_stored_token,
    forged_and_foreign_tokens_are_refused,
}

const SUBJECT: &str = "repo:acme/etl:ref:refs/heads/main";

/// A vault with an issuer, and an integration without a token that trusts one branch of a repository.
struct Stage {
    vault: Vault,
    activation_listener: ActivationListener,
    issuer: TestIssuer,
    integration: String,
}

impl Stage {
    fn open(database: Database) -> Self {
        let (vault, activation_listener) = ActivationListener::open(database);
        let issuer = TestIssuer::start();
        vault.admin_session().save(&small("imports/nightly", 1));
        vault.run(&["issuer", "add", "github", "--issuer", &issuer.url()]).done();
        let create =
            ["integration", "create", "--org", "Acme", "--name", "etl", "--namespace", "imports/*", "--no-token"];
        let created = vault.json(&[&create[..], &["--trust", "github:acme/etl@main"]].concat());
        assert_eq!(created.get("token"), None);
        let integration = created["id"].as_str().unwrap().to_owned();
        Self { vault, activation_listener, issuer, integration }
    }

    fn client(&self) -> Client {
        self.activation_listener.client()
    }

    fn activate(&self, token: &str) -> Answer {
        let body = json!({"namespace": "imports/nightly"});
        self.client().request("POST", "/v1/activations").bearer(token).json(&body).send()
    }

    #[track_caller]
    fn refused(&self, token: &str) -> String {
        let problem = self.activate(token).expect(401).json();
        assert_eq!(problem["code"], "unknown-workload", "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }

    fn claims(&self) -> Value {
        self.issuer.claims(&self.integration, SUBJECT)
    }

    /// Signs a token with changed claims.
    fn with(&self, changes: Value) -> String {
        let mut claims = self.claims();
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        self.issuer.key.sign(&claims)
    }
}

fn workload_activates_without_a_stored_token(database: Database) {
    let stage = Stage::open(database);
    let token = stage.issuer.token(&stage.integration, SUBJECT);
    let activated = stage.activate(&token).expect(201).json();
    assert_eq!(
        activated["credentials"][0]["data"]["access_key_id"],
        small("imports/nightly", 1)["data"]["access_key_id"]
    );
    // Every operation of an activation accepts the token.
    let (client, id) = (stage.client(), activated["id"].as_str().unwrap());
    let listed = client.get("/v1/activations").bearer(&token).send().expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let renewed = client.request("POST", &format!("/v1/activations/{id}/renew")).bearer(&token).json(&json!({})).send();
    assert_eq!(renewed.expect(200).json()["id"], id);
    client.request("DELETE", &format!("/v1/activations/{id}")).bearer(&token).send().expect(204);
    // The audit log and the credential's uses name the workload.
    let session = stage.vault.admin_session();
    let saved = session.list()[0]["id"].as_str().unwrap().to_owned();
    let uses = session.call("GET", &format!("/v1/organization-vault/{saved}/activations")).send().expect(200).json();
    assert!(uses.as_array().unwrap().iter().all(|one| one["workload"] == SUBJECT), "{uses}");
    let entries = stage.vault.json(&["audit", "list", "--action", "namespace.activated"]).to_string();
    assert!(entries.contains(&format!("github {SUBJECT} jti=token-1")), "{entries}");
    // A disabled integration, or one without the trust, rejects the workload.
    stage.vault.run(&["integration", "set", "--state", "disabled", "--org", "Acme", "--name", "etl"]).done();
    assert_eq!(stage.activate(&token).status, 401);
    stage.vault.run(&["integration", "set", "--state", "enabled", "--org", "Acme", "--name", "etl"]).done();
    stage.activate(&token).expect(201);
    let shown = stage.vault.json(&["integration", "show", "--org", "Acme", "--name", "etl"]);
    let trust = shown["trusts"][0]["id"].as_str().unwrap();
    stage.vault.run(&["integration", "distrust", "--org", "Acme", "--name", "etl", "--trust", trust]).done();
    stage.refused(&token);
}

/// The attacks of RFC 8725 and others: responses reveal nothing about a token whose signature was not verified.
fn forged_and_foreign_tokens_are_refused(database: Database) {
    let mut stage = Stage::open(database);
    let (claims, key) = (stage.claims(), &stage.issuer.key);
    let head = |changes: Value| {
        let mut head = json!({"alg": "ES256", "typ": "JWT", "kid": "first"});
        for (name, value) in changes.as_object().unwrap() {
            head[name] = value.clone();
        }
        head
    };
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<_>>();
    let genuine = key.sign(&claims);
    let [header, payload, signature] = &parts(&genuine)[..] else { panic!("three parts") };
    let stranger = SigningKey::new("first");
    let none = format!("{}.{payload}.", encode(br#"{"alg":"none"}"#));
    let forged = [
        // First, because the log is limited per second.
        stage.with(json!({"aud": audience("00000000-0000-7000-8000-000000000000")})),
        stage.with(json!({"aud": "https://github.com/acme"})),
        stage.with(json!({"aud": [audience(&stage.integration), "other"]})),
        stage.with(json!({"aud": null})),
        stage.with(json!({"iss": "https://evil.example"})),
        stage.with(json!({"iss": format!("{}/", stage.issuer.url())})),
        none.clone(),
        none.trim_end_matches('.').to_owned(),
        format!("{}.{payload}.{signature}", encode(br#"{"alg":"None","kid":"first"}"#)),
        format!("{}.{payload}.{signature}", encode(br#"{ "alg": "ES256", "kid": "first"}"#)),
        format!("{}.{payload}.{signature}", encode(b"{\n\"alg\": \"ES256\", \"kid\": \"first\"}")),
        format!("{header}.{}.{signature}", encode(br#"{"sub":"x","sub":"x"}"#)),
        stranger.sign(&claims),
        key.sign_under(&head(json!({"alg": "HS256"})), &claims),
        key.sign_under(&head(json!({"alg": "ES384"})), &claims),
        key.sign_under(&head(json!({"alg": "RS256"})), &claims),
        key.sign_under(&head(json!({"kid": "../../etc/passwd"})), &claims),
        key.sign_under(&head(json!({"kid": "a".repeat(5_000)})), &claims),
        key.sign_under(&head(json!({"kid": 7})), &claims),
        key.sign_under(&head(json!({"crit": ["exp"]})), &claims),
        key.sign_under(&head(json!({"b64": false})), &claims),
        key.sign_under(&head(json!({"zip": "DEF"})), &claims),
        stranger.sign_under(&head(json!({"jwk": stranger.public()})), &claims),
        stranger.sign_under(&head(json!({"jku": format!("{}/evil", stage.issuer.url())})), &claims),
        stranger.sign_under(&head(json!({"x5u": "https://evil.example/x"})), &claims),
        format!("{header}.{payload}.{}", encode(&[0; 64])),
        format!("{header}.{payload}.{signature}AA"),
        format!("{header}.{}.{signature}", encode(br#"{"sub":"x"}"#)),
        format!("{genuine}."),
        format!("{genuine}.{signature}"),
    ];
    let generic = stage.refused(&stranger.sign(&claims));
    for token in forged.into_iter().chain(key.sign_by_its_public_key(&claims)) {
        assert_eq!(stage.refused(&token), generic, "{token}");
    }
    assert!(!generic.contains("acme"), "{generic}");
    // For a genuine token, the response names the claim that does not match with the token's value, but not the
    // trust's.
    let reported = |changes: Value| stage.refused(&stage.with(changes));
    let other = reported(json!({"sub": "repo:acme/etl:pull_request"}));
    assert!(
        other.contains("claim /sub is repo:acme/etl:pull_request") && !other.contains("refs/heads/main"),
        "{other}"
    );
    assert!(reported(json!({"sub": null})).contains("no claim /sub"));
    assert!(reported(json!({"sub": ["x"]})).contains("claim /sub is"));
    assert!(reported(json!({"exp": now() - 60})).contains("has expired"));
    assert!(reported(json!({"exp": null})).contains("no exp"));
    assert!(reported(json!({"exp": "soon"})).contains("must be numbers"));
    assert!(reported(json!({"nbf": now() + 90})).contains("nbf"));
    assert!(reported(json!({"iat": now() + 90})).contains("iat"));
    assert!(reported(json!({"exp": now() + 7_200})).contains("longer than the trust allows"));
    assert!(reported(json!({"exp": now() + 7_200, "iat": null})).contains("longer than the trust allows"));
    // Clocks may differ by half a minute, and an array with a single audience is valid.
    stage.activate(&stage.with(json!({"exp": now() - 10, "iat": now() - 60, "nbf": now() + 20}))).expect(201);
    stage.activate(&stage.with(json!({"aud": [audience(&stage.integration)]}))).expect(201);
    // The keys were fetched when the issuer was added. Unknown key IDs cause at most one request per minute.
    assert!(stage.issuer.asked() <= 4, "{}", stage.issuer.asked());
    // The log contains details that responses omit, and the audit log the last cause per minute.
    let log = stage.vault.log();
    for cause in [
        "its audience is https://github.com/acme, not urn:orgvault:integration:<id>",
        "its audience names an integration that does not exist",
        "it must have exactly one audience",
        "they differ by the last slash",
        "its issuer is https://evil.example, which is none that the integration trusts",
        "it was not signed by github",
        "github has no key of the id",
        "claim /sub is repo:acme/etl:pull_request",
    ] {
        assert!(log.contains(cause), "{cause}");
    }
    stage.refused(&stage.with(json!({"sub": "repo:acme/etl:pull_request"})));
    stage.vault.stop();
    let entries = stage.vault.json(&["audit", "list", "--action", "activation.refused-workload"]);
    let entries = entries.as_array().unwrap();
    assert!((1..=2).contains(&entries.len()), "one a minute: {entries:?}");
    let last = &entries[0]["changes"][0];
    assert_eq!(last["field"], "workload");
    let cause = last["to"].as_str().unwrap();
    assert!(cause.starts_with("claim /sub is repo:acme/etl:pull_request"), "{last}");
    assert!(cause.contains("from issuer github, and the closest trust requires repo:acme/etl:"), "{last}");
}

#[test]
fn issuer_keys_are_rotated_and_cached_during_outage() {
    let mut stage = Stage::open(Database::Sqlite);
    stage.activate(&stage.issuer.token(&stage.integration, SUBJECT)).expect(201);
    // While the issuer is unavailable, the stored keys are used for a day.
    stage.issuer.set_away(true);
    stage.activate(&stage.issuer.token(&stage.integration, SUBJECT)).expect(201);
    // An unknown key is fetched, but at most once per minute.
    stage.issuer.set_away(false);
    let old = std::mem::replace(&mut stage.issuer.key, SigningKey::new("second"));
    stage.issuer.publish(&[&stage.issuer.key]);
    let now_and_then = stage.issuer.token(&stage.integration, SUBJECT);
    stage.refused(&now_and_then);
    stage.vault.run(&["issuer", "remove", "github", "--force"]).done();
    stage.refused(&now_and_then);
    stage.vault.run(&["issuer", "add", "github", "--issuer", &stage.issuer.url()]).done();
    let trust = ["integration", "trust", "--org", "Acme", "--name", "etl", "--trust", "github:acme/etl@main"];
    stage.vault.run(&trust).done();
    stage.activate(&now_and_then).expect(201);
    stage.refused(&old.sign(&stage.claims()));
}

#[test]
fn only_trustworthy_issuer_is_added() {
    let vault = Vault::init(Database::Sqlite);
    let issuer = TestIssuer::start();
    let url = issuer.url();
    let add = |arguments: &[&str]| vault.run(&[&["issuer", "add", "own"], arguments].concat());
    for wrong in ["http://issuer.example", "ftp://x", "not a url", "https://user@x", "spiffe://a/b"] {
        add(&["--issuer", wrong]).misused();
    }
    assert!(add(&["--issuer", &format!("{url}/")]).refused().stderr.contains("to the last slash"));
    issuer.page("/keys", 302, "");
    assert!(add(&["--issuer", &url]).refused().stderr.contains("redirects"));
    issuer.page("/keys", 200, "{\"keys\": []}");
    assert!(add(&["--issuer", &url]).refused().stderr.contains("none of them can verify a token"));
    issuer.page("/keys", 200, "<html>");
    assert!(add(&["--issuer", &url]).refused().stderr.contains("no JSON Web Key Set"));
    issuer.set_away(true);
    assert!(add(&["--issuer", &url]).refused().stderr.contains("keys of the issuer cannot be used"));
    issuer.set_away(false);
    issuer.publish(&[&issuer.key]);
    add(&["--issuer", &url, "--require-claim", "/repository_id"]).done();
    assert!(add(&["--issuer", &url]).refused().stderr.contains("an issuer with this name already exists"));
    let shown = vault.json(&["issuer", "list", "own"]);
    assert_eq!((&shown["keys"], &shown["required_claims"]), (&json!(1), &json!(["/repository_id"])));
    assert_eq!(shown["key_ids"], json!(["first"]));
    // Trusts in a shared issuer must contain its required claims.
    vault.organization("Acme");
    let create =
        ["integration", "create", "--org", "Acme", "--name", "etl", "--namespace", "a", "--no-token", "--trust"];
    let trust = |text: &str| vault.run(&[&create[..], &[text]].concat());
    let output = trust(r#"{"issuer": "own", "claims": {"/sub": "repo:acme/etl:*"}}"#).refused().stderr;
    assert!(output.contains("--trust") && output.contains("/repository_id exactly"), "{output}");
    let output = trust(r#"{"issuer": "other", "claims": {"/sub": "repo:acme/etl:*"}}"#).refused().stderr;
    assert!(output.contains("is no issuer") && output.contains("`orgvault issuer add other --issuer URL`"), "{output}");
    for reaching in ["repo:*", "repo:acme*", "*", "repo:acme/*x*", "system:serviceaccount:*", "project_path:*"] {
        let asked = json!({"issuer": "own", "claims": {"/sub": reaching, "/repository_id": "7"}});
        let output = trust(&asked.to_string()).refused().stderr;
        assert!(output.contains("--trust") && output.contains("`*`"), "{reaching}: {output}");
    }
    trust(r#"{"issuer": "own", "claims": {"/sub": "repo:acme/etl:*", "/repository_id": "7"}}"#).done();
    let output = vault.run(&["issuer", "remove", "own"]).refused().stderr;
    assert!(output.contains("etl of Acme") && output.contains("--force"), "{output}");
    vault.run(&["issuer", "remove", "own", "--force"]).done();
    assert_eq!(vault.json(&["issuer", "list"]), json!([]));
}

/// Each kind of workload with its own claims: a cluster with a stored key set, and SPIFFE without `iss`.
#[test]
fn workloads_of_every_kind_are_recognized() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let issuer = TestIssuer::start();
    let keys = vault.scratch("keys.json");
    fs::write(&keys, json!({"keys": [issuer.key.public()]}).to_string()).unwrap();
    let keys = keys.to_str().unwrap();
    vault.run(&["issuer", "add", "gitlab", "--issuer", &issuer.url()]).done();
    vault.run(&["issuer", "add", "prod", "--issuer", "https://kubernetes.default.svc", "--jwks-file", keys]).done();
    // A SPIFFE bundle also contains keys for certificates, which must not verify tokens.
    let bundle = vault.scratch("bundle.json");
    let key_for = |usage: &str| {
        let mut key = issuer.key.public();
        key["use"] = usage.into();
        key
    };
    let mesh = ["issuer", "add", "mesh", "--issuer", "spiffe://acme.example", "--jwks-file", bundle.to_str().unwrap()];
    fs::write(&bundle, json!({"keys": [key_for("x509-svid"), issuer.key.public()]}).to_string()).unwrap();
    let output = vault.run(&mesh).refused().stderr;
    assert!(output.contains("2 keys: 1 sig, 1 x509-svid") && output.contains("jwt-svid"), "{output}");
    let keys_of_bundle = [SigningKey::new("other").public(), key_for("jwt-svid")];
    fs::write(&bundle, json!({"keys": keys_of_bundle, "spiffe_sequence": 12}).to_string()).unwrap();
    vault.run(&mesh).done();
    let trusts = [
        "gitlab:acme/etl@main",
        "kubernetes:prod:etl/nightly",
        r#"{"issuer": "mesh", "claims": {"/sub": "spiffe://acme.example/ns/etl/*"}}"#,
        r#"{"issuer": "prod", "claims": {"/sub": "system:serviceaccount:etl:*", "/kubernetes.io/namespace": "etl"}}"#,
    ];
    let create = ["integration", "create", "--org", "Acme", "--name", "etl", "--namespace", "imports/*", "--no-token"];
    let trusts: Vec<_> = trusts.iter().flat_map(|trust| ["--trust", *trust]).collect();
    let created = vault.json(&[&create[..], &trusts].concat());
    let integration = created["id"].as_str().unwrap();
    let (aud, now) = (audience(integration), now());
    let body = json!({"namespace": "imports/nightly"});
    let activate = |claims: Value| {
        let token = issuer.key.sign(&claims);
        activation_listener.client().request("POST", "/v1/activations").bearer(&token).json(&body).send().status
    };
    assert_eq!(
        activate(json!({"iss": issuer.url(), "aud": aud, "exp": now + 300, "iat": now,
        "sub": "project_path:acme/etl:ref_type:branch:ref:main", "project_id": "22"})),
        201
    );
    let cluster = "https://kubernetes.default.svc";
    assert_eq!(
        activate(json!({"iss": cluster, "aud": [aud], "exp": now + 3_600, "iat": now, "nbf": now,
        "sub": "system:serviceaccount:etl:nightly", "kubernetes.io": {"namespace": "etl"}})),
        201
    );
    assert_eq!(
        activate(json!({"iss": cluster, "aud": [aud], "exp": now + 600, "iat": now,
        "sub": "system:serviceaccount:other:nightly", "kubernetes.io": {"namespace": "etl"}})),
        401
    );
    assert_eq!(
        activate(json!({"aud": [aud], "exp": now + 300, "sub": "spiffe://acme.example/ns/etl/sa/nightly"})),
        201
    );
    assert_eq!(
        activate(json!({"aud": [aud], "exp": now + 300, "sub": "spiffe://evil.example/ns/etl/sa/nightly"})),
        401
    );
}

#[test]
fn github_presets_match_subjects_with_and_without_ids() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let issuer = TestIssuer::start();
    let add = ["issuer", "add", "github", "--issuer", &issuer.url(), "--require-claim", "/repository_owner_id"];
    let create = ["integration", "create", "--org", "Acme", "--namespace", "imports/*", "--no-token"];
    let integration = |name: &str, trust: &str| {
        let created = vault.json(&[&create[..], &["--name", name, "--trust", trust]].concat());
        created["id"].as_str().unwrap().to_owned()
    };
    let activate = |integration: &str, changes: Value| {
        let mut claims = issuer.claims(integration, "repo:example-org@1000001/etl@2000002:ref:refs/heads/main");
        let own = json!({"repository": "example-org/etl", "repository_id": "2000002", "repository_owner": "example-org",
            "repository_owner_id": "1000001", "ref": "refs/heads/main", "ref_type": "branch"});
        for (name, value) in own.as_object().unwrap().iter().chain(changes.as_object().unwrap()) {
            claims[name] = value.clone();
        }
        let body = json!({"namespace": "imports/nightly"});
        activation_listener
            .client()
            .request("POST", "/v1/activations")
            .bearer(&issuer.key.sign(&claims))
            .json(&body)
            .send()
    };
    vault.run(&add).done();
    let by_ids = integration("ids", "github:example-org@1000001/etl@2000002@main");
    activate(&by_ids, json!({})).expect(201);
    // Another owner or repository with the same name has other IDs.
    for (sub, owner, repository) in
        [("1000009/etl@2000002", "1000009", "2000002"), ("1000001/etl@2000009", "1000001", "2000009")]
    {
        let sub = format!("repo:example-org@{sub}:ref:refs/heads/main");
        let claims = json!({"sub": sub, "repository_owner_id": owner, "repository_id": repository});
        assert!(activate(&by_ids, claims).expect(401).text().contains("claim /repository_"));
    }
    let other_branch = json!({"sub": "repo:example-org@1000001/etl@2000002:ref:refs/heads/x", "ref": "refs/heads/x"});
    assert!(activate(&by_ids, other_branch).expect(401).text().contains("claim /sub is repo:example-org@1000001"));
    let staged = integration("staged", "github:example-org@1000001/etl@2000002@main,environment=eu: prod");
    let environment = json!({"sub": "repo:example-org@1000001/etl@2000002:environment:eu%3A prod"});
    activate(&staged, environment.clone()).expect(201);
    activate(&by_ids, environment).expect(401);
    // Older repositories have subjects without IDs. Their trusts match no subject with IDs.
    vault.run(&["issuer", "remove", "github", "--force"]).done();
    vault.run(&add[..5]).done();
    let by_names = integration("names", "github:example-org/etl@main");
    activate(&by_names, json!({"sub": "repo:example-org/etl:ref:refs/heads/main"})).expect(201);
    assert!(activate(&by_names, json!({})).expect(401).text().contains("claim /sub is repo:example-org@1000001"));
}

/// Clusters share an `iss`, but tokens are verified with the keys of their own cluster.
#[test]
fn clusters_of_one_name_have_separate_keys() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let cluster = "https://kubernetes.default.svc";
    let names = ["a", "b", "c"];
    let keys = names.map(|name| {
        let (key, file) = (SigningKey::new("1"), vault.scratch(name));
        fs::write(&file, json!({"keys": [key.public()]}).to_string()).unwrap();
        vault.run(&["issuer", "add", name, "--issuer", cluster, "--jwks-file", file.to_str().unwrap()]).done();
        key
    });
    let create = ["integration", "create", "--org", "Acme", "--name", "etl", "--namespace", "imports/*", "--no-token"];
    let trusts = ["--trust", "kubernetes:a:etl/one", "--trust", "kubernetes:b:etl/two"];
    let created = vault.json(&[&create[..], &trusts].concat());
    let (aud, now) = (audience(created["id"].as_str().unwrap()), now());
    let body = json!({"namespace": "imports/nightly"});
    for (cluster_of, account, status) in
        [(0, "one", 201), (1, "two", 201), (0, "two", 401), (1, "one", 401), (2, "one", 401), (2, "two", 401)]
    {
        let sub = format!("system:serviceaccount:etl:{account}");
        let token = keys[cluster_of].sign(&json!({"iss": cluster, "aud": [aud], "exp": now + 600, "sub": sub}));
        let answer = activation_listener.client().request("POST", "/v1/activations").bearer(&token).json(&body).send();
        assert_eq!(answer.status, status, "{cluster_of} {account}");
    }
}

/// A trust that SQL inserted again is useless: it contains the ID of the removed issuer.
#[test]
fn later_issuer_of_the_same_name_revives_no_trust() {
    let mut stage = Stage::open(Database::Postgres);
    let token = || stage.issuer.token(&stage.integration, SUBJECT);
    stage.activate(&token()).expect(201);
    let sql = Sql::of(&stage.vault);
    sql.run("CREATE TABLE kept AS SELECT * FROM entities WHERE kind = 'integration'");
    stage.vault.run(&["issuer", "remove", "github", "--force"]).done();
    stage.vault.run(&["issuer", "add", "github", "--issuer", &stage.issuer.url()]).done();
    sql.run(
        "DELETE FROM entities WHERE kind = 'integration'; INSERT INTO entities SELECT * FROM kept; DROP TABLE kept",
    );
    stage.refused(&token());
    stage.vault.stop(); // counted refusals are recorded at the latest now
    let entries = stage.vault.json(&["audit", "list", "--action", "activation.refused-workload"]).to_string();
    assert!(entries.contains("issuer github was removed and added again"), "{entries}");
}

/// Independent issuer implementations with every permitted algorithm.
#[test]
fn foreign_issuer_tokens_are_parsed() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    vault.admin_session().save(&small("imports/nightly", 1));
    let issuers = ForeignIssuers::start();
    for name in ["mock", "provider"] {
        vault.run(&["issuer", "add", name, "--issuer", issuers.urls[name].as_str().unwrap()]).done();
    }
    let create = ["integration", "create", "--org", "Acme", "--name", "etl", "--namespace", "imports/*", "--no-token"];
    let trusts = [
        json!({"issuer": "mock", "claims": {"/sub": "job:etl/nightly"}}).to_string(),
        json!({"issuer": "provider", "claims": {"/sub": "etl-client", "/client_id": "etl-client"}}).to_string(),
    ];
    let created = vault.json(&[&create[..], &["--trust", &trusts[0], "--trust", &trusts[1]]].concat());
    let aud = audience(created["id"].as_str().unwrap());
    let activate = |asked: Value| {
        let token = issuers.token(&asked);
        let body = json!({"namespace": "imports/nightly"});
        activation_listener.client().request("POST", "/v1/activations").bearer(&token).json(&body).send()
    };
    for algorithm in ["RS256", "PS256", "ES256", "ES384", "EdDSA"] {
        let mut asked = json!({"kind": "mock", "audience": aud, "subject": "job:etl/nightly", "algorithm": algorithm});
        activate(asked.clone()).expect(201);
        asked["subject"] = "job:etl/other".into();
        let refused = activate(asked.clone()).expect(401).text();
        assert!(refused.contains("claim /sub is job:etl/other"), "{algorithm}: {refused}");
        asked["audience"] = "urn:orgvault:integration:other".into();
        activate(asked).expect(401);
    }
    activate(json!({"kind": "provider", "audience": aud})).expect(201);
}

#[test]
fn trusts_are_added_listed_and_removed_over_http() {
    let stage = Stage::open(Database::Sqlite);
    let admin = stage.vault.admin_session();
    let issuers = admin.call("GET", "/v1/issuers").send().expect(200).json();
    assert_eq!((&issuers[0]["name"], &issuers[0]["issuer"]), (&json!("github"), &json!(stage.issuer.url())));
    let body = json!({"name": "hourly", "namespaces": ["imports/*"], "token": false,
        "trusts": [{"issuer": "github", "claims": {"/sub": "repo:acme/hourly:*"}, "max_lifetime": 900}]});
    let created = admin.call("POST", "/v1/integrations").json(&body).send().expect(201).json();
    assert_eq!(created.get("token"), None);
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/integrations/{id}/trusts");
    let trust = json!({"issuer": "github", "claims": {"/sub": "repo:acme/daily:environment:prod", "/run_attempt": 1}});
    let second = admin.call("POST", &path).json(&trust).send().expect(201).json();
    assert_eq!((&second["claims"], &second["max_lifetime"]), (&trust["claims"], &json!(3_600)));
    let listed = admin.call("GET", &path).send().expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let token = |subject: &str, attempt: Value| {
        let mut claims = stage.issuer.claims(id, subject);
        claims["run_attempt"] = attempt;
        stage.issuer.key.sign(&claims)
    };
    stage.activate(&token("repo:acme/hourly:ref:refs/heads/x", json!(7))).expect(201);
    stage.activate(&token("repo:acme/daily:environment:prod", json!(1))).expect(201);
    assert!(stage.refused(&token("repo:acme/daily:environment:prod", json!("1"))).contains("claim /run_attempt is 1"));
    admin.call("DELETE", &format!("{path}/{}", second["id"].as_str().unwrap())).send().expect(204);
    stage.refused(&token("repo:acme/daily:environment:prod", json!(1)));
    admin.call("DELETE", &format!("{path}/{}", second["id"].as_str().unwrap())).send().expect(404);
    admin.call("DELETE", &format!("{path}/x")).send().expect(404);
    for (wrong, pointer) in [
        (json!({"issuer": "github", "claims": {}}), "/claims"),
        (json!({"issuer": "github"}), "/claims"),
        (json!({"issuer": "gitlab", "claims": {"/sub": "x"}}), "/issuer"),
        (json!({"issuer": "github", "claims": {"sub": "x", "/sub": "x"}}), "/claims/sub"),
        (json!({"issuer": "github", "claims": {"/sub": "repo:*"}}), "/claims/~1sub"),
        (json!({"issuer": "github", "claims": {"/sub": "x"}, "max_lifetime": 90_000}), "/max_lifetime"),
        (json!({"issuer": "github", "claims": {"/sub": "x"}, "extra": 1}), "/extra"),
    ] {
        let answer = admin.call("POST", &path).json(&wrong).send();
        assert!(matches!(answer.status, 400 | 422), "{wrong}: {}", answer.text());
        assert_eq!(answer.json()["errors"][0]["pointer"], pointer, "{wrong}");
    }
    for role in ["viewer", "editor"] {
        let session = stage.vault.account("Acme", role).log_in(&stage.vault.client());
        assert_eq!(session.call("GET", "/v1/issuers").send().status, 403);
        assert_eq!(session.call("POST", &path).json(&trust).send().status, 403);
    }
}

#[test]
fn job_runs_by_its_identity_token() {
    let stage = Stage::open(Database::Sqlite);
    let file = stage.vault.scratch("identity");
    fs::write(&file, format!("{}\n", stage.issuer.token(&stage.integration, SUBJECT))).unwrap();
    let job = |variable: &str, value: &str, arguments: &[&str]| {
        let mut command = binary::command();
        command.env("ORGVAULT_ACTIVATION_URL", stage.activation_listener.url()).env(variable, value).args(arguments);
        Run::of(&mut command)
    };
    let shell =
        "test -z \"$ORGVAULT_IDENTITY_TOKEN$ORGVAULT_IDENTITY_TOKEN_FILE\" && echo \"ran with $AWS_ACCESS_KEY_ID\"";
    let exec = ["exec", "--static", "--namespace", "imports/nightly", "--", "sh", "-c", shell];
    let key = small("imports/nightly", 1)["data"]["access_key_id"].as_str().unwrap().to_owned();
    let run = job("ORGVAULT_IDENTITY_TOKEN_FILE", file.to_str().unwrap(), &exec).done();
    assert!(run.stdout.contains(&format!("ran with {key}")), "{}", run.stdout);
    assert!(run.stderr.contains(&format!("using the identity token in {}", file.display())), "{}", run.stderr);
    let token = stage.issuer.token(&stage.integration, SUBJECT);
    let run = job("ORGVAULT_IDENTITY_TOKEN", &token, &exec).done();
    assert!(run.stdout.contains("ran with") && run.stderr.contains("in ORGVAULT_IDENTITY_TOKEN"), "{run:?}");
    assert!(!run.stderr.contains("eyJ"), "{}", run.stderr);
    // The message suffices to find an error in a trust.
    let other = stage.issuer.token(&stage.integration, "repo:acme/etl:ref:refs/heads/feature");
    let output = job("ORGVAULT_IDENTITY_TOKEN", &other, &exec);
    assert_eq!(output.status, Some(125), "{output:?}");
    let output = output.stderr;
    assert!(output.contains("claim /sub is repo:acme/etl:ref:refs/heads/feature"), "{output}");
    // The claims of the token are printed, but not the token.
    let run = job("ORGVAULT_IDENTITY_TOKEN", &other, &["identity", "inspect"]).done();
    for reported in ["repo:acme/etl:ref:refs/heads/feature", &audience(&stage.integration), &stage.issuer.url()] {
        assert!(run.stdout.contains(reported), "{reported}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("eyJ"), "{}", run.stdout);
    let wrong = stage.with(json!({"aud": "https://github.com/acme"}));
    let run = job("ORGVAULT_IDENTITY_TOKEN", &wrong, &["identity", "inspect"]).done();
    assert!(run.stdout.contains("must be exactly one audience"), "{}", run.stdout);
    // Without a token, the command lists the possible sources.
    let output = job("X", "", &exec);
    assert_eq!(output.status, Some(2), "{output:?}");
    let output = output.stderr;
    assert!(output.contains("ORGVAULT_IDENTITY_TOKEN_FILE") && output.contains("id-token: write"), "{output}");
    // GitHub issues a token for the integration's audience on request.
    let given = json!({"value": token}).to_string();
    let path = format!("/request?api-version=2.0&audience={}", audience(&stage.integration).replace(':', "%3A"));
    stage.issuer.page(&path, 200, &given);
    let mut command = binary::command();
    command
        .env("ORGVAULT_ACTIVATION_URL", stage.activation_listener.url())
        .env("ORGVAULT_INTEGRATION_ID", &stage.integration);
    command.env("ACTIONS_ID_TOKEN_REQUEST_URL", format!("{}/request?api-version=2.0", stage.issuer.url()));
    let shell =
        "test -z \"$ACTIONS_ID_TOKEN_REQUEST_URL$ACTIONS_ID_TOKEN_REQUEST_TOKEN\" && echo \"ran with no token\"";
    let exec = ["exec", "--static", "--namespace", "imports/nightly", "--", "sh", "-c", shell];
    let run = Run::of(command.env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "runner").args(exec)).done();
    assert!(run.stdout.contains("ran with") && run.stderr.contains("of GitHub Actions"), "{run:?}");
}
