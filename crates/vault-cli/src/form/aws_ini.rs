//! A section of the credentials file (AWS SDKs and Tools Reference Guide, "Shared config and credentials files").

use super::env::{CHECKSUMS, WHEN_REQUIRED, addressing_lines};
use super::{Form, FormError, FormSubject, S3View, copied, gather, ini, settings};
use vault_core::credential::SecretText;

const FORM: Form = Form::AwsIni;

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let view = S3View::of(subject.vended).ok_or(FORM.not_for_type(subject.vended.kind()))?;
    let settings = settings([
        ("aws_access_key_id", copied(view.access_key_id)),
        ("aws_secret_access_key", copied(view.secret_access_key)),
        ("aws_session_token", view.session_token.and_then(copied)),
        ("region", view.region.and_then(copied)),
        ("endpoint_url", view.endpoint.and_then(copied)),
    ]);
    let checksums = CHECKSUMS.map(|name| (name, copied(WHEN_REQUIRED).filter(|_| !view.is_amazon())));
    let settings: Vec<_> = settings.into_iter().chain(super::settings(checksums)).collect();
    // Read the values only to check whether an INI file can express them.
    if let Some((name, _)) = settings.iter().find(|(_, value)| !ini::can_store(value.expose())) {
        return Err(FORM.unrepresentable(name, ini::UNQUOTABLE));
    }
    Ok(gather(|sink| {
        sink("[");
        sink(subject.section("default"));
        sink("]\n");
        for (name, value) in &settings {
            ini::write_line(name, value.expose(), sink); // The file is for the client that activates.
        }
        if let Some(addressing) = view.stated_addressing() {
            sink(addressing_lines(addressing));
        }
    }))
}
