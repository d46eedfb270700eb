//! S3-compatible storage.

mod objects;
mod place;
mod policy;
mod reason;
mod session;

use self::objects::Bucket;
use self::place::{address_of, is_amazon};
use crate::guard::GuardedClient;
use crate::probe::{Objects, Trial, each_bucket, examine, refused};
use crate::text::is_sendable;
use object_store::aws::AwsCredential;
use vault_core::activation::{S3Short, ShortData};
use vault_core::check::{Check, CheckReason};
use vault_core::credential::{Addressing, S3};
use vault_core::port::{ShortLived, VendOrder};

/// Returns the saved keys.
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
    check_keys(client, data, saved_keys(data), trial).await
}

/// Checks the session keys that were issued for `data`.
pub(crate) async fn check_short(client: &GuardedClient, data: &S3, short: &S3Short, trial: &Trial) -> Vec<Check> {
    // Used for signing, like the saved keys.
    let keys = AwsCredential {
        key_id: short.access_key_id.expose().to_owned(),
        secret_key: short.secret_access_key.expose().to_owned(),
        token: Some(short.session_token.expose().to_owned()),
    };
    check_keys(client, data, keys, trial).await
}

async fn check_keys(client: &GuardedClient, data: &S3, keys: AwsCredential, trial: &Trial) -> Vec<Check> {
    each_bucket(&data.bucket, |bucket| check_bucket(client, data, bucket, &keys, trial)).await
}

async fn check_bucket(
    client: &GuardedClient,
    data: &S3,
    name: &str,
    keys: &AwsCredential,
    trial: &Trial,
) -> Vec<Check> {
    let style = data.addressing();
    let Some(address) = address_of(data, name, style) else {
        return refused(CheckReason::Unexpected, &trial.operations);
    };
    let bucket = Bucket::new(client, keys, address, data, trial.now);
    let listing = bucket.list().await;
    if style == Addressing::Host && data.endpoint.is_some() && is_of_the_host(&listing) {
        let by_path = address_of(data, name, Addressing::Path).map(|address| bucket.at(address));
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
    let role = data.role_arn.as_deref();
    if role.is_none() && data.sts_endpoint.is_none() && is_amazon(data) {
        return Err(CheckReason::NoRole);
    }
    let name = format!("orgvault-{}", order.activation);
    let policy = policy::narrowed_to(data, role)?;
    let seconds = session::seconds_until(order);
    let tags = if with_tags { session::tags(order) } else { Vec::new() };
    let wanted = session::Wanted { role, name: &name, seconds, policy: Some(policy), tags };
    let session = session::take_on(client, data, wanted).await?;
    let data = S3Short {
        access_key_id: session.access_key_id,
        secret_access_key: session.secret_access_key,
        session_token: session.session_token,
        bucket: data.bucket.clone(),
        region: data.region.clone(),
        endpoint: data.endpoint.clone(),
        key_prefix: data.key_prefix.clone(),
        path_style_access: data.path_style_access,
        sse_kms_key_id: data.sse_kms_key_id.clone(),
    };
    Ok(ShortLived { data: ShortData::S3(data), expires_at: session.expires_at })
}
