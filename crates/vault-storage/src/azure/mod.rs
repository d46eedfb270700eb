//! Azure Storage with an application's identity or federation, an account key or a shared access signature.

mod access;
mod blobs;
mod delegation;
mod reason;
mod token;

use self::access::Access;
use self::blobs::{Blobs, Place};
use crate::Places;
use crate::federation::Signing;
use crate::guard::GuardedClient;
use crate::probe::{Objects, Trial, examine, refused};
use object_store::azure::{AzureAccessKey, AzureCredential};
use secrecy::SecretString;
use url::Url;
use vault_core::activation::{AzureShort, ShortData};
use vault_core::check::{Check, CheckReason};
use vault_core::credential::{AzureFederated, AzureIdentity, SecretText};
use vault_core::federation::FederationSubject;
use vault_core::port::{ShortLived, VendOrder};
use vault_core::time::Timestamp;

/// Returns the address of the account's blob service, without trailing slash, query and fragment.
fn address_of(data: &AzureIdentity) -> Option<String> {
    let mut url = Url::parse(&data.connection_string.blob_endpoint()?).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Checks the application, and the key or signature in the connection string.
pub(crate) async fn check(client: &GuardedClient, places: &Places, data: &AzureIdentity, trial: &Trial) -> Vec<Check> {
    let place = place_of(data);
    let outcome = async {
        let address = address_of(data).ok_or(CheckReason::Unexpected)?;
        let mut tried = None;
        if let Some(application) = data.application() {
            let token = token::ask(client, places, &application.into(), data.connection_string.cloud()).await?;
            // Used only for this check.
            let access = Access::Signed(AzureCredential::BearerToken(token.expose().to_owned()));
            let blobs = Blobs { client, access, address: address.clone(), place, now: trial.now };
            let listing = blobs.list().await;
            known(&listing)?;
            tried = Some((blobs, listing));
        }
        if let Some(access) = stated_access(data)? {
            let blobs = Blobs { client, access, address, place, now: trial.now };
            let listing = blobs.list().await;
            known(&listing)?;
            tried.get_or_insert((blobs, listing));
        }
        tried.ok_or(CheckReason::NothingToTry)
    };
    match outcome.await {
        Ok((blobs, listing)) => examine(&blobs, listing, trial).await,
        Err(reason) => refused(reason, &trial.operations),
    }
}

/// Checks a signature that was issued for `data`.
pub(crate) async fn check_short(
    client: &GuardedClient,
    data: &AzureIdentity,
    short: AzureShort,
    trial: &Trial,
) -> Vec<Check> {
    check_signature(client, place_of(data), short, trial).await
}

/// Checks a signature that was issued for a keyless credential.
pub(crate) async fn check_keyless(
    client: &GuardedClient,
    data: &AzureFederated,
    short: AzureShort,
    trial: &Trial,
) -> Vec<Check> {
    let place = Place {
        account: &data.account_name,
        container: Some(&data.container),
        prefix: data.key_prefix.as_deref().unwrap_or_default(),
        has_account_key: false,
    };
    check_signature(client, place, short, trial).await
}

async fn check_signature(client: &GuardedClient, place: Place<'_>, short: AzureShort, trial: &Trial) -> Vec<Check> {
    let access = Access::Signature(short.sas_token);
    let blobs = Blobs { client, access, address: short.endpoint, place, now: trial.now };
    let listing = blobs.list().await;
    examine(&blobs, listing, trial).await
}

fn place_of(data: &AzureIdentity) -> Place<'_> {
    Place {
        account: data.connection_string.account_name().unwrap_or_default(),
        container: data.container.as_deref(),
        prefix: data.key_prefix.as_deref().unwrap_or_default(),
        has_account_key: data.connection_string.has_account_key(),
    }
}

/// Treats a listing without permission as successful authentication.
fn known<T>(listing: &Result<T, CheckReason>) -> Result<(), CheckReason> {
    match listing {
        Ok(_) | Err(CheckReason::Denied) => Ok(()),
        Err(reason) => Err(*reason),
    }
}

/// Returns the account key or signature in the connection string, if there is one.
fn stated_access(data: &AzureIdentity) -> Result<Option<Access>, CheckReason> {
    // The key signs requests, and the signature is sent. A job's tools may use either.
    if let Some(key) = data.connection_string.account_key() {
        let key = AzureAccessKey::try_new(key).map_err(|_| CheckReason::SignatureMismatch)?;
        return Ok(Some(Access::Signed(AzureCredential::AccessKey(key))));
    }
    Ok(data.connection_string.shared_access_signature().map(|signature| Access::Signature(signature.into())))
}

/// Issues a signature for the container.
pub(crate) async fn vend(
    client: &GuardedClient,
    places: &Places,
    data: &AzureIdentity,
    order: &VendOrder,
) -> Result<ShortLived, CheckReason> {
    let application = data.application().ok_or(CheckReason::NoApplication)?;
    let container = data.container.clone().ok_or(CheckReason::NoContainer)?;
    let endpoint = address_of(data).ok_or(CheckReason::Unexpected)?;
    let account = data.connection_string.account_name().ok_or(CheckReason::NoAccount)?.to_owned();
    let token = token::ask(client, places, &application.into(), data.connection_string.cloud()).await?;
    let scope = delegation::Scope { account: &account, container: &container, endpoint: &endpoint };
    let signature = delegation::sign(client, &scope, &token, order).await?;
    let data = AzureShort {
        endpoint,
        account_name: account,
        container,
        key_prefix: data.key_prefix.clone(),
        sas_token: signature,
    };
    Ok(ShortLived { data: ShortData::AzureIdentity(data), expires_at: order.expires_at.floor_to_second() })
}

/// Issues a signature for the container of a keyless credential.
pub(crate) async fn vend_keyless(
    client: &GuardedClient,
    places: &Places,
    data: &AzureFederated,
    signing: &Signing<'_>,
    order: &VendOrder,
) -> Result<ShortLived, CheckReason> {
    let (_, audience) = data.recipient().ok_or(CheckReason::UnknownCloud)?;
    let endpoint = match &places.azure_blobs {
        Some(blobs) => format!("{blobs}/{}", data.account_name),
        None => data.endpoint().ok_or(CheckReason::UnknownCloud)?,
    };
    let assertion = signing.token(order.subject(), audience, order.now).await?;
    let token = exchange(client, places, data, &assertion).await?;
    let (account, container) = (&data.account_name, &data.container);
    let scope = delegation::Scope { account, container, endpoint: &endpoint };
    let signature = delegation::sign(client, &scope, &token, order).await?;
    let data = AzureShort {
        endpoint,
        account_name: account.clone(),
        container: container.clone(),
        key_prefix: data.key_prefix.clone(),
        sas_token: signature,
    };
    Ok(ShortLived { data: ShortData::AzureIdentity(data), expires_at: order.expires_at.floor_to_second() })
}

/// Requests a token of the application of a keyless credential for the subject of another organization.
pub(crate) async fn exchange_for_trust_check(
    client: &GuardedClient,
    places: &Places,
    data: &AzureFederated,
    signing: &Signing<'_>,
    subject: &FederationSubject,
    now: Timestamp,
) -> Result<(), CheckReason> {
    let (_, audience) = data.recipient().ok_or(CheckReason::UnknownCloud)?;
    let assertion = signing.token(*subject, audience, now).await?;
    exchange(client, places, data, &assertion).await.map(drop)
}

/// Exchanges a federation token for a token of the application.
async fn exchange(
    client: &GuardedClient,
    places: &Places,
    data: &AzureFederated,
    assertion: &SecretString,
) -> Result<SecretText, CheckReason> {
    let proof = token::Proof::Assertion(assertion);
    let applicant = token::Applicant { tenant_id: &data.tenant_id, client_id: &data.client_id, proof };
    token::ask(client, places, &applicant, data.cloud()).await
}
