//! Responses to successful requests, and their links.

use crate::problem::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::Json;
use bytes::Bytes;
use serde::Serialize;
use std::fmt::Write as _;
use vault_core::cursor::{ListFilter, Page};
use vault_core::port::AuditOrder;
use vault_core::time::Timestamp;
use vault_core::usecase::AuditFilter;

/// The response of a handler: JSON with status 200.
pub(crate) type JsonResult<T> = Result<Json<T>, ProblemResponse>;
/// The response of a handler: JSON with another status.
pub(crate) type JsonStatusResult<T> = Result<(Json<T>, StatusCode), ProblemResponse>;
/// The response of a handler: nothing, with status 204.
pub(crate) type NoContent = Result<HttpResponse, ProblemResponse>;

/// Creates JSON with status 200.
pub(crate) fn ok<T>(object: T) -> JsonResult<T> {
    Ok(Json(object))
}

/// Creates JSON with status 201.
pub(crate) fn created<T>(object: T) -> JsonStatusResult<T> {
    Ok((Json(object), StatusCode::CREATED))
}

/// Creates JSON with status 202.
pub(crate) fn accepted<T>(object: T) -> JsonStatusResult<T> {
    Ok((Json(object), StatusCode::ACCEPTED))
}

/// Creates status 204.
pub(crate) fn no_content((): ()) -> HttpResponse {
    HttpResponse::NoContent().finish()
}

/// Creates a response with the JSON text `body`.
pub(crate) fn json(body: impl Into<Bytes>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body.into())
}

/// Adds a header whose value the server has created.
pub(crate) fn with(
    mut response: HttpResponse,
    name: HeaderName,
    value: String,
) -> Result<HttpResponse, ProblemResponse> {
    let value = HeaderValue::try_from(value).map_err(|error| ProblemResponse::internal().caused_by(error))?;
    response.headers_mut().insert(name, value);
    Ok(response)
}

/// Creates a response with a page of the list at `path`, which may contain a query. `item` converts each row. Adds a
/// link to the next page of at most `limit` rows, if there is one.
pub(crate) fn page<T, I: Serialize>(
    path: &str,
    page: &Page<T>,
    limit: usize,
    item: impl Fn(&T) -> I,
) -> Result<HttpResponse, ProblemResponse> {
    let response = HttpResponse::Ok().json(page.items.iter().map(item).collect::<Vec<_>>());
    // Cursors contain no characters that need escaping.
    let mark = if path.contains('?') { '&' } else { '?' };
    match &page.next {
        Some(cursor) => {
            with(response, header::LINK, format!("<{path}{mark}limit={limit}&cursor={cursor}>; rel=\"next\""))
        }
        None => Ok(response),
    }
}

/// Adds the entity tag of the shown object, which counts the changes by clients.
pub(crate) fn tagged(response: HttpResponse, revision: i64) -> Result<HttpResponse, ProblemResponse> {
    with(response, header::ETAG, format!("\"{revision}\""))
}

/// Adds the entity tag of the `shown` revision, unless the request `made` an earlier one. With the tag of a later
/// change, a client would overwrite that change unknowingly.
pub(crate) fn tagged_as_made(
    response: HttpResponse,
    made: Option<i64>,
    shown: i64,
) -> Result<HttpResponse, ProblemResponse> {
    if made.is_none_or(|made| made == shown) { tagged(response, shown) } else { Ok(response) }
}

/// Formats `time` as RFC 3339 in UTC, in seconds. Falls back to the epoch for a time outside the supported range.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.to_rfc3339().unwrap_or_else(|| EPOCH.to_owned())
}

/// The text of a time outside the supported range.
pub(crate) const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Returns the URL of the page at `cursor`, with the filters and the limit of this page.
pub(crate) fn next_page(base: &str, filter: &ListFilter, limit: usize, cursor: &str) -> String {
    let mut link = format!("<{base}/organization-vault?");
    // None of these values contains characters that need escaping.
    if let Some(namespace) = &filter.namespace {
        let _ = write!(link, "namespace={namespace}&"); // writing to a String cannot fail
    }
    if let Some(kind) = filter.kind {
        let _ = write!(link, "type={kind}&");
    }
    for label in &filter.labels {
        let _ = write!(link, "label={}:{}&", label.name, label.value);
    }
    if let Some(health) = filter.health {
        let _ = write!(link, "health={}&", health.as_str());
    }
    if let Some(before) = filter.expires_before {
        let _ = write!(link, "expires_before={}&", time_text(before));
    }
    let _ = write!(link, "limit={limit}&cursor={cursor}>; rel=\"next\"");
    link
}

/// Formats `time` with milliseconds unless it is a whole second, so that the next page has exactly the same filters.
fn exact(time: Timestamp) -> String {
    let text = time_text(time);
    match time.as_millis().rem_euclid(1_000) {
        0 => text,
        millis => format!("{}.{millis:03}Z", text.trim_end_matches('Z')),
    }
}

/// Adds the filters of an audit list to `path`.
pub(crate) fn audit_path(path: &str, filter: &AuditFilter, order: AuditOrder) -> String {
    // None of these values contains characters that need escaping.
    let AuditFilter { since, until, actions, denied, without_reads, subject, actor, namespace } = filter;
    let parameters = [
        ("since", since.map(exact)),
        ("until", until.map(exact)),
        ("outcome", denied.then(|| "denied".to_owned())),
        ("reads", without_reads.then(|| "false".to_owned())),
        ("subject", subject.clone()),
        ("actor", actor.clone()),
        ("namespace", namespace.clone()),
        ("order", (order == AuditOrder::OldestFirst).then(|| "oldest".to_owned())),
    ];
    let actions = actions.iter().map(|action| ("action", Some(action.clone())));
    let given = parameters.into_iter().chain(actions).filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    let query: Vec<String> = given.collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_tag_identifies_its_change() {
        let tag = |made, shown| {
            let response = tagged_as_made(HttpResponse::new(StatusCode::OK), made, shown).ok()?;
            Some(response.headers().get(header::ETAG)?.as_bytes().to_vec())
        };
        assert_eq!(tag(Some(11), 11), Some(b"\"11\"".to_vec()));
        assert_eq!(tag(Some(11), 13), None, "another change came after it");
        assert_eq!(tag(None, 13), Some(b"\"13\"".to_vec()), "it changed nothing");
    }

    #[test]
    fn next_audit_page_link_keeps_filters() {
        assert_eq!(audit_path("/v1/audit", &AuditFilter::default(), AuditOrder::NewestFirst), "/v1/audit");
        let filter = AuditFilter {
            since: Some(Timestamp::from_millis(0)),
            actions: ["credential.saved", "login.refused"].map(str::to_owned).to_vec(),
            denied: true,
            without_reads: true,
            actor: Some("system".to_owned()),
            ..AuditFilter::default()
        };
        assert_eq!(
            audit_path("/v1/audit", &filter, AuditOrder::OldestFirst),
            "/v1/audit?since=1970-01-01T00:00:00Z&outcome=denied&reads=false&actor=system&order=oldest&action=credential.saved&action=login.refused"
        );
    }
    use vault_core::credential::{CredentialType, HealthState, LabelFilter};
    use vault_core::namespace::Namespace;

    #[test]
    fn next_page_link_keeps_filters_and_limit() {
        let filter = ListFilter {
            namespace: Namespace::parse("a/b", "").ok(),
            kind: Some(CredentialType::S3),
            ..ListFilter::default()
        };
        let link = next_page("/v1", &filter, 2, "Zm9v-_");
        assert_eq!(link, "</v1/organization-vault?namespace=a/b&type=s3&limit=2&cursor=Zm9v-_>; rel=\"next\"");
        let filter = ListFilter {
            labels: ["env:", "team:data"].iter().filter_map(|text| LabelFilter::parse(text, "").ok()).collect(),
            health: Some(HealthState::Expiring),
            expires_before: Some(Timestamp::from_millis(0)),
            ..ListFilter::default()
        };
        let link = next_page("/v1", &filter, 2, "x");
        let query = "label=env:&label=team:data&health=expiring&expires_before=1970-01-01T00:00:00Z&limit=2&cursor=x";
        assert_eq!(link, format!("</v1/organization-vault?{query}>; rel=\"next\""));
        let link = next_page("/v1", &ListFilter::default(), 1000, "x");
        assert_eq!(link, "</v1/organization-vault?limit=1000&cursor=x>; rel=\"next\"");
    }
}
