//! A test issuer of identity tokens, like GitHub, GitLab, a Kubernetes cluster or a SPIFFE server. It listens on
//! loopback and signs arbitrary claims.

use crate::script::node;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A key that signs tokens.
pub struct SigningKey {
    /// Key ID.
    pub id: String,
    pair: EcdsaKeyPair,
}

impl SigningKey {
    /// Generates a key.
    pub fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair }
    }

    /// Returns the public key for a key set.
    pub fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": encode(&point[1..33]), "y": encode(&point[33..]),
        })
    }

    /// Signs a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_under(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id}), claims)
    }

    /// Signs a token with this header, which may be invalid.
    pub fn sign_under(&self, head: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature.as_ref()))
    }

    /// Returns tokens with HMACs whose secret is the public key. They attack verifiers that select the algorithm by the
    /// token.
    pub fn sign_by_its_public_key(&self, claims: &Value) -> [String; 2] {
        let head = json!({"alg": "HS256", "typ": "JWT", "kid": self.id});
        let signed = format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        [self.pair.public_key().as_ref().to_vec(), self.public().to_string().into_bytes()].map(|secret| {
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), signed.as_bytes());
            format!("{signed}.{}", encode(signature.as_ref()))
        })
    }
}

/// Encodes Base64 without padding, as in tokens.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the seconds since the epoch.
pub fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// Returns the audience of tokens for an integration.
pub fn audience(integration: &str) -> String {
    format!("urn:orgvault:integration:{integration}")
}

struct Shared {
    pages: Mutex<HashMap<String, (u16, String)>>,
    asked: AtomicUsize,
    away: AtomicBool,
}

/// An issuer that responds until it is dropped.
pub struct TestIssuer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Current signing key.
    pub key: SigningKey,
}

impl TestIssuer {
    /// Starts an issuer with one key.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Shared { pages: Mutex::default(), asked: AtomicUsize::new(0), away: AtomicBool::new(false) });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &served);
            }
        });
        let issuer = Self { address, shared, key: SigningKey::new("first") };
        issuer.publish(&[&issuer.key]);
        issuer
    }

    /// Returns the URL, which is the `iss` claim of its tokens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Publishes these keys instead of the previous ones.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let set = json!({"keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>()});
        let discovery = json!({"issuer": self.url(), "jwks_uri": format!("{}/keys", self.url())});
        self.page("/.well-known/openid-configuration", 200, &discovery.to_string());
        self.page("/keys", 200, &set.to_string());
    }

    /// Sets the response for a path.
    pub fn page(&self, path: &str, status: u16, body: &str) {
        self.shared.pages.lock().unwrap().insert(path.to_owned(), (status, body.to_owned()));
    }

    /// Sets whether the issuer is unavailable.
    pub fn set_away(&self, away: bool) {
        self.shared.away.store(away, Ordering::Release);
    }

    /// Returns the number of received requests.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Acquire)
    }

    /// Returns claims of a token for an integration, valid for five minutes.
    pub fn claims(&self, integration: &str, subject: &str) -> Value {
        let now = now();
        json!({
            "iss": self.url(), "aud": audience(integration), "sub": subject,
            "iat": now, "nbf": now, "exp": now + 300, "jti": "token-1",
        })
    }

    /// Signs a token with these claims.
    pub fn token(&self, integration: &str, subject: &str) -> String {
        self.key.sign(&self.claims(integration, subject))
    }
}

/// Issuers from npm packages, in a process that is stopped on drop.
pub struct ForeignIssuers {
    process: Mutex<(Child, BufReader<ChildStdout>)>,
    /// URLs of the issuers `mock` and `provider`.
    pub urls: Value,
}

impl ForeignIssuers {
    /// Starts the issuers.
    pub fn start() -> Self {
        let mut command = node("foreign_issuers.mjs");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // The provider also writes notices to standard output.
        let urls = loop {
            let mut line = String::new();
            assert!(
                output.read_line(&mut line).unwrap() > 0,
                "the issuers did not start: run tests/run, which installs them"
            );
            if let Ok(urls) = serde_json::from_str(&line) {
                break urls;
            }
        };
        Self { process: Mutex::new((child, output)), urls }
    }

    /// Requests a token with the parameters that `tests/foreign_issuers.mjs` documents.
    pub fn token(&self, asked: &Value) -> String {
        let mut process = self.process.lock().unwrap();
        let (child, output) = &mut *process;
        writeln!(child.stdin.as_mut().unwrap(), "{asked}").unwrap();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the issuers have ended");
            if line.starts_with("eyJ") {
                return line.trim_end().to_owned();
            }
        }
    }
}

impl Drop for ForeignIssuers {
    fn drop(&mut self) {
        let child = &mut self.process.get_mut().unwrap().0;
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) {
    shared.asked.fetch_add(1, Ordering::AcqRel);
    if shared.away.load(Ordering::Acquire) {
        return;
    }
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8_192 && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = shared.pages.lock().unwrap().get(path).cloned().unwrap_or((404, String::new()));
    let location = if (300..400).contains(&status) { "location: http://127.0.0.1:9/keys\r\n" } else { "" };
    let length = body.len();
    let _ = stream.write_all(
        format!("HTTP/1.1 {status} X\r\n{location}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .as_bytes(),
    );
}
