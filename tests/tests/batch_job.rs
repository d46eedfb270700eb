//! A complete batch job. Credentials are saved over HTTP, and tools that do not know the vault copy files from and to
//! storage with the credentials of `orgvault exec`.
//!
//! The storage is emulated on this host. The tools are the AWS command line, rclone and curl.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use vault_testkit::stores::{Azurite, GoogleEmulator, Moto, Scripted, find_tool};
use vault_tests::binary::Run;
use vault_tests::tls::{Identity, certificate_file};
use vault_tests::{ActivationListener, Client, Database, Integration, Vault};

const NAMESPACE: &str = "imports/nightly";
const CONTENT: &str = "id,amount\n1,42\n";
/// Policy that permits everything that the bucket's owner may do.
const ALL: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;

/// A vault with one credential, and an integration that may use it.
struct Job {
    vault: Vault,
    listener: ActivationListener,
    client: Client,
    integration: Integration,
}

impl Job {
    /// Creates a vault whose server gets these flags, with this credential.
    fn with(flags: &[&str], kind: &str, data: &Value) -> Self {
        let (vault, listener) = ActivationListener::open_with(Database::Sqlite, flags);
        let session = vault.admin_session();
        session.save(&json!({"type": kind, "namespace": NAMESPACE, "data": data}));
        let integration = Integration::make(&vault, "nightly", &[NAMESPACE]);
        fs::create_dir(vault.scratch("job")).unwrap();
        fs::create_dir(vault.scratch("private")).unwrap();
        Self { client: listener.client(), vault, listener, integration }
    }

    /// Returns a file of the job.
    fn file(&self, name: &str) -> PathBuf {
        self.vault.scratch("job").join(name)
    }

    /// Returns `orgvault exec` with these flags for a shell script, in a separate directory.
    fn command(&self, flags: &[&str], script: &str) -> Command {
        let mut command = self.integration.command(self.listener, &["exec", "--namespace", NAMESPACE]);
        command.args(flags).args(["--", "sh", "-euc", script]);
        command.current_dir(self.vault.scratch("job"));
        // Without the settings of the user who runs the test: profiles, configuration files and metadata services.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["AWS_", "AZURE_", "GOOGLE_", "RCLONE_", "CLOUDSDK_", "HTTP", "http", "all_proxy"]
                .iter()
                .any(|start| name.starts_with(start))
            {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.vault.scratch("job")).env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("XDG_RUNTIME_DIR", self.vault.scratch("private"));
        let tools: Vec<_> = ["aws", "rclone", "curl"].iter().map(|name| find_tool(name)).collect();
        let directories = tools.iter().filter_map(|tool| tool.parent().map(ToOwned::to_owned));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", std::env::join_paths(directories.chain(std::env::split_paths(&path))).unwrap());
        command
    }

    /// Runs the job. Asserts that it succeeds and leaves nothing except its own files.
    #[track_caller]
    fn run(&self, flags: &[&str], script: &str) -> Run {
        let run = Run::of(&mut self.command(flags, script)).done();
        assert_eq!(self.integration.live(&self.client).len(), 0, "the activation has ended");
        let left: Vec<_> = fs::read_dir(self.vault.scratch("private")).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        run
    }
}

/// Starts a storage server with a file in a bucket. Returns the key of its owner.
fn moto() -> (Moto, Value) {
    let moto = Moto::start();
    moto.create_bucket("nightly-exports");
    moto.put("nightly-exports", "in/a.csv", CONTENT.as_bytes());
    let owner = moto.create_user("owner", ALL);
    let data = json!({
        "access_key_id": owner.id, "secret_access_key": owner.secret, "bucket": "nightly-exports",
        "region": "us-east-1", "endpoint": moto.endpoint(), "path_style_access": true,
    });
    (moto, data)
}

#[test]
fn aws_cli_copies_from_bucket() {
    let (moto, data) = moto();
    moto.evaluate();
    let job = Job::with(&[], "s3", &data);
    job.run(&[], r#"aws s3 cp "s3://$ORGVAULT_BUCKET/in/a.csv" here.csv"#);
    assert_eq!(fs::read_to_string(job.file("here.csv")).unwrap(), CONTENT);
    job.run(&[], r#"aws s3 cp here.csv "s3://$ORGVAULT_BUCKET/out/b.csv" && aws s3 ls "s3://$ORGVAULT_BUCKET/out/""#);

    // The same with a configuration file that names a credential process. The process returns only keys, so the file
    // contains the address.
    let mut data = data;
    let members = data.as_object_mut().unwrap();
    members.remove("endpoint");
    members.remove("path_style_access");
    let job = Job::with(&[], "s3", &data);
    let orgvault = vault_tests::binary::path();
    let process = format!(
        "[default]\nregion = us-east-1\nendpoint_url = {}\ns3 =\n    addressing_style = path\ncredential_process = {} activate --namespace {NAMESPACE} --format aws-credential-process\n",
        moto.endpoint(),
        orgvault.display()
    );
    fs::write(job.file("config"), process).unwrap();
    let mut aws = job.integration.command(job.listener, &[]);
    aws = {
        let mut plain = Command::new(find_tool("aws"));
        plain.envs(aws.get_envs().filter_map(|(name, value)| Some((name, value?))));
        plain
    };
    aws.args(["s3", "cp", "s3://nightly-exports/in/a.csv", "there.csv"]).current_dir(job.vault.scratch("job"));
    aws.env("AWS_CONFIG_FILE", job.file("config")).env("AWS_EC2_METADATA_DISABLED", "true");
    Run::of(&mut aws).done();
    assert_eq!(fs::read_to_string(job.file("there.csv")).unwrap(), CONTENT);
    moto.believe();
    assert!(moto.list("nightly-exports").contains("out/b.csv"));
}

/// Uses one boto3 client until it has used two keys. Prints each key at its first use.
const LONG_JOB: &str = r#"
import boto3, os, time
s3 = boto3.client("s3")
used = []
while len(used) < 2:
    s3.get_object(Bucket=os.environ["ORGVAULT_BUCKET"], Key="in/a.csv")
    key = s3._request_signer._credentials.get_frozen_credentials().access_key
    if key not in used:
        used.append(key)
        print(key, flush=True)
    time.sleep(0.1)
"#;

/// A running client gets a replaced key with the first renewal. That is after 48 s, because the minimum lifetime of an
/// activation is a minute.
#[test]
fn running_client_gets_the_replaced_key() {
    let (moto, data) = moto();
    let other = moto.create_user("successor", ALL);
    moto.evaluate();
    let job = Job::with(&[], "s3", &data);
    fs::write(job.file("job.py"), LONG_JOB).unwrap();
    let python = find_tool("aws").with_file_name("python3");
    let mut command = job.command(&["--ttl", "60s"], &format!("exec {} job.py", python.display()));
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    let mut used = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    assert_eq!(used(), data["access_key_id"].as_str().unwrap());
    let session = job.vault.admin_session();
    let id = session.list()[0]["id"].as_str().unwrap().to_owned();
    let mut replaced = data.clone();
    (replaced["access_key_id"], replaced["secret_access_key"]) = (other.id.clone().into(), other.secret.into());
    session.replace(&id, &json!({ "data": replaced }), false).expect(201);
    assert_eq!(used(), other.id);
    assert!(running.wait().unwrap().success());
    assert_eq!(job.integration.live(&job.client).len(), 0, "the activation has ended");
}

#[test]
fn rclone_copies_from_s3_bucket() {
    let (moto, data) = moto();
    moto.evaluate();
    let job = Job::with(&[], "s3", &data);
    job.run(&[], r#"rclone copy "orgvault:$ORGVAULT_BUCKET/in" in"#);
    assert_eq!(fs::read_to_string(job.file("in/a.csv")).unwrap(), CONTENT);
}

#[test]
fn role_keeps_long_lived_secret_in_vault() {
    let (moto, mut data) = moto();
    data["role_arn"] = moto.create_role("exporter", ALL).into();
    moto.evaluate();
    let job = Job::with(&["--allow-egress=127.0.0.0/8"], "s3", &data);
    let script = r#"aws s3 cp "s3://$ORGVAULT_BUCKET/in/a.csv" here.csv >&2; env"#;
    let run = job.run(&["--vend", "short"], script);
    assert_eq!(fs::read_to_string(job.file("here.csv")).unwrap(), CONTENT);
    assert!(run.stdout.contains("AWS_CONTAINER_CREDENTIALS_FULL_URI=") && !run.stdout.contains("AWS_SESSION_TOKEN="));
    for lasting in ["access_key_id", "secret_access_key"] {
        assert!(!run.stdout.contains(data[lasting].as_str().unwrap()), "{lasting}");
    }
    let token = &job.integration.token;
    let by_variables = job.run(&["--vend", "short", "--static"], script).stdout;
    assert!(by_variables.contains("AWS_SESSION_TOKEN="), "the keys are those of a session");
    assert!(!run.stdout.contains(token.as_str()) && !run.stdout.contains("ORGVAULT_INTEGRATION"), "{}", run.stdout);
}

#[test]
fn rclone_copies_from_azure_container() {
    let azurite = Azurite::start(None);
    azurite.create_container("nightly");
    azurite.put("nightly", "in/a.csv", "aWQsYW1vdW50CjEsNDIK");
    let data = json!({
        "tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47", "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a",
        "client_secret": "Qx~8Q~vN3w.Yk2-rT0sLzUaHbJ5cD7eF9gM_oPqR",
        "connection_string": azurite.connection_string(), "container": "nightly",
    });
    let job = Job::with(&[], "azure_identity", &data);
    job.run(&[], r#"rclone copy "orgvault:$ORGVAULT_BUCKET/in" in"#);
    assert_eq!(fs::read_to_string(job.file("in/a.csv")).unwrap(), CONTENT);
}

#[test]
fn rclone_copies_from_google_bucket() {
    let (google, tokens) = (GoogleEmulator::start(), directory());
    google.create_bucket("nightly-exports");
    google.put("nightly-exports", "in/a.csv", CONTENT.as_bytes());
    let key = json!({
        "type": "service_account", "project_id": "acme", "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": include_str!("../../crates/vault-testkit/src/stores/service-account.pem"),
        "client_email": "importer@acme.iam.gserviceaccount.com", "client_id": "1",
        "token_uri": format!("{}/token", tokens.endpoint()),
    });
    let data = json!({"service_account_key": key, "bucket": "nightly-exports"});
    let job = Job::with(&[], "gcs", &data);
    let endpoint = format!("{}/storage/v1/", google.endpoint());
    let script = format!(r#"RCLONE_GCS_ENDPOINT={endpoint} rclone copy "orgvault:$ORGVAULT_BUCKET/in" in"#);
    job.run(&[], &script);
    assert_eq!(fs::read_to_string(job.file("in/a.csv")).unwrap(), CONTENT);
    assert!(tokens.asked()[0].body.contains("jwt-bearer"), "rclone has shown the key");
}

/// A directory that issues a token for every request.
fn directory() -> Scripted {
    Scripted::start(|_| {
        let token = json!({"access_token": "ya29.test", "token_type": "Bearer", "expires_in": 3600});
        (200, vec![("Content-Type", "application/json".to_owned())], token.to_string())
    })
}

#[test]
fn curl_fetches_object_of_link() {
    let identity = Identity::new();
    let store = identity.serve_text(|head| {
        let known = head.starts_with("GET /in/a.csv?signature=4f2a ") && head.contains("\r\nX-Key: k 1\r\n");
        known.then_some(CONTENT)
    });
    let data = json!({"url": format!("https://{store}/in/a.csv?signature=4f2a"), "headers": {"X-Key": "k 1"}});
    let job = Job::with(&[], "direct-link", &data);
    identity.install(&job.vault);
    let certificate = certificate_file(&job.vault).display().to_string();
    job.run(&[], &format!(r#"curl --config "$ORGVAULT_CURL_CONFIG" --cacert {certificate} --output here.csv"#));
    assert_eq!(fs::read_to_string(job.file("here.csv")).unwrap(), CONTENT);
}

#[test]
fn failed_job_leaves_no_secret() {
    let (_moto, data) = moto();
    let job = Job::with(&[], "s3", &data);
    let run = Run::of(&mut job.command(&[], "exit 7"));
    assert_eq!((run.status, &*run.stdout), (Some(7), ""));
    assert_eq!(job.integration.live(&job.client).len(), 0);
    job.vault.run(&["namespace", "freeze", NAMESPACE, "--org", "Acme"]).done();
    let run = Run::of(&mut job.command(&[], "touch started"));
    assert_eq!(run.status, Some(125));
    assert!(
        run.stderr.contains("cannot activate imports/nightly: ")
            && run.stderr.contains("frozen")
            && !job.file("started").exists(),
        "{}",
        run.stderr
    );
}
