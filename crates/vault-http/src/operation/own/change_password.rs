//! `POST {base_url}/account/password`

use super::proof;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use vault_api::{ChangePasswordRequest, ProofRequest};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    let ChangePasswordRequest { password, passcode, new_password } = document::read(call, body).await?;
    let proof = proof(call, ProofRequest { password, passcode });
    let new = new_password.into_secret();
    let accounts = api.parts.accounts.for_request(call.origin);

    api.complete(call, async move { accounts.change_password(&principal, proof, new).await })
        .await
        .map_err(ProblemResponse::of_own_proof)?;

    Ok(answer::no_content())
}
