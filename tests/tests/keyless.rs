//! Keyless storage access: exchanges of the real program at providers that verify its tokens.

use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::stores::find_tool;
use vault_tests::binary::Run;
use vault_tests::integration::write_private;
use vault_tests::providers::{ISSUER, Keyless, KeylessType, published, signing_key};
use vault_tests::receivers::SOON;
use vault_tests::script::{Script, node, python};
use vault_tests::{Client, Database, Desk, Integration, Session, Vault, on_both_databases};

on_both_databases! {
    keyless_credentials_are_issued_for_their_own_subject_only,
    rotated_signing_key_signs_the_next_exchange,
}

/// Saves a credential for the identity `name` in the namespace `<name>/<type>`, and returns its ID.
#[track_caller]
fn save(session: &Session, kind: KeylessType, name: &str) -> String {
    session.save(&json!({"type": kind.name, "namespace": namespace(kind, name), "data": kind.data(name)}))
}

fn namespace(kind: KeylessType, name: &str) -> String {
    format!("{name}/{}", kind.name)
}

#[track_caller]
fn subject(session: &Session, id: &str) -> String {
    let trust = session.get(&format!("/organization-vault/{id}/trust")).expect(200).json();
    trust["subject"].as_str().unwrap().to_owned()
}

/// Asserts that the namespace is not activated for `reason`.
#[track_caller]
fn assert_refused(integration: &Integration, client: &Client, namespace: &str, reason: &str) {
    let refused = integration.activate(client, namespace).problem("conflict").json();
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("({reason})")), "{detail}");
}

/// Returns the subjects of the tokens in `requests`.
fn subjects(requests: &[Value]) -> Vec<&str> {
    requests.iter().filter_map(|request| request["verified"]["claims"]["sub"].as_str()).collect()
}

/// Saves, sets up the provider trust, and runs a job. Nothing is issued before, and nothing for another organization.
fn keyless_credentials_are_issued_for_their_own_subject_only(database: Database) {
    let mut keyless = Keyless::start(Vault::init(database), &[]);
    let client = keyless.listener.client();
    let desk = Desk::with_login(&keyless.vault, &keyless.vault.admin());
    let foreign = keyless.vault.account("Other", "admin").log_in(&keyless.vault.client());
    let session = keyless.vault.admin_session();
    let own = Integration::make(&keyless.vault, "nightly", &["nightly/*", "anyone/*"]);
    let create = ["integration", "create", "--org", "Other", "--name", "nightly", "--namespace", "nightly/*"];
    let other = Integration::of(&keyless.vault, "nightly", &keyless.vault.json(&create));
    let private = keyless.vault.scratch("private");
    fs::create_dir(&private).unwrap();
    for kind in KeylessType::ALL {
        let (identity, namespace) = (kind.identity("nightly"), namespace(kind, "nightly"));
        let data = keyless.vault.scratch(kind.name);
        write_private(&data, &kind.data("nightly").to_string());
        let files = ["--type", kind.name, "--data-file", data.to_str().unwrap()];
        let save_one = [&["credential", "save", "--namespace", &namespace][..], &files].concat();
        let saved = desk.run(&save_one).done().stdout;
        let id = saved.split_whitespace().nth(2).unwrap().trim_end_matches('.').to_owned();
        assert!(saved.contains(&format!("run `orgvault credential show {id} --trust`")), "{saved}");

        let trust = desk.run(&["credential", "show", &id, "--trust", "--json"]).done().json();
        assert_eq!(trust["issuer"], ISSUER);
        let subject = trust["subject"].as_str().unwrap();
        let steps = trust["steps"].to_string();
        assert!(steps.contains("nightly") && steps.contains(subject), "{steps}");
        assert!(desk.run(&["credential", "show", &id, "--trust"]).done().stdout.contains(subject));

        // The trust is closed, because the provider trusts no subject yet.
        assert_refused(&own, &client, &namespace, "trust-missing");
        keyless.providers.trust(&identity, subject);
        let command = ["exec", "--namespace", &namespace, "--static", "--", "sh", "-c"];
        let exec = |script: &str| {
            let mut command = own.command(keyless.listener, &[&command[..], &[script]].concat());
            Run::of(command.env("XDG_RUNTIME_DIR", &private)).done()
        };
        let variables = exec("env").stdout;
        let expected = match kind.issued {
            "s3" => "AWS_SESSION_TOKEN=session.",
            "azure_identity" => "AZURE_STORAGE_SAS_TOKEN=sv=",
            _ => "GOOGLE_OAUTH_ACCESS_TOKEN=narrow.",
        };
        assert!(variables.lines().any(|line| line.starts_with(expected)), "{expected}");
        let file = exec("cat \"$ORGVAULT_CREDENTIAL_FILE\"").json();
        assert_eq!((&file["type"], &file["form"]), (&json!(kind.issued), &json!("short")), "{kind:?}");
        // There is no raw form.
        let raw = own.activate_with(&client, &json!({"namespace": namespace, "vend": "raw"})).expect(201).json();
        let raw = &raw["credentials"][0];
        assert_eq!((&raw["type"], &raw["form"]), (&json!(kind.issued), &json!("short")));

        let requests = keyless.providers.requests();
        let tested = subjects(&requests).into_iter().filter(|found| *found != subject).count();
        assert_eq!(tested, 1, "one trust check within an hour: {requests:#?}");

        // Another organization has the same data, and its own subject.
        save(&foreign, kind, "nightly");
        assert_refused(&other, &client, &namespace, "trust-missing");
        let requests = keyless.providers.requests();
        let refused = subjects(&requests);
        assert!(!refused.is_empty() && !refused.contains(&subject), "{requests:#?}");

        // Nothing is sent for the credential before its trust was found closed.
        let open = save(&session, kind, "anyone");
        keyless.providers.trust(&kind.identity("anyone"), "*");
        for _ in 0..2 {
            assert_refused(&own, &client, &format!("anyone/{}", kind.name), "trust-open");
        }
        let requests = keyless.providers.requests();
        let own_subject = self::subject(&session, &open);
        assert!(!subjects(&requests).contains(&&*own_subject), "{requests:#?}");
    }
    let metrics = keyless.vault.server().admin_client().get("/metrics").send().expect(200).text();
    for kind in KeylessType::ALL {
        for (outcome, count) in [("succeeded", 3), ("trust-closed", 1), ("trust-missing", 2), ("trust-open", 2)] {
            let labels = format!("{{provider=\"{}\",outcome=\"{outcome}\"}}", kind.provider);
            let line = format!("orgvault_federation_exchanges_total{labels} {count}");
            assert!(metrics.lines().any(|found| found == line), "{line} {metrics}");
        }
    }
    keyless.vault.stop();
}

/// After an immediate rotation, exchanges fail until the provider reads the new key set.
fn rotated_signing_key_signs_the_next_exchange(database: Database) {
    let mut keyless = Keyless::start(Vault::init(database), &[]);
    let client = keyless.listener.client();
    let session = keyless.vault.admin_session();
    let own = Integration::make(&keyless.vault, "nightly", &["nightly/*"]);
    let kind = KeylessType::ALL[0];
    let id = save(&session, kind, "nightly");
    keyless.providers.trust(&kind.identity("nightly"), &subject(&session, &id));
    let signed_by = |keyless: &mut Keyless| {
        own.activate(&client, &namespace(kind, "nightly")).expect(201);
        let requests = keyless.providers.requests();
        requests.last().unwrap()["verified"]["kid"].as_str().unwrap().to_owned()
    };
    assert_eq!(signed_by(&mut keyless), keyless.key);
    let refused = keyless.federation(&["key", "remove", &keyless.key]).refused().stderr;
    assert!(refused.contains(&format!("signing key {} is current", keyless.key)), "{refused}");

    let next = keyless.add_key("accepted/3072");
    published(&keyless.vault.client(), 2);
    assert_eq!(signed_by(&mut keyless), keyless.key, "the next key does not sign yet");
    keyless.federation(&["key", "promote", "--now"]).done();
    assert_eq!(published(&keyless.vault.client(), 2), [next.clone(), keyless.key.clone()]);
    // The server signs with the promoted key once it has read the keyring. The provider has not read that key.
    let began = Instant::now();
    while own.activate(&client, &namespace(kind, "nightly")).status == 201 {
        assert!(began.elapsed() < SOON, "the promoted key does not sign");
        thread::sleep(Duration::from_millis(50));
    }
    assert_refused(&own, &client, &namespace(kind, "nightly"), "issuer-unreachable");
    keyless.providers.expire_key_sets();
    assert_eq!(signed_by(&mut keyless), next);
    keyless.federation(&["status"]).done().prints("No action is required.");
    keyless.federation(&["key", "remove", &keyless.key]).done();
    assert_eq!(published(&keyless.vault.client(), 1), std::slice::from_ref(&next));
    assert_eq!(signed_by(&mut keyless), next);
    keyless.vault.stop();
}

/// The providers verify with PyJWT, from the issuer URL only. The libraries of AWS, Azure and Google send the same token.
#[test]
fn exchanges_equal_those_of_the_providers_libraries() {
    let mut keyless = Keyless::start(Vault::init(Database::Sqlite), &[]);
    let client = keyless.listener.client();
    let session = keyless.vault.admin_session();
    let own = Integration::make(&keyless.vault, "nightly", &["nightly/*"]);
    let ours = KeylessType::ALL.map(|kind| {
        let id = save(&session, kind, "nightly");
        let subject = subject(&session, &id);
        keyless.providers.trust(&kind.identity("nightly"), &subject);
        let activate = || own.activate(&client, &namespace(kind, "nightly")).expect(201);
        activate();
        keyless.providers.requests(); // with the trust check
        activate();
        let requests = keyless.providers.requests();
        let verified = &requests[0]["verified"];
        assert_eq!(verified["kid"], keyless.key);
        let claims = &verified["claims"];
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!(ISSUER), &json!(subject)));
        let audience = match kind.provider {
            "s3" => "sts.amazonaws.com".to_owned(),
            "azure" => "api://AzureADTokenExchange".to_owned(),
            _ => format!("https:{}", kind.data("nightly")["provider"].as_str().unwrap()),
        };
        assert_eq!(claims["aud"], audience);
        let names: Vec<_> = claims.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            ["aud", "exp", "iat", "iss", "jti", "nbf", "sub"],
            "only the subject separates organizations"
        );
        let time = |claim: &str| claims[claim].as_i64().unwrap();
        assert_eq!((time("nbf"), time("exp")), (time("iat"), time("iat") + 330));
        requests
    });

    let [aws, azure, google] = [&ours[0][0]["form"], &ours[1][0]["form"], &ours[2][0]["form"]];
    let names = ["RoleArn", "RoleSessionName", "DurationSeconds", "Policy", "WebIdentityToken"];
    let mut values = json!({
        "aws": {"region": "eu-central-1"},
        "azure": {"tenant_id": "contoso.onmicrosoft.com", "client_id": azure["client_id"], "token": azure["client_assertion"]},
        "google": {"provider": google["audience"], "token": google["subject_token"],
            "service_account": KeylessType::ALL[2].identity("nightly")},
    });
    for name in names {
        values["aws"][name] = aws[name].clone();
    }
    let input = keyless.vault.scratch("values");
    write_private(&input, &format!("{values}\n"));
    let mut libraries: Command = keyless.providers.client(python("provider_clients.py"));
    libraries.stdin(Stdio::from(fs::File::open(input).unwrap())).env("HOME", keyless.vault.scratch("nowhere"));
    Run::of(&mut libraries).done();

    let theirs = keyless.providers.requests();
    // The delegation key of Azure and the narrowed token of Google are no part of the libraries.
    for our in ours.iter().zip([1, 1, 2]).flat_map(|(requests, count)| &requests[..count]) {
        let same = |their: &&Value| ["host", "method", "path"].iter().all(|name| their[name] == our[name]);
        let their = theirs.iter().find(same).unwrap_or_else(|| panic!("no library sends {our:#} but {theirs:#?}"));
        assert_eq!(their["type"], our["type"], "{our:#}");
        for (name, value) in our["form"].as_object().unwrap() {
            assert_eq!(their["form"][name], *value, "{name} of {our:#}");
        }
        assert_eq!(their["authorization"].is_null(), our["authorization"].is_null(), "{our:#}");
    }
}

/// Azurite, from npm, issues the delegation key over TLS, and accepts the signature for the container only.
#[test]
fn job_reads_blob_with_delegated_signature() {
    let mut keyless = Keyless::start(Vault::init(Database::Sqlite), &[]);
    let azurite = keyless.providers.start_azurite();
    for container in ["nightly", "another"] {
        azurite.create_container(container);
        azurite.put(container, "in/a.csv", "aWQsYW1vdW50CjEsNDIK");
    }
    let client = keyless.listener.client();
    let session = keyless.vault.admin_session();
    let own = Integration::make(&keyless.vault, "nightly", &["nightly/*"]);
    let kind = KeylessType::ALL[1];
    let (namespace, mut data) = (namespace(kind, "nightly"), kind.data("nightly"));
    data["account_name"] = json!(azurite.account());
    let id = session.save(&json!({"type": kind.name, "namespace": namespace, "data": data}));
    keyless.providers.trust(&kind.identity("nightly"), &subject(&session, &id));

    let report = own.check(&client, &namespace, &["list", "read", "write"]).expect(200).json();
    let checks = report["credentials"][0]["checks"].as_array().unwrap();
    let results: Vec<_> = checks.iter().map(|check| (&check["check"], &check["result"])).collect();
    let passed = json!("passed");
    let expected = ["authenticate", "trust", "list", "read", "write"].map(|check| json!(check));
    assert_eq!(results, expected.iter().map(|check| (check, &passed)).collect::<Vec<_>>());
    let home = keyless.vault.scratch("job");
    fs::create_dir(&home).unwrap();
    let exec = |script: &str| {
        let command = ["exec", "--namespace", &namespace, "--static", "--", "sh", "-euc", script];
        let mut command = keyless.providers.client(own.command(keyless.listener, &command));
        command.env("HOME", &home).env("XDG_RUNTIME_DIR", &home);
        Run::of(&mut command).done().stdout
    };
    let rclone = find_tool("rclone");
    let copied = exec(&format!(r#"{} cat "orgvault:$ORGVAULT_BUCKET/in/a.csv""#, rclone.display()));
    assert_eq!(copied, "id,amount\n1,42\n");
    let status = exec(
        r#"for container in nightly another; do
            url="https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$container/in/a.csv?$AZURE_STORAGE_SAS_TOKEN"
            curl --silent --output /dev/null --write-out "%{http_code} " "$url"
        done"#,
    );
    assert_eq!(status, "200 403 ");
    // All keys and blobs are those of Azurite.
    let requests = keyless.providers.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|one| one["host"] == "login.microsoftonline.com"),
        "{requests:#?}"
    );
    keyless.vault.stop();
}

/// jose, from npm, also verifies from the issuer URL only.
#[test]
fn jose_accepts_tokens_of_published_keys_only() {
    let mut keyless = Keyless::start(Vault::init(Database::Sqlite), &[]);
    let client = keyless.listener.client();
    let session = keyless.vault.admin_session();
    let own = Integration::make(&keyless.vault, "nightly", &["nightly/*"]);
    let kind = KeylessType::ALL[0];
    let id = save(&session, kind, "nightly");
    let subject = subject(&session, &id);
    keyless.providers.trust(&kind.identity("nightly"), &subject);
    // Returns the token of an activation, and what the provider's library reads from it.
    let activate = |keyless: &mut Keyless| {
        own.activate(&client, &namespace(kind, "nightly")).expect(201);
        let request = keyless.providers.requests().pop().unwrap();
        (request["form"]["WebIdentityToken"].clone(), request["verified"].clone())
    };
    let mut command = node("verify_token.mjs");
    command.arg(ISSUER);
    let mut jose = Script::start(keyless.providers.client(command));
    let mut verify = |line: Value| {
        jose.send(&line.to_string());
        jose.receive(SOON)
    };
    let audience = json!({"audience": "sts.amazonaws.com"});

    let (token, verified) = activate(&mut keyless);
    assert_eq!(verified["claims"]["sub"], subject);
    assert_eq!(verify(json!({"token": token, "expect": audience})), verified);
    for (claim, expect) in [
        ("aud", json!({"audience": "sts.amazonaws.com.cn"})),
        ("iss", json!({"audience": "sts.amazonaws.com", "issuer": "https://vault.example.org"})),
    ] {
        let refused = json!({"refused": "ERR_JWT_CLAIM_VALIDATION_FAILED", "claim": claim});
        assert_eq!(verify(json!({"token": token, "expect": expect})), refused);
    }

    // A token that is signed again with the same key is accepted, but only with the algorithm of the key set.
    let mut forged = |algorithm: &str, algorithms: &[&str], key: &str| {
        let mut expect = audience.clone();
        if !algorithms.is_empty() {
            expect["algorithms"] = json!(algorithms);
        }
        let forge = json!({"algorithm": algorithm, "key": signing_key(key)});
        verify(json!({"token": token, "expect": expect, "forge": forge}))
    };
    assert_eq!(forged("RS256", &[], "accepted/2048"), verified);
    for (algorithm, algorithms, key, refused) in [
        ("RS256", &[][..], "accepted/3072", "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"),
        ("PS256", &[], "accepted/2048", "ERR_JOSE_ALG_NOT_ALLOWED"),
        ("PS256", &["PS256"], "accepted/2048", "ERR_JWKS_NO_MATCHING_KEY"),
        ("RS512", &["RS512"], "accepted/2048", "ERR_JWKS_NO_MATCHING_KEY"),
        ("HS256", &[], "accepted/2048", "ERR_JOSE_ALG_NOT_ALLOWED"),
        ("HS256", &["HS256"], "accepted/2048", "ERR_JOSE_NOT_SUPPORTED"),
        ("none", &[], "accepted/2048", "ERR_JOSE_ALG_NOT_ALLOWED"),
    ] {
        assert_eq!(forged(algorithm, algorithms, key)["refused"], refused, "{algorithm} {algorithms:?} {key}");
    }

    let next = keyless.add_key("accepted/3072");
    published(&keyless.vault.client(), 2);
    keyless.federation(&["key", "promote", "--now"]).done();
    keyless.federation(&["key", "remove", &keyless.key]).done();
    assert_eq!(published(&keyless.vault.client(), 1), std::slice::from_ref(&next));
    assert_eq!(verify(json!({"token": token, "expect": audience}))["refused"], "ERR_JWKS_NO_MATCHING_KEY");
    keyless.providers.expire_key_sets();
    let (token, verified) = activate(&mut keyless);
    assert_eq!(verified["kid"], next);
    assert_eq!(verify(json!({"token": token, "expect": audience})), verified);
    keyless.vault.stop();
}
