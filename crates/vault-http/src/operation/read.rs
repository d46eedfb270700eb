//! `POST {base_url}/organization-vault/read`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use vault_api::{ReadEntry, ReadRequest, ReadViolation, WireJson};
use vault_core::role::Action;
use vault_import::{Entry, Fields, Files, Source, Violation};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let session = api.session_for(call, Action::Save)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let (ReadRequest { text }, violations) = wire::read(&body.read().await?)?;
    let text = violations.finish(Some(text.into_secret()))?;
    // Nothing is read or written, so this checks whether the session has ended.
    let accounts = api.parts.accounts.for_request(call.origin);
    api.complete(call, async move { accounts.own(&session).await }).await?;

    let text = text.expose_secret().trim_start_matches('\u{feff}'); // only to its readers
    let entries = match vault_import::read(Source::detect(text), &[("-".as_ref(), text)], &Files::NONE) {
        Ok(entries) => entries,
        Err(error) => vec![Entry { name: String::new(), content: Err(error.violation) }],
    };
    let entries = entries.into_iter().map(item).collect::<Result<Vec<_>, _>>();

    answer::secret(StatusCode::OK, &entries.map_err(|error| ProblemResponse::internal().caused_by(error))?)
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
