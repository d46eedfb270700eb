//! Signing keys with real cryptography: their life on several replicas.

use crate::deployment::{Deployment, Process};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use vault_core::audit::AuditAction;
use vault_core::entity::Kind;
use vault_core::error::{Error, Refusal};
use vault_core::federation::{
    FederationAudience, FederationClaims, FederationIssuer, FederationKeyError, FederationKeyState, FederationSubject,
    PublicationFailure, PublishedDocuments,
};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{
    Clock as _, EntityRow, FederationTokenSigner as _, IdGenerator as _, IssuerPublication, KeyUse, TokenVerifier as _,
};
use vault_core::usecase::federation::{FederationPublisher, PublishedKeys};
use vault_core::usecase::{Federation, RowFinding};
use vault_crypto::{FederationKeys, FederationSigner, JwtVerifier};

const KEYS: &str = include_str!("vectors/rsa.txt");
const HOUR: i64 = 60 * 60;

fn pem(name: &str) -> SecretString {
    let sections = KEYS.split("== ").filter_map(|section| section.split_once('\n'));
    sections.filter(|(found, _)| *found == name).map(|(_, pem)| pem.into()).next().unwrap()
}

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

/// A server, with its own keys in memory.
struct Replica {
    process: Process,
    federation: Federation,
    publisher: FederationPublisher,
    published: Arc<PublishedKeys>,
    signer: Arc<FederationSigner>,
}

impl Deployment {
    /// Returns the document of signing keys.
    fn row(&self) -> EntityRow {
        let mut found = None;
        self.store.tamper_with_entities(|rows| {
            found = rows.values().find(|row| row.key.kind == Kind::SigningKeys).cloned();
        });
        found.unwrap()
    }

    /// Replaces the documents of signing keys by this one, and lets a second pass.
    fn put_back(&self, row: EntityRow) {
        self.store.tamper_with_entities(|rows| {
            rows.retain(|(_, kind, _), _| *kind != Kind::SigningKeys.as_str());
            rows.insert(row.key.order(), row);
        });
        self.clock.advance_seconds(1);
    }

    fn claims(&self) -> FederationClaims {
        let (organization, credential) = (OrganizationId::from_bytes([2; 16]), CredentialId::from_bytes([3; 16]));
        FederationClaims {
            issuer: issuer(),
            subject: FederationSubject::new(organization, credential),
            audience: FederationAudience::of_sts("https://sts.amazonaws.com").unwrap(),
            now: self.clock.now(),
            id: self.ids.random(),
        }
    }
}

impl Replica {
    async fn start(deployment: &Deployment) -> Self {
        let process = deployment.start().await;
        let signer = Arc::new(FederationSigner::new(issuer()));
        let operations = process.operations.clone();
        let federation = Federation::new(process.environment.clone(), operations, Arc::new(FederationKeys));
        let published = Arc::new(PublishedKeys::new(issuer()));
        let publisher = FederationPublisher::new(federation.clone(), published.clone(), Some(signer.clone()));
        Self { process, federation, publisher, published, signer }
    }

    async fn states(&self) -> Vec<(String, FederationKeyState)> {
        let keys = self.federation.status(&issuer()).await.unwrap().keys;
        keys.into_iter().map(|key| (key.kid().to_owned(), key.state)).collect()
    }

    async fn add(&self, name: &str) -> String {
        self.federation.add_key(&issuer(), &pem(name)).await.unwrap().unwrap()
    }

    /// Returns the key IDs in its key set, after reading the keys.
    async fn published(&mut self) -> Vec<String> {
        self.publisher.refresh().await.unwrap();
        kids(&self.published.key_set_document())
    }

    /// Signs a token and returns its key ID, or `None` if it has no key.
    async fn sign(&self, deployment: &Deployment) -> Option<(String, SecretString)> {
        let token = self.signer.sign(&deployment.claims()).await.ok()?;
        let header = URL_SAFE_NO_PAD.decode(token.expose_secret().split('.').next().unwrap()).unwrap();
        let kid = serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned();
        Some((kid, token))
    }

    /// Runs the task of a minute.
    async fn minute(&mut self, publication: &dyn IssuerPublication) {
        self.federation.check_if_due(&issuer(), publication).await.unwrap();
        self.federation.advance(&issuer()).await.unwrap();
        self.publisher.refresh().await.unwrap();
    }

    async fn findings(&self) -> Vec<RowFinding> {
        let (mut round, mut found) = (self.process.inspector.begin(), Vec::new());
        while round.step(9, &mut |finding| found.push(finding)).await.unwrap() {}
        found
    }
}

fn kids(document: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(document).unwrap();
    document["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

/// The web server of the issuer: a copy of the documents of a replica, cached for up to an hour.
#[derive(Default)]
struct Website(Mutex<Option<PublishedDocuments>>);

impl Website {
    fn copy(&self, published: &PublishedKeys) {
        *self.0.lock().unwrap() = Some(PublishedDocuments {
            discovery: published.discovery_document().as_bytes().to_vec(),
            key_set: published.key_set_document().as_bytes().to_vec(),
            cache_control: Some("public, max-age=3600".to_owned()),
        });
    }

    fn key_set(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone().unwrap().key_set).unwrap()
    }
}

#[async_trait]
impl IssuerPublication for Website {
    async fn fetch(&self, _: &FederationIssuer) -> Result<PublishedDocuments, PublicationFailure> {
        self.0.lock().unwrap().clone().ok_or(PublicationFailure::Unreachable)
    }
}

#[tokio::test]
async fn first_key_signs_when_its_publication_was_found() {
    let deployment = Deployment::seeded(1).await;
    let (mut replica, website) = (Replica::start(&deployment).await, Website::default());
    assert_eq!(replica.published().await, [""; 0]);
    let kid = replica.add("accepted/2048").await;
    replica.minute(&website).await;
    assert!(replica.sign(&deployment).await.is_none(), "providers cannot read it");
    let status = replica.federation.status(&issuer()).await.unwrap();
    assert_eq!(status.checks.of(&kid).unwrap().failure, Some(PublicationFailure::Unreachable));
    website.copy(&replica.published);
    deployment.clock.advance_seconds(15 * 60);
    replica.minute(&website).await;
    let (signed, token) = replica.sign(&deployment).await.unwrap();
    assert_eq!(signed, kid);
    JwtVerifier.verify(&token, &website.key_set(), KeyUse::Signature).unwrap();
    assert_eq!(deployment.events.recorded(AuditAction::FederationKeyAdded), 1);
    assert_eq!(deployment.events.recorded(AuditAction::FederationKeyPromoted), 1);
}

/// Every provider caches the key set for an hour, and the website is updated once an hour.
#[tokio::test]
async fn rotation_on_three_replicas_fails_no_exchange() {
    let deployment = Deployment::seeded(1).await;
    let website = Website::default();
    let mut replicas =
        [Replica::start(&deployment).await, Replica::start(&deployment).await, Replica::start(&deployment).await];
    let first = replicas[0].add("accepted/2048").await;
    replicas[0].published().await;
    website.copy(&replicas[0].published);
    replicas[0].minute(&website).await;
    let second = replicas[1].add("accepted/3072").await;
    let mut cached = website.key_set();
    let mut signed_by = Vec::new();
    for minute in 0..30 * 60 {
        for replica in &mut replicas {
            replica.minute(&website).await;
        }
        for replica in replicas.iter().filter(|_| minute % 10 == 0) {
            let (kid, token) = replica.sign(&deployment).await.expect("the old key signs until the new one does");
            JwtVerifier.verify(&token, &cached, KeyUse::Signature).unwrap();
            if signed_by.last() != Some(&kid) {
                signed_by.push(kid);
            }
        }
        if minute % 60 == 30 {
            website.copy(&replicas[2].published);
        }
        if minute % 60 == 0 {
            cached = website.key_set();
        }
        deployment.clock.advance_seconds(60);
    }
    assert_eq!(signed_by, [first.clone(), second.clone()]);
    assert_eq!(replicas[0].published().await, [second.clone(), first.clone()]);
    assert_eq!(replicas[0].states().await[1], (first, FederationKeyState::Retired));
    assert_eq!(deployment.events.recorded(AuditAction::FederationKeyPromoted), 2);
    assert_eq!(deployment.events.recorded(AuditAction::FederationKeyRetired), 1);
    // The replaced key is removed with the next addition.
    let third = replicas[1].add("accepted/4096").await;
    assert_eq!(replicas[0].published().await, [third, second]);
    assert_eq!(deployment.events.recorded(AuditAction::FederationKeyRemoved), 1);
}

/// Returns a deployment with a current and a next key.
async fn with_two_keys() -> (Deployment, Replica, Website, [String; 2]) {
    let deployment = Deployment::seeded(1).await;
    let (mut replica, website) = (Replica::start(&deployment).await, Website::default());
    let first = replica.add("accepted/2048").await;
    replica.published().await;
    website.copy(&replica.published);
    replica.minute(&website).await;
    let second = replica.add("accepted/3072").await;
    replica.published().await;
    website.copy(&replica.published);
    replica.minute(&website).await;
    assert_eq!(replica.sign(&deployment).await.unwrap().0, first);
    (deployment, replica, website, [first, second])
}

#[tokio::test]
async fn leaked_key_is_replaced_immediately_and_removed_on_all_replicas() {
    let (deployment, mut replica, website, [first, second]) = with_two_keys().await;
    let mut other = Replica::start(&deployment).await;
    assert_eq!(other.published().await.len(), 2);
    let before = deployment.row();
    let early = replica.federation.promote_key(&issuer(), false).await;
    assert!(
        matches!(early, Err(Error::Refused(Refusal::FederationKey(FederationKeyError::NotRead(kid)))) if kid == second)
    );
    let promoted = replica.federation.promote_key(&issuer(), true).await.unwrap();
    assert_eq!(promoted, (second.clone(), vec![first.clone()]));
    deployment.clock.advance_seconds(1);
    assert_eq!(other.published().await, [second.clone(), first.clone()], "until it is removed");
    replica.federation.remove_key(&issuer(), &first).await.unwrap();
    deployment.clock.advance_seconds(1);
    for replica in [&mut replica, &mut other] {
        assert_eq!(replica.published().await, std::slice::from_ref(&second));
        assert_eq!(replica.sign(&deployment).await.unwrap().0, second);
    }
    let report = replica.federation.check(&issuer(), &website).await.unwrap();
    assert_eq!(report.findings, [(PublicationFailure::UnknownKey, Some(first.clone()))]);
    let again = replica.federation.promote_key(&issuer(), true).await;
    assert!(matches!(again, Err(Error::Refused(Refusal::FederationKey(FederationKeyError::NoNext)))));
    let current = replica.federation.remove_key(&issuer(), &second).await;
    assert!(matches!(current, Err(Error::Refused(Refusal::FederationKey(FederationKeyError::Current(_))))));
    // SQL cannot restore the key: all keys of an earlier document are refused, until an operator adds one.
    let newest = deployment.row();
    deployment.put_back(before);
    assert_eq!(replica.published().await, [""; 0]);
    assert!(replica.sign(&deployment).await.is_none());
    deployment.put_back(newest);
    assert_eq!(replica.published().await, [second]);
}

#[tokio::test]
async fn command_races_automatic_promotion_without_a_second_current_key() {
    for nth in 0..8 {
        let (deployment, replica, website, _) = with_two_keys().await;
        deployment.clock.advance_seconds(24 * HOUR);
        replica.federation.check(&issuer(), &website).await.unwrap();
        let other = Replica::start(&deployment).await;
        let (own, issuer) = (issuer(), issuer());
        let (promoted, advanced) = match nth % 2 {
            0 => tokio::join!(replica.federation.promote_key(&own, true), other.federation.advance(&issuer)),
            _ => {
                let (advanced, promoted) =
                    tokio::join!(other.federation.advance(&issuer), replica.federation.promote_key(&own, true));
                (promoted, advanced)
            }
        };
        advanced.unwrap();
        assert!(promoted.is_ok() || matches!(promoted, Err(Error::Refused(Refusal::FederationKey(_)))));
        let states = replica.states().await;
        assert_eq!(states.iter().filter(|(_, state)| *state == FederationKeyState::Current).count(), 1);
    }
}

#[tokio::test]
async fn keys_survive_a_rotation_of_the_instance_key() {
    let (deployment, mut replica, _, [first, second]) = with_two_keys().await;
    let before = deployment.row();
    let rotation = replica.process.keys.rotate_instance().await.unwrap();
    while rotation.step().await.unwrap().is_some() {}
    let end = rotation.finish().await.unwrap().unwrap();
    assert_eq!((end.destroyed.len(), end.kept.len()), (1, 0));
    assert_ne!(before.sealed.key(), deployment.row().sealed.key());
    let mut fresh = Replica::start(&deployment).await;
    deployment.clock.advance_seconds(1);
    for replica in [&mut replica, &mut fresh] {
        let mut published = replica.published().await;
        published.sort();
        let mut expected = [first.clone(), second.clone()];
        expected.sort();
        assert_eq!(published, expected);
        assert_eq!(replica.sign(&deployment).await.unwrap().0, first);
        assert_eq!(replica.findings().await, []);
    }
    assert_eq!(fresh.federation.promote_key(&issuer(), true).await.unwrap().0, second);
}

#[tokio::test]
async fn restore_keeps_only_keys_that_are_still_published() {
    let (deployment, mut replica, _, [first, second]) = with_two_keys().await;
    let keys = replica.federation.status(&issuer()).await.unwrap().keys;
    let kept = keys.into_iter().find(|key| key.kid() == first).unwrap().jwk;
    assert_eq!(replica.federation.retire_others(&[kept]).await.unwrap(), std::slice::from_ref(&second));
    deployment.clock.advance_seconds(1);
    assert_eq!(replica.published().await, std::slice::from_ref(&first));
    assert_eq!(replica.federation.retire_others(&[]).await.unwrap(), [first]);
    deployment.clock.advance_seconds(1);
    assert_eq!(replica.published().await, [""; 0]);
    assert!(replica.sign(&deployment).await.is_none());
    // They are listed until they are removed, or another key is added.
    let retired = |states: Vec<(String, FederationKeyState)>| {
        states.into_iter().filter(|(_, state)| *state == FederationKeyState::Retired).count()
    };
    assert_eq!(retired(replica.states().await), 2);
    let leaked = replica.federation.add_key(&issuer(), &pem("accepted/2048")).await;
    assert!(matches!(leaked, Err(Error::Refused(Refusal::FederationKey(FederationKeyError::Known(_))))));
    replica.federation.remove_key(&issuer(), &second).await.unwrap();
    let third = replica.add("accepted/4096").await;
    assert_eq!(replica.states().await, [(third, FederationKeyState::Next)]);
}
