//! The stores that credentials open: whether a credential works there
//! ([`StorageProbe`](vault_core::port::StorageProbe)), and short-lived credentials in the place of lasting ones
//! ([`CredentialVendor`](vault_core::port::CredentialVendor)). [`Storage`] is both.
//!
//! Everything goes out through one client of our own, which judges every address by the [`EgressPolicy`]: endpoints,
//! key files, connection strings and links come from whoever may save a credential. Nothing of the process's
//! environment is consulted: no variables, no profile files, no metadata service, no proxy.
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
//! `vault_core::usecase::Activations::vendor` and `probe` take a [`Storage`]: see `docs/EMBEDDING.md` of the repository.
//!
//! # What is done by which crate
//!
//! | Exchange | By |
//! |---|---|
//! | `s3`: keys of a role's session | the documented form here, signed by `object_store`'s `AwsAuthorizer` |
//! | `s3`: list, read, write | signed by `object_store`'s `AwsAuthorizer` |
//! | AWS KMS, for a root key ([`KmsKey`]): `Encrypt`, `Decrypt` | the documented exchanges here, signed by `object_store`'s `AwsAuthorizer` |
//! | `azure_identity`: token of the application, delegation key, container signature | documented exchanges here; the published crates bring an HTTP client of their own, and none of them signs for a container without an account key |
//! | `azure_identity`: list, read, write | authorized by `object_store`'s `AzureAuthorizer` |
//! | `gcs`: access token, down-scoped token | documented exchanges here, RS256 by `ring`; Google's crates bring an HTTP client of their own |
//! | `gcs`: list, read, write | the JSON interface, which takes the token as it is and tells rights without using them |
//! | `direct-link` | one ranged `GET` |
//!
//! `object_store`'s own operations are not used: they rewrite names of objects and hide the store's error code.
//!
//! # What each path was tried against
//!
//! | Path | Server |
//! |---|---|
//! | `s3` checks, `AssumeRole`, the keys it gave | moto, with its judgement of signatures and rights on; of a session's policy it judges nothing |
//! | AWS KMS | moto, with its judgement of signatures and rights on; a server with the documented answers for what it cannot be made to say |
//! | `s3`: clock skew, wrong region, expired tokens, lifetimes | a server with the documented answers |
//! | `azure_identity` checks; delegation key, container signature and what they open | Azurite over TLS |
//! | `azure_identity`: the directory's answers | a server with the documented answers |
//! | `gcs` list, read, write | gcp-storage-emulator, which asks nobody for a token |
//! | `gcs`: tokens, down-scoping, refusals | a server with the documented answers |
//! | `direct-link` | an HTTPS server of the test |

mod azure;
mod egress;
mod gcs;
mod guard;
mod issuer;
mod kms;
mod link;
mod probe;
mod s3;
mod settings;
mod storage;
mod text;
mod webhook;

pub use egress::EgressPolicy;
pub use guard::{Resolve, TrustError};
pub use issuer::IssuerClient;
pub use kms::{InvalidKmsUri, KmsError, KmsKey, KmsUri, ReadCredentials};
pub use settings::{Deadlines, Places, StorageSettings};
pub use storage::Storage;
pub use webhook::WebhookClient;
