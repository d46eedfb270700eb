//! Output of a `credential_process` (AWS SDKs and Tools Reference Guide, "Process credential provider").

use super::{Form, FormError, FormSubject, S3View, gather};
use vault_core::credential::SecretText;
use vault_core::json::{ObjectWriter, write_text};

const FORM: Form = Form::AwsCredentialProcess;

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let kind = subject.vended.kind();
    let view = S3View::of(subject.vended).ok_or(FORM.not_for_type(kind))?;
    if view.endpoint.is_some() {
        let reason = "it contains only keys, so the tool would send its requests to Amazon";
        return Err(FORM.unrepresentable("endpoint", reason));
    }
    if view.path_style_access == Some(true) {
        let reason = "it contains only keys, so the tool would not know how to address the bucket";
        return Err(FORM.unrepresentable("path_style_access", reason));
    }
    // Without an expiry, tools would use the credential forever, even after the activation has expired.
    let end = subject.ends_at().to_rfc3339();
    Ok(gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        object.member("Version")("1");
        write_text(view.access_key_id, object.member("AccessKeyId"));
        write_text(view.secret_access_key, object.member("SecretAccessKey"));
        if let Some(token) = view.session_token {
            write_text(token, object.member("SessionToken"));
        }
        if let Some(end) = &end {
            write_text(end, object.member("Expiration"));
        }
        object.end();
        sink("\n");
    }))
}
