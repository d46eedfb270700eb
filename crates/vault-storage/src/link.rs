//! Links that carry their own permission.

use crate::guard::{Answer, GuardedClient};
use crate::probe::{Trial, refused};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{Request, header};
use percent_encoding::percent_decode_str;
use url::Url;
use vault_core::check::{Check, CheckKind, CheckReason, StorageOperation};
use vault_core::credential::DirectLink;
use zeroize::Zeroizing;

/// Asks for the first byte behind the link. A link may be for a download or for an upload, and does not say which;
/// nothing is written, since what lies behind it is not ours to replace.
pub(crate) async fn check(client: &GuardedClient, data: &DirectLink, trial: &Trial) -> Vec<Check> {
    match fetch(client, data).await {
        Err(reason) => refused(reason, &trial.operations),
        Ok(()) => {
            let operations = trial.operations.iter().map(|operation| match operation {
                StorageOperation::Read => Check::passed(CheckKind::Operation(*operation)),
                other => Check::skipped(CheckKind::Operation(*other), CheckReason::NotForType),
            });
            std::iter::once(Check::passed(CheckKind::Authenticate)).chain(operations).collect()
        }
    }
}

async fn fetch(client: &GuardedClient, data: &DirectLink) -> Result<(), CheckReason> {
    let request = request(data).ok_or(CheckReason::Unexpected)?;
    let answer = client.send(request).await?;
    // An empty object has no first byte.
    if answer.status.is_success() || answer.status.as_u16() == 416 { Ok(()) } else { Err(why(&answer)) }
}

fn request(data: &DirectLink) -> Option<Request<Bytes>> {
    // To ask for what it opens.
    let mut url = Url::parse(data.url.expose()).ok()?;
    let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| basic(&url));
    // They travel in a header field; no request has them in its address.
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_fragment(None);
    let url = Zeroizing::new(String::from(url));
    let mut request = Request::get(&**url).header(header::RANGE, "bytes=0-0");
    if let Some(credentials) = credentials {
        request = request.header(header::AUTHORIZATION, &**credentials);
    }
    let mut request = request.body(Bytes::new()).ok()?;
    for field in data.headers.iter().flat_map(|headers| headers.iter()) {
        let name = header::HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let mut value = header::HeaderValue::from_str(field.value.expose()).ok()?; // To send it, as it is meant.
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    Some(request)
}

/// User and password of an address as a header field says them (RFC 7617).
fn basic(url: &Url) -> Zeroizing<String> {
    // Decoded it is no longer than in the address: it never grows, which would leave copies behind.
    let mut pair = Zeroizing::new(Vec::with_capacity(url.as_str().len()));
    pair.extend(percent_decode_str(url.username()));
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let encoded = Zeroizing::new(STANDARD.encode(&*pair));
    Zeroizing::new(["Basic ", &*encoded].concat())
}

/// What the refusal means. Stores that sign links say it in their own documents.
fn why(answer: &Answer) -> CheckReason {
    let text = answer.text().unwrap_or_default();
    let code = answer.stated().code;
    let says = |words: &str| text.contains(words);
    match (answer.status.as_u16(), &*code) {
        // Amazon: "Request has expired"; Google: ExpiredToken; Azure: "Signature not valid in the specified time frame".
        (_, "ExpiredToken" | "RequestExpired") => CheckReason::LinkExpired,
        (403, _) if says("Request has expired") || says("not valid in the specified time frame") => {
            CheckReason::LinkExpired
        }
        (410, _) => CheckReason::LinkExpired,
        (_, "SignatureDoesNotMatch") => CheckReason::SignatureMismatch,
        (403, "AuthenticationFailed") if says("Signature did not match") => CheckReason::SignatureMismatch,
        (_, "InvalidAccessKeyId") => CheckReason::UnknownKey,
        (_, "NoSuchBucket" | "ContainerNotFound") => CheckReason::BucketMissing,
        (404, _) => CheckReason::ObjectMissing,
        _ => answer.plain_reason(),
    }
}
