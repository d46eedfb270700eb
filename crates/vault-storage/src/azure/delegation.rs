//! A shared access signature for a container, signed by a key that the account gives the application for a while.
//!
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/get-user-delegation-key> and
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/create-user-delegation-sas>. A signature cannot be
//! narrowed to a prefix, except in accounts with a hierarchical namespace; it is for the container.

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

/// The version whose rules the signature follows.
const VERSION: &str = "2022-11-02";
/// Read, add, create, write, delete, list; in the order that Azure wants.
const RIGHTS: &str = "racwdl";
/// How long before now the key begins, so that clocks may differ, in seconds.
const LEAD: i64 = 15 * 60;

/// What the signature is for.
pub(super) struct Scope<'a> {
    pub(super) account: &'a str,
    pub(super) container: &'a str,
    /// The address of the account's blobs, without a last slash.
    pub(super) endpoint: &'a str,
}

/// The key, and what is known of it.
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

/// The signature, as the query of an address. It ends when `order` does.
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
        "", // start: at once
        &end,
        &resource,
        &key.signed_oid,
        &key.signed_tid,
        &key.signed_start,
        &key.signed_expiry,
        &key.signed_service,
        &key.signed_version,
        "", // for which user
        "", // for which user not
        "", // correlation id
        "", // addresses
        protocol,
        VERSION,
        "c",
        "", // snapshot
        "", // encryption scope
        "", // header fields of answers: Cache-Control
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

/// Asks the account for a key.
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
    let bearer = Zeroizing::new(["Bearer ", token.expose()].concat()); // Shown to the account that it is for.
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
