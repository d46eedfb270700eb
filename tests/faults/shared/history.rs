//! Checks the history of one credential that several clients use at the same time for linearizability: the operations
//! must have an order that yields every response and in which an operation precedes each operation that started after
//! its end.

use std::collections::BTreeMap;
use todc_utils::{Action, History, Specification, WGLChecker};

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Saves the credential with this value.
    Save { value: usize },
    /// Reads the credential.
    Show,
    /// Activates the credential.
    Activate,
    /// Replaces the value. With `tag`, only if the credential still has this entity tag.
    Replace { value: usize, tag: Option<String> },
    /// Stages a value.
    Stage { value: usize },
    /// Promotes the staged version.
    Promote { version: i64 },
    /// Deletes the credential.
    Delete,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// The current version with its value, and the entity tag if the response contains one.
    Current { version: i64, value: usize, tag: Option<String> },
    /// The version was created, or the change was made.
    Made { version: i64, tag: Option<String> },
    /// The credential is deleted.
    Deleted,
    /// The credential or the version does not exist.
    NotFound,
    /// The credential no longer has the entity tag of the request.
    Changed,
}

/// A request with its response. Without a response, the request may have had its effect, or may have it later.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) request: Request,
    pub(crate) response: Option<Response>,
    /// Start and end, on a clock that all clients share.
    pub(crate) started: u64,
    pub(crate) ended: u64,
}

/// The model of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    NotSaved,
    There(There),
    Deleted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct There {
    highest: i64,
    current: i64,
    staged: Option<i64>,
    values: BTreeMap<i64, usize>,
    /// The entity tag, once a client has received it.
    tag: Option<String>,
}

impl There {
    fn with_version(&self, value: usize) -> (i64, Self) {
        let mut next = self.clone();
        next.highest += 1;
        next.values.insert(next.highest, value);
        (next.highest, next)
    }

    /// Returns the version of the response and the state after a request, or the response that rejects it.
    fn after(&self, request: &Request) -> Result<(i64, State), Response> {
        let (version, next) = match request {
            Request::Save { .. } => return Err(Response::NotFound),
            Request::Show | Request::Activate => (self.current, self.clone()),
            Request::Replace { tag: Some(tag), .. } if self.tag.as_ref() != Some(tag) => return Err(Response::Changed),
            Request::Replace { value, .. } => {
                let (version, next) = self.with_version(*value);
                (version, Self { current: version, tag: None, ..next })
            }
            Request::Stage { value } => {
                let (version, next) = self.with_version(*value);
                (version, Self { staged: Some(version), tag: None, ..next })
            }
            Request::Promote { version } if self.staged != Some(*version) => return Err(Response::NotFound),
            Request::Promote { version } => {
                (*version, Self { current: *version, staged: None, tag: None, ..self.clone() })
            }
            Request::Delete => return Ok((self.current, State::Deleted)),
        };
        Ok((version, State::There(next)))
    }

    /// Returns the state with this entity tag, or `None` if the credential is known to have another one.
    fn tagged(self, reported: Option<&String>) -> Option<Self> {
        match (&self.tag, reported) {
            (Some(known), Some(reported)) if known != reported => None,
            (_, None) => Some(self),
            (_, Some(reported)) => Some(Self { tag: Some(reported.clone()), ..self }),
        }
    }
}

/// The specification of a credential for the checker.
pub(crate) struct Credential;

impl Credential {
    /// Returns the state after an operation, or `None` if its response is impossible in this state.
    fn next(operation: &Operation, state: &State) -> Option<State> {
        let request = &operation.request;
        let decided = match (state, request) {
            (State::NotSaved, Request::Save { value }) => {
                let values = BTreeMap::from([(1, *value)]);
                Ok((1, State::There(There { highest: 1, current: 1, staged: None, values, tag: None })))
            }
            (State::NotSaved | State::Deleted, _) => Err(Response::NotFound),
            (State::There(there), _) => there.after(request),
        };
        match (decided, &operation.response) {
            (Ok((_, next)), None) => Some(next),
            (Err(_), None) => Some(state.clone()),
            (Err(refused), Some(response)) => (refused == *response).then(|| state.clone()),
            (Ok((_, State::Deleted)), Some(Response::Deleted)) => Some(State::Deleted),
            (Ok((made, State::There(next))), Some(Response::Made { version, tag })) if made == *version => {
                next.tagged(tag.as_ref()).map(State::There)
            }
            (Ok((current, State::There(next))), Some(Response::Current { version, value, tag }))
                if current == *version && next.values.get(version) == Some(value) =>
            {
                next.tagged(tag.as_ref()).map(State::There)
            }
            (Ok(_), Some(_)) => None,
        }
    }
}

impl Specification for Credential {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::NotSaved
    }

    fn apply(operation: &Operation, state: &State) -> (bool, State) {
        Self::next(operation, state).map_or_else(|| (false, state.clone()), |next| (true, next))
    }
}

/// Returns `true` if some order of the operations yields every response.
pub(crate) fn is_explained(operations: &[Operation]) -> bool {
    let mut actions: Vec<(u64, (usize, Action<Operation>))> = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        actions.push((operation.started, (number, Action::Call(operation.clone()))));
        // An operation without a response can have its effect at any later time.
        let ended = if operation.response.is_some() { operation.ended } else { u64::MAX };
        actions.push((ended, (number, Action::Response(operation.clone()))));
    }
    actions.sort_by_key(|(at, _)| *at);
    let actions: Vec<_> = actions.into_iter().map(|(_, action)| action).collect();
    actions.is_empty() || WGLChecker::<Credential>::is_linearizable(History::from_actions(actions))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates operations from their start and end.
    fn history(operations: Vec<(u64, u64, Request, Option<Response>)>) -> Vec<Operation> {
        let saved = (0, 1, Request::Save { value: 1 }, made(1, "a"));
        let all = std::iter::once(saved).chain(operations);
        all.map(|(started, ended, request, response)| Operation { request, response, started, ended }).collect()
    }

    fn made(version: i64, tag: &str) -> Option<Response> {
        Some(Response::Made { version, tag: Some(tag.to_owned()) })
    }

    fn current(version: i64, value: usize, tag: &str) -> Option<Response> {
        Some(Response::Current { version, value, tag: Some(tag.to_owned()) })
    }

    fn replace(value: usize, tag: Option<&str>) -> Request {
        Request::Replace { value, tag: tag.map(str::to_owned) }
    }

    #[test]
    fn concurrent_operations_have_an_order() {
        assert!(is_explained(&history(vec![
            (2, 9, replace(2, None), made(3, "c")),
            (3, 8, replace(3, None), made(2, "b")),
            (4, 5, Request::Show, current(1, 1, "a")),
            (6, 7, Request::Show, current(2, 3, "b")),
            (10, 11, Request::Show, current(3, 2, "c")),
            (12, 13, Request::Stage { value: 4 }, made(4, "d")),
            (14, 15, Request::Activate, Some(Response::Current { version: 3, value: 2, tag: None })),
            (16, 17, Request::Promote { version: 4 }, made(4, "e")),
            (18, 19, Request::Activate, Some(Response::Current { version: 4, value: 4, tag: None })),
            (20, 21, Request::Delete, Some(Response::Deleted)),
            (22, 23, Request::Show, Some(Response::NotFound)),
        ])));
    }

    #[test]
    fn lost_update_is_found() {
        let both = |second| {
            is_explained(&history(vec![
                (2, 3, Request::Show, current(1, 1, "a")),
                (4, 7, replace(2, Some("a")), made(2, "b")),
                (5, 8, replace(3, Some("a")), second),
            ]))
        };
        assert!(both(Some(Response::Changed)));
        assert!(!both(made(3, "c")), "both changed what they had seen");
        let lost = history(vec![(2, 3, replace(2, None), made(2, "b")), (4, 5, Request::Show, current(1, 1, "a"))]);
        assert!(!is_explained(&lost), "an acknowledged value is gone");
    }

    #[test]
    fn stale_read_is_found() {
        assert!(!is_explained(&history(vec![
            (2, 9, replace(2, None), made(2, "b")),
            (3, 4, Request::Show, current(2, 2, "b")),
            (5, 6, Request::Show, current(1, 1, "a")),
        ])));
        assert!(!is_explained(&history(vec![
            (2, 3, Request::Delete, Some(Response::Deleted)),
            (4, 5, Request::Activate, Some(Response::Current { version: 1, value: 1, tag: None })),
        ])));
    }

    #[test]
    fn write_that_was_acknowledged_twice_is_found() {
        let twice = |version| {
            history(vec![(2, 5, replace(2, None), made(2, "b")), (3, 6, replace(3, None), made(version, "c"))])
        };
        assert!(is_explained(&twice(3)));
        assert!(!is_explained(&twice(2)), "two versions of one number");
        assert!(!is_explained(&history(vec![
            (2, 3, Request::Delete, Some(Response::Deleted)),
            (4, 5, Request::Delete, Some(Response::Deleted)),
        ])));
    }

    #[test]
    fn indeterminate_write_may_take_effect_once_at_any_time() {
        let seen = |shown: &[(i64, usize)]| {
            let indeterminate = (2, 3, replace(2, None), None);
            let shown = (4..).step_by(2).zip(shown).map(|(at, (version, value))| {
                let response = Response::Current { version: *version, value: *value, tag: None };
                (at, at + 1, Request::Show, Some(response))
            });
            is_explained(&history(std::iter::once(indeterminate).chain(shown).collect()))
        };
        assert!(seen(&[(1, 1)]) && seen(&[(2, 2)]) && seen(&[(1, 1), (2, 2)]));
        assert!(!seen(&[(2, 2), (1, 1)]) && !seen(&[(1, 2)]));
    }
}
