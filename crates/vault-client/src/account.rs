//! Accounts: those of the organization, and one's own.

use crate::base::encode;
use crate::client::json;
use crate::{Client, ClientError, Session};
use secrecy::SecretString;
use ureq::http::Method;
use vault_api::{
    AccountItem, ChangeAccountRequest, ChangePasswordRequest, ConfirmEnrolmentRequest, ConfirmPasscodeRequest,
    EnrolRequest, EnrolResponse, InviteRequest, InvitedAccount, NewPasscode, NewRecoveryCodes, OwnAccount,
    ProofRequest, ReEnrolment, SessionItem, Totp, WireSecret,
};

const ACCOUNTS: &str = "/accounts";
const SESSIONS: &str = "/account/sessions";

impl Client {
    /// Takes an invitation up, or enrols again. May be repeated until it is confirmed; only the newest answer counts.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the code does not work or the password is refused.
    pub fn enrol(&self, request: &EnrolRequest) -> Result<EnrolResponse, ClientError> {
        self.send(self.request(Method::POST, "/enrol"), Some(&json(request)?))?.json()
    }

    /// Makes the account of the newest [`Client::enrol`], or gives it its new secrets. The passcode is spent.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if code or passcode is not right.
    pub fn confirm_enrolment(&self, request: &ConfirmEnrolmentRequest) -> Result<(), ClientError> {
        self.send(self.request(Method::POST, "/enrol/confirm"), Some(&json(request)?)).map(|_| ())
    }
}

/// What admins do with their organization's accounts.
///
/// # Errors
/// [`ClientError::Problem`], each: the role does not permit it, there is no such account, or something stands in the
/// way.
impl Session {
    /// All accounts and open invitations.
    pub fn accounts(&self) -> Result<Vec<AccountItem>, ClientError> {
        self.all(ACCOUNTS)
    }

    /// Invites a user.
    pub fn invite(&self, request: &InviteRequest) -> Result<InvitedAccount, ClientError> {
        self.send_json(Method::POST, ACCOUNTS, request)?.json()
    }

    /// Changes an account's role or state. Its sessions end.
    pub fn change_account(&self, id: &str, change: &ChangeAccountRequest) -> Result<AccountItem, ClientError> {
        self.send_json(Method::PATCH, &below(ACCOUNTS, id), change)?.json()
    }

    /// Lifts an account's lockout after failed logins.
    pub fn unlock_account(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::POST, &[&below(ACCOUNTS, id), "/unlock"].concat()).map(|_| ())
    }

    /// Destroys an account's password, passcode and recovery codes. Its sessions end, and its owner enrols again with the
    /// returned code; an earlier code is dead. Not for one's own account.
    pub fn re_enrol_account(&self, id: &str) -> Result<ReEnrolment, ClientError> {
        self.send(Method::POST, &[&below(ACCOUNTS, id), "/re-enrol"].concat())?.json()
    }

    /// Deletes an account or withdraws an invitation.
    pub fn delete_account(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(ACCOUNTS, id)).map(|_| ())
    }
}

/// One's own account.
///
/// # Errors
/// [`ClientError::Problem`], each: the proof is not right, or there is no such session.
impl Session {
    /// The account.
    pub fn account(&self) -> Result<OwnAccount, ClientError> {
        self.send(Method::GET, "/account")?.json()
    }

    /// The account's live sessions, newest first.
    pub fn sessions(&self) -> Result<Vec<SessionItem>, ClientError> {
        self.send(Method::GET, SESSIONS)?.json()
    }

    /// Ends one of the account's sessions.
    pub fn end_session(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(SESSIONS, id)).map(|_| ())
    }

    /// Changes the password. Every other session of the account ends.
    pub fn change_password(&self, request: &ChangePasswordRequest) -> Result<(), ClientError> {
        self.send_json(Method::POST, "/account/password", request).map(|_| ())
    }

    /// A new passcode seed, in force once [`Session::confirm_passcode`] has a code of it.
    pub fn replace_passcode(&self, proof: &ProofRequest) -> Result<Totp, ClientError> {
        let new: NewPasscode = self.send_json(Method::POST, "/account/passcode", proof)?.json()?;
        Ok(new.totp)
    }

    /// Puts a new passcode seed in force. Every other session of the account ends.
    pub fn confirm_passcode(&self, passcode: SecretString) -> Result<(), ClientError> {
        let request = ConfirmPasscodeRequest { passcode: passcode.into() };
        self.send_json(Method::POST, "/account/passcode/confirm", &request).map(|_| ())
    }

    /// New recovery codes; those before are dead. Every other session of the account ends.
    pub fn replace_recovery_codes(&self, proof: &ProofRequest) -> Result<Vec<WireSecret>, ClientError> {
        let new: NewRecoveryCodes = self.send_json(Method::POST, "/account/recovery-codes", proof)?.json()?;
        Ok(new.recovery_codes)
    }
}

pub(crate) fn below(collection: &str, id: &str) -> String {
    [collection, "/", &encode(id)].concat()
}
