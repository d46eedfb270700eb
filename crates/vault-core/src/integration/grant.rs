//! What an integration's row grants, and to the holder of which token.

use super::{IntegrationName, IntegrationPrincipal, NamespacePatterns, PrincipalStale};
use crate::digest::{Digest, DigestPurpose};
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, OrganizationId};
use crate::port::KeyedDigester;
use crate::time::Timestamp;

/// The longest time that an earlier token works on after a rotation, in seconds: 7 days.
pub const MAX_OVERLAP_SECONDS: i64 = 7 * 86_400;

/// For how long the earlier token works on after a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap(i64);

impl Overlap {
    /// Where none is wished: 24 h.
    pub const DEFAULT: Self = Self(86_400);

    /// The wished overlap in seconds, or the default where none is wished. 0: the earlier token ends at once.
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] outside 0 to [`MAX_OVERLAP_SECONDS`].
    pub fn parse(wished: Option<i64>, pointer: &str) -> Result<Self, FieldError> {
        match wished {
            None => Ok(Self::DEFAULT),
            Some(seconds) if (0..=MAX_OVERLAP_SECONDS).contains(&seconds) => Ok(Self(seconds)),
            Some(_) => Err(FieldError::new(pointer, FieldCode::OutOfRange, "must be 0 to 604800 seconds")),
        }
    }

    /// The overlap in seconds.
    pub const fn as_seconds(self) -> i64 {
        self.0
    }
}

/// Whether an integration may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrationState {
    /// May activate.
    Active,
    /// May not, until it is enabled.
    Disabled,
}

impl IntegrationState {
    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// The state of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|state| state.as_str() == text)
    }
}

/// A token that was replaced and works on for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierToken {
    /// Its digest.
    pub digest: Digest,
    /// The first moment at which it no longer works.
    pub until: Timestamp,
}

/// An integration: whoever holds its token may activate the namespaces that its patterns allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integration {
    /// Its id.
    pub id: IntegrationId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Its name.
    pub name: IntegrationName,
    /// The namespaces that it may activate.
    pub patterns: NamespacePatterns,
    /// The first moment at which it no longer works, if it is bounded.
    pub expires_at: Option<Timestamp>,
    /// Whether it may act.
    pub state: IntegrationState,
    /// The digest of its token.
    pub token: Digest,
    /// The token before, if it still works.
    pub earlier: Option<EarlierToken>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Which of an integration's tokens somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSlot {
    /// The one that the latest creation or rotation gave out.
    Current,
    /// The one before it, within the overlap.
    Earlier,
}

/// Why an integration may not act. Its holder is told nothing of it; the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegrationRefusal {
    /// No integration has this token, or the row does not fit its code.
    Unknown,
    /// The token was replaced and its overlap is over.
    Replaced,
    /// It is disabled.
    Disabled,
    /// It has expired.
    Expired,
    /// The organization is gone or disabled.
    OrganizationClosed,
}

impl IntegrationRefusal {
    /// The reason's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Replaced => "replaced",
            Self::Disabled => "disabled",
            Self::Expired => "expired",
            Self::OrganizationClosed => "organization-closed",
        }
    }
}

impl From<PrincipalStale> for IntegrationRefusal {
    fn from(stale: PrincipalStale) -> Self {
        match stale {
            PrincipalStale::Changed | PrincipalStale::Gone => Self::Unknown,
            PrincipalStale::Over => Self::Expired,
            PrincipalStale::OrganizationClosed => Self::OrganizationClosed,
        }
    }
}

impl Integration {
    /// The digest that the row must carry: over all that it grants, and to whom.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        let millis = |at: Timestamp| at.as_millis().to_be_bytes();
        let expires_at = self.expires_at.map(millis);
        let until = self.earlier.map(|earlier| millis(earlier.until));
        let patterns: Vec<_> = self.patterns.iter().map(ToString::to_string).collect();
        // Patterns come last: their number is all that varies, and no other part is left out.
        let mut parts: Vec<&[u8]> = vec![
            self.id.as_bytes(),
            self.organization.as_bytes(),
            self.name.as_str().as_bytes(),
            self.state.as_str().as_bytes(),
            expires_at.as_ref().map_or(&[], |bytes| bytes.as_slice()),
            self.token.as_bytes(),
            self.earlier.as_ref().map_or(&[], |earlier| earlier.digest.as_bytes().as_slice()),
            until.as_ref().map_or(&[], |bytes| bytes.as_slice()),
        ];
        parts.extend(patterns.iter().map(String::as_bytes));
        digester.digest(DigestPurpose::IntegrationGrant, &parts)
    }

    /// Decides whether the holder of the token with the digest `token` may act for it at `now`.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, token: Digest, now: Timestamp) -> Result<TokenSlot, IntegrationRefusal> {
        let slot = if token == self.token {
            TokenSlot::Current
        } else {
            let earlier = self.earlier.filter(|earlier| earlier.digest == token);
            let earlier = earlier.ok_or(IntegrationRefusal::Unknown)?;
            if now >= earlier.until {
                return Err(IntegrationRefusal::Replaced);
            }
            TokenSlot::Earlier
        };
        if self.state != IntegrationState::Active {
            return Err(IntegrationRefusal::Disabled);
        }
        if self.expires_at.is_some_and(|end| now >= end) {
            return Err(IntegrationRefusal::Expired);
        }
        Ok(slot)
    }

    /// The principal that the holder of the token with the digest `token` is at `now`; `seen` is the digest that the
    /// row carries, and fits.
    ///
    /// # Errors
    /// Why its holder may not act.
    pub fn principal(
        &self,
        token: Digest,
        seen: Digest,
        now: Timestamp,
    ) -> Result<IntegrationPrincipal, IntegrationRefusal> {
        let slot = self.judge(token, now)?;
        let own_end = self.earlier.filter(|_| slot == TokenSlot::Earlier).map(|earlier| earlier.until);
        Ok(IntegrationPrincipal {
            organization: self.organization,
            integration: self.id,
            token,
            slot,
            patterns: self.patterns.clone(),
            expires_at: self.expires_at,
            works_until: self.expires_at.into_iter().chain(own_end).min(),
            seen,
        })
    }

    /// The integration with another token; the one it had works on for `overlap`, the one before that no longer.
    #[must_use]
    pub fn rotated(self, token: Digest, overlap: Overlap, now: Timestamp) -> Self {
        let earlier = EarlierToken { digest: self.token, until: now.plus_seconds(overlap.as_seconds()) };
        let earlier = (overlap.as_seconds() > 0).then_some(earlier);
        Self { token, earlier, ..self }
    }
}

/// An integration as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIntegration {
    /// The integration.
    pub integration: Integration,
    /// The digest that the row carries; where it does not fit, the row grants nothing.
    pub digest: Digest,
    /// Counts changes of the row; a change names the version it was decided on.
    pub version: i64,
}

impl StoredIntegration {
    /// Whether the row fits its digest.
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.integration.digest(digester) == self.digest
    }
}
