//! Keys of issuers.

use super::setting::{OPERATOR, Setting};
use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::id::IssuerId;
use vault_core::identity::{Issuer, IssuerName, KeySource, audience};
use vault_core::integration::IntegrationRef;
use vault_core::port::{
    FetchedKeys, IssuerFailure, IssuerKeys, KeyCount, KeyUse, SignatureError, TokenVerifier, UnverifiedToken,
};
use vault_core::usecase::activations::Identity;

const URL: &str = "https://issuer.example";

/// Counts requests. Others run while one is in progress.
#[derive(Default)]
struct CountedKeys(AtomicUsize);

#[async_trait]
impl IssuerKeys for CountedKeys {
    async fn fetch(&self, _issuer: &Issuer) -> Result<FetchedKeys, IssuerFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(FetchedKeys { keys: "{}".to_owned(), source: KeySource::Url(URL.to_owned()) })
    }
}

/// Accepts no signature. Every token has this audience.
struct Forged(String);

impl TokenVerifier for Forged {
    fn read_unverified(&self, _token: &SecretString) -> Option<UnverifiedToken> {
        Some(UnverifiedToken { issuer: Some(URL.to_owned()), subject: None, audience: Some(self.0.clone()) })
    }

    fn verify(&self, _token: &SecretString, _keys: &str, _key_use: KeyUse) -> Result<Value, SignatureError> {
        Err(SignatureError::UnknownKey)
    }

    fn count_keys(&self, _keys: &str, _key_use: KeyUse) -> Option<KeyCount> {
        Some(KeyCount { usable: 1, ..KeyCount::default() })
    }
}

/// Many tokens with an unknown key cause one request for keys a minute, in several processes.
#[tokio::test]
async fn concurrent_forged_tokens_cause_one_key_request() {
    let (setting, keys) = (Setting::new().await, Arc::new(CountedKeys::default()));
    let issuer = Issuer {
        id: IssuerId::from_bytes([1; 16]),
        name: IssuerName::parse("own", "").unwrap(),
        url: URL.to_owned(),
        source: KeySource::Url(URL.to_owned()),
        ca: String::new(),
        required: Vec::new(),
        organizations: Vec::new(),
        created_at: setting.now(),
    };
    setting.operator().add_issuer(issuer, None, (&Forged(String::new()), &*keys)).await.unwrap();
    let created = setting.integration("nightly", &["imports"]).await;
    let trust = json!({"issuer": "own", "claims": {"/sub": "job"}});
    let nightly = IntegrationRef::Name("nightly".to_owned());
    setting.integrations().trust(&OPERATOR, setting.acme, &nightly, &trust).await.unwrap();
    let token = SecretString::from("eyJhbGciOiJSUzI1NiJ9.e30.forged");
    let verifier = Arc::new(Forged(audience(created.integration.id)));
    let identity = Identity { verifier, keys: Some(keys.clone()) };
    let processes = [(); 2].map(|()| setting.activations().identity(Some(identity.clone())));
    for minute in 1..4 {
        setting.clock.advance_seconds(60);
        let attempts = (0..30).map(|n| processes[n % 2].authenticate(&token, None));
        assert!(futures_util::future::join_all(attempts).await.iter().all(Result::is_err));
        assert_eq!(keys.0.load(Ordering::SeqCst), 1 + minute);
    }
}
