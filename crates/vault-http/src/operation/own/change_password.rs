//! `POST {base_url}/account/password`

use super::proof;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::operation::document::read_secrets;
use actix_web::HttpResponse;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session(call)?;
    let [password, passcode, new] = read_secrets(call, body, ["password", "passcode", "new_password"]).await?;
    let proof = proof(api, call, password, passcode);
    let accounts = api.parts.accounts.clone();

    api.complete(async move { accounts.change_password(&principal, proof, new).await }).await?;

    Ok(answer::no_content())
}
