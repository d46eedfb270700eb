//! Associated data that binds a blob to its place in the database.

use crate::blob::Format;
use uuid::Uuid;
use vault_core::entity::{EntityKey, Kind};
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{CardContext, CredentialContext};

/// Identifies the column, row and version that a blob is stored in.
///
/// The context names no key above the one that seals, so rewrapping a key leaves the blobs below it unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    column: Column,
    instance: Option<InstanceId>,
    organization: Option<OrganizationId>,
    object: Object,
    version: i64,
    wrapped: Option<KeyId>,
}

/// Ids of the row: one or two.
#[derive(Clone, Copy, Debug)]
struct Object(Uuid, Option<Uuid>);

/// All columns that hold a blob.
#[derive(Clone, Copy, Debug)]
enum Column {
    Data,
    DataKey,
    Card,
    OrganizationKey,
    FingerprintKey,
    InstanceKey,
    Keyring,
    DatabaseKey,
    Entity(Kind),
}

impl Column {
    /// Returns the kind of plaintext. Part of the stored formats: it must never change.
    const fn kind(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Card => "card",
            Self::Keyring => "keyring",
            Self::Entity(_) => "entity",
            Self::DataKey | Self::OrganizationKey | Self::FingerprintKey | Self::InstanceKey | Self::DatabaseKey => {
                "wrapped key"
            }
        }
    }

    /// Returns the column's name in associated data and errors. Part of the stored formats: it must never change.
    const fn name(self) -> &'static str {
        match self {
            Self::Data => "credential.data",
            Self::DataKey => "credential.data_key",
            Self::Card => "credential.card",
            Self::OrganizationKey => "organization_key.wrapped",
            Self::FingerprintKey => "organization.fingerprint_wrapped",
            Self::InstanceKey => "instance.wrapped",
            Self::Keyring => "instance.keyring",
            Self::DatabaseKey => "orgvault.db.key",
            Self::Entity(Kind::Organization) => "entity/organization",
            Self::Entity(Kind::Integration) => "entity/integration",
            Self::Entity(Kind::Namespace) => "entity/namespace",
            Self::Entity(Kind::Receiver) => "entity/receiver",
            Self::Entity(Kind::Issuer) => "entity/issuer",
            Self::Entity(Kind::IssuerKeys) => "entity/issuer_keys",
            Self::Entity(Kind::SigningKeys) => "entity/signing_keys",
            Self::Entity(Kind::PublicationChecks) => "entity/publication_checks",
            Self::Entity(Kind::SetAside) => "entity/set_aside",
            Self::Entity(Kind::Invitation) => "entity/invitation",
            Self::Entity(Kind::Account) => "entity/account",
            Self::Entity(Kind::AccountSecrets) => "entity/account_secrets",
            Self::Entity(Kind::PendingSeed) => "entity/pending_seed",
            Self::Entity(Kind::EnrolmentDraft) => "entity/enrolment_draft",
        }
    }

    /// Returns the column's table, for errors; a file name for the one blob outside the database.
    const fn table(self) -> &'static str {
        match self {
            Self::Data | Self::DataKey => "credential_secrets",
            Self::Card => "credentials",
            Self::InstanceKey | Self::Keyring => "instance",
            Self::DatabaseKey => "orgvault.db.key",
            Self::OrganizationKey | Self::FingerprintKey | Self::Entity(_) => "entities",
        }
    }
}

impl Context {
    /// Returns the context of a credential's data, sealed by its data key.
    pub(crate) fn data(instance: InstanceId, context: CredentialContext) -> Self {
        Self::of_credential(Column::Data, instance, context)
    }

    /// Returns the context of a credential's card, sealed by the organization's card key. The version is the credential's
    /// revision.
    pub(crate) fn card(instance: InstanceId, context: CardContext) -> Self {
        Self {
            organization: Some(context.organization),
            version: context.revision,
            ..Self::of_instance(Column::Card, instance, *context.credential.as_uuid())
        }
    }

    /// Returns the context of a credential's data key, wrapped by the organization's wrap key.
    pub(crate) fn data_key(instance: InstanceId, context: CredentialContext, key: KeyId) -> Self {
        Self { wrapped: Some(key), ..Self::of_credential(Column::DataKey, instance, context) }
    }

    fn of_credential(column: Column, instance: InstanceId, context: CredentialContext) -> Self {
        let credential = *context.credential.as_uuid();
        Self {
            organization: Some(context.organization),
            object: Object(credential, Some(*context.id.as_uuid())),
            version: context.version,
            ..Self::of_instance(column, instance, credential)
        }
    }

    /// Returns the context of an organization key, wrapped by the instance key.
    pub(crate) fn organization_key(instance: InstanceId, organization: OrganizationId, key: KeyId) -> Self {
        Self { organization: Some(organization), ..Self::wrapped_key(Column::OrganizationKey, instance, key) }
    }

    /// Returns the context of an organization's fingerprint key, wrapped by the instance key.
    pub(crate) fn fingerprint_key(instance: InstanceId, organization: OrganizationId, key: KeyId) -> Self {
        Self { organization: Some(organization), ..Self::wrapped_key(Column::FingerprintKey, instance, key) }
    }

    fn wrapped_key(column: Column, instance: InstanceId, key: KeyId) -> Self {
        Self { wrapped: Some(key), ..Self::of_instance(column, instance, *key.as_uuid()) }
    }

    /// Returns the context of the instance key, wrapped by the root key.
    pub(crate) fn instance_key(instance: InstanceId, key: KeyId) -> Self {
        Self { wrapped: Some(key), ..Self::of_instance(Column::InstanceKey, instance, *instance.as_uuid()) }
    }

    /// Returns the context of the database key, wrapped by the root key. It has no instance: the key is needed before
    /// the instance is known.
    pub(crate) fn database_key(key: KeyId) -> Self {
        Self {
            column: Column::DatabaseKey,
            instance: None,
            organization: None,
            object: Object(*key.as_uuid(), None),
            version: 0,
            wrapped: Some(key),
        }
    }

    /// Returns the context of the keyring document, sealed by the instance key.
    pub(crate) fn keyring(instance: InstanceId) -> Self {
        Self::of_instance(Column::Keyring, instance, *instance.as_uuid())
    }

    /// Returns the context of an entity's document, sealed by the instance key.
    pub(crate) fn entity(instance: InstanceId, key: &EntityKey, version: i64) -> Self {
        let organization = Some(key.organization);
        Self { organization, version, ..Self::of_instance(Column::Entity(key.kind), instance, key.id) }
    }

    fn of_instance(column: Column, instance: InstanceId, object: Uuid) -> Self {
        Self {
            column,
            instance: Some(instance),
            organization: None,
            object: Object(object, None),
            version: 0,
            wrapped: None,
        }
    }

    /// Returns the table, for errors.
    pub(crate) fn table(&self) -> &'static str {
        self.column.table()
    }

    /// Returns the column, for errors.
    pub(crate) fn column(&self) -> &'static str {
        self.column.name()
    }

    /// Returns the id of the row in [`Context::table`], for errors.
    pub(crate) fn object(&self) -> String {
        match (self.column, self.organization) {
            // The context contains the id of the key, which is in the organization's document.
            (Column::OrganizationKey | Column::FingerprintKey, Some(organization)) => organization.to_string(),
            _ => self.object.0.hyphenated().to_string(),
        }
    }

    /// Writes the ids of the row.
    fn write_object<'a>(&self, bytes: &'a mut [u8; 32]) -> &'a [u8] {
        let (first, second) = bytes.split_at_mut(16);
        first.copy_from_slice(self.object.0.as_bytes());
        match &self.object.1 {
            Some(id) => {
                second.copy_from_slice(id.as_bytes());
                &bytes[..]
            }
            None => &bytes[..16],
        }
    }

    /// Returns the associated data of a blob of `format` sealed by `key`.
    ///
    /// The data is the number of parts, then each part preceded by its length. A part that does not apply is empty.
    pub(crate) fn associated_data(&self, format: Format, key: KeyId) -> Vec<u8> {
        let mut object = [0; 32];
        let parts: [&[u8]; 9] = [
            &format.to_bytes(),
            self.column.kind().as_bytes(),
            self.instance.as_ref().map_or(&[], |id| id.as_bytes()),
            self.organization.as_ref().map_or(&[], |id| id.as_bytes()),
            self.write_object(&mut object),
            self.column.name().as_bytes(),
            &self.version.to_be_bytes(),
            key.as_bytes(),
            self.wrapped.as_ref().map_or(&[], |id| id.as_bytes()),
        ];
        // A wrap has one part more than a seal.
        let parts = if self.wrapped.is_some() { &parts[..] } else { &parts[..8] };
        // Large enough for all associated data, so the buffer is allocated once.
        let mut data = Vec::with_capacity(192);
        data.push(parts.len() as u8);
        for part in parts {
            debug_assert!(part.len() <= usize::from(u8::MAX), "ids and names of ours are short");
            data.push(part.len() as u8);
            data.extend_from_slice(part);
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{id, key_id};

    #[test]
    fn errors_name_the_table_and_the_row() {
        let instance = InstanceId::from_uuid(id(1));
        let organization = OrganizationId::from_uuid(id(2));
        let credential = vault_core::id::CredentialId::from_uuid(id(4));
        let version = vault_core::id::VersionId::from_uuid(id(7));
        let place = CredentialContext { organization, credential, version: 1, id: version };
        let card = CardContext { organization, credential, revision: 1 };
        let key = key_id(5);
        let rows = [
            (Context::data(instance, place), "credential_secrets", 4),
            (Context::data_key(instance, place, key), "credential_secrets", 4),
            (Context::card(instance, card), "credentials", 4),
            (Context::organization_key(instance, organization, key), "entities", 2),
            (Context::fingerprint_key(instance, organization, key), "entities", 2),
            (Context::instance_key(instance, key), "instance", 1),
            (Context::keyring(instance), "instance", 1),
        ];
        for (context, table, row) in rows {
            assert_eq!((context.table(), context.object()), (table, id(row).to_string()), "{}", context.column());
        }
    }
}
