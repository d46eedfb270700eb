//! Storage providers with keyless access, in `tests/providers.py`, behind a proxy that resolves their names.

use crate::binary::Run;
use crate::client::Client;
use crate::integration::{ActivationListener, write_private};
use crate::process::free_address;
use crate::receivers::SOON;
use crate::script::{Script, python};
use crate::vault::Vault;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::stores::{Azurite, TestProxy, TlsFiles};

/// The issuer of the tests.
pub const ISSUER: &str = "https://vault.example.com";
/// Path of the key set below the issuer.
pub const KEY_SET: &str = "/federation/jwks.json";
/// RSA keys of the tests.
const KEYS: &str = include_str!("../../crates/vault-crypto/tests/vectors/rsa.txt");
/// Host of the account of [`Providers::start_azurite`].
const AZURITE: &str = "devstoreaccount1.blob.core.windows.net";
/// Hosts of the providers, and of the issuer.
const HOSTS: [&str; 7] = [
    "sts.eu-central-1.amazonaws.com",
    "login.microsoftonline.com",
    "acmeimports.blob.core.windows.net",
    AZURITE,
    "sts.googleapis.com",
    "iamcredentials.googleapis.com",
    "vault.example.com",
];

/// Returns a key of the test vectors in PEM format.
pub fn signing_key(name: &str) -> &'static str {
    let mut sections = KEYS.split("== ").filter_map(|section| section.split_once('\n'));
    sections.find(|(found, _)| *found == name).unwrap().1
}

/// Writes a key of the test vectors to a file that only its owner can read.
pub fn signing_key_file(vault: &Vault, name: &str) -> PathBuf {
    let path = vault.scratch(&format!("{}.pem", name.replace('/', "-")));
    write_private(&path, signing_key(name));
    path
}

/// Returns the key IDs in the key set of a server, once there are `count`.
#[track_caller]
pub fn published(client: &Client, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let set = client.get(KEY_SET).try_send().unwrap().expect(200).json();
        let keys = set["keys"].as_array().unwrap();
        if keys.len() == count {
            return keys.iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect();
        }
        assert!(began.elapsed() < SOON, "{set}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The providers. They verify tokens, and trust no subject at first.
pub struct Providers {
    script: Script,
    proxy: TestProxy,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    requests: Vec<Value>,
}

impl Providers {
    /// Starts the providers. `directory` must not exist.
    pub fn start(directory: &Path) -> Self {
        std::fs::create_dir(directory).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL treats a certificate whose subject is its issuer as self-signed.
        params.distinguished_name.push(DnType::CommonName, "CA of the providers");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(HOSTS.map(str::to_owned)).unwrap();
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let file = |name: &str, content: &str| {
            let path = directory.join(name);
            write_private(&path, content);
            path
        };
        let authority = file("authority.pem", &issuer.pem());
        let proxy = TestProxy::start();
        let (certificate, key) = (file("certificate.pem", &certificate.pem()), file("key.pem", &key.serialize_pem()));
        let mut command = python("providers.py");
        command.args([&certificate, &key, &authority]);
        let script = Script::start(behind(command, &proxy));
        let port = script.receive(SOON)["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap();
        for host in HOSTS {
            proxy.map(host, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        }
        Self { script, proxy, authority, certificate, key, requests: Vec::new() }
    }

    /// Starts Azurite as the blob service of its account. It checks the claims of access tokens, not their signatures.
    pub fn start_azurite(&self) -> Azurite {
        let azurite = Azurite::start(Some(TlsFiles { certificate: &self.certificate, key: &self.key }));
        self.proxy.map(AZURITE, azurite.address());
        azurite
    }

    /// Returns settings of servers and commands that use the providers.
    pub fn settings(&self) -> [(&'static str, String); 3] {
        let authority = self.authority.to_str().unwrap().to_owned();
        [("federation-issuer", ISSUER.to_owned()), ("egress-proxy", self.proxy.url()), ("ca-file", authority)]
    }

    /// Returns `command`, which then reaches the providers by the variables of common tools.
    pub fn client(&self, mut command: Command) -> Command {
        let names = ["AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"];
        for name in names {
            command.env(name, &self.authority);
        }
        behind(command, &self.proxy)
    }

    /// Forwards requests to the issuer to the public listener of a server.
    pub fn forward_to(&mut self, listener: SocketAddr) {
        self.command(&json!({"forward": listener.to_string()}));
    }

    /// Sets the subject that a role, application or service account trusts. `*` is every subject.
    pub fn trust(&mut self, identity: &str, subject: &str) {
        self.command(&json!({"trust": identity, "subject": subject}));
    }

    /// Expires the cached key sets of the providers, which are otherwise valid for an hour.
    pub fn expire_key_sets(&mut self) {
        self.command(&json!({"expire": true}));
    }

    /// Returns the requests to the providers since the last call, without those to the issuer.
    pub fn requests(&mut self) -> Vec<Value> {
        self.command(&json!({}));
        let requests = std::mem::take(&mut self.requests);
        requests.into_iter().filter(|request| request["form"].is_object()).collect()
    }

    fn command(&mut self, command: &Value) {
        self.script.send(&command.to_string());
        loop {
            let message = self.script.receive(SOON);
            if message["done"] == *command {
                return;
            }
            self.requests.push(message);
        }
    }
}

/// Returns `command`, which then connects through `proxy`.
fn behind(mut command: Command, proxy: &TestProxy) -> Command {
    for name in ["NO_PROXY", "no_proxy", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command.env("HTTPS_PROXY", proxy.url());
    command
}

/// A vault with a server that exchanges tokens at the providers.
pub struct Keyless {
    /// The vault.
    pub vault: Vault,
    /// Its activation listener.
    pub listener: ActivationListener,
    /// The providers.
    pub providers: Providers,
    /// ID of the current signing key.
    pub key: String,
}

impl Keyless {
    /// Starts a server of `vault`, which has none, with these flags and the signing key `accepted/2048`.
    #[track_caller]
    pub fn start(vault: Vault, flags: &[&str]) -> Self {
        let providers = Providers::start(&vault.scratch("providers"));
        let listener = ActivationListener { address: free_address() };
        let mut started = Self { vault, listener, providers, key: String::new() };
        started.key = started.add_key("accepted/2048");
        started.federation(&["key", "promote", "--now"]).done();
        let settings = started.providers.settings().map(|(name, value)| format!("--{name}={value}"));
        let listen = format!("--activation-listen={}", listener.address);
        let own = [&settings[..], &[listen]].concat();
        started.vault.serve_with(&[&own.iter().map(String::as_str).collect::<Vec<_>>()[..], flags].concat());
        started.providers.forward_to(started.vault.address());
        assert_eq!(published(&started.vault.client(), 1), std::slice::from_ref(&started.key));
        started.federation(&["status"]).done();
        started
    }

    /// Runs `orgvault federation` with the rights of the tables' owner.
    #[track_caller]
    pub fn federation(&self, arguments: &[&str]) -> Run {
        let mut command = self.vault.owner_command(&[&["federation"], arguments].concat());
        for (name, value) in self.providers.settings() {
            command.env(format!("ORGVAULT_{}", name.to_uppercase().replace('-', "_")), value);
        }
        Run::of(&mut command)
    }

    /// Adds a key of the test vectors, and returns its ID.
    #[track_caller]
    pub fn add_key(&self, name: &str) -> String {
        let file = signing_key_file(&self.vault, name);
        let added = self.federation(&["key", "add", "--json", "--file", file.to_str().unwrap()]).done().json();
        added["key"].as_str().unwrap().to_owned()
    }
}

/// A keyless type, and the type as which its credentials are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeylessType {
    /// Name of the type.
    pub name: &'static str,
    /// Name of the issued type.
    pub issued: &'static str,
    /// Label in metrics.
    pub provider: &'static str,
}

impl KeylessType {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self { name: "s3-federated", issued: "s3", provider: "s3" },
        Self { name: "azure-federated", issued: "azure_identity", provider: "azure" },
        Self { name: "gcs-federated", issued: "gcs", provider: "gcs" },
    ];

    /// Returns the role, application or service account with this name.
    pub fn identity(self, name: &str) -> String {
        match self.provider {
            "s3" => format!("arn:aws:iam::111122223333:role/{name}"),
            "azure" => name.to_owned(),
            _ => format!("{name}@acme-data.iam.gserviceaccount.com"),
        }
    }

    /// Returns the data of a credential for this role, application or service account.
    pub fn data(self, name: &str) -> Value {
        let identity = self.identity(name);
        match self.provider {
            "s3" => json!({"role_arn": identity, "bucket": "nightly", "region": "eu-central-1", "key_prefix": "in/"}),
            "azure" => {
                json!({"tenant_id": "contoso.onmicrosoft.com", "client_id": identity, "account_name": "acmeimports",
                "container": "nightly"})
            }
            _ => json!({"service_account": identity, "bucket": "nightly", "key_prefix": "in/",
                "provider": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/vault/providers/orgvault"}),
        }
    }
}
