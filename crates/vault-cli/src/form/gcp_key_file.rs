//! A service account's key file, as Google's tools read it.

use super::{Form, FormError, FormSubject, gather};
use vault_core::activation::{ShortData, Vended};
use vault_core::credential::{CredentialData, SecretText};

const FORM: Form = Form::GcpKeyFile;

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    match subject.vended {
        Vended::Raw(CredentialData::Gcs(data)) => {
            let key = data.service_account_key.to_json();
            // JSON is UTF-8, and the file is for the client that activates.
            let text = std::str::from_utf8(key.expose())
                .map_err(|_| FORM.unrepresentable("service_account_key", "not UTF-8"))?;
            Ok(gather(|sink| {
                sink(text);
                sink("\n");
            }))
        }
        Vended::Short { data: ShortData::Gcs(_), .. } => {
            Err(FormError::NotForShort { form: FORM, kind: subject.vended.kind() })
        }
        other => Err(FORM.not_for_type(other.kind())),
    }
}
