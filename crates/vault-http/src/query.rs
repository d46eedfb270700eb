//! Query parameters of lists and saves. Other operations accept none.

use crate::extract::from_request;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::respond::time_text;
use actix_web::web::Data;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use vault_core::credential::{CredentialType, HealthState, LabelFilter, Labels, ListFilter};
use vault_core::cursor::PageRequest;
use vault_core::field::{FieldCode, FieldError, Invalid, child};
use vault_core::id::IntegrationId;
use vault_core::json::pointer_to;
use vault_core::namespace::Namespace;
use vault_core::port::AuditOrder;
use vault_core::time::Timestamp;
use vault_core::usecase::AuditFilter;

/// Maximum and default page size.
pub(crate) const MAX_LIMIT: usize = 1_000;

/// Maximum length of an action, subject or actor in a filter.
const MAX_NAME: usize = 100;
/// Maximum number of actions in a filter.
const MAX_ACTIONS: usize = 32;

/// Filters and page of a list of credentials.
pub(crate) struct ListQuery(pub(crate) ListFilter, pub(crate) PageRequest);
from_request!(ListQuery, |request| list(request.uri().query()).map(|(filter, page)| Self(filter, page)));

/// Page of a list without filters.
pub(crate) struct PageQuery(pub(crate) PageRequest);
from_request!(PageQuery, |request| page(request.uri().query()).map(Self));

/// Filter and page of a list of namespaces.
pub(crate) struct NamespacesQuery(pub(crate) Option<Namespace>, pub(crate) PageRequest);
from_request!(NamespacesQuery, |request| namespaces(request.uri().query()).map(|(only, page)| Self(only, page)));

/// Whether a credential is checked before it is saved.
pub(crate) struct SaveQuery(pub(crate) bool);
from_request!(SaveQuery, |request| {
    let available = request.app_data::<Data<PublicApi>>().is_some_and(|api| api.parts.vault.verifies());
    save(request.uri().query(), available).map(Self)
});

/// Optional start of a period.
pub(crate) struct SinceQuery(pub(crate) Option<Timestamp>);
from_request!(SinceQuery, |request| since(request.uri().query()).map(Self));

/// Optional start and integration of a count.
pub(crate) struct UsageQuery(pub(crate) Option<Timestamp>, pub(crate) Option<IntegrationId>);
from_request!(UsageQuery, |request| usage(request.uri().query()).map(|(since, integration)| Self(since, integration)));

/// Filters, order and page of the audit log.
pub(crate) struct AuditQuery(pub(crate) AuditFilter, pub(crate) AuditOrder, pub(crate) PageRequest);
from_request!(AuditQuery, |request| audit(request.uri().query())
    .map(|(filter, order, page)| Self(filter, order, page)));

/// Parses an optional time at `pointer`, rounded down to the second.
pub(crate) fn optional_time(text: Option<&str>, pointer: &str) -> Result<Option<Timestamp>, FieldError> {
    let Some(text) = text else { return Ok(None) };
    let detail = "must be a time in RFC 3339, such as 2026-11-20T12:00:00Z";
    let malformed = || FieldError::new(pointer, FieldCode::Malformed, detail);
    Timestamp::from_rfc3339(text).map(|time| Some(time.floor_to_second())).ok_or_else(malformed)
}

/// Rejects all parameters.
pub(crate) fn none(query: Option<&str>) -> Result<(), ProblemResponse> {
    Parameters::read(query)?.finish()
}

/// Returns whether a save should check the credential first. Rejects this unless it is `available`.
fn save(query: Option<&str>, available: bool) -> Result<bool, ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let verify = parameters.take("verify");
    let verify = parameters.keep(verify.map(|text| parse_bool(&text, "/verify")).transpose()).unwrap_or(false);
    if verify && !available {
        parameters.errors.push(verify_unavailable());
    }
    parameters.finish()?;
    Ok(verify)
}

/// Returns the error if checks before saving are not available.
pub(crate) fn verify_unavailable() -> FieldError {
    FieldError::new(
        "/verify",
        FieldCode::Unknown,
        "this server does not check credentials before it saves them: it runs with --role api",
    )
}

fn parse_bool(text: &str, pointer: &'static str) -> Result<bool, FieldError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FieldError::new(pointer, FieldCode::WrongType, "must be true or false")),
    }
}

/// Parses filters and page of a list.
pub(crate) fn list(query: Option<&str>) -> Result<(ListFilter, PageRequest), ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let namespace = parameters.take("namespace");
    let namespace = parameters.keep(namespace.map(|text| Namespace::parse(&text, "/namespace")).transpose());
    let kind = parameters.take("type");
    let kind = parameters.keep(kind.map(|text| parse_type(&text)).transpose());
    let mut labels: Vec<_> = parameters.take_all("label").iter().filter_map(|text| parameters.label(text)).collect();
    labels.sort();
    labels.dedup();
    if labels.len() > Labels::MAX {
        let detail = "must be repeated at most 16 times: no credential has more labels";
        parameters.errors.push(FieldError::new("/label", FieldCode::TooLong, detail));
    }
    let health = parameters.take("health");
    let health = parameters.keep(health.map(|text| parse_health(&text)).transpose());
    let expires_before = parameters.take("expires_before");
    let expires_before = parameters.keep(optional_time(expires_before.as_deref(), "/expires_before"));
    let page = parameters.page();
    parameters.finish()?;
    Ok((ListFilter { namespace, kind, labels, health, expires_before }, page))
}

/// Adds the filters of a list to its path.
pub(crate) fn list_path(path: &str, filter: &ListFilter) -> String {
    let ListFilter { namespace, kind, labels, health, expires_before } = filter;
    let labels = labels.iter().map(|label| ("label", Some(format!("{}:{}", label.name, label.value))));
    let indexed =
        [("namespace", namespace.as_ref().map(Namespace::to_string)), ("type", kind.map(|kind| kind.to_string()))];
    let others = [
        ("health", health.map(|health| health.as_str().to_owned())),
        ("expires_before", expires_before.map(time_text)),
    ];
    with_parameters(path, indexed.into_iter().chain(labels).chain(others))
}

/// Adds parameters to a path. Their values contain no characters that need escaping.
fn with_parameters(path: &str, parameters: impl Iterator<Item = (&'static str, Option<String>)>) -> String {
    let given: Vec<String> = parameters.filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// Parses the page of a list without filters.
fn page(query: Option<&str>) -> Result<PageRequest, ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let page = parameters.page();
    parameters.finish()?;
    Ok(page)
}

/// Parses filter and page of a list of namespaces.
fn namespaces(query: Option<&str>) -> Result<(Option<Namespace>, PageRequest), ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let only = parameters.take("namespace");
    let only = parameters.keep(only.map(|text| Namespace::parse(&text, "/namespace")).transpose());
    let page = parameters.page();
    parameters.finish()?;
    Ok((only, page))
}

/// Parses the optional start of a period.
fn since(query: Option<&str>) -> Result<Option<Timestamp>, ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let since = parameters.time("since");
    parameters.finish()?;
    Ok(since)
}

/// Parses the start and the integration of a count.
fn usage(query: Option<&str>) -> Result<(Option<Timestamp>, Option<IntegrationId>), ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let since = parameters.time("since");
    let integration = parameters.take("integration");
    let integration = integration.map(|text| text.parse().map_err(|invalid: Invalid| invalid.at("/integration")));
    let integration = parameters.keep(integration.transpose());
    parameters.finish()?;
    Ok((since, integration))
}

/// Parses filters, order and page of the audit log.
fn audit(query: Option<&str>) -> Result<(AuditFilter, AuditOrder, PageRequest), ProblemResponse> {
    let mut parameters = Parameters::read(query)?;
    let since = parameters.time("since");
    let until = parameters.time("until");
    let mut actions: Vec<_> =
        parameters.take_all("action").iter().filter_map(|text| parameters.plain("action", text)).collect();
    actions.sort();
    actions.dedup();
    if actions.len() > MAX_ACTIONS {
        let detail = "must be repeated at most 32 times";
        parameters.errors.push(FieldError::new("/action", FieldCode::TooLong, detail));
    }
    let outcome = parameters.take("outcome");
    let denied = parameters.keep(outcome.map(|text| parse_outcome(&text)).transpose()).is_some();
    let reads = parameters.take("reads");
    let reads = parameters.keep(reads.map(|text| parse_bool(&text, "/reads")).transpose());
    let subject = parameters.name("subject");
    let actor = parameters.name("actor");
    let namespace = parameters.take("namespace");
    let namespace = parameters.keep(namespace.map(|text| Namespace::parse(&text, "/namespace")).transpose());
    let namespace = namespace.map(|namespace| namespace.to_string());
    let order = parameters.take("order");
    let order = parameters.keep(order.map(|text| parse_order(&text)).transpose()).unwrap_or(AuditOrder::NewestFirst);
    let page = parameters.page();
    parameters.finish()?;
    let without_reads = reads == Some(false);
    Ok((AuditFilter { since, until, actions, denied, without_reads, subject, actor, namespace }, order, page))
}

/// Adds the filters of a list of the audit log to its path.
pub(crate) fn audit_path(path: &str, filter: &AuditFilter, order: AuditOrder) -> String {
    let AuditFilter { since, until, actions, denied, without_reads, subject, actor, namespace } = filter;
    let actions = actions.iter().map(|action| ("action", Some(action.clone())));
    let parameters = [
        ("since", since.map(time_text)),
        ("until", until.map(time_text)),
        ("outcome", denied.then(|| "denied".to_owned())),
        ("reads", without_reads.then(|| "false".to_owned())),
        ("subject", subject.clone()),
        ("actor", actor.clone()),
        ("namespace", namespace.clone()),
        ("order", (order == AuditOrder::OldestFirst).then(|| "oldest".to_owned())),
    ];
    with_parameters(path, parameters.into_iter().chain(actions))
}

pub(crate) fn parse_type(text: &str) -> Result<CredentialType, FieldError> {
    CredentialType::parse(text).ok_or_else(|| {
        let detail = "must be s3, azure_identity, gcs, direct-link, s3-federated, azure-federated or gcs-federated";
        FieldError::new("/type", FieldCode::OutOfRange, detail)
    })
}

fn parse_health(text: &str) -> Result<HealthState, FieldError> {
    HealthState::parse(text).ok_or_else(|| {
        let detail = "must be unchecked, healthy, failing, expiring or expired";
        FieldError::new("/health", FieldCode::OutOfRange, detail)
    })
}

fn parse_outcome(text: &str) -> Result<(), FieldError> {
    match text {
        "denied" => Ok(()),
        _ => Err(FieldError::new("/outcome", FieldCode::OutOfRange, "must be denied")),
    }
}

fn parse_order(text: &str) -> Result<AuditOrder, FieldError> {
    match text {
        "newest" => Ok(AuditOrder::NewestFirst),
        "oldest" => Ok(AuditOrder::OldestFirst),
        _ => Err(FieldError::new("/order", FieldCode::OutOfRange, "must be newest or oldest")),
    }
}

fn parse_limit(text: &str) -> Result<usize, FieldError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FieldError::new("/limit", FieldCode::WrongType, "must be a whole number"));
    }
    match text.parse() {
        Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
        _ => Err(FieldError::new("/limit", FieldCode::OutOfRange, "must be 1 to 1000")),
    }
}

struct Parameters<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    errors: Vec<FieldError>,
}

impl<'a> Parameters<'a> {
    /// Parses the page parameters.
    fn page(&mut self) -> PageRequest {
        let limit = self.take("limit");
        let limit = self.keep(limit.map(|text| parse_limit(&text)).transpose());
        let cursor = self.take("cursor").map(Cow::into_owned);
        PageRequest { limit: limit.unwrap_or(MAX_LIMIT), cursor }
    }

    /// Parses an optional time.
    fn time(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.take(name);
        self.keep(optional_time(text.as_deref(), &child("", name)))
    }

    /// Parses an optional action, subject or actor. A value that was never recorded matches no entries.
    fn name(&mut self, name: &str) -> Option<String> {
        let text = self.take(name)?;
        self.plain(name, &text)
    }

    fn plain(&mut self, name: &str, text: &str) -> Option<String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-/".contains(&byte);
        if (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain) {
            return Some(text.to_owned());
        }
        let detail = "must be 1 to 100 characters of A-Z a-z 0-9 . : _ - /";
        self.errors.push(FieldError::new(child("", name), FieldCode::Malformed, detail));
        None
    }

    fn read(query: Option<&'a str>) -> Result<Self, ProblemResponse> {
        let query = query.unwrap_or_default();
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (decode(name), decode(value)) {
                (Some(name), Some(value)) => pairs.push((name, value)),
                _ => return Err(ProblemResponse::malformed("The query is not percent-encoded UTF-8.")),
            }
        }
        Ok(Self { pairs, errors: Vec::new() })
    }

    /// Parses a label filter.
    fn label(&mut self, text: &str) -> Option<LabelFilter> {
        self.keep(LabelFilter::parse(text, "/label").map(Some))
    }

    /// Removes and returns all values of the repeatable parameter `name`.
    fn take_all(&mut self, name: &str) -> Vec<Cow<'a, str>> {
        self.pairs.extract_if(.., |(found, _)| found == name).map(|(_, value)| value).collect()
    }

    /// Removes and returns the value of `name`, which must occur at most once.
    fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let index = self.pairs.iter().position(|(found, _)| found == name)?;
        let (_, value) = self.pairs.remove(index);
        let before = self.pairs.len();
        self.pairs.retain(|(found, _)| found != name);
        if self.pairs.len() < before {
            self.errors.push(FieldError::new(child("", name), FieldCode::Duplicate, "must not be repeated"));
        }
        Some(value)
    }

    fn keep<T>(&mut self, parsed: Result<Option<T>, FieldError>) -> Option<T> {
        parsed.unwrap_or_else(|error| {
            self.errors.push(error);
            None
        })
    }

    fn finish(mut self) -> Result<(), ProblemResponse> {
        for (name, _) in &self.pairs {
            let error = FieldError::new(pointer_to("", name), FieldCode::Unknown, "unknown parameter");
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
        if self.errors.is_empty() { Ok(()) } else { Err(ProblemResponse::fields(self.errors)) }
    }
}

/// Decodes percent-encoding and `+`. Returns `None` if the encoding is invalid or not UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let is_encoded = |behind: &str| behind.len() >= 2 && behind.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(is_encoded) {
        return None;
    }
    if !text.contains('+') {
        return percent_decode_str(text).decode_utf8().ok();
    }
    percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vault_api::ProblemCode;

    fn violations(query: &str) -> Vec<(String, &'static str)> {
        let problem_response = list(Some(query)).err();
        let errors = problem_response.iter().flat_map(ProblemResponse::errors);
        errors.map(|error| (error.pointer.clone(), error.code.as_str())).collect()
    }

    fn code(query: &str) -> Option<ProblemCode> {
        list(Some(query)).err().map(|problem_response| problem_response.code())
    }

    #[test]
    fn paths_of_next_pages_keep_filters() {
        let order = AuditOrder::NewestFirst;
        assert_eq!(audit_path("/v1/audit", &AuditFilter::default(), order), "/v1/audit");
        assert_eq!(list_path("/v1/organization-vault", &ListFilter::default()), "/v1/organization-vault");
        for query in [
            "namespace=a/b&type=s3&label=env:&label=team:data&health=expiring&expires_before=1970-01-01T00:00:00Z",
            "type=gcs-federated",
        ] {
            let (filter, _) = list(Some(query)).ok().unwrap();
            assert_eq!(list_path("", &filter), format!("?{query}"));
        }
        let query = "since=1970-01-01T00:00:00Z&until=1970-01-02T00:00:00Z&outcome=denied&reads=false&subject=credential:1\
            &actor=system&namespace=a/b&order=oldest&action=credential.saved&action=login.refused";
        let (filter, order, _) = audit(Some(query)).ok().unwrap();
        assert_eq!(audit_path("", &filter, order), format!("?{query}"));
    }

    #[test]
    fn actions_outcome_and_reads_filter_the_audit_log() {
        let query = "action=login.refused&action=activation.failed&action=login.refused&outcome=denied&reads=false";
        let Ok((filter, _, _)) = audit(Some(query)) else { panic!("all are known") };
        assert_eq!(filter.actions, ["activation.failed", "login.refused"]);
        assert!(filter.denied && filter.without_reads);
        let Ok((filter, _, _)) = audit(Some("reads=true")) else { panic!("all are known") };
        assert_eq!(filter, AuditFilter::default());
        let many: String = (0..33).map(|number| format!("action=a{number}&")).collect();
        for refused in ["outcome=ok", "outcome=", "reads=0", "action=a%20b", "outcome=denied&outcome=denied", &many] {
            assert!(audit(Some(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn labels_health_and_expiry_filter_a_list() {
        let query = "label=team:data&label=env:&label=team:data&health=expiring&expires_before=2027-01-31T12:00:00.5Z";
        let Ok((filter, _)) = list(Some(query)) else { panic!("all are known") };
        let labels: Vec<_> = filter.labels.iter().map(|label| (&*label.name, &*label.value)).collect();
        assert_eq!(labels, [("env", ""), ("team", "data")]);
        assert_eq!(filter.health, Some(HealthState::Expiring));
        let before = filter.expires_before.and_then(|at| at.to_rfc3339());
        assert_eq!(before.as_deref(), Some("2027-01-31T12:00:00Z"));
        let seventeen: String = (0..17).map(|number| format!("label=a:{number}&")).collect();
        for refused in [
            "label=",
            "label=team",
            "label=:data",
            "label=Team:data",
            "label=team:a%20b",
            "label=a:b:c",
            &seventeen,
            "health=",
            "health=Healthy",
            "health=ok",
            "expires_before=",
            "expires_before=tomorrow",
        ] {
            assert_eq!(code(refused), Some(ProblemCode::RefusedValue), "{refused}");
        }
        for malformed in ["health=healthy&health=healthy", "labels=a:b", "label", "expires_before=1&expires_before=2"] {
            assert!(code(malformed).is_some(), "{malformed}");
        }
    }

    #[test]
    fn list_has_four_parameters() {
        let Ok((filter, page)) = list(None) else { panic!("no parameter is needed") };
        assert_eq!((filter, page), (ListFilter::default(), PageRequest::default()));
        let Ok((filter, page)) = list(Some("limit=7&namespace=a%2Fb&cursor=c-_&type=direct-link")) else {
            panic!("all are known")
        };
        assert_eq!(filter.namespace.map(|namespace| namespace.to_string()).as_deref(), Some("a/b"));
        assert_eq!(filter.kind, Some(CredentialType::DirectLink));
        assert_eq!((page.limit, page.cursor.as_deref()), (7, Some("c-_")));
        assert!(list(Some("")).is_ok());
        assert!(list(Some("&limit=1&")).is_ok());
    }

    #[test]
    fn format_and_value_violations_are_listed_together() {
        for refused in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=99999999999999999999999",
            "type=S3",
            "type=",
            "namespace=",
            "namespace=%00",
            "namespace=+a",
            "namespace=..",
        ] {
            assert_eq!(code(refused), Some(ProblemCode::RefusedValue), "{refused}");
        }
        for malformed in [
            "limit=",
            "limit=a",
            "limit=1.0",
            "limit=1e2",
            "limit=%2B5",
            "limit=1&limit=1",
            "a=1",
            "Limit=1",
            "=1",
            "namespace=%",
            "namespace=%zz",
            "namespace=%ff",
            "org=x",
            "limit",
        ] {
            assert_eq!(code(malformed), Some(ProblemCode::MalformedRequest), "{malformed}");
        }
        assert_eq!(
            violations("limit=0&type=x&type=y&org=1&%2e%2e%2f=1"),
            [
                ("/type".to_owned(), "duplicate"),
                ("/type".to_owned(), "out-of-range"),
                ("/limit".to_owned(), "out-of-range"),
                ("/org".to_owned(), "unknown"),
                (String::new(), "unknown"),
            ]
        );
    }

    #[test]
    fn save_may_request_a_check() {
        let ask = |query: &str, available| {
            let problem_response = match save(Some(query), available) {
                Ok(verify) => return Ok(verify),
                Err(problem_response) => problem_response,
            };
            assert_eq!(problem_response.code(), ProblemCode::MalformedRequest, "{query}");
            Err(problem_response
                .errors()
                .iter()
                .map(|error| (error.pointer.clone(), error.code.as_str()))
                .collect::<Vec<_>>())
        };
        for available in [true, false] {
            assert_eq!(ask("", available), Ok(false));
            assert_eq!(ask("verify=false", available), Ok(false));
            let violation = |pointer: &str, code| Err(vec![(pointer.to_owned(), code)]);
            for query in ["verify", "verify=", "verify=1", "verify=True", "verify=TRUE", "verify=yes", "verify=true%20"]
            {
                assert_eq!(ask(query, available), violation("/verify", "wrong-type"), "{query}");
            }
            assert_eq!(ask("verify=false&verify=false", available), violation("/verify", "duplicate"));
            assert_eq!(ask("limit=1", available), violation("/limit", "unknown"));
            assert_eq!(ask("Verify=true", available), violation("/Verify", "unknown"));
        }
        assert_eq!(ask("verify=true", true), Ok(true));
        assert_eq!(ask("verify=true", false), Err(vec![("/verify".to_owned(), "unknown")]));
    }

    #[test]
    fn other_operations_have_no_parameters() {
        assert!(none(None).is_ok());
        assert!(none(Some("")).is_ok());
        for query in ["verify=true", "verify=false", "access_token=x", "limit=1"] {
            assert_eq!(
                none(Some(query)).err().map(|problem_response| problem_response.code()),
                Some(ProblemCode::MalformedRequest),
                "{query}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_query_gets_a_response(query in "[ -~]{0,80}") {
            let _ = list(Some(&query));
            let _ = save(Some(&query), query.len().is_multiple_of(2));
            let _ = none(Some(&query));
        }

        #[test]
        fn decoding_undoes_encoding(text in ".{0,20}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decode(&encoded), Some(Cow::Owned(text)));
        }
    }
}
