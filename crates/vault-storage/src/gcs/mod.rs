//! Google Cloud Storage with the key of a service account, or with workload identity federation.

mod assertion;
mod boundary;
mod federated;
mod objects;
mod token;

use self::objects::Bucket;
use crate::Places;
use crate::federation::Signing;
use crate::guard::GuardedClient;
use crate::probe::{Objects, Trial, each_bucket, examine, refused};
use std::borrow::Cow;
use vault_core::activation::{GcsShort, ShortData};
use vault_core::check::{Check, CheckReason};
use vault_core::credential::{Buckets, Gcs, GcsFederated, KeyFile, SecretText};
use vault_core::federation::FederationSubject;
use vault_core::port::{ShortLived, VendOrder};
use vault_core::time::Timestamp;

/// Checks a saved credential.
pub(crate) async fn check(client: &GuardedClient, places: &Places, data: &Gcs, trial: &Trial) -> Vec<Check> {
    let token = match token::ask(client, &data.service_account_key, trial.now).await {
        Ok(token) => token.text,
        Err(reason) => return refused(reason, &trial.operations),
    };
    check_token(client, &place_of(places, data), token, trial).await
}

/// Checks a token that was issued for `data`.
pub(crate) async fn check_short(
    client: &GuardedClient,
    places: &Places,
    data: &Gcs,
    short: GcsShort,
    trial: &Trial,
) -> Vec<Check> {
    check_token(client, &place_of(places, data), short.access_token, trial).await
}

/// Checks a token that was issued for a keyless credential.
pub(crate) async fn check_keyless(
    client: &GuardedClient,
    places: &Places,
    data: &GcsFederated,
    short: GcsShort,
    trial: &Trial,
) -> Vec<Check> {
    let prefix = data.key_prefix.as_deref().unwrap_or_default();
    let place = Place { address: places.google_storage(KeyFile::GOOGLE), buckets: &data.bucket, prefix };
    check_token(client, &place, short.access_token, trial).await
}

/// Location of the objects.
struct Place<'a> {
    /// Address of the service, without a trailing slash.
    address: Cow<'a, str>,
    buckets: &'a Buckets,
    prefix: &'a str,
}

fn place_of<'a>(places: &'a Places, data: &'a Gcs) -> Place<'a> {
    let address = places.google_storage(data.service_account_key.universe_domain());
    Place { address, buckets: &data.bucket, prefix: data.key_prefix.as_deref().unwrap_or_default() }
}

async fn check_token(client: &GuardedClient, place: &Place<'_>, token: SecretText, trial: &Trial) -> Vec<Check> {
    each_bucket(place.buckets, |name| {
        let bucket = Bucket { client, token: &token, address: &place.address, name, prefix: place.prefix };
        async move {
            let listing = bucket.list().await;
            examine(&bucket, listing, trial).await
        }
    })
    .await
}

/// Issues an access token that is limited to bucket and prefix.
pub(crate) async fn vend(
    client: &GuardedClient,
    places: &Places,
    data: &Gcs,
    order: &VendOrder,
) -> Result<ShortLived, CheckReason> {
    let wide = token::ask(client, &data.service_account_key, order.now).await?;
    let exchange = places.google_exchange(data.service_account_key.universe_domain());
    let boundary = boundary::of(&data.bucket, data.key_prefix.as_deref());
    let narrow = token::narrow(client, &exchange, &boundary, &wide).await?;
    let expires_at = order.now.floor_to_second().plus_seconds(narrow.seconds);
    let data = GcsShort {
        access_token: narrow.text,
        bucket: data.bucket.clone(),
        key_prefix: data.key_prefix.clone(),
        universe_domain: data.universe_domain(),
    };
    Ok(ShortLived { data: ShortData::Gcs(data), expires_at })
}

/// Issues an access token for a keyless credential, limited to bucket and prefix.
pub(crate) async fn vend_keyless(
    client: &GuardedClient,
    places: &Places,
    data: &GcsFederated,
    signing: &Signing<'_>,
    order: &VendOrder,
) -> Result<ShortLived, CheckReason> {
    let (_, audience) = data.recipient();
    let token = signing.token(order.subject(), audience, order.now).await?;
    let seconds = (order.expires_at.as_seconds() - order.now.as_seconds()).clamp(1, token::LIFETIME);
    let wide = federated::exchange(client, places, data, &token, (order.now, seconds)).await?;
    let boundary = boundary::of(&data.bucket, data.key_prefix.as_deref());
    let narrow = token::narrow(client, &places.google_exchange(KeyFile::GOOGLE), &boundary, &wide).await?;
    let expires_at = order.now.floor_to_second().plus_seconds(narrow.seconds);
    let data = GcsShort {
        access_token: narrow.text,
        bucket: data.bucket.clone(),
        key_prefix: data.key_prefix.clone(),
        universe_domain: None,
    };
    Ok(ShortLived { data: ShortData::Gcs(data), expires_at })
}

/// Requests a token of the service account of a keyless credential for the subject of another organization.
pub(crate) async fn exchange_for_trust_check(
    client: &GuardedClient,
    places: &Places,
    data: &GcsFederated,
    signing: &Signing<'_>,
    subject: &FederationSubject,
    now: Timestamp,
) -> Result<(), CheckReason> {
    let (_, audience) = data.recipient();
    let token = signing.token(*subject, audience, now).await?;
    federated::exchange(client, places, data, &token, (now, token::LIFETIME)).await.map(drop)
}
