//! S3-compatible storage.

mod objects;
mod place;
mod policy;
mod reason;
mod session;
mod web_identity;

use self::objects::Bucket;
use self::place::address_of;
use crate::federation::Signing;
use crate::guard::GuardedClient;
use crate::probe::{Objects, Trial, each_bucket, examine, refused};
use crate::text::is_sendable;
use object_store::aws::AwsCredential;
use vault_core::activation::{S3Short, ShortData};
use vault_core::check::{Check, CheckKind, CheckReason};
use vault_core::credential::{Addressing, S3, S3Federated, S3Location};
use vault_core::federation::FederationSubject;
use vault_core::port::{ShortLived, VendOrder};
use vault_core::time::Timestamp;

fn saved_keys(data: &S3) -> AwsCredential {
    // Used for signing. The signer's type stores plain text, which the allocator overwrites when it is freed.
    AwsCredential {
        key_id: data.access_key_id.expose().to_owned(),
        secret_key: data.secret_access_key.expose().to_owned(),
        token: data.session_token.as_ref().map(|token| token.expose().to_owned()),
    }
}

/// Returns whether a request can be signed with these values.
fn signable(key_id: &str, token: Option<&str>, region: &str) -> Result<(), CheckReason> {
    match () {
        () if !is_sendable(key_id) || !token.is_none_or(is_sendable) => Err(CheckReason::UnknownKey),
        () if !is_sendable(region) => Err(CheckReason::WrongRegion),
        () => Ok(()),
    }
}

/// Checks the saved keys, which raw credentials contain. Does not assume a saved role.
pub(crate) async fn check(client: &GuardedClient, data: &S3, trial: &Trial) -> Vec<Check> {
    check_keys(client, data.location(), saved_keys(data), trial).await
}

/// Checks the session keys that were issued for `location`.
pub(crate) async fn check_short(
    client: &GuardedClient,
    location: S3Location<'_>,
    short: &S3Short,
    trial: &Trial,
) -> Vec<Check> {
    // Used for signing, like the saved keys.
    let keys = AwsCredential {
        key_id: short.access_key_id.expose().to_owned(),
        secret_key: short.secret_access_key.expose().to_owned(),
        token: Some(short.session_token.expose().to_owned()),
    };
    check_keys(client, location, keys, trial).await
}

async fn check_keys(
    client: &GuardedClient,
    location: S3Location<'_>,
    keys: AwsCredential,
    trial: &Trial,
) -> Vec<Check> {
    each_bucket(location.bucket, |bucket| check_bucket(client, location, bucket, &keys, trial)).await
}

async fn check_bucket(
    client: &GuardedClient,
    location: S3Location<'_>,
    name: &str,
    keys: &AwsCredential,
    trial: &Trial,
) -> Vec<Check> {
    if location.is_directory(name) {
        let kinds = trial.operations.iter().map(|operation| CheckKind::Operation(*operation));
        let kinds = std::iter::once(CheckKind::Authenticate).chain(kinds);
        return kinds.map(|kind| Check::skipped(kind, CheckReason::DirectoryBucket)).collect();
    }
    let style = location.addressing();
    let Some(address) = address_of(&location, name, style) else {
        return refused(CheckReason::Unexpected, &trial.operations);
    };
    let bucket = Bucket::new(client, keys, address, location, trial.now);
    let listing = bucket.list().await;
    if style == Addressing::Host && location.endpoint.is_some() && is_of_the_host(&listing) {
        let by_path = address_of(&location, name, Addressing::Path).map(|address| bucket.at(address));
        if let Some(by_path) = by_path
            && matches!(by_path.list().await, Ok(_) | Err(CheckReason::Denied))
        {
            return refused(CheckReason::PathStyleNeeded, &trial.operations);
        }
    }
    examine(&bucket, listing, trial).await
}

/// Returns whether a provider without virtual-hosted buckets may fail like this.
const fn is_of_the_host<T>(listing: &Result<T, CheckReason>) -> bool {
    matches!(
        listing,
        Err(CheckReason::Dns
            | CheckReason::Tls
            | CheckReason::BucketMissing
            | CheckReason::Unreachable
            | CheckReason::Unexpected)
    )
}

/// Issues session keys that are limited to bucket and prefix. Uses the saved role, or none if the provider does not
/// need one.
pub(crate) async fn vend(
    client: &GuardedClient,
    data: &S3,
    order: &VendOrder,
    with_tags: bool,
) -> Result<ShortLived, CheckReason> {
    let location = data.location();
    if location.role_arn.is_none() && location.sts_endpoint.is_none() && location.is_amazon() {
        return Err(CheckReason::NoRole);
    }
    let tags = if with_tags { session::tags(order) } else { Vec::new() };
    let session = session::assume_role(client, data, &session::Parameters::of(&location, order)?, &tags).await?;
    Ok(issued(&location, session))
}

/// Issues session keys of the role of a keyless credential, limited to bucket and prefix.
pub(crate) async fn vend_keyless(
    client: &GuardedClient,
    data: &S3Federated,
    signing: &Signing<'_>,
    order: &VendOrder,
) -> Result<ShortLived, CheckReason> {
    let location = data.location();
    let (address, audience) = data.recipient().ok_or(CheckReason::Unexpected)?;
    let token = signing.token(order.subject(), audience, order.now).await?;
    let parameters = session::Parameters::of(&location, order)?;
    let session = web_identity::assume_role(client, &data.role_arn, &address, &parameters, &token).await?;
    Ok(issued(&location, session))
}

/// Requests a session of the role of a keyless credential for the subject of another organization.
pub(crate) async fn exchange_for_trust_check(
    client: &GuardedClient,
    data: &S3Federated,
    signing: &Signing<'_>,
    subject: &FederationSubject,
    now: Timestamp,
) -> Result<(), CheckReason> {
    let (address, audience) = data.recipient().ok_or(CheckReason::Unexpected)?;
    let token = signing.token(*subject, audience, now).await?;
    let parameters = session::Parameters::of_trust_check(&data.location())?;
    web_identity::assume_role(client, &data.role_arn, &address, &parameters, &token).await.map(drop)
}

fn issued(location: &S3Location<'_>, session: session::Session) -> ShortLived {
    let data = S3Short {
        access_key_id: session.access_key_id,
        secret_access_key: session.secret_access_key,
        session_token: session.session_token,
        bucket: location.bucket.clone(),
        region: location.region.map(str::to_owned),
        endpoint: location.endpoint.map(str::to_owned),
        key_prefix: location.key_prefix.map(str::to_owned),
        path_style_access: location.path_style_access,
        sse_kms_key_id: location.sse_kms_key_id.map(str::to_owned),
    };
    ShortLived { data: ShortData::S3(data), expires_at: session.expires_at }
}
