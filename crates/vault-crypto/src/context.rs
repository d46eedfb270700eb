//! What a blob is bound to, as the associated data of its cipher: it opens nowhere else.

use crate::blob::Format;
use uuid::Uuid;
use vault_core::id::{AccountId, InstanceId, KeyId, OrganizationId, SeedId};
use vault_core::port::CredentialContext;
use vault_core::sealed::InstanceKeyPurpose;

/// Where a blob lies and what it is.
///
/// Nothing in it names a key further up, so that a re-wrap leaves what lies below untouched.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    kind: &'static str,
    instance: Option<InstanceId>,
    organization: Option<OrganizationId>,
    object: Object,
    column: &'static str,
    version: i64,
    wrapped: Option<KeyId>,
}

/// The row, by one id or two.
#[derive(Clone, Copy, Debug)]
struct Object(Uuid, Option<Uuid>);

impl Object {
    fn write(self, bytes: &mut [u8; 32]) -> &[u8] {
        bytes[..16].copy_from_slice(self.0.as_bytes());
        match self.1 {
            None => &bytes[..16],
            Some(second) => {
                bytes[16..].copy_from_slice(second.as_bytes());
                &bytes[..]
            }
        }
    }
}

const DATA: &str = "data";
const INFORMATION: &str = "information";
const WRAPPED_KEY: &str = "wrapped key";

impl Context {
    /// A credential's data, under its data key.
    pub(crate) fn data(instance: InstanceId, context: CredentialContext) -> Self {
        Self::of_credential(DATA, "credential.data", instance, context, None)
    }

    /// What a list shows of a credential, under the organization's information key.
    pub(crate) fn information(instance: InstanceId, context: CredentialContext) -> Self {
        Self::of_credential(INFORMATION, "credential.information", instance, context, None)
    }

    /// A credential's data key, under the organization's wrap key.
    pub(crate) fn data_key(instance: InstanceId, context: CredentialContext, key: KeyId) -> Self {
        Self::of_credential(WRAPPED_KEY, "credential.data_key", instance, context, Some(key))
    }

    fn of_credential(
        kind: &'static str,
        column: &'static str,
        instance: InstanceId,
        context: CredentialContext,
        wrapped: Option<KeyId>,
    ) -> Self {
        Self {
            kind,
            instance: Some(instance),
            organization: Some(context.organization),
            object: Object(*context.credential.as_uuid(), None),
            column,
            version: context.version,
            wrapped,
        }
    }

    /// An organization key, under the instance key.
    pub(crate) fn organization_key(instance: InstanceId, organization: OrganizationId, key: KeyId) -> Self {
        Self::of_organization("organization_key.wrapped", instance, organization, key)
    }

    /// An organization's fingerprint key, under the instance key.
    pub(crate) fn fingerprint_key(instance: InstanceId, organization: OrganizationId, key: KeyId) -> Self {
        Self::of_organization("organization.fingerprint_wrapped", instance, organization, key)
    }

    fn of_organization(column: &'static str, instance: InstanceId, organization: OrganizationId, key: KeyId) -> Self {
        let organization = Some(organization);
        let base = Self::of_instance(WRAPPED_KEY, column, instance, Object(*key.as_uuid(), None));
        Self { organization, wrapped: Some(key), ..base }
    }

    /// An instance-wide key, under the instance key.
    pub(crate) fn purpose_key(instance: InstanceId, purpose: InstanceKeyPurpose, key: KeyId) -> Self {
        let column = match purpose {
            InstanceKeyPurpose::LookUp => "instance_key.wrapped/look-up",
            InstanceKeyPurpose::Audit => "instance_key.wrapped/audit",
            InstanceKeyPurpose::Token => "instance_key.wrapped/token",
        };
        let base = Self::of_instance(WRAPPED_KEY, column, instance, Object(*key.as_uuid(), None));
        Self { wrapped: Some(key), ..base }
    }

    /// The instance key, under the root key.
    pub(crate) fn instance_key(instance: InstanceId, key: KeyId) -> Self {
        let object = Object(*instance.as_uuid(), None);
        Self { wrapped: Some(key), ..Self::of_instance(WRAPPED_KEY, "instance.wrapped", instance, object) }
    }

    /// The database key, under the root key. It is needed before the instance is known.
    pub(crate) fn database_key(key: KeyId) -> Self {
        Self {
            kind: WRAPPED_KEY,
            instance: None,
            organization: None,
            object: Object(*key.as_uuid(), None),
            column: "orgvault.db.key",
            version: 0,
            wrapped: Some(key),
        }
    }

    /// The known text, under the instance key.
    pub(crate) fn canary(instance: InstanceId) -> Self {
        Self::of_instance("canary", "instance.canary", instance, Object(*instance.as_uuid(), None))
    }

    /// A password's verifier, under the instance key.
    pub(crate) fn password(instance: InstanceId, account: AccountId) -> Self {
        Self::of_instance("password", "account.password", instance, Object(*account.as_uuid(), None))
    }

    /// A passcode seed, under the instance key.
    pub(crate) fn seed(instance: InstanceId, account: AccountId, seed: SeedId) -> Self {
        Self::of_instance("seed", "account.seed", instance, Object(*account.as_uuid(), Some(*seed.as_uuid())))
    }

    fn of_instance(kind: &'static str, column: &'static str, instance: InstanceId, object: Object) -> Self {
        Self { kind, instance: Some(instance), organization: None, object, column, version: 0, wrapped: None }
    }

    /// Which column it is, for errors.
    pub fn column(&self) -> &'static str {
        self.column
    }

    /// Which row it is, for errors.
    pub fn object(&self) -> String {
        self.object.0.hyphenated().to_string()
    }

    /// The associated data of a blob of `format` sealed by `key`: the number of parts, then each part with its
    /// length before it. A part that does not apply is empty.
    pub fn to_associated_data(&self, format: Format, key: KeyId) -> Vec<u8> {
        let mut object = [0; 32];
        let parts: [&[u8]; 9] = [
            &format.to_bytes(),
            self.kind.as_bytes(),
            self.instance.as_ref().map_or(&[], |id| id.as_bytes()),
            self.organization.as_ref().map_or(&[], |id| id.as_bytes()),
            self.object.write(&mut object),
            self.column.as_bytes(),
            &self.version.to_be_bytes(),
            key.as_bytes(),
            self.wrapped.as_ref().map_or(&[], |id| id.as_bytes()),
        ];
        // A wrap has one part more than a seal.
        let parts = if self.wrapped.is_some() { &parts[..] } else { &parts[..8] };
        // More than any of ours has, so that it is set aside once.
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
