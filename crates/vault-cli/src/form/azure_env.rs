//! Only the variables of the Azure tools.

use super::env::{azure_raw, azure_short, displaced_by, lines, named};
use super::{Form, FormError, FormName, FormSubject};
use vault_core::activation::{ShortData, Vended};
use vault_core::credential::{CredentialData, CredentialType, SecretText};

const FORM: Form = Form::AzureEnv;

pub(super) fn render(subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
    let settings = match subject.vended {
        Vended::Raw(CredentialData::AzureIdentity(data)) => azure_raw(FORM, data)?,
        Vended::Short { data: ShortData::AzureIdentity(data), .. } => azure_short(data),
        other => return Err(FORM.not_for_type(other.kind())),
    };
    let prefix = subject.name.map(FormName::variable_prefix).unwrap_or_default();
    let displaced = displaced_by(CredentialType::AzureIdentity).iter().copied();
    Ok(lines(subject, displaced, &named(FORM, &prefix, settings)?))
}
