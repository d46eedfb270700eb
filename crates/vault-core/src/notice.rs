//! Notices: events of an account that its owner sees.

use crate::time::Timestamp;

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
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// At most [`FEW_RECOVERY_CODES`] recovery codes are left. Never stored: computed from their number.
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
