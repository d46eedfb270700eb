//! Shared access signatures for a container, signed with a temporary user delegation key.
//!
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/get-user-delegation-key> and
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/create-user-delegation-sas>. A signature applies to the
//! whole container. It can be limited to a prefix only in accounts with a hierarchical namespace.

use super::access::Access;
use super::reason;
use crate::guard::GuardedClient;
use crate::text::{encode_pairs, rfc3339};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use object_store::azure::AzureCredential;
use ring::hmac;
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::credential::SecretText;
use vault_core::port::VendOrder;
use zeroize::Zeroizing;

/// Version of the signature format.
const VERSION: &str = "2022-11-02";
/// Read, add, create, write, delete and list, in the order that Azure requires.
const RIGHTS: &str = "racwdl";
/// Time in seconds by which the key's start precedes now, to allow for clock skew.
const LEAD: i64 = 15 * 60;

/// The scope of a signature.
pub(super) struct Scope<'a> {
    pub(super) account: &'a str,
    pub(super) container: &'a str,
    /// Address of the account's blob service, without a trailing slash.
    pub(super) endpoint: &'a str,
}

/// A user delegation key and its parameters.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DelegationKey {
    signed_oid: String,
    signed_tid: String,
    signed_start: String,
    signed_expiry: String,
    signed_service: String,
    signed_version: String,
    /// In Base64.
    value: String,
}

#[derive(Deserialize)]
enum Given {
    UserDelegationKey(DelegationKey),
}

/// Returns the signature as a URL query. It expires at the end of `order`.
pub(super) async fn sign(
    client: &GuardedClient,
    scope: &Scope<'_>,
    token: &SecretText,
    order: &VendOrder,
) -> Result<SecretText, CheckReason> {
    let start = rfc3339(order.now.plus_seconds(-LEAD)).ok_or(CheckReason::Lifetime)?;
    let end = rfc3339(order.expires_at).ok_or(CheckReason::Lifetime)?;
    let key = ask(client, scope, token, &start, &end, order.now.as_seconds()).await?;
    let protocol = if scope.endpoint.starts_with("http://") { "https,http" } else { "https" };
    let resource = format!("/blob/{}/{}", scope.account, scope.container);
    let signed = [
        RIGHTS,
        "", // start: immediately
        &end,
        &resource,
        &key.signed_oid,
        &key.signed_tid,
        &key.signed_start,
        &key.signed_expiry,
        &key.signed_service,
        &key.signed_version,
        "", // authorized user
        "", // unauthorized user
        "", // correlation ID
        "", // IP addresses
        protocol,
        VERSION,
        "c",
        "", // snapshot
        "", // encryption scope
        "", // response headers: Cache-Control
        "", // Content-Disposition
        "", // Content-Encoding
        "", // Content-Language
        "", // Content-Type
    ]
    .join("\n");
    let value = Zeroizing::new(STANDARD.decode(&*Zeroizing::new(key.value)).map_err(|_| CheckReason::Unexpected)?);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &value), signed.as_bytes());
    let signature = Zeroizing::new(STANDARD.encode(tag));
    let query = encode_pairs(&[
        ("sv", VERSION),
        ("sr", "c"),
        ("sp", RIGHTS),
        ("se", &end),
        ("spr", protocol),
        ("skoid", &key.signed_oid),
        ("sktid", &key.signed_tid),
        ("skt", &key.signed_start),
        ("ske", &key.signed_expiry),
        ("sks", &key.signed_service),
        ("skv", &key.signed_version),
        ("sig", &signature),
    ]);
    Ok(query.into())
}

/// Requests a key from the account.
async fn ask(
    client: &GuardedClient,
    scope: &Scope<'_>,
    token: &SecretText,
    start: &str,
    end: &str,
    now: i64,
) -> Result<DelegationKey, CheckReason> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Start>{start}</Start><Expiry>{end}</Expiry></KeyInfo>"
    );
    let bearer = Zeroizing::new(["Bearer ", token.expose()].concat()); // sent to the account that it is for
    let request = Request::post(format!("{}/?restype=service&comp=userdelegationkey", scope.endpoint))
        .header(header::AUTHORIZATION, &**bearer)
        .header(header::CONTENT_TYPE, "application/xml")
        .header("x-ms-version", VERSION)
        .body(Bytes::from(body))
        .map_err(|_| CheckReason::Unexpected)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        let access = Access::Signed(AzureCredential::BearerToken(String::new()));
        return Err(reason::of(&answer, &access, now));
    }
    let Given::UserDelegationKey(key) = answer.xml().ok_or(CheckReason::Unexpected)?;
    Ok(key)
}
