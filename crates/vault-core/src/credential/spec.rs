//! Descriptions of the fields of a credential type.

/// Visibility of a field after it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldClass {
    /// Only whether it is set.
    Secret,
    /// Its last characters, at most four.
    Id,
    /// The whole value: it is a location, not a secret.
    Location,
}

/// Kind of a field's value, which determines the accepted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Any secret text.
    Secret,
    /// ID of an access key: printable ASCII without white space, at most 255 characters.
    AccessKeyId,
    /// A bucket (letters, digits and `. _ : -`, at most 255 characters), or a list of 1 to 100 buckets.
    Bucket,
    /// Container of Azure storage: like a bucket, and may start with `$`.
    Container,
    /// A region: letters, digits and `. _ -`, at most 64 characters.
    Region,
    /// Address of a storage: `http` or `https`, without user, query and fragment.
    Endpoint,
    /// Prefix of object names, at most 1,024 bytes.
    KeyPrefix,
    /// An Amazon resource name.
    RoleArn,
    /// Key of AWS KMS: an ARN, an ID or an alias, at most 2,048 characters.
    KmsKeyId,
    /// A GUID or a domain name, at most 255 characters.
    Tenant,
    /// A GUID or another token of letters, digits and `. _ -`, at most 255 characters.
    ClientId,
    /// Name of an Azure storage account: 3 to 24 lower-case letters and digits.
    AccountName,
    /// A cloud of Azure: `public`, `china` or `us-government`.
    AzureCloud,
    /// Resource name of a workload identity provider of Google Cloud.
    WorkloadProvider,
    /// E-mail address of a service account of Google Cloud.
    ServiceAccount,
    /// A JSON boolean.
    Flag,
    /// A connection string of Azure storage.
    ConnectionString,
    /// A service account's key file: a JSON object, or the same as a JSON string.
    KeyFile,
    /// URL of a direct link.
    Link,
    /// An object of header fields.
    Headers,
}

/// Description of one field of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// Name of the member.
    pub name: &'static str,
    /// Visibility after the save.
    pub class: FieldClass,
    /// Whether it is required.
    pub required: bool,
    /// Kind of its value.
    pub kind: ValueKind,
}
