//! The acknowledged writes, and the states of the database that they allow.

use crate::world::data;
use std::collections::{BTreeMap, BTreeSet};
use vault_core::credential::SecretBytes;

/// The numbers of a credential's versions, oldest first. Empty if the credential does not exist.
pub(crate) type Versions = Vec<u64>;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Saves a new credential.
    Save,
    /// Adds a version to a credential.
    Replace,
    /// Deletes a credential.
    Delete,
    /// Saves a credential with the idempotency key of an earlier request that was committed.
    Repeat {
        /// The earlier request.
        request: u64,
        /// The credential that the earlier request saved.
        saved: u64,
    },
    /// Saves a credential with the idempotency key of an earlier request that was not committed.
    RepeatLost {
        /// The earlier request.
        request: u64,
    },
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    /// Number of the credential.
    pub(crate) credential: u64,
    pub(crate) act: Act,
    /// Versions of the credential after the request.
    pub(crate) after: Versions,
}

/// The content of a database.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The revision, and the data of all versions (oldest first), by credential.
    pub(crate) credentials: BTreeMap<String, (i64, Vec<SecretBytes>)>,
    /// IDs of the audit records.
    pub(crate) audit: BTreeSet<String>,
    /// The stored number of credentials of the organization.
    pub(crate) count: i64,
}

/// A ledger of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The committed versions, by credential.
    stands: BTreeMap<u64, Versions>,
    /// Requests with unknown outcome, at most one for each credential.
    open: BTreeMap<u64, Request>,
    /// For each request, whether the audit log has its record.
    recorded: BTreeMap<u64, bool>,
    /// Saves that had an unknown outcome and are to be repeated: request, credential, and whether the save was
    /// committed.
    pub(crate) to_repeat: Vec<(u64, u64, bool)>,
    last: u64,
}

impl Ledger {
    /// Returns an unused number.
    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns the credentials without a pending request, with their versions.
    pub(crate) fn free(&self) -> Vec<(u64, Versions)> {
        let free = |(number, versions): &(&u64, &Versions)| !versions.is_empty() && !self.open.contains_key(number);
        self.stands.iter().filter(free).map(|(number, versions)| (*number, versions.clone())).collect()
    }

    /// Records that a request was sent.
    pub(crate) fn begin(&mut self, request: Request) {
        self.open.insert(request.credential, request);
    }

    /// Records that a request was acknowledged.
    pub(crate) fn acknowledge(&mut self, credential: u64) {
        if let Some(request) = self.open.remove(&credential) {
            self.stand(request);
        }
    }

    fn stand(&mut self, request: Request) {
        let Request { number, credential, act, after } = request;
        // A request that was executed before is not executed again.
        let done = !matches!(act, Act::Repeat { .. });
        self.recorded.insert(number, done);
        if done {
            self.stands.insert(credential, after);
        }
    }

    /// Compares a database with the states that the ledger allows, and records its content as committed.
    pub(crate) fn compare(
        &mut self,
        held: &Held,
        name: impl Fn(u64) -> String,
        audit: impl Fn(u64) -> String,
    ) -> Vec<String> {
        let mut violations = Vec::new();
        for (credential, request) in std::mem::take(&mut self.open) {
            let stored = self.is(held, &name(credential), &request.after);
            let recorded = held.audit.contains(&audit(request.number));
            let repeated = matches!(request.act, Act::Repeat { .. });
            if stored != recorded && !repeated {
                violations.push(format!("{request:?}: it is stored: {stored}, its audit record exists: {recorded}"));
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
                let found =
                    held.credentials.get(&name(*credential)).map(|(revision, secrets)| (revision, secrets.len()));
                violations
                    .push(format!("credential {credential}: {} versions expected, found {found:?}", versions.len()));
            }
        }
        for (request, recorded) in &self.recorded {
            if held.audit.contains(&audit(*request)) != *recorded {
                violations.push(format!("request {request}: its audit record is there: {}", !recorded));
            }
        }
        let expected = self.stands.values().filter(|versions| !versions.is_empty()).count();
        if held.credentials.len() != expected || held.count != i64::try_from(expected).unwrap_or_default() {
            let found = held.credentials.len();
            violations.push(format!("{expected} credentials expected, {found} found, {} counted", held.count));
        }
        let known = self.recorded.values().filter(|recorded| **recorded).count();
        // One record is that of the organization's creation.
        if held.audit.len() != known + 1 {
            violations.push(format!("{} audit records expected, {} found", known + 1, held.audit.len()));
        }
        violations
    }

    fn is(&self, held: &Held, name: &str, versions: &Versions) -> bool {
        match held.credentials.get(name) {
            None => versions.is_empty(),
            Some((revision, secrets)) => {
                i64::try_from(versions.len()) == Ok(*revision)
                    && secrets.iter().eq(versions
                        .iter()
                        .map(|number| data(*number).to_canonical_json())
                        .collect::<Vec<_>>()
                        .iter())
            }
        }
    }
}
