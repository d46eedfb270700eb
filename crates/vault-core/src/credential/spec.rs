//! What a type's table says of a field.

/// Checks that an operator can relax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataPolicy {
    /// Whether a direct link may be `http`.
    pub allow_http_links: bool,
}

/// What of a field may be seen once it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldClass {
    /// Nothing but that it is set.
    Secret,
    /// Its last characters, at most four.
    Id,
    /// All of it: it says where, not how.
    Location,
}

/// What a field's value is, which decides what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Any secret text.
    Secret,
    /// An access key's id: printable ASCII without white space, at most 255 characters.
    AccessKeyId,
    /// A bucket (letters, digits and `. _ : -`, at most 255 characters), or a list of 1 to 100 buckets.
    Bucket,
    /// A container of Azure storage: as a bucket, and may begin with `$`.
    Container,
    /// A region: letters, digits and `. _ -`, at most 64 characters.
    Region,
    /// The address of a store: `http` or `https`, with neither user, query nor fragment.
    Endpoint,
    /// The beginning of object names, at most 1,024 bytes.
    KeyPrefix,
    /// An Amazon resource name.
    RoleArn,
    /// A key of AWS KMS: an ARN, an id or an alias, at most 2,048 characters.
    KmsKeyId,
    /// A GUID or a domain name, at most 255 characters.
    Tenant,
    /// A GUID or another token of letters, digits and `. _ -`, at most 255 characters.
    ClientId,
    /// A JSON boolean.
    Flag,
    /// A connection string of Azure storage.
    ConnectionString,
    /// A service account's key file: a JSON object, or the same as a JSON string.
    KeyFile,
    /// The address behind a direct link.
    Link,
    /// An object of header fields.
    Headers,
}

/// One row of a type's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// The member's name.
    pub name: &'static str,
    /// What of it may be seen.
    pub class: FieldClass,
    /// Whether it is required.
    pub required: bool,
    /// What its value is.
    pub kind: ValueKind,
}
