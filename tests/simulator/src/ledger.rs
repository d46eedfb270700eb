//! What was acknowledged, and what the database may therefore hold.

use crate::world::Parts;
use std::collections::{BTreeMap, BTreeSet};

/// The versions of a credential, oldest first, by the numbers of their parts. None: there is no such credential.
pub(crate) type Versions = Vec<u64>;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Saves a new credential.
    Save,
    /// Gives one a new version.
    Replace,
    /// Deletes one.
    Delete,
    /// Saves one under the key of an earlier request, which has stood.
    Repeat {
        /// The earlier request.
        request: u64,
        /// The credential that it has saved.
        saved: u64,
    },
    /// The same; the earlier request has not stood.
    RepeatLost {
        /// The earlier request.
        request: u64,
    },
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Its number.
    pub(crate) number: u64,
    /// Of which credential.
    pub(crate) credential: u64,
    pub(crate) act: Act,
    /// What the credential then is.
    pub(crate) after: Versions,
}

/// What a database holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// By credential: revision, information as the list gives it, and parts of all versions, oldest first.
    pub(crate) credentials: BTreeMap<String, (i64, Vec<Parts>)>,
    /// The ids of audit records.
    pub(crate) audit: BTreeSet<String>,
    /// How many credentials the organization has by its count.
    pub(crate) count: i64,
}

/// A ledger of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// What stands.
    stands: BTreeMap<u64, Versions>,
    /// Requests whose outcome nobody knows, by credential: at most one each.
    open: BTreeMap<u64, Request>,
    /// Whether the audit has the record of a request.
    recorded: BTreeMap<u64, bool>,
    /// Saves of unknown outcome, since known: request, credential, whether it has stood. To be repeated.
    pub(crate) to_repeat: Vec<(u64, u64, bool)>,
    last: u64,
}

impl Ledger {
    /// A number that was not used yet.
    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The credentials that exist and that no request is open for, with their versions.
    pub(crate) fn free(&self) -> Vec<(u64, Versions)> {
        let free = |(number, versions): &(&u64, &Versions)| !versions.is_empty() && !self.open.contains_key(number);
        self.stands.iter().filter(free).map(|(number, versions)| (*number, versions.clone())).collect()
    }

    /// A request is under way.
    pub(crate) fn begin(&mut self, request: Request) {
        self.open.insert(request.credential, request);
    }

    /// A request was acknowledged.
    pub(crate) fn acknowledge(&mut self, credential: u64) {
        if let Some(request) = self.open.remove(&credential) {
            self.stand(request);
        }
    }

    fn stand(&mut self, request: Request) {
        let Request { number, credential, act, after } = request;
        // What was carried out before is not carried out again.
        let done = !matches!(act, Act::Repeat { .. });
        self.recorded.insert(number, done);
        if done {
            self.stands.insert(credential, after);
        }
    }

    /// Compares what a database holds with what it may hold; what it holds is then known to stand.
    pub(crate) fn compare(
        &mut self,
        held: &Held,
        name: impl Fn(u64) -> String,
        audit: impl Fn(u64) -> String,
    ) -> Vec<String> {
        let mut flaws = Vec::new();
        for (credential, request) in std::mem::take(&mut self.open) {
            let holds = self.is(held, &name(credential), &request.after);
            let recorded = held.audit.contains(&audit(request.number));
            let repeated = matches!(request.act, Act::Repeat { .. });
            if holds != recorded && !repeated {
                flaws.push(format!("{request:?}: it stands: {holds}, its audit record is there: {recorded}"));
            }
            if request.act == Act::Save {
                self.to_repeat.push((request.number, credential, recorded));
            }
            if recorded || repeated {
                self.stand(request);
            } else {
                self.recorded.insert(request.number, false);
            }
        }
        for (credential, versions) in &self.stands {
            if !self.is(held, &name(*credential), versions) {
                let found = held.credentials.get(&name(*credential)).map(|(revision, parts)| (revision, parts.len()));
                flaws.push(format!("credential {credential}: {} versions expected, found {found:?}", versions.len()));
            }
        }
        for (request, recorded) in &self.recorded {
            if held.audit.contains(&audit(*request)) != *recorded {
                flaws.push(format!("request {request}: its audit record is there: {}", !recorded));
            }
        }
        let expected = self.stands.values().filter(|versions| !versions.is_empty()).count();
        if held.credentials.len() != expected || held.count != i64::try_from(expected).unwrap_or_default() {
            let found = held.credentials.len();
            flaws.push(format!("{expected} credentials expected, {found} found, {} counted", held.count));
        }
        let known = self.recorded.values().filter(|recorded| **recorded).count();
        // One is the organization's.
        if held.audit.len() != known + 1 {
            flaws.push(format!("{} audit records expected, {} found", known + 1, held.audit.len()));
        }
        flaws
    }

    fn is(&self, held: &Held, name: &str, versions: &Versions) -> bool {
        match held.credentials.get(name) {
            None => versions.is_empty(),
            Some((revision, parts)) => {
                i64::try_from(versions.len()) == Ok(*revision)
                    && parts.iter().eq(versions.iter().map(|number| Parts::of(*number)).collect::<Vec<_>>().iter())
            }
        }
    }
}
