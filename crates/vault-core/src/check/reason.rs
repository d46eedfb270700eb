//! Why a check did not pass: a closed set, each with one line that says what to do.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $remedy:literal;)*) => {
        /// Why a check failed, warns or was skipped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CheckReason {
            $($(#[$doc])* $name,)*
        }

        impl CheckReason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The reason's name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What to do about it, in one line.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)* }
            }
        }
    };
}

reasons! {
    /// The store does not know the key, the application or the account.
    UnknownKey = "unknown-key",
        "The store does not know this key: check that it was not deleted or rotated there, and save the one in use.";
    /// The store knows the key, but the secret is not the right one.
    SignatureMismatch = "signature-mismatch",
        "The secret does not belong to the key: save both anew, exactly as the store issued them.";
    /// The clocks of vault and store differ too much.
    ClockSkew = "clock-skew",
        "The clocks of this machine and the store differ: set this machine's clock by NTP.";
    /// The bucket lies in another region.
    WrongRegion = "wrong-region",
        "The bucket lies in another region: save the credential with the bucket's own region.";
    /// No region is given; one is assumed.
    RegionMissing = "region-missing",
        "No region is saved, so tools assume one: save the credential with the bucket's region.";
    /// The store wants the bucket in the path.
    PathStyleNeeded = "path-style-needed",
        "The store has no host name for the bucket: save the credential with path_style_access true.";
    /// The bucket or container is not there.
    BucketMissing = "bucket-missing",
        "There is no such bucket or container: check its name, or make it.";
    /// The object behind the link is not there.
    ObjectMissing = "object-missing",
        "There is nothing behind the link: ask whoever issued it for another one.";
    /// The store knows the credential and does not allow this.
    Denied = "denied",
        "The store does not allow this: give the key's owner the right, on this bucket and prefix.";
    /// The directory is not known.
    TenantUnknown = "tenant-unknown",
        "There is no such tenant: check tenant_id in the directory's overview.";
    /// The secret has expired.
    SecretExpired = "secret-expired",
        "The secret has expired: make another one at the store and save it.";
    /// The session token has expired.
    TokenExpired = "token-expired",
        "The session token has expired: save lasting keys, with role_arn where the role is needed.";
    /// The link has expired.
    LinkExpired = "link-expired",
        "The link has expired: ask whoever issued it for another one.";
    /// It works now, and ends before the job does.
    EndsTooSoon = "ends-too-soon",
        "It ends before the time asked for: have it renewed with a later end, or run the job earlier.";
    /// When it ends cannot be told.
    EndUnknown = "end-unknown",
        "It does not say when it ends: find out from whoever issued it.";
    /// It opens more than the job needs.
    ExcessRights = "excess-rights",
        "It may do more than was asked for: narrow its rights at the store to this bucket, prefix and these operations.";
    /// The encrypted connection failed.
    Tls = "tls",
        "The encrypted connection failed: check the endpoint's certificate and name.";
    /// The host's name is not known.
    Dns = "dns",
        "The host's name does not resolve: check the endpoint, and this machine's name servers.";
    /// The address is not one that may be connected to.
    BlockedEgress = "blocked-egress",
        "The address is not a public one: have the operator allow it with --allow-egress.";
    /// Not to be reached, or not in time.
    Unreachable = "unreachable",
        "The store did not answer in time: check the endpoint and the firewall.";
    /// The store sends elsewhere.
    Redirected = "redirected",
        "The address leads elsewhere, which is not followed: save the address that it leads to.";
    /// The store has a trouble of its own.
    StoreTrouble = "store-trouble",
        "The store has trouble of its own: try again later.";
    /// The store gave an answer that is none of those expected.
    UnexpectedAnswer = "unexpected-answer",
        "The address answers, but not as such a store does: check the endpoint.";
    /// The credential has nothing that it could be tried on.
    NothingToTry = "nothing-to-try",
        "There was nothing to try this on: put an object under the prefix, and check again.";
    /// The type does not have this operation.
    NotForType = "not-for-type",
        "A credential of this type cannot do this: use one of another type.";
    /// An earlier check failed, so that this one would say nothing.
    EarlierFailed = "earlier-failed",
        "Mend what failed first, and check again.";
    /// Nothing here can reach stores.
    NotConfigured = "not-configured",
        "Checks against stores are not set up on this server: ask its operator.";
}
