//! `GET {base_url}/account`

use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{AccountNotice, OwnAccount};
use vault_core::notice::{Notice, NoticeCode};

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    body.ignore().await?;
    let accounts = api.parts.accounts.clone();

    let account = api.complete(async move { accounts.own(&principal).await }).await?;

    let account = OwnAccount {
        id: account.id.to_string(),
        email: account.email.to_string(),
        role: account.role.as_str().to_owned(),
        organization: account.organization.to_string(),
        passcode_enrolled_at: answer::time_text(account.passcode_enrolled_at),
        recovery_codes_left: account.recovery_codes_left,
        notices: account.notices.iter().map(notice).collect(),
    };
    answer::object(StatusCode::OK, &account)
}

fn notice(notice: &Notice) -> AccountNotice {
    AccountNotice {
        code: notice.code.as_str().into(),
        at: notice.at.map(answer::time_text),
        detail: detail(notice.code).into(),
    }
}

/// What a notice says to people.
const fn detail(code: NoticeCode) -> &'static str {
    match code {
        NoticeCode::AttemptsClosed => {
            "100 logins in a row failed, so no more are taken from where they came. If it was not you, somebody guesses."
        }
        NoticeCode::PasscodeDisabled => {
            "20 passcodes were wrong, so time-based ones are no longer taken. Whoever sent them may have the password: \
             ask an operator for a new passcode, and change the password."
        }
        NoticeCode::PasswordChangedByOperator => "An operator set a new password. If you did not ask for it, ask why.",
        NoticeCode::PasscodeResetByOperator => {
            "An operator replaced the passcode secret and the recovery codes. If you did not ask for it, ask why."
        }
        NoticeCode::RecoveryCodeUsed => "A recovery code was used. If it was not you, change everything at once.",
        NoticeCode::RecoveryCodesLow => "Three recovery codes or fewer are left. Make new ones.",
    }
}
