//! `{base_url}/integrations`: operations of admins on their organization's integrations.

pub(super) mod change;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod list;
pub(super) mod rotate;
pub(super) mod trusts;
pub(super) mod usage;

use super::NO_ID;
use crate::answer::time_text;
use crate::route::RequestPath;
use vault_api::{IntegrationItem, IssuedIntegration};
use vault_core::id::IntegrationId;
use vault_core::integration::{IntegrationToken, NamespacePatterns, StoredIntegration};
use vault_core::time::Timestamp;
use vault_core::usecase::integrations::IntegrationRef;

/// Returns the integration ID in the path. An invalid ID is handled like that of an integration that does not exist.
fn named(place: RequestPath<'_>) -> IntegrationRef {
    IntegrationRef::Id(place.id().parse().unwrap_or(IntegrationId::from_bytes(NO_ID)))
}

/// Converts an integration and its token, which is shown only once.
pub fn issued(stored: &StoredIntegration, token: Option<&IntegrationToken>) -> IssuedIntegration {
    let integration = &stored.integration;
    IssuedIntegration {
        id: stored.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        token: token.map(|token| token.text().clone().into()),
        trusts: trusts::items(&integration.trusts),
        expires_at: integration.expires_at.map(time_text),
    }
}

/// Converts an integration for lists, as of `now`.
pub fn item(stored: &StoredIntegration, now: Timestamp) -> IntegrationItem {
    let integration = &stored.integration;
    IntegrationItem {
        id: stored.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        state: integration.state_at(now).to_owned(),
        created_at: time_text(integration.created_at),
        expires_at: integration.expires_at.map(time_text),
        last_used_at: stored.last_used_at.map(time_text),
        previous_token_until: integration.previous.map(|previous| time_text(previous.until)),
        trusts: trusts::items(&integration.trusts),
        managed_by: integration.managed_by.as_ref().map(|set| set.as_str().to_owned()),
    }
}

fn spelt(patterns: &NamespacePatterns) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}
