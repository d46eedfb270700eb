//! Azure storage, opened by an application's identity.

mod blobs;
mod delegation;
mod reason;
mod token;

use self::blobs::{Blobs, Opener};
use self::token::AccessToken;
use crate::Places;
use crate::guard::{GuardedClient, vend_reason};
use crate::probe::{Objects, Trial, examine, refused};
use object_store::azure::{AzureAccessKey, AzureCredential};
use url::Url;
use vault_core::activation::{AzureShort, AzureShortSecret, ShortData, VendReason};
use vault_core::check::{Check, CheckReason};
use vault_core::credential::AzureIdentity;
use vault_core::port::{ShortLived, VendOrder};

/// The address of the account's blobs, without a last slash, query or fragment.
fn address_of(data: &AzureIdentity) -> Option<String> {
    let mut url = Url::parse(&data.connection_string.blob_endpoint()?).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Tries the identity out, and whatever else the connection string opens the account with.
pub(crate) async fn check(client: &GuardedClient, places: &Places, data: &AzureIdentity, trial: &Trial) -> Vec<Check> {
    let outcome = async {
        let address = address_of(data).ok_or(CheckReason::UnexpectedAnswer)?;
        let token = token::ask(client, places, data, &address).await?;
        // To try what it opens.
        let opener = Opener::Signed(AzureCredential::BearerToken(token.text.expose().to_owned()));
        let blobs = Blobs { client, opener, address: address.clone(), data, now: trial.now };
        let listing = blobs.list().await;
        known(&listing)?;
        if let Some(opener) = stated_opener(data)? {
            known(&Blobs { client, opener, address, data, now: trial.now }.list().await)?;
        }
        Ok((blobs, listing))
    };
    match outcome.await {
        Ok((blobs, listing)) => examine(&blobs, listing, trial).await,
        Err(reason) => refused(reason, &trial.operations),
    }
}

/// Who is refused one thing is known.
fn known<T>(listing: &Result<T, CheckReason>) -> Result<(), CheckReason> {
    match listing {
        Ok(_) | Err(CheckReason::Denied) => Ok(()),
        Err(reason) => Err(*reason),
    }
}

/// What the connection string itself opens the account with, if it does.
fn stated_opener(data: &AzureIdentity) -> Result<Option<Opener>, CheckReason> {
    // To sign with, and to send: a job's tools may use either.
    if let Some(key) = data.connection_string.account_key() {
        let key = AzureAccessKey::try_new(key).map_err(|_| CheckReason::SignatureMismatch)?;
        return Ok(Some(Opener::Signed(AzureCredential::AccessKey(key))));
    }
    Ok(data.connection_string.shared_access_signature().map(|signature| Opener::Signature(signature.into())))
}

/// A signature for the container, or, where none is named, the token of the application.
pub(crate) async fn vend(
    client: &GuardedClient,
    places: &Places,
    data: &AzureIdentity,
    order: &VendOrder,
) -> Result<ShortLived, VendReason> {
    let endpoint = address_of(data).ok_or(VendReason::Unexpected)?;
    let token = token::ask(client, places, data, &endpoint).await.map_err(vend_reason)?;
    let account = data.connection_string.account_name();
    let (secret, expires_at) = match (account, data.container.as_deref()) {
        (Some(account), Some(container)) => {
            let scope = delegation::Scope { account, container, endpoint: &endpoint };
            let signature = delegation::sign(client, &scope, &token, order).await?;
            (AzureShortSecret::SasToken(signature), order.expires_at.floor_to_second())
        }
        _ => {
            let AccessToken { text, seconds } = token;
            (AzureShortSecret::AccessToken(text), order.now.floor_to_second().plus_seconds(seconds))
        }
    };
    let data = AzureShort {
        endpoint,
        account_name: account.map(str::to_owned),
        container: data.container.clone(),
        key_prefix: data.key_prefix.clone(),
        secret,
    };
    Ok(ShortLived { data: ShortData::AzureIdentity(data), expires_at })
}
