//! `{base}/enrol`: acceptance of an invitation, authenticated only by the enrolment code.

use super::credential_json::{recovery_codes, totp};
use crate::body::Body;
use crate::caller::Caller;
use crate::public::PublicApi;
use crate::respond::{JsonResult, NoContent, no_content, ok, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::web::Data;
use vault_api::{ConfirmEnrolmentRequest, EnrolRequest, EnrolResponse, InvitationItem, InvitationRequest};
use vault_core::usecase::accounts::ShownInvitation;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("POST", "{base}/enrol", "enrol", Access::Limited, enrol),
        route("POST", "{base}/enrol/invitation", "show-invitation", Access::Limited, show),
        route("POST", "{base}/enrol/confirm", "confirm-enrolment", Access::Limited, confirm),
    ]
}

async fn enrol(caller: Caller<()>, api: Data<PublicApi>, Body(body): Body<EnrolRequest>) -> JsonResult<EnrolResponse> {
    let (code, password) = (body.enrolment_code.into_secret(), body.password.into_secret());
    let accounts = api.parts.accounts.for_request(caller.origin);
    let drafted = caller.run(|()| async move { accounts.enrol(&code, password).await }).await?;
    ok(EnrolResponse {
        email: drafted.email.to_string(),
        totp: totp(drafted.passcode),
        recovery_codes: recovery_codes(drafted.recovery_codes),
    })
}

async fn show(
    caller: Caller<()>,
    api: Data<PublicApi>,
    Body(body): Body<InvitationRequest>,
) -> JsonResult<InvitationItem> {
    let code = body.enrolment_code.into_secret();
    let accounts = api.parts.accounts.for_request(caller.origin);
    let shown = caller.run(|()| async move { accounts.show_invitation(&code).await }).await?;
    let ShownInvitation { email, organization, invited_by, expires_at } = shown;
    ok(InvitationItem {
        email: email.to_string(),
        organization: organization.to_string(),
        invited_by: invited_by.map(|inviter| inviter.to_string()),
        expires_at: time_text(expires_at),
    })
}

async fn confirm(caller: Caller<()>, api: Data<PublicApi>, Body(body): Body<ConfirmEnrolmentRequest>) -> NoContent {
    let (code, passcode) = (body.enrolment_code.into_secret(), body.passcode.into_secret());
    let accounts = api.parts.accounts.for_request(caller.origin);
    caller.run(|()| async move { accounts.confirm_enrolment(&code, &passcode).await }).await.map(no_content)
}
