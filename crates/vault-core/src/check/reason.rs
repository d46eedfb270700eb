//! Reasons why a check did not pass or no short-lived form is available: a closed set, each with a one-line remedy.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $remedy:literal;)*) => {
        /// Reason why a check failed, warns or was skipped, or why no short-lived credential was issued.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CheckReason {
            $($(#[$doc])* $name,)*
        }

        impl CheckReason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name of the reason.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the remedy, in one line.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)* }
            }
        }
    };
}

reasons! {
    /// The provider does not recognize the key, the application or the account.
    UnknownKey = "unknown-key",
        "The storage provider does not know this key: check that it was not deleted or rotated there, and save the \
         current one.";
    /// The provider recognizes the key, but the secret is wrong.
    SignatureMismatch = "signature-mismatch",
        "The secret does not belong to this key: save both again, exactly as they were issued.";
    /// The clocks of vault and provider differ too much.
    ClockSkew = "clock-skew",
        "This server's clock and the storage provider's differ too much: synchronize this server's clock (NTP).";
    /// The bucket is in another region.
    WrongRegion = "wrong-region",
        "The bucket is in another region: save the credential with the bucket's region.";
    /// Neither region nor endpoint is saved.
    RegionMissing = "region-missing",
        "No region is saved, so tools use a default: save the credential with the bucket's region.";
    /// The bucket must be in the path of the address.
    PathStyleNeeded = "path-style-needed",
        "The endpoint has no host name for the bucket: save the credential with path_style_access true.";
    /// The endpoint's host contains the bucket, so tools would add it a second time.
    EndpointHasBucket = "endpoint-has-bucket",
        "The endpoint contains the bucket, which tools add again: save the endpoint without the bucket.";
    /// The prefix does not end with a slash, so a short-lived form covers more than one folder.
    PrefixOpen = "prefix-open",
        "key_prefix does not end with a slash, so it also covers other names with the same start (in covers in2/a): \
         save it with a final slash, unless this is intended.";
    /// The bucket or container does not exist.
    BucketMissing = "bucket-missing",
        "The bucket or container does not exist: check its name, or create it.";
    /// The object behind the link does not exist.
    ObjectMissing = "object-missing",
        "The link leads to no object: request a new one from its issuer.";
    /// The provider recognizes the credential but denies this operation.
    Denied = "denied",
        "The storage provider denies this: grant the key's owner this operation on this bucket and prefix, and the \
         right to assume the role if one is saved.";
    /// The directory does not have this tenant.
    TenantUnknown = "tenant-unknown",
        "The directory has no such tenant: check tenant_id.";
    /// The directory of the storage account's cloud is unknown.
    UnknownCloud = "unknown-cloud",
        "The storage account's cloud is unknown, so the application's secret was not sent: save \
         connection_string with the EndpointSuffix of a supported cloud, such as core.windows.net, or omit the \
         application.";
    /// The token address of a key file does not belong to the cloud of the key.
    ForeignTokenUri = "foreign-token-uri",
        "token_uri in the key file does not belong to its universe_domain, so nothing was sent: save the key file \
         exactly as it was issued.";
    /// The secret has expired.
    SecretExpired = "secret-expired",
        "The secret has expired: create a new one and save it.";
    /// The session token has expired.
    TokenExpired = "token-expired",
        "The session token has expired: save long-lived keys, with role_arn if a role is needed.";
    /// The link has expired.
    LinkExpired = "link-expired",
        "The link has expired: request a new one from its issuer.";
    /// The credential works now, but expires before the end of the job.
    ExpiresTooSoon = "expires-too-soon",
        "The credential expires before the time in until: renew it, or run the job earlier.";
    /// The credential does not contain its expiry.
    ExpiryUnknown = "expiry-unknown",
        "The credential does not contain its expiry: request it from its issuer.";
    /// The credential has more rights than the job requires.
    ExcessRights = "excess-rights",
        "The credential has more rights than requested: restrict it to this bucket, this prefix and these \
         operations.";
    /// The TLS connection failed.
    Tls = "tls",
        "The TLS connection failed: check the endpoint's certificate and host name.";
    /// The host name cannot be resolved.
    Dns = "dns",
        "The host name cannot be resolved: check the endpoint, and this server's name servers.";
    /// Connections to this address are not allowed.
    BlockedEgress = "blocked-egress",
        "The address is not permitted: an operator can allow its network, or behind an outgoing proxy its name, with \
         --allow-egress.";
    /// The outgoing proxy does not respond.
    ProxyUnreachable = "proxy-unreachable",
        "This server cannot reach its outgoing proxy. The operator must check --egress-proxy.";
    /// The outgoing proxy requires other credentials.
    ProxyCredentials = "proxy-credentials",
        "The outgoing proxy refuses this server's credentials. The operator must check egress-proxy-credentials.";
    /// The outgoing proxy opens no tunnel to this host.
    ProxyRefused = "proxy-refused",
        "The outgoing proxy does not permit this host or port. Its operator must permit them.";
    /// No connection, or no response in time.
    Unreachable = "unreachable",
        "No response in time: check the endpoint, the firewall and this server's name servers.";
    /// The response is a redirect.
    Redirected = "redirected",
        "The address redirects, and redirects are not followed: save the address that it leads to.";
    /// The provider reports an internal failure.
    StoreError = "store-error",
        "The storage provider reports an internal error: retry later.";
    /// The response is not one of a supported provider.
    Unexpected = "unexpected-answer",
        "The response is not from a storage provider of this type: check the endpoint.";
    /// No object is available to test the credential with.
    NothingToTry = "nothing-to-try",
        "No object exists to test this with: add one under the prefix, and check again.";
    /// The type does not support this operation.
    NotForType = "not-for-type",
        "Credentials of this type cannot do this: use another type.";
    /// An earlier check failed, so this one was skipped.
    EarlierFailed = "earlier-failed",
        "Skipped because an earlier check failed: fix that one first.";
    /// No adapter for connections to storage is configured.
    NotConfigured = "not-configured",
        "This server is not configured to connect to storage: contact its operator.";
    /// The type has no short-lived form.
    TypeHasNone = "type-has-none",
        "Credentials of this type have no short-lived form: use vend raw or prefer-short.";
    /// An S3 credential of Amazon's storage without a role to assume has no short-lived form.
    NoRole = "no-role",
        "The credential has no role_arn, and AWS issues short-lived credentials for roles only: save it with role_arn \
         (or with the endpoint or sts_endpoint of another store), or use vend prefer-short.";
    /// An Azure credential without an application, which is required to request a signature.
    NoApplication = "no-application",
        "The credential has no application, so no short-lived credential can be issued: save it with tenant_id, \
         client_id and client_secret, or use vend prefer-short.";
    /// An Azure credential without a container: the short-lived form would give access to the whole storage account.
    NoContainer = "no-container",
        "The credential has no container, so a short-lived credential would have all rights of the application: \
         save it with container, or use vend prefer-short.";
    /// An Azure credential whose connection string does not contain the account name, which a signature requires.
    NoAccount = "no-account",
        "The connection string does not contain the storage account's name, so no short-lived credential can be \
         issued: save it with AccountName, or use vend prefer-short.";
    /// A short-lived form cannot be narrowed to this number of buckets.
    TooManyBuckets = "too-many-buckets",
        "A short-lived credential cannot be limited to this number of buckets: save fewer buckets in one \
         credential, or use vend prefer-short.";
    /// Policy and tags of a session exceed the limit of the provider.
    PolicyTooLarge = "policy-too-large",
        "The session's policy and tags are too large for AWS: save fewer buckets or a shorter key_prefix in one \
         credential. The operator can omit --session-tags, which shortens the request.";
    /// An S3 Express directory bucket, which has another protocol.
    DirectoryBucket = "directory-bucket",
        "The server cannot check S3 Express directory buckets (--x-s3) or limit credentials to them: use vend raw, and \
         test the credential with the tool of the job.";
    /// The provider issues no short-lived credentials for the requested lifetime.
    Lifetime = "lifetime",
        "The storage provider issues no short-lived credential for this lifetime: request a shorter one, or \
         increase the role's maximum session duration.";
    /// The provider does not accept the subject of a keyless credential.
    TrustMissing = "trust-missing",
        "The provider does not accept this credential's subject. Apply the steps that `orgvault credential show ID --trust` \
         prints.";
    /// The provider accepts subjects that belong to no credential.
    TrustOpen = "trust-open",
        "The provider accepts the tokens of any organization. Restrict its trust to the subject that `orgvault \
         credential show ID --trust` prints.";
    /// The provider cannot fetch the public keys of the federation issuer.
    IssuerUnreachable = "issuer-unreachable",
        "The provider cannot read this server's public keys. The operator can run `orgvault federation status`.";
    /// The provider does not accept the issuer or the audience of the token.
    IssuerNotTrusted = "issuer-not-trusted",
        "The provider does not accept this server's issuer or audience. Apply the steps that `orgvault credential \
         show ID --trust` prints.";
    /// The setting for keyless credentials is absent.
    FederationOff = "federation-off",
        "This server has no federation issuer. The operator must set --federation-issuer.";
    /// There is no current signing key.
    FederationNotReady = "federation-not-ready",
        "This server has no current signing key. The operator can run `orgvault federation status`.";
}

impl CheckReason {
    /// Returns whether the outgoing proxy caused the failure.
    pub const fn is_of_proxy(self) -> bool {
        matches!(self, Self::ProxyUnreachable | Self::ProxyCredentials | Self::ProxyRefused)
    }
}

impl fmt::Display for CheckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
