//! `{base}/organization-vault/read` and `…/find`: credentials in a text, which are read or searched for, and not saved.

use crate::body::Body;
use crate::caller::Caller;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::respond::{JsonResult, ok};
use crate::routes::{Access, Endpoint, route};
use actix_web::web::Data;
use secrecy::{ExposeSecret as _, SecretString};
use vault_api::{FindKeyRequest, FoundKey, ReadEntry, ReadRequest, ReadViolation, WireJson};
use vault_core::field::{FieldCode, FieldError};
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{KEY_ID_END, WantedKey};
use vault_import::{Entry, Fields, Files, Source, Violation};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let editors = Access::Role(Action::Save);
    vec![
        route("POST", "{base}/organization-vault/read", "read", editors, read),
        route("POST", "{base}/organization-vault/find", "find-key", editors, find),
    ]
}

async fn read(caller: Caller, api: Data<PublicApi>, Body(body): Body<ReadRequest>) -> JsonResult<Vec<ReadEntry>> {
    let accounts = api.parts.accounts.for_request(caller.origin);
    // Nothing is read or written, so this checks whether the session has ended.
    let check = |principal| async move {
        match principal {
            Principal::Session(session) => accounts.own(&session).await.map(drop),
            _ => Ok(()),
        }
    };
    caller.run(check).await?;
    let text = body.text.into_secret();
    let text = text.expose_secret().trim_start_matches('\u{feff}'); // only to its readers
    let entries = match vault_import::read(Source::detect(text), &[("-".as_ref(), text)], &Files::NONE) {
        Ok(entries) => entries,
        Err(error) => vec![Entry { name: String::new(), content: Err(error.violation) }],
    };
    let entries = entries.into_iter().map(item).collect::<Result<Vec<_>, _>>();
    ok(entries.map_err(|error| ProblemResponse::internal().caused_by(error))?)
}

async fn find(caller: Caller, api: Data<PublicApi>, Body(body): Body<FindKeyRequest>) -> JsonResult<Vec<FoundKey>> {
    let text = body.text.into_secret();
    let text = text.expose_secret().trim(); // only to its readers and for the comparison
    let mut wanted = WantedKey { text: text.to_owned().into(), data: Vec::new() };
    let entries = vault_import::read(Source::detect(text), &[("-".as_ref(), text)], &Files::NONE).unwrap_or_default();
    for fields in entries.into_iter().filter_map(|entry| entry.content.ok()) {
        let data = fields.to_json().map_err(|error| ProblemResponse::internal().caused_by(error))?;
        wanted.data.push((fields.kind, data));
    }
    if wanted.data.is_empty() && text.chars().count() < KEY_ID_END {
        let detail = "must have at least the last 4 characters of a key ID";
        return Err(FieldError::new("/text", FieldCode::OutOfRange, detail).into());
    }
    let vault = api.parts.vault.for_request(caller.origin);
    let found = caller.run(|principal| async move { vault.find_key(&principal, &wanted).await }).await?;
    let item = |one: vault_core::usecase::FoundKey| FoundKey {
        id: one.id.to_string(),
        namespace: one.namespace.to_string(),
        kind: one.kind.as_str().to_owned(),
        version: one.version,
        state: one.state.as_str().to_owned(),
        matched: one.matched.as_str().to_owned(),
    };
    ok(found.into_iter().map(item).collect())
}

fn item(Entry { name, content }: Entry) -> Result<ReadEntry, serde_json::Error> {
    let violation = |Violation { line, field, reason }| ReadViolation { line, field, reason };
    let nothing =
        ReadEntry { name, kind: None, data: None, expires_at: None, left_out: Vec::new(), needs: None, refused: None };
    Ok(match content {
        Ok(fields) => {
            let data = WireJson::from(SecretString::from(fields.to_json()?.as_str()));
            let Fields { kind, expires_at, left_out, needs, .. } = fields;
            let kind = Some(kind.as_str().to_owned());
            ReadEntry { kind, data: Some(data), expires_at, left_out, needs: needs.map(violation), ..nothing }
        }
        Err(refused) => ReadEntry { refused: Some(violation(refused)), ..nothing },
    })
}
