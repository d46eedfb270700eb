//! Links that contain their own authorization.

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

/// Requests the first byte of the link. A link may be for downloads or uploads and does not show which. The check does
/// not write, because it must not replace existing content.
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
    // Used to request the linked object.
    let mut url = Url::parse(data.url.expose()).ok()?;
    let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| basic(&url));
    // Sent in a header, because URLs of requests contain no credentials.
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
        let mut value = header::HeaderValue::from_str(field.value.expose()).ok()?; // sent as intended
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    Some(request)
}

/// Formats user and password of a URL as a header value (RFC 7617).
fn basic(url: &Url) -> Zeroizing<String> {
    // Decoding does not lengthen the text, so the buffer never grows and leaves no copy.
    let mut pair = Zeroizing::new(Vec::with_capacity(url.as_str().len()));
    pair.extend(percent_decode_str(url.username()));
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let encoded = Zeroizing::new(STANDARD.encode(&*pair));
    Zeroizing::new(["Basic ", &*encoded].concat())
}

/// Converts an error response. Storage providers describe errors of signed links in their own documents.
fn why(answer: &Answer) -> CheckReason {
    let text = answer.text().unwrap_or_default();
    let code = answer.stated().code;
    let says = |words: &str| text.contains(words);
    match (answer.status.as_u16(), &*code) {
        // Amazon: "Request has expired"; Google: ExpiredToken; Azure: "Signature not valid in the specified time
        // frame".
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
