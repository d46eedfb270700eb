//! Notices: events of an account that its user sees.

use crate::id::AccountId;
use crate::time::Timestamp;
use std::borrow::Cow;

/// Retention of a notice, in seconds: 90 days.
pub const NOTICE_SECONDS: i64 = 90 * 24 * 3600;
/// Number of remaining recovery codes at or below which the user gets a notice.
pub const FEW_RECOVERY_CODES: u32 = 3;

/// Content of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeCode {
    /// 100 consecutive logins in one throttle bucket failed, so it was locked.
    LoginLocked,
    /// 20 passcodes were wrong, so time-based passcodes were disabled.
    PasscodeDisabled,
    /// An admin or operator deleted the secrets of the account, and its user had to enrol again.
    ReEnrolled,
    /// For admins: an admin or operator deleted the secrets of this account, whose user must enrol again.
    ColleagueReEnrolled(AccountId),
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// Logins from a network are locked out for a time. Never stored or shown to the user, but found in the counters of
    /// attempts, so that no login writes more than another.
    LockedOut,
    /// At most [`FEW_RECOVERY_CODES`] recovery codes remain. Never stored, but computed from their number.
    RecoveryCodesLow,
}

impl NoticeCode {
    /// All stored codes, except [`NoticeCode::ColleagueReEnrolled`].
    pub const STORED: [Self; 4] = [Self::LoginLocked, Self::PasscodeDisabled, Self::ReEnrolled, Self::RecoveryCodeUsed];

    /// Returns the name of the code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoginLocked => "login-locked",
            Self::PasscodeDisabled => "passcode-disabled",
            Self::ReEnrolled => "re-enrolled",
            Self::ColleagueReEnrolled(_) => "colleague-re-enrolled",
            Self::RecoveryCodeUsed => "recovery-code-used",
            Self::LockedOut => "locked-out",
            Self::RecoveryCodesLow => "recovery-codes-low",
        }
    }

    /// Returns the account that the notice is about, if it is another account.
    pub const fn colleague(self) -> Option<AccountId> {
        match self {
            Self::ColleagueReEnrolled(account) => Some(account),
            _ => None,
        }
    }

    /// Returns the code as stored: its name and the account that it is about. Notices about several accounts are
    /// therefore distinguished even at the same time.
    pub fn stored(self) -> Cow<'static, str> {
        match self.colleague() {
            Some(account) => format!("{}:{account}", self.as_str()).into(),
            None => self.as_str().into(),
        }
    }

    /// Parses a stored code.
    pub fn parse_stored(text: &str) -> Option<Self> {
        let Some((_, account)) = text.split_once(':') else {
            return Self::STORED.into_iter().find(|code| code.as_str() == text);
        };
        let code = Self::ColleagueReEnrolled(account.parse().ok()?);
        Some(code).filter(|code| code.stored() == text)
    }

    /// Returns whether only the newest notice with this code is kept, so that repeated actions cannot fill another
    /// account with notices.
    pub const fn replaces_earlier(self) -> bool {
        matches!(self, Self::ReEnrolled | Self::ColleagueReEnrolled(_))
    }
}

/// A stored notice. Code and time are unique within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredNotice {
    /// Code of the notice.
    pub code: NoticeCode,
    /// Time of the event.
    pub at: Timestamp,
}

impl StoredNotice {
    /// Returns whether it is kept and shown at `now`.
    pub fn is_kept(self, now: Timestamp) -> bool {
        now.millis_since(self.at) < NOTICE_SECONDS * 1000
    }
}

/// A notice as its user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Code of the notice.
    pub code: NoticeCode,
    /// Time of the event. `None` for a state, such as few recovery codes.
    pub at: Option<Timestamp>,
}

/// Returns the notices for the user: the stored ones within their retention, newest first, then
/// [`NoticeCode::RecoveryCodesLow`] if it applies.
pub fn notices(stored: &[StoredNotice], recovery_codes_left: u32, now: Timestamp) -> Vec<Notice> {
    let mut kept: Vec<_> = stored.iter().copied().filter(|notice| notice.is_kept(now)).collect();
    kept.sort_by_key(|notice| (std::cmp::Reverse(notice.at), notice.code.as_str()));
    let low = recovery_codes_left <= FEW_RECOVERY_CODES;
    let happened = kept.into_iter().map(|notice| Notice { code: notice.code, at: Some(notice.at) });
    happened.chain(low.then_some(Notice { code: NoticeCode::RecoveryCodesLow, at: None })).collect()
}
