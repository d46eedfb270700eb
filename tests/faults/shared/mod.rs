//! Clients that write the same credentials through any replica. The history of each credential is checked after each
//! round.

mod history;

use crate::ledger::Outcome;
use crate::log::AckLog;
use crate::workers::Tally;
use history::{Operation, Request, Response, is_explained};
use serde_json::{Value, json};
use simulated_disk::random::Random;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vault_tests::samples::small;
use vault_tests::{Answer, Client, Integration};

/// Number of clients that share credentials, and number of credentials that they share.
pub(crate) const CLIENTS: usize = 4;
const CREDENTIALS: usize = 2;
/// Maximum number of operations of a client in a round. More would make the check of the history too slow.
const MOST: usize = 60;
/// After this number of writes with unknown outcome, a credential is only read for the rest of a round. Each such write
/// can have its effect at any later time, which doubles the search space of the check.
const MAX_INDETERMINATE: usize = 6;
/// Maximum pause of a client between two operations.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
const NAMESPACE: &str = "worker/shared";
const VAULT: &str = "/v1/organization-vault";

/// The credentials of the current round and their histories.
pub(crate) struct Shared {
    token: String,
    integration: Integration,
    /// The activation listener.
    activation_listener: Client,
    credentials: Vec<Credential>,
    /// The clock of the histories.
    clock: AtomicU64,
    /// Number of the last value.
    values: AtomicUsize,
    /// Number of checked histories, and of the operations in them.
    pub(crate) evaluated: (u64, u64),
}

struct Credential {
    id: String,
    history: Mutex<Vec<Operation>>,
    /// Number of writes with unknown outcome in the history.
    indeterminate: AtomicUsize,
}

/// One of the clients.
pub(crate) struct Sharer {
    random: Random,
    /// The last entity tag of each credential in a response, and the version that this client staged.
    known: Vec<(Option<String>, Option<i64>)>,
    left: usize,
}

impl Sharer {
    pub(crate) fn new(seed: u64, number: usize) -> Self {
        Self { random: Random::of(seed, 1_000 + number as u64), known: Vec::new(), left: MOST }
    }

    /// Discards the credentials of the last round.
    pub(crate) fn begin(&mut self) {
        (self.known, self.left) = (vec![(None, None); CREDENTIALS], MOST);
    }

    /// Performs one random operation.
    pub(crate) fn act(&mut self, shared: &Shared, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        // The pauses grow, so that a short round has operations and a long round has them until its end.
        let done = (MOST - self.left) as u64;
        std::thread::sleep(Duration::from_millis(3 + done * done / 4).min(LONGEST_PAUSE));
        if self.left == 0 {
            return Outcome::Done;
        }
        self.left -= 1;
        let place = self.random.below(shared.credentials.len());
        let (tag, staged) = self.known[place].clone();
        let value = || shared.values.fetch_add(1, Ordering::Relaxed) + 1;
        let is_indeterminate = shared.credentials[place].indeterminate.load(Ordering::Relaxed) >= MAX_INDETERMINATE;
        let request = match (self.random.below(100), tag, staged) {
            _ if is_indeterminate => Request::Show,
            (0..2, ..) => Request::Delete,
            (2..7, ..) => Request::Activate,
            (7..35, ..) => Request::Show,
            (35..50, _, Some(version)) => Request::Promote { version },
            (35..50, _, None) => Request::Stage { value: value() },
            (50..75, Some(tag), _) => Request::Replace { value: value(), tag: Some(tag) },
            _ => Request::Replace { value: value(), tag: None },
        };
        let (outcome, response) = shared.carry_out(place, &request, client, log, tally);
        let known = &mut self.known[place];
        match (&request, response) {
            (_, Some(Response::Current { tag: Some(tag), .. })) => known.0 = Some(tag),
            (Request::Stage { .. }, Some(Response::Made { version, tag })) => *known = (tag, Some(version)),
            (_, Some(Response::Made { tag, .. })) => known.0 = tag,
            _ => {}
        }
        // Only this client promotes the version, and it does so once.
        if matches!(request, Request::Promote { .. }) {
            known.1 = None;
        }
        outcome
    }
}

impl Shared {
    /// Creates the credentials that members with this token share and activate through `activation_listener`.
    pub(crate) fn new(token: &str, integration: Integration, activation_listener: Client) -> Self {
        let (clock, values) = (AtomicU64::new(0), AtomicUsize::new(1_000_000));
        Self {
            token: token.to_owned(),
            integration,
            activation_listener,
            credentials: Vec::new(),
            clock,
            values,
            evaluated: (0, 0),
        }
    }

    /// Saves the credentials of the next round.
    pub(crate) fn begin(&mut self, client: &Client, losses: &mut Vec<String>) {
        self.credentials.clear();
        for _ in 0..CREDENTIALS {
            let value = self.values.fetch_add(1, Ordering::Relaxed) + 1;
            let started = self.tick();
            let save = client.request("PATCH", VAULT).bearer(&self.token).json(&small(NAMESPACE, value)).try_send();
            match save {
                Ok(answer) if answer.status == 201 => {
                    let (request, ended) = (Request::Save { value }, self.tick());
                    let response = Some(Response::Made { version: 1, tag: tag_of(&answer) });
                    let id = answer.json()["id"].as_str().expect("an id").to_owned();
                    let history = Mutex::new(vec![Operation { request, response, started, ended }]);
                    self.credentials.push(Credential { id, history, indeterminate: AtomicUsize::new(0) });
                }
                answer => losses.push(format!("a shared credential cannot be saved: {answer:?}")),
            }
        }
    }

    /// Returns `true` if the credentials of the round exist.
    pub(crate) fn is_ready(&self) -> bool {
        self.credentials.len() == CREDENTIALS
    }

    /// Reads each credential once more and checks its history.
    pub(crate) fn evaluate(&mut self, client: &Client, log: &AckLog, losses: &mut Vec<String>) {
        let mut tally = Tally::default();
        for place in 0..self.credentials.len() {
            self.carry_out(place, &Request::Show, client, log, &mut tally);
            let Credential { id, history, .. } = &self.credentials[place];
            let operations = history.lock().unwrap().clone();
            self.evaluated = (self.evaluated.0 + 1, self.evaluated.1 + operations.len() as u64);
            if !is_explained(&operations) {
                let file = log.with_extension(&format!("history-{}", self.evaluated.0));
                let mut text = String::new();
                operations.iter().for_each(|operation| writeln!(text, "{operation:?}").unwrap());
                std::fs::write(&file, text).unwrap();
                losses.push(format!("no order explains the writes to {id}: {}", file.display()));
            }
            let _ = client.request("DELETE", &format!("{VAULT}/{id}")).bearer(&self.token).try_send();
        }
        losses.append(&mut tally.wrong);
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn carry_out(
        &self,
        place: usize,
        request: &Request,
        client: &Client,
        log: &AckLog,
        tally: &mut Tally,
    ) -> (Outcome, Option<Response>) {
        let Credential { id, history, indeterminate } = &self.credentials[place];
        let began = Instant::now();
        let started = self.tick();
        let answer = self.send(id, request, client);
        let ended = self.tick();
        let response = answer.as_ref().ok().and_then(|answer| response_to(request, id, answer));
        let is_write = !matches!(request, Request::Show | Request::Activate);
        let outcome = match (&response, &answer) {
            (Some(Response::NotFound | Response::Changed), _) => Outcome::Refused,
            _ => tally.count(&answer, began.elapsed()),
        };
        if is_write {
            log.note(&format!("{NAMESPACE} {id} {request:?}"), outcome);
        }
        // A read without a response and a write that was rejected for another reason are no part of the history.
        let is_indeterminate = response.is_none() && is_write && outcome == Outcome::Indeterminate;
        indeterminate.fetch_add(usize::from(is_indeterminate), Ordering::Relaxed);
        if response.is_some() || is_indeterminate {
            let operation = Operation { request: request.clone(), response: response.clone(), started, ended };
            history.lock().unwrap().push(operation);
        }
        (if response.is_some() { Outcome::Done } else { outcome }, response)
    }

    fn send(&self, id: &str, request: &Request, client: &Client) -> Result<Answer, String> {
        let versions = |value: &usize, stage: bool| {
            let body = json!({"data": small(NAMESPACE, *value)["data"], "stage": stage});
            client.request("POST", &format!("{VAULT}/{id}/versions")).json(&body)
        };
        let call = match request {
            Request::Save { .. } | Request::Show => client.request("GET", &format!("{VAULT}/{id}")),
            Request::Activate => {
                self.activation_listener.request("POST", "/v1/activations").json(&json!({"namespace": NAMESPACE}))
            }
            Request::Replace { value, tag: None } => versions(value, false),
            Request::Replace { value, tag: Some(tag) } => versions(value, false).header("if-match", tag),
            Request::Stage { value } => versions(value, true),
            Request::Promote { version } => {
                client.request("POST", &format!("{VAULT}/{id}/promote")).json(&json!({"version": version}))
            }
            Request::Delete => client.request("DELETE", &format!("{VAULT}/{id}")),
        };
        let token = if *request == Request::Activate { &self.integration.token } else { &self.token };
        call.bearer(token).try_send().map_err(|error| error.to_string())
    }
}

fn tag_of(answer: &Answer) -> Option<String> {
    answer.header("etag").map(str::to_owned)
}

fn value_of(bucket: &Value) -> usize {
    let number = bucket.as_str().and_then(|bucket| bucket.strip_prefix("exports-")?.parse().ok());
    number.expect("a bucket of these clients")
}

/// Returns the response as the history records it, or `None` if it shows nothing about the credential, such as a 503.
fn response_to(request: &Request, id: &str, answer: &Answer) -> Option<Response> {
    match (answer.status, request) {
        (404, _) => Some(Response::NotFound),
        (412, _) => Some(Response::Changed),
        (201, Request::Activate) => {
            let given = answer.json();
            let given = given["credentials"].as_array().expect("credentials").iter().find(|given| given["id"] == *id);
            let current = |given: &Value| Response::Current {
                version: given["version"].as_i64().expect("a version"),
                value: value_of(&given["data"]["bucket"]),
                tag: None,
            };
            Some(given.map_or(Response::NotFound, current))
        }
        (200, Request::Show) => {
            let shown = answer.json();
            let version = shown["version"].as_i64().expect("a version");
            Some(Response::Current { version, value: value_of(&shown["information"]["bucket"]), tag: tag_of(answer) })
        }
        (200, Request::Promote { version }) => Some(Response::Made { version: *version, tag: tag_of(answer) }),
        (201, _) => {
            let version = answer.json()["version"].as_i64().expect("a version");
            Some(Response::Made { version, tag: tag_of(answer) })
        }
        (204, Request::Delete) => Some(Response::Deleted),
        _ => None,
    }
}
