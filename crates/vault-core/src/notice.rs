//! Notices: events of an account that its owner sees.

use crate::id::AccountId;
use crate::time::Timestamp;
use std::borrow::Cow;

/// How long a notice is kept, in seconds: 90 days.
pub const NOTICE_SECONDS: i64 = 90 * 24 * 3600;
/// The owner gets a notice when this many recovery codes are left, or fewer.
pub const FEW_RECOVERY_CODES: u32 = 3;

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeCode {
    /// 100 consecutive logins of one attempt class failed, so it was closed.
    AttemptsClosed,
    /// 20 passcodes were wrong, so time-based passcodes are disabled.
    PasscodeDisabled,
    /// An operator set the password.
    PasswordChangedByOperator,
    /// An operator replaced the passcode seed and the recovery codes.
    PasscodeResetByOperator,
    /// An admin or operator took the account's secrets, and its owner had to enrol again.
    ReEnrolled,
    /// To admins: an admin or operator took the secrets of this account, whose owner has to enrol again.
    ColleagueReEnrolled(AccountId),
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// At most [`FEW_RECOVERY_CODES`] recovery codes are left. Never stored: computed from their number.
    RecoveryCodesLow,
}

impl NoticeCode {
    /// Every code that is stored, [`NoticeCode::ColleagueReEnrolled`] aside.
    pub const STORED: [Self; 6] = [
        Self::AttemptsClosed,
        Self::PasscodeDisabled,
        Self::PasswordChangedByOperator,
        Self::PasscodeResetByOperator,
        Self::ReEnrolled,
        Self::RecoveryCodeUsed,
    ];

    /// The code's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsClosed => "attempts-closed",
            Self::PasscodeDisabled => "passcode-disabled",
            Self::PasswordChangedByOperator => "password-changed-by-operator",
            Self::PasscodeResetByOperator => "passcode-reset-by-operator",
            Self::ReEnrolled => "re-enrolled",
            Self::ColleagueReEnrolled(_) => "colleague-re-enrolled",
            Self::RecoveryCodeUsed => "recovery-code-used",
            Self::RecoveryCodesLow => "recovery-codes-low",
        }
    }

    /// The account that it is about, if that is another one than its owner's.
    pub const fn colleague(self) -> Option<AccountId> {
        match self {
            Self::ColleagueReEnrolled(account) => Some(account),
            _ => None,
        }
    }

    /// The code as it is stored: its name, and the account that it is about, so that notices about several accounts are
    /// told apart even at one moment.
    pub fn stored(self) -> Cow<'static, str> {
        match self.colleague() {
            Some(account) => format!("{}:{account}", self.as_str()).into(),
            None => self.as_str().into(),
        }
    }

    /// The code that is stored so.
    pub fn parse_stored(text: &str) -> Option<Self> {
        let Some((_, account)) = text.split_once(':') else {
            return Self::STORED.into_iter().find(|code| code.as_str() == text);
        };
        let code = Self::ColleagueReEnrolled(account.parse().ok()?);
        Some(code).filter(|code| code.stored() == text)
    }

    /// Whether only the newest of it is kept, so that nobody can fill another account with notices by repeating what
    /// they tell of.
    pub const fn replaces_earlier(self) -> bool {
        matches!(self, Self::ReEnrolled | Self::ColleagueReEnrolled(_))
    }
}

/// A notice as stored. Code and time are unique within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredNotice {
    /// What it says.
    pub code: NoticeCode,
    /// Since when.
    pub at: Timestamp,
}

impl StoredNotice {
    /// Whether it is kept, and shown, at `now`.
    pub fn is_kept(self, now: Timestamp) -> bool {
        now.millis_since(self.at) < NOTICE_SECONDS * 1000
    }
}

/// A notice as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub code: NoticeCode,
    /// When it happened; absent for a state, such as few recovery codes.
    pub at: Option<Timestamp>,
}

/// The notices shown to the owner: the stored ones still kept, newest first, then
/// [`NoticeCode::RecoveryCodesLow`] if it applies.
pub fn notices(stored: &[StoredNotice], recovery_codes_left: u32, now: Timestamp) -> Vec<Notice> {
    let mut kept: Vec<_> = stored.iter().copied().filter(|notice| notice.is_kept(now)).collect();
    kept.sort_by_key(|notice| (std::cmp::Reverse(notice.at), notice.code.as_str()));
    let low = recovery_codes_left <= FEW_RECOVERY_CODES;
    let happened = kept.into_iter().map(|notice| Notice { code: notice.code, at: Some(notice.at) });
    happened.chain(low.then_some(Notice { code: NoticeCode::RecoveryCodesLow, at: None })).collect()
}
