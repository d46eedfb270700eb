//! Entities: objects that grant rights, contain secrets or decide where they are sent. Each is one sealed document.

use crate::audit::{Affected, RecordedRow};
use crate::id::OrganizationId;
use crate::operation::Failure;
use crate::port::{EntityRow, EntitySealer, Event};
use crate::time::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use strum::{EnumString, IntoStaticStr, VariantArray};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// Organization in the keys of entities of the instance: the nil ID.
pub const OF_INSTANCE: OrganizationId = OrganizationId::from_bytes([0; 16]);

/// Secret text within the document of an entity, which is sealed. Only there is it serialized, and `Debug` does not show it.
#[derive(Clone)]
pub struct DocumentSecret(SecretString);

impl DocumentSecret {
    /// Returns the text.
    pub const fn text(&self) -> &SecretString {
        &self.0
    }
}

impl From<SecretString> for DocumentSecret {
    fn from(text: SecretString) -> Self {
        Self(text)
    }
}

impl PartialEq for DocumentSecret {
    fn eq(&self, other: &Self) -> bool {
        // Both only to compare them, in constant time.
        self.0.expose_secret().as_bytes().ct_eq(other.0.expose_secret().as_bytes()).into()
    }
}

impl Eq for DocumentSecret {}

impl fmt::Debug for DocumentSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DocumentSecret(..)")
    }
}

impl Serialize for DocumentSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret()) // for the document
    }
}

impl<'de> Deserialize<'de> for DocumentSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(SecretString::from(text)))
    }
}

/// Kind of an entity. Its text is stored, and part of the associated data of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// An organization.
    Organization,
    /// An integration.
    Integration,
    /// State of a namespace.
    Namespace,
    /// A receiver of notifications.
    Receiver,
    /// An issuer of identity tokens.
    Issuer,
    /// The keys of an issuer, under its ID.
    IssuerKeys,
    /// The signing keys of federation tokens.
    SigningKeys,
    /// Results of the publication checks of signing keys, under the ID of their document.
    PublicationChecks,
    /// Concerns of the overview that an account has set aside, under its ID.
    SetAside,
    /// An invitation, under the ID of the account that it creates or re-enrols.
    Invitation,
    /// Rights of an account.
    Account,
    /// Password and TOTP secret of an account, under its ID.
    AccountSecrets,
    /// TOTP secret of an account that is pending confirmation, under the ID of the account.
    PendingSeed,
    /// Draft of an enrolment, under the ID of the invitation.
    EnrolmentDraft,
}

named!(Kind);

impl Kind {
    /// Returns whether opened documents are cached: those that requests read, without those that contain secrets.
    pub(crate) const fn is_cached(self) -> bool {
        match self {
            Self::Organization
            | Self::Integration
            | Self::Namespace
            | Self::Issuer
            | Self::IssuerKeys
            | Self::Account => true,
            Self::Receiver
            | Self::SigningKeys
            | Self::PublicationChecks
            | Self::SetAside
            | Self::Invitation
            | Self::AccountSecrets
            | Self::PendingSeed
            | Self::EnrolmentDraft => false,
        }
    }

    /// Returns how audit entries name the rows of this kind. `None` if no entry records its versions, because no
    /// principal changes it, another document names the valid one, it is temporary, or it changes only the view of its user.
    pub const fn recorded(self) -> Option<RecordedRow> {
        Some(match self {
            Self::Organization => RecordedRow::Organization,
            Self::Integration => RecordedRow::Integration,
            Self::Namespace => RecordedRow::Namespace,
            Self::Receiver => RecordedRow::Receiver,
            Self::Issuer => RecordedRow::Issuer,
            Self::SigningKeys => RecordedRow::SigningKeys,
            Self::Invitation => RecordedRow::Invitation,
            Self::Account => RecordedRow::Account,
            Self::IssuerKeys
            | Self::PublicationChecks
            | Self::SetAside
            | Self::AccountSecrets
            | Self::PendingSeed
            | Self::EnrolmentDraft => return None,
        })
    }
}

/// Row key of an entity. Its document opens under no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntityKey {
    /// Organization, or the nil ID for entities of the instance.
    pub organization: OrganizationId,
    /// Kind of the entity.
    pub kind: Kind,
    /// ID of the entity.
    pub id: Uuid,
}

impl EntityKey {
    /// Table of the rows.
    pub const TABLE: &'static str = "entities";

    /// Returns the event that its row does not open.
    pub(crate) fn damaged(self) -> Event {
        Event::IntegrityFailure { table: Self::TABLE, id: self.id.to_string() }
    }

    /// Returns its parts in the order of rows: kinds sort by their text.
    pub fn order(self) -> (OrganizationId, &'static str, Uuid) {
        (self.organization, self.kind.as_str(), self.id)
    }
}

/// Index of a lookup. Its values are unique within an organization, or in the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Index {
    /// Name of an organization in its unique form.
    OrganizationName,
    /// State of an organization.
    OrganizationState,
    /// Name of an integration in its unique form.
    IntegrationName,
    /// Digest of a token of an integration, or its audience.
    IntegrationToken,
    /// Name of a namespace whose state was ever changed.
    Namespace,
    /// Name of a frozen namespace.
    FrozenNamespace,
    /// ID of an active receiver.
    ActiveReceiver,
    /// Name of an issuer.
    IssuerName,
    /// The document of signing keys.
    SigningKeys,
    /// Address and organization of an invitation that creates an account.
    InvitedAddress,
    /// Digest of the enrolment code of an invitation.
    EnrolmentCode,
    /// Address of an account.
    AccountAddress,
    /// ID of an account whose role permits to manage accounts, whatever its state.
    Admin,
}

named!(Index);

impl Index {
    /// Returns the stored texts of the indexes of a kind. Entities of several kinds can have one ID.
    pub fn names_of(kind: Kind) -> Vec<&'static str> {
        let all = <Self as strum::VariantArray>::VARIANTS.iter();
        all.filter(|index| index.kind() == kind).map(|index| index.as_str()).collect()
    }

    /// Returns the kind of the entities to which its values lead.
    pub const fn kind(self) -> Kind {
        match self {
            Self::OrganizationName | Self::OrganizationState => Kind::Organization,
            Self::IntegrationName | Self::IntegrationToken => Kind::Integration,
            Self::Namespace | Self::FrozenNamespace => Kind::Namespace,
            Self::ActiveReceiver => Kind::Receiver,
            Self::IssuerName => Kind::Issuer,
            Self::SigningKeys => Kind::SigningKeys,
            Self::InvitedAddress | Self::EnrolmentCode => Kind::Invitation,
            Self::AccountAddress | Self::Admin => Kind::Account,
        }
    }

    /// Returns whether its values are unique in the instance: they are found before the organization is known.
    pub const fn is_global(self) -> bool {
        matches!(
            self,
            Self::OrganizationName
                | Self::IntegrationToken
                | Self::InvitedAddress
                | Self::EnrolmentCode
                | Self::AccountAddress
        )
    }
}

/// A unique value by which an entity is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Index of the value.
    pub index: Index,
    /// The value. Lists are ordered by it.
    pub value: String,
}

impl Lookup {
    /// Creates the lookup of a value.
    pub fn new(index: Index, value: impl Into<String>) -> Self {
        Self { index, value: value.into() }
    }
}

/// An object that is stored as one sealed document. Organization, ID, version and kind are columns, and associated data of
/// the document.
///
/// The document is JSON: a new field has a default, a removed one is ignored. What is decoded was validated when it was
/// written: a rule that became stricter must not make a stored document unreadable.
pub trait Entity: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;

    /// Returns the values by which the entity with this ID is found. A lookup that the document does not list leads to nothing.
    fn lookups(&self, id: Uuid) -> Vec<Lookup>;

    /// Returns the time at which something is due for it. Stored as a column too, which must have the same value.
    fn due_at(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the entity with the keys in its document wrapped by the active instance key, or `None` if nothing changes. It is called
    /// before the document is sealed, so all its parts always need the same instance key.
    ///
    /// # Errors
    /// A key does not unwrap.
    fn rewrapped(&self, _sealer: &dyn EntitySealer) -> Result<Option<Self>, &'static str> {
        Ok(None)
    }

    /// Returns the subject of audit entries about the entity with this ID.
    fn subject(&self, id: Uuid) -> Affected;
}

/// An entity that was read. Only opening creates one, and a replacement requires one, so that no document that does not open
/// is sealed again.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened<E> {
    key: EntityKey,
    version: i64,
    last_used_at: Option<Timestamp>,
    value: Arc<E>,
}

impl<E> Deref for Opened<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.value
    }
}

impl<E: Entity> Opened<E> {
    /// Opens the document of a row.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`] if its key is not loaded, [`Failure::Damaged`] if the document does not open for this row.
    pub fn open(sealer: &dyn EntitySealer, row: &EntityRow) -> Result<Self, Failure> {
        let (key, version) = (row.key, row.version);
        if !sealer.has_key_of(&row.sealed) {
            return Err(Failure::UnknownKey { key });
        }
        let cache = sealer.cache().filter(|_| key.kind.is_cached());
        let value = match cache.and_then(|cache| cache.find::<E>(row)) {
            Some(value) => value,
            None => {
                let document = sealer.open(&key, version, &row.sealed);
                let document = document.map_err(|reason| Failure::Damaged { key, reason })?;
                let value = serde_json::from_slice::<E>(&document);
                let value = value.map_err(|_| Failure::Damaged { key, reason: "the document has another form" })?;
                let value = Arc::new(value);
                if let Some(cache) = cache {
                    cache.insert(row, &value);
                }
                value
            }
        };
        if value.due_at() != row.due_at {
            return Err(Failure::Damaged { key, reason: "its due time differs from the document" });
        }
        Ok(Self { key, version, last_used_at: row.last_used_at, value })
    }

    /// Returns the key of its row.
    pub const fn key(&self) -> EntityKey {
        self.key
    }

    /// Returns its version: 1 at first, and one more after each change.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// Returns the minute of its last use, which the document does not contain.
    pub const fn last_used_at(&self) -> Option<Timestamp> {
        self.last_used_at
    }

    /// Returns the values by which it is found.
    pub fn lookups(&self) -> Vec<Lookup> {
        self.value.lookups(self.key.id)
    }

    /// Returns the entity without its row.
    pub fn into_value(self) -> E {
        Arc::unwrap_or_clone(self.value)
    }
}
