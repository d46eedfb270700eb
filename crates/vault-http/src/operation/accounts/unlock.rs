//! `POST {base_url}/accounts/<id>/unlock`

use super::change::by_address;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use vault_core::usecase::AccountCommand;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    by_address(api, call, body, AccountCommand::Unlock).await?;
    Ok(answer::no_content())
}
