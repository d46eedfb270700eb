//! `GET {base_url}/account`

use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{AccountNotice, OwnAccount, ServerAbilities};
use vault_core::notice::{Notice, NoticeCode};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (accounts, organization) = (api.parts.accounts.for_request(call.origin), principal.organization);

    let account = api.complete(call, async move { accounts.own(&principal).await }).await?;

    let account = OwnAccount {
        id: account.id.to_string(),
        email: account.email.to_string(),
        role: account.role.as_str().to_owned(),
        organization: account.organization.to_string(),
        organization_id: organization.to_string(),
        passcode_enrolled_at: answer::time_text(account.passcode_enrolled_at),
        recovery_codes_left: account.recovery_codes_left,
        notices: account.notices.iter().map(notice).collect(),
        server: ServerAbilities {
            verify: api.parts.vault.verifies(),
            mail: api.parts.receivers.sends_mail(),
            activation_url: api.activation_url.clone(),
            federation_issuer: api.parts.vault.federation_issuer().map(ToString::to_string),
        },
    };
    answer::object(StatusCode::OK, &account)
}

fn notice(notice: &Notice) -> AccountNotice {
    AccountNotice {
        code: notice.code.as_str().into(),
        at: notice.at.map(answer::time_text),
        account: notice.code.colleague().map(|account| account.to_string()),
        detail: detail(notice.code).into(),
    }
}

/// Returns the text of a notice for users.
const fn detail(code: NoticeCode) -> &'static str {
    match code {
        NoticeCode::LoginLocked => {
            "100 consecutive logins failed, so logins from their network are locked out. If they were not yours, someone is \
             guessing your password."
        }
        NoticeCode::PasscodeDisabled => {
            "20 passcodes were wrong, so time-based passcodes are disabled; recovery codes still work. If they were not \
             yours, someone knows your password: change it, and set up another authenticator with a recovery code."
        }
        NoticeCode::ReEnrolled => {
            "An admin or operator destroyed your password, passcode and recovery codes, and you enrolled again. If you did \
             not request this, ask your admins."
        }
        NoticeCode::ColleagueReEnrolled(_) => {
            "An admin or operator destroyed the password, passcode and recovery codes of this account, so that its \
             owner enrols again. If you do not know why, ask the owner and the other admins."
        }
        NoticeCode::RecoveryCodeUsed => {
            "A recovery code was used. If it was not you, change password, passcode and recovery codes now."
        }
        NoticeCode::LockedOut => "Logins from a network were locked out for a time after failed attempts.",
        NoticeCode::RecoveryCodesLow => "Three or fewer recovery codes remain. Create new ones.",
    }
}
