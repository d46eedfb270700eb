//! Accounts of the organization, and the caller's own account.

use crate::base::encode;
use crate::client::json;
use crate::{Client, ClientError, Session};
use secrecy::SecretString;
use ureq::http::Method;
use vault_api::{
    AccountItem, ChangeAccountRequest, ChangePasswordRequest, ConfirmEnrolmentRequest, ConfirmPasscodeRequest,
    EnrolRequest, EnrolResponse, InvitationItem, InvitationRequest, InviteRequest, InvitedAccount, NewPasscode,
    NewRecoveryCodes, OwnAccount, ProofRequest, ReEnrolment, SessionItem, Totp, WireSecret,
};

const ACCOUNTS: &str = "/accounts";
const SESSIONS: &str = "/account/sessions";

impl Client {
    /// Returns the invitation of an enrolment code. Changes nothing.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the code is invalid.
    pub fn invitation(&self, request: &InvitationRequest) -> Result<InvitationItem, ClientError> {
        self.send(self.request(Method::POST, "/enrol/invitation"), Some(&json(request)?))?.json()
    }

    /// Accepts an invitation or re-enrols. May be repeated until it is confirmed, and only the latest response is
    /// valid.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the code is invalid or the password is refused.
    pub fn enrol(&self, request: &EnrolRequest) -> Result<EnrolResponse, ClientError> {
        self.send(self.request(Method::POST, "/enrol"), Some(&json(request)?))?.json()
    }

    /// Creates the account of the latest [`Client::enrol`], or replaces its secrets. The passcode is marked as used.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if code or passcode is wrong.
    pub fn confirm_enrolment(&self, request: &ConfirmEnrolmentRequest) -> Result<(), ClientError> {
        self.send(self.request(Method::POST, "/enrol/confirm"), Some(&json(request)?)).map(|_| ())
    }
}

/// Operations of admins on the accounts of their organization.
///
/// # Errors
/// [`ClientError::Problem`] of each: the role does not permit it, the account does not exist, or a rule forbids the
/// change.
impl Session {
    /// Returns all accounts and open invitations.
    pub fn accounts(&self) -> Result<Vec<AccountItem>, ClientError> {
        self.all(ACCOUNTS)
    }

    /// Invites a user.
    pub fn invite(&self, request: &InviteRequest) -> Result<InvitedAccount, ClientError> {
        self.send_json(Method::POST, ACCOUNTS, request)?.json()
    }

    /// Changes an account's role or state, and ends its sessions.
    pub fn change_account(&self, id: &str, change: &ChangeAccountRequest) -> Result<AccountItem, ClientError> {
        self.send_json(Method::PATCH, &below(ACCOUNTS, id), change)?.json()
    }

    /// Clears an account's lockout after failed logins.
    pub fn unlock_account(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::POST, &[&below(ACCOUNTS, id), "/unlock"].concat()).map(|_| ())
    }

    /// Deletes an account's password, TOTP secret and recovery codes, and ends its sessions. The user enrols again with
    /// the returned code, which replaces an earlier one. Refused for the caller's own account.
    pub fn re_enrol_account(&self, id: &str) -> Result<ReEnrolment, ClientError> {
        self.send(Method::POST, &[&below(ACCOUNTS, id), "/re-enrol"].concat())?.json()
    }

    /// Deletes an account or an invitation.
    pub fn delete_account(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(ACCOUNTS, id)).map(|_| ())
    }
}

/// The caller's own account.
///
/// # Errors
/// [`ClientError::Problem`] of each: the re-authentication failed, or the session does not exist.
impl Session {
    /// Returns the account.
    pub fn account(&self) -> Result<OwnAccount, ClientError> {
        self.send(Method::GET, "/account")?.json()
    }

    /// Returns the account's active sessions, newest first.
    pub fn sessions(&self) -> Result<Vec<SessionItem>, ClientError> {
        self.send(Method::GET, SESSIONS)?.json()
    }

    /// Ends one of the account's sessions.
    pub fn end_session(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(SESSIONS, id)).map(|_| ())
    }

    /// Changes the password, and ends all other sessions of the account.
    pub fn change_password(&self, request: &ChangePasswordRequest) -> Result<(), ClientError> {
        self.send_json(Method::POST, "/account/password", request).map(|_| ())
    }

    /// Generates a new TOTP secret, which is used after [`Session::confirm_passcode`] got one of its codes.
    pub fn replace_passcode(&self, proof: &ProofRequest) -> Result<Totp, ClientError> {
        let new: NewPasscode = self.send_json(Method::POST, "/account/passcode", proof)?.json()?;
        Ok(new.totp)
    }

    /// Activates a new TOTP secret, and ends all other sessions of the account.
    pub fn confirm_passcode(&self, passcode: SecretString) -> Result<(), ClientError> {
        let request = ConfirmPasscodeRequest { passcode: passcode.into() };
        self.send_json(Method::POST, "/account/passcode/confirm", &request).map(|_| ())
    }

    /// Generates new recovery codes, invalidates the previous ones, and ends all other sessions of the account.
    pub fn replace_recovery_codes(&self, proof: &ProofRequest) -> Result<Vec<WireSecret>, ClientError> {
        let new: NewRecoveryCodes = self.send_json(Method::POST, "/account/recovery-codes", proof)?.json()?;
        Ok(new.recovery_codes)
    }
}

pub(crate) fn below(collection: &str, id: &str) -> String {
    [collection, "/", &encode(id)].concat()
}
