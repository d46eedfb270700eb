//! Links to the next page of a list (RFC 8288).

use crate::answer::time_text;
use std::fmt::Write as _;
use vault_core::cursor::ListFilter;
use vault_core::port::AuditOrder;
use vault_core::time::Timestamp;
use vault_core::usecase::AuditFilter;

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
pub(crate) fn audit(path: &str, filter: &AuditFilter, order: AuditOrder) -> String {
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
    fn next_audit_page_link_keeps_filters() {
        assert_eq!(audit("/v1/audit", &AuditFilter::default(), AuditOrder::NewestFirst), "/v1/audit");
        let filter = AuditFilter {
            since: Some(Timestamp::from_millis(0)),
            actions: ["credential.saved", "login.refused"].map(str::to_owned).to_vec(),
            denied: true,
            without_reads: true,
            actor: Some("system".to_owned()),
            ..AuditFilter::default()
        };
        assert_eq!(
            audit("/v1/audit", &filter, AuditOrder::OldestFirst),
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
