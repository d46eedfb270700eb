//! `POST {base_url}/account/recovery-codes`

use super::proof;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document, shown};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::NewRecoveryCodes;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    let proof = proof(call, document::read(call, body).await?);
    let accounts = api.parts.accounts.for_request(call.origin);

    let codes = api
        .complete(call, async move { accounts.replace_recovery_codes(&principal, proof).await })
        .await
        .map_err(ProblemResponse::of_own_proof)?;

    answer::object(StatusCode::OK, &NewRecoveryCodes { recovery_codes: shown::recovery_codes(codes) })
}
