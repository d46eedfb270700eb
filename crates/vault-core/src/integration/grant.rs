//! Rights of an integration, and the tokens that may use them.

use super::{IntegrationName, IntegrationPrincipal, ManagedBy, NamespacePatterns};
use crate::audit::{Affected, Subject};
use crate::digest::Digest;
use crate::entity::{Entity, Index, Kind, Lookup, Opened};
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::{Trusts, Workload, audience_look_up};
use crate::namespace::Namespace;
use crate::sealed::Blob;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

/// Maximum validity of the previous token after a rotation, in seconds: 7 days.
pub const MAX_OVERLAP_SECONDS: i64 = 7 * 86_400;

/// Validity of the previous token after a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap(i64);

impl Overlap {
    /// Default validity: 24 h.
    pub const DEFAULT: Self = Self(86_400);

    /// Validates the requested overlap in seconds, or returns the default without one. With 0, the previous token is
    /// revoked immediately.
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] outside 0 to [`MAX_OVERLAP_SECONDS`].
    pub fn parse(requested: Option<i64>, pointer: &str) -> Result<Self, FieldError> {
        match requested {
            None => Ok(Self::DEFAULT),
            Some(seconds) if (0..=MAX_OVERLAP_SECONDS).contains(&seconds) => Ok(Self(seconds)),
            Some(_) => Err(FieldError::new(pointer, FieldCode::OutOfRange, "must be 0 to 604800 seconds")),
        }
    }

    /// Returns the overlap in seconds.
    pub const fn as_seconds(self) -> i64 {
        self.0
    }
}

/// State of an integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IntegrationState {
    /// May activate.
    Active,
    /// May not activate until it is enabled.
    Disabled,
}

named!(IntegrationState);

/// A replaced token, valid until the end of its overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousToken {
    /// Digest of the token.
    pub digest: Digest,
    /// Time from which it is no longer valid.
    pub until: Timestamp,
}

/// The identity of a batch job, whose token may activate the namespaces that its patterns cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// Its name, unique in its organization without regard to ASCII case.
    pub name: IntegrationName,
    /// Namespaces that the integration may activate.
    pub patterns: NamespacePatterns,
    /// Time from which it is expired, if it expires.
    pub expires_at: Option<Timestamp>,
    /// State: active or disabled.
    pub state: IntegrationState,
    /// Digest of its token.
    pub token: Digest,
    /// The token that the last rotation replaced. It is kept after its overlap, so that its use can be distinguished
    /// from guessing.
    pub previous: Option<PreviousToken>,
    /// Workloads that may use the integration without a token.
    pub trusts: Trusts,
    /// Document set that manages the object, if any.
    pub managed_by: Option<ManagedBy>,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl Entity for Integration {
    const KIND: Kind = Kind::Integration;

    fn lookups(&self, id: Uuid) -> Vec<Lookup> {
        let previous = self.previous.map(|previous| previous.digest);
        let tokens = [self.token, audience_look_up(IntegrationId::from_uuid(id))].into_iter().chain(previous);
        let tokens = tokens.map(|token| Lookup::new(Index::IntegrationToken, token.to_base64()));
        let name = Lookup::new(Index::IntegrationName, self.name.uniqueness_key());
        std::iter::once(name).chain(tokens).collect()
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.expires_at.filter(|_| self.state == IntegrationState::Active)
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Integration(IntegrationId::from_uuid(id)).into()
    }
}

/// Identifies which token of an integration was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSlot {
    /// The token issued at creation or by the last rotation.
    Current,
    /// The previous token, within its overlap.
    Previous,
}

/// Reason why an integration is refused, for metrics and logs. No response contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum IntegrationRefusal {
    /// No integration has this token, or its document does not open.
    #[error("no integration has this token")]
    Unknown,
    /// The token was replaced and its overlap has ended.
    #[error("the token was replaced")]
    Replaced,
    /// The integration is disabled.
    #[error("the integration is disabled")]
    Disabled,
    /// The integration has expired.
    #[error("the integration has expired")]
    Expired,
    /// The organization was deleted or disabled.
    #[error("the organization was deleted or disabled")]
    OrganizationDisabled,
    /// The row has changed since the token was verified, which must be repeated.
    #[error("the integration was changed during the request")]
    Changed,
}

named!(IntegrationRefusal);

impl Integration {
    /// Decides whether the token with the digest `token` may use the integration at `now`.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn authorize(&self, token: Digest, now: Timestamp) -> Result<TokenSlot, IntegrationRefusal> {
        let slot = if token == self.token {
            TokenSlot::Current
        } else {
            let previous = self.previous.filter(|previous| previous.digest == token);
            let previous = previous.ok_or(IntegrationRefusal::Unknown)?;
            if now >= previous.until {
                return Err(IntegrationRefusal::Replaced);
            }
            TokenSlot::Previous
        };
        self.check_state(now).map(|()| slot)
    }

    /// Decides whether the integration may be used at `now`, with any token or trust.
    fn check_state(&self, now: Timestamp) -> Result<(), IntegrationRefusal> {
        if self.state != IntegrationState::Active {
            return Err(IntegrationRefusal::Disabled);
        }
        if self.has_expired(now) {
            return Err(IntegrationRefusal::Expired);
        }
        Ok(())
    }

    /// Returns the integration with a new token. The current token becomes the previous one and is valid for `overlap`.
    /// An older one is revoked.
    #[must_use]
    pub fn rotated(self, token: Digest, overlap: Overlap, now: Timestamp) -> Self {
        // Without an overlap, use a time that is in the past even for a server whose clock is behind.
        let until =
            if overlap.as_seconds() > 0 { now.plus_seconds(overlap.as_seconds()) } else { Timestamp::from_millis(0) };
        let previous = PreviousToken { digest: self.token, until };
        Self { token, previous: Some(previous), ..self }
    }

    /// Returns the state as a list shows it at `now`: `active`, `disabled` or `expired`.
    pub fn state_at(&self, now: Timestamp) -> &'static str {
        match self.state {
            IntegrationState::Active if self.has_expired(now) => "expired",
            state => state.as_str(),
        }
    }

    /// Returns whether it has expired at `now`.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Returns whether it may activate `namespace` at `now`, if the namespace is not frozen.
    pub fn may_activate(&self, namespace: &Namespace, now: Timestamp) -> bool {
        self.state == IntegrationState::Active && !self.has_expired(now) && self.patterns.allow(namespace)
    }
}

/// A stored integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIntegration {
    /// ID of the integration.
    pub id: IntegrationId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Its version: 1 at first, and one more after each change.
    pub version: i64,
    /// The integration.
    pub integration: Integration,
    /// Time of the last use of its current token, truncated to the minute. The document does not contain it.
    pub last_used_at: Option<Timestamp>,
}

impl From<Opened<Integration>> for StoredIntegration {
    fn from(opened: Opened<Integration>) -> Self {
        let (key, version, last_used_at) = (opened.key(), opened.version(), opened.last_used_at());
        let (id, organization) = (IntegrationId::from_uuid(key.id), key.organization);
        Self { id, organization, version, integration: opened.into_value(), last_used_at }
    }
}

impl StoredIntegration {
    /// Returns the integration as a list shows it at `now`, without an invalid previous token.
    #[must_use]
    pub fn shown(mut self, now: Timestamp) -> Self {
        self.integration.previous = self.integration.previous.filter(|previous| now < previous.until);
        self
    }
}

/// An integration, as found by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIntegration {
    /// The integration, even if disabled or expired.
    pub stored: StoredIntegration,
    /// Its sealed document.
    pub sealed: Blob,
    /// Whether its organization is active.
    pub organization_active: bool,
}

impl FoundIntegration {
    /// Returns the principal of the token with the digest `token` at `now`.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn principal(&self, token: Digest, now: Timestamp) -> Result<IntegrationPrincipal, IntegrationRefusal> {
        let integration = &self.stored.integration;
        let slot = integration.authorize(token, now)?;
        let previous = integration.previous.filter(|_| slot == TokenSlot::Previous);
        let token_until = previous.map(|previous| previous.until);
        Ok(IntegrationPrincipal { token_until, ..self.authenticated(token, slot) })
    }

    /// Returns the principal of a workload that matches one of the trusts at `now`.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn workload_principal(
        &self,
        workload: Workload,
        now: Timestamp,
    ) -> Result<IntegrationPrincipal, IntegrationRefusal> {
        self.stored.integration.check_state(now)?;
        let principal = self.authenticated(audience_look_up(self.stored.id), TokenSlot::Current);
        Ok(IntegrationPrincipal { workload: Some(Arc::new(workload)), ..principal })
    }

    fn authenticated(&self, token: Digest, slot: TokenSlot) -> IntegrationPrincipal {
        let StoredIntegration { id, organization, ref integration, .. } = self.stored;
        IntegrationPrincipal {
            organization,
            integration: id,
            token,
            slot,
            patterns: integration.patterns.clone(),
            expires_at: integration.expires_at,
            token_until: None,
            seen: self.sealed.clone(),
            network: None,
            workload: None,
        }
    }
}
