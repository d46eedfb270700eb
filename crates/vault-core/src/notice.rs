//! Notices: what an account's owner is told about the account, whoever caused it.

use crate::time::Timestamp;

/// How long a notice is kept, in seconds: 90 days.
pub const NOTICE_SECONDS: i64 = 90 * 24 * 3600;
/// With so many recovery codes left, or fewer, the owner is told.
pub const FEW_RECOVERY_CODES: u32 = 3;

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeCode {
    /// So many logins from one class failed in a row that it was closed.
    AttemptsClosed,
    /// So many passcodes were wrong that time-based ones are disabled.
    PasscodeDisabled,
    /// An operator set the password.
    PasswordChangedByOperator,
    /// An operator replaced passcode seed and recovery codes.
    PasscodeResetByOperator,
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// Few recovery codes are left. Never stored: it follows from their number.
    RecoveryCodesLow,
}

impl NoticeCode {
    /// Every code that is stored.
    pub const STORED: [Self; 5] = [
        Self::AttemptsClosed,
        Self::PasscodeDisabled,
        Self::PasswordChangedByOperator,
        Self::PasscodeResetByOperator,
        Self::RecoveryCodeUsed,
    ];

    /// The code's name, stored and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsClosed => "attempts-closed",
            Self::PasscodeDisabled => "passcode-disabled",
            Self::PasswordChangedByOperator => "password-changed-by-operator",
            Self::PasscodeResetByOperator => "passcode-reset-by-operator",
            Self::RecoveryCodeUsed => "recovery-code-used",
            Self::RecoveryCodesLow => "recovery-codes-low",
        }
    }

    /// The stored code of this exact name.
    pub fn parse_stored(text: &str) -> Option<Self> {
        Self::STORED.into_iter().find(|code| code.as_str() == text)
    }
}

/// A notice as stored. Of one account there is none twice at the same moment.
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
    /// Since when; absent where it says how things are, not what happened.
    pub at: Option<Timestamp>,
}

/// What the owner is told: what is stored and still kept, newest first, then what follows from the number of
/// recovery codes left.
pub fn notices(stored: &[StoredNotice], recovery_codes_left: u32, now: Timestamp) -> Vec<Notice> {
    let mut kept: Vec<_> = stored.iter().copied().filter(|notice| notice.is_kept(now)).collect();
    kept.sort_by_key(|notice| (std::cmp::Reverse(notice.at), notice.code.as_str()));
    let low = recovery_codes_left <= FEW_RECOVERY_CODES;
    let happened = kept.into_iter().map(|notice| Notice { code: notice.code, at: Some(notice.at) });
    happened.chain(low.then_some(Notice { code: NoticeCode::RecoveryCodesLow, at: None })).collect()
}
