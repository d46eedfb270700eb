//! Rights in the row of an integration, and the tokens that may use them.

use super::{IntegrationName, IntegrationPrincipal, ManagedBy, NamespacePatterns};
use crate::audit::{RecordedRights, RecordedRow, RowState};
use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::{Trusts, Workload, audience_look_up};
use crate::namespace::Namespace;
use crate::port::KeyedDigester;
use crate::time::Timestamp;
use std::sync::Arc;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrationState {
    /// May activate.
    Active,
    /// May not activate until it is enabled.
    Disabled,
}

impl IntegrationState {
    /// Returns the name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// Returns the state with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|state| state.as_str() == text)
    }
}

/// A replaced token, valid until the end of its overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousToken {
    /// Digest of the token.
    pub digest: Digest,
    /// Time from which it is no longer valid.
    pub until: Timestamp,
}

/// The identity of a batch job, whose token may activate the namespaces that its patterns cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integration {
    /// ID of the integration.
    pub id: IntegrationId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Its name.
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
    /// Version: [`Integration::FIRST_VERSION`] initially, incremented by each change.
    pub version: i64,
    /// Time of creation.
    pub created_at: Timestamp,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IntegrationRefusal {
    /// No integration has this token, or the MAC of its row does not verify.
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

impl IntegrationRefusal {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Replaced, Self::Disabled, Self::Expired, Self::OrganizationDisabled, Self::Changed];

    /// Returns the name of the reason in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Replaced => "replaced",
            Self::Disabled => "disabled",
            Self::Expired => "expired",
            Self::OrganizationDisabled => "organization-disabled",
            Self::Changed => "changed",
        }
    }
}

impl Integration {
    /// Version of a new integration.
    pub const FIRST_VERSION: i64 = 1;

    /// Computes the MAC of the row. It covers all rights of the row, its token and its version.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(|parts| digester.sign(DigestPurpose::IntegrationGrant, parts))
    }

    /// Returns the state of the row, as the audit log records it.
    pub fn recorded(&self, digester: &dyn KeyedDigester) -> RowState {
        self.states(digester).current()
    }

    /// Returns the state of the row in every form in which the audit log may have recorded it.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedRights {
        self.with_parts(|parts| RowState::of_grant(RecordedRow::Integration, self.version, parts, digester))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let millis = |at: Timestamp| at.as_millis().to_be_bytes();
        let expires_at = self.expires_at.map(millis);
        let until = self.previous.map(|previous| millis(previous.until));
        let version = self.version.to_be_bytes();
        let patterns: Vec<_> = self.patterns.iter().map(ToString::to_string).collect();
        let trusts = self.trusts.to_stored();
        // Patterns come last. Only their number varies and no other part is optional, so the encoding is unambiguous.
        let mut parts: Vec<&[u8]> = vec![
            self.id.as_bytes(),
            self.organization.as_bytes(),
            self.name.as_str().as_bytes(),
            self.state.as_str().as_bytes(),
            &version,
            expires_at.as_ref().map_or(&[], |bytes| bytes.as_slice()),
            self.token.as_bytes(),
            self.previous.as_ref().map_or(&[], |previous| previous.digest.as_bytes().as_slice()),
            until.as_ref().map_or(&[], |bytes| bytes.as_slice()),
            trusts.as_bytes(),
            self.managed_by.as_ref().map_or(&[], |set| set.as_str().as_bytes()),
        ];
        parts.extend(patterns.iter().map(String::as_bytes));
        digest(&parts)
    }

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

    /// Returns the principal of a workload that matches one of the trusts at `now`. `seen` is the verified MAC of the
    /// row.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn workload_principal(
        &self,
        workload: Workload,
        seen: Digest,
        now: Timestamp,
    ) -> Result<IntegrationPrincipal, IntegrationRefusal> {
        self.check_state(now)?;
        Ok(IntegrationPrincipal {
            organization: self.organization,
            integration: self.id,
            token: audience_look_up(self.id),
            slot: TokenSlot::Current,
            patterns: self.patterns.clone(),
            expires_at: self.expires_at,
            token_until: None,
            seen,
            network: None,
            workload: Some(Arc::new(workload)),
        })
    }

    /// Returns the principal of the token with the digest `token` at `now`. `seen` is the verified MAC of the row.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn principal(
        &self,
        token: Digest,
        seen: Digest,
        now: Timestamp,
    ) -> Result<IntegrationPrincipal, IntegrationRefusal> {
        let slot = self.authorize(token, now)?;
        Ok(IntegrationPrincipal {
            organization: self.organization,
            integration: self.id,
            token,
            slot,
            patterns: self.patterns.clone(),
            expires_at: self.expires_at,
            token_until: self.previous.filter(|_| slot == TokenSlot::Previous).map(|previous| previous.until),
            seen,
            network: None,
            workload: None,
        })
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

    /// Returns the integration as a list shows it at `now`, without an invalid previous token.
    #[must_use]
    pub fn shown(self, now: Timestamp) -> Self {
        Self { previous: self.previous.filter(|previous| now < previous.until), ..self }
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

    /// Returns the version after the next change.
    #[must_use]
    pub const fn next_version(&self) -> i64 {
        self.version.saturating_add(1)
    }
}

/// A stored integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIntegration {
    /// The integration.
    pub integration: Integration,
    /// MAC of the row. If it does not verify, the row grants nothing.
    pub digest: RowMac,
    /// Time of the last use of its current token, truncated to the minute. The MAC does not cover it.
    pub last_used_at: Option<Timestamp>,
}

impl StoredIntegration {
    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::IntegrationGrant, parts, &self.digest);
        self.integration.with_parts(is_signed)
    }
}
