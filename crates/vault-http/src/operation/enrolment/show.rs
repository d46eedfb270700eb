//! `POST {base_url}/enrol/invitation`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{InvitationItem, InvitationRequest};
use vault_core::usecase::accounts::ShownInvitation;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let request: InvitationRequest = document::read(call, body).await?;
    let code = request.enrolment_code.into_secret();
    let accounts = api.parts.accounts.for_request(call.origin);

    let shown = api.complete(call, async move { accounts.show_invitation(&code).await }).await?;

    let ShownInvitation { email, organization, invited_by, expires_at } = shown;
    let item = InvitationItem {
        email: email.to_string(),
        organization: organization.to_string(),
        invited_by: invited_by.map(|inviter| inviter.to_string()),
        expires_at: answer::time_text(expires_at),
    };
    answer::object(StatusCode::OK, &item)
}
