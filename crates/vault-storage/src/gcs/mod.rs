//! Google Cloud Storage with the key of a service account.

mod assertion;
mod boundary;
mod objects;
mod token;

use self::objects::Bucket;
use crate::Places;
use crate::guard::GuardedClient;
use crate::probe::{Objects, Trial, each_bucket, examine, refused};
use vault_core::activation::{GcsShort, ShortData};
use vault_core::check::{Check, CheckReason};
use vault_core::credential::{Gcs, SecretText};
use vault_core::port::{ShortLived, VendOrder};

/// Checks a saved credential.
pub(crate) async fn check(client: &GuardedClient, places: &Places, data: &Gcs, trial: &Trial) -> Vec<Check> {
    let token = match token::ask(client, &data.service_account_key, trial.now).await {
        Ok(token) => token.text,
        Err(reason) => return refused(reason, &trial.operations),
    };
    check_token(client, places, data, token, trial).await
}

/// Checks a token that was issued for `data`.
pub(crate) async fn check_short(
    client: &GuardedClient,
    places: &Places,
    data: &Gcs,
    short: GcsShort,
    trial: &Trial,
) -> Vec<Check> {
    check_token(client, places, data, short.access_token, trial).await
}

async fn check_token(
    client: &GuardedClient,
    places: &Places,
    data: &Gcs,
    token: SecretText,
    trial: &Trial,
) -> Vec<Check> {
    let address = &places.google_storage(data.service_account_key.universe_domain());
    each_bucket(&data.bucket, |name| {
        let bucket = Bucket { client, token: &token, address, name, data };
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
    let narrow = token::narrow(client, places, data, &wide).await?;
    let expires_at = order.now.floor_to_second().plus_seconds(narrow.seconds);
    let data = GcsShort {
        access_token: narrow.text,
        bucket: data.bucket.clone(),
        key_prefix: data.key_prefix.clone(),
        universe_domain: data.universe_domain(),
    };
    Ok(ShortLived { data: ShortData::Gcs(data), expires_at })
}
