//! The console in a headless browser.

use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use vault_testkit::stores::Moto;
use vault_tests::binary::Run;
use vault_tests::browser::{Browser, Key, eventually, npm_file};
use vault_tests::issuer::{TestIssuer, audience};
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::process::free_address;
use vault_tests::providers::{ISSUER, Keyless, KeylessType};
use vault_tests::receivers::Receivers;
use vault_tests::samples;
use vault_tests::{Account, Client, Database, Integration, Session, Vault};

/// Policy that permits everything in the emulated storage.
const ALL: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
/// The box that checks a credential before it is saved.
const CHECK: &str = "Check it with the storage provider first";
const PASSWORD: &str = "a horse of another colour";

/// A vault, and a browser with its console.
struct Stage {
    vault: Vault,
    browser: Browser,
}

/// A stage is used as its browser.
impl std::ops::Deref for Stage {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl Stage {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(flags: &[&str]) -> Self {
        let vault = Vault::start_with(Database::Sqlite, flags);
        Self { vault, browser: Browser::open(1280, 900) }
    }

    fn url(&self, place: &str) -> String {
        format!("http://{}/{place}", self.vault.address())
    }

    /// Starts a vault, and signs in a new user with this role. Also returns a session of the same account over HTTP.
    fn signed_in(role: &str) -> (Self, Session) {
        let (stage, _, session) = Self::signed_in_as(role);
        (stage, session)
    }

    fn signed_in_as(role: &str) -> (Self, Account, Session) {
        let stage = Self::start();
        let (account, session) = stage.sign_in(role);
        (stage, account, session)
    }

    /// Signs in a new user with this role. Also returns a session of the same account over HTTP.
    fn sign_in(&self, role: &str) -> (Account, Session) {
        let account = self.vault.account("Acme", role);
        let session = account.log_in(&self.vault.client());
        self.browser.go(&self.url(""));
        self.sign_in_as(&account);
        (account, session)
    }

    fn sign_in_as(&self, account: &Account) {
        let browser = &self.browser;
        browser.fill("E-mail", &account.email).fill("Password", &account.password);
        browser.fill("Passcode", &account.recovery_code()).press("Sign in").see("Find");
    }

    /// Navigates to a page of the console.
    fn visit(&self, place: &str) -> &Browser {
        self.browser.script("location.hash = arguments[0]", &[json!(place)]);
        &self.browser
    }
}

/// Writes a picture of the whole page to the directory in `ORGVAULT_TEST_PICTURES`, if it is set.
fn keep_picture(browser: &Browser, name: &str) {
    if let Ok(directory) = std::env::var("ORGVAULT_TEST_PICTURES") {
        let picture = browser.devtools("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
        let picture = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, picture["data"].as_str().unwrap());
        fs::write(format!("{directory}/{name}.png"), picture.unwrap()).unwrap();
    }
}

/// Saves a keyless credential of each type, and returns their IDs.
fn save_keyless(session: &Session) -> Vec<String> {
    let namespace = |kind: KeylessType| format!("nightly/{}", kind.name);
    let save = |kind: KeylessType| {
        session.save(&json!({"type": kind.name, "namespace": namespace(kind), "data": kind.data("nightly")}))
    };
    KeylessType::ALL.map(save).to_vec()
}

#[test]
fn invited_person_enrols_from_the_link_and_signs_in() {
    let stage = Stage::start();
    let (vault, browser) = (&stage.vault, &stage.browser);
    vault.organization("Acme");
    let url = stage.url("").trim_end_matches('/').to_owned();
    let invite = ["account", "invite", "--org", "Acme", "--email", "grace@example.com", "--role", "editor"];
    let output = vault.run(&[&invite[..], &["--public-url", &url]].concat()).done().stdout;
    let link = output.lines().find_map(|line| line.trim().strip_prefix(&*format!("{url}/#/enrol/"))).unwrap();
    let link = &*format!("{url}/#/enrol/{link}");

    browser.go(link);
    // The code remains neither in the URL nor in the history.
    browser.until("an address without the code", "return location.hash === '#/enrol'", &[]);
    for text in ["grace@example.com", "Acme", "an operator", "in 3 days"] {
        browser.see(text);
    }
    browser.fill("New password", "short").fill("New password again", "shorter").press("Continue");
    assert!(browser.refusal("New password").contains("rules"));
    assert!(browser.refusal("New password again").contains("differ"));
    for (password, refused) in [("password", true), (PASSWORD, false)] {
        browser.fill("New password", password).fill("New password again", password).press("Continue");
        if refused {
            assert!(browser.refusal("New password").contains("common"));
        }
    }
    browser.see("Keep the recovery codes");
    let secret = browser.script("return document.querySelector('[data-secret]').dataset.secret", &[]);
    let codes =
        browser.script("return [...document.querySelectorAll('.codes code')].map((code) => code.textContent)", &[]);
    assert_eq!(codes.as_array().unwrap().len(), 10);
    // A camera must be able to read the code.
    let picture = vault.scratch("page.png");
    let encoded = browser.picture();
    fs::write(&picture, base64::Engine::decode(&base64::prelude::BASE64_STANDARD, encoded).unwrap()).unwrap();
    let mut reader = Command::new("zbarimg");
    reader.args(["--quiet", "--raw", "--set", "*.enable=0", "--set", "qr.enable=1"]).arg(&picture);
    let read = Run::of(&mut reader).done().stdout;
    assert!(read.starts_with("otpauth://totp/") && read.contains(secret.as_str().unwrap()), "{read}");

    browser.fill("Passcode", "000000").press("Finish").see("Enter the six digits shown now.");
    let authenticator = Authenticator::new(secret.as_str().unwrap());
    let used = authenticator.code(current_step());
    browser.fill("Passcode", &used).press("Finish").see("grace@example.com is enrolled");
    // Address and password are known. Each passcode works once.
    browser.fill("Next passcode", &used).press("Sign in").see("Wait until the app shows another passcode");
    browser.fill("Next passcode", codes[0].as_str().unwrap()).press("Sign in").see("Three steps to the first job");
    assert!(!browser.text().contains("Not saved yet"));
    browser.see("Acme");
    assert!(!browser.text().contains("Integrations"), "an editor sees nothing of admins");
    browser.check_nothing_refused();

    sign_out(browser).see("You are signed out.");
    let sessions = vault.account("Acme", "viewer").log_in(&vault.client());
    assert!(sessions.is_live());
}

#[test]
fn wrong_password_is_reported_and_input_is_kept() {
    let stage = Stage::start();
    let (browser, account) = (&stage.browser, stage.vault.account("Acme", "viewer"));
    browser.go(&stage.url("")).press("Sign in");
    assert_eq!(browser.refusal("E-mail"), "Enter the e-mail.");
    browser.fill("E-mail", &account.email).fill("Password", "not the password");
    browser.fill("Passcode", &account.recovery_code()).press("Sign in").see("Wrong e-mail, password or passcode");
    assert_eq!(browser.value("E-mail"), account.email);
    browser.fill("Password", &account.password).press("Sign in").see("Find");
    // The token is only in memory.
    let kept = "return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])";
    let kept = browser.script(kept, &[]).as_str().unwrap().to_owned();
    assert!(kept.starts_with("[{},{},\"\","), "{kept}");
    assert!(!kept.contains("v4.local"), "{kept}");
    browser.check_nothing_refused();
}

#[test]
fn scripts_are_well_typed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/vault-http/console");
    let folders = ["", "/pages", "/parts", "/rules"].map(|name| fs::read_dir(format!("{folder}{name}")).unwrap());
    let mut files: Vec<_> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "js"));
    assert!(files.len() > 10);
    let flags = "--allowJs --checkJs --noEmit --strict --noUncheckedIndexedAccess --noImplicitReturns --noUnusedLocals \
        --noUnusedParameters --module esnext --moduleResolution bundler --target es2023 --lib es2023,dom,dom.iterable";
    let flags = flags.split_whitespace();
    let mut check = Command::new("node");
    check.arg(npm_file("typescript/bin/tsc")).args(flags).args(&files).current_dir(folder);
    let run = Run::of(&mut check);
    assert_eq!(run.status, Some(0), "{}", run.stdout);
}

/// Runs the tests of the rules of the console, which need no browser.
#[test]
fn rules_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/vault-http/tests/rules");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let run = Run::of(Command::new("node").arg("--test").args(files));
    assert_eq!(run.status, Some(0), "{}", run.stdout);
}

#[test]
fn scripts_and_styles_are_formatted() {
    let mut check = Command::new("node");
    check.arg(npm_file("@biomejs/biome/bin/biome")).args(["ci", "--colors=off", "."]);
    let run = Run::of(check.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/vault-http")));
    assert_eq!(run.status, Some(0), "{}", run.stderr);
}

#[test]
fn pasted_examples_fill_form_of_each_type() {
    let (stage, session) = Stage::signed_in("editor");
    let profile =
        "[nightly]\naws_access_key_id = EXAMPLE-KEY-ID\naws_secret_access_key = 'a/secret+of=aws'\nregion=eu-central-1";
    let azure = json!({"appId": "11111111-2222-4333-8444-555555555555", "displayName": "nightly",
        "password": "a~secret.of_azure", "tenant": "99999999-2222-4333-8444-555555555555"});
    let connection =
        "DefaultEndpointsProtocol=https;AccountName=nightly;AccountKey=bm90IGEga2V5;EndpointSuffix=core.windows.net";
    let link = "https://files.example.com/in.csv?signature=bm90IG9uZQ";
    let cases: [(&str, &[&str], Option<&str>); 4] = [
        ("aws", &[profile], Some("nightly-imports")),
        ("azure", &[&azure.to_string(), connection], None),
        ("gcs", &[], Some("nightly-imports")),
        ("link", &[link], None),
    ];
    for (name, pasted, bucket) in cases {
        stage.visit("#/credentials/new").see("Paste a key, profile, connection string or link");
        for text in pasted {
            stage.paste("Paste a key, profile, connection string or link", text);
            stage.until(
                "an empty box again",
                "return [...document.querySelectorAll('.paste textarea')][0].value === ''",
                &[],
            );
        }
        if name == "gcs" {
            let file = stage.vault.scratch("key.json");
            fs::write(&file, samples::gcs().request["data"]["service_account_key"].to_string()).unwrap();
            stage.choose_file("Choose a file to fill the form", &file);
            stage.see("✓ Google Cloud Storage: 1 field filled.");
            // The key is identified, and its text is not shown.
            stage.see("✓ Key of ");
            let shown = "return document.querySelector('[name=\"data.service_account_key\"]').checkVisibility()";
            assert_eq!(stage.script(shown, &[]), false);
        }
        if let Some(bucket) = bucket {
            stage.fill("Bucket", bucket);
        }
        stage.fill("Namespace", &format!("pasted/{name}")).tick(CHECK).press("Save");
        stage.see("Its secrets are encrypted and are never shown again.");
    }
    let saved = session.list();
    let found = |name: &str| saved.iter().find(|item| item["namespace"] == format!("pasted/{name}")).unwrap();
    let aws = &found("aws")["information"];
    assert_eq!((&aws["bucket"], &aws["region"]), (&json!("nightly-imports"), &json!("eu-central-1")));
    assert_eq!(found("azure")["information"]["account_name"], "nightly");
    assert_eq!(found("azure")["information"]["tenant_id"], azure["tenant"]);
    assert!(found("gcs")["information"]["client_email"].is_string());
    assert_eq!(found("link")["information"]["host"], "files.example.com");
    // The data is exactly the pasted text, without the quotes of the profile.
    let data = json!({"access_key_id": "EXAMPLE-KEY-ID", "secret_access_key": "a/secret+of=aws", "bucket": "nightly-imports", "region": "eu-central-1"});
    let path = format!("/v1/organization-vault/{}/match", found("aws")["id"].as_str().unwrap());
    assert_eq!(session.call("POST", &path).json(&json!({"data": data})).send().expect(200).json()["same"], true);
    stage.check_nothing_refused();
}

#[test]
fn several_pasted_keys_are_saved_together() {
    let (stage, session) = Stage::signed_in("editor");
    stage.visit("#/credentials/new").see("Fill in by hand");
    let profiles = "[imports]\naws_access_key_id=AKIAFIRST\naws_secret_access_key=a\n[exports]\naws_access_key_id=AKIASECOND\naws_secret_access_key=b\nregion=eu-central-1";
    stage.paste("Paste a key, profile, connection string or link", profiles).press("Save all 2").press("Save all");
    let [imports, exports] = ["“imports”, S3 bucket, …IRST", "“exports”, S3 bucket, …COND"];
    assert_eq!(stage.refusal(&format!("Bucket of {imports}")), format!("Enter the bucket of {imports}."));
    stage.fill(&format!("Bucket of {imports}"), "in").fill(&format!("Bucket of {exports}"), "out");
    stage.fill(&format!("Namespace of {exports}"), "exports/nightly").press("Save all").see("2 done, 0 refused.");
    stage.press("Close").see("2 credentials");
    let saved = session.list();
    let found = |name: &str| saved.iter().find(|item| item["namespace"] == name).unwrap()["information"].clone();
    assert_eq!(found("imports")["bucket"], "in");
    assert_eq!(
        (&found("exports/nightly")["bucket"], &found("exports/nightly")["region"]),
        (&json!("out"), &json!("eu-central-1"))
    );
    stage.check_nothing_refused();
}

/// A secret is never put into another field, and an address is never dropped.
#[test]
fn pasted_text_fills_named_fields() {
    let stage = Stage::start();
    stage.sign_in("editor");
    let values = || ["Access key ID", "Secret access key", "Session token", "Endpoint"].map(|label| stage.value(label));
    let cases = [
        (
            "export AWS_ACCESS_KEY_ID=ASIAPASTED AWS_SECRET_ACCESS_KEY=a/b AWS_SESSION_TOKEN=c",
            ["ASIAPASTED", "a/b", "c", ""],
        ),
        (
            r#"{"url": "https://store.example:9000", "accessKey": "PASTED1", "secretKey": "d", "api": "s3v4", "path": "auto"}"#,
            ["PASTED1", "d", "", "https://store.example:9000"],
        ),
        (
            "Access Key ID\nPASTED2\nSecret Access Key\ne\nhttps://lake.example",
            ["PASTED2", "e", "", "https://lake.example"],
        ),
        (
            r#"{"cos_hmac_keys": {"access_key_id": "PASTED3", "secret_access_key": "f"}, "endpoints": "https://list.example/v2"}"#,
            ["PASTED3", "f", "", ""],
        ),
        (
            "[house]\ntype = s3\nprovider = Minio\naccess_key_id = PASTED4\nsecret_access_key = g\nendpoint = store.example:9000",
            ["PASTED4", "g", "", "https://store.example:9000"],
        ),
    ];
    stage.visit("#/credentials/new");
    for (text, expected) in cases {
        stage.paste("Paste a key, profile, connection string or link", text);
        stage.see(&format!("…{}: ", &expected[0][expected[0].len() - 4..]));
        assert_eq!(values(), expected.map(str::to_owned), "{text}");
    }
    assert_eq!(stage.value("Path-style access"), "true");
    stage.paste(
        "Paste a key, profile, connection string or link",
        "AWS_ACCESS_KEY_ID=OTHER\nAWS_SECRET_ACCESS_KEY=h\nS3_GATEWAY_LOOKUP=https://store.example",
    );
    stage.see("Nothing was filled in. S3_GATEWAY_LOOKUP");
    assert_eq!(values()[0], "PASTED4");
    stage.check_nothing_refused();
}

#[test]
fn error_is_shown_next_to_its_field() {
    let (stage, session) = Stage::signed_in("editor");
    stage.visit("#/credentials/new").press("Fill in by hand").fill("Namespace", "imports//nightly of mine");
    stage.fill("Access key ID", "EXAMPLE-KEY-ID").fill("Secret access key", "****************").tick(CHECK);
    stage.press("Save");
    assert_eq!(stage.refusal("Bucket"), "Enter the bucket.");
    stage.fill("Bucket", "nightly imports").press("Optional fields").fill("Endpoint", "not an address");
    stage.press("Save");
    assert_eq!(stage.refusal("Secret access key"), "Is a mask such as ****: enter the value itself.");
    for label in ["Namespace", "Bucket", "Endpoint"] {
        assert!(stage.refusal(label).len() > 10, "{label}");
    }
    // The first invalid field has the focus, and the next input removes its error.
    stage.until("the focus", "return document.activeElement.name === 'namespace'", &[]);
    stage.fill("Namespace", "imports/nightly");
    let refused = stage.script("return document.querySelectorAll('[aria-invalid]').length", &[]);
    assert_eq!(refused, 3);
    assert!(session.list().is_empty());
    stage.check_nothing_refused();
}

#[test]
fn credential_is_rotated_and_deleted_in_console() {
    let (stage, session) = Stage::signed_in("editor");
    let (browser, number) = (&stage.browser, std::cell::Cell::new(0));
    let markup = "<img src=x onerror=alert(1)>";
    let mut request = samples::s3().request;
    request["description"] = json!(markup);
    let id = session.save(&request);
    let path = format!("/v1/organization-vault/{id}");
    let versions = || {
        let versions = session.call("GET", &format!("{path}/versions")).send().expect(200).json();
        let version = |item: &Value| format!("{} {}", item["version"], item["state"].as_str().unwrap());
        versions.as_array().unwrap().iter().map(version).collect::<Vec<_>>()
    };
    let replace = |immediately: bool| {
        number.set(number.get() + 1);
        browser.press("Rotate the key").see("Data is replaced as a whole");
        browser.fill("Access key ID", &format!("EXAMPLE-KEY-ID-{}", number.get()));
        browser.fill("Secret access key", &format!("secret number {}", number.get()));
        if immediately {
            browser.choose("Jobs use it", "false");
        }
        browser.tick(CHECK).press("Save as a new version");
    };
    stage.visit("#/credentials");
    let namespace = request["namespace"].as_str().unwrap();
    browser.press(namespace);
    browser.see(markup); // as text
    // A new key is staged until it is promoted. The location is copied.
    replace(false);
    browser.see("Version 2 is staged. Jobs still use the current key.");
    browser
        .see("Changed: access key ID, secret access key, session token (removed), external ID (removed) (fingerprint ");
    assert_eq!(versions(), ["1 current", "2 staged"]);
    browser.press("Promote").press("Promote").see("Version 2 is current. Jobs use it from their next run.");
    browser.see("No job can use the old key any more");
    assert_eq!(versions(), ["2 current", "1 previous"]);
    // Roll back and forth again.
    browser.press("Roll back to version 1").press("Roll back").see("Version 1 is current again.");
    assert_eq!(versions(), ["1 current", "2 previous"]);
    browser.see("All jobs use version 1. No job can use version 2 any more.");
    browser.press("Promote version 2 again").press("Promote").see("Version 2 is current again.");
    browser.press("I’ve disabled the old key — delete version 1").press("Delete").see("Rotation complete");
    browser.press("Back to credential");
    replace(true);
    browser.see("Version 3 is current");
    assert_eq!(versions(), ["3 current", "2 previous"]);
    browser.press("Back to credential");

    let more = |action: &str| {
        browser.press(&format!("More actions for {namespace}")).press(action);
    };
    more("Compare");
    browser.see("Paste a key to see if it is the one stored");
    browser.fill("Access key ID", "EXAMPLE-KEY-ID-2").fill("Secret access key", "another secret");
    browser.press("Compare").see("Different: at least one field differs from the saved one.");
    // The correct key matches without entering its location again.
    browser.fill("Secret access key", "secret number 2").press("Compare").see("This is the saved key.");
    browser.press("Back");

    more("Edit");
    browser.fill("Labels", "team: data\nenv: test").fill("Description", "of the nightly import").press("Save");
    browser.see("team:data");
    let shown = session.call("GET", &path).send().expect(200).json();
    assert_eq!(shown["labels"], json!({"team": "data", "env": "test"}));

    // Another user changes it concurrently.
    more("Edit");
    session.call("PATCH", &path).json(&json!({"description": "another's"})).send().expect(200);
    browser.fill("Description", "mine").press("Save").see("description to “another's”").see("Save mine");
    // A single Escape does not discard input.
    browser.key(Key::Escape).see("Press Escape again to discard it.").key(Key::Escape);
    browser.until("no dialog", "return !document.querySelector('dialog')", &[]);
    assert_eq!(session.call("GET", &path).send().expect(200).json()["description"], "another's");

    stage.visit("#/credentials").press(namespace).see("another's");
    more("Delete");
    browser.press("Cancel");
    assert_eq!(session.list().len(), 1);
    more("Delete");
    browser.until("the question", "return document.querySelector('dialog[open]')", &[]);
    browser.press("Delete").see("Deleted the credential of");
    assert!(session.list().is_empty());
    browser.check_nothing_refused();
}

#[test]
fn login_after_expired_session_returns_to_page() {
    let (stage, account, session) = Stage::signed_in_as("editor");
    session.save(&samples::s3().request);
    stage.visit("#/account").see("Sessions");
    // Five minutes before it expires, the session shows a warning.
    let later = "const now = Date.now; globalThis.later ??= 0; Date.now = () => now() + later; later = arguments[0]";
    stage.script(later, &[json!(56 * 60 * 1000)]);
    stage.see("Your session ends at");
    stage.press("Stay signed in").fill("Password", &account.password);
    stage.fill("Passcode", &account.recovery_code()).press("Stay signed in");
    stage.until("no warning", "return document.querySelector('.session-warning').hidden", &[]);
    stage.see("Sessions");
    stage.script("later = arguments[0]", &[json!(3 * 60 * 60 * 1000)]);
    stage.see("Your session has expired.");
    assert!(!stage.text().contains("Find"));
    let again = || {
        stage.fill("Password", &account.password).fill("Passcode", &account.recovery_code()).press("Sign in");
        stage.until("no dialog", "return !document.querySelector('dialog')", &[]);
    };
    again();
    stage.see("Recovery codes left");
    // A session that was ended on the server is noticed with the next request. After the login, the input is restored.
    stage.visit("#/credentials/new");
    stage.press("Fill in by hand").fill("Namespace", "imports/typed").fill("Access key ID", "EXAMPLE-KEY-ID");
    stage.fill("Secret access key", "a secret that is typed").fill("Bucket", "nightly-imports");
    for item in session.get("/account/sessions").expect(200).json().as_array().unwrap() {
        if item["current"] == false {
            let path = format!("/v1/account/sessions/{}", item["id"].as_str().unwrap());
            session.call("DELETE", &path).send().expect(204);
        }
    }
    stage.tick(CHECK).press("Save").see("Your session has ended.");
    assert!(!stage.text().contains("Add a credential"), "the page is not shown without a session");
    stage.until("the focus in the dialog", "return document.activeElement.closest('dialog.locked')", &[]);
    again();
    assert!(!stage.text().contains("invalid token"), "the cause is not reported after the login");
    assert_eq!(stage.value("Secret access key"), "a secret that is typed");
    stage.press("Save").see("never shown again");
    // Another user does not see the input.
    stage.visit("#/credentials/new").press("Fill in by hand").fill("Namespace", "imports/private");
    sign_out(&stage).see("You are signed out.");
    stage.sign_in_as(&stage.vault.account("Acme", "editor"));
    stage.visit("#/credentials/new").press("Fill in by hand");
    assert_eq!(stage.value("Namespace"), "");
    stage.check_nothing_refused();
}

#[test]
fn typed_input_survives_navigation() {
    let (stage, session) = Stage::signed_in("editor");
    let first = session.save(&samples::small("imports/nightly", 1));
    stage.visit("#/credentials/new");
    stage.paste(
        "Paste a key, profile, connection string or link",
        "Access key ID,Secret access key\nAKIAEXAMPLECSV,a/secret+of=csv",
    );
    stage.see("✓ S3 bucket, …ECSV: 2 fields filled.").see("Next: namespace and bucket.");
    stage.until("the first empty field", "return document.activeElement.name === 'namespace'", &[]);
    stage.visit("#/account").see("Not saved yet:");
    stage.script("history.back()", &[]);
    stage.see("Paste a key, profile, connection string or link");
    assert_eq!(stage.value("Secret access key"), "a/secret+of=csv");
    // A link next to a filled form can be used as its endpoint.
    stage.paste("Paste a key, profile, connection string or link", "https://s3.example.com");
    stage.press("Use it as the endpoint");
    assert_eq!(
        (&*stage.value("Endpoint"), &*stage.value("Access key ID")),
        ("https://s3.example.com", "AKIAEXAMPLECSV")
    );
    // Typed text is read when its author is ready.
    let typed = "[typed]\naws_access_key_id=AKIATYPED\naws_secret_access_key=a\n";
    stage.fill("Paste a key, profile, connection string or link", typed);
    assert_eq!(
        (&*stage.value("Paste a key, profile, connection string or link"), &*stage.value("Access key ID")),
        (typed, "AKIAEXAMPLECSV")
    );
    stage.press("Fill in the fields").see("✓ “typed”");
    assert_eq!(stage.value("Access key ID"), "AKIATYPED");
    // One of several keys can be selected.
    let profiles = "[default]\naws_access_key_id=AKIAFIRST\naws_secret_access_key=a\n[other]\naws_access_key_id=AKIASECOND\naws_secret_access_key=b";
    stage.paste("Paste a key, profile, connection string or link", profiles).press("“other”, S3 bucket, …COND");
    assert_eq!(
        (&*stage.value("Access key ID"), &*stage.value("Paste a key, profile, connection string or link")),
        ("AKIASECOND", "")
    );
    // A second credential in a namespace breaks jobs, so it needs a confirmation.
    stage.fill("Namespace", "imports/nightly").fill("Bucket", "nightly-imports").tick(CHECK).press("Save");
    stage.see("imports/nightly already has 1 credential.");
    assert_eq!(session.ids(), [first]);
    stage.tick("Save another credential in this namespace all the same").press("Save").see("never shown again");
    assert_eq!(session.list().len(), 2);
    stage.see("imports/nightly has several credentials.");
    assert!(!stage.text().contains("Not saved yet"));
    stage.check_nothing_refused();
}

/// Signs out in the menu at the top right, whose name starts with the address of the user.
fn sign_out(browser: &Browser) -> &Browser {
    browser.script("document.querySelector('.account').click()", &[]);
    browser.press("Sign out")
}

/// Waits until the list of the audit log has entries of this action, which appear after a checkpoint contains them.
fn audited(session: &Session, action: &str, count: usize) {
    let path = format!("/v1/audit?action={action}");
    let entries = || session.call("GET", &path).send().expect(200).json().as_array().unwrap().len();
    eventually(action, || entries() >= count);
}

/// Returns all lines that are printed.
fn printed(browser: &Browser) -> Vec<String> {
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    // No code is truncated.
    let cut = "return [...document.querySelectorAll('.codes code')].filter((code) => { \
        for (let box = code.parentElement; box; box = box.parentElement) { \
            const [inner, outer] = [code.getBoundingClientRect(), box.getBoundingClientRect()]; \
            if (getComputedStyle(box).overflowY !== 'visible' && inner.bottom > outer.bottom) return true; \
        } return false; }).length";
    assert_eq!(browser.script(cut, &[]), 0);
    let text = browser.text();
    browser.devtools("Emulation.setEmulatedMedia", &json!({"media": ""}));
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Asserts that the lines are a heading with `email`, one sentence about the codes, and the ten codes.
#[track_caller]
fn assert_only_codes(lines: &[String], email: &str) {
    let [heading, sentence, codes @ ..] = lines else { panic!("{lines:#?}") };
    assert!(heading.starts_with(&format!("OrgVault recovery codes of {email} at 127.")), "{lines:#?}");
    assert!(sentence.starts_with("Each of these signs you in once"), "{lines:#?}");
    let is_code = |code: &String| code.len() > 20 && code.chars().all(|sign| sign.is_ascii_digit() || sign == '-');
    assert_eq!((codes.len(), codes.iter().filter(|code| is_code(code)).count()), (10, 10), "{lines:#?}");
}

#[test]
fn recovery_codes_are_printed_and_nothing_else() {
    let stage = Stage::start();
    let (vault, browser) = (&stage.vault, &stage.browser);
    vault.organization("Acme");
    let invite = ["account", "invite", "--org", "Acme", "--email", "grace@example.com", "--role", "editor"];
    let code = vault.json(&invite)["enrolment_code"].as_str().unwrap().to_owned();
    browser.go(&stage.url(&format!("#/enrol/{code}"))).fill("New password", PASSWORD);
    browser.fill("New password again", PASSWORD).press("Continue").see("Keep the recovery codes");
    let secret = browser.script("return document.querySelector('[data-secret]').dataset.secret", &[]);
    let lines = printed(browser);
    assert_only_codes(&lines, "grace@example.com");
    assert!(!lines.concat().contains(secret.as_str().unwrap()));

    let (account, _) = stage.sign_in("viewer");
    stage.visit("#/account").press("New recovery codes").fill("Password", &account.password);
    browser.fill("Passcode", &account.recovery_code()).press("Create new codes");
    browser.until("new codes", "return document.querySelectorAll('.codes code').length === 10", &[]);
    assert_only_codes(&printed(browser), &account.email);
    // The old codes are invalid, so only the button closes the new ones.
    browser.key(Key::Escape).key(Key::Escape);
    browser.until("the codes", "return document.querySelectorAll('dialog[open] .codes code').length === 10", &[]);
    browser.press("I’ve saved these codes").check_nothing_refused();
}

#[test]
fn saved_credential_is_checked_at_its_storage() {
    let moto = Moto::start();
    moto.create_bucket("exports");
    let reader = moto.create_user("reader", ALL);
    moto.evaluate();
    let data = json!({
        "access_key_id": reader.id, "secret_access_key": reader.secret, "bucket": "exports", "region": "us-east-1",
        "endpoint": moto.endpoint(), "path_style_access": true,
    });
    let listen = format!("--activation-listen={}", free_address());
    let stage = Stage::start_with(&[&listen, "--allow-egress=127.0.0.0/8"]);
    let (_, session) = stage.sign_in("editor");
    let id = session.save(&json!({"type": "s3", "namespace": "checked", "data": data}));
    stage.visit(&format!("#/credentials/{id}")).see("unchecked");
    stage.press("More actions for checked").press("Check now").see("Version 1: Works.").see("healthy");

    // Replace the key by one that is unknown to the provider.
    let mut unknown = data.clone();
    unknown["access_key_id"] = "AKIAUNKNOWNUNKNOWN12".into();
    session.replace(&id, &json!({"data": unknown}), false).expect(201);
    stage.press("More actions for checked").press("Check now").see("Version 2: Does not work: unknown key.");
    stage.see("failing");

    // With the check enabled, a credential that the provider rejects is not saved.
    stage.visit("#/credentials/new").press("Fill in by hand");
    for (label, text) in [
        ("Namespace", "checked/first"),
        ("Access key ID", "AKIAUNKNOWNUNKNOWN12"),
        ("Secret access key", &reader.secret),
        ("Bucket", "exports"),
    ] {
        stage.fill(label, text);
    }
    stage.press("Optional fields").fill("Region", "us-east-1").fill("Endpoint", &moto.endpoint());
    stage.choose("Path-style access", "true").press("Save and check").see("Nothing was saved.");
    stage.see("The storage provider does not accept this.").see("unknown key");
    assert_eq!(session.list().len(), 1);
    stage.fill("Access key ID", &reader.id).press("Save and check");
    stage.see("Its secrets are encrypted and are never shown again. Check passed.");
    // The check counts as health, and the activity is never empty.
    stage.see("✓ healthy");
    stage.press("Activity").see("was saved.");
    assert_eq!(session.list().len(), 2);
    stage.check_nothing_refused();
}

#[test]
fn keyless_credentials_are_saved_trusted_and_checked() {
    let Keyless { vault, mut providers, .. } = Keyless::start(Vault::init(Database::Sqlite), &[]);
    let azurite = providers.start_azurite();
    azurite.create_container("nightly");
    let stage = Stage { vault, browser: Browser::open(1280, 900) };
    let (_, session) = stage.sign_in("editor");
    let provider = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/vault/providers/orgvault";
    let fields: [&[(&str, &str)]; 3] = [
        &[("Role ARN", "arn:aws:iam::111122223333:role/nightly"), ("Bucket", "nightly"), ("Region", "eu-central-1")],
        &[
            ("Tenant ID", "contoso.onmicrosoft.com"),
            ("Client ID", "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a"),
            ("Storage account", azurite.account()),
            ("Container", "nightly"),
        ],
        &[
            ("Workload identity provider", provider),
            ("Service account", "nightly@acme-data.iam.gserviceaccount.com"),
            ("Bucket", "nightly"),
        ],
    ];
    for (kind, fields) in KeylessType::ALL.into_iter().zip(fields) {
        stage.visit("#/credentials/new").press("Fill in by hand").choose("Type", kind.name);
        stage.fill("Namespace", &format!("nightly/{}", kind.name)).press("Save");
        assert!(!stage.refusal(fields[0].0).is_empty());
        for (label, text) in fields {
            stage.fill(label, text);
        }
        keep_picture(&stage, &format!("keyless-{}-form", kind.provider));
        stage.press("Save").see("Saved. Set up its provider trust next.");
        let id = stage.script("return location.hash.split('/')[2]", &[]).as_str().unwrap().to_owned();
        let trust = session.get(&format!("/organization-vault/{id}/trust")).expect(200).json();
        let subject = trust["subject"].as_str().unwrap();
        stage.see(subject);
        for step in trust["steps"].as_array().unwrap() {
            stage.see(step["title"].as_str().unwrap());
        }
        stage.press("Check now");
        stage.see(
            "Version 1: Does not work: the provider does not trust this credential. Apply the steps under “Provider trust”.",
        );
        keep_picture(&stage, &format!("keyless-{}-missing", kind.provider));
        if kind.provider == "azure" {
            for (subject, result) in [("*", "the provider trusts any subject."), (subject, "Version 1: Works.")] {
                providers.trust(fields[1].1, subject);
                stage.press("Check now").see(result);
            }
        }
        stage.press("View credential").press("Provider trust").see(subject);
        keep_picture(&stage, &format!("keyless-{}-detail", kind.provider));
        stage.press("Change data").see("must trust the same subject");
        stage.fill(fields[0].0, &format!("{}2", fields[0].1)).choose("Jobs use it", "true");
        stage.press("Save as a new version").see("Version 2 is staged. Jobs still use the current data.");
        stage.press("Continue rotation").press("Check the new data").see("Version 2: ");
        keep_picture(&stage, &format!("keyless-{}-staged", kind.provider));
        stage.press("Promote");
        if kind.provider != "azure" {
            stage.press("Promote"); // although the check failed
        }
        stage.see("No job can use the old data any more.");
        keep_picture(&stage, &format!("keyless-{}-promoted", kind.provider));
        if kind.provider == "s3" {
            stage.press("Delete version 1").press("Delete").see("0 jobs have used the new data.");
        }
    }
    stage.visit("#/credentials").see("3 credentials");
    keep_picture(&stage, "keyless-list");
    stage.visit("#/overview").see("Needs attention");
    let text = stage.text();
    assert!(!text.contains("Not known: expiry") && !text.contains("rotation not finished"), "{text}");
    stage.check_nothing_refused();
}

#[test]
fn tables_fit_a_phone_without_breaking_names() {
    let vault = Vault::start_with(Database::Sqlite, &["--federation-issuer", ISSUER]);
    let stage = Stage { vault, browser: Browser::open(500, 800) };
    let (_, session) = stage.sign_in("admin");
    let trusts: Vec<_> = save_keyless(&session).iter().map(|id| format!("#/credentials/{id}/trust")).collect();
    let phone = json!({"width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": true});
    stage.devtools("Emulation.setDeviceMetricsOverride", &phone);
    for email in ["ada@example.com", "augusta.ada.byron.countess.of.lovelace@analytical-engines.example.com"] {
        session.invite(email, "editor").expect(201);
    }
    audited(&session, "account.invited", 2);
    let trusts = trusts.iter().map(|place| (&**place, "Check the credential"));
    for (place, sign) in
        [("#/accounts", "countess"), ("#/account", "Recovery codes left"), ("#/audit", "invited account")]
            .into_iter()
            .chain(trusts)
    {
        stage.visit(place).see(sign);
        let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
        assert_eq!(stage.script(wide, &[]), false, "{place} scrolls sideways");
        keep_picture(&stage, &format!("phone-{}", place[2..].replace(['/', '?'], "-")));
    }
    // Lines break only between the parts of an address.
    let broken = "const parts = [...document.querySelectorAll('.table .parted')].flatMap((one) => [...one.childNodes]) \
        .filter((node) => node.nodeType === Node.TEXT_NODE); const range = document.createRange(); \
        return [parts.length, parts.filter((part) => { range.selectNodeContents(part); \
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1; }).map((part) => part.data)]";
    for (place, sign) in [("#/accounts", "countess"), ("#/audit", "invited account")] {
        stage.visit(place).see(sign);
        let found = stage.script(broken, &[]);
        assert!(found[0].as_u64().unwrap() >= 10 && found[1] == json!([]), "{place}: {found}");
    }
    stage.check_nothing_refused();
}

#[test]
fn reload_keeps_the_session_and_leaves_nothing_behind() {
    let (stage, session) = Stage::signed_in("viewer");
    stage.visit("#/account").see("Recovery codes left");
    for _ in 0..2 {
        stage.script("location.reload()", &[]);
        stage.until("another page", "return performance.getEntriesByType('navigation')[0].type === 'reload'", &[]);
        stage.see("Recovery codes left");
        let kept = "return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])";
        assert_eq!(stage.script(kept, &[]), "[{},{},\"\"]");
    }
    assert_eq!(session.get("/account/sessions").expect(200).json().as_array().unwrap().len(), 2);
    // A session that another tab stored long ago is not used.
    let old = "sessionStorage.setItem('orgvault.reload', JSON.stringify({ token: 'v4.local.x', endsAt: Date.now() + 1e6, \
        left: Date.now() - 61000 })); return Date.now()";
    sign_out(&stage).see("You are signed out.");
    stage.script(old, &[]);
    stage.script("location.reload()", &[]);
    stage.see("Passcode");
    assert_eq!(stage.script("return sessionStorage.length", &[]), 0);
    stage.check_nothing_refused();
}

#[test]
fn open_tabs_share_the_session_until_one_signs_out() {
    let (stage, session) = Stage::signed_in("editor");
    let id = session.save(&samples::small("imports/nightly", 1));
    let first = stage.tab();
    let second = stage.new_tab();
    stage.go(&stage.url(&format!("#/credentials/{id}"))).see("imports/nightly");
    assert_eq!(session.get("/account/sessions").expect(200).json().as_array().unwrap().len(), 2);
    sign_out(&stage).see("You are signed out.");
    stage.switch(&first);
    stage.see("You signed out in another tab.");
    // Without a session there is nothing to share.
    stage.switch(&second);
    stage.script("location.reload()", &[]);
    stage.see("Passcode").check_nothing_refused();
}

#[test]
fn search_finds_any_object_and_bulk_changes_work() {
    let (stage, session) = Stage::signed_in("admin");
    for number in 0..3 {
        session.save(&samples::small(&format!("team/job-{number}"), number));
    }
    stage.script("document.activeElement.blur()", &[]);
    stage.keys("/");
    stage.until("the dialog", "return document.querySelector('dialog.find[open]')", &[]);
    stage.keys("job-1");
    stage.until(
        "the credential",
        "return document.querySelector('[aria-selected=\"true\"]')?.textContent.includes('team/job-1')",
        &[],
    );
    stage.key(Key::Enter);
    stage.until("its page", "return document.querySelector('h1').textContent === 'team/job-1'", &[]);
    stage.see("Activity");

    stage.visit("#/credentials?namespace=team").see("3 credentials");
    stage.press("Select all").see("3 credentials selected");
    stage.press("Label").fill("Label", "owner").fill("Value", "data").press("Apply label");
    stage.see("3 done, 0 refused.").press("Close").see("owner:data");
    assert!(session.list().iter().all(|item| item["labels"]["owner"] == "data"));
    stage.press("Select all").press("Freeze").see("Freeze 3 namespaces?");
    stage.see("No job used them in the last 7 days.").press("Freeze").see("3 done, 0 refused.");
    stage.press("Close").see("frozen").check_nothing_refused();
}

#[test]
fn single_keys_and_find_perform_actions() {
    let (stage, session) = Stage::signed_in("admin");
    session.save(&samples::small("imports/nightly", 0));
    stage.see("Needs attention"); // the page after the login is loaded
    let press = |keys: &str| {
        stage.script("document.activeElement.blur()", &[]);
        stage.keys(keys);
    };
    let find = |text: &str, expected: &str| {
        press("/");
        stage.until("the dialog", "return document.querySelector('dialog.find[open]')", &[]);
        stage.keys(text);
        let first =
            "return document.querySelector('dialog [aria-selected=\"true\"]')?.textContent.includes(arguments[0])";
        stage.until(expected, first, &[json!(expected)]);
        stage.key(Key::Enter);
    };
    find("rotate", "Rotate imports/nightly");
    stage.see("Data is replaced as a whole");
    find("connect", "Connect a job to imports/nightly");
    stage.see("Create and show the token");
    stage.key(Key::Escape);
    find("freeze", "Freeze imports/nightly");
    stage.see("Freeze imports/nightly?");
    stage.key(Key::Escape);
    // The end of its key ID leads to the version, who has it, and what stops it.
    find("0000", "Search it as a key");
    stage.see("Version 1 of imports/nightly").see("Its key ID ends alike. Jobs get it at each run.");
    stage.see("No job used this version in the last 30 days.").see("Freeze imports/nightly");
    stage.fill(
        "Key",
        "AWS_ACCESS_KEY_ID=AKIAQ3EGRIYLK0000000\nAWS_SECRET_ACCESS_KEY=7sGh+Wm0y5RkPzXvB/Lq9eTcUj2NdFa000000000",
    );
    stage.press("Search all versions").see("It contains exactly this key.");
    find("invite", "Invite user");
    stage.until("the dialog", "return document.querySelector('dialog[open] [name=email]')", &[]);
    stage.key(Key::Escape);
    find("dark", "Theme: Dark");
    stage.until("the theme", "return document.documentElement.dataset.theme === 'dark'", &[]);
    press("gc");
    stage.see("1 credential");
    press("j");
    stage.until("the row", "return document.activeElement.textContent === 'imports/nightly'", &[]);
    stage.keys("x").see("1 credential selected");
    press("c");
    stage.see("Paste a key, profile, connection string or link");
    press("?");
    stage.see("Next row, previous row");
    stage.tick("Shortcuts of single keys").press("Close");
    press("gc");
    stage.see("Paste a key, profile, connection string or link");
    find("sign out", "Sign out");
    stage.see("You are signed out.").check_nothing_refused();
}

#[test]
fn keyboard_suffices_to_sign_in_and_save() {
    let stage = Stage::start();
    let account = stage.vault.account("Acme", "editor");
    let session = account.log_in(&stage.vault.client());
    stage.go(&stage.url("")).see("Passcode");
    for (label, text) in
        [("E-mail", &account.email), ("Password", &account.password), ("Passcode", &account.recovery_code())]
    {
        stage.tab_to(label).keys(text);
    }
    stage.key(Key::Enter).see("Three steps to the first job");
    stage.until("the focus on the heading", "return document.activeElement.tagName === 'H1'", &[]);
    stage.tab_to("Add a credential").key(Key::Enter).tab_to("Fill in by hand").key(Key::Enter);
    for (label, text) in [
        ("Namespace", "imports/nightly"),
        ("Access key ID", "EXAMPLE-KEY-ID"),
        ("Secret access key", "a secret of the keyboard"),
        ("Bucket", "nightly-imports"),
    ] {
        stage.tab_to(label).keys(text);
    }
    stage.tab_to(CHECK).key(Key::Space).tab_to("Save").key(Key::Space).see("never shown again");
    assert_eq!(session.list().len(), 1);
    // A dialog keeps the focus, and Escape closes it.
    stage.tab_to("More actions for imports/nightly").key(Key::Enter).tab_to("Delete").key(Key::Enter);
    stage.until("the focus in the dialog", "return document.activeElement.closest('dialog') !== null", &[]);
    stage.key(Key::Escape);
    stage.until("the focus back", "return document.activeElement.textContent === '⋯'", &[]);
    stage.tab_to(&format!("{}, account menu", account.email)).key(Key::Enter).tab_to("Sign out");
    stage.key(Key::Enter).see("You are signed out.");
}

#[test]
fn axe_finds_nothing_on_any_page() {
    let stage = Stage::start_with(&["--federation-issuer", ISSUER]);
    let (vault, browser) = (&stage.vault, &stage.browser);
    let axe = fs::read_to_string(npm_file("axe-core/axe.min.js")).unwrap();
    // The content security policy prohibits how axe inspects pages.
    browser.devtools("Page.setBypassCSP", &json!({"enabled": true}));
    let check = |what: &str| {
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            let found = browser.axe(&axe);
            assert!(found.is_empty(), "{what}, {scheme}: {found:#?}");
        }
    };
    vault.organization("Acme");
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let invited = session.invite("grace@example.com", "editor").expect(201).json();
    browser.go(&stage.url(&format!("#/enrol/{}", invited["enrolment_code"].as_str().unwrap())));
    browser.fill("New password", PASSWORD).fill("New password again", PASSWORD);
    check("enrolment: password");
    browser.press("Continue").see("Keep the recovery codes");
    check("enrolment: authenticator");
    browser.go(&stage.url("")).press("Sign in");
    browser.refusal("E-mail");
    check("sign in, refused");

    let id = session.save(&samples::s3().request);
    session.replace(&id, &samples::s3().request, true).expect(201);
    session.save(&samples::direct_link().request);
    let keyless = save_keyless(&session);
    let integration = json!({"name": "nightly import", "namespaces": ["imports/*"]});
    let job = session.post("/integrations", &integration).expect(201).json();
    let job = job["id"].as_str().unwrap();
    let receiver = json!({"kind": "webhook", "url": "https://hooks.example/x"});
    session.post("/receivers", &receiver).expect(201);
    audited(&session, "integration.created", 1);
    stage.sign_in_as(&admin);
    for (place, sign) in [
        ("#/overview", "Needs attention"),
        ("#/credentials", "Last used"),
        (&*format!("#/credentials/{id}/rotate"), "What changes"),
        ("#/credentials?health=failing", "No credential matches"),
        ("#/credentials/new", "Paste a key, profile, connection string or link"),
        (&*format!("#/credentials/{id}"), "Connect a job"),
        (&*format!("#/credentials/{id}?tab=versions"), "Promote"),
        (&*format!("#/credentials/{id}?tab=activity"), "saved it"),
        (&*format!("#/credentials/{id}?tab=details"), "Fingerprint"),
        (&*format!("#/credentials/{id}/replace"), "Data is replaced as a whole"),
        (&*format!("#/credentials/{id}/match"), "Paste a key to see if it is the one stored"),
        ("#/credentials/00000000-0000-7000-8000-000000000000", "This credential does not exist."),
        ("#/account", "Recovery codes left"),
        ("#/accounts", "grace@example.com"),
        ("#/integrations", "nightly import"),
        (&*format!("#/integrations/{job}"), "imports/*"),
        (&*format!("#/integrations/{job}?tab=runs"), "No runs in the last 30 days."),
        (&*format!("#/integrations/{job}?tab=workloads"), "No issuer of identity tokens is registered."),
        (&*format!("#/integrations/{job}?tab=connect"), "Where the job runs"),
        ("#/namespaces", "Freeze"),
        ("#/receivers", "https://hooks.example/…"),
        ("#/audit", "created integration"),
    ] {
        stage.visit(place).see(sign);
        check(place);
    }
    for id in &keyless {
        for (place, sign) in [
            ("/trust", "Set up provider trust"),
            ("?tab=trust", "Check the credential"),
            ("?tab=details", "Created"),
            ("/replace", "must trust the same subject"),
        ] {
            stage.visit(&format!("#/credentials/{id}{place}")).see(sign);
            check(place);
        }
    }
    stage.visit("#/credentials/new").press("Fill in by hand");
    for kind in KeylessType::ALL {
        browser.choose("Type", kind.name);
        check(kind.name);
    }
    for (place, button) in [
        ("#/account", "Change password"),
        ("#/accounts", "Invite user"),
        ("#/integrations", "Create an integration"),
        ("#/receivers", "Add a receiver"),
        ("#/receivers", "Events https://hooks.example/…"),
        ("#/receivers", "Deliveries https://hooks.example/…"),
        ("#/overview", "Find"),
        (&*format!("#/credentials/{id}"), "Connect a job"),
        (&*format!("#/credentials/{id}"), "Set the expiry"),
    ] {
        stage.visit("#/nowhere").see("Needs attention");
        stage.visit(place).press(button);
        browser.until("a dialog", "return document.querySelector('dialog[open]')", &[]);
        check(button);
        browser.key(Key::Escape);
    }

    browser.go(&stage.url("docs")).see("Save a credential under a namespace");
    check("the description of the interface");
}

#[test]
fn a90_foreign_text_is_not_markup() {
    let (stage, session) = Stage::signed_in("admin");
    let markup = "<img src=x onerror=fetch('/seen')>";
    let mut request = samples::s3().request;
    request["description"] = json!(markup);
    let id = session.save(&request);
    let integration = json!({"name": markup, "namespaces": ["imports/*"]});
    session.post("/integrations", &integration).expect(201);
    let hostile = "%3Cimg%20src%3Dx%20onerror%3Dfetch(1)%3E";
    for (place, seen) in [
        (format!("#/credentials/{id}"), markup),
        ("#/integrations".to_owned(), markup),
        (format!("#/credentials?namespace={hostile}"), "Namespace"),
        (format!("#/credentials/{hostile}"), "This credential does not exist."),
        (format!("#/audit?subject={hostile}"), "Audit"),
    ] {
        stage.visit(&place).see(seen);
        let made = "return document.querySelectorAll('img, script:not([src^=\"/console/\"]), iframe').length";
        assert_eq!(stage.script(made, &[]), 0, "{place}");
    }
    // Even script in the page cannot convert text to markup.
    let refused = "try { document.body.innerHTML = arguments[0]; return 'made' } catch (error) { return error.name }";
    stage.check_nothing_refused();
    assert_eq!(stage.script(refused, &[json!(markup)]), "TypeError");
}

#[test]
fn admins_add_receivers_and_see_deliveries() {
    let receivers = Receivers::start();
    let flags = receivers.flags();
    let listen = format!("--activation-listen={}", free_address());
    let stage = Stage::start_with(&[&[listen.as_str()][..], &flags].concat());
    stage.sign_in("admin");
    stage.press("Notifications").see("No receivers yet.");
    stage.press("Add a receiver").fill("URL", "http://hooks.example/x").press("Add");
    assert!(stage.refusal("URL").contains("https"), "{}", stage.refusal("URL"));
    stage.fill("URL", &receivers.url("/hooks")).press("Add");
    let shown = "return document.querySelector('dialog[open] .secret code')?.textContent ?? null";
    let secret = stage.until("the secret", shown, &[]).as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    stage.press("Done").see("Added a receiver. Send it a test.");
    let name = format!("{}/…", receivers.web);
    stage.see(&name);
    stage.press(&format!("Test {name}"));
    receivers.next("/hooks", "receiver.test");
    stage.see("delivered");
    stage.press("Send receiver.test again");
    receivers.next("/hooks", "receiver.test");
    stage.press("Close").press(&format!("Events {name}")).tick("has expired").press("Save");
    stage.see(&format!("Saved {name}.")).see("14 of 15");
    stage.press(&format!("New secret {name}")).press("Create new secret");
    let next = stage.until("another secret", shown, &[]).as_str().unwrap().to_owned();
    assert_ne!(next, secret);
    stage.press("Done").press(&format!("Disable {name}")).press("Disable").see("It gets no events");
    stage.press(&format!("Remove {name}")).press("Remove").see(&format!("Removed receiver {name}."));

    stage.press("Add a receiver").choose("How", "email").fill("E-mail address", "stranger@example.com");
    stage.press("Add");
    stage.until("the refusal", "return document.querySelector('dialog[open] .refused')", &[]);
    assert!(stage.refusal("E-mail address").contains("no active account"));
    stage.press("Cancel").check_nothing_refused();
}

#[test]
fn admins_invite_create_integrations_and_freeze() {
    let (stage, session) = Stage::signed_in("admin");
    session.save(&samples::s3().request);
    let shown = "return document.querySelector('dialog[open] .secret code')?.textContent ?? null";

    stage.press("Accounts").press("Invite user").fill("E-mail", "grace@example.com").press("Invite");
    let link = stage.until("the link", shown, &[]).as_str().unwrap().to_owned();
    let code = link.strip_prefix(&stage.url("#/enrol/")).unwrap();
    stage.vault.client().enrol(code, PASSWORD).expect(200);
    // A secret that is shown once is not closed accidentally.
    stage.key(Key::Escape);
    assert_eq!(stage.script(shown, &[]), link);
    stage.press("Done").see("Invited grace@example.com.");
    stage.press("Invite user").fill("E-mail", "grace@example.com").press("Invite");
    stage.until("the refusal", "return document.querySelector('dialog[open] .note.bad')", &[]);
    stage.press("Cancel").press("Withdraw grace@example.com").press("Withdraw");
    stage.see("Withdrew the invitation of grace@example.com.");
    stage.until("the focus on the heading", "return document.activeElement.tagName === 'H1'", &[]);

    stage.press("Integrations").press("Create an integration").fill("Name", "nightly import");
    stage.fill("Namespaces", "imports/*\nno//pattern of ours").press("Create");
    assert!(!stage.refusal("Namespaces").is_empty());
    stage.fill("Namespaces", "imports/*\nexports").press("Create");
    let token = stage.until("the token", shown, &[]).as_str().unwrap().to_owned();
    assert!(token.starts_with("ovi_"));
    stage.see("--namespace exports").see("This server has no activation listener in its settings");
    stage.press("Done").see("Created integration nightly import.").see("Token last used never");
    assert!(!stage.text().contains(&token));
    stage.press("More actions for nightly import").press("New token nightly import").press("Issue a new token");
    let newer = stage.until("the token", shown, &[]);
    assert_ne!(newer, token);
    stage.press("Done").see("previous token until");
    stage.press("More actions for nightly import").press("Disable nightly import").press("Disable");
    stage.see("Disabled nightly import. Its tokens do not work.").press("Undo").see("Enabled nightly import.");
    stage.press("Undo").see("Disabled nightly import. Its tokens do not work.");
    let integrations = session.get("/integrations").expect(200).json();
    assert_eq!(
        (&integrations[0]["state"], &integrations[0]["namespaces"]),
        (&json!("disabled"), &json!(["exports", "imports/*"]))
    );

    // An integration without a token, for a workload identity.
    stage.press("Integrations").press("Create an integration").fill("Name", "etl");
    stage.fill("Namespaces", "exports").tick("Issue a token").press("Create");
    stage.see("No issuer of identity tokens is registered.");
    let issuer = TestIssuer::start();
    let add = ["issuer", "add", "github", "--issuer", &issuer.url(), "--require-claim", "/repository_owner_id"];
    stage.vault.run(&add).done();
    stage.press("Integrations").press("More actions for etl").press("Trusted workloads etl");
    stage.fill("Repository", "acme/etl").fill("Repository id", "7").press("Trust it");
    // All branches are trusted only if that is selected.
    assert!(!stage.refusal("Branch").is_empty());
    stage.fill("Branch", "main").press("Trust it");
    assert!(!stage.refusal("Owner id").is_empty());
    stage.fill("Owner id", "9").press("Trust it").see("Trusted. Its jobs need no stored token.");
    let integrations = session.get("/integrations").expect(200).json();
    let id = integrations[0]["id"].as_str().unwrap().to_owned();
    stage.see(&audience(&id));
    let trusts = || session.get(&format!("/integrations/{id}/trusts")).expect(200).json();
    let claims =
        json!({"/sub": "repo:acme@9/etl@7:ref:refs/heads/main", "/repository_id": "7", "/repository_owner_id": "9"});
    assert_eq!(trusts()[0]["claims"], claims);
    stage.press("Connect").tick("GitLab").tick("The job signs in with its own identity");
    stage.see(&format!("ORGVAULT_IDENTITY_TOKEN: {{aud: \"{}\"}}", audience(&id)));
    stage.press("Trusted workloads").press("Stop trusting github repo:acme@9/etl@7:ref:refs/heads/main");
    stage.press("Stop trusting").see("Removed. These jobs are denied from now on.");
    assert_eq!(trusts(), json!([]));

    let namespace = samples::s3().request["namespace"].as_str().unwrap().to_owned();
    stage.press("Namespaces").press(&format!("Freeze {namespace}")).press("Freeze");
    // The only integration for this namespace is disabled, so the freeze affects none.
    stage.see(&format!("Froze {namespace} (1 credential, 0 integrations)."));
    stage.press(&format!("Thaw {namespace}")).press("Thaw").see(&format!("Thawed {namespace}."));

    audited(&session, "namespace.frozen", 1);
    stage.press("Audit").see("integration nightly import");
    stage.choose("Did what", "namespace.frozen").press("Filter");
    let one = "return document.querySelectorAll('tbody tr:not(.group-row)').length === 1";
    stage.until("one entry", one, &[]);
    stage.check_nothing_refused();
}

#[test]
fn job_is_connected_from_its_credential() {
    let address = free_address();
    let stage = Stage::start_with(&[&format!("--activation-listen={address}")]);
    let (_, session) = stage.sign_in("admin");
    let id = session.save(&samples::small("imports/nightly", 0));
    let known = Integration::make(&stage.vault, "partner-sync", &["imports/*"]);
    // Integrations that may use a credential are listed before any has used it.
    stage.visit("#/credentials").see("Allowed jobs").see("partner-sync");
    stage.visit(&format!("#/credentials/{id}")).see("Can use it: partner-sync.");
    stage.press("Connect a job").see("--token-file partner-sync.token --namespace imports/nightly");
    stage.see("Waiting for the first run…");
    known.activate(&Client::new(address), "imports/nightly").expect(201);
    stage.see("partner-sync used it.");
    stage.choose("Job", "new").fill("Name", "nightly import").press("Create and show the token").see("ovi_");
    stage.tick("Kubernetes").see("nightly-import-orgvault");
    // The token is shown once, so Escape does not close the dialog.
    stage.key(Key::Escape).see("ovi_");
    stage.press("Done");
    let integrations = session.get("/integrations").expect(200).json();
    assert_eq!(integrations[0]["namespaces"], json!(["imports/nightly"]));
    stage.check_nothing_refused();
}

#[test]
fn editors_see_frozen_namespaces() {
    let stage = Stage::start();
    let (vault, browser) = (&stage.vault, &stage.browser);
    let admin = vault.account("Acme", "admin").log_in(&vault.client());
    let id = admin.save(&samples::small("imports/nightly", 0));
    admin.post("/namespaces/freeze", &json!({"namespace": "imports/nightly"})).expect(200);
    stage.sign_in("editor");
    browser.see("imports/nightly was frozen");
    stage.visit("#/credentials").see("frozen");
    stage.visit(&format!("#/credentials/{id}")).see("Its jobs are denied until an admin thaws it.");
}

#[test]
fn used_invitation_is_reported_before_a_password_is_chosen() {
    let stage = Stage::start();
    stage.vault.organization("Acme");
    stage.go(&stage.url("#/enrol/aaaaaaaaaaaaaaaaaaaaaaaaaa")).see("This invitation was used or has expired.");
    stage.see("Invitation code");
}

#[test]
fn owners_change_password_and_passcode() {
    let (stage, account, session) = Stage::signed_in_as("viewer");
    stage.visit("#/account").see("A recovery code was used.");
    stage.press("Change password").fill("Password", "not the password");
    stage.fill("Passcode", &account.recovery_code()).fill("New password", PASSWORD);
    stage.fill("New password again", PASSWORD).press("Change password").see("You stay signed in.");
    stage.fill("Password", &account.password).press("Change password");
    stage.see("Changed the password and ended all other sessions.");
    assert!(!session.is_live());

    stage.press("New recovery codes").fill("Password", PASSWORD).fill("Passcode", &account.recovery_code());
    stage.press("Create new codes");
    let codes = "const codes = [...document.querySelectorAll('.codes code')].map((code) => code.textContent); \
        return codes.length === 10 && codes";
    let codes = stage.until("new codes", codes, &[]);
    stage.press("I’ve saved these codes").see("Created new recovery codes");

    stage.press("Change authenticator").fill("Password", PASSWORD).fill("Passcode", codes[0].as_str().unwrap());
    stage.press("Continue");
    let secret =
        stage.until("the secret", "return document.querySelector('[data-secret]')?.dataset.secret ?? null", &[]);
    stage.fill("Passcode of the new secret", &Authenticator::new(secret.as_str().unwrap()).code(current_step()));
    stage.press("Finish").see("Changed the authenticator");

    sign_out(&stage);
    stage.fill("E-mail", &account.email).fill("Password", PASSWORD);
    stage.fill("Passcode", codes[1].as_str().unwrap()).press("Sign in").see("Find").check_nothing_refused();
}

#[test]
fn long_list_has_pages_and_a_viewer_only_reads() {
    let stage = Stage::start();
    let (_, session) = (stage.vault.admin(), stage.vault.account("Acme", "editor").log_in(&stage.vault.client()));
    for number in 0..120 {
        session.save(&samples::small(&format!("many/{number:03}"), number));
    }
    stage.sign_in("viewer");
    let first = "return document.querySelector('tbody a')?.textContent === arguments[0] \
        && document.querySelectorAll('tbody tr:not(.group-row)').length === arguments[1]";
    stage.visit("#/credentials").see("120 credentials");
    for (name, rows, button) in
        [("many/119", 100, "Next →"), ("many/019", 20, "← Previous"), ("many/119", 100, "Next →")]
    {
        stage.until(name, first, &[json!(name), json!(rows)]);
        stage.press(button);
    }
    // Going back shows the page that was left.
    stage.press("many/010").see("Versions");
    stage.script("history.back()", &[]);
    stage.until("the second page", first, &[json!("many/019"), json!(20)]);
    stage.press("Namespace");
    stage.until("sorted by name", first, &[json!("many/000"), json!(100)]);
    // A click next to the link opens the row, and the address keeps the order.
    stage.script("document.querySelector('tbody tr:not(.group-row) td').click()", &[]);
    stage.see("Versions");
    stage.script("history.back()", &[]);
    stage.until("sorted by name", first, &[json!("many/000"), json!(100)]);
    stage.fill("Namespace", "y/007");
    stage.until("one row", first, &[json!("many/007"), json!(1)]);
    stage.press("many/007").see("Versions");
    for word in ["Rotate the key", "Delete", "Edit", "Check", "Usage"] {
        let named = "return [...document.querySelectorAll('main button, main a, main h2')].some((one) => one.textContent === arguments[0])";
        assert_eq!(stage.script(named, &[json!(word)]), false, "{word}");
    }
    for place in ["#/credentials/new", "#/accounts", "#/audit"] {
        stage.visit("#/account").see("Recovery codes left");
        stage.visit(place).see("Your role does not permit this.");
    }
    stage.check_nothing_refused();
}

/// Returns the time in this number of hours.
fn in_hours(browser: &Browser, hours: i32) -> Value {
    browser.script(
        "return new Date(Date.now() + arguments[0] * 3600000).toISOString().slice(0, 19) + 'Z'",
        &[json!(hours)],
    )
}

#[test]
fn overview_lists_what_expires_first() {
    let (stage, session) = Stage::signed_in("editor");
    let mut request = samples::small("payroll/most-urgent", 0);
    session.save(&request);
    // An object that was not checked is not shown as healthy.
    stage.visit("#/account").see("Recovery codes left");
    stage.visit("#/overview").see("Not known: health of 1 credential, expiry of 1 credential.");
    session.delete(&session.ids()[0]).expect(204);
    for number in 0..8 {
        request = samples::small(
            &if number == 0 { "payroll/most-urgent".to_owned() } else { format!("later/{number}") },
            number,
        );
        request["expires_at"] = in_hours(&stage, 5 + 18 * i32::try_from(number).unwrap());
        session.save(&request);
    }
    stage.visit("#/account").see("Recovery codes left");
    stage.visit("#/overview");
    let first = "return document.querySelector('.concerns li')?.textContent.includes('payroll/most-urgent')";
    stage.until("the most urgent first", first, &[]);
    stage.see("in 5 hours").see("3 more credentials.").press("Set aside…").see("Only for you");
    stage.choose("Until", "").choose("Date", "2020-01-01").press("Set aside");
    stage.until("the refusal", "return document.querySelector('.field-error:not(:empty)')?.textContent", &[]);
    assert_eq!(stage.refusal("Date"), "Must be in the future and at most one year ahead.");
    stage.choose("Until", "7").press("Set aside");
    let aside =
        "return document.querySelector('.concerns:last-of-type li')?.textContent.includes('payroll/most-urgent')";
    stage.until("what was set aside last", aside, &[]);
    stage.see("2 more credentials.");
    let stored = session.get("/account/set-aside").expect(200).json();
    assert_eq!(stored.as_array().unwrap().len(), 1);
    stage.press("Show again").press("List all");
    let sorted = "return document.querySelector('[aria-sort=ascending]')?.textContent.startsWith('Expires') \
        && document.querySelector('tbody tr a')?.textContent === 'payroll/most-urgent'";
    stage.until("the list by expiry", sorted, &[]);
    // Relative times are updated while the page is shown.
    stage.script("const now = Date.now; Date.now = () => now() + 40 * 60000", &[]);
    stage.see("in 4 hours").check_nothing_refused();
}

#[test]
fn denied_jobs_failed_logins_and_open_rotations_are_shown() {
    let address = free_address();
    let stage = Stage::start_with(&[&format!("--activation-listen={address}")]);
    let (account, session) = stage.sign_in("admin");
    let id = session.save(&samples::small("backups/postgres", 0));
    let shipper = Integration::make(&stage.vault, "log-shipper", &["logs/*"]);
    let client = Client::new(address);
    shipper.activate(&client, "backups/postgres").problem("namespace-not-allowed");
    let wrong = json!({"email": account.email, "password": "wrong", "passcode": "123456"});
    stage.vault.client().log_in(&wrong).expect(401);
    // A rejection within the second of the promotion would count as one after it.
    let denied = in_hours(&stage, 0);
    eventually("the next second", || in_hours(&stage, 0).as_str() > denied.as_str());
    let mut second = samples::small("backups/postgres", 1);
    second["data"]["bucket"] = json!("exports-0");
    session.replace(&id, &second, true).expect(201);
    session.promote(&id, 2).expect(200);
    session.post("/receivers", &json!({"kind": "webhook", "url": "https://hooks.example/x"})).expect(201);
    audited(&session, "receiver.added", 1);
    stage.visit("#/credentials").see("Last used");
    stage.visit("#/overview").see("log-shipper was denied backups/postgres (no access), 1×");
    stage.see("backups/postgres: rotation not finished.");

    stage.visit("#/audit").see("log-shipper was denied backups/postgres: the integration has no access to it.");
    stage.see(&format!("Failed sign-in for {} from 127.0.0.0/24: wrong password", account.email));
    stage.see("promoted version 2 of backups/postgres.").see("added receiver https://hooks.example/…");
    stage.see("Today, ");
    stage.press("Denied jobs");
    let rows = "const rows = [...document.querySelectorAll('tbody tr:not(.group-row)')]; \
        return rows.length === 1 && rows[0].textContent.includes(arguments[0])";
    stage.until("the denied job", rows, &[json!("log-shipper was denied backups/postgres")]);
    stage.press("Failed sign-ins");
    stage.until("the failed sign-in", rows, &[json!("wrong password")]);
    stage.press("Everything").see("added receiver https://hooks.example/…");
    // The options are unique and name their subject.
    let choices = "const texts = [...document.querySelectorAll('select[name=action] option')].map(({ text }) => text); \
        return [new Set(texts).size === texts.length, texts.filter((text) => text.includes('receiver')).length];";
    assert_eq!(stage.script(choices, &[]), json!([true, 7]));
    stage.script("dispatchEvent(new Event('beforeprint'))", &[]);
    let lines = printed(&stage).join("\n");
    assert!(lines.contains("Acme at 127.") && lines.contains("added receiver"), "{lines}");
    assert!(!lines.contains("Find") && !lines.contains("Filter"), "{lines}");

    stage.visit("#/overview").press("Grant access");
    assert_eq!(stage.value("Namespaces"), "logs/*\nbackups/postgres");
    stage.press("Save").see("Saved log-shipper.");
    shipper.activate(&client, "backups/postgres").expect(201);

    stage.visit(&format!("#/credentials/{id}")).see("Rotation not finished. No job can use version 1 any more.");
    stage.see("Denied in the last 7 days: log-shipper (no access) 1×").see("Can use it: log-shipper.");
    stage.press("Continue").see("log-shipper has the new key").see("Unchanged: bucket.");
    // After a roll back, the job that runs with version 2 is a holder of it.
    stage.press("Roll back to version 1").press("Roll back").see("Rolled back to version 1");
    stage.see("log-shipper may use version 2 until");
    let text = stage.text();
    assert!(!text.contains("old key") && !text.contains("Delete version 2"), "{text}");
    stage.press("Promote version 2 again").press("Promote");
    stage.press("I’ve disabled the old key — delete version 1").press("Delete").see("Rotation complete");
    // It is no job that used the credential before.
    stage.see("0 jobs have used the new key.");
    assert_eq!(stage.script("return document.querySelectorAll('.stepper .done').length", &[]), 4);
    stage.see("Check (skipped)");
    stage.press("Back to credential");
    // Because the credential is in use, its name must be typed.
    stage.see("log-shipper");
    stage.press("More actions for backups/postgres").press("Delete").see("In use.").press("Delete");
    assert_eq!(stage.refusal("Type backups/postgres to confirm"), "Type backups/postgres.");
    stage.key(Key::Escape).check_nothing_refused();
}

#[test]
fn rotation_is_reported_on_any_page_when_jobs_have_the_new_key() {
    let address = free_address();
    let stage = Stage::start_with(&[&format!("--activation-listen={address}")]);
    let (account, session) = stage.sign_in("admin");
    let id = session.save(&samples::small("backups/postgres", 0));
    let runner = Integration::make(&stage.vault, "backup-runner", &["backups/*"]);
    let client = Client::new(address);
    let activation = runner.activate(&client, "backups/postgres").expect(201).json();
    session.replace(&id, &samples::small("backups/postgres", 1), false).expect(201);
    session.post("/namespaces/freeze", &json!({"namespace": "backups/postgres"})).expect(200);
    audited(&session, "namespace.frozen", 1);
    stage.visit(&format!("#/credentials/{id}")).see("The namespace backups/postgres was frozen");
    stage.see(&format!(" by {}. Its jobs are denied", account.email));
    stage.press("Activity").see("froze backups/postgres.");
    // The pages poll for as long as a job can use the old key.
    stage.script(
        "const timer = setTimeout; globalThis.setTimeout = (act, wait) => timer(act, Math.min(wait ?? 0, 200))",
        &[],
    );
    stage.visit(&format!("#/credentials/{id}/rotate")).see("backup-runner may use the old key until");
    assert!(!stage.text().contains("I’ve disabled the old key"));
    stage.visit("#/overview").see("rotation not finished. Jobs may use version 1 until");
    stage.visit("#/accounts").see("Last login");
    let path = format!("/v1/activations/{}", activation["id"].as_str().unwrap());
    client.request("DELETE", &path).bearer(&runner.token).send().expect(204);
    stage.see("backups/postgres: no job can use the old key any more. You can disable it.");
    stage.visit("#/overview").see("No job can use version 1 any more: disable the old key.");
    stage.press("Continue rotation").see("I’ve disabled the old key — delete version 1");
    stage.until("no message", "return document.querySelector('.drafts').hidden", &[]);
    stage.check_nothing_refused();
}

#[test]
fn credentials_without_expiry_are_sorted_last() {
    let (stage, session) = Stage::signed_in("editor");
    for (number, hours) in [(0, None), (1, Some(400)), (2, Some(40)), (3, None)] {
        let mut request = samples::small(&format!("job/{number}"), number);
        if let Some(hours) = hours {
            request["expires_at"] = in_hours(&stage, hours);
        }
        session.save(&request);
    }
    let first = "return [...document.querySelectorAll('tbody tr a')].slice(0, 2).map((link) => link.textContent).join() \
        === arguments[0]";
    stage.visit("#/credentials?sort=Expires");
    stage.until("the earliest first", first, &[json!("job/2,job/1")]);
    stage.press("Expires ↑");
    stage.until("the latest first", first, &[json!("job/1,job/2")]);
    stage.check_nothing_refused();
}

#[test]
fn half_typed_date_is_refused_and_kept() {
    let (stage, session) = Stage::signed_in("editor");
    let id = session.save(&samples::small("imports/nightly", 0));
    stage.visit(&format!("#/credentials/{id}")).press("Set the expiry");
    let focus = |control: &str| {
        stage.until(
            control,
            "const one = document.querySelector(`dialog[open] ${arguments[0]}`); one?.focus(); return Boolean(one)",
            &[json!(control)],
        )
    };
    focus("[type=date]");
    stage.keys("1").key(Key::Escape).see("Press Escape again to discard it.").press("Save");
    assert_eq!(stage.refusal("Expires"), "Complete the date, or clear it.");
    let set = "const date = document.querySelector('dialog[open] [type=date]'); date.value = '2031-02-03'; \
        date.dispatchEvent(new Event('input', { bubbles: true }))";
    stage.script(set, &[]);
    stage.press("Save").see("Saved.");
    let saved = session.show(&id).expect(200).json()["expires_at"].clone();
    let ends = "return new Date('2031-02-03T23:59:59').toISOString().slice(0, 19) + 'Z'";
    assert_eq!(saved, stage.script(ends, &[]));
    stage.check_nothing_refused();
}

#[test]
fn back_returns_to_the_row_and_sign_out_to_the_overview() {
    let (stage, session) = Stage::signed_in("admin");
    for number in 0..40 {
        session.save(&samples::small(&format!("many/{number:03}"), number));
    }
    stage.visit("#/credentials").see("40 credentials");
    stage.press("many/005").see("Versions");
    stage.script("history.back()", &[]);
    let there = "return scrollY > 200 && document.activeElement.textContent === 'many/005'";
    stage.until("the row that was left", there, &[]);
    stage.visit("#/accounts").see("Last login");
    sign_out(&stage).see("You are signed out.");
    stage.sign_in_as(&stage.vault.account("Acme", "viewer"));
    stage.see("Needs attention").check_nothing_refused();
}
