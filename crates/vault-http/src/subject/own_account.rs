//! Login and logout, and `{base}/account`: the caller's own account.

use super::credential_json::{recovery_codes, totp};
use crate::body::Body;
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::NoEntityTag;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::optional_time;
use crate::respond::{JsonResult, NoContent, no_content, ok, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::http::header;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use vault_api::{
    AccountNotice, ChangePasswordRequest, ConfirmPasscodeRequest, LoginRequest, LoginResponse, NewPasscode,
    NewRecoveryCodes, OwnAccount, ProofRequest, ServerAbilities, SessionItem, SetAsideItem, SetAsideRequest,
    TOKEN_TYPE,
};
use vault_core::account::SetAside;
use vault_core::id::SessionId;
use vault_core::network::Network;
use vault_core::notice::{Notice, NoticeCode};
use vault_core::principal::SessionPrincipal;
use vault_core::session::{StoredSession, client_name};
use vault_core::usecase::{LogInRequest, OwnerProof};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let own = Access::Session;
    vec![
        route("POST", "{base}/login", "log-in", Access::Limited, log_in),
        route("POST", "{base}/logout", "log-out", own, log_out),
        route("GET", "{base}/account", "show-account", own, show),
        route("GET", "{base}/account/sessions", "list-sessions", own, sessions),
        route("DELETE", "{base}/account/sessions/{id}", "end-session", own, end_session),
        route("GET", "{base}/account/set-aside", "list-set-aside", own, set_aside),
        route("PUT", "{base}/account/set-aside", "change-set-aside", own, change_set_aside),
        route("POST", "{base}/account/password", "change-password", own, change_password),
        route("POST", "{base}/account/passcode", "replace-passcode", own, replace_passcode),
        route("POST", "{base}/account/passcode/confirm", "confirm-passcode", own, confirm_passcode),
        route("POST", "{base}/account/recovery-codes", "replace-recovery-codes", own, replace_recovery_codes),
    ]
}

type Owner = Caller<SessionPrincipal>;

async fn log_in(
    caller: Caller<()>,
    api: Data<PublicApi>,
    request: HttpRequest,
    Body(body): Body<LoginRequest>,
) -> Result<HttpResponse, ProblemResponse> {
    let LoginRequest { email, password, passcode, ttl } = body;
    let client = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok()).and_then(client_name);
    let (password, passcode) = (password.into_secret(), passcode.into_secret());
    let request = LogInRequest { email, password, passcode, ttl, network: caller.network, client };
    let accounts = api.parts.accounts.for_request(caller.origin);
    let logged_in = caller.run(|()| async move { accounts.log_in(request).await }).await?;
    let response = LoginResponse {
        access_token: logged_in.token.0.into(),
        token_type: TOKEN_TYPE.to_owned(),
        expires_in: logged_in.expires_in,
        expires_at: time_text(logged_in.expires_at),
    };
    Ok(HttpResponse::Ok().insert_header((header::PRAGMA, "no-cache")).json(response)) // RFC 6749 section 5.1
}

async fn log_out(caller: Owner, api: Data<PublicApi>) -> NoContent {
    let accounts = api.parts.accounts.for_request(caller.origin);
    caller.run(|session| async move { accounts.log_out(&session).await }).await.map(no_content)
}

async fn show(caller: Owner, api: Data<PublicApi>) -> JsonResult<OwnAccount> {
    let (accounts, organization) = (api.parts.accounts.for_request(caller.origin), caller.principal.organization);
    let account = caller.run(|session| async move { accounts.own(&session).await }).await?;
    ok(OwnAccount {
        id: account.id.to_string(),
        email: account.email.to_string(),
        role: account.role.as_str().to_owned(),
        organization: account.organization.to_string(),
        organization_id: organization.to_string(),
        passcode_enrolled_at: time_text(account.passcode_enrolled_at),
        recovery_codes_left: account.recovery_codes_left,
        notices: account.notices.iter().map(notice).collect(),
        server: ServerAbilities {
            verify: api.parts.vault.verifies(),
            mail: api.parts.receivers.sends_mail(),
            activation_url: api.activation_url.clone(),
            federation_issuer: api.parts.vault.federation_issuer().map(ToString::to_string),
        },
    })
}

async fn sessions(caller: Owner, api: Data<PublicApi>) -> JsonResult<Vec<SessionItem>> {
    let (accounts, current) = (api.parts.accounts.for_request(caller.origin), caller.principal.session);
    let sessions = caller.run(|session| async move { accounts.sessions(&session).await }).await?;
    ok(sessions.into_iter().map(|listed| session_item(listed, current)).collect())
}

async fn end_session(caller: Owner, api: Data<PublicApi>, Id(id): Id<SessionId>, _: NoEntityTag) -> NoContent {
    let accounts = api.parts.accounts.for_request(caller.origin);
    caller.run(|session| async move { accounts.end_session(&session, id).await }).await.map(no_content)
}

async fn set_aside(caller: Owner, api: Data<PublicApi>) -> JsonResult<Vec<SetAsideItem>> {
    let accounts = api.parts.accounts.for_request(caller.origin);
    let listed = caller.run(|session| async move { accounts.set_aside(&session).await }).await?;
    let item = |SetAside { concern, until }| SetAsideItem { concern, until: time_text(until) };
    ok(listed.into_iter().map(item).collect())
}

async fn change_set_aside(caller: Owner, api: Data<PublicApi>, Body(body): Body<SetAsideRequest>) -> NoContent {
    let SetAsideRequest { concern, until } = body;
    let until = optional_time(until.as_deref(), "/until").map_err(|error| ProblemResponse::fields(vec![error]))?;
    let accounts = api.parts.accounts.for_request(caller.origin);
    let change = |session| async move { accounts.change_set_aside(&session, concern, until).await };
    caller.run(change).await.map(no_content)
}

async fn change_password(caller: Owner, api: Data<PublicApi>, Body(body): Body<ChangePasswordRequest>) -> NoContent {
    let ChangePasswordRequest { password, passcode, new_password } = body;
    let proof = proof(ProofRequest { password, passcode }, caller.network);
    let (accounts, new) = (api.parts.accounts.for_request(caller.origin), new_password.into_secret());
    let change = |session| async move { accounts.change_password(&session, proof, new).await };
    caller.run(change).await.map(no_content).map_err(ProblemResponse::of_reauthentication)
}

async fn replace_passcode(
    caller: Owner,
    api: Data<PublicApi>,
    Body(body): Body<ProofRequest>,
) -> JsonResult<NewPasscode> {
    let (accounts, proof) = (api.parts.accounts.for_request(caller.origin), proof(body, caller.network));
    let replace = |session| async move { accounts.replace_passcode(&session, proof).await };
    let new = caller.run(replace).await.map_err(ProblemResponse::of_reauthentication)?;
    ok(NewPasscode { totp: totp(new) })
}

async fn confirm_passcode(caller: Owner, api: Data<PublicApi>, Body(body): Body<ConfirmPasscodeRequest>) -> NoContent {
    let (accounts, passcode) = (api.parts.accounts.for_request(caller.origin), body.passcode.into_secret());
    let confirm = |session| async move { accounts.confirm_passcode(&session, &passcode).await };
    caller.run(confirm).await.map(no_content).map_err(ProblemResponse::of_new_passcode)
}

async fn replace_recovery_codes(
    caller: Owner,
    api: Data<PublicApi>,
    Body(body): Body<ProofRequest>,
) -> JsonResult<NewRecoveryCodes> {
    let (accounts, proof) = (api.parts.accounts.for_request(caller.origin), proof(body, caller.network));
    let replace = |session| async move { accounts.replace_recovery_codes(&session, proof).await };
    let codes = caller.run(replace).await.map_err(ProblemResponse::of_reauthentication)?;
    ok(NewRecoveryCodes { recovery_codes: recovery_codes(codes) })
}

/// Returns the re-authentication data of a request.
fn proof(request: ProofRequest, network: Network) -> OwnerProof {
    OwnerProof { password: request.password.into_secret(), passcode: request.passcode.into_secret(), network }
}

fn session_item(listed: StoredSession, current: SessionId) -> SessionItem {
    let StoredSession { session, last_used_at } = listed;
    SessionItem {
        id: session.id.to_string(),
        created_at: time_text(session.created_at),
        expires_at: time_text(session.expires_at),
        last_used_at: time_text(last_used_at),
        network: session.network,
        client: session.client,
        current: session.id == current,
    }
}

fn notice(notice: &Notice) -> AccountNotice {
    AccountNotice {
        code: notice.code.as_str().into(),
        at: notice.at.map(time_text),
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
