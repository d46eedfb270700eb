//! `{base_url}/integrations`: what admins do with their organization's integrations.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod list;
pub(super) mod rotate;

use super::NO_ID;
use crate::answer::time_text;
use crate::route::Place;
use vault_api::IssuedIntegration;
use vault_core::id::IntegrationId;
use vault_core::integration::{Integration, IntegrationToken, NamespacePatterns};
use vault_core::usecase::IntegrationRef;

/// The integration that the path names. Text that is no id stands for an integration that is not there.
fn named(place: Place<'_>) -> IntegrationRef {
    IntegrationRef::Id(place.id().parse().unwrap_or(IntegrationId::from_bytes(NO_ID)))
}

/// An integration and the token that is shown this once.
fn issued(integration: &Integration, token: &IntegrationToken) -> IssuedIntegration {
    IssuedIntegration {
        integration_id: integration.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        token: token.text().clone().into(),
        expires_at: integration.expires_at.map(time_text),
    }
}

fn spelt(patterns: &NamespacePatterns) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}
