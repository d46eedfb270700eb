//! Notifying receivers: each event is delivered at least once, in order for each subject, despite failures.

use async_trait::async_trait;
use proptest::prelude::*;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use uuid::Uuid;
use vault_core::entity::DocumentSecret;
use vault_core::id::OrganizationId;
use vault_core::port::{Clock as _, Event, EventCarrier, WebhookMessage};
use vault_core::principal::Principal;
use vault_core::receiver::{Channel, DeliveryFailure, EventDelivery, EventKind};
use vault_core::usecase::Notifier;
use vault_core::usecase::receivers::{AddReceiverRequest, AddedReceiver};
use vault_core::{Error, Refusal};
use vault_testkit::fake::FakeVault;

const HOLDER: Uuid = Uuid::from_u128(1);
const OPERATOR: Principal = Principal::Operator;

/// Messages that arrived at each address, and the next responses of each address.
#[derive(Default)]
struct Post {
    arrived: Mutex<Vec<(String, String, String)>>,
    answers: Mutex<HashMap<String, DeliveryFailure>>,
    /// Text of the event at which every address drops the connection, if any.
    drops_at: Mutex<Option<&'static str>>,
}

impl Post {
    fn answer(&self, address: &str, failure: Option<DeliveryFailure>) {
        let mut answers = self.answers.lock().unwrap();
        match failure {
            Some(failure) => drop(answers.insert(address.to_owned(), failure)),
            None => drop(answers.remove(address)),
        }
    }

    fn take(&self, address: &str, id: &str, content: &str) -> Result<(), DeliveryFailure> {
        if let Some(failure) = self.answers.lock().unwrap().get(address) {
            return Err(*failure);
        }
        if self.drops_at.lock().unwrap().is_some_and(|text| content.contains(text)) {
            return Err(DeliveryFailure::Unreachable);
        }
        self.arrived.lock().unwrap().push((address.to_owned(), id.to_owned(), content.to_owned()));
        Ok(())
    }

    /// Returns IDs and bodies that arrived at an address, in order.
    fn at(&self, address: &str) -> Vec<(String, serde_json::Value)> {
        let arrived = self.arrived.lock().unwrap();
        let of = arrived.iter().filter(|(to, ..)| to == address);
        of.map(|(_, id, body)| (id.clone(), serde_json::from_str(body).unwrap_or_default())).collect()
    }
}

#[async_trait]
impl EventCarrier for Post {
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        assert!(message.secrets[0].expose_secret().starts_with("whsec_"));
        self.take(message.url.expose_secret(), &message.id, &message.body)
    }

    async fn mail(&self, to: &SecretString, id: &str, events: &[EventDelivery]) -> Result<(), DeliveryFailure> {
        let bodies: Vec<_> = events.iter().map(|event| event.body.as_str()).collect();
        self.take(to.expose_secret(), id, &bodies.join("\n"))
    }
}

struct World {
    vault: FakeVault,
    post: Arc<Post>,
    notifier: Notifier,
    acme: OrganizationId,
    admin: Principal,
}

impl World {
    async fn new() -> Self {
        let (vault, post) = (FakeVault::new(), Arc::new(Post::default()));
        let acme = vault.operator().ensure_organization("acme").await.unwrap().id;
        let admin =
            Principal::embedder(acme, vault_core::id::AccountId::from_bytes([1; 16]), vault_core::role::Role::Admin);
        let notifier = vault.notifier(post.clone());
        Self { vault, post, notifier, acme, admin }
    }

    async fn add(&self, who: &Principal, address: &str) -> AddedReceiver {
        let channel = if address.contains('@') { Channel::Email } else { Channel::Webhook };
        let request = AddReceiverRequest { channel, address: address.to_owned(), events: Vec::new() };
        self.vault.receivers().add(who, request).await.unwrap()
    }

    /// Freezes or thaws a namespace, which causes an event with its name as subject.
    async fn freeze(&self, namespace: &str, frozen: bool) {
        let integrations = self.vault.integrations();
        let namespace = namespace.parse().unwrap();
        let _ = if frozen {
            integrations.freeze(&self.admin, self.acme, namespace).await.unwrap()
        } else {
            integrations.thaw(&self.admin, self.acme, namespace).await.unwrap()
        };
    }

    /// Seals the audit log, reads events and delivers pending messages.
    async fn round(&self) {
        self.vault.operator().seal_audit(1_000).await.unwrap();
        while self.notifier.read_events(HOLDER).await.unwrap().is_some_and(|read| read.more) {}
        for receiver in self.notifier.due().await.unwrap() {
            self.notifier.deliver(receiver).await.unwrap();
        }
    }

    fn pass(&self, seconds: i64) {
        self.vault.clock.advance_seconds(seconds);
    }
}

/// A change of the vault, or of a receiver.
#[derive(Clone, Debug)]
enum Step {
    Toggle(usize),
    Answer(usize, Option<DeliveryFailure>),
    Pass(i64),
    Round,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let failure = prop::sample::select(vec![
        None,
        None,
        Some(DeliveryFailure::Unreachable),
        Some(DeliveryFailure::Refused),
        Some(DeliveryFailure::Tls),
        Some(DeliveryFailure::Redirected),
    ]);
    let step = prop_oneof![
        4 => (0_usize..3).prop_map(Step::Toggle),
        2 => (0_usize..2, failure).prop_map(|(receiver, failure)| Step::Answer(receiver, failure)),
        2 => (1_i64..4_000).prop_map(Step::Pass),
        3 => Just(Step::Round),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..60)
}

const ADDRESSES: [&str; 2] = ["https://one.example/x", "https://two.example/y"];
const NAMESPACES: [&str; 3] = ["imports", "exports", "links"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Despite failures and process kills: once receivers accept again, each has received every event, always with the
    /// same ID, and the events of one namespace in order.
    #[test]
    fn events_are_delivered_in_order(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for address in ADDRESSES {
                world.add(&world.admin, address).await;
            }
            world.round().await;
            let (mut frozen, mut expected) = ([false; 3], BTreeMap::<&str, Vec<&str>>::new());
            for step in steps {
                match step {
                    Step::Toggle(which) => {
                        frozen[which] = !frozen[which];
                        world.freeze(NAMESPACES[which], frozen[which]).await;
                        let kind = if frozen[which] { "namespace.frozen" } else { "namespace.thawed" };
                        expected.entry(NAMESPACES[which]).or_default().push(kind);
                        world.pass(1);
                    }
                    Step::Answer(receiver, failure) => world.post.answer(ADDRESSES[receiver], failure),
                    Step::Pass(seconds) => world.pass(seconds),
                    Step::Round => world.round().await,
                    // Events that were read and not recorded are read again, and so are deliveries that were not
                    // recorded.
                    Step::Crash => world.notifier = world.vault.notifier(world.post.clone()),
                }
            }
            ADDRESSES.iter().for_each(|address| world.post.answer(address, None));
            for _ in 0..30 {
                world.pass(1_800);
                world.round().await;
            }
            for address in ADDRESSES {
                let arrived = world.post.at(address);
                let mut first = Vec::new();
                for (id, body) in &arrived {
                    if !first.iter().any(|(seen, _)| seen == &id) {
                        first.push((id, body));
                    }
                }
                for namespace in NAMESPACES {
                    let of: Vec<_> = first
                        .iter()
                        .filter(|(_, body)| body["data"]["namespace"] == namespace)
                        .map(|(_, body)| body["type"].as_str().unwrap())
                        .collect();
                    assert_eq!(&of, expected.get(namespace).unwrap_or(&Vec::new()), "{namespace} at {address}");
                }
                assert!(arrived.iter().all(|(id, _)| id.starts_with("msg_")));
            }
        });
    }
}

#[tokio::test]
async fn failing_receiver_delays_no_other() {
    let world = World::new().await;
    for address in ADDRESSES {
        world.add(&world.admin, address).await;
    }
    world.round().await;
    world.post.answer(ADDRESSES[0], Some(DeliveryFailure::Unreachable));
    world.freeze("imports", true).await;
    world.round().await;
    assert_eq!((world.post.at(ADDRESSES[0]).len(), world.post.at(ADDRESSES[1]).len()), (0, 1));
    world.pass(24 * 3600);
    for _ in 0..3 {
        world.pass(3_600);
        world.round().await;
    }
    let listed = world.vault.receivers().list(&world.admin).await.unwrap();
    let states: Vec<_> = listed.iter().map(|stored| (stored.shown_state(), stored.status.last_failure)).collect();
    assert_eq!(states, [("failing", Some(DeliveryFailure::Unreachable)), ("active", None)]);
    // The receiver gets later events again once it accepts.
    world.post.answer(ADDRESSES[0], None);
    world.pass(3_600 * 5);
    world.freeze("imports", false).await;
    world.round().await;
    assert_eq!(world.post.at(ADDRESSES[0]).len(), 1);
    assert_eq!(world.vault.receivers().list(&world.admin).await.unwrap()[0].shown_state(), "active");
}

#[tokio::test]
async fn dropped_connection_delays_no_other_subject() {
    let world = World::new().await;
    world.add(&world.admin, ADDRESSES[0]).await;
    world.round().await;
    *world.post.drops_at.lock().unwrap() = Some("imports");
    for namespace in NAMESPACES {
        world.freeze(namespace, true).await;
    }
    world.round().await;
    assert_eq!(world.post.at(ADDRESSES[0]).len(), 0, "the first event is `imports`");
    for _ in 0..7 {
        world.pass(10);
        world.round().await;
    }
    assert_eq!(world.post.at(ADDRESSES[0]).len(), 2);
    // Later events do not wait for the long pauses of the one that fails.
    for _ in 0..4 {
        world.pass(3_600);
        world.round().await;
    }
    world.freeze("exports", false).await;
    world.round().await;
    world.pass(10);
    world.round().await;
    assert_eq!(world.post.at(ADDRESSES[0]).len(), 3);
}

#[tokio::test]
async fn mail_is_sent_at_most_hourly() {
    let world = World::new().await;
    let to = "ops@example.com";
    // Operators may do this, but mail of an organization goes only to its users.
    let added = world.add(&OPERATOR, to).await;
    world.round().await;
    let receivers = world.vault.receivers();
    let mails = || world.post.arrived.lock().unwrap().iter().filter(|(at, ..)| at == to).count();
    receivers.raise(EventKind::BackupFailed, None).await.unwrap();
    world.round().await;
    assert_eq!(mails(), 1, "the first is sent immediately");
    for _ in 0..5 {
        world.pass(60);
        receivers.raise(EventKind::InspectionFound, None).await.unwrap();
        world.round().await;
    }
    assert_eq!(mails(), 1);
    receivers.test(&OPERATOR, added.receiver.key.id).await.unwrap();
    world.round().await;
    assert_eq!(mails(), 2, "a test does not wait");
    world.pass(3_600);
    world.round().await;
    assert_eq!(mails(), 3);
    let text = world.post.arrived.lock().unwrap().last().unwrap().2.clone();
    assert_eq!(text.matches(EventKind::InspectionFound.as_str()).count(), 5, "{text}");
    world.pass(3_600 * 2);
    world.round().await;
    assert_eq!(mails(), 3);
}

#[tokio::test]
async fn receivers_get_only_events_of_their_owner() {
    let world = World::new().await;
    let other = world.vault.operator().ensure_organization("other").await.unwrap().id;
    let account = vault_core::id::AccountId::from_bytes([2; 16]);
    let stranger = Principal::embedder(other, account, vault_core::role::Role::Admin);
    let editor = Principal::embedder(world.acme, account, vault_core::role::Role::Editor);
    world.add(&world.admin, "https://acme.example/").await;
    let of_other = world.add(&stranger, "https://other.example/").await;
    world.add(&OPERATOR, "https://instance.example/").await;
    world.round().await;
    world.freeze("imports", true).await;
    world.vault.receivers().raise(EventKind::BackupFailed, None).await.unwrap();
    world.round().await;
    let kinds = |address: &str| -> Vec<String> {
        world.post.at(address).iter().map(|(_, body)| body["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds("https://acme.example/"), ["namespace.frozen"]);
    assert_eq!(kinds("https://other.example/"), [""; 0]);
    assert_eq!(kinds("https://instance.example/"), ["backup.failed"]);
    let receivers = world.vault.receivers();
    assert!(matches!(receivers.list(&editor).await, Err(Error::Denied(_))));
    let id = of_other.receiver.key.id;
    for who in [&world.admin, &OPERATOR] {
        assert!(matches!(receivers.show(who, id).await, Err(Error::Refused(Refusal::NotFound))));
        assert!(matches!(receivers.remove(who, id).await, Err(Error::Refused(Refusal::NotFound))));
        assert!(matches!(receivers.test(who, id).await, Err(Error::Refused(Refusal::NotFound))));
    }
}

#[tokio::test]
async fn replaced_secret_signs_for_a_day() {
    let world = World::new().await;
    let added = world.add(&world.admin, ADDRESSES[0]).await;
    let (receivers, id) = (world.vault.receivers(), added.receiver.key.id);
    let first = DocumentSecret::from(added.secret.unwrap());
    let (stored, second) = receivers.replace_secret(&world.admin, id).await.unwrap();
    let second = DocumentSecret::from(second);
    assert_ne!(first, second);
    let at = |seconds| world.vault.clock.now().plus_seconds(seconds);
    let signing =
        |seconds| stored.receiver.secrets(at(seconds)).into_iter().map(DocumentSecret::from).collect::<Vec<_>>();
    assert_eq!(signing(24 * 3600 - 1), [second.clone(), first]);
    assert_eq!(signing(24 * 3600), [second]);
    let added = world.add(&OPERATOR, "ops@example.com").await;
    let refused = receivers.replace_secret(&OPERATOR, added.receiver.key.id).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn delivery_takeover_is_reported() {
    let world = World::new().await;
    let (second, other) = (world.vault.notifier(world.post.clone()), Uuid::from_u128(2));
    let taken_over = || world.vault.events.take().iter().filter(|event| **event == Event::EventsTakenOver).count();
    assert!(world.notifier.read_events(HOLDER).await.unwrap().is_some());
    assert!(second.read_events(other).await.unwrap().is_none());
    assert_eq!(taken_over(), 0, "the first one took over no delivery");
    world.notifier.end(HOLDER).await.unwrap();
    for _ in 0..2 {
        assert!(second.read_events(other).await.unwrap().is_some());
    }
    assert_eq!(taken_over(), 1);
}
