//! A client that is the only writer of its keys.

use crate::ledger::{Outcome, Possible, State};
use crate::log::AckLog;
use crate::workers::Tally;
use serde_json::{Value, json};
use simulated_disk::random::Random;
use std::collections::HashMap;
use std::time::Instant;
use vault_tests::samples::small;
use vault_tests::{Answer, Client};

/// Maximum number of credentials of a client.
const MOST: usize = 12;
/// Number of saves with unknown outcome, and of credentials with unknown value, from which a client resolves them.
const MAX_INDETERMINATE: usize = 5;
const VAULT: &str = "/v1/organization-vault";

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Save,
    Replace,
    Delete,
}

/// A client. Only this client uses its namespace.
pub(crate) struct Worker {
    namespace: String,
    token: String,
    random: Random,
    keys: Vec<Key>,
    /// Number of its last write.
    last: usize,
    /// The last write, unless it was rejected.
    pub(crate) last_write: Option<Write>,
}

/// A write: the expected state of a credential, identified by the save that created it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) namespace: String,
    pub(crate) save: usize,
    pub(crate) id: Option<String>,
    pub(crate) state: State,
}

/// A credential, identified by the save that created it.
struct Key {
    save: usize,
    id: Option<String>,
    possible: Possible,
}

impl Key {
    fn is_sure(&self) -> bool {
        self.id.is_some() && self.possible.sure().is_some()
    }

    fn is_there(&self) -> bool {
        matches!(self.possible.sure(), Some(State::Stored(_)))
    }

    /// Returns `true` if the credential was saved and a later write has an unknown outcome.
    fn is_doubtful(&self) -> bool {
        self.id.is_some() && self.possible.sure().is_none()
    }
}

impl Worker {
    /// Creates the client with this number and with a separate token.
    pub(crate) fn new(seed: u64, number: usize, token: &str) -> Self {
        let random = Random::of(seed, number as u64 + 1);
        Self {
            namespace: format!("worker/{number}"),
            token: token.to_owned(),
            random,
            keys: Vec::new(),
            last: 0,
            last_write: None,
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Makes one random write.
    pub(crate) fn write(&mut self, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        let there: Vec<usize> =
            (0..self.keys.len()).filter(|n| self.keys[*n].is_sure() && self.keys[*n].is_there()).collect();
        let choice = self.random.below(100);
        // A client repeats a save with unknown outcome.
        let mut indeterminate = (0..self.keys.len()).filter(|n| self.keys[*n].id.is_none());
        if let (Some(first), Some(_)) = (indeterminate.next(), indeterminate.nth(MAX_INDETERMINATE - 2)) {
            return self.repeat(first, client, log, tally);
        }
        let mut doubtful = (0..self.keys.len()).filter(|n| self.keys[*n].is_doubtful());
        if let (Some(first), Some(_)) = (doubtful.next(), doubtful.nth(MAX_INDETERMINATE - 2)) {
            return self.delete(first, client, log, tally);
        }
        match there.len() {
            0..3 => self.save(client, log, tally),
            MOST.. => self.delete(there[choice % there.len()], client, log, tally),
            _ if choice < 40 => self.save(client, log, tally),
            _ if choice < 75 => self.replace(there[choice % there.len()], client, log, tally),
            _ => self.delete(there[choice % there.len()], client, log, tally),
        }
    }

    /// Makes a write of this kind. Returns `None` if no credential is available for it.
    pub(crate) fn make(&mut self, act: Act, client: &Client, log: &AckLog, tally: &mut Tally) -> Option<Outcome> {
        let place = || (0..self.keys.len()).find(|n| self.keys[*n].is_sure() && self.keys[*n].is_there());
        match act {
            Act::Save => Some(self.save(client, log, tally)),
            Act::Replace => place().map(|place| self.replace(place, client, log, tally)),
            Act::Delete => place().map(|place| self.delete(place, client, log, tally)),
        }
    }

    /// Deletes the credentials with unknown value, and all but `most` of the others.
    pub(crate) fn clear(&mut self, most: usize, client: &Client, log: &AckLog, tally: &mut Tally) {
        let mut left = 0;
        for place in 0..self.keys.len() {
            let is_there = self.keys[place].is_sure() && self.keys[place].is_there();
            left += usize::from(is_there);
            if self.keys[place].is_doubtful() || is_there && left > most {
                self.delete(place, client, log, tally);
            }
        }
    }

    fn call(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let mut call = client.request(method, path).bearer(&self.token);
        if let Some(key) = key {
            call = call.header("idempotency-key", key);
        }
        if let Some(body) = body {
            call = call.json(body);
        }
        call.try_send().map_err(|error| error.to_string())
    }

    fn repeatable(&self, number: usize) -> String {
        format!("{}-{number}", self.namespace.replace('/', "-"))
    }

    fn save(&mut self, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        self.last += 1;
        let number = self.last;
        let started = Instant::now();
        let body = small(&self.namespace, number);
        let answer = self.call(client, "PATCH", VAULT, Some(&self.repeatable(number)), Some(&body));
        let outcome = tally.count(&answer, started.elapsed());
        log.note(&format!("{} save {number}", self.namespace), outcome);
        let mut possible = Possible::new();
        possible.attempted(State::Stored(number), outcome);
        let id = answer.ok().filter(|_| outcome == Outcome::Done).map(|answer| id_of(&answer));
        if outcome != Outcome::Refused {
            let namespace = self.namespace.clone();
            self.last_write = Some(Write { namespace, save: number, id: id.clone(), state: State::Stored(number) });
            self.keys.push(Key { save: number, id, possible });
        }
        outcome
    }

    fn repeat(&mut self, place: usize, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        let save = self.keys[place].save;
        let started = Instant::now();
        let body = small(&self.namespace, save);
        let answer = self.call(client, "PATCH", VAULT, Some(&self.repeatable(save)), Some(&body));
        let outcome = tally.count(&answer, started.elapsed());
        log.note(&format!("{} save {save} again", self.namespace), outcome);
        if let (Outcome::Done, Ok(answer)) = (outcome, answer) {
            let key = &mut self.keys[place];
            key.id = Some(id_of(&answer));
            key.possible.attempted(State::Stored(save), outcome);
        }
        outcome
    }

    fn replace(&mut self, place: usize, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        self.last += 1;
        let number = self.last;
        let id = self.keys[place].id.clone().unwrap();
        let body = json!({"data": small(&self.namespace, number)["data"], "stage": false});
        let started = Instant::now();
        let answer = self.call(client, "POST", &format!("{VAULT}/{id}/versions"), None, Some(&body));
        self.came_to(place, State::Stored(number), &answer, started, log, tally)
    }

    fn delete(&mut self, place: usize, client: &Client, log: &AckLog, tally: &mut Tally) -> Outcome {
        let id = self.keys[place].id.clone().unwrap();
        let started = Instant::now();
        let answer = self.call(client, "DELETE", &format!("{VAULT}/{id}"), None, None);
        self.came_to(place, State::Absent, &answer, started, log, tally)
    }

    fn came_to(
        &mut self,
        place: usize,
        state: State,
        answer: &Result<Answer, String>,
        started: Instant,
        log: &AckLog,
        tally: &mut Tally,
    ) -> Outcome {
        let key = &mut self.keys[place];
        let is_gone = answer.as_ref().is_ok_and(|answer| answer.status == 404);
        // An earlier deletion with unknown outcome took effect.
        if is_gone && key.possible.may_be(State::Absent) && key.possible.seen(State::Absent).is_ok() {
            return Outcome::Refused;
        }
        let outcome = tally.count(answer, started.elapsed());
        log.note(&format!("{} {:?} {state:?}", self.namespace, key.id), outcome);
        // The credential existed, and no other client could delete it.
        if is_gone {
            tally.wrong.push(format!("{} save {}: a write was answered 404", self.namespace, key.save));
        }
        key.possible.attempted(state, outcome);
        let (namespace, save, id) = (self.namespace.clone(), key.save, key.id.clone());
        self.last_write = Some(Write { namespace, save, id, state });
        outcome
    }

    /// Compares `listed`, all credentials of the organization, with the acknowledged writes. Then repeats each save
    /// with unknown outcome, which must have one effect.
    pub(crate) fn check(&mut self, client: &Client, listed: &[Value], losses: &mut Vec<String>) {
        let own = |item: &&Value| item["namespace"] == *self.namespace;
        let mut found: HashMap<&str, usize> = HashMap::new();
        for item in listed.iter().filter(own) {
            let bucket = item["information"]["bucket"].as_str().unwrap_or_default();
            let number = bucket.strip_prefix("exports-").and_then(|number| number.parse().ok()).unwrap_or_default();
            found.insert(item["id"].as_str().unwrap(), number);
        }
        let name = &self.namespace;
        // Saves with unknown outcome are repeated even if their credentials are found.
        let indeterminate: Vec<usize> = (0..self.keys.len()).filter(|n| self.keys[*n].id.is_none()).collect();
        for key in &mut self.keys {
            if key.id.is_none() {
                let id = found.iter().find(|(_, number)| **number == key.save).map(|(id, _)| (*id).to_owned());
                key.id = id;
            }
            let state = key.id.as_deref().and_then(|id| found.remove(id)).map_or(State::Absent, State::Stored);
            if let Err(loss) = key.possible.seen(state) {
                losses.push(format!("{name} save {} ({:?}) {loss}", key.save, key.id));
            }
        }
        losses.extend(
            found.iter().map(|(id, number)| {
                format!("{name} has {id} with value {number}, which was never saved or was deleted")
            }),
        );
        self.repeat_indeterminate_saves(&indeterminate, client, losses);
        // Certainly deleted credentials need no further check: they must not be listed, as all credentials without a
        // save must not be.
        self.keys.retain(|key| key.possible.sure() != Some(State::Absent));
    }

    fn repeat_indeterminate_saves(&mut self, indeterminate: &[usize], client: &Client, losses: &mut Vec<String>) {
        for place in indeterminate.iter().copied() {
            let Key { save, ref id, .. } = self.keys[place];
            let id = id.clone();
            let body = small(&self.namespace, save);
            let answer = self.call(client, "PATCH", VAULT, Some(&self.repeatable(save)), Some(&body));
            match answer {
                Ok(answer) if answer.status == 201 => {
                    let key = &mut self.keys[place];
                    let saved = id_of(&answer);
                    if id.is_some_and(|id| id != saved) {
                        losses.push(format!("{} save {save} was repeated and saved twice", self.namespace));
                    }
                    key.id = Some(saved);
                    key.possible.attempted(State::Stored(save), Outcome::Done);
                }
                answer => losses.push(format!("{} save {save} cannot be repeated: {answer:?}", self.namespace)),
            }
        }
    }

    /// Returns `true` if the state of this credential is unknown.
    pub(crate) fn is_indeterminate(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id) && key.possible.sure().is_none())
    }

    /// Returns the expected result of an activation of its namespace: the data of each credential by its ID.
    pub(crate) fn expected(&self) -> HashMap<String, Value> {
        let stored = |key: &Key| match key.possible.sure() {
            Some(State::Stored(number)) => Some((key.id.clone()?, small(&self.namespace, number)["data"].clone())),
            _ => None,
        };
        self.keys.iter().filter_map(stored).collect()
    }
}

fn id_of(answer: &Answer) -> String {
    answer.json()["id"].as_str().expect("an id").to_owned()
}
