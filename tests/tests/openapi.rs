//! The API description matches the real server, tested with random requests and a generated client.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use vault_testkit::stores::find_tool;
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Client, Database, Integration, Vault};

/// Fixed seed for reproducible requests.
const SEED: &str = "20261122";
/// Requests per operation and phase.
const EXAMPLES: &str = "20";

/// Runs a command that must succeed. Returns its output.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    text
}

/// Starts a server without a login rate limit, and stores its description in `directory`.
fn described(directory: &Path) -> (Vault, Value) {
    let vault = Vault::start_with(Database::Sqlite, &["--login-rate", "0"]);
    let description = vault.client().get("/openapi.json").send().expect(200).json();
    fs::write(directory.join("openapi.json"), description.to_string()).unwrap();
    (vault, description)
}

/// Returns Schemathesis for the listener of `client`, with the description `file` and the settings in `directory`.
fn schemathesis(client: &Client, directory: &Path, file: &str) -> Command {
    let mut command = Command::new(find_tool("st"));
    command.current_dir(directory).args(["--config-file", "schemathesis.toml", "run", file, "--no-color"]);
    command.args(["--url", client.origin(), "--seed", SEED, "--max-examples", EXAMPLES]);
    command.args(["--phases", "examples,coverage,fuzzing"]);
    command
}

/// Returns Schemathesis for the public listener of `vault`.
fn schemathesis_of_members(vault: &Vault, directory: &Path, file: &str) -> Command {
    let mut command = schemathesis(&vault.client(), directory, file);
    // Excludes the other listener, and operations that end the test's session.
    command.args(["--exclude-tag", "Activation", "--exclude-path", "/v1/logout"]);
    command.args(["--exclude-path", "/v1/account/sessions/{id}", "--exclude-path", "/v1/accounts/{id}"]);
    command
}

#[test]
fn generated_requests_get_described_responses() {
    let directory = tempfile::tempdir().unwrap();
    let (vault, mut description) = described(directory.path());
    let session = vault.admin_session();
    let credential = session.save(&small("imports", 1));
    session.replace(&credential, &small("imports", 1), false).expect(201);
    let integration = json!({"name": "nightly", "namespaces": ["imports"]});
    let integration = session.post("/integrations", &integration).expect(201).json();
    // Data that matches the schema may still be invalid, such as a bucket name.
    let settings = format!(
        "headers = {{ Authorization = \"Bearer {}\" }}\n\
         [checks]\npositive_data_acceptance.enabled = false\n\
         negative_data_rejection.expected-statuses = [400, 401, 403, 404, 409, 412, 413, 415, 422, 429]\n\
         [[operations]]\ninclude-path-regex = \"/organization-vault/\"\nparameters = {{ \"path.id\" = \"{credential}\" }}\n\
         [[operations]]\ninclude-path-regex = \"/integrations/\"\nparameters = {{ \"path.id\" = {} }}\n",
        session.token, integration["id"],
    );
    fs::write(directory.path().join("schemathesis.toml"), settings).unwrap();
    let output = succeed(&mut schemathesis_of_members(&vault, directory.path(), "openapi.json"));
    assert!(tested(&output) >= 35, "{output}");

    // A wrong description is detected.
    let answer = "/paths/~1v1~1account/get/responses/200/content/application~1json/schema";
    *description.pointer_mut(answer).unwrap() = json!({"type": "array"});
    fs::write(directory.path().join("wrong.json"), description.to_string()).unwrap();
    let mut wrong = schemathesis_of_members(&vault, directory.path(), "wrong.json");
    let output = wrong.args(["--include-path", "/v1/account"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Returns the number of operations that Schemathesis reports as tested.
fn tested(output: &str) -> usize {
    let count = output.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{output}"))
}

#[test]
fn integration_requests_get_described_responses() {
    /// Namespace of the examples.
    const NAMESPACE: &str = "imports/nightly";
    let directory = tempfile::tempdir().unwrap();
    // Higher limits than any run needs, so that most requests are executed. No requests leave the host.
    let flags = ["--activation-rate", "0", "--max-activations", "1000000"];
    let (vault, activation_listener) = ActivationListener::open_with(Database::Sqlite, &flags);
    let mut description = vault.client().get("/openapi.json").send().expect(200).json();
    // Random names would all be rejected.
    for schema in ["ActivateRequest", "CheckRequest"] {
        let namespace = format!("/components/schemas/{schema}/properties/namespace");
        description.pointer_mut(&namespace).unwrap()["enum"] = json!([NAMESPACE, "elsewhere"]);
    }
    fs::write(directory.path().join("openapi.json"), description.to_string()).unwrap();
    let session = vault.admin_session();
    let mut credential = small(NAMESPACE, 1);
    credential["data"]["endpoint"] = "https://127.0.0.1:1".into();
    session.save(&credential);
    let (client, integration) = (activation_listener.client(), Integration::make(&vault, "nightly", &[NAMESPACE]));
    let activation = integration.activate(&client, NAMESPACE).expect(201).json()["id"].clone();
    let settings = format!(
        "headers = {{ Authorization = \"Bearer {}\" }}\n\
         [checks]\npositive_data_acceptance.enabled = false\n\
         negative_data_rejection.expected-statuses = [400, 401, 403, 404, 409, 412, 413, 415, 422, 429]\n\
         [[operations]]\ninclude-path-regex = \"/activations/.id\"\nparameters = {{ \"path.id\" = {activation} }}\n",
        integration.token,
    );
    fs::write(directory.path().join("schemathesis.toml"), settings).unwrap();
    let run = |file: &str| {
        let mut command = schemathesis(&client, directory.path(), file);
        command.args(["--include-tag", "Activation"]);
        command
    };
    let output = succeed(&mut run("openapi.json"));
    assert_eq!(tested(&output), 5, "{output}");
    assert!(integration.live(&client).len() > 1, "some requests were granted: {output}");

    // A wrong description is detected.
    let answer = "/paths/~1v1~1activations/get/responses/200/content/application~1json/schema";
    *description.pointer_mut(answer).unwrap() = json!({"type": "object"});
    fs::write(directory.path().join("wrong.json"), description.to_string()).unwrap();
    let output = run("wrong.json").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn client_generated_from_the_description_logs_in_and_saves() {
    let directory = tempfile::tempdir().unwrap();
    let (vault, _) = described(directory.path());
    let account = vault.account("Acme", "editor");
    let mut generate = Command::new(find_tool("openapi-python-client"));
    generate.current_dir(directory.path()).args(["generate", "--path", "openapi.json", "--output-path", "client"]);
    // The generator formats its output with a program in its own directory.
    let programs = find_tool("openapi-python-client").parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = succeed(generate.env("PATH", format!("{}:{path}", programs.display())));
    assert!(!output.contains("WARNING"), "{output}");
    let script = r#"
import json, os, sys
sys.path.insert(0, "client")
from org_vault_client import AuthenticatedClient, Client
from org_vault_client.api.credentials import delete, list_, save
from org_vault_client.api.session import log_in
from org_vault_client.models import LoginRequest, SaveS3

login = json.load(sys.stdin)
url = os.environ["VAULT"]
session = log_in.sync(client=Client(base_url=url), body=LoginRequest.from_dict(login))
client = AuthenticatedClient(base_url=url, token=session.access_token)
data = {"access_key_id": "EXAMPLEKEYID00000000", "secret_access_key": "not-a-secret", "bucket": "imports"}
body = SaveS3.from_dict({"type": "s3", "namespace": "imports", "data": data})
saved = save.sync(client=client, body=body)
listed = list_.sync(client=client, namespace="imports")
print(listed[0].id == saved.id, listed[0].type_.value, listed[0].information["bucket"])
print(delete.sync_detailed(saved.id, client=client).status_code.value, len(list_.sync(client=client)))
"#;
    fs::write(directory.path().join("job.py"), script).unwrap();
    fs::write(directory.path().join("login.json"), account.sound_login().to_string()).unwrap();
    let mut job = Command::new(programs.join("python3"));
    job.current_dir(directory.path()).arg("job.py").env("VAULT", vault.client().origin());
    job.stdin(fs::File::open(directory.path().join("login.json")).unwrap());
    assert_eq!(succeed(&mut job), "True s3 imports\n204 0\n");
}
