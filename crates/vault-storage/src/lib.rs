//! Storage providers: checks of credentials ([`StorageProbe`](vault_core::port::StorageProbe)), and short-lived
//! credentials ([`CredentialVendor`](vault_core::port::CredentialVendor)). [`Storage`] implements both.
//!
//! All requests use a single client, which checks every address against the [`EgressPolicy`], or every name if an outgoing
//! [`Proxy`] resolves it ([`Egress`]). This is necessary because users choose endpoints, key files, connection strings
//! and links when they save credentials. The process's environment is ignored: variables (also those that name proxies),
//! profile files and metadata services.
//!
//! ```
//! use vault_storage::EgressPolicy;
//!
//! let policy = EgressPolicy::default();
//! assert!(policy.permits([1, 1, 1, 1].into()));
//! assert!(!policy.permits([169, 254, 169, 254].into()), "a cloud's metadata");
//! assert!(!policy.permits([10, 0, 0, 7].into()), "a network of one's own, until it is allowed");
//!
//! let ours = EgressPolicy::allowing(vec!["10.0.0.0/24".parse()?]);
//! assert!(ours.permits([10, 0, 0, 7].into()));
//! # Ok::<(), ipnet::AddrParseError>(())
//! ```
//!
//! Pass a [`Storage`] to `vault_core::usecase::Activations::vendor` and `probe`: see `docs/EMBEDDING.md` in the
//! repository.
//!
//! # Implementation of each protocol
//!
//! | Operation | Implementation |
//! |---|---|
//! | `s3`: keys of a role's session | documented protocol, signed with `AwsAuthorizer` of `object_store` |
//! | `s3-federated`: keys of a role's session | documented protocol, not signed |
//! | `s3`: list, read, write | signed with `AwsAuthorizer` of `object_store` |
//! | `azure_identity`: application token, delegation key, container signature | documented protocol; published crates contain their own HTTP client, and none can sign for a container without an account key |
//! | `azure-federated`: application token | documented protocol, with a federation token instead of a secret |
//! | `azure_identity`: list, read, write | authorized with `AzureAuthorizer` of `object_store` |
//! | `gcs`: access token, downscoped token | documented protocol, RS256 with `ring`; Google's crates contain their own HTTP client |
//! | `gcs-federated`: access token | documented protocols: token exchange and impersonation |
//! | `gcs`: list, read, write | JSON API, which accepts the token directly and reports permissions without using them |
//! | `direct-link` | one `GET` with a range |
//!
//! The operations of `object_store` are not used, because they rewrite object names and hide the provider's error code.
//!
//! # Servers in tests
//!
//! | Protocol | Server |
//! |---|---|
//! | `s3` checks, `AssumeRole` and its keys | moto, with signature and permission checks; it does not evaluate session policies |
//! | `s3`: clock skew, wrong region, expired tokens, lifetimes | a server with documented responses |
//! | `azure_identity` checks; delegation key, container signature and its use | Azurite over TLS |
//! | `azure_identity`: responses of the directory | a server with documented responses |
//! | `gcs`: list, read, write | gcp-storage-emulator, which does not require a token |
//! | `gcs`: tokens, downscoping, rejections | a server with documented responses |
//! | `direct-link` | an HTTPS server of the test |

mod azure;
mod egress;
mod export;
mod federation;
mod gcs;
mod guard;
mod issuer;
mod link;
mod probe;
mod publication;
mod s3;
mod settings;
mod storage;
mod text;
mod webhook;

pub use egress::{Destination, Egress, EgressPolicy, HostPattern, InvalidDestination, InvalidHostPattern};
pub use export::{ExportClient, ExportError};
pub use guard::{InvalidProxyUrl, Proxy, ProxyUrl, Resolve, TrustError};
pub use issuer::IssuerClient;
pub use publication::PublicationClient;
pub use settings::{Deadlines, Places, StorageSettings};
pub use storage::Storage;
pub use webhook::WebhookClient;
